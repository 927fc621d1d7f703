"""Queries: a table's rows, cut down to what each unit may contribute, as SQLGlot expressions.

The rows of a query have a cell each: the cell of a histogram, or a value in steps. Rows of one unit in one cell are
interchangeable, so *which* of them are kept need not be said, only how many: rows in the same cell are numbered, and
a unit's rows are ordered by a keyed hash of cell and number, with cell and number to break ties.

Proof: lem-truncation
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from expost.data.expression import column, parse

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

UNIT, CELL = exp.column("u"), exp.column("c")
_NUMBER, _GROUP, _PLACE = exp.column("j"), exp.column("g"), exp.column("p")


def relation(table: PrivateTable) -> exp.Select:
    """The table's rows, filtered and with its derived columns."""
    rows = exp.select("*").from_(table.engine.source())
    schema = dict(table.engine.schema)
    for step in table.steps:
        value = table.engine.attempt(parse(step.expression, schema))
        if step.column is None:
            rows = exp.select("*").from_(rows.subquery("r")).where(value)
        else:
            rows = exp.select("*", exp.alias_(value, step.column, quoted=True)).from_(rows.subquery("r"))
            schema[step.column] = dict(table.columns)[step.column]
    return rows


def base(table: PrivateTable, cell: exp.Expression | None, *, drop: bool = False) -> exp.Select:
    """One row for each row that belongs to somebody: its unit ``u`` and its cell ``c``; ``drop`` those without cell."""
    named = [] if cell is None else [exp.alias_(cell.copy(), "c")]
    owner = table.unit.column
    rows = relation(table).subquery("r")
    if owner is None:
        picked = exp.select(*named or [exp.Literal.number(1)]).from_(rows)
    else:
        kept = column(owner).is_(exp.null()).not_()
        picked = exp.select(exp.alias_(column(owner), "u"), *named).from_(rows).where(kept)
    if drop and cell is not None:
        picked = exp.select("*").from_(picked.subquery("b")).where(CELL.is_(exp.null()).not_())
    return picked


def kept_rows(table: PrivateTable, cell: exp.Expression, *, drop: bool, cells: int | None) -> exp.Select:
    """The cells of the rows that count: at most ``unit.rows`` rows and ``unit.groups`` cells of each unit."""
    rows, unit = base(table, cell, drop=drop), table.unit
    if unit.column is None:
        return rows
    numbered = [UNIT, CELL, exp.alias_(_over(exp.RowNumber(), [UNIT, CELL], []), "j")]
    cut = unit.groups < unit.rows and (cells is None or unit.groups < cells)
    if cut:
        order = [table.engine.scramble(table.key, [UNIT, CELL]), CELL]
        numbered.append(exp.alias_(_over(exp.Anonymous(this="dense_rank"), [UNIT], order), "g"))
    inner = exp.select(*numbered).from_(rows.subquery("b"))
    order = [table.engine.scramble(table.key, [UNIT, CELL, _NUMBER]), CELL, _NUMBER]
    placed = exp.select(CELL, exp.alias_(_over(exp.RowNumber(), [UNIT], order), "p")).from_(inner.subquery("n"))
    if cut:
        placed = placed.where(_within(_GROUP, unit.groups))
    return exp.select(CELL).from_(placed.subquery("k")).where(_within(_PLACE, unit.rows))


def kept_pairs(table: PrivateTable, cell: exp.Expression, *, drop: bool, cells: int | None) -> exp.Select:
    """The cells that units count in, once each: at most ``unit.groups`` of each unit."""
    rows, unit = base(table, cell, drop=drop), table.unit
    if unit.column is None:
        return rows
    pairs = exp.select(UNIT, CELL).distinct().from_(rows.subquery("b"))
    if cells is not None and unit.groups >= cells:
        return exp.select(CELL).from_(pairs.subquery("k"))
    order = [table.engine.scramble(table.key, [UNIT, CELL]), CELL]
    placed = exp.select(CELL, exp.alias_(_over(exp.RowNumber(), [UNIT], order), "p")).from_(pairs.subquery("n"))
    return exp.select(CELL).from_(placed.subquery("k")).where(_within(_PLACE, unit.groups))


def count_rows(table: PrivateTable) -> exp.Select:
    """How many rows count. Which of a unit's rows they are makes no difference."""
    rows, unit = base(table, None), table.unit
    if unit.column is None:
        return exp.select(exp.Count(this=exp.Star())).from_(rows.subquery("b"))
    sizes = exp.select(exp.alias_(exp.Count(this=exp.Star()), "n")).from_(rows.subquery("b")).group_by(UNIT)
    counted = _least(exp.column("n"), exp.Literal.number(unit.rows))
    return exp.select(table.engine.total(exp.cast(counted, "BIGINT"))).from_(sizes.subquery("k"))


