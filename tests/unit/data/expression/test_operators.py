"""Each operator, value by value: DuckDB with all of its optimizers on gives what the reference gives."""

import random
from datetime import date, datetime
from functools import cache
from typing import Any

import duckdb
import pytest

import expost as xp
from expost.data.expression import evaluate, operators, parse
from expost.data.expression.reference import MEANINGS
from expost.data.expression.tree import Operator
from hostile_tables import COLUMNS, fill, rows, same, written

pytestmark = pytest.mark.slow
KIND_OF = {name: kind for name, (kind, _, _) in COLUMNS.items()}
BY_KIND = {"integer": "ikh", "number": "xm", "text": "s", "boolean": "b", "date": "d", "timestamp": "tez"}


@pytest.fixture(scope="module")
def table() -> xp.PrivateTable:
    connection = duckdb.connect(config={"threads": 1})
    fill(connection, ROWS)
    return xp.read(connection, table="t", unit="row", neighbours="add-remove")


ROWS = rows(random.Random(3), 60)


def compared(table: xp.PrivateTable, text: str, *, of_s: bool = False) -> list[Any]:
    """The reference's values, which are DuckDB's. With ``of_s`` it only depends on s: each text is read once."""
    tree = parse(text, table.schema)
    engine: Any = table.engine
    found = engine._connection.execute(f"SELECT {engine.render(tree)} FROM t").fetchall()
    once = cache(lambda s: evaluate(tree, {"s": s}))
    expected = [once(row.values["s"]) if of_s else evaluate(tree, row.values) for row in ROWS]
    for row, (value,), wanted in zip(ROWS, found, expected, strict=True):
        assert same(value, wanted), f"{text}: {value!r} instead of {wanted!r} for {row.values}"
    return expected


@pytest.mark.parametrize("operator", operators.TABLE, ids=lambda op: f"{op.name} {op.takes[-1]}")
def test_operators(table: xp.PrivateTable, operator: Operator) -> None:
    """Two choices of columns, and more until one has a value: whole numbers of some tables are all too large."""
    chance = random.Random(operator.name)
    seen: list[Any] = []
    for place in range(12):
        if place < 2 or not seen:
            said = [chance.choice(BY_KIND[kind]) for kind in operator.takes]
            seen += [value for value in compared(table, written(operator.name, said)) if value is not None]
    assert seen or operator.name.startswith(("add_", "nullif"))


@pytest.mark.parametrize("cast", operators.CASTS, ids=" to ".join)
def test_casts(table: xp.PrivateTable, cast: tuple[str, str]) -> None:
    word = {"number": "DOUBLE", "text": "TEXT"}.get(cast[1], cast[1].upper())
    for name in BY_KIND[cast[0]]:
        assert any(value is not None for value in compared(table, f"CAST({name} AS {word})"))


PATTERNS = ["'a%'", "'%b'", "'%a%'", "'a_c'", "'%a%b%'", "'_'", "'%'", "''", "'%É%'", "'% it''s'", "'%%'", "'a%_b'"]
REGULAR = [r"'^a'", r"'b$'", "'.'", r"'^$'", r"'[a-c]+'", r"'[^a-z]'", r"'\d{2,3}'", r"'(a|1)2?'", r"'É|ß'", r"'\.'",
           r"'a\nb'", r"'[\]\-]'", r"'\w\W'", r"'\s'", r"'\b12\b'", r"'a{0}b'", r"'(?:ab){2,}'", r"'[-a]'",
           r"'🙂 '"]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_likes(table: xp.PrivateTable, pattern: str) -> None:
    for text in (f"s LIKE {pattern}", f"s NOT LIKE {pattern}", f"s ILIKE {pattern}", f"upper(s) LIKE {pattern}"):
        compared(table, text, of_s=True)


@pytest.mark.parametrize("pattern", REGULAR)
def test_regular_expressions(table: xp.PrivateTable, pattern: str) -> None:
    compared(table, f"regexp_matches(s, {pattern})")
    compared(table, f"regexp_matches(left(s, 40) || left(s, 40), {pattern})")


def test_small_and_capital_letters_of_every_script() -> None:
    """One code point for one, in all of the plane that scripts are in."""
    codes = [code for code in range(1, 0x3000) if not 0xD800 <= code < 0xE000]
    connection = duckdb.connect()
    found = connection.execute(
        "SELECT lower(chr(c)), upper(chr(c)) FROM (SELECT unnest(?::INT[]) AS c)", [codes]
    ).fetchall()
    for code, (small, capital) in zip(codes, found, strict=True):
        assert (operators.lower(chr(code)), operators.upper(chr(code))) == (small, capital), hex(code)


