"""One suite that every engine behind a private table passes: add a way of making a table to ``ENGINES``.

Nothing in the data makes an answer fail, and answers follow the stated rules for it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import expost as xp
from every_question import EVERY
from expost.errors import EngineFailed, InvalidValue
from soak import SOAK, some
from spark_session import WHY_NOT, session

TYPES = {"person": "VARCHAR", "city": "VARCHAR", "n": "BIGINT", "x": "DOUBLE"}
Rows = list[tuple[Any, Any, Any, Any]]
Read = Callable[..., xp.PrivateTable]

NAN, INF = float("nan"), float("inf")
LONG = "é" * 100_000
EXTREMES: Rows = [
    ("p", "a", 2**63 - 1, NAN),
    ("p", "a", -(2**63), INF),
    ("q", "b", 0, -INF),
    ("q", None, None, None),
    ("r", "it's; DROP TABLE t --", 1, -0.0),
    ("r", "a", 1, 0.0),
    (None, "a", 1, 1e308),
    ("s", LONG, 5, 5e-324),
    ("s", "", 6, -1e308),
]


def filled(rows: Rows, path: str = ":memory:") -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(path)
    connection.execute(f"CREATE TABLE t ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})")
    if rows:
        lists = ", ".join(f"unnest(?::{kind}[])" for kind in TYPES.values())
        connection.execute(f"INSERT INTO t SELECT {lists}", [list(column) for column in zip(*rows, strict=True)])
    return connection


def of_connection(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    return xp.read(filled(rows), table="t", **said)


def of_database(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    path = folder / f"{len(list(folder.iterdir()))}.duckdb"
    filled(rows, str(path)).close()
    return xp.read(path, table="t", **said)


def of_parquet(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    filled(rows).execute(f"COPY t TO '{folder}/t.parquet' (FORMAT parquet)")
    return xp.read(folder / "t.parquet", **said)


def of_csv(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    filled(rows).execute(f"COPY t TO '{folder}/t.csv' (HEADER, FORCE_QUOTE (city))")
    return xp.read(folder / "t.csv", schema=TYPES, **said)


def of_folder(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    made = folder / f"{len(list(folder.iterdir()))}"
    for place, half in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
        (made / f"part={place}").mkdir(parents=True)
        filled(half).execute(f"COPY t TO '{made}/part={place}/t.parquet' (FORMAT parquet)")
    return xp.read(made, **said)


def as_arrow(rows: Rows) -> pa.Table:
    kinds = [pa.string(), pa.string(), pa.int64(), pa.float64()]
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    return pa.table(
        {name: pa.array(list(values), kind) for name, kind, values in zip(TYPES, kinds, columns, strict=True)}
    )


def of_arrow(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    return xp.read(as_arrow(rows), **said)


def of_batches(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    table = as_arrow(rows)
    return xp.read(pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=3)), **said)


def of_pandas(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    return xp.read(as_arrow(rows).to_pandas(types_mapper=pd.ArrowDtype), **said)


def of_objects(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    return xp.read(pd.DataFrame(rows, columns=list(TYPES), dtype=object), schema=TYPES, **said)


def of_polars(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    return xp.read(pl.from_arrow(as_arrow(rows)), **said)


def of_lazy(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    return xp.read(pl.DataFrame(pl.from_arrow(as_arrow(rows))).lazy(), **said)


def of_relation(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    return xp.read(filled(rows).table("t"), **said)


def of_spark(rows: Rows, folder: Path, **said: Any) -> xp.PrivateTable:
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(as_arrow(rows), path)
    return xp.read(session().read.parquet(str(path)), **said)


ENGINES = {
    "connection": of_connection,
    "database": of_database,
    "parquet": of_parquet,
    "folder": of_folder,
    "csv": of_csv,
    "arrow": of_arrow,
    "batches": of_batches,
    "pandas": of_pandas,
    "objects": of_objects,
    "polars": of_polars,
    "lazy": of_lazy,
    "relation": of_relation,
    "spark": of_spark,
}
ON_ALL = ("extreme_values_follow_the_rules", "nobodys_rows_are_left_out", "columns", "no_marker_is_told")
"""What an ordinary run tries on all, and the rest on one in three that are read by DuckDB; ``make soak`` tries all."""
WITHOUT_JAVA = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    here = SOAK or metafunc.function.__name__.removeprefix("test_") in ON_ALL
    names = [name for name in ENGINES if name != "spark"][:: 1 if here else 3]
    metafunc.parametrize("read", [*names, *[pytest.param("spark", marks=WITHOUT_JAVA)] * bool(here)], indirect=True)


@pytest.fixture
def read(request: pytest.FixtureRequest, tmp_path: Path) -> Read:
    def make(rows: Rows, unit: Any = "row", neighbours: str = "add-remove") -> xp.PrivateTable:
        made: xp.PrivateTable = ENGINES[request.param](rows, tmp_path, unit=unit, neighbours=neighbours, key=5)
        return made

    return make


def counts(question: Any) -> dict[Any, int]:
    named: dict[Any, int] = question.present(question.exact())
    return named


def test_schema(read: Read) -> None:
    assert read([]).schema == {"person": "text", "city": "text", "n": "integer", "x": "number"}


def test_extreme_values_follow_the_rules(read: Read) -> None:
    table = read(EXTREMES)
    assert table.count().exact() == 9
    assert table.where("x > 1").count().exact() == 3  # NaN is above all
    assert table.where("x >= 0 AND x <= 1").count().exact() == 3  # −0.0 is 0.0
    assert table.sum("x", bounds=(-1, 1), grid=0.25).exact() == (1 - 1 + 0 + 0 + 1 + 0 - 1) * 4
    assert table.sum("x", bounds=(-1, 1), missing=0.5, grid=0.25).exact() == (0 + 0.5 + 0.5) * 4
    assert table.sum("n", bounds=(-10, 10)).exact() == 10 - 10 + 0 + 1 + 1 + 1 + 5 + 6
    assert counts(table.histogram("x", bins=[-1, 0, 1])) == {"[-1, 0)": 0, "[0, 1)": 3, "other": 6}
    assert counts(table.histogram("x", bins=2, bounds=(-1, 1))) == {"[-1, 0)": 0, "[0, 1)": 3, "other": 6}


UNCOMPUTABLE = {
    "n + n": 3,  # overflows for the two ends of the range, and NULL
    "n * n": 3,
    "-n": 2,
    "n // (n * 0)": 9,
    "abs(n)": 2,
    "CAST(city AS INTEGER)": 9,
    "CAST(x AS INTEGER)": 6,
    "x / (n * 0)": 9,
    "sqrt(x)": 3,  # of NULL, and of what is below 0
    "CAST(city AS DATE) > DATE '2020-01-01'": 9,
}


def test_what_cannot_be_computed_is_null(read: Read) -> None:
    table = read(EXTREMES)
    nulls = {y: table.derive(y=y).where("y IS NULL").count().exact() for y in UNCOMPUTABLE}
    assert nulls == UNCOMPUTABLE


def test_conditions_on_whole_numbers(read: Read) -> None:
    table = read(EXTREMES)
    found = {
        "n >= 1": 6,
        "n > -1 AND n < 100": 6,
        "NOT (n = 1)": 5,
        "n IN (1, 5) OR n IS NULL": 5,
        "n BETWEEN -3 AND 3": 4,
        "n <> 1 AND person IS NOT NULL": 5,
    }
    assert {condition: table.where(condition).count().exact() for condition in found} == found


def test_floats_never_fail(read: Read) -> None:
    table = read(EXTREMES)
    for expression in ("sqrt(x)", "x / n", "x * x * x", "round(x, 3)", "CAST(x AS INTEGER) % n"):
        assert abs(table.sum(expression, bounds=(-1, 1), grid=1).exact()) <= 9


HOSTILE: Rows = [
    *EXTREMES,
    ("p", "1", 1, 1.5),
    ("q", "17", 2, -2.0),
    ("t", "9" * 30, 7, 0.5),
    ("t", "(", -3, 1e18),
]
NULL_THEN_LOGIC = {
    "CAST(city AS INT) + CAST(city AS INT)": 34,
    "CASE WHEN n + n > 0 THEN n + n ELSE 0 END": 36,
    "CASE WHEN city IS NULL THEN 0 WHEN CAST(city AS INT) IN (1, 2, 3, 4, 5, 6, 7, 8, 17) THEN 1 ELSE 2 END": 20,
    "abs(n) * 2 + abs(n)": 63,
}


def test_null_stands_where_nothing_is_computed(read: Read) -> None:
    """What is around it goes on from there, in three-valued logic."""
    table = read([row for row in HOSTILE if row[1] != ""])  # CSV cannot tell an empty field from NULL
    assert {y: table.sum(y, bounds=(0, 32)).exact() for y in NULL_THEN_LOGIC} == NULL_THEN_LOGIC
    among = "CAST(city AS INT) IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)"
    assert table.where(among).count().exact() == 1
    assert counts(table.histogram("city IN ('1', '17')", keys=[True, False])) == {True: 2, False: 9, "other": 1}


def test_keys(read: Read) -> None:
    table = read(EXTREMES)
    keys = ["a", "empty", "", "it's; DROP TABLE t --", LONG]
    # CSV cannot tell an empty field from NULL, unless it is quoted
    found = counts(table.histogram("city", keys=keys))
    assert (found["a"], found["empty"], found["it's; DROP TABLE t --"]) == (4, 0, 1)
    assert sum(found.values()) == 9
    assert found[LONG] + found["other"] + found[""] == 4
    assert counts(table.histogram("n", keys=[1, 2**63 - 1, 77])) == {1: 3, 2**63 - 1: 1, 77: 0, "other": 5}
    assert counts(table.histogram("n * 1", keys=[1, -(2**63), 2**63 - 1], other=None))[1] == 3
    assert counts(table.histogram("n = 1", keys=[True], other=None)) == {True: 3}
    assert table.count().exact() == 9  # still there


def test_nobodys_rows_are_left_out(read: Read) -> None:
    table = read(EXTREMES, unit=xp.Unit("person", rows=2))
    assert table.count().exact() == 8
    assert table.count(of="units").exact() == 4
    assert sum(counts(table.histogram("city", keys=["a"])).values()) == 8
    nobody = read([], unit=xp.Unit("person", rows=2))
    assert nobody.count().exact() == 0
    assert nobody.sum("n", bounds=(0, 1)).exact() == 0
    assert counts(nobody.histogram("city", keys=["a"])) == {"a": 0, "other": 0}
    assert nobody.discover("city").exact() == []
    mean = nobody.mean("n", bounds=(0, 1)).mechanism(epsilon=1)
    assert 0 <= mean.answer_of(mean.sample(None, xp.SeededNoise(1)), None) <= 1


def test_duplicates_and_bounds(read: Read) -> None:
    rows: Rows = [("p", "a", 1, 1.0)] * 7 + [("p", "b", 2, 2.0)] * 3 + [("q", "a", 3, 3.0)]
    table = read(rows, unit=xp.Unit("person", rows=4, groups=1))
    assert table.count().exact() == 5
    by_rows = counts(table.histogram("city", keys=["a", "b"]))
    assert by_rows in ({"a": 5, "b": 0, "other": 0}, {"a": 1, "b": 3, "other": 0})
    by_units = counts(table.histogram("city", keys=["a", "b"], of="units"))
    assert by_units in ({"a": 2, "b": 0, "other": 0}, {"a": 1, "b": 1, "other": 0})
    assert sorted(table.discover("city", of="rows").exact()) in ([("a", 5)], [("a", 1), ("b", 3)])


def test_the_order_of_rows_does_not_matter(read: Read) -> None:
    rows: Rows = [(f"p{i % 7}", "abcde"[i * i % 5], i, i / 8) for i in range(200)]
    first, second = (read(order, unit=xp.Unit("person", rows=5, groups=2)) for order in (rows, rows[::-1]))
    for ask in (
        lambda t: t.histogram("city", keys=["a", "b"]),
        lambda t: t.sum("x", bounds=(0, 20)),
        lambda t: t.where("n > 20").histogram("n", bins=10, bounds=(0, 200), of="units"),
    ):
        assert np.array_equal(ask(first).exact(), ask(second).exact())


def test_rows_are_kept_evenly(read: Read) -> None:
    """Of 9 rows that say 0 and 1 that says 1, one row is kept: a tenth of the units keep the 1."""
    rows: Rows = [(f"p{i}", "a", int(j == 0), 0.0) for i in range(2000) for j in range(10)]
    kept = read(rows, unit=xp.Unit("person", rows=1)).sum("n", bounds=(0, 1)).exact()
    assert 200 - 5 * 13.5 < kept < 200 + 5 * 13.5  # five standard deviations


def test_columns(read: Read) -> None:
    table = read(EXTREMES, neighbours="substitute")
    if not table.ordered:
        with pytest.raises(InvalidValue, match="have no order"):
            table.column("x")
        return
    column = table.column("x")
    assert column.shape == (9,)
    expected = [NAN, INF, -INF, NAN, -0.0, 0.0, 1e308, 5e-324, -1e308]
    assert np.array_equal(np.asarray(column), expected, equal_nan=True)
    both = np.asarray(table.column("n", "x"))
    assert both.shape == (9, 2)
    assert both[8].tolist() == [6.0, -1e308]
    one_each = read(EXTREMES, unit=xp.Unit("person", rows=1), neighbours="substitute").column("n")
    assert np.asarray(one_each).shape == (4,)
    assert np.all(np.diff(np.asarray(one_each)[:3]) >= 0)


def test_sums_do_not_overflow(read: Read) -> None:
    rows: Rows = [("p", "a", 2**62, 1e308)] * 100
    table = read(rows)
    assert table.sum("x", bounds=(0, 2.0**100), grid=2.0**50).exact() == 100 * 2**50
    assert table.sum("n", bounds=(0, 2**52)).exact() == 100 * 2**52
    wide = read([("p", "a", 1, 1.0)] * 1000).sum("n * 4503599627370496", bounds=(0, 2**52))
    assert wide.exact() == 2**60  # clamped, not wrapped


MARK = "zebra-7f3a"


def test_no_marker_is_told(
    read: Read, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, request: pytest.FixtureRequest
) -> None:
    """While every question runs, a marker that is in all texts of the data is found nowhere."""
    slow = "spark" in request.node.name
    rows: Rows = [(f"{MARK}-{i}", f"{MARK}-{i}", i, i / 2) for i in range(5)]
    table = read(rows, unit=xp.Unit("person", rows=2, groups=2))
    ledger, told = xp.Ledger(epsilon=1000, delta=0.01), []
    for name in some(list(EVERY), 3) if slow else EVERY:
        mechanism = EVERY[name](table)
        release = ledger.run(mechanism)
        told += [f"{mechanism!r} {release} {release!r} {release.value}"]
    told += [*capfd.readouterr(), caplog.text]
    failing = "raise_error(city)" if slow else "error(city)"
    with pytest.raises(EngineFailed) as failed:  # a query that we never make
        table.engine.fetch(f"SELECT {failing} FROM {table.engine.source}")
    told += [f"{error!s} {error!r}" for error in (failed.value, failed.value.__context__, failed.value.__cause__)]
    told += [repr(table), str(table), repr(ledger), "".join(map(repr, ledger.entries()))]
    assert MARK not in "".join(told)
