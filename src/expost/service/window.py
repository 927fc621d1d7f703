"""What the service shows of its ledgers: all of it as it was at the last answer time.

A balance changes when an answer is ready, and when that is may depend on data. So nobody, whatever the role, is shown a
balance, an entry or a line of the trail that is younger than the last answer time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from expost.cost import Cost
from expost.ledger.entry import Balance, Entry, View
from expost.ledger.metered import balance_shown, remaining
from expost.ledger.pages import Pages
from expost.ledger.rows import BALANCE, balance_of_row, meters_of_text
from expost.ledger.statement import lines_of
from expost.ledger.trail import TrailLine
from expost.ledger.verify.tables import Verification
from expost.service.database import ServiceTables

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters


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
        self._books: dict[str, _Book] = {}
        self._texts: dict[str, str] = {}
        self.refresh()

    def refresh(self) -> None:
        """Look at the ledgers. One query, so all of it is of one instant."""
        marks = ", ".join("?" * len(self._ledgers))
        rows = self._database.rows(
            f"SELECT l.name, l.id, l.sequence, l.entries, l.accounting, a.path, {BALANCE} FROM expost_books l "
            f"JOIN expost_account a ON a.ledger = l.id WHERE l.name IN ({marks}) ORDER BY a.id", *self._ledgers,
        )  # fmt: skip
        books: dict[str, _Book] = {}
        for name, ledger, sequence, entries, accounting, path, *amounts in rows:
            if name not in books:
                books[name] = _Book(ledger, sequence, entries, meters_of_text(accounting), {})
            books[name].balances[path] = balance_of_row(amounts)
        if books != self._books:
            self._books = books
            self._texts = {}  # after the books: a text that is kept is about them

    def knows(self, account: str) -> bool:
        """Whether there was such an account."""
        book = self._books.get(account.partition("/")[0])
        return book is not None and account in book.balances

    def below(self, account: str) -> list[str]:
        """The account and all below it."""
        book = self._books[account.partition("/")[0]]
        return [path for path in book.balances if path == account or path.startswith(f"{account}/")]

    def levels(self, account: str) -> tuple[Balance, ...]:
        """The balances of an account and of those above it, the ledger's own first."""
        book, parts = self._books[account.partition("/")[0]], account.split("/")
        return tuple(book.balances["/".join(parts[: depth + 1])] for depth in range(len(parts)))

    def remaining(self, account: str) -> Cost:
        """What an account can still ask for."""
        return remaining(self._books[account.partition("/")[0]].meters, self.levels(account))

    def balance(self, account: str) -> dict[str, Any]:
        """An account as callers see it. What remains is the least of all levels: it tells of others."""
        levels = self.levels(account)
        costs = balance_shown(self._books[account.partition("/")[0]].meters, levels)
        return {
            "account": account,
            **{what: cost.to_json() for what, cost in costs.items()},
            "closed": any(level.closed for level in levels),
        }

    def balance_text(self, account: str) -> str:
        """The balance as JSON."""
        return self._kept(account, lambda: self.balance(account))

    def balances_text(self, account: str) -> str:
        """An account and all below it, as JSON."""
        return self._kept(f"{account}/", lambda: [self.balance(each) for each in self.below(account)])

    def _kept(self, name: str, make: Callable[[], Any]) -> str:
        """A text that is made once for all who ask, until something changes."""
        texts = self._texts
        if name not in texts:
            texts[name] = json.dumps(make(), ensure_ascii=False)
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
