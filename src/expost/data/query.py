"""Queries: a table's rows, cut down to what each unit may contribute, as SQLGlot expressions.

The rows of a query have a cell each: the cell of a histogram, or a value in steps. Rows of one unit in one cell are
interchangeable, so *which* of them are kept need not be said, only how many: rows in the same cell are numbered, and
a unit's rows are ordered by a keyed hash of cell and number, with cell and number to break ties.

Proof: lem-unit-truncation
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, inf, nextafter
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from expost.data.engine import Engine, Kind
from expost.data.expression import column, is_total, parse

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

UNIT, CELL = exp.column("u"), exp.column("c")
_NUMBER, _GROUP, _PLACE = exp.column("j"), exp.column("g"), exp.column("p")


def relation(table: PrivateTable, *, blank: bool = False) -> exp.Select | exp.Table:
    """The table's rows, filtered and with its derived columns; or, for planning, none of them."""
    rows: exp.Select | exp.Table = table.engine.blank() if blank else table.engine.source()
    schema = dict(table.engine.schema)
    for step in table.steps:
        value = guarded(table.engine, parse(step.expression, schema), schema)
        if step.column is None:
            rows = select(rows, [exp.Star()]).where(value, copy=False)
        else:
            rows = select(rows, [exp.Star(), exp.alias_(value, step.column, quoted=True, copy=False)])
            schema[step.column] = dict(table.columns)[step.column]
    return rows


def guarded(engine: Engine, expression: exp.Expression, schema: Mapping[str, Kind]) -> exp.Expression:
    """The expression, which is NULL where it cannot be computed; comparisons that always can be are left alone."""
    return expression if is_total(expression, schema) else engine.attempt(expression)


def select(rows: exp.Select | exp.Table, columns: Sequence[exp.Expr]) -> exp.Select:
    """Columns of some rows."""
    source = rows if isinstance(rows, exp.Table) else rows.subquery("r", copy=False)
    return exp.select(*(each.copy() for each in columns)).from_(source, copy=False)


def on_nothing(table: PrivateTable, parts: Sequence[exp.Expression]) -> exp.Select:
    """Parts of expressions, for one row in which every column is NULL: they fail if what is stated in them does."""
    tried: list[exp.Expr] = []
    for part in (each.copy() for each in parts):
        for inner in list(part.iter_expressions()):
            if inner.find(exp.Column) and not isinstance(inner, exp.Column | exp.If):
                inner.replace(table.engine.attempt(inner.copy()))
        for each in part.find_all(exp.Column):
            each.set("table", exp.to_identifier("r"))
        tried.append(exp.alias_(exp.paren(part).is_(exp.null()), f"v{len(tried)}"))
    rows = select(relation(table, blank=True), [exp.Star()]).limit(0)
    one = exp.select(exp.Literal.number(1)).subquery("o")
    return exp.select(*tried).from_(one).join(rows.subquery("r"), on=exp.true(), join_type="left")


def base(table: PrivateTable, cell: exp.Expression | None, *, drop: bool = False) -> exp.Select:
    """One row for each row that belongs to somebody: its unit ``u`` and its cell ``c``; ``drop`` those without cell."""
    named: list[exp.Expr] = [] if cell is None else [exp.alias_(cell, "c")]
    owner = table.unit.column
    if owner is None:
        picked = select(relation(table), named)
    else:
        known: exp.Expression = column(owner)
        who = text_of(known) if table.schema[owner] == "text" else known
        picked = select(relation(table), [exp.alias_(who, "u"), *named])
        picked.where(column(owner).is_(exp.null()).not_(), copy=False)
    if drop and cell is not None:
        picked = select(picked, [exp.Star()]).where(CELL.is_(exp.null()).not_(), copy=False)
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
    inner = select(rows, numbered)
    order = [table.engine.scramble(table.key, [UNIT, CELL, _NUMBER]), CELL, _NUMBER]
    placed = select(inner, [CELL, exp.alias_(_over(exp.RowNumber(), [UNIT], order), "p")])
    if cut:
        placed.where(_within(_GROUP, unit.groups), copy=False)
    return select(placed, [CELL]).where(_within(_PLACE, unit.rows), copy=False)


