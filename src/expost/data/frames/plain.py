"""Arrow columns as values that can be copied into an engine: each type in one way, whatever the values.

Times are copied as whole numbers, which the engine converts to times if they lie in the years 1 to 9999. Each byte of a
text that is not UTF-8 is marked, and read as a question mark. Lists, structures and other types are not copied: the
schema lists the column, and questions cannot use it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from expost.data.duckdb.sql import of_decimal
from expost.data.encodings import FIRST_BYTES, as_text
from expost.data.expression import Kind
from expost.data.expression.calendar import FIRST_DAY, FIRST_INSTANT, LAST_DAY, LAST_INSTANT
from expost.data.expression.operators import CASTS
from expost.data.expression.tree import LONGEST_READ
from expost.data.frames.objects import ARROW
from expost.errors import InvalidValue

_types = pa.types
OTHER = "CAST(NULL AS BLOB)"
_MICROSECONDS = {"s": 1_000_000, "ms": 1000, "us": 1}


@dataclass(frozen=True)
class PlainColumn:
    """An Arrow column, and SQL that converts ``$0`` to its kind; its values are None if questions cannot use it."""

    name: str
    values: Any
    kind: Kind
    sql: str = "$0"

    @property
    def may_have_marks(self) -> bool:
        """Whether some texts have marks; also true for a few other rare characters."""
        return self.values is not None and self.kind == "text" and _may_have_marks(self.values)

    def declared(self, kind: Kind) -> PlainColumn:
        """The column as another kind; values that do not fit are NULL."""
        if kind == self.kind:
            return self
        if self.values is not None and pa.types.is_null(self.values.type):
            return PlainColumn(self.name, self.values.cast(ARROW[kind]), kind)
        operator = CASTS.get((self.kind, kind))
        if operator is None:
            raise InvalidValue(
                f"column {self.name!r} holds {self.kind} and cannot be read as {kind}: leave it out of the schema, or "
                "convert it first",
                about=("schema", self.name),
            )
        whole = f"left({self.sql}, {LONGEST_READ})" if self.kind == "text" else self.sql
        return PlainColumn(self.name, self.values, kind, str(operator.duckdb).replace("$0", whole))


def arrow_table(columns: Sequence[PlainColumn]) -> Any:
    """The columns that can be copied, named by their positions: c0, c1, …"""
    held = {f"c{place}": column.values for place, column in enumerate(columns) if column.values is not None}
    return pa.table(held)


def plain_column(name: str, values: Any) -> PlainColumn:
    """An Arrow column, converted by its type."""
    values = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    kind = values.type
    if pa.types.is_dictionary(kind):
        chunks = [chunk.dictionary_decode() for chunk in values.chunks]
        return plain_column(name, pa.chunked_array(chunks, kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        chunks = [pc.run_end_decode(chunk) for chunk in values.chunks]
        return plain_column(name, pa.chunked_array(chunks, kind.value_type))
    made = next((make for test, make in _WAYS if test(kind)), None)
    return PlainColumn(name, None, "other", OTHER) if made is None else made(name, values)


def _as_is(kind: Kind, sql: str = "$0") -> Callable[[str, Any], PlainColumn]:
    return lambda name, values: PlainColumn(name, values, kind, sql)


def _decimal(name: str, values: Any) -> PlainColumn:
    """Decimals as the nearest floats; those of 256 bits are too large for the engine."""
    kind = values.type
    if _types.is_decimal256(kind) or not 0 <= kind.scale <= kind.precision:
        return PlainColumn(name, None, "other", OTHER)
    wide = pa.decimal128(38, kind.scale)
    try:
        held = values.cast(wide)
    except pa.ArrowInvalid:  # a value with more digits than its type: it is read as it is, and becomes NULL
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        held = pa.chunked_array([chunk.view(wide) for chunk in chunks], wide)
    return PlainColumn(name, held, "number", of_decimal("$0", f"DECIMAL(38,{kind.scale})"))


def _text(name: str, values: Any) -> PlainColumn:
    """Text, checked as a whole; if some of it is not UTF-8 or has marks, each value is marked by itself."""
    try:
        values.validate(full=True)
        texts = values.cast(pa.large_string())
        if not _may_have_marks(texts):
            return PlainColumn(name, texts, "text")
    except pa.ArrowInvalid:
        pass
    data = values.cast(pa.large_binary()).to_pylist()
    texts = pa.array([None if each is None else as_text(each) for each in data], ARROW["text"])
    return PlainColumn(name, texts, "text")


def _may_have_marks(texts: Any) -> bool:
    """Whether there are marks, or texts that look so at first sight."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    contents = [chunk.buffers()[2] for chunk in chunks if pa.types.is_large_string(chunk.type)]
    return any(content is not None and re.search(FIRST_BYTES, content) is not None for content in contents)


def _viewed(values: Any, kind: Any) -> Any:
    return pa.chunked_array([chunk.view(kind) for chunk in values.chunks], kind)


def _within(value: str, low: int, high: int, made: str) -> str:
    """SQL that converts a number between two bounds, or gives NULL; clamped as well, so that converting never fails."""
    clamped = f"least(greatest({value}, {low}), {high})"
    return f"CASE WHEN {value} BETWEEN {low} AND {high} THEN {made.format(clamped)} END"


def _days(name: str, values: Any) -> PlainColumn:
    sql = _within("$0", FIRST_DAY, LAST_DAY, "DATE '1970-01-01' + {0}")
    return PlainColumn(name, _viewed(values, pa.int32()), "date", f"CAST({sql} AS DATE)")


def _milliseconds(name: str, values: Any) -> PlainColumn:
    day = 86_400_000
    made = "CAST(make_timestamp({0} * 1000) AS DATE)"
    sql = _within("$0", FIRST_DAY * day, (LAST_DAY + 1) * day - 1, made)
    return PlainColumn(name, _viewed(values, pa.int64()), "date", sql)


def _instants(name: str, values: Any) -> PlainColumn:
    """Times, in UTC if they have a time zone."""
    unit, numbers = values.type.unit, _viewed(values, pa.int64())
    if unit == "ns":
        most = 2**63 - 2_000
        return PlainColumn(
            name, numbers, "timestamp", _within("$0", -most, most, "CAST(make_timestamp_ns({0}) AS TIMESTAMP)")
        )
    each = _MICROSECONDS[unit]
    sql = _within("$0", -(-FIRST_INSTANT // each), LAST_INSTANT // each, f"make_timestamp({{0}} * {each})")
    return PlainColumn(name, numbers, "timestamp", sql)


_WAYS: tuple[tuple[Callable[[Any], bool], Callable[[str, Any], PlainColumn]], ...] = (
    (_types.is_uint64, _as_is("integer", "TRY_CAST($0 AS BIGINT)")),
    (_types.is_integer, _as_is("integer", "CAST($0 AS BIGINT)")),
    (_types.is_float16, lambda name, values: PlainColumn(name, values.cast(pa.float64()), "number")),
    (_types.is_float32, _as_is("number", "CAST($0 AS DOUBLE)")),
    (_types.is_float64, _as_is("number")),
    (_types.is_boolean, _as_is("boolean")),
    (lambda kind: _types.is_string(kind) or _types.is_large_string(kind) or _types.is_string_view(kind), _text),
    (_types.is_date32, _days),
    (_types.is_date64, _milliseconds),
    (_types.is_timestamp, _instants),
    (_types.is_decimal, _decimal),
    (_types.is_null, _as_is("other", OTHER)),
)  # fmt: skip
