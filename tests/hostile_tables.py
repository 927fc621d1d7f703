"""Random questions to small hostile tables: what the fuzzer of private tables asks, as plain data.

A case is a few rows, all of whose values are at the ends of what their types hold, and an expression of random
operators from the table, six deep at most, over columns and derived columns whose names may be anything.
:func:`neighbours` asks the question on the table and on each table with one unit less. Nothing here needs more than
``expost.read``, so that it can be pointed at any version of it.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import duckdb
import numpy as np

import expost as xp
from added import added

Value = Any
NAN, INF = float("nan"), float("inf")
LONG = "ab" * 33_000
_MORE_TEXT = [
    "",
    "a",
    "abc",
    " 12 ",
    "-7",
    "1e3",
    "nan",
    "2020-02-29",
    "2020-02-30",
    " 9999-12-31 23:59:59.5",
    "É",
    "true",
]
_MORE_TEXT += ["%_", "ßẞ", "a\nb", "🙂 it's", "1_000", "0x1F", "+5", "99999999999999999999", "1e999", ".5", "2020-1-1"]
COLUMNS: dict[str, tuple[str, str, list[tuple[str, Value]]]] = {
    # name: (kind, DuckDB's type, [(as SQL writes it, as the reference reads it)])
    "i": ("integer", "BIGINT", [(str(n), n) for n in (0, 1, -1, 7, 2**63 - 1, -(2**63), 2**31, 4_000_001)]),
    "k": ("integer", "INTEGER", [(str(n), n) for n in (0, 3, -2, 2**31 - 1, -(2**31))]),
    "h": ("integer", "HUGEINT", [("5", 5), (str(2**100), None), (str(-(2**63)), -(2**63)), (str(2**63), None)]),
    "x": ("number", "DOUBLE", [(f"'{n!r}'", n) for n in
          (NAN, INF, -INF, -0.0, 1.5, -2.5, 0.5, 1e308, 5e-324, 9.3e18, 2.0**53)]),
    "m": ("number", "DECIMAL(18, 3)", [(text, float(text)) for text in ("1.125", "-999999999999999.999", "0.001")]),
    "s": ("text", "VARCHAR", [("'" + t.replace("'", "''") + "'", t) for t in [*_MORE_TEXT, LONG]]),
    "b": ("boolean", "BOOLEAN", [("true", True), ("false", False)]),
    "d": ("date", "DATE", [("'0001-01-01'", date(1, 1, 1)), ("'9999-12-31'", date(9999, 12, 31)),
          ("'2020-02-29'", date(2020, 2, 29)), ("'2024-12-30'", date(2024, 12, 30)), ("'infinity'", None),
          ("'5877642-06-25 (BC)'", None), ("'290000-01-01'", None)]),
    "t": ("timestamp", "TIMESTAMP", [("'0001-01-01'", datetime(1, 1, 1)),
          ("'9999-12-31 23:59:59.999999'", datetime.max),
          ("'2020-01-31 23:59:59.999999'", datetime(2020, 1, 31, 23, 59, 59, 999999)), ("'-infinity'", None),
          ("'1969-12-31 23:59:59.5'", datetime(1969, 12, 31, 23, 59, 59, 500000)), ("'290309-12-22 (BC)'", None),
          ("'294246-01-01'", None)]),
    "e": ("timestamp", "TIMESTAMP_S", [("'2021-06-30 12:00:01'", datetime(2021, 6, 30, 12, 0, 1)), ("'infinity'", None),
          ("'0001-01-01'", datetime(1, 1, 1))]),
    "z": ("timestamp", "TIMESTAMP WITH TIME ZONE", [("'2021-06-30 12:00:01+00'", datetime(2021, 6, 30, 12, 0, 1)),
          ("'-infinity'", None), ("'290000-01-01 00:00:00+00'", None)]),
}  # fmt: skip
KINDS = ("integer", "number", "text", "boolean", "date", "timestamp")

# ---- names

HOSTILE_NAMES = [
    "a) OR (b",
    '"',
    '""',
    "'",
    "i + 0",
    "0 - k",
    "CAST(k AS INTEGER)",
    "TRUE",
    "null",
    "case",
    "interval",
    "my city",
    "k = 3 OR k",
    "k) = 0 OR (k",
    "-- k",
    "/* k",
    "expost key 0",
    "key 0",
    "KEY 1 found",
    *"urvcgpjq",
    "k0",
    "c0",
    "v0",
    "g0",
    "$0",
    "ﬁ",
    "ſ",
    "a\nb",
    "x; DROP TABLE t",
]
"""What a column may be called: expressions, words and signs of SQL, and names that queries of ours use."""
Names = dict[str, str]
"""What each column of :data:`COLUMNS` is called in a table."""
PLAIN: Names = {name: name for name in COLUMNS}
_PARTS = re.compile(r"'(?:[^']|'')*'|\d[\w.]*|\b[ikhxmsbdtez]\b")


def names_of(chance: random.Random) -> Names:
    """The plain names; or, for every other table, hostile ones for some columns."""
    if chance.random() < 0.5:
        return PLAIN
    hostile = chance.sample([name for name in HOSTILE_NAMES if name not in COLUMNS], 4)
    return PLAIN | dict(zip(chance.sample(list(COLUMNS), 4), hostile, strict=True))


def quoted(name: str) -> str:
    """A name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