def count_units(table: PrivateTable) -> exp.Select:
    """How many units have a row."""
    if table.unit.column is None:
        return count_rows(table)
    units = exp.select(UNIT).distinct().from_(base(table, None).subquery("b"))
    return exp.select(exp.Count(this=exp.Star())).from_(units.subquery("k"))


def tally(kept: exp.Select) -> exp.Select:
    """How many rows each cell has."""
    return exp.select(CELL, exp.Count(this=exp.Star())).from_(kept.subquery("t")).group_by(CELL)


def total(table: PrivateTable, kept: exp.Select) -> exp.Select:
    """The exact sum of the cells, and how many there are."""
    return exp.select(table.engine.total(CELL), exp.Count(this=exp.Star())).from_(kept.subquery("t"))


def steps_of(value: exp.Expression, exponent: int, low: int, high: int, missing: int | None) -> exp.Expression:
    """A number in steps of 2^exponent, clamped to low … high; NULL and NaN are ``missing``, which may be NULL.

    The value is clamped before it is scaled, so that nothing overflows, and again as a whole number, so that nothing
    that rounding does can matter.
    """
    number = exp.cast(value.copy(), "DOUBLE")
    low_value, high_value = (_double(end * 2.0**exponent) for end in (low, high))
    inside = _between(number, low_value, high_value)
    scaled = exp.Mul(this=inside, expression=_double(2.0**-exponent))
    points = exp.cast(exp.Round(this=scaled), "BIGINT")
    clamped = _between(points, exp.Literal.number(low), exp.Literal.number(high))
    lost = exp.or_(number.copy().is_(exp.null()), exp.IsNan(this=number.copy()))
    gone = exp.null() if missing is None else exp.Literal.number(missing)
    return exp.case().when(lost, exp.cast(gone, "BIGINT")).else_(clamped)


def bin_of(value: exp.Expression, edges: Sequence[float]) -> exp.Expression:
    """The number of the bin [edges[i], edges[i+1]) that a value lies in; NULL outside, and for NULL and NaN."""
    number = exp.cast(value, "DOUBLE")

    def search(first: int, last: int) -> exp.Expression:
        if last - first == 1:
            return exp.Literal.number(first)
        middle = (first + last) // 2
        return exp.case().when(number < _double(edges[middle]), search(first, middle)).else_(search(middle, last))

    inside = exp.and_(number >= _double(edges[0]), number < _double(edges[-1]))
    return exp.case().when(inside, search(0, len(edges) - 1))


def even_bin_of(value: exp.Expression, low: float, high: float, bins: int) -> exp.Expression:
    """The number of the bin of equal width that a value lies in, by arithmetic: as :func:`bin_of`, but faster."""
    number = exp.cast(value, "DOUBLE")
    share = exp.Div(this=exp.paren(number - _double(low)), expression=_double((high - low) / bins))
    place = exp.cast(exp.Floor(this=share), "INTEGER")
    inside = exp.and_(number >= _double(low), number < _double(high))
    return exp.case().when(inside, _least(place, exp.Literal.number(bins - 1)))


def one_of(value: exp.Expression, keys: Sequence[object]) -> exp.Expression:
    """The value if it is one of the keys, else NULL."""
    return exp.case().when(value.isin(*keys), value)


def _within(value: exp.Expression, most: int) -> exp.Expression:
    return exp.LTE(this=value.copy(), expression=exp.Literal.number(most))


def _between(value: exp.Expression, low: exp.Expression, high: exp.Expression) -> exp.Expression:
    return _least(exp.Greatest(this=value, expressions=[low], ignore_nulls=True), high)


def _least(value: exp.Expression, most: exp.Expression) -> exp.Expression:
    return exp.Least(this=value, expressions=[most], ignore_nulls=True)  # neither is ever NULL where it matters


def _double(number: float) -> exp.Expression:
    return exp.cast(exp.Literal.string(repr(float(number))), "DOUBLE")


def _over(function: exp.Expression, parts: list[exp.Expression], order: list[exp.Expression]) -> exp.Window:
    ordered = exp.Order(expressions=[exp.Ordered(this=each.copy()) for each in order]) if order else None
    return exp.Window(this=function, partition_by=[part.copy() for part in parts], order=ordered)
