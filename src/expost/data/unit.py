"""`Unit`: whose privacy is protected, and how much each of them may contribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from expost.checks import as_unit_name
from expost.errors import InvalidValue
from expost.mentions import brief
from expost.unit_names import in_full, row_name

Of = Literal["rows", "units"]
"""What is counted."""


@dataclass(frozen=True)
class Unit:
    """The unit of privacy: all rows with one value of a column, such as a person, a household or a device.

    Parameters
    ----------
    column
        The column that names the unit; None if each row is a unit of its own.
    rows
        The most rows of a unit that count in an answer.
    groups
        The most cells of a histogram, or groups, in which a unit counts; by default as many as rows.
    name
        Who one of them is, in a word, where the column does not say it: ``Unit("pid", rows=5, name="patient")`` is the
        unit of a ledger of patients.

    A keyed hash of a unit's own rows decides which of them are kept. Rows in which the column is NULL belong to no
    unit and are never counted.

    >>> Unit("person", rows=10, groups=3)
    Unit('person', rows=10, groups=3)

    Proof: lem-unit-truncation
    """

    column: str | None
    """None if every row is a unit of its own."""
    rows: int
    groups: int
    name: str | None = field(default=None, compare=False)  # what is computed does not depend on it

    def __init__(self, column: str | None, *, rows: int, groups: int | None = None, name: str | None = None) -> None:
        if column is not None and (not isinstance(column, str) or not column):
            raise InvalidValue(f"a unit is identified by the name of a column, got {brief(column)}; or pass unit='row'")
        for cap, bound in (("rows", rows), ("groups", rows if groups is None else groups)):
            if isinstance(bound, bool) or not isinstance(bound, int) or not 1 <= bound <= MOST_ROWS:
                raise InvalidValue(f"{cap} is a whole number from 1 to 2^31, got {brief(bound)}")
        object.__setattr__(self, "column", column)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "groups", min(rows, rows if groups is None else groups))
        object.__setattr__(self, "name", as_unit_name(name))

    @property
    def title(self) -> str:
        """What ledgers call it: the column, ``row``, or in full ``patient (column pid)``, ``visit (one row each)``."""
        return in_full(self.column, self.name)

    def __repr__(self) -> str:
        if self.column is None:
            return repr(self.title)
        named = "" if self.name is None else f", name={self.name!r}"
        return f"Unit({self.column!r}, rows={self.rows}, groups={self.groups}{named})"


@dataclass(frozen=True, repr=False, init=False)
class UnitOfLedger(Unit):
    """Records of which each is one unit of the ledger that is asked, as whoever asks says."""

    @property
    def title(self) -> str:
        """As the ledger calls it."""
        return str(self.name)


MOST_ROWS = 2**31
ROW = Unit(None, rows=1)
"""Every row is a unit of its own."""


def as_unit(unit: Any) -> Unit:
    """The unit of privacy: ``"row"``, ``"visit (one row each)"``, or a :class:`Unit`."""
    if isinstance(unit, Unit):
        return unit
    if isinstance(unit, str) and unit == "row":
        return ROW
    if isinstance(unit, str) and row_name(unit) is not None:
        return Unit(None, rows=1, name=row_name(unit))
    raise InvalidValue(
        "unit is whose privacy is protected: 'row', or Unit('person', rows=10), which names a column and says how many "
        f"rows of each of its values count at most; got {brief(unit)}"
    )


def stated_unit(column: str, rows: int | None, groups: int | None, who: str) -> Unit:
    """The unit that a study states: ``"row"`` or a column, the caps of a column, and who one is, if that is said."""
    name = who if who not in ("", column) else None
    if column == "row":
        return Unit(None, rows=1, name=name)
    return Unit(column, rows=rows or 1, groups=groups, name=name)


def as_of(of: Any) -> None:
    """Raise unless it is ``"rows"`` or ``"units"``."""
    if of not in ("rows", "units"):
        raise InvalidValue(f"of is what is counted, 'rows' or 'units'; got {brief(of)}")