def renamed(text: str, names: Names) -> str:
    """An expression over columns that have these names."""
    return _PARTS.sub(lambda part: _column_name(str(part[0]), names), text)


def _column_name(part: str, names: Names) -> str:
    name = names.get(part, part)
    return part if name == part else quoted(name)


def name_like_an_expression(chance: random.Random, kind: str) -> str:
    """A name that could be read as something else, of this kind or of another."""
    column = chance.choice([name for name, (of, _, _) in COLUMNS.items() if of in (kind, "integer")])
    forms = ["{0} + 0", "{1}) OR ({0}", "CAST({0} AS TEXT)", "CAST({0} AS INTEGER)", "({0})", "{1} AND {0} > 0"]
    form: str = chance.choice([*forms, *chance.sample(HOSTILE_NAMES, 3)])
    return form.format(column, chance.choice(["b", "i = 7"]))


# ---- rows


@dataclass(frozen=True)
class Row:
    """One row: who it is about, and its values as SQL writes them and as the reference reads them."""

    person: str
    written: tuple[str, ...]
    values: dict[str, Value]


def rows(chance: random.Random, people: int) -> list[Row]:
    """Some rows of each of some people."""
    pools = {name: _pool(chance, options) for name, (_, _, options) in COLUMNS.items()}
    found = []
    for person in range(people):
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            picked = {name: chance.choice(pool) for name, pool in pools.items()}
            written = tuple(sql for sql, _ in picked.values())
            found.append(Row(f"p{person}", written, {name: value for name, (_, value) in picked.items()}))
    return found


