"""What an analyst might write: refused, or harmless, and never much of little."""

import re

import duckdb
import pytest

import expost as xp
import expost.data
from duck import OTHERS
from expost.data.duckdb import DuckDB
from expost.data.expression import operators

X = f"INJ) > 1) and {OTHERS} > 98 and try(("


INJECTIONS = [
    f'extract("year from dt) = 2020) and {OTHERS} > 98 and try(extract(year" from dt) = 2020',
    f'cast(s as zz."varchar) = s) and {OTHERS} > 98 and try(cast(s as varchar") = s',
    f'cast(s as decimal("5,1)) = 1) and {OTHERS} > 98 and try(cast(s as decimal(5,1")) = 1',
    f'cast(s as "{X}") = 1',
    f's::"{X}" = 1',
    f'cast(s as "int) + {X}") = 1',
    f's::"int) + {X} --" = 1',
    f'cast(s as varchar("{X}")) = s',
    'dt + interval 1 "day" > dt',
    f'cast(s as timestamp("{X}")) = ts',
    f'cast(s as geometry("{X}")) = s',
    f"cast(s as geometry('{X}')) = s",
    f'cast(s as map("{X}", int)) is null',
    f'cast(s as enum("{X}")) = s',
    f'cast(s as struct("a int) + {X}" int)) is null',
    f'cast(s as int["{X}"]) is null',
    f'cast(s as interval year to "{X}") is null',
    f'extract(week("{X}") from dt) = 1',
    f'extract("{X}"(monday) from dt) = 1',
    f'date_diff(week("{X}"), dt, dt) = 1',
    f'date_diff("{X}", dt, dt) = 1',
    f"date_diff('{X}', dt, dt) = 1",
    f'date_trunc("{X}", ts) = ts',
    f"date_trunc('{X}', ts) = ts",
    f'timestamp_trunc(ts, "{X}") = ts',
    f'interval 1 "{X}" > interval 1 day',
    f"interval '1 {X}' > interval 1 day",
    f"interval '1 day) {X}' > interval 1 day",
    f'trim("{X}" s from s) = s',
    f'ceil(d to "{X}") = 1',
    f'i is "{X}"',
    "i in t",
    'i in "t"',
    "i in unnest([1])",
]


@pytest.mark.parametrize("text", INJECTIONS)
def test_no_word_is_written_as_it_came(table: xp.PrivateTable, text: str) -> None:
    with pytest.raises(xp.InvalidValue):
        table.where(text)


def test_names_and_texts_stay_names_and_texts(connection: duckdb.DuckDBPyConnection) -> None:
    odd = f'a" > 1) or {OTHERS} > 98 or ("a'
    quoted = '"' + odd.replace('"', '""') + '"'
    connection.execute(f"CREATE TABLE odd AS SELECT 1 AS {quoted}, 'x'' OR 1=1 --' AS s")
    table = xp.read(connection, table="odd", unit="row", neighbours="add-remove")
    assert table.where(f"{quoted} > 1").count().exact() == 0
    assert table.where(f"{quoted} = 1 AND s = 'x'' OR 1=1 --'").count().exact() == 1
    assert table.histogram("s", keys=["x' OR 1=1 --", ";"]).exact().tolist() == [1, 0, 0]
    assert table.derive(**{odd.replace("a", "b"): "1"}).sum(odd.replace("a", "b"), bounds=(0, 9)).exact() == 1


PLAIN = {
    "extract(year from dt) = 2020": 100,
    "date_trunc('month', ts) = ts AND date_diff('day', dt, ts) = 0": 100,
    "ts >= TIMESTAMP '2020-01-01 00:00:00' AND dt + INTERVAL 1 MONTH > DATE '2020-01-15'": 100,
    "dt + INTERVAL '3 days' > dt AND dt + INTERVAL (i) DAY >= dt": 100,
    "CAST(i AS DOUBLE) < 1.5 OR CAST(i AS VARCHAR) = '7'": 3,
    "i::INT IN (1, 2) OR i BETWEEN 5 AND 6 OR NOT i < 99": 5,
    "CASE p WHEN 'p7' THEN true WHEN 'p8' THEN true ELSE false END": 2,
    "if(i > 97, true, false) AND trim(s) = 's' AND s NOT LIKE 'a%'": 2,
    """ "p" = 'p7' OR "I" = 8 AND "s" <> 'a"b' """: 2,
    "p || s = 'p7s' OR substring(p, 2, 1) = '8'": 12,
}


def test_what_is_plain_is_still_allowed(table: xp.PrivateTable) -> None:
    assert {text: table.where(text).count().exact() for text in PLAIN} == PLAIN


def test_a_plan_is_one_query(table: xp.PrivateTable) -> None:
    assert isinstance(table.engine, DuckDB)
    for text in ("SELECT 1; SELECT 2", "DROP TABLE t", "COPY t TO 'x.csv'", "SELEC"):
        with pytest.raises(xp.InvalidValue, match="does not make exactly one query"):
            table.engine._bind(text)


