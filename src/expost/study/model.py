"""A study: what somebody wants to know, and what it may cost. Plain records, without data."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from expost.cost import Cost, exact
from expost.errors import InvalidStudy
from expost.guarantee import Neighbours

Rest = Literal["rest"]
SQLITE = "sqlite:///"
REFERENCES = {"scale": "interquartile_range", "counted_by": "count"}
"""Keys that may name an earlier question, and its kind."""


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
    """Ask again until an outcome, while at least ``floor`` remains, at most so often."""

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
    """Where its keys stand in the file; "" is the question itself."""

    @property
    def line(self) -> int | None:
        """Where it stands in the file."""
        return self.lines.get("")

    @property
    def conditional(self) -> bool:
        """Whether it may be passed over: for its condition, or for a scale that was not released."""
        return self.only_if is not None or (isinstance(self.values.get("scale"), str) and "fallback" not in self.values)

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
    schema: Mapping[str, str] | None = None
    version: str = "1"


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
        """What the ledger says: a row is not the one it is about, whatever both are called."""
        if self.unit == "row":
            return f"{self.who} (one row each)" if self.who else "row"
        return f"{self.whose} (column {self.unit})"


@dataclass(frozen=True)
class Books:
    """Where the ledger is."""

    url: str
    name: str
    account: str | None = None


@dataclass(frozen=True)
class Study:
    """A declarative analysis."""

    file: Path
    title: str
    data: Data
    privacy: Privacy
    limit: Cost
    books: Books
    derive: Mapping[str, str]
    questions: tuple[Question, ...]
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Where the keys of sections stand in the file, such as "data.path"."""

    def wrong(self, key: str, what: str) -> InvalidStudy:
        """Something is wrong with a section's key."""
        section = key.partition(".")[0]
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return InvalidStudy(str(self.file), ((self.lines.get(key), f"[{section}] {what}"),))

    @property
    def folder(self) -> Path:
        """What paths in the study are seen from."""
        return self.file.parent

    @property
    def source(self) -> str:
        """Where the data is, from anywhere."""
        return self.data.path if "://" in self.data.path else str((self.folder / self.data.path).resolve())

    @property
    def ledger_url(self) -> str:
        """Where the ledger is, from anywhere."""
        url = self.books.url
        if not url.startswith(SQLITE):
            return url
        return SQLITE + str((self.folder / url.removeprefix(SQLITE)).resolve())

    @property
    def place(self) -> str:
        """Where the data is, seen from the ledger if that is a file: both may move together."""
        if "://" in self.data.path or not self.books.url.startswith(SQLITE):
            return self.source
        return Path(os.path.relpath(self.source, Path(self.ledger_url.removeprefix(SQLITE)).parent)).as_posix()

    def key(self, question: Question, attempt: int = 1, step: str = "") -> str:
        """The ledger's key of one attempt: the same question about the same data is never sampled twice.

        A run adds what is known only then, behind a space: the public number of units, and a scale that was released.
        """
        derived, types = self._used(question)
        about = [self.place, self.data.table, self.data.version, self.data.delimiter, types, *self._quoting]
        whose = [self.privacy.unit, self.privacy.rows, self.privacy.groups, self.privacy.neighbours]
        asked = [question.kind, str(question.amount), str(question.delta), dict(question.values), derived]
        named = [question.values.get(name) for name in REFERENCES]
        leans_on = [self.key(earlier) for earlier in self.questions if earlier.name in named]
        text = json.dumps([about, whose, asked, leans_on, self.books.account], sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{question.name}{step} #{attempt} {digest}"

    @property
    def _quoting(self) -> list[str]:
        """What was said of quotation marks, if anything."""
        return [] if self.data.quote is None else [self.data.quote]

    def _used(self, question: Question) -> tuple[dict[str, str], dict[str, str]]:
        """The derived columns and the types that a question may use: those whose names stand anywhere in it."""
        text = f"{self.privacy.unit} {_words(list(question.values.values()))}".casefold()
        derived = {}
        for name, expression in reversed(list(self.derive.items())):  # those below are made from those above
            if _named(name, text):
                derived[name] = expression
                text += f" {expression}".casefold()
        return derived, {name: kind for name, kind in (self.data.schema or {}).items() if _named(name, text)}


def _words(value: Any) -> str:
    """All texts in a value."""
    return " ".join(map(_words, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _named(name: str, text: str) -> bool:
    """Whether a column's name stands in a text, as it is or as SQL quotes it."""
    return name.casefold() in text or name.casefold().replace('"', '""') in text
