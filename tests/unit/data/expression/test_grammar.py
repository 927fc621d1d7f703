"""What people type: read as meant, or refused with the reason and the remedy."""

import re
from typing import Any

import pytest

import expost as xp
from expost.data.expression import Kind, columns, parse
from expost.data.expression.tree import Reference, Stated

SCHEMA: dict[str, Kind] = {
    "age": "integer", "cost": "number", "name": "text", "smokes": "boolean", "born": "date", "seen": "timestamp",
    "list": "other", "odd name": "text", "Ünï": "integer",
    "age total": "integer", "height (cm)": "number", "lower_name": "text",
}  # fmt: skip
MISTAKES = {
    "": "an expression is text in SQL",
    "age >": "a value is missing at its end",
    "age > > 3": "a value is missing before '>'",
    "age >= 18 18": "'18' is unexpected",
    "(age > 3": ") is missing at its end",
    "age > 3)": "')' is unexpected",
    "age ; 3": "';' is unexpected",
    "age > 3 -- x": "'--' is unexpected",
    "age > /* x */ 3": "'/*' is unexpected",
    "age > $1": "'$' is unexpected",
    "'open": "is unexpected",
    "agee > 3": "there is no column 'agee': did you mean 'age'?",
    "t.age > 3": "write the column's name alone",
    "list = 3": "column 'list' is of a type that questions cannot use",
    "name > 3": "> takes values of one kind, but has text and integer",
    "smokes + 1 > 0": "+ takes",
    "age + name": "+ takes",
    "lower(age) = 'x'": "lower() takes text, but has integer",
    "age AND smokes": "AND takes boolean, but has integer and boolean",
    "NOT age": "NOT takes boolean",
    "born > 'soon'": "write a date as DATE '2024-01-31'",
    "age = '7'": "a number without quotation marks",
    "DATE '2024-13-01' > born": "'2024-13-01' is not a date in the years 1 to 9999",
    "age IN ()": "IN takes",
    "age IN (SELECT 1)": "a query reads others",
    "age = (SELECT max(age))": "a query reads others",
    "sum(age) > 3": "ask for a count, sum",
    "exp(cost) > 3": "engines differ in its last digit",
    "cost ** 2 > 3": "write x * x",
    "try(age > 3)": "it is not needed",
    "concat(name, name) = 'x'": "write a || b",
    "lenght(name) > 3": "did you mean length()?",
    "random() > 0.5": "only deterministic functions of one row",
    "CASE END": "a value is missing",
    "CASE WHEN smokes THEN 1 ELSE 'x' END = 1": "of different kinds",
    "age BETWEEN 1": "AND is missing at its end",
    "age IS 3": "IS is followed by NULL",
    "name LIKE name": "a literal text",
    "name LIKE 3": "a literal text",
    "age LIKE 'x'": "LIKE takes text, but has integer in \"age LIKE 'x'\"",
    "regexp_matches(name, '(')": "a '(' is not closed",
    "regexp_matches(name, ')')": "has no '(' before it",
    "regexp_matches(name, 'a**')": "cannot be repeated or lazy",
    "regexp_matches(name, 'a*?')": "cannot be repeated or lazy",
    "regexp_matches(name, '[a')": "a '[' is not closed",
    "regexp_matches(name, '[z-a]')": "must ascend",
    "regexp_matches(name, '(?i)a')": "(?…) is not supported",
    "regexp_matches(name, '[]a]')": "or is empty",
    "regexp_matches(name, '[^]a]')": "or is empty",
    "regexp_matches(name, '((){90}){90}')": "and may have 100",
    "regexp_matches(name, 'a{101}')": "≤ 100",
    "name LIKE '%" + "a%" * 60 + "'": "has at most 100 characters",
    "regexp_matches(name, '\\1')": "is not supported: use",
    "regexp_matches(name, 'a{2,1}')": "m ≤ n",
    "regexp_matches(name, '((a{99}){99}){99}')": "and may have 100",
    "regexp_matches(name, 'a', 'i')": "without flags",
    "regexp_matches(name, '*')": "write \\*",
    "left(name, age) = 'x'": "literal whole numbers",
    "substring(name, 0) = 'x'": "counts from 1",
    "round(cost, age) > 1": "a number of digits",
    "CAST(age AS TINYINT) = 1": "cast to INTEGER, DOUBLE",
    "CAST(cost AS TEXT) = '1'": "CAST it to INTEGER first",
    "CAST(smokes AS DATE) = born": "there is no such conversion",
    "CAST(age) = 1": "AS is missing",
    "date_trunc('century', born) = born": "its units are",
    "date_diff('fortnight', born, seen) = 1": "its units are",
    "extract(epoch FROM seen) = 1": "its parts are year",
    "born + INTERVAL 3 FORTNIGHT > born": "its units are",
    "born + INTERVAL 'x' DAY > born": "a whole number and a unit",
    "INTERVAL 3 DAY = 1": "can only be added to",
    "age > 99999999999999999999": "more than 64 bits",
    "age > " + "9" * 5000: "at most 400 characters",
    "age > 1 // 0": "a part without columns that cannot be computed",
    "age > CAST('x' AS INTEGER)": "a part without columns that cannot be computed",
    "if(smokes, 1) = 1": "a condition and two values",
    "whole(name) = 1": "whole() takes a number: whole(age)",
    "lower() = 'x'": "lower() has no arguments",
    "length(name, name) = 1": "length() takes text",
    "hour(born, born) = 1": "hour() takes",
    "\"no such\" = 1": "there is no column 'no such'",
    "name = Oncology": "there is no column 'Oncology': text goes in single quotes, as in name = 'Oncology'",
    'name = "Oncology"': "there is no column 'Oncology': text goes in single quotes, as in name = 'Oncology'",
    'name <> General Medicine AND age > 3': "text goes in single quotes, as in name <> 'General Medicine'",
    "name IN ('A', Oncology)": "text goes in single quotes, as in 'Oncology'",
    "name LIKE Onc": "text goes in single quotes, as in name LIKE 'Onc'",
    "lower(name) = oncology": "text goes in single quotes, as in 'oncology'",
    '"Oncology" = name': "text goes in single quotes, as in 'Oncology' = name",
    'born > "2024-01-31"': "text goes in single quotes, as in born > '2024-01-31'",
    "name = names": "did you mean 'name'? Text goes in single quotes, as in name = 'names'",
    "cost > costly": "did you mean 'cost'?",
    "cost > Oncology": "there is no column 'Oncology': there are 'age'",
    "odd name = 'x'": "there is no column 'odd': did you mean \"odd name\"? A name that is no plain word goes",
    "Odd_Name = 'x'": "there is no column 'Odd_Name': did you mean \"odd name\"?",
    "age total > 3": "'total' is unexpected; did you mean \"age total\"?",
    "height (cm) > 3": "height() is not allowed in 'height (cm) > 3': did you mean \"height (cm)\"?",
    "name = 'B": "a text begins and ends with a single quotation mark, and one within it is doubled",
    "name = ‘B’": "straight single quotes",
    "name = 'B' & age > 3": "'&' is unexpected; write AND between conditions",
    "(name = 'B') | smokes": "'|' is unexpected; write OR between conditions",
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text[:40])
def test_mistakes_say_what_would_do(text: str) -> None:
    with pytest.raises(xp.InvalidValue, match=re.escape(MISTAKES[text])):
        parse(text, SCHEMA)


