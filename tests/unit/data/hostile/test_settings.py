"""What a database might be set to: collations, macros and settings change no guarantee."""

import itertools
import re
from typing import Any

import duckdb
import numpy as np
import pytest

import expost as xp
import expost.data
from duck import OTHERS
from soak import SOAK


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
    with pytest.raises(xp.errors.EngineFailed):
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
