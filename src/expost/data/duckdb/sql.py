"""DuckDB's SQL for literals and names, and for columns as values of their kinds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date

from expost.data.encodings import MARKS
from expost.data.expression import Kind, Tree
from expost.data.expression.operators import CASTS
from expost.data.expression.tree import LONGEST_READ, Call, Stated

WIDER_THAN_64 = ("UBIGINT", "HUGEINT", "UHUGEINT")
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", *WIDER_THAN_64)
TIMES = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(_INTEGERS, "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "number"),
    **dict.fromkeys(("VARCHAR", "UUID", "ENUM"), "text"),
    "BOOLEAN": "boolean",
    "DATE": "date",
    **dict.fromkeys(TIMES, "timestamp"),
}
SQL_TYPES: Mapping[Kind, str] = {
    "integer": "BIGINT", "number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE",
    "timestamp": "TIMESTAMP",
}  # fmt: skip


def string(value: str) -> str:
    """A text, in single quotes."""
    return "'" + value.replace("'", "''") + "'"


def identifier(value: str) -> str:
    """A name, in double quotes."""
    return '"' + value.replace('"', '""') + '"'


def fill(template: str, args: Sequence[str]) -> str:
    """A template from the table of operators, with its arguments filled in."""
    return re.sub(r"\$(\d)", lambda place: args[int(place[1])], template)


def stated(tree: Stated) -> str:
    """A literal, with its type."""
    if tree.value is None:
        return "NULL" if tree.kind is None else f"CAST(NULL AS {SQL_TYPES[tree.kind]})"
    if isinstance(tree.value, bool):
        return "TRUE" if tree.value else "FALSE"
    written = tree.value.isoformat() if isinstance(tree.value, date) else f"{tree.value}"
    return string(written) if tree.kind == "text" else f"CAST({string(written)} AS {SQL_TYPES[tree.kind or 'text']})"


def prefix_decides(call: Call, part: Tree) -> bool:
    """Whether a text is compared with literals only, which are shorter than the part of it that is read."""
    return call.operator.prefix and all(isinstance(other, Stated) for other in call.arguments if other is not part)


def in_range(column: str, kind: str) -> str:
    """A date or timestamp in the years 1 to 9999; NULL outside them.

    The value is clamped as well, so that nothing computed from it fails, even where an engine computes it for a row
    that it then leaves out.
    """
    if kind in ("TIMESTAMP_NS", "TIMESTAMP"):
        column, kind = (f"CAST({column} AS TIMESTAMP)" if kind == "TIMESTAMP_NS" else column), "TIMESTAMP"
    zone = "+00" if kind == "TIMESTAMP WITH TIME ZONE" else ""
    ends = ("0001-01-01", "9999-12-31") if kind == "DATE" else (f"0001-01-01 00:00:00{zone}", f"{_LAST[kind]}{zone}")
    low, high = (f"CAST('{end}' AS {kind})" for end in ends)
    clamped = f"least(greatest({column}, {low}), {high})"
    if zone:
        clamped = f"make_timestamp(epoch_us({clamped}))"
    elif kind not in ("DATE", "TIMESTAMP"):
        clamped = f"CAST({clamped} AS TIMESTAMP)"
    return f"(CASE WHEN {column} BETWEEN {low} AND {high} THEN {clamped} END)"


_LAST = {
    "TIMESTAMP": "9999-12-31 23:59:59.999999",
    "TIMESTAMP WITH TIME ZONE": "9999-12-31 23:59:59.999999",
    "TIMESTAMP_MS": "9999-12-31 23:59:59.999",
    "TIMESTAMP_S": "9999-12-31 23:59:59",
}


def of_decimal(column: str, kind: str) -> str:
    """A decimal as the nearest float; NULL if it has more digits than its type, as in a damaged file.

    From 16 digits on, DuckDB's cast from decimal rounds twice, but its cast from text once.
    """
    width, scale = (int(number) for number in re.findall(r"\d+", kind))
    digits = "9" * width
    most = f"CAST('{digits[: width - scale] or '0'}.{digits[width - scale :] or '0'}' AS {kind})"
    inside = f"least(greatest({column}, -{most}), {most})"
    number = f"CAST({inside} AS DOUBLE)" if width <= 15 else f"CAST(CAST({inside} AS VARCHAR) AS DOUBLE)"
    return f"(CASE WHEN {column} BETWEEN -{most} AND {most} THEN {number} END)"


def whole(column: str, declared: str) -> str:
    """A column of a type as a value of its kind; values outside the kind's range are NULL."""
    base, kind = declared.split("(")[0], kind_of(declared)
    if base in WIDER_THAN_64:
        return f"TRY_CAST({column} AS BIGINT)"
    if base == "DECIMAL":
        return of_decimal(column, declared)
    if kind == "text":
        return f'({column if base == "VARCHAR" else f"CAST({column} AS VARCHAR)"} COLLATE "binary")'
    if base in ("DATE", *TIMES):
        return in_range(column, base)
    return column if base == SQL_TYPES[kind] else f"CAST({column} AS {SQL_TYPES[kind]})"


def of_text(column: str, kind: Kind, decimal: str | None = None) -> str:
    """A text as a value of its kind; NULL if it does not fit. With decimal commas, one with a point does not."""
    template = CASTS["text", kind].duckdb
    if kind == "number" and decimal == ",":
        column = f"replace(CASE WHEN NOT contains({column}, '.') THEN {column} END, ',', '.')"
    return fill(str(template), [column if kind == "text" else f"left({column}, {LONGEST_READ})"])


def unmarked(column: str) -> str:
    """A marked text with question marks. Most texts are ASCII, and need no regular expression."""
    replaced = f"regexp_replace({column}, '[{MARKS[0]}-{MARKS[1]}]', '?', 'g')"
    return f"(CASE WHEN strlen({column}) = length({column}) THEN {column} ELSE {replaced} END)"


def kind_of(declared: str) -> Kind:
    """The kind of a column of a type."""
    return "other" if declared.endswith("]") else _KINDS.get(declared.split("(")[0], "other")
