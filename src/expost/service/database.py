"""The service's tables in the ledger's database. Writes that come together are committed together."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from expost.ledger.address import open_engine
from expost.ledger.engine import Rows, Settings
from expost.service.schema import make_tables

Made = TypeVar("Made")
_Work = tuple[Callable[[Rows], Any], "Future[Any]"]
_MOST = 256
"""Writes in one commit."""
_TURN = "SELECT pg_advisory_xact_lock(7091848)"


class ServiceTables:
    """Tokens, sessions, jobs and reviews. A write is on the disk when its future has a result.

    One write at a time, as in SQLite, on every database: what a write reads first stays true until it commits.
    """

    def __init__(self, url: str, settings: Settings | None = None) -> None:
        self.engine = open_engine(url, settings)
        self._writing = open_engine(url, settings)
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        try:
            with self._writing.transaction() as run:
                self._take_turn(run)
                make_tables(run, "sqlite" if self.engine.local else "postgres")
        except BaseException:
            self.engine.close()
            self._writing.close()
            raise
        self._thread = Thread(target=self._serve, name="expost-service-writer", daemon=True)
        self._thread.start()

    def rows(self, sql: str, *values: Any) -> list[Any]:
        """What a query gives, from what is committed."""
        return self.engine.rows(sql, *values)

    def submit(self, work: Callable[[Rows], Made]) -> Future[Made]:
        """Do something in a transaction, soon. It may be done twice, if a commit fails: it only uses the database."""
        future: Future[Made] = Future()
        self._waiting.put((work, future))
        return future

    def write(self, work: Callable[[Rows], Made]) -> Made:
        """Do something in a transaction, and wait until it is committed."""
        return self.submit(work).result()

    def close(self) -> None:
        """Commit what was asked for, and let go of the database."""
        self._waiting.put(None)
        self._thread.join(30)
        self.engine.close()
        self._writing.close()

    # ---- the writer's thread

    def _serve(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch, more = self._batch(first)
            self._commit(batch)
            if not more:
                return

    def _batch(self, first: _Work) -> tuple[list[_Work], bool]:
        batch = [first]
        try:
            while len(batch) < _MOST:
                work = self._waiting.get_nowait()
                if work is None:
                    return batch, False
                batch.append(work)
        except Empty:
            pass
        return batch, True

    def _commit(self, batch: list[_Work]) -> None:
        """All of them, or, if one fails, each for itself."""
        try:
            with self._writing.transaction() as run:
                self._take_turn(run)
                found = [work(run) for work, _ in batch]
        except Exception as error:
            if len(batch) == 1:
                batch[0][1].set_exception(error)
                return
            for one in batch:
                self._commit([one])
            return
        for (_, future), result in zip(batch, found, strict=True):
            future.set_result(result)

    def _take_turn(self, run: Rows) -> None:
        if not self._writing.local:
            run(_TURN)
