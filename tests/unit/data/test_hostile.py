"""What an analyst might write, what a database might be set to, what a file might hold: refused, or harmless."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import expost as xp
import expost.data
from expost.data.duckdb import DuckDB
from expost.data.expression import operators
from soak import SOAK

OTHERS = "(select max(i) from t)"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as made:
        made.execute("CREATE TABLE t (p VARCHAR, s VARCHAR, i BIGINT, d DOUBLE, dt DATE, ts TIMESTAMP)")
        made.execute("INSERT INTO t SELECT 'p' || k, 's', k, k, DATE '2020-01-01', '2020-01-01' FROM range(100) r(k)")
        yield made


@pytest.fixture
def table(connection: duckdb.DuckDBPyConnection) -> xp.PrivateTable:
    return xp.read(connection, table="t", unit="row", neighbours="add-remove")


# ---- words that are not what they seem


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


# ---- much of little


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


# ---- settings of a database


def test_a_users_settings_are_put_back(connection: duckdb.DuckDBPyConnection, table: xp.PrivateTable) -> None:
    def setting(name: str) -> Any:
        return connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0]

    connection.execute("SET disabled_optimizers = 'filter_pushdown'")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET default_collation = 'nocase'")
    assert table.sum("CAST(s AS INT) + CAST(s AS INT)", bounds=(0, 9)).exact() == 0
    assert table.where("s = 'S'").count().exact() == 0
    assert setting("disabled_optimizers") == "filter_pushdown"
    assert setting("default_collation") == "nocase"
    assert setting("preserve_insertion_order") is False
    connection.execute("DROP TABLE t")
    with pytest.raises(xp.EngineFailed):
        table.engine.fetch("SELECT count(*) FROM t")
    assert setting("disabled_optimizers") == "filter_pushdown"


def test_locked_settings_are_refused_or_right(connection: duckdb.DuckDBPyConnection) -> None:
    with duckdb.connect() as locked:
        locked.execute("CREATE TABLE t AS SELECT 1 AS n")
        locked.execute("SET lock_configuration = true")
        with pytest.raises(xp.InvalidValue, match="before locking them, run SET disabled_optimizers"):
            xp.read(locked, table="t", unit="row", neighbours="add-remove")
    off = "in_clause,filter_pushdown,statistics_propagation,top_n,common_subexpressions"
    connection.execute(f"SET disabled_optimizers = '{off}'")
    connection.execute("SET lock_configuration = true")
    assert xp.read(connection, table="t", unit="row", neighbours="add-remove").count().exact() == 100


def test_columns_keep_their_order(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE long AS SELECT i, i * 2 AS j FROM range(500000) r(i)")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute("SET threads = 4")
    both = np.asarray(xp.read(connection, table="long", unit="row", neighbours="substitute").column("i", "j"))
    assert np.array_equal(both[:, 0], np.arange(500000))
    assert np.array_equal(both[:, 1], 2 * np.arange(500000))


MACROS = [
    f"lower(a) AS {OTHERS}",
    "count_star() AS 77",
    "sum(a) AS 77",
    '"+"(a, b) AS 77',
    "hash(a, b, c) AS 7",
    "encode(a) AS 'x'::BLOB",
    "floor(a) AS 3",
]


def test_macros_do_not_stand_for_functions(connection: duckdb.DuckDBPyConnection, table: xp.PrivateTable) -> None:
    def asked(some: xp.PrivateTable) -> list[Any]:
        return [
            some.count(),
            some.where("lower(p) = 'p7' AND i + 1 = 8").count(),
            some.sum("i", bounds=(0, 9)),
            some.histogram("d", bins=3, bounds=(0, 9)),
            some.discover("p", of="rows"),
        ]

    people = xp.read(connection, table="t", unit=xp.Unit("p", rows=1), neighbours="add-remove", key=1)
    before, planned = [], []
    for some in (table, people):
        planned += asked(some)
        before += [str(question.exact()) for question in asked(some)]
    for macro in MACROS:
        connection.execute(f"CREATE MACRO {macro}")
    assert connection.execute("SELECT count(*) FROM t").fetchall()[0] == (77,)  # they do stand for functions elsewhere
    assert [str(question.exact()) for question in planned] == before
    again = xp.read(connection, table="main.t", unit="row", neighbours="add-remove")
    assert [str(question.exact()) for question in asked(again)] == before[:5]


def test_macros_beside_temporary_tables_are_refused(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TEMP TABLE hidden AS SELECT 'A' AS s")
    connection.execute("CREATE MACRO mine(a) AS a + 1")
    table = xp.read(connection, table="hidden", unit="row", neighbours="add-remove")
    asked = table.where("lower(s) = 'a'").count()
    assert asked.exact() == 1
    connection.execute(f"CREATE TEMP MACRO lower(a) AS {OTHERS}")
    with pytest.raises(xp.InvalidValue, match=re.escape("(lower)")):
        asked.exact()
    with pytest.raises(xp.InvalidValue, match=re.escape("(lower)")):
        xp.read(connection, table="hidden", unit="row", neighbours="add-remove")


def test_a_table_is_found_where_its_connection_stands(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE SCHEMA other; CREATE TABLE other.u AS SELECT 1 AS n; ATTACH ':memory:' AS third")
    connection.execute("CREATE TABLE third.w AS SELECT 1 AS n; USE other")
    for name in ("u", "other.u", "memory.other.u", "third.w", "third.main.w"):
        assert xp.read(connection, table=name, unit="row", neighbours="add-remove").count().exact() == 1
    connection.execute("BEGIN; CREATE TABLE fresh AS SELECT 1 AS n")
    assert xp.read(connection, table="fresh", unit="row", neighbours="add-remove").count().exact() == 1


COLLATED = {
    "column": ("VARCHAR COLLATE NOCASE", ""),
    "default": ("VARCHAR", "SET default_collation = 'nocase'"),
}


@pytest.mark.parametrize("how", COLLATED)
def test_collations_join_no_keys(connection: duckdb.DuckDBPyConnection, how: str) -> None:
    kind, setting = COLLATED[how]
    connection.execute(f"CREATE TABLE c (p VARCHAR, s {kind})")
    connection.execute("INSERT INTO c VALUES ('a', 'rOmE'), ('b', 'Rome'), ('c', 'Rome'), ('d', 'Oslo')")
    connection.execute(setting)
    table = xp.read(connection, table="c", unit="row", neighbours="add-remove")
    assert table.histogram("s", keys=["Rome", "ROME"]).exact().tolist() == [2, 0, 2]
    assert table.histogram("s", keys=[*map(str, range(50)), "Rome"]).exact().tolist() == [0] * 50 + [2, 2]
    assert sorted(table.discover("s", of="rows").exact()) == [("Oslo", 1), ("Rome", 2), ("rOmE", 1)]


@pytest.mark.parametrize("how", COLLATED)
def test_collations_join_no_units(connection: duckdb.DuckDBPyConnection, how: str) -> None:
    kind, setting = COLLATED[how]
    connection.execute(f"CREATE TABLE c (p {kind}, i INT)")
    connection.execute(setting)
    for key in range(6 if SOAK else 2):
        found = set()
        for rows in itertools.permutations([("a", 1), ("A", 1), ("a", 2), ("A", 2)]):
            connection.execute("DELETE FROM c")
            connection.execute(f"INSERT INTO c VALUES {', '.join(map(str, rows))}")
            table = xp.read(connection, table="c", unit=xp.Unit("p", rows=1), neighbours="add-remove", key=key)
            assert table.count(of="units").exact() == table.count().exact() == 2
            found.add(tuple(table.histogram("i", keys=[1, 2]).exact()))
        assert len(found) == 1


# ---- failures


def test_whatever_fails_in_an_engine_is_kept_back(table: xp.PrivateTable) -> None:
    def read(_: Any) -> Any:
        raise UnicodeError("Xanthippe")

    assert isinstance(table.engine, DuckDB)
    with pytest.raises(xp.EngineFailed) as failed:
        table.engine._run("SELECT 1", read)
    assert "Xanthippe" not in str(failed.value) + repr(failed.value.__context__) + repr(failed.value.__cause__)


def test_text_that_cannot_be_written_is_free(table: xp.PrivateTable) -> None:
    ledger = xp.Ledger(epsilon=1)
    ask: Any
    for ask in (
        lambda: table.histogram("s", keys=["\ud800"]),
        lambda: table.histogram("s", keys=["a\0b"]),
        lambda: table.where("s = '\ud800'").count(),
        lambda: table.derive(**{"a\ud800": "1"}).count(),
    ):
        with pytest.raises(xp.InvalidValue, match="UTF-8"):
            ledger.run(ask().laplace(epsilon=1))
    assert ledger.remaining == ledger.limit


def test_bins_narrower_than_floats(table: xp.PrivateTable) -> None:
    with pytest.raises(xp.InvalidValue, match="too narrow"):
        table.histogram("d", bins=7, bounds=(0, 5e-324))


def test_a_plan_is_bound_before_the_charge(connection: duckdb.DuckDBPyConnection, table: xp.PrivateTable) -> None:
    asked, ledger = table.sum("i", bounds=(0, 1)).laplace(epsilon=1), xp.Ledger(epsilon=1)
    connection.execute("ALTER TABLE t DROP i")
    with pytest.raises(xp.InvalidValue, match='"i" not found'):
        ledger.run(asked)
    assert ledger.remaining == ledger.limit


def test_a_plan_is_bound_each_time(connection: duckdb.DuckDBPyConnection, table: xp.PrivateTable) -> None:
    ledger = xp.Ledger(epsilon=2)
    ledger.run(table.sum("i", bounds=(0, 1)).laplace(epsilon=1))
    asked = table.sum("i", bounds=(0, 1))
    connection.execute("ALTER TABLE t DROP i")
    with pytest.raises(xp.InvalidValue, match='"i" not found'):
        ledger.run(asked.laplace(epsilon=1))
    assert ledger.remaining == xp.Cost(1)


# ---- which table


def test_tables_of_the_same_name_differ(connection: duckdb.DuckDBPyConnection, table: xp.PrivateTable) -> None:
    with duckdb.connect() as another:
        another.execute(
            "CREATE TABLE t AS SELECT 'p' AS p, 's' AS s, 1::BIGINT AS i, 1.0::DOUBLE AS d, NULL::DATE AS dt"
        )
        another.execute("ALTER TABLE t ADD ts TIMESTAMP")
        other = xp.read(another, table="t", unit="row", neighbours="add-remove")
        assert other.schema == table.schema
        assert other != table
        again = xp.read(connection, table="t", unit="row", neighbours="add-remove")
        assert again == table
        assert hash(again) == hash(table)
        ledger = xp.Ledger(epsilon=2)
        first = ledger.run(table.count().laplace(epsilon=1), key="k")
        assert ledger.run(again.count().laplace(epsilon=1), key="k") == first
        with pytest.raises(xp.KeyConflict):
            ledger.run(other.count().laplace(epsilon=1), key="k")


def test_tables_have_schemas(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        'CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 1 AS n; CREATE TABLE "a.b" AS SELECT 1 AS n'
    )
    for name, rows in (("main.t", 100), ("memory.main.t", 100), ("other.t", 1), ("a.b", 1)):
        assert xp.read(connection, table=name, unit="row", neighbours="add-remove").count().exact() == rows


# ---- files


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("p,n\na,1\n")
    (tmp_path / "2.csv").write_text("n,p\n5,b\n")
    with pytest.raises(xp.InvalidValue, match="in the same order"):
        xp.read(tmp_path / "[12].csv", unit="row", neighbours="add-remove")
    with pytest.raises(xp.InvalidValue, match="in the same order"):
        xp.read(tmp_path / "*.csv", unit="row", neighbours="add-remove", schema={"p": "text", "n": "integer"})


def test_parquet_files_with_other_types_are_refused(tmp_path: Path) -> None:
    """They would be cast, and a cast may fail for what stands there."""

    def both(first: str, second: str) -> xp.PrivateTable:
        for name, columns in (("1", first), ("2", second)):
            duckdb.sql(f"COPY (SELECT {columns}) TO '{tmp_path}/{name}.parquet'")
        return xp.read(tmp_path / "*.parquet", unit="row", neighbours="add-remove")

    for second in (
        "(2::BIGINT ** 40)::BIGINT AS n, 'a' AS s",
        "'x' AS n, 'a' AS s",
        "1 AS n",
        "1 AS n, 'a' AS s, 2 AS m",
    ):
        with pytest.raises(xp.InvalidValue, match=r"2\.parquet has other columns than .*1\.parquet"):
            both("1 AS n, 'a' AS s", second)
    assert both("1 AS n, 'a' AS s", "'b' AS s, 2 AS n").sum("n", bounds=(0, 9)).exact() == 3


def test_bytes_that_are_no_text_fail_nothing(tmp_path: Path) -> None:
    """In a column of text that a Parquet file says is UTF-8: they are question marks, whatever the other rows are."""
    file = tmp_path / "latin.parquet"
    for others in ([], ["aaa"], ["zzz"]):
        rows = ", ".join(f"('{name}', 1)" for name in ["caf@@", *others])
        duckdb.sql(
            f"COPY (SELECT * FROM (VALUES {rows}) t(s, i)) TO '{file}' (FORMAT parquet, COMPRESSION uncompressed)"
        )
        file.write_bytes(file.read_bytes().replace(b"caf@@", b"caf\xe9\xff"))
        table = xp.read(file, unit="row", neighbours="add-remove")
        assert ("caf??", 1) in table.discover("s").exact()
        assert table.histogram("s", keys=["caf??"], other=None).exact().tolist() == [1]
        assert table.where("regexp_matches(s, 'f[?]{2}$')").count().exact() == 1
        for condition in (
            "s = 'caf??'",
            "s LIKE 'caf?%'",
            "s < 'cafZ' AND s > 'b'",
            "length(s) = 5",
            "lower(s) = 'caf??'",
        ):
            assert table.where(condition).count().exact() == 1
        people = xp.read(file, unit=xp.Unit("s", rows=1), neighbours="add-remove")
        assert people.count().exact() == 1 + len(others)


def test_every_line_of_csv_is_a_row(tmp_path: Path) -> None:
    """A quotation mark that is never closed once took all lines behind it into its row."""
    file = tmp_path / "typed.csv"
    rows = [f"p{i},{i}" for i in range(1000)]

    def counted(*more: str, **said: Any) -> int:
        file.write_text("\n".join(["p,n", *rows[:500], *more, *rows[500:]]) + "\n")
        table = xp.read(file, unit="row", neighbours="add-remove", schema={"n": "integer"}, **said)
        return table.where("n IS NOT NULL OR p IS NOT NULL").count().exact()

    for odd in ('"b,2', 'b","2', '"', '"""', 'x,"', ',,,"', 'a"b"c,3', '"a""b,1', "'x,4"):
        for quote in ({}, {"quote": ""}, {"quote": "'"}):
            assert counted(odd, **quote) - counted(**quote) in (0, 1), odd