def kept_pairs(table: PrivateTable, cell: exp.Expression, *, drop: bool, cells: int | None) -> exp.Select:
    """The cells that units count in, once each: at most ``unit.groups`` of each unit."""
    rows, unit = base(table, cell, drop=drop), table.unit
    if unit.column is None:
        return rows
    pairs = select(rows, [UNIT, CELL]).distinct(copy=False)
    if cells is not None and unit.groups >= cells:
        return select(pairs, [CELL])
    order = [table.engine.scramble(table.key, [UNIT, CELL]), CELL]
    placed = select(pairs, [CELL, exp.alias_(_over(exp.RowNumber(), [UNIT], order), "p")])
    return select(placed, [CELL]).where(_within(_PLACE, unit.groups), copy=False)


def count_rows(table: PrivateTable) -> exp.Select:
    """How many rows count. Which of a unit's rows they are makes no difference."""
    unit = table.unit
    if unit.column is None:
        return select(relation(table), [_count()])
    sizes = select(base(table, None), [exp.alias_(_count(), "n")]).group_by(UNIT, copy=False)
    counted = _least(exp.column("n"), exp.Literal.number(unit.rows))
    return select(sizes, [table.engine.total(exp.cast(counted, "BIGINT"))])


def count_units(table: PrivateTable) -> exp.Select:
    """How many units have a row."""
    if table.unit.column is None:
        return count_rows(table)
    return select(select(base(table, None), [UNIT]).distinct(copy=False), [_count()])


def tally(kept: exp.Select) -> exp.Select:
    """How many rows each cell has."""
    return select(kept, [CELL, _count()]).group_by(CELL, copy=False)


def total(table: PrivateTable, kept: exp.Select) -> exp.Select:
    """The exact sum of the cells, and how many there are."""
    return select(kept, [table.engine.total(CELL.copy()), _count()])


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
    """The number of the bin of equal width that a value lies in, by arithmetic: as :func:`bin_of`, but faster.

    A value within rounding of an edge may go to either side of it, always the same one. The arithmetic never gives less
    for more, so if the largest value below ``high`` is in the last bin, all are.
    """
    width, last = (high - low) / bins, nextafter(high, -inf)
    number = exp.cast(value, "DOUBLE")
    above = exp.paren(number - _double(low)) if low else number
    place: exp.Expression = exp.cast(exp.Floor(this=exp.Div(this=above, expression=_double(width))), "INTEGER")
    if floor((last - low) / width) >= bins:
        place = _least(place, exp.Literal.number(bins - 1))
    return exp.case().when(exp.and_(number >= _double(low), number < _double(high)), place)


def key_of(value: exp.Expression, keys: Sequence[object]) -> exp.Expression:
    """The place of the value among the keys, which ascend as the engine orders them; NULL if it is none of them."""
    literals = [literal(key) for key in keys]

    def search(first: int, last: int) -> exp.Expression:
        if last - first == 1:
            return exp.case().when(exp.EQ(this=value, expression=literals[first]), exp.Literal.number(first))
        middle = (first + last) // 2
        below = exp.LT(this=value, expression=literals[middle])
        return exp.case().when(below, search(first, middle)).else_(search(middle, last))

    return search(0, len(keys))


def literal(key: object) -> exp.Expression:
    """A key as the engine has it: text by its bytes."""
    return text_of(exp.Literal.string(key)) if isinstance(key, str) else cast(exp.Expression, exp.convert(key))


def text_of(value: exp.Expression) -> exp.Expression:
    """Text as bytes, which are equal if and only if the texts are the same, whatever the engine's collation."""
    return exp.Encode(this=exp.cast(value, "TEXT"), charset=exp.Literal.string("utf-8"))


def _count() -> exp.Expression:
    return exp.Count(this=exp.Star())


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