def _pool(chance: random.Random, options: list[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """What a column of this table may hold. Few values and no NULL let an optimizer conclude much from statistics."""
    if chance.random() < 0.5:
        return [*options, *[("NULL", None)] * (1 + len(options) // 8)]
    usual, rare = chance.sample(options, 2)
    return [usual] * 4 + [rare]


def fill(connection: duckdb.DuckDBPyConnection, some: list[Row], table: str = "t", names: Names = PLAIN) -> None:
    """A new table, so that it has statistics of its own."""
    columns = ", ".join(f"{quoted(names[name])} {kind}" for name, (_, kind, _) in COLUMNS.items())
    connection.execute(f"CREATE OR REPLACE TABLE {table} (person VARCHAR, {columns})")
    if some:
        values = ", ".join(f"('{row.person}', {', '.join(row.written)})" for row in some)
        connection.execute(f"INSERT INTO {table} VALUES {values}")


# ---- expressions

_INFIX = ("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "//", "%", "||", "IS DISTINCT FROM")
_STATED = {
    "integer": ["0", "1", "2", "-3", "100", "9223372036854775807"],
    "number": ["0.5", "-2.0", "1e300", "3.0"],
    "text": ["'a'", "'%'", "''", "'12'", "'2020-02-29'"],
    "boolean": ["TRUE", "FALSE"],
    "date": ["DATE '2020-02-29'", "DATE '0001-01-01'"],
    "timestamp": ["TIMESTAMP '2020-01-31 10:00:00'", "TIMESTAMP '9999-12-31 23:59:59.999999'"],
}
_LIKES = ["'a%'", "'%b'", "'%a%'", "'a_c'", "'%a%b%'", "'a'", "'%'", "''", "'%É%'", "'__%'", "'%.5'"]
_PATTERNS = [
    "'^a.*b$'",
    "'[0-9]{2,3}'",
    r"'\d+-\d+'",
    "'(a|b)*c?'",
    r"'[^\w\s]'",
    "'É|ß'",
    r"'\.'",
    "'^$'",
    r"'\b12\b'",
    r"'\ba'",
    "'a{02}'",
]


def expression(chance: random.Random, kind: str, depth: int, table: Any) -> str:
    """A random expression of a kind, with operators from the table."""
    if depth <= 0 or chance.random() < 0.25:
        return _leaf(chance, kind)
    ways = [op for op in table if op.gives == kind]
    extra = _EXTRA.get(kind, ())
    at = chance.randrange(len(ways) + 3 * len(extra))
    if at >= len(ways):
        return extra[(at - len(ways)) // 3](chance, depth - 1, table)
    operator = ways[at]
    kinds = operator.takes
    if operator.many:
        kinds += kinds[-1:] * chance.randrange(3)
    return written(operator.name, [expression(chance, each, depth - 1, table) for each in kinds])


def _leaf(chance: random.Random, kind: str) -> str:
    if chance.random() < 0.2:
        return "NULL" if chance.random() < 0.1 and kind != "text" else chance.choice(_STATED[kind])
    return chance.choice([name for name, (of, _, _) in COLUMNS.items() if of == kind])


def written(name: str, said: list[str]) -> str:
    """An operator as a person writes it."""
    if name in _INFIX:
        return f"({said[0]} {name} {said[1]})"
    if name in ("AND", "OR"):
        return f"({f' {name} '.join(said)})"
    if name.startswith("date_"):
        return f"{name[:-1]}, {', '.join(said)})"
    forms: dict[str, Callable[[], str]] = {
        "IN": lambda: f"({said[0]} IN ({', '.join(said[1:])}))",
        "BETWEEN": lambda: f"({said[0]} BETWEEN {said[1]} AND {said[2]})",
        "IS NULL": lambda: f"({said[0]} IS NULL)",
        "NOT": lambda: f"(NOT {said[0]})",
        "CASE": lambda: f"CASE WHEN {said[0]} THEN {said[1]} ELSE {said[2]} END",
        "negative": lambda: f"(- ({said[0]}))",
        "add_months": lambda: f"({said[0]} + INTERVAL ({said[1]}) MONTH)",
        "add_seconds": lambda: f"({said[0]} + INTERVAL ({said[1]}) SECOND)",
    }
    return forms[name]() if name in forms else f"{name}({', '.join(said)})"


Make = Callable[[random.Random, int, Any], str]


def _cast(kind: str, word: str, *sources: str) -> Make:
    return lambda chance, depth, table: f"CAST({expression(chance, chance.choice(sources), depth, table)} AS {word})"


def _on_text(form: str, choices: list[str]) -> Make:
    return lambda chance, depth, table: form.format(expression(chance, "text", depth, table), chance.choice(choices))


_EXTRA: dict[str, list[Make]] = {
    "integer": [_cast("integer", "INTEGER", "integer", "number", "text", "boolean")],
    "number": [
        _cast("number", "DOUBLE", "integer", "text", "boolean"),
        lambda chance, depth, table: f"round({expression(chance, 'number', depth, table)}, {chance.randrange(4)})",
    ],
    "text": [
        _cast("text", "TEXT", "integer", "boolean", "date", "timestamp"),
        _on_text("left({}, {})", ["0", "2", "70000"]),
        _on_text("right({}, {})", ["0", "2"]),
        _on_text("substring({}, {})", ["1", "2, 1", "3, 500"]),
    ],
    "boolean": [
        _cast("boolean", "BOOLEAN", "integer", "text"),
        _on_text("({} LIKE {})", _LIKES),
        _on_text("({} ILIKE {})", _LIKES),
        _on_text("regexp_matches({}, {})", _PATTERNS),
        lambda chance, depth, table: f"(NOT {expression(chance, 'boolean', depth, table)})",
    ],
    "date": [_cast("date", "DATE", "text", "timestamp")],
    "timestamp": [_cast("timestamp", "TIMESTAMP", "text", "date")],
}
_WILD = ["dayofweek(INTERVAL (i) DAY)", "week(t - t)", "date_diff('day', CAST(t AS TIME), CAST(t AS TIME))", "week(d)",
         "i + i", "100 // i", "dayofweek(t - t)", "date_part('week', d)", *["CAST(s AS INTEGER)"] * 4]  # fmt: skip
"""What was allowed once, or looks as if it were: refused now, or harmless."""


def wild(chance: random.Random, table: Any) -> str:
    """A condition around something that may not be computable in some rows."""
    condition = chance.choice([expression(chance, "boolean", 1, table), _bound(chance), _bound(chance)])
    part = chance.choice(_WILD)
    form = chance.choice(["({0}) OR {1} > 0", "CASE WHEN {0} THEN {1} > 0 END", "NOT (({0}) AND {1} = 0)", "{1} > 3"])
    return form.format(condition, part)


def _bound(chance: random.Random) -> str:
    """A comparison of a column with a value it may hold, which statistics of the column may decide."""
    name = chance.choice("ikxdt")
    kind, _, options = COLUMNS[name]
    value = chance.choice([sql for sql, value in options if value is not None and value == value and "inf" not in sql])
    stated = {"integer": value, "number": value.strip("'")}.get(kind, f"{kind.upper()} {value}")
    return f"{name} {chance.choice(['<=', '>=', '<', '>', '<>'])} {stated}"


# ---- questions

Ask = Callable[[Any], Any]


def question(chance: random.Random, table: Any, names: Names = PLAIN) -> tuple[str, Ask]:
    """Something to ask: an expression, and a question about it."""
    if chance.random() < 0.15:
        text = renamed(wild(chance, table), names)
        return text, lambda t: t.where(text).count()
    kind = chance.choice(("boolean", "boolean", "number", "integer", "text", "date", "timestamp"))
    deep = chance.choices(range(1, 7), (45, 28, 14, 7, 4, 2))[0]
    text, k, x = renamed(expression(chance, kind, deep, table), names), names["k"], names["x"]
    if kind in KEYS and chance.random() < 0.4:
        name = name_like_an_expression(chance, kind) if chance.random() < 0.6 else text
        within = renamed(_bound(chance), names) if chance.random() < 0.5 else None
        said = f"by name {name!r}: {text}" + (f" where {within}" if within else "")
        return said, _by_name(chance, kind, name, text, within)
    by = {"date": f"({text}) < DATE '2020-02-29'", "timestamp": f"({text}) < TIMESTAMP '2020-01-31 10:00:00'"}
    if kind in by:
        return text, lambda t: t.where(by[kind]).count()
    asks: dict[str, list[Ask]] = {
        "boolean": [
            lambda t: t.where(text).count(),
            lambda t: t.where(text).count(of="units"),
            lambda t: t.histogram(text, keys=[True, False]),
            lambda t: t.where(text).sum(k, bounds=(-2, 3)),
        ],
        "text": [
            lambda t: t.histogram(text, keys=["a", "", "12", "É"]),
            lambda t: t.discover(text, of="rows"),
            lambda t: t.discover(text),
        ],
        "number": [
            lambda t: t.sum(text, bounds=(-1, 2), grid=0.25),
            lambda t: t.mean(text, bounds=(-1, 2), grid=0.25),
            lambda t: t.quantile(text, [0.25, 0.5], bounds=(-5, 5), grid=0.5),
            lambda t: t.median(text, bounds=None),
            lambda t: t.variance(text, bounds=(-1, 2), missing=0),
            lambda t: t.covariance(text, k, bounds=((-1, 2), (-2, 3))),
            lambda t: t.histogram(text, bins=[-5, 0, 1, 7.5]),
            lambda t: t.derive(y=text).sum("y * 2", bounds=(0, 5), missing=1, grid=1),
        ],
        "integer": [
            lambda t: t.sum(text, bounds=(-3, 3)),
            lambda t: t.mean(text, bounds=(-3, 3), missing=1),
            lambda t: t.median(text, bounds=(-3, 3)),
            lambda t: t.regression([text], target=x, bounds=((-3, 3),), target_bounds=(-2, 2)),
            lambda t: t.histogram(text, bins=4, bounds=(-2, 6), of="units"),
            lambda t: t.histogram(text, keys=[0, 1, -1, 2**63 - 1]),
            lambda t: t.derive(y=text).where("y > 0").count(),
        ],
    }
    return text, chance.choice(asks[kind])


KEYS: dict[str, list[Any]] = {"boolean": [True, False], "text": ["a", "", "12", "É"], "integer": [0, 1, 3, -1]}
"""Keys of groups and of public tables, by the kind of a column."""


def _by_name(chance: random.Random, kind: str, name: str, text: str, within: str | None) -> Ask:
    """A question about a column or an expression by what it is called: derived, unless the name is the expression."""
    keys, share = KEYS[kind], "1/2"

    def column(t: Any) -> Any:
        rows = t if name == text else t.derive(**{name: text})
        return rows.where(within) if within else rows

    def looked_up(t: Any) -> Any:
        return column(t).join({name: keys, "word": ["one", "two", "three", "four"][: len(keys)]}, on=name)

    asks: list[Ask] = [
        lambda t: looked_up(t).histogram("word", keys=["two", "one"]),
        lambda t: column(t).join({name: keys}, on=name, keep="matched").count(),
        lambda t: column(t).by(name, keys=keys).ask(lambda rows: rows.count()).mechanism(epsilon=share),
        lambda t: column(t).histogram(name, keys=keys),
        lambda t: column(t).discover(name),
    ]
    if kind != "text":
        asks += [
            lambda t: column(t).sum(name, bounds=(-1, 2)),
            lambda t: column(t).covariance(name, name, bounds=((-1, 2), (-2, 3))),
            lambda t: (
                column(t)
                .by(name, keys=keys)
                .ask(lambda rows: rows.covariance(name, name, bounds=((0, 1), (0, 1))))
                .mechanism(epsilon=share)
            ),
        ]
    return chance.choice(asks)


# ---- answers on neighbours


Vector = dict[Any, int]
Most = tuple[Any, Any, Any]
"""How far a vector moves at most: in all, in squares, at one place."""


def vectors(asked: Any) -> list[Vector]:
    """What a question adds noise to or chooses by, exactly: counts or sums by place."""
    if hasattr(asked, "mechanisms"):  # one question for each group
        by_group = [vectors(each.question) for each in asked.mechanisms]
        return [
            {(group, place): number for group, each in enumerate(same_part) for place, number in each.items()}
            for same_part in zip(*by_group, strict=True)
        ]
    if hasattr(asked, "levels"):  # quantiles: how many records have each value
        return [dict(asked.table.engine.fetch(asked.plan))]
    if hasattr(asked, "sums"):
        return [_places(each.noisy) for each in added(asked)]
    return [_places(asked.exact())]


def stated_moves(asked: Any) -> list[Most]:
    """How far one unit moves each of them, as the question states."""
    if hasattr(asked, "mechanisms"):  # as many groups as share the ε may move
        touched, one = asked.question.touched, stated_moves(asked.mechanisms[0].question)
        return [(touched * in_all, touched * squares, each) for in_all, squares, each in one]
    if hasattr(asked, "levels"):
        far = asked.moved * (2 if asked.relation == "substitute" else 1)
        return [(far, far**2, far)]
    moved = [each.sums.moved for each in added(asked)] if hasattr(asked, "sums") else [asked.sensitivity]
    return [(most.l1, most.l2_squared, most.each) for most in moved]


def _places(answer: Any) -> Vector:
    if isinstance(answer, list):
        return dict(answer)
    return dict(enumerate(np.asarray(answer).ravel().tolist()))


def moves(one: Vector, other: Vector) -> tuple[int, int, int]:
    """How far two vectors are apart: in all, in squares, at one place."""
    apart = [abs(one.get(place, 0) - other.get(place, 0)) for place in {*one, *other}]
    return sum(apart), sum(n * n for n in apart), max(apart, default=0)


def too_far(one: list[Vector], other: list[Vector], most: list[Most]) -> str | None:
    """What moved further than was stated, in words."""
    for pair, stated in zip(zip(one, other, strict=True), most, strict=True):
        moved = moves(*pair)
        if any(a > b for a, b in zip(moved, stated, strict=True)):
            return f"moved by {moved}, stated {stated}"
    return None


def neighbours(some: list[Row]) -> Iterator[list[Row]]:
    """The table, then each table with one unit less; rows of a unit stay together."""
    yield some
    for person in sorted({row.person for row in some}):
        yield [row for row in some if row.person != person]


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal; NaN is itself."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and bool(a == b)


def unit_of(chance: random.Random) -> Any:
    """A row, or a person with few rows."""
    return chance.choice(["row", xp.Unit("person", rows=2), xp.Unit("person", rows=2, groups=1)])


def unit_and_rows(chance: random.Random, people: int) -> tuple[Any, list[Row]]:
    """A unit, and rows of that number of people; each row is one of its own where rows are units."""
    unit, some = unit_of(chance), rows(chance, people)
    if unit == "row":
        some = [replace(row, person=f"p{n}") for n, row in enumerate(some[:8])]
    return unit, some
