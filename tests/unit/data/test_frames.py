"""Data frames as private tables: by their types alone, whatever their values; and what is refused before a charge."""

import logging
from collections.abc import Callable
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest
from pyarrow.parquet import write_table as write_parquet

import expost as xp
from expost.data.expression.tree import Reference
from expost.errors import EngineFailed, InvalidValue

MARK = "zebra-7f3a"


def read(source: Any, **said: Any) -> xp.PrivateTable:
    return xp.read(source, **{"unit": "row", "neighbours": "add-remove", **said})


def values(table: xp.PrivateTable, column: str) -> list[Any]:
    """What stands in a column, and for text, what expressions read of it."""
    text = table.schema[column] == "text"
    shown = table.engine.render(Reference(column, "text")) if text else f'"{column}"'
    return [value for (value,) in table.engine.fetch(f"SELECT {shown} FROM {table.engine.source}")]


class Tripwire:
    """Fails if anything about it is looked at."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("__class__", "__module__"):
            return object.__getattribute__(self, name)
        raise AssertionError(f"{name} was looked at")


class Zone(tzinfo):
    """A time zone that fails."""

    def utcoffset(self, when: datetime | None) -> timedelta:
        raise RuntimeError(MARK)

    dst = utcoffset

    def tzname(self, when: datetime | None) -> str:
        raise RuntimeError(MARK)


OBJECTS = [
    None, True, 5, 2**70, 2.0, 2.5, float("nan"), float("inf"), Decimal("1.5"), Decimal("sNaN"), Fraction(1, 2), "a",
    "\ud800x", b"b", date(2020, 1, 1), datetime(2020, 1, 1, 2), datetime(1, 1, 1, tzinfo=Zone()), pd.NaT, pd.NA,
    np.int8(3), np.float32(0.5), np.bool_(False), [1], Tripwire(), pd.Timestamp("2021-05-05 01:00", tz="Europe/Rome"),
]  # fmt: skip
FITTING: dict[str, dict[int, Any]] = {
    "integer": {2: 5, 4: 2, 19: 3},
    "number": {2: 5.0, 3: 2.0**70, 4: 2.0, 5: 2.5, 7: float("inf"), 8: 1.5, 19: 3.0, 20: 0.5},
    "text": {11: "a", 12: "?x"},
    "boolean": {1: True, 21: False},
    "date": {14: date(2020, 1, 1), 15: date(2020, 1, 1), 24: date(2021, 5, 4)},
    "timestamp": {14: datetime(2020, 1, 1), 15: datetime(2020, 1, 1, 2), 24: datetime(2021, 5, 4, 23)},
}


@pytest.mark.parametrize("kind", FITTING)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_objects_that_do_not_fit_are_null(kind: str, library: str) -> None:
    frame: Any = pd.DataFrame({"o": pd.Series(OBJECTS, dtype=object)})
    if library == "polars":
        frame = pl.DataFrame({"o": pl.Series(OBJECTS, dtype=pl.Object)})
    found = values(read(frame, schema={"o": kind}), "o")
    fitting = {place: value for place, value in enumerate(found) if value is not None and value == value}
    assert fitting == FITTING[kind]


def uses_of_objects(frame: Any, table: xp.PrivateTable) -> tuple[Callable[[], Any], ...]:
    return (
        lambda: table.where("o = 'a'"),
        lambda: table.mean("o", bounds=(0, 1)),
        lambda: table.by("o", ["a"]),
        lambda: read(frame, unit=xp.Unit("o", rows=1)),
    )


def test_objects_without_a_declared_kind_are_not_looked_at() -> None:
    """Other columns can be asked about; whoever uses this one is told what to declare."""
    frames = [
        pd.DataFrame({"o": [Tripwire()], "n": [1]}),
        pl.DataFrame({"o": pl.Series([Tripwire()], dtype=pl.Object), "n": [1]}),
        pd.DataFrame({"o": pd.Categorical([1, "a"]), "n": [1, 2]}),
    ]
    for frame in frames:
        table = read(frame)
        assert dict(table.columns) == {"o": "other", "n": "integer"}
        assert table.count().exact() == len(frame)
        for use in uses_of_objects(frame, table):
            with pytest.raises(
                InvalidValue, match=r"column 'o' .*objects, say what it holds, as in schema=\{'o': 'text'"
            ):
                use()
    assert values(read(frames[2], schema={"o": "text"}), "o") == [None, "a"]


def broken_text(kind: Any) -> Any:
    """Texts of Arrow that are not UTF-8: it does not look."""
    texts = [b"ok", b"\xffa\xc3", "é".encode(), b"\xed\xa0\x80"]
    return (
        pa.array(texts, pa.binary()).view(kind)
        if kind != pa.large_string()
        else pa.array(texts, pa.large_binary()).view(kind)
    )


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_text_that_is_not_utf8_is_read_with_question_marks(kind: Any) -> None:
    text = broken_text(kind)
    table = read(pa.table({"s": text}))
    assert values(table, "s") == ["ok", "?a?", "é", "???"]
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), text)
    assert values(read(pa.table({"s": coded})), "s") == ["ok", "?a?", None, "?a?"]
    people = read(pa.table({"s": text}), unit=xp.Unit("s", rows=1))
    assert people.count(of="units").exact() == 4


def test_texts_that_look_alike_are_different_units() -> None:
    """What is a question mark in expressions is still the byte that it was for who is who."""
    names = [b"M\xfcller", b"M\xf6ller", b"M?ller", "M\U0010fbfcller".encode(), "M\ufffdller".encode(), b"x"]
    arrow = pa.table({"s": pa.array(names, pa.binary()).view(pa.string())})
    table = read(arrow, unit=xp.Unit("s", rows=1))
    assert table.count(of="units").exact() == len(names)
    assert values(table, "s") == ["M?ller"] * 3 + ["M????ller", "M\ufffdller", "x"]
    strings = ["M\udcfcller", "M\ud800ller", "M?ller", "M\U0010fbfcller", "M\ufffdller", "x"]
    objects = read(
        pd.DataFrame({"s": pd.Series(strings, dtype=object)}), schema={"s": "text"}, unit=xp.Unit("s", rows=1)
    )
    assert objects.count(of="units").exact() == len(strings)
    assert values(objects, "s") == values(table, "s")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_what_a_text_is_does_not_depend_on_others(kind: Any) -> None:
    """A character that looks like a mark is read the same way, whether another row is UTF-8 or not."""
    one = "\U0010ffff"
    for other in ("a", "\U0010f700", "é"):
        assert values(read(pa.table({"s": pa.array([one, other], kind)})), "s")[0] == "????"
    if kind == pa.string():
        broken = pa.array([one.encode(), b"\xff"], pa.binary()).view(kind)
        assert values(read(pa.table({"s": broken})), "s") == ["????", "?"]


ENDS = [-(2**63) + 1, -(10**18), 0, 1_600_000_000, 10**18, 2**63 - 1]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "Europe/Rome"])
def test_times_at_the_ends_of_their_type(unit: str, zone: str | None) -> None:
    times = pa.array(ENDS, pa.int64()).view(pa.timestamp(unit, zone))
    each = {"s": 10**6, "ms": 10**3, "us": 1, "ns": Fraction(1, 1000)}[unit]
    expected = []
    for end in ENDS:
        moved = end * each
        whole = int(abs(moved) + Fraction(1, 2)) * (1 if moved >= 0 else -1)
        inside = -62_135_596_800_000_000 <= whole <= 253_402_300_799_999_999
        expected.append(datetime(1970, 1, 1) + timedelta(microseconds=whole) if inside else None)
    table = read(pa.table({"t": times}))
    assert table.schema == {"t": "timestamp"}
    assert values(table, "t")[1:-1] == expected[1:-1]
    assert table.where("year(t) > 0 OR t IS NULL").count().exact() == len(ENDS)


def test_every_type_of_arrow() -> None:
    table = pa.table(
        {
            "u": pa.array([2**64 - 1, 5], pa.uint64()),
            "h": pa.array(np.array([1.5, np.nan], np.float16)),
            "d": pa.array([-(2**31), 18_000], pa.int32()).view(pa.date32()),
            "m": pa.array([-(2**62), 86_400_000 * 18_000 + 5], pa.int64()).view(pa.date64()),
            "x": pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
            "y": pa.array([Decimal("1.25"), None], pa.decimal256(9, 2)),
            "v": pa.array(["a", None], pa.string_view()),
            "r": pa.RunEndEncodedArray.from_arrays([2], pa.array(["b"])),
            "n": pa.nulls(2),
            "l": pa.array([[1], []]),
            "b": pa.array([b"\xff", None]),
            "w": pa.array([5, None], pa.duration("s")),
            "e": pa.array([{"a": 1}, None]),
        }
    )
    private = read(table)
    kinds = {name: kind for name, kind in private.schema.items() if kind != "other"}
    assert kinds == {
        "u": "integer", "h": "number", "d": "date", "m": "date", "x": "number", "v": "text", "r": "text",
    }  # fmt: skip
    assert [values(private, name) for name in "udmxvr"] == [
        [None, 5], [None, date(2019, 4, 14)], [None, date(2019, 4, 14)], [1.25, None], ["a", None], ["b", "b"],
    ]  # fmt: skip
    with pytest.raises(InvalidValue, match="column 'l' is of a type that questions cannot use"):
        private.histogram("l", keys=["a"])
    assert values(read(table, schema={"n": "date", "v": "integer", "u": "number"}), "v") == [None, None]
    with pytest.raises(InvalidValue, match="cannot be read as integer"):
        read(table, schema={"l": "integer"})
    with pytest.raises(InvalidValue, match="no column can be read"):
        read(table.select(["l", "b"]))
    assert read(table.slice(0, 0)).count().exact() == 0
    assert read(pa.table({"s": pa.chunked_array([], pa.string())})).count().exact() == 0


def test_every_type_of_pandas() -> None:
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None], "Int8"),
            "f": pd.array([1.5, None], "Float32"),
            "n": [np.nan, 2.0],
            "b": pd.array([True, None], "boolean"),
            "s": pd.array(["a", None], "string"),
            "p": pd.Series(["a", None], dtype=pd.StringDtype("python")),
            "c": pd.Categorical(["u", None]),
            "t": pd.to_datetime(["2020-01-01 00:00:00.123456789", None]).as_unit("ns"),
            "z": pd.to_datetime(["2020-01-01", None]).tz_localize("Europe/Rome"),
            "g": np.array([1.5, 2.5], np.longdouble),
            "o": np.array([1, 2], ">i4"),
            "w": pd.to_timedelta([1, 2]),
            "j": np.array([1j, 2j]),
            "q": pd.period_range("2020", periods=2),
            "v": pd.interval_range(0, 2),
        },
        index=[7, 8],
    )
    table = read(frame)
    kinds = {name: kind for name, kind in table.schema.items() if kind != "other"}
    assert kinds == {
        "i": "integer", "f": "number", "n": "number", "b": "boolean", "s": "text", "p": "text", "c": "text",
        "t": "timestamp", "z": "timestamp",         "g": "number", "o": "integer",
    }  # fmt: skip
    assert [values(table, name)[1] for name in "ifbspctz"] == [None] * 8
    assert values(table, "n") == [None, 2.0]  # NaN is what is missing in pandas
    assert values(table, "z")[0] == datetime(2019, 12, 31, 23)
    assert values(table, "t")[0].microsecond == 123457


def test_what_becomes_of_a_frame_later_changes_nothing() -> None:
    numbers = np.arange(4)
    frame = pd.DataFrame({"n": numbers}, copy=False)
    of_frame, of_arrow = read(frame), read(pa.table({"n": pa.array(numbers)}))
    numbers[:] = 100
    frame["n"] = 100
    assert [table.sum("n", bounds=(0, 1000)).exact() for table in (of_frame, of_arrow)] == [6, 6]
    database = duckdb.connect()
    database.execute("CREATE TABLE t AS SELECT 1 AS n")
    table = read(database.table("t"))
    database.execute("DELETE FROM t")
    database.close()
    assert table.count().exact() == 1


BAD: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "twice": (lambda: pd.DataFrame([[1, 2]], columns=["a", "A"]), {}, "two columns 'A'"),
    "number": (lambda: pd.DataFrame({1: [1]}), {}, "text as names, got 1"),
    "levels": (lambda: pd.DataFrame({("a", "b"): [1]}), {}, "text as names"),
    "nothing": (lambda: pd.DataFrame(), {}, "no columns"),
    "declared": (lambda: pl.DataFrame({"a": [1]}), {"schema": {"b": "text"}}, "no column 'b': it has 'a'"),
    "kind": (lambda: pl.DataFrame({"a": [1]}), {"schema": {"a": "list"}}, "cannot be of type"),
    "unfit": (lambda: pl.DataFrame({"a": [1.5]}), {"schema": {"a": "text"}}, "cannot be read as text"),
    "table": (lambda: pl.DataFrame({"a": [1]}), {"table": "t"}, "leave out table="),
    "csv": (lambda: pl.DataFrame({"a": [1]}), {"decimal": ","}, "for CSV files, not for a polars frame"),
    "partitions": (lambda: pl.DataFrame({"a": [1]}), {"partitions": {"a": "text"}}, "folders of Parquet"),
    "batches": (
        lambda: [pa.record_batch({"a": [1]}), pa.record_batch({"a": ["x"]})], {}, "need the same columns",
    ),
    "series": (lambda: pd.Series([1]), {}, "got Series"),
    "dict": (lambda: {"a": [1]}, {}, "got dict"),
    "paths": (lambda: ["a.csv", "b.parquet"], {}, "all Parquet or all CSV"),
    "unit": (lambda: pd.DataFrame({"p": [1.0]}), {"unit": xp.Unit("p", rows=1)}, "cannot identify units"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_publicly_wrong_is_refused(case: str) -> None:
    source, said, rule = BAD[case]
    with pytest.raises(InvalidValue, match=rule):
        read(source(), **said)


def test_a_plan_that_fails_quotes_nothing(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    lazy = pl.LazyFrame({"s": [MARK]}).select(pl.col("s").cast(pl.Int64))
    relation = duckdb.connect().sql(f"SELECT CAST(s AS INTEGER) AS n FROM (VALUES ('{MARK}')) t(s)")
    for source in (lazy, relation):
        with pytest.raises(EngineFailed) as failed:
            read(source)
        error: BaseException | None = failed.value
        while error is not None:
            assert MARK not in f"{error!r} {error}"
            error = error.__cause__ or error.__context__
    out, err = capfd.readouterr()
    assert MARK not in out + err + caplog.text


# ---- folders and several files


def write(folder: Path, query: str, how: str = "FORMAT parquet") -> None:
    duckdb.sql(f"COPY ({query}) TO '{folder}' ({how})")


def test_folders_with_partitions(tmp_path: Path) -> None:
    places = "CASE WHEN i = 0 THEN NULL ELSE 'a b/' || (i % 2) END AS place"
    write(tmp_path / "x", f"SELECT i, i % 3 AS year, {places} FROM range(10) t(i)",
          "FORMAT parquet, PARTITION_BY (year, place)")  # fmt: skip
    (tmp_path / "x" / "year=%FF" / "place=q").mkdir(parents=True)
    write(tmp_path / "x" / "year=%FF" / "place=q" / "t.parquet", "SELECT 99::BIGINT AS i")
    table = read(tmp_path / "x", partitions={"year": "integer", "place": "text"})
    assert table.schema == {"i": "integer", "year": "integer", "place": "text"}
    assert table.histogram("year", keys=[0, 1, 2]).exact().tolist() == [4, 3, 3, 1]
    assert table.histogram("place", keys=["a b/0", "a b/1", "q"]).exact().tolist() == [4, 5, 1, 1]
    assert read(tmp_path / "x").schema == {"i": "integer"}
    with pytest.raises(InvalidValue, match=r"rows of a partitioned folder, .* have no order"):
        read(tmp_path / "x", partitions={"year": "integer"}, neighbours="substitute").column("i")
    for partitions, rule in (({"month": "text"}, "not in a folder month="), ({"i": "text"}, "a column of the files"),
                             ({"year": "list"}, "cannot be of type"), ({"a/b": "text"}, "map names")):  # fmt: skip
        with pytest.raises(InvalidValue, match=rule):
            read(tmp_path / "x", partitions=partitions)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidValue, match="cannot be read"):
        read(tmp_path / "empty")


def test_several_files(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.parquet", "SELECT 2 AS n")
        (tmp_path / f"{name}.csv").write_text("n\n2\n")
    two = read([tmp_path / "a.parquet", str(tmp_path / "b.parquet")])
    assert two.sum("n", bounds=(0, 9)).exact() == 4
    assert two.name.endswith("a.parquet and 1 more")
    assert read([tmp_path / "a.csv", tmp_path / "b.csv"], schema={"n": "integer"}).sum("n", bounds=(0, 9)).exact() == 4
    write(tmp_path / "c.parquet", "SELECT 'x' AS n")
    with pytest.raises(InvalidValue, match="has other columns"):
        read([tmp_path / "a.parquet", tmp_path / "c.parquet"])


# ---- PostgreSQL

HOSTILE = """
CREATE TABLE visits (person int8, city text, cost numeric, x float8, day date, at timestamp, seen timestamptz, ok bool,
                     who uuid, tags int[]);
