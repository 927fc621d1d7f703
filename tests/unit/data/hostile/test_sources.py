"""Which table is asked, and what is said when an engine fails."""

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import expost as xp
import expost.data
from expost.data.duckdb import DuckDB


def test_whatever_fails_in_an_engine_is_kept_back(table: xp.PrivateTable) -> None:
    def read(_: Any) -> Any:
        raise UnicodeError("Xanthippe")

    assert isinstance(table.engine, DuckDB)
    with pytest.raises(xp.errors.EngineFailed) as failed:
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
            ledger.run(ask().mechanism(epsilon=1))
    assert ledger.remaining == ledger.limit


def test_bins_narrower_than_floats(table: xp.PrivateTable) -> None:
    with pytest.raises(xp.InvalidValue, match="too narrow"):
        table.histogram("d", bins=7, bounds=(0, 5e-324))


def test_a_plan_is_bound_before_the_charge(connection: duckdb.DuckDBPyConnection, table: xp.PrivateTable) -> None:
    asked, ledger = table.sum("i", bounds=(0, 1)).mechanism(epsilon=1), xp.Ledger(epsilon=1)
    connection.execute("ALTER TABLE t DROP i")
    with pytest.raises(xp.InvalidValue, match='"i" not found'):
        ledger.run(asked)
    assert ledger.remaining == ledger.limit


def test_a_plan_is_bound_each_time(connection: duckdb.DuckDBPyConnection, table: xp.PrivateTable) -> None:
    ledger = xp.Ledger(epsilon=2)
    ledger.run(table.sum("i", bounds=(0, 1)).mechanism(epsilon=1))
    asked = table.sum("i", bounds=(0, 1))
    connection.execute("ALTER TABLE t DROP i")
    with pytest.raises(xp.InvalidValue, match='"i" not found'):
        ledger.run(asked.mechanism(epsilon=1))
    assert ledger.remaining == xp.Cost(1)


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
        first = ledger.run(table.count().mechanism(epsilon=1), key="k")
        assert ledger.run(again.count().mechanism(epsilon=1), key="k") == first
        with pytest.raises(xp.errors.KeyConflict):
            ledger.run(other.count().mechanism(epsilon=1), key="k")


def test_tables_have_schemas(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        'CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 1 AS n; CREATE TABLE "a.b" AS SELECT 1 AS n'
    )
    for name, rows in (("main.t", 100), ("memory.main.t", 100), ("other.t", 1), ("a.b", 1)):
        assert xp.read(connection, table=name, unit="row", neighbours="add-remove").count().exact() == rows


def test_names_are_text(table: xp.PrivateTable, connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(xp.InvalidValue, match="not empty"):
        table.derive(**{"": "1"})
    with pytest.raises(xp.InvalidValue, match="the name of a table"):
        xp.read(connection, table="\ud800", unit="row", neighbours="add-remove")
    with pytest.raises(xp.InvalidValue, match="at most 10000 keys"):
        table.histogram("i", keys=range(10_001))
    assert table.histogram("p", keys=[f"p{i}" for i in range(600)]).exact().sum() == 100


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


COMPUTED = [
    "SELECT p, CAST(s AS INTEGER) AS i FROM t",
    "SELECT * FROM t WHERE CAST(s AS INTEGER) > 0",
    "SELECT sqrt(d - 50) AS i FROM t",
    "SELECT as_number(s) AS i FROM t",
    "SELECT * FROM (SELECT CAST(s AS INTEGER) AS i FROM t)",
    "SELECT i AS rowid, s FROM t",
    "SELECT * FROM plain",
]


@pytest.mark.parametrize("query", COMPUTED)
@pytest.mark.parametrize("temporary", ["", "TEMP"])
def test_views_are_refused(connection: duckdb.DuckDBPyConnection, query: str, temporary: str) -> None:
    """What they compute failed for some values. A copy of what they say is read, and made once."""
    connection.execute("CREATE MACRO as_number(x) AS CAST(x AS INTEGER); CREATE VIEW plain AS SELECT * FROM t")
    connection.execute(f"CREATE {temporary} VIEW over AS {query}")
    with pytest.raises(xp.InvalidValue, match=r"is not a table but a view.*connection\.sql"):
        xp.read(connection, table="over", unit="row", neighbours="add-remove")
    assert xp.read(connection.sql("FROM plain"), unit="row", neighbours="add-remove").count().exact() == 100


def test_what_a_relation_computes_fails_when_it_is_read(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(xp.errors.EngineFailed) as failed:
        xp.read(connection.sql(COMPUTED[0]), unit="row", neighbours="add-remove")
    assert "Could not convert" not in str(failed.value)


def test_generated_columns_are_refused(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE made (s VARCHAR, i INTEGER GENERATED ALWAYS AS (CAST(s AS INTEGER)) VIRTUAL)")
    connection.execute("CREATE SCHEMA other; CREATE TABLE other.made AS SELECT 1 AS i")
    with pytest.raises(xp.InvalidValue, match="'made' computes 'i' whenever it is read"):
        xp.read(connection, table="made", unit="row", neighbours="add-remove")
    assert xp.read(connection, table="other.made", unit="row", neighbours="add-remove").count().exact() == 1


def test_a_table_is_found_beside_a_view_of_its_name(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE SCHEMA other; CREATE VIEW other.t AS SELECT 1 AS n")
    assert xp.read(connection, table="T", unit="row", neighbours="add-remove").count().exact() == 100
    with pytest.raises(xp.InvalidValue, match="but a view"):
        xp.read(connection, table="other.t", unit="row", neighbours="add-remove")