def test_what_never_computes_is_refused(table: xp.PrivateTable) -> None:
    for text in (
        "dt > CAST('today' AS DATE)",
        "i > CAST('x' AS INT)",
        "i > 1 // 0",
        "d < sqrt(-1)",
        "i + (2 - 1) / 0 > 1",
    ):
        with pytest.raises(xp.InvalidValue, match="a part without columns"):
            table.where(text)


UNFIT = [
    "dt > 'today'",
    "i > 5 AND NOT dt BETWEEN '2020-01-01' AND 'soon'",
    "ts = '2020-01-01 25:00:00'",
    "i = 'seven'",
    "'seven' = i",
    "i IN ('7', 'x')",
    "CASE i WHEN 'x' THEN true END",
    "CASE WHEN i > 3 THEN dt > 'today' ELSE true END",
    "coalesce(i, 'x') = 7",
    "i + 'x' > 3",
    "dt > ('today')",
]


@pytest.mark.parametrize("text", UNFIT)
def test_text_that_fits_no_column_is_refused(table: xp.PrivateTable, text: str) -> None:
    """It would be NULL for every row, whatever stands there: that is public, and never meant."""
    with pytest.raises(xp.InvalidValue, match="DATE '2024-01-31'"):
        table.where(text)
    with pytest.raises(xp.InvalidValue, match="DATE '2024-01-31'"):
        table.derive(later="dt", n="i").where(text.replace("dt", "later").replace("i ", "n "))


FIT = {
    "dt > '2019-12-31' AND ts <= '2020-01-01' AND i IN (7, 8)": 2,
    "CAST(coalesce(p, 'none') AS INT) = 5 OR i = 3": 1,  # the first half is NULL for every p
    "100 // coalesce(nullif(i, 5), 0) = 5": 4,
    "d = 7 OR i = 8": 2,
    "coalesce(nullif(s, 's'), 'none') = 'none'": 100,
    "regexp_matches(p, 'p[0-4]$') AND s LIKE '%s'": 5,
}


def test_text_that_fits_is_not(table: xp.PrivateTable) -> None:
    assert {text: table.where(text).count().exact() for text in FIT} == FIT


def test_refusals_say_what_is_allowed(table: xp.PrivateTable) -> None:
    with pytest.raises(xp.InvalidValue, match=r"expost\.data\.ALLOWED"):
        table.where("md5(s) = 'x'")
    assert "regexp_matches" in expost.data.ALLOWED
    with pytest.raises(xp.InvalidValue, match=re.escape("a || b")):
        table.where("concat(s, 'x') = 'x'")
    for ask in (table.discover, lambda text: table.histogram(text, keys=["2020-01-01"])):
        with pytest.raises(xp.InvalidValue, match=re.escape("CAST(dt AS TEXT)")):
            ask("dt")
    assert table.discover("CAST(dt AS TEXT)").exact() == [("2020-01-01", 100)]


def test_the_text_of_a_time_that_is_proposed_is_a_day() -> None:
    times = duckdb.connect()
    times.execute("CREATE TABLE t AS SELECT TIMESTAMP '2020-01-31 12:30:00' AS at FROM range(9)")
    table = xp.read(times, table="t", unit="row", neighbours="add-remove")
    for asked, day in (("at", "2020-01-31"), ("date_trunc('month', at)", "2020-01-01")):
        with pytest.raises(xp.InvalidValue) as refused:
            table.by(asked, keys=[day])
        proposed = f"CAST(CAST({asked} AS DATE) AS TEXT)"
        assert proposed in str(refused.value)
        assert table.discover(proposed).exact() == [(day, 9)]


def test_text_does_not_grow(connection: duckdb.DuckDBPyConnection, table: xp.PrivateTable) -> None:
    grown = table.derive(a="'xxxxxxxxxxxxxxxx' || s").derive(b="||".join(["a"] * 20)).derive(c="||".join(["b"] * 20))
    assert grown.sum("length(c)", bounds=(0, 2**20)).exact() == 100 * operators.LONGEST_MADE
    connection.execute("UPDATE t SET s = NULL WHERE i < 50")
    assert grown.sum("length(c)", bounds=(0, 2**20)).exact() == 50 * operators.LONGEST_MADE


def test_derived_columns_do_not_grow(table: xp.PrivateTable) -> None:
    grown = table
    for k in range(1, 4):
        grown = grown.derive(**{f"a{k}": "+".join(["i" if k == 1 else f"a{k - 1}"] * 12)})
    with pytest.raises(xp.InvalidValue, match="too large"):
        grown.where("+".join(["a3"] * 12) + " > 0")
    long = table
    for k in range(40):
        long = long.derive(**{f"b{k}": "i"})
    with pytest.raises(xp.InvalidValue, match="at most 40"):
        long.where("i > 0")
    with pytest.raises(xp.InvalidValue, match="at most 40"):
        long.derive(c="i")
    assert table.where(" OR ".join(f"i = {k}" for k in range(60))).count().exact() == 60
    for deep in (
        "(" * 4000 + "i" + ")" * 4000 + " > 1",
        "||".join(["s"] * 2000) + " = s",
        "+".join("i" * 4000) + " > 0",
        "NOT " * 500 + "i > 0",
        "- " * 500 + "i > 0",
    ):
        with pytest.raises(xp.InvalidValue, match="nested too deeply"):
            table.where(deep)
