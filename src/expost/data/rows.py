"""The rows that count: of each unit a bounded number of rows, in a bounded number of groups.

What one unit can change rests on this text, so it is written once, for all questions and engines. Each question says
what it makes of a row: the *groups* that it is in, and *cells*, which are numbers to add up. Rows of a unit that are
alike in both are interchangeable: only their number matters, not which of them are kept. They are numbered, and a
unit's rows are ordered by a keyed hash of content and number, with content and number to break ties, so that which rows
count depends on nothing but the unit's own rows.

All SQL here means the same in every engine; engines render what differs.

Proof: lem-unit-truncation
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from expost.data import query
from expost.data.expression import Expression

if TYPE_CHECKING:
    from expost.data.table import PrivateTable
    from expost.data.unit import Of

UNIT = "u"
Named = Mapping[str, str]
"""SQL by the name of the column that it makes."""
_NONE: Named = {}


def owned_rows(
    table: PrivateTable,
    values: Mapping[str, Expression],
    made: Named,
    *,
    needed: Iterable[str] = (),
    between: Named = _NONE,
) -> str:
    """All rows that belong to a unit: the unit ``u``, and what is made of the values of a row.

    Parameters
    ----------
    table
        Whose rows.
    values
        Columns and expressions, by the names that ``made`` reads. A text is its bytes, so that only equal ones are.
    made
        What the columns are called, and their SQL.
    needed
        Those of them that may not be NULL: other rows are left out.
    between
        What is made of values before, so that ``made`` can name it more than once; values it does not read are kept.
    """
    owner = table.unit.column
    whose = [] if owner is None else [UNIT]
    named = [] if owner is None else [f"{table.engine.owner(owner)} AS {UNIT}"]
    named += [f"{query.valued(table, value)} AS {name}" for name, value in values.items()]
    rows = f"SELECT {', '.join(named) or '*'} FROM {query.relation(table)}"
    if owner is not None:
        rows += f" WHERE {table.engine.owner(owner)} IS NOT NULL"
    if between:
        rows = f"SELECT {', '.join(['*', *_as(between)])} FROM {query.nested(rows)}"
    if not made:
        return rows
    rows = f"SELECT {', '.join([*whose, *_as(made)])} FROM {query.nested(rows)}"
    there = " AND ".join(f"{name} IS NOT NULL" for name in needed)
    return f"SELECT * FROM {query.nested(rows)} WHERE {there}" if there else rows


def rows_that_count(
    table: PrivateTable,
    values: Mapping[str, Expression],
    *,
    groups: Named = _NONE,
    cells: Named = _NONE,
    needed: Iterable[str] = (),
    between: Named = _NONE,
    known: int | None = None,
    once: bool = False,
) -> str:
    """The rows that count: of each unit at most ``unit.rows`` rows, in at most ``unit.groups`` groups.

    Parameters
    ----------
    table, values, needed, between
        As of :func:`owned_rows`.
    groups, cells
        What is made of a row. Without groups, or where a unit may be in all of them, groups are not bounded.
    known
        How many groups there are, if that is known.
    once
        Whether a unit counts once in each of its groups, however many rows it has there; it then has no cells.
    """
    rows = owned_rows(table, values, {**groups, **cells}, needed=needed, between=between)
    unit = table.unit
    if unit.column is None:
        return rows
    grouped, content = ", ".join(groups), ", ".join([*groups, *cells])
    bounded = bool(groups) and (known is None or unit.groups < known)
    place = f"dense_rank() OVER (PARTITION BY u ORDER BY {_scrambled(table, groups)}, {grouped}) AS q"
    if once:
        rows = f"SELECT DISTINCT u, {grouped} FROM {query.nested(rows)}"
        return _within(rows, place, f"u, {grouped}", f"q <= {unit.groups}") if bounded else rows
    alike = f"row_number() OVER (PARTITION BY u, {content}{query.any_order(table)}) AS j"
    if bounded and unit.groups < unit.rows:
        rows = _within(rows, f"{alike}, {place}", f"u, {content}, j", f"q <= {unit.groups}")
    else:
        rows = f"SELECT *, {alike} FROM {query.nested(rows)}"
    order = _scrambled(table, [*groups, *cells, "j"])
    placed = f"row_number() OVER (PARTITION BY u ORDER BY {order}, {content}, j) AS p"
    return _within(rows, placed, f"u, {content}", f"p <= {unit.rows}")


def _as(made: Named) -> list[str]:
    return [f"{sql} AS {name}" for name, sql in made.items()]


def _scrambled(table: PrivateTable, content: Iterable[str]) -> str:
    """A keyed hash of a unit and its content."""
    return table.engine.scramble(table.key, [UNIT, *content])


def _within(rows: str, places: str, kept: str, condition: str) -> str:
    """The rows whose places meet a condition."""
    return f"SELECT {kept} FROM {query.nested(f'SELECT *, {places} FROM {query.nested(rows)}')} WHERE {condition}"


# ---- what is asked of them


def count_rows(table: PrivateTable) -> str:
    """The number of rows that count. Which of a unit's rows are kept makes no difference."""
    if table.unit.column is None:
        return f"SELECT count(*) FROM {query.relation(table)}"
    sizes = (
        f"SELECT least(count(*), {table.unit.rows}) AS n FROM {query.nested(owned_rows(table, {}, _NONE))} GROUP BY u"
    )
    return f"SELECT {table.engine.total('n')} FROM {query.nested(sizes)}"


def count_units(table: PrivateTable) -> str:
    """The number of units that have a row."""
    if table.unit.column is None:
        return count_rows(table)
    units = f"SELECT DISTINCT u FROM {query.nested(owned_rows(table, {}, _NONE))}"
    return f"SELECT count(*) FROM {query.nested(units)}"


def tally(table: PrivateTable, of: Of, value: Expression, cell: str, *, drop: bool, known: int | None) -> str:
    """The number of rows, or units, in each cell ``c`` of a value ``v``; NULL is one of them unless it is dropped."""
    needed = ["c"] if drop else []
    kept = rows_that_count(table, {"v": value}, groups={"c": cell}, needed=needed, known=known, once=of == "units")
    return f"SELECT c, count(*) FROM {query.nested(kept)} GROUP BY c"


def one_cell(table: PrivateTable, value: Expression, cell: str, *, drop: bool) -> str:
    """The rows that count with one cell ``c``, made of a value ``v``; rows without one are dropped if so asked."""
    return rows_that_count(table, {"v": value}, cells={"c": cell}, needed=["c"] if drop else [])


def total(table: PrivateTable, kept: str) -> str:
    """The exact sum of the cells ``c``, and their number."""
    return f"SELECT {table.engine.total('c')}, count(*) FROM {query.nested(kept)}"