@pytest.mark.parametrize("value", [None, 3, " "])
def test_an_expression_is_text(value: Any) -> None:
    with pytest.raises(xp.InvalidValue, match="an expression is text"):
        parse(value, SCHEMA)


def test_an_expression_has_an_end() -> None:
    with pytest.raises(xp.InvalidValue, match="at most 10000 characters, got 10001"):
        parse("x" * 10_001, SCHEMA)


def test_columns_are_found_as_the_schema_spells_them() -> None:
    assert parse("AGE", SCHEMA) == Reference("age", "integer")
    assert parse('"odd name"', SCHEMA) == Reference("odd name", "text")
    assert parse("ünï", SCHEMA) == Reference("Ünï", "integer")
    assert set(columns(parse("age > 3 AND CASE WHEN smokes THEN cost END < 2", SCHEMA))) == {"age", "smokes", "cost"}


def test_a_call_is_no_name_in_several_words() -> None:
    assert set(columns(parse("lower(name) = 'x'", SCHEMA))) == {"name"}, "and not lower_name"


def test_kinds() -> None:
    kinds = {"age + 1": "integer", "age + 1.5": "number", "age / 2": "number", "born": "date", "born + 1": "date"}
    kinds |= {"born + INTERVAL 1 HOUR": "timestamp", "seen - INTERVAL 1 YEAR": "timestamp", "name || 'x'": "text"}
    kinds |= {"coalesce(age, 1.5)": "number", "CASE WHEN smokes THEN born ELSE seen END": "timestamp"}
    kinds |= {
        "CASE WHEN smokes THEN NULL ELSE 2 END": "integer",
        "born > '2024-01-31'": "boolean",
        "name LIKE 'a'": "boolean",
    }
    assert {text: parse(text, SCHEMA).kind for text in kinds} == kinds


def test_stated_numbers() -> None:
    assert parse("-9223372036854775808", SCHEMA) == Stated(-(2**63), "integer")
    assert parse("1e3", SCHEMA) == Stated(1000.0, "number")
    assert parse(".5", SCHEMA) == Stated(0.5, "number")


def test_depth_and_size_are_bounded() -> None:
    for text in ("(" * 3000 + "age" + ")" * 3000 + " > 1", "+".join(["age"] * 500) + " > 1", "NOT " * 900 + "smokes"):
        with pytest.raises(xp.InvalidValue, match="nested too deeply"):
            parse(text, SCHEMA)
    assert parse(" OR ".join(f"age = {n}" for n in range(500)), SCHEMA).depth == 3