FIELDS = {
    "a,1": ("a", 1),
    '"a","1"': ("a", 1),
    '"a, b",2': ("a, b", 2),
    '"say ""x""",3': ('say "x"', 3),
    '"",4': (None, 4),
    ",5": (None, 5),
    '"open,6': ('"open', 6),
    'mid"dle,7': ('mid"dle', 7),
    '"x" y,8': ('"x" y', 8),
    "z,9,more": ("z", 9),
    "alone": ("alone", None),
    "é🙂,10": ("é🙂", 10),
    "b,1.5": ("b", None),
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_fields_of_csv(tmp_path: Path, end: str) -> None:
    file = tmp_path / "fields.csv"
    file.write_bytes((end.join(["p,n", *FIELDS, "", ""])).encode())
    table = xp.read(file, unit="row", neighbours="add-remove", schema={"n": "integer"})
    engine: Any = table.engine
    assert engine.fetch('SELECT p, n FROM "expost_source"') == list(FIELDS.values())


def test_many_columns_of_csv(tmp_path: Path) -> None:
    """Fields of many columns are cut out of a line all at once."""
    file = tmp_path / "wide.csv"
    names = ",".join(f"c{i}" for i in range(60))
    rows = [",".join(f"{i}" for i in range(60)), '"a, ""b""",' * 30 + '"open,' + ",".join(["x"] * 28), "short,2", '",']
    file.write_text("\n".join([names, *rows]) + "\n")
    table = xp.read(file, unit="row", neighbours="add-remove", schema={"c59": "integer", "c1": "integer"})
    assert table.count().exact() == 4
    assert table.sum("c59", bounds=(0, 99)).exact() == 59
    assert table.sum("c1", bounds=(0, 99)).exact() == 3
    assert sorted(table.discover("c29", of="rows").exact()) == [("29", 1), ('a, "b"', 1)]
    assert sorted(table.discover("c30", of="rows").exact()) == [('"open', 1), ("30", 1)]


def test_a_header_ends_with_its_line(tmp_path: Path) -> None:
    """A quotation mark that is not closed there once took rows into the names of columns, which are public."""
    file = tmp_path / "open.csv"
    file.write_text('a,"b\nalice,secret\nbob,"x\n')
    table = xp.read(file, unit="row", neighbours="add-remove")
    assert table.schema == {"a": "text", "b": "text"}
    assert table.count().exact() == 2


def test_names_are_text(table: xp.PrivateTable, connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(xp.InvalidValue, match="not empty"):
        table.derive(**{"": "1"})
    with pytest.raises(xp.InvalidValue, match="the name of a table"):
        xp.read(connection, table="\ud800", unit="row", neighbours="add-remove")
    with pytest.raises(xp.InvalidValue, match="at most 10000 keys"):
        table.histogram("i", keys=range(10_001))
    assert table.histogram("p", keys=[f"p{i}" for i in range(600)]).exact().sum() == 100


def test_forms_of_csv_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "some.csv"
    file.write_text("p;n\n'a;b';1\n")
    for match, wrong in (
        ("around fields", {"quote": "''"}),
        ("around fields", {"quote": 3}),
        ("between fields", {"delimiter": "; "}),
        ("between fields", {"delimiter": "\n"}),
        ("both the delimiter and the quotation mark", {"delimiter": '"'}),
    ):
        with pytest.raises(xp.InvalidValue, match=match):
            xp.read(file, unit="row", neighbours="add-remove", **wrong)
    with pytest.raises(xp.InvalidValue, match="are for CSV"):
        xp.read(tmp_path / "x.parquet", unit="row", neighbours="add-remove", quote="'")
    table = xp.read(file, unit="row", neighbours="add-remove", delimiter=";", quote="'")
    assert table.discover("p").exact() == [("a;b", 1)]
    file.write_text(",".join(f"c{i}" for i in range(1001)) + "\n")
    with pytest.raises(xp.InvalidValue, match="convert it to Parquet"):
        xp.read(file, unit="row", neighbours="add-remove")


# ---- frames


def test_frames_on_a_connection_are_refused(connection: duckdb.DuckDBPyConnection) -> None:
    """A lone surrogate in a pandas column failed every query: that its value is there must not show."""
    frame = pd.DataFrame({"s": pd.Series(["a", "b\ud800"], dtype=object), "n": [1, 2]})
    connection.register("frame", frame)
    with pytest.raises(xp.InvalidValue, match="CREATE TABLE visits AS SELECT"):
        xp.read(connection, table="frame", unit="row", neighbours="add-remove")
    connection.execute("CREATE VIEW over AS SELECT * FROM frame")
    with pytest.raises(xp.InvalidValue, match="reads a data frame or a file"):
        xp.read(connection, table="over", unit="row", neighbours="add-remove")
    connection.register("whole", frame[["n"]])
    connection.execute("CREATE TABLE visits AS SELECT * FROM whole")
    assert xp.read(connection, table="visits", unit="row", neighbours="add-remove").count().exact() == 2


def test_views_over_files_are_refused(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """One line that did not fit the type concluded from others failed every question."""
    (tmp_path / "n.csv").write_text("n,s\n1,a\n")
    connection.execute(f"COPY t TO '{tmp_path}/t.parquet' (FORMAT parquet)")
    for name, source in (("csv", f"read_csv('{tmp_path}/n.csv')"), ("parquet", f"'{tmp_path}/t.parquet'")):
        connection.execute(f"CREATE VIEW of_{name} AS SELECT * FROM {source}")
        with pytest.raises(xp.InvalidValue, match="path of the file"):
            xp.read(connection, table=f"of_{name}", unit="row", neighbours="add-remove")


def test_folders_are_no_columns(tmp_path: Path) -> None:
    """Their types were concluded from the names of all folders, and one person's changed everybody's values."""
    answers = []
    for days in (["2024-1-1", "2024-1-2"], ["2024-1-1", "2024-1-2", "unknown"]):
        for day in days:
            folder = tmp_path / f"{len(days)}" / f"day={day}"
            folder.mkdir(parents=True)
            duckdb.sql(f"COPY (SELECT 1 AS n FROM range(100)) TO '{folder}/a.parquet'")
            (folder / "a.csv").write_text("n\n1\n")
        table = xp.read(f"{tmp_path}/{len(days)}/*/a.parquet", unit="row", neighbours="add-remove")
        answers.append(table.schema)
        lines = xp.read(f"{tmp_path}/{len(days)}/*/a.csv", unit="row", neighbours="add-remove")
        assert lines.count().exact() == len(days)
    assert answers == [{"n": "integer"}, {"n": "integer"}]


def test_a_carriage_return_changes_no_other_line(tmp_path: Path) -> None:
    file = tmp_path / "cr.csv"
    for odd, rows in (("1,a\r\r\n2,b\r\n3,c\r\n", 3), ("1,a\r\n2,b\r3,c\r\n4,d\r\n", 4)):
        file.write_bytes(f"x,y\r\n{odd}".encode())
        table = xp.read(file, unit="row", neighbours="add-remove", schema={"x": "integer"})
        assert table.where("x IS NOT NULL").count().exact() == rows


def test_decimals_with_more_digits_than_their_type(tmp_path: Path) -> None:
    """Such a value in a file ended the whole database, and other questions failed without being charged."""
    file = tmp_path / "decimal.parquet"
    query = "SELECT 7777.77::DECIMAL(20, 2) AS x, i AS y FROM range(10) r(i)"
    duckdb.sql(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION uncompressed)")
    content, stored = file.read_bytes(), (777777).to_bytes(16, "big")
    table = xp.read(file, unit="row", neighbours="add-remove")
    assert table.where("x >= 0").count().exact() == 10
    assert stored in content
    file.write_bytes(content.replace(stored, b"\x80" + bytes(15)))
    table = xp.read(file, unit="row", neighbours="add-remove")
    assert table.where("x IS NULL").count().exact() == 10
    assert table.where("y >= 1").count().exact() == 9
