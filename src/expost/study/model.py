"""A study: what somebody wants to know, and what it may cost. Plain records, without data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from expost.cost import Cost, exact
from expost.data.unit import Unit, stated_unit
from expost.errors import InvalidStudy
from expost.guarantee import Neighbours
from expost.recipes import Rest

SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Amount:
    """How much ε a question gets: a number, a share of the limit, or a share of what remains (all of it: the rest)."""

    of: Literal["fixed", "limit", "remaining"]
    number: Fraction

    def resolve(self, limit: Cost, remaining: Cost) -> Cost:
        """The ε it comes to, rounded down."""
        whole = {"fixed": Fraction(1), "limit": limit.exact_epsilon, "remaining": remaining.exact_epsilon}[self.of]
        return Cost.within(self.number * whole)


@dataclass(frozen=True)
class Condition:
    """Something about an earlier released answer: an outcome, or how its number compares."""

    text: str
    question: str
    outcome: str | None = None
    sign: str | None = None
    number: float = 0.0


@dataclass(frozen=True)
class Repeat:
    """Ask again until an outcome, while at least ``floor`` remains, ``at_most`` times."""

    until: str
    floor: Cost
    at_most: int


@dataclass(frozen=True)
class Question:
    """One question of a study."""

    name: str
    kind: str
    label: str
    amount: Amount
    delta: Fraction | Rest
    values: Mapping[str, Any]
    only_if: Condition | None = None
    repeat: Repeat | None = None
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The lines of its keys in the file; "" is the question itself."""

    @property
    def line(self) -> int | None:
        """Its line in the file."""
        return self.lines.get("")

    def delta_of(self, remaining: Cost) -> Fraction:
        """Its δ, given what remains."""
        return remaining.exact_delta if self.delta == "rest" else exact(self.delta, "δ")

    def asks(self, limit: Cost, remaining: Cost) -> Cost:
        """What it asks for, given what remains."""
        return Cost.within(self.amount.resolve(limit, remaining).exact_epsilon, self.delta_of(remaining))


@dataclass(frozen=True)
class Data:
    """Where the data is."""

    path: str
    table: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    engine: Literal["duckdb", "spark"] | None = None
    schema: Mapping[str, str] | None = None
    version: str = "1"
    expected: int = 0

    @property
    def reading(self) -> dict[str, Any]:
        """How it is read: all but where it is, which version that is, and how much of it there may be."""
        return {name: value for name, value in vars(self).items() if name not in ("path", "version", "expected")}


@dataclass(frozen=True)
class Privacy:
    """Whose privacy is protected."""

    unit: str
    neighbours: Neighbours
    rows: int | None = None
    groups: int | None = None
    size: int | None = None
    who: str = ""

    @property
    def whose(self) -> str:
        """Who one unit is, in a word."""
        return self.who or self.unit

    @property
    def ledger_unit(self) -> str:
        """What the ledger calls the unit: a row is not the person it is about, whatever both are called."""
        return self.unit_of_tables.title

    @property
    def unit_of_tables(self) -> Unit:
        """The unit of the study's table."""
        return stated_unit(self.unit, self.rows, self.groups, self.who)


@dataclass(frozen=True)
class LedgerSection:
    """Where the ledger is."""

    url: str
    name: str
    account: str | None = None
    accounting: Literal["basic", "renyi"] | None = None
    """How its charges add up; None for whatever an existing ledger does, and for a new one the basic sum."""


@dataclass(frozen=True)
class Study:
    """A declarative analysis, as parsed from its file.

    Attributes
    ----------
    file
        Its file.
    title
        What it is called.
    data
        The section ``[data]``: where the rows are.
    privacy
        The section ``[privacy]``: whose privacy is protected.
    limit
        The most that the ledger may spend.
    ledger
        The section ``[ledger]``: which ledger or account pays.
    derive
        The expressions of derived columns, by name.
    questions
        The questions, in order.
    lines
        The lines of the keys of sections, such as "data.path".
    text
        The file's text.
    job
        Who asks, if answers are not to be shared with others that ask the same: a part of keys in the ledger.
    """

    file: Path
    title: str
    data: Data
    privacy: Privacy
    limit: Cost
    ledger: LedgerSection
    derive: Mapping[str, str]
    questions: tuple[Question, ...]
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    text: str = field(default="", compare=False, repr=False)
    job: str = ""

    def wrong(self, key: str, what: str) -> InvalidStudy:
        """Something is wrong with a section's key."""
        section = key.partition(".")[0]
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return InvalidStudy(str(self.file), ((self.lines.get(key), f"[{section}] {what}"),))

    @property
    def folder(self) -> Path:
        """What paths in the study are relative to."""
        return self.file.parent

    @property
    def source(self) -> str:
        """Where the data is, from anywhere."""
        return self.data.path if "://" in self.data.path else str((self.folder / self.data.path).resolve())

    @property
    def ledger_url(self) -> str:
        """Where the ledger is, from anywhere."""
        url = self.ledger.url
        if not url.startswith(SQLITE):
            return url
        return SQLITE + str((self.folder / url.removeprefix(SQLITE)).resolve())

    @property
    def spends_from(self) -> str:
        """The ledger or account that is charged, by its path."""
        return f"{self.ledger.name}/{self.ledger.account}" if self.ledger.account else self.ledger.name

    @property
    def place(self) -> str:
        """Where the data is, relative to the ledger if that is a file: both may move together."""
        if "://" in self.data.path or not self.ledger.url.startswith(SQLITE):
            return self.source
        return Path(os.path.relpath(self.source, Path(self.ledger_url.removeprefix(SQLITE)).parent)).as_posix()
