"""What the service does not keep for ever: results, tokens and sessions that ended long ago, and who served then.

A job's line stays, with what was asked, when, and what it was charged. The ledger has its own books, and its own
retention: nothing here touches them.
"""

from __future__ import annotations

import json
from typing import Any

from expost.ledger.engine import Rows
from expost.service.database import ServiceTables
from expost.service.results import charged_in, result_text

_DAY = 86_400
RESULT_GONE = (
    "it was answered, and the service no longer keeps the result: whoever asked may have it, and the custodian finds "
    "what the ledger keeps by its entries"
)


class Retention:
    """Removes what is older than some days, a batch at a time."""

    def __init__(self, database: ServiceTables, days: float | None, *, batch: int = 100) -> None:
        """``batch`` rows are changed in one transaction: answer times do not wait for more."""
        self._database, self._days, self._batch = database, days, batch

    def tidy(self, now: float) -> bool:
        """Remove a batch; True if there may be more. Nothing is removed unless a number of days was stated."""
        if self._days is None:
            return False
        before, most = now - self._days * _DAY, self._batch
        changed = self._database.write(lambda run: max(_drop(run, before, most), _forget(run, before, most)))
        return changed >= most


def _drop(run: Rows, before: float, most: int) -> int:
    """Results of jobs that were answered before a time."""
    rows = run("SELECT number, result FROM expost_job WHERE delivered_at IS NOT NULL AND dropped = 0 "
               "AND delivered_at < ? ORDER BY delivered_at LIMIT ?", int(before * 1e6), most)  # fmt: skip
    for number, result in rows:
        run("UPDATE expost_job SET result = ?, dropped = 1 WHERE number = ?", without_answers(result), number)
    return len(rows)


def without_answers(result: str) -> str:
    """How a job ended, and what it was charged; nothing else of its result."""
    found: dict[str, Any] = json.loads(result)
    entries = [receipt["entry"] for question in found["questions"] for receipt in question["receipts"]]
    problem = found["problem"] or {"type": "about:blank", "title": "Not kept", "status": 410, "detail": RESULT_GONE}
    charged = charged_in(result).to_json()
    return result_text(found | {"questions": [], "problem": {"entries": entries} | problem | {"charged": charged}})


def _forget(run: Rows, before: float, most: int) -> int:
    """Sessions and tokens that ended before a time, and processes that were seen last before it.

    A token stays while one that was made with it does, or a job that was asked with it waits: who made whose token
    decides who may accept that.
    """
    when = int(before)
    run("DELETE FROM expost_session WHERE expires_at < ?", when)
    tokens = run(
        "SELECT id FROM expost_token t WHERE expires_at < ? "
        "AND NOT EXISTS (SELECT 1 FROM expost_token made WHERE made.maker = t.id) "
        "AND NOT EXISTS (SELECT 1 FROM expost_session s WHERE s.token = t.id) "
        "AND NOT EXISTS (SELECT 1 FROM expost_job j WHERE j.token = t.id AND j.delivered_at IS NULL) "
        "ORDER BY id LIMIT ?", when, most,
    )  # fmt: skip
    for (token,) in tokens:
        run("DELETE FROM expost_token WHERE id = ?", token)
    run("DELETE FROM expost_server WHERE seen_at < ? AND NOT EXISTS (SELECT 1 FROM expost_job "
        "WHERE owner = expost_server.name AND delivered_at IS NULL)", int(before * 1e6))  # fmt: skip
    return len(tokens)