VALUES: dict[str, Any] = {
    "7 // 2": 3, "-7 // 2": -3, "7 % -2": 1, "-7 % 2": -1, "7 / 2": 3.5, "1 + 2.5": 3.5, "2 * 3 + 4": 10,
    "2 + 3 * 4": 14, "-(2 - 5)": 3, "- 2": -2, "+2": 2, "1 - 2 - 3": -4, "100 / 10 / 5": 2.0,
    "round(2.5)": 3.0, "round(-2.5)": -3.0, "round(2.345, 2)": 2.35, "round(0.49999999999999994)": 0.0,
    "floor(-1.5)": -2.0, "ceil(-1.5)": -1.0, "abs(-3)": 3, "sign(-2.5)": -1, "sqrt(9)": 3.0,
    "greatest(1, 2.5, 2)": 2.5, "least(3, NULL, 2)": 2, "coalesce(NULL, 3)": 3, "nullif(2, 3)": 2,
    "CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END": "b", "CASE WHEN FALSE THEN 1 ELSE 2 END": 2,
    "if(1 < 2, 'x', 'y')": "x", "1 IN (2, NULL, 1)": True, "2 BETWEEN 1 AND 3": True, "NOT 1 = 2": True,
    "1 = 1 AND 2 = 2 OR 1 = 2": True, "NULL IS NULL": True, "1 IS NOT NULL": True, "TRUE IS TRUE": True,
    "1 IS DISTINCT FROM 2": True, "1 IS NOT DISTINCT FROM 1": True, "(1 > 2) IS FALSE": True,
    "'a' || 'b' || 'c'": "abc", "length('é🙂')": 2, "upper('straße')": "STRAẞE", "trim('  a ')": "a",
    "left('abc', 2)": "ab", "right('abc', 2)": "bc", "substring('abc', 2)": "bc", "substring('abc', 2, 1)": "b",
    "strpos('abc', 'c')": 3, "'it''s' = 'it''s'": True, "'b' > 'a'": True, "'a' < 'B'": False,
    "DATE '2024-01-31' + 1": date(2024, 2, 1), "DATE '2024-01-31' - DATE '2024-01-01'": 30,
    "DATE '2024-01-31' + INTERVAL 1 MONTH": date(2024, 2, 29),
    "DATE '2024-03-31' - INTERVAL '1 month'": date(2024, 2, 29),
    "DATE '2024-01-31' + INTERVAL 2 WEEKS": date(2024, 2, 14), "DATE '2024-02-29' + INTERVAL 1 YEAR": date(2025, 2, 28),
    "DATE '2024-01-31' + INTERVAL '5' HOUR": datetime(2024, 1, 31, 5),
    "TIMESTAMP '2024-01-31 23:00' + INTERVAL (1 + 1) HOUR": datetime(2024, 2, 1, 1),
    "TIMESTAMP '2024-01-31 23:00' - INTERVAL 1 DAY": datetime(2024, 1, 30, 23),
    "extract(year FROM DATE '2024-01-31')": 2024, "week(DATE '2024-12-30')": 1, "dayofweek(DATE '2024-01-07')": 0,
    "isodow(DATE '2024-01-07')": 7, "hour(TIMESTAMP '2024-01-31 18:30:05')": 18, "quarter(DATE '2024-05-01')": 2,
    "date_trunc('quarter', DATE '2024-05-17')": date(2024, 4, 1),
    "date_trunc('week', DATE '2024-01-07')": date(2024, 1, 1),
    "date_diff('week', DATE '2024-01-07', DATE '2024-01-08')": 1, "date_diff(day, DATE '2024-01-07', '2024-01-08')": 1,
    "date_diff('year', DATE '2023-12-31', DATE '2024-01-01')": 1,
    "CAST('  12 ' AS INTEGER)": 12, "'1e3'::DOUBLE": 1000.0,
    "CAST(2.5 AS INTEGER)": 3, "CAST(TRUE AS INTEGER)": 1, "CAST(5 AS TEXT)": "5", "CAST('TRUE' AS BOOLEAN)": True,
    "CAST('2024-01-31' AS DATE)": date(2024, 1, 31), "CAST(DATE '2024-01-31' AS TEXT)": "2024-01-31",
    "CAST('2024-01-31T18:30' AS TIMESTAMP)": datetime(2024, 1, 31, 18, 30), "CAST('1e999' AS DOUBLE)": float("inf"),
}  # fmt: skip


def test_values() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE one AS SELECT 1 AS n")
    engine: Any = xp.read(connection, table="one", unit="row", neighbours="add-remove").engine
    for text, expected in VALUES.items():
        tree = parse(text, {"n": "integer"})
        assert same(evaluate(tree, {}), expected), text
        (found,) = connection.execute(f"SELECT {engine.render(tree)}").fetchall()[0]
        assert same(found, expected), f"{text}: {found!r}"


def test_all_operators_have_words() -> None:
    assert {operator.name for operator in operators.TABLE} == set(MEANINGS)
