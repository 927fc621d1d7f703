"""What the service shows of its ledgers: all of it as it was at the last answer time.

Ledgers are written at answer times only, and what undelivered jobs hold is added at its worst case: nothing here tells
how far a job is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import dropwhile, islice
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from expost.accounting.amounts import Amounts, together
from expost.cost import Cost
from expost.ledger.engine import Rows
from expost.ledger.entry import Balance, Entry, View
from expost.ledger.imagined import Imagined
from expost.ledger.metered import balance_shown, remaining, with_held
from expost.ledger.pages import Pages
from expost.ledger.rows import BALANCE, balance_of_row, meters_of_text
from expost.ledger.statement import lines_of
from expost.ledger.trail import TrailLine
from expost.ledger.verify.tables import Verification
from expost.service.database import ServiceTables
from expost.service.jobs import Admit, Held
from expost.service.posting import Gate

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters


MOST_BALANCES = 1000
"""Accounts in a page, and in what listeners are sent."""


class _Book(NamedTuple):
    """A ledger at one instant."""

    ledger: int
    sequence: int
    entries: int
    meters: LedgerMeters | None
    balances: dict[str, Balance]


class Window:
    """Ledgers as they were at the last answer time."""

    def __init__(self, database: ServiceTables, ledgers: tuple[str, ...]) -> None:
        self._database, self._ledgers = database, ledgers
        self.gate, self._changing = Gate(), Lock()
        self._books: dict[str, _Book] = {}
        self._texts: dict[str, str] = {}
        self.refresh()

    def refresh(self) -> None:
        """Look at the ledgers. One query, so all of it is of one instant."""
        held = _held(self._database.rows)
        marks = ", ".join("?" * len(self._ledgers))
        rows = self._database.rows(
            f"SELECT l.name, l.id, l.sequence, l.entries, l.accounting, a.path, {BALANCE} FROM expost_books l "
            f"JOIN expost_account a ON a.ledger = l.id WHERE l.name IN ({marks}) ORDER BY a.id", *self._ledgers,
        )  # fmt: skip
        books: dict[str, _Book] = {}
        for name, ledger, sequence, entries, accounting, path, *amounts in rows:
            if name not in books:
                books[name] = _Book(ledger, sequence, entries, meters_of_text(accounting), {})
            books[name].balances[path] = _holding(balance_of_row(amounts), path, held)
        with self._changing:
            self._take(books)

    def _take(self, books: dict[str, _Book]) -> None:
        if books != self._books:
            self._books = books
            self._texts = {}  # after the books: a text that is kept is about them

    def imagined(self, account: str) -> Imagined:
        """What an account can still ask for, on every meter."""
        return _imagined(self._books[account.partition("/")[0]].meters, self.levels(account))

    def admit(self, charge: Amounts) -> Admit:
        """Sets a charge aside for a job, in the transaction that accepts it, if it fits beside all that is held."""

        def work(run: Rows, account: str) -> Held | Cost | None:
            levels = self._levels_now(run, account)
            if levels is None or any(level.closed for level in levels):
                return None
            budget = _imagined(self._books[account.partition("/")[0]].meters, levels)
            return budget.remaining if budget.after(charge) is None else Held(charge, levels)

        return work

    def _levels_now(self, run: Rows, account: str) -> tuple[Balance, ...] | None:
        """The balances of an account and of those above it as they are in a transaction; None if there is no such."""
        book, held, paths = self._books[account.partition("/")[0]], _held(run), _paths(account)
        rows = run(
            f"SELECT path, {BALANCE} FROM expost_account WHERE ledger = ? AND path IN "
            f"({', '.join('?' * len(paths))})", book.ledger, *paths,
        )  # fmt: skip
        found = {path: _holding(balance_of_row(amounts), path, held) for path, *amounts in rows}
        return tuple(found[path] for path in paths) if len(found) == len(paths) else None

    def balance_now(self, account: str) -> dict[str, Any]:
        """An account after a decision about it. No job changes it between answer times: what is held stays held."""
        levels = self._levels_now(self._database.rows, account)
        assert levels is not None, account
        return self._shown(account, levels)

    def knows(self, account: str) -> bool:
        """Whether there was such an account."""
        book = self._books.get(account.partition("/")[0])
        return book is not None and account in book.balances

    def finds(self, account: str) -> bool:
        """Whether there is such an account now. One that is younger than the last answer time is taken in."""
        ledger = account.partition("/")[0]
        if ledger not in self._books or (levels := self._levels_now(self._database.rows, account)) is None:
            return False
        with self._changing:
            book = self._books[ledger]
            new = book.balances | dict(zip(_paths(account), levels, strict=True)) | book.balances  # the last in order
            self._take({**self._books, ledger: book._replace(balances=new)})
        return True

    def below(self, account: str, limit: int | None = None, after: str | None = None) -> list[str]:
        """The account and all below it: all, or the first of them, or those behind one."""
        book = self._books[account.partition("/")[0]]
        found: Iterator[str] = (path for path in book.balances if path == account or path.startswith(f"{account}/"))
        if after is not None:
            found = islice(dropwhile(lambda path: path != after, found), 1, None)
        return list(islice(found, limit))

    def has_room(self, account: str, most: int) -> bool:
        """Whether an account may be made: so many directly below a ledger, and below each of those at all depths."""
        ledger, *below = account.split("/")
        above = f"{'/'.join([ledger, *below[: min(1, len(below) - 1)]])}/"
        rows = self._database.rows(
            "SELECT path FROM expost_account WHERE ledger = ? AND substr(path, 1, ?) = ?",
            self._books[ledger].ledger, len(above), above,
        )  # fmt: skip
        return sum(len(below) > 1 or "/" not in path.removeprefix(above) for (path,) in rows) < most

    def levels(self, account: str) -> tuple[Balance, ...]:
        """The balances of an account and of those above it, the ledger's own first."""
        balances = self._books[account.partition("/")[0]].balances
        return tuple(balances[path] for path in _paths(account))

    def remaining(self, account: str) -> Cost:
        """What an account can still ask for."""
        return remaining(self._books[account.partition("/")[0]].meters, self.levels(account))

    def balance(self, account: str) -> dict[str, Any]:
        """An account as callers see it. What remains is the least of all levels: it tells of others."""
        return self._shown(account, self.levels(account))

    def _shown(self, account: str, levels: tuple[Balance, ...]) -> dict[str, Any]:
        costs = balance_shown(self._books[account.partition("/")[0]].meters, levels)
        return {
            "account": account,
            **{what: cost.to_json() for what, cost in costs.items()},
            "closed": any(level.closed for level in levels),
        }

    def balance_text(self, account: str) -> str:
        """The balance as JSON."""
        return self._kept(account, lambda: json.dumps(self.balance(account), ensure_ascii=False))

    def balances_text(self, account: str, limit: int = MOST_BALANCES, after: str | None = None) -> str:
        """An account and those below it, in pages, as JSON. Of many it takes long: not for the event loop."""

        def listed() -> str:
            return f"[{', '.join(map(self.balance_text, self.below(account, limit, after)))}]"

        return listed() if after or limit != MOST_BALANCES else self._kept(f"{account}/", listed)

    def known_text(self, account: str) -> str | None:
        """The first page of balances, if it was made already."""
        return self._texts.get(f"{account}/")

    def _kept(self, name: str, make: Callable[[], str]) -> str:
        """A text that is made once for all who ask, until something changes."""
        texts = self._texts
        if name not in texts:
            texts[name] = make()
        return texts[name]

    def entries(self, account: str, last: int | None = None) -> Iterator[Entry]:
        """The entries of an account and of those below it, or the last ones."""
        return iter(self._pages(account, last))

    def statement(self, account: str, by: Literal["entry", "day"]) -> Iterator[str]:
        """A statement for people, line by line."""
        view = View(self.levels(account), self._pages(account, None))
        return lines_of(account, view, self._books[account.partition("/")[0]].meters, by)

    def trail(self, ledger: str, after: int, limit: int | None = None) -> Iterator[TrailLine]:
        """Lines of the audit trail after a line, once they are on the disk."""
        book = self._books[ledger]
        self._database.engine.await_disk()
        count = max(0, book.sequence - after)
        return islice(
            Verification(self._database.engine, book.ledger).trail(after), count if limit is None else min(limit, count)
        )  # fmt: skip

    def sequence(self, ledger: str) -> int:
        """The number of its last line."""
        return self._books[ledger].sequence

    def _pages(self, account: str, last: int | None) -> Pages:
        book = self._books[account.partition("/")[0]]
        path = tuple(account.split("/"))
        return Pages(self._database.engine, book.ledger, path, book.sequence, book.entries, last)


def _paths(account: str) -> list[str]:
    """An account and those above it, the ledger first."""
    parts = account.split("/")
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


def _held(run: Rows) -> list[tuple[str, Amounts]]:
    """What is held for jobs that are not answered yet, and for whom."""
    rows = run(
        "SELECT account, charge, count(*) FROM expost_job WHERE delivered_at IS NULL AND charge IS NOT NULL "
        "GROUP BY account, charge"
    )
    return [(account, Amounts(*json.loads(text)).times(count)) for account, text, count in rows]


def _holding(level: Balance, path: str, held: list[tuple[str, Amounts]]) -> Balance:
    """A balance with what is held for jobs of the account and of those below it, as reserved."""
    own = [charge for account, charge in held if account == path or account.startswith(f"{path}/")]
    return with_held(level, together(own)) if own else level


def _imagined(meters: LedgerMeters | None, levels: tuple[Balance, ...]) -> Imagined:
    return Imagined(meters, levels, meters is not None and any(level.is_basic_alone for level in levels))
