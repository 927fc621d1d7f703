"""What a first study is about: proposed from names and types of columns, or stated, with reasons.

Reads the schema of a file; and the values of a CSV file, which has none, for the types that are then written down.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from expost.cost import Cost, Number
from expost.data import PrivateTable, Unit, files, read
from expost.data.expression import KEY_KINDS, Kind, find_column
from expost.errors import InvalidValue, MissingDependency
from expost.guarantee import Neighbours
from expost.mentions import Argument, brief
from expost.study.people import is_code, is_free_text, names_somebody

KnownBounds = Mapping[str, tuple[float, float]]
_NUMBERS: tuple[Kind, ...] = ("integer", "number")
ROWS = 10
"""The most rows of one unit that count, as proposed."""
EPSILON = "1.0"


@dataclass(frozen=True)
class Looked:
    """What is known of a data file: the names and the types of its columns.

    Parameters
    ----------
    data
        The path.
    reading
        How it is read: the keys of a study's ``[data]`` that are stated.
    types
        The types that were guessed from values; none where the file states them.
    """

    data: str
    reading: Mapping[str, str]
    types: Mapping[str, Kind]

    @classmethod
    def at(cls, data: str, **stated: str | None) -> Looked:
        """Look at a file."""
        is_csv = stated.get("table") is None and files.ending(data) == "csv"
        if is_csv and stated.get("encoding") is None and is_unicode(data):
            stated["encoding"] = "utf-8"
        reading = {name: value for name, value in stated.items() if value is not None}
        found = cls(data, reading, _guessed(data, reading) if is_csv else {})
        if not found.schema:
            raise InvalidValue(f"{data} has no columns: is the path right, and is it a table?")
        return found

    def table(self, unit: Unit | str, neighbours: Neighbours) -> PrivateTable:
        """The table, for this unit."""
        settings: dict[str, Any] = dict(self.reading)
        return read(self.data, unit=unit, neighbours=neighbours, schema=dict(self.types) or None, **settings)

    @cached_property
    def schema(self) -> dict[str, Kind]:
        """The columns and their types."""
        return self.table("row", "substitute").schema

    @property
    def somebody(self) -> str | None:
        """The column that says whom a row is about, by its name."""
        named = (name for name, kind in self.schema.items() if kind in ("integer", "text") and names_somebody(name))
        return next(named, None)

    def numbers(self, unit: str | None) -> list[str]:
        """The columns that a mean can be of; those whose names say that they are no amounts come last."""
        found = [name for name, kind in self.schema.items() if kind in _NUMBERS and name != unit]
        return sorted(found, key=is_code)

    def amounts(self, unit: str | None) -> list[str]:
        """The columns of numbers that are amounts, as far as their names say."""
        return [name for name in self.numbers(unit) if not is_code(name)]

    def words(self, unit: str | None) -> list[str]:
        """The columns of text that may have common values: names of people have none."""
        return [
            name for name, kind in self.schema.items() if kind == "text" and name != unit and not is_free_text(name)
        ]


def is_unicode(data: str) -> bool:
    """Whether the first million bytes of a CSV file are UTF-8. True of anything else."""
    if not data.lower().endswith((".csv", ".tsv", ".txt")) or not Path(data).is_file():
        return True
    with open(data, "rb") as file:
        beginning = file.read(2**20)
    try:
        getincrementaldecoder("utf-8")().decode(beginning)
    except UnicodeDecodeError:
        return False
    return True


def _guessed(data: str, reading: Mapping[str, str]) -> dict[str, Kind]:
    try:
        from expost.data.duckdb import guessed
    except ModuleNotFoundError as error:
        raise MissingDependency("studies", str(error.name), "data") from None
    settings: dict[str, Any] = {name: value for name, value in reading.items() if name != "table"}
    return guessed(data, files.Form(**settings))


@dataclass(frozen=True)
class Choices:
    """What a first study is about. What was not stated is proposed.

    Parameters
    ----------
    looked
        The file.
    unit
        The column that says whose rows they are; None if each row is a unit.
    rows
        The most rows of one unit that count; None if each row is a unit.
    neighbours
        What nobody may notice.
    epsilon
        The limit's ε, as it was stated.
    bounds
        Of columns, as far as they are known.
    stated
        Which of these somebody stated.
    """

    looked: Looked
    unit: str | None
    rows: int | None
    neighbours: Neighbours
    epsilon: str
    bounds: KnownBounds = field(default_factory=dict)
    stated: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        looked: Looked,
        *,
        unit: str | None = None,
        rows: int | None = None,
        neighbours: Neighbours | None = None,
        epsilon: Number | None = None,
        bounds: KnownBounds | None = None,
    ) -> Choices:
        """What is stated, and proposals for the rest. Raises if something does not fit the columns."""
        given = {"unit": unit, "rows": rows, "neighbours": neighbours, "epsilon": epsilon, "bounds": bounds or None}
        column = looked.somebody if unit is None else unit_column(unit, looked)
        check_bounds(bounds or {}, looked, column)
        return cls(
            looked,
            column,
            most_rows_of(rows, column),
            neighbours or proposed_neighbours(column),
            EPSILON if epsilon is None else stated_epsilon(epsilon),
            dict(bounds or {}),
            frozenset(name for name, value in given.items() if value is not None),
        )

    @cached_property
    def table(self) -> PrivateTable:
        """The table of those whom rows are about."""
        unit = "row" if self.unit is None else Unit(self.unit, rows=self.rows or ROWS)
        return self.looked.table(unit, self.neighbours)

    def told(self) -> Iterator[tuple[str, str]]:
        """What was chosen, each with the reason."""
        each = "rows" if self.unit is None else f"different values of {self.unit}"
        yield "unit", self._unit_told()
        if self.rows is not None:
            yield "rows", f"at most {self.rows} of each {self.unit} count{self._how('rows', MORE_NOISE)}"
        private = f"how many {each} there are is private"
        public = f"how many {each} there are is public, and what any of them holds is private"
        said = private if self.neighbours == "add-remove" else public
        yield "neighbours", f"{self.neighbours}: {said}{self._how('neighbours')}"
        yield "epsilon", f"{self.epsilon}, for the whole life of the ledger{self._how('epsilon')}"
        yield "bounds", self._bounds_told()

    def _unit_told(self) -> str:
        if self.unit is None:
            named = "no column is named after people, so that each row is one: check it"
            return f"row: {'as stated' if 'unit' in self.stated else named}{self._how('unit')}"
        why = "as stated" if "unit" in self.stated else "by its name, whom a row is about: check it"
        return f"{self.unit}: {why}{self._how('unit')}"

    def _bounds_told(self) -> str:
        known = [f"{name} from {low:g} to {high:g}" for name, (low, high) in self.bounds.items()]
        unknown = [name for name in self.looked.amounts(self.unit) if name not in self.bounds]
        if not unknown:
            return "; ".join(known) or "no column needs any"
        asked = "none are guessed, and what needs them is not asked" if not known else "not asked about"
        return "; ".join([*known, f"of {', '.join(unknown)} unknown: {asked}{self._how('', option='bounds')}"])

    def _how(self, name: str, why: str = "", *, option: str = "") -> str:
        """How a proposal is changed; nothing of what was stated."""
        if name in self.stated:
            return ""
        return f"; {why} (--{option or name})" if why else f" (--{option or name})"


MORE_NOISE = "noise grows with it: 1 if nobody has more than one row"


def unit_column(unit: str, looked: Looked) -> str | None:
    """The column that a unit names; None if it is ``row``."""
    if unit == "row":
        return None
    column = find_column(unit, looked.schema)
    if looked.schema[column] not in KEY_KINDS:
        keys = ", ".join(repr(name) for name, kind in looked.schema.items() if kind in KEY_KINDS)
        raise InvalidValue(
            f"the unit is a column that tells people apart, of whole numbers or text, and {column!r} holds "
            f"{looked.schema[column]}: there are {keys or 'none'}; or row, if each row is somebody else's"
        )
    return column


def most_rows_of(rows: int | None, unit: str | None) -> int | None:
    """The most rows of one unit, if the unit is a column."""
    if unit is None:
        if rows not in (None, 1):
            raise InvalidValue(
                f"each row is a unit, which has one row, got {rows} rows of one: name the column that says whose they "
                "are, with ",
                Argument("unit"),
            )
        return None
    if rows is not None and not 1 <= rows <= 2**31:
        raise InvalidValue(f"the most rows of one unit are a whole number from 1 on, got {rows}")
    return ROWS if rows is None else rows


def proposed_neighbours(unit: str | None) -> Neighbours:
    """Add-remove where people may come and go: whether somebody is in the data is theirs to keep."""
    return "substitute" if unit is None else "add-remove"


def stated_epsilon(epsilon: Number) -> str:
    """An ε as a study has it."""
    cost = Cost.within(epsilon)
    if not cost:
        raise InvalidValue(f"ε must be above 0, got {brief(epsilon)}: nothing could be asked")
    return cost.epsilon_text


def check_bounds(bounds: KnownBounds, looked: Looked, unit: str | None) -> None:
    """Raise unless bounds are of columns of numbers."""
    numbers = looked.numbers(unit)
    for column in bounds:
        if column not in numbers:
            alike = [name for name in numbers if name.lower() == column.lower()]
            hint = f"did you mean {alike[0]!r}?" if alike else f"there are {', '.join(map(repr, numbers)) or 'none'}"
            guessed = "" if looked.types.get(column) != "text" else (
                f". Some values of {column!r} were read as text. If they are numbers with a decimal comma, pass "
                "--decimal ,; if words such as n/a stand among them, leave its bounds out, and change its type in "
                "[data.schema] to \"number\": then words are empty values"
            )  # fmt: skip
            raise InvalidValue(f"bounds are for columns of numbers, got {column!r}: {hint}{guessed}")
