"""What a report says, whoever asked: a study, or somebody in Python. Public settings and published values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Literal

from expost.cost import Cost
from expost.errors import InvalidValue
from expost.frame import Frame
from expost.guarantee import Neighbours

Lasting = Literal["always", "process", "rehearsal"]
"""How long a ledger adds up: for ever, until the process ends, or for one rehearsal."""
ANSWERED, NO_NUMBER, NOT_KEPT = "answered", "withheld", "not kept"
"""What became of a question; any other word says it itself."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a ledger guarantees.

    Parameters
    ----------
    ledger
        The whole ledger's name: a promise to people is never that of an account alone.
    limit
        Its limit.
    who
        Who one unit is, in a word; None if the ledger does not know yet.
    by_row
        Whether a unit is one row.
    neighbours
        What is compared; None if the ledger does not know yet.
    rows
        How many rows of a unit count, if the report knows.
    lasting
        How long the ledger adds up.
    """

    ledger: str
    limit: Cost
    who: str | None
    by_row: bool
    neighbours: Neighbours | None
    rows: int | None = None
    lasting: Lasting = "always"


@dataclass(frozen=True, kw_only=True)
class EntryCost:
    """What one entry of a ledger took.

    Parameters
    ----------
    entry
        Its number.
    reserved, charged
        Its worst case, and what its output cost; nothing is charged yet while it is open.
    used
        What noise that has no ε used, in words.
    price
        Its Rényi price, if the ledger counts these.
    """

    entry: int
    reserved: Cost
    charged: Cost | None
    used: str = ""
    price: str = ""

    @property
    def refunded(self) -> Cost:
        """What came back."""
        return Cost(0) if self.charged is None else self.reserved - self.charged


@dataclass(frozen=True, kw_only=True)
class Item:
    """A question and what became of it.

    Parameters
    ----------
    anchor
        What a link on the page calls it.
    title
        The question in words.
    about
        Its name and kind, or what asked it.
    state
        ``"answered"``, ``"withheld"``, ``"not kept"``, or any other word for why there is no answer.
    why
        Why not, if there is none.
    words
        The answer in words, where that says more than its rows.
    frame
        Its rows.
    labels
        What its rows are called, if not by their keys.
    from_zero
        Whether its numbers are counts or sums; None if that is told by the numbers.
    beside
        What is said beside its numbers.
    notices
        What to beware of.
    how
        How it was made, by subject.
    charges
        What its entries took.
    """

    anchor: str
    title: str
    about: str = ""
    state: str = ANSWERED
    why: str = ""
    words: str = ""
    frame: Frame | None = None
    labels: tuple[str, ...] = ()
    from_zero: bool | None = None
    beside: str = ""
    notices: tuple[str, ...] = ()
    how: Mapping[str, str] = field(default_factory=dict)
    charges: tuple[EntryCost, ...] = ()

    @property
    def reserved(self) -> Decimal:
        """The ε of its worst cases."""
        return Decimal(sum(charge.reserved.epsilon_units for charge in self.charges)).scaleb(-12)

    @property
    def charged(self) -> Decimal:
        """The ε that it was charged; what is open counts in full."""
        each = (charge.reserved if charge.charged is None else charge.charged for charge in self.charges)
        return Decimal(sum(cost.epsilon_units for cost in each)).scaleb(-12)

    @property
    def refunded(self) -> Decimal:
        """The ε that came back."""
        return self.reserved - self.charged

    @property
    def used(self) -> str:
        """What its noise without an ε used."""
        return ", ".join(charge.used for charge in self.charges if charge.used)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Four numbers, and what they are of.

    Parameters
    ----------
    name
        The ledger or account.
    limit, spent, remaining
        Its limit; what was charged and reserved, also by others; and what remains.
    meters
        What each of several meters shows, by name; none if the basic sum is the only one.
    fits
        How many of the questions would have fitted, had each been charged its worst case; None if that is not known.
    """

    name: str
    limit: Cost
    spent: Cost
    remaining: Cost
    meters: Mapping[str, str] = field(default_factory=dict)
    fits: int | None = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """A report: the promise, the bill, the answers, and what holds for all of them. One page that needs nothing else.

    Notebooks show it. :meth:`save` writes it, and ``html`` is its text.

    Parameters
    ----------
    title
        What it is about.
    about
        Where it is from, and when.
    promise
        What is guaranteed.
    budget
        What remains.
    items
        What was asked, in order.
    remarks
        What else to know of the bill, in sentences.
    check
        How to check it, in words.
    facts
        What that needs, by name.
    source
        The text of the study; empty if there is none.
    notice, stamp
        What frames the whole page, if it is no real one; and a word for it on every printed page.
    stopped
        Why the run ended before its last question.
    """

    title: str
    about: tuple[str, ...]
    promise: Promise
    budget: Budget
    items: tuple[Item, ...]
    remarks: tuple[str, ...] = ()
    check: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    notice: str = ""
    stamp: str = ""
    stopped: str = ""

    @property
    def html(self) -> str:
        """The page."""
        from expost.reporting.page import page_html

        return page_html(self)

    def save(self, path: str | Path) -> Path:
        """Write the page, and say where it is."""
        target = Path(path)
        try:
            target.write_text(self.html, encoding="utf-8")
        except OSError as error:
            raise InvalidValue(f"{target} cannot be written: {error.strerror}") from None
        return target

    def _repr_html_(self) -> str:
        from expost.reporting.page import part_html

        return part_html(self)

    def __repr__(self) -> str:
        return f"<report of {self.title!r}: {len(self.items)} questions; .save('report.html') writes it>"
