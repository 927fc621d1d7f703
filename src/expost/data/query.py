"""Parts of queries in SQL: the rows of a table with its filters, and the cells of values. Which rows count: ``rows``.

All SQL in this module means the same in every engine; engines render what differs. In a query a value is called ``v``
(a text is represented by its bytes), and a cell, such as that of a histogram or a value in steps of a grid, ``c``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, inf, nextafter
from typing import TYPE_CHECKING

from expost.data.expression import Expression
from expost.data.lookups import LookupStep

if TYPE_CHECKING:
    from expost.data.table import PrivateTable

VALUE = "v"


def relation(table: PrivateTable) -> str:
    """The table's rows, filtered and with its derived columns, for a FROM clause."""
    rows, derived, unused = table.engine.source, list[str](), _unused(table)
    for place, step in enumerate(table.steps):
        value = table.engine.render(step.expression.tree, derived)
        if isinstance(step, LookupStep):
            name = f"{unused} {place}"
            written = table.engine.bytes_of(value) if step.expression.kind == "text" else value
            rows = nested(f"SELECT *, {written} AS {table.engine.quote(name)} FROM {rows}")
            rows, value = step.looked_up(table.engine, rows, name)
        if step.column is None:
            rows = nested(f"SELECT * FROM {rows} WHERE {value}")
        else:
            rows = nested(f"SELECT *, {value} AS {table.engine.quote(step.column)} FROM {rows}")
            derived.append(step.column)
    return rows


def _unused(table: PrivateTable) -> str:
    """What no column's name begins with."""
    word = "key"
    while any(name.lower().startswith(word) for name in table.schema):
        word = f"_{word}"
    return word


def nested(query: str) -> str:
    """A query as a subquery, for a FROM clause."""
    return f"({query}) AS r"


def rendered(table: PrivateTable, value: Expression) -> str:
    """An expression over the rows of the table."""
    return table.engine.render(value.tree, [step.column for step in table.steps if step.column is not None])


def any_order(table: PrivateTable) -> str:
    """The ORDER BY of a window in which the order does not matter: nothing, unless the engine requires one."""
    return str(getattr(table.engine, "any_order", ""))


def valued(table: PrivateTable, value: Expression) -> str:
    """A value in SQL; a text by its bytes, so that only identical texts are equal."""
    written = rendered(table, value)
    return table.engine.bytes_of(written) if value.kind == "text" else written


# ---- cells


def steps_of(exponent: int, low: int, high: int, missing: int | None, shift: int = 0, value: str = VALUE) -> str:
    """A number in steps of 2^exponent, clamped to low … high, minus a shift; NULL and NaN become ``missing`` or NULL.

    The value is clamped before it is scaled, so that nothing overflows, and again as a whole number, so that rounding
    cannot take it outside.
    """
    low_value, high_value = (double(end * 2.0**exponent) for end in (low, high))
    inside = f"least(greatest({value}, {low_value}), {high_value})"
    points = f"CAST(round({inside} * {double(2.0**-exponent)}) AS BIGINT)"
    clamped = f"least(greatest({points}, {low}), {high}) - ({shift})"
    gone = "NULL" if missing is None else f"{missing - shift}"
    return f"CASE WHEN {value} IS NULL OR isnan({value}) THEN CAST({gone} AS BIGINT) ELSE {clamped} END"


def clamped_number(kind: str, largest: float, missing: float | None, value: str = VALUE) -> str:
    """A number as an SQL type, clamped to ±largest; NULL and NaN become ``missing`` or NULL, and −0.0 becomes 0.0."""
    inside = f"least(greatest({value}, {double(-largest)}), {double(largest)})"
    gone = "NULL" if missing is None else double(missing)
    return f"CAST(CASE WHEN {value} IS NULL OR isnan({value}) THEN {gone} ELSE {inside} + 0.0 END AS {kind})"


def steps_around(value: str, middle: float, half: float, steps: int, missing: int | None) -> str:
    """A number in whole steps from the middle, clamped to ±steps; NULL and NaN become ``missing`` or NULL."""
    low, high = double(middle - half), double(middle + half)
    inside = f"least(greatest({value}, {low}), {high})"
    points = f"CAST(round(({inside} - {double(middle)}) / {double(half)} * {double(steps)}) AS BIGINT)"
    gone = "NULL" if missing is None else f"{missing}"
    clamped = f"least(greatest({points}, {-steps}), {steps})"
    return f"CASE WHEN {value} IS NULL OR isnan({value}) THEN CAST({gone} AS BIGINT) ELSE {clamped} END"


def bin_of(edges: Sequence[float]) -> str:
    """The number of the bin [edges[i], edges[i+1]) that a value lies in; NULL outside, and for NULL and NaN."""
    ends = list(map(double, edges))
    return f"CASE WHEN v >= {ends[0]} AND v < {ends[-1]} THEN {_search(ends, str, 0, len(ends) - 1)} END"


def even_bin_of(low: float, high: float, bins: int) -> str:
    """The number of the bin of equal width that a value lies in, by arithmetic: like :func:`bin_of`, but faster.

    A value within rounding error of an edge may go to either side of it, but always to the same one. The arithmetic is
    monotone: if the largest value below ``high`` is in one of the bins, so are all values below it. The cast does not
    fail for values outside the bins either, for which an engine may evaluate it too.
    """
    width, last = (high - low) / bins, nextafter(high, -inf)
    above = f"(v - {double(low)})" if low else VALUE
    place = f"TRY_CAST(floor({above} / {double(width)}) AS INTEGER)"
    if floor((last - low) / width) >= bins:
        place = f"least({place}, {bins - 1})"
    return f"CASE WHEN v >= {double(low)} AND v < {double(high)} THEN {place} END"


def key_of(keys: Sequence[str], value: str = VALUE) -> str:
    """The index of the value among keys, which are in the engine's ascending order; NULL if it is not among them."""
    return _search(keys, lambda place: f"CASE WHEN {value} = {keys[place]} THEN {place} END", 0, len(keys), value)


def _search(ascending: Sequence[str], leaf: Callable[[int], str], first: int, last: int, value: str = VALUE) -> str:
    """A binary search: the leaf of the largest of these values that is not above the value."""
    if last - first == 1:
        return leaf(first)
    middle = (first + last) // 2
    below, above = (_search(ascending, leaf, *ends, value) for ends in ((first, middle), (middle, last)))
    return f"CASE WHEN {value} < {ascending[middle]} THEN {below} ELSE {above} END"


def double(number: float) -> str:
    """An SQL literal that is exactly this float."""
    return f"CAST('{float(number)!r}' AS DOUBLE)"