INSERT INTO visits VALUES
  (1, 'Rome', 1.25, 'NaN', '2020-01-31', '2020-01-31 10:00:00.5', '2020-01-31 10:00:00+02', true, NULL, '{1}'),
  (1, 'it''s; "x"', '1e400', 'Infinity', '0044-03-15 BC', 'infinity', '-infinity', false, NULL, NULL),
  (9223372036854775807, '', 'NaN', '-0', 'infinity', '294276-12-31', '4713-01-01 BC', NULL, NULL, NULL),
  (NULL, NULL, NULL, 5e-324, '9999-12-31', '0001-01-01', '9999-12-31 23:59:59.999999+00', NULL,
   'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', NULL)
"""


def test_a_table_of_postgres(postgres_url: Callable[[], str]) -> None:
    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(HOSTILE)
    table = read(url, table="visits", unit=xp.Unit("person", rows=1))
    assert table.name == "postgresql:visits"
    kinds = ["integer", "text", "number", "number", "date", "timestamp", "timestamp", "boolean", "text", "other"]
    assert list(table.schema.values()) == kinds
    assert values(table, "person") == [1, 1, 2**63 - 1, None]
    assert values(table, "city") == ["Rome", 'it\'s; "x"', "", None]
    assert str(values(table, "cost")) == "[1.25, inf, nan, None]"
    assert str(values(table, "x")) == "[nan, inf, -0.0, 5e-324]"
    assert values(table, "day") == [date(2020, 1, 31), None, None, date(9999, 12, 31)]
    assert values(table, "at") == [datetime(2020, 1, 31, 10, 0, 0, 500000), None, None, datetime(1, 1, 1)]
    assert values(table, "seen") == [datetime(2020, 1, 31, 8), None, None, datetime.max]
    assert table.count().exact() == 2
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("DROP TABLE visits")
    assert table.count().exact() == 2
    with pytest.raises(InvalidValue, match="there is no table 'visits'"):
        read(url, table="visits")
    with pytest.raises(InvalidValue, match="many tables"):
        read(url)


def test_a_server_that_is_not_there_shows_no_password() -> None:
    with pytest.raises(EngineFailed) as failed:
        read("postgresql://me:secret@127.0.0.1:1/x?connect_timeout=2", table="t")
    assert "secret" not in str(failed.value)


def test_a_marker_in_the_data_is_told_nowhere(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """While every question runs on every input. Answers are not printed."""
    caplog.set_level(logging.DEBUG)
    rows = {"person": [MARK] * 3 + ["q"], "city": [MARK, "a", "b", None], "n": [1, 2, 3, 4]}
    table = pa.table(rows)
    write_parquet(table, tmp_path / "t.parquet")
    inputs = [
        table,
        pd.DataFrame(rows),
        pl.DataFrame(rows),
        pl.LazyFrame(rows),
        table.to_batches(),
        tmp_path / "t.parquet",
    ]
    ledger = xp.Ledger(epsilon=10_000, delta=1e-3, noise=xp.SeededNoise(1))
    for source in inputs:
        private = read(source, unit=xp.Unit("person", rows=2, groups=1), key=1)
        groups = private.by("city", keys=["a", "b"])
        for mechanism in (
            private.count().mechanism(epsilon=1), private.count(of="units").mechanism(epsilon=1),
            private.where(f"city <> '{'x'}'").sum("n", bounds=(0, 5)).mechanism(epsilon=1),
            private.histogram("city", keys=["a"]).mechanism(epsilon=1), private.median("n").mechanism(epsilon=1),
            private.variance("n", bounds=(0, 5)).mechanism(epsilon=1),
            private.discover("city").mechanism(epsilon=1, delta="1e-6"),
            groups.agg(n=groups.count(), m=groups.mean("n", bounds=(0, 5))).mechanism(epsilon=1),
            private.by("city").agg().mechanism(epsilon=1, delta="1e-6"),
            private.join({"city": ["a"], "w": [1]}, on="city").sum("w", bounds=(0, 1)).mechanism(epsilon=1),
        ):  # fmt: skip
            print(ledger.run(mechanism), repr(mechanism), repr(private), private)
    out, err = capfd.readouterr()
    assert "count of rows" in out
    assert MARK not in out + err + caplog.text + ledger.statement()
