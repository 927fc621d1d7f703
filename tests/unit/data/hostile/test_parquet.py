"""What a Parquet file might hold: no value of any type makes a question fail, or two people one."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import expost as xp
from odd_parquet import ODD, SHAPES, Column, Odd, odd_file, write_odd

FAR = 9_223_372_036_854_776
"""A time in milliseconds that is too far away to be counted in microseconds: in some 292,000 years."""
UNREAD = {
    "timestamp ms", "timestamp ms, converted", "timestamp ms, local", "decimal in bytes", "decimal in bytes, wide",
    "decimal in fixed bytes, few digits", "decimal in fixed bytes, long", "time ms", "time us", "time ns",
    "time us, local", "timestamp ns", "json", "bytes", "bytes of fixed length", "interval", "unknown",
}  # fmt: skip
"""Types that no question can use."""


def read(path: Path, unit: Any = "row") -> xp.PrivateTable:
    return xp.read(path, unit=unit, neighbours="add-remove", key=1)


def questions(table: xp.PrivateTable) -> Iterator[Any]:
    """Questions about the column c; what they are depends on its kind."""
    kind = table.schema["c"]
    if kind != "other":
        yield table.where("c IS NULL OR NOT (c = c)").count()
        yield table.where("c IS NULL").sum("n", bounds=(0, 99))
    if kind in ("integer", "number"):
        yield table.sum("c", bounds=(-1, 1))
        yield table.mean("c", bounds=(-5, 5), missing=0)
        yield table.histogram("c", bins=[-1, 0, 1])
    if kind in ("text", "integer", "boolean"):
        yield table.discover("c")
        yield table.histogram("c", keys=[{"text": "a", "integer": 1, "boolean": True}[kind]])
    if kind in ("date", "timestamp"):
        yield table.where("year(c) >= 1970").count()
        yield table.where("CAST(c AS DATE) + INTERVAL 1 DAY > DATE '2000-01-01'").count()
    if kind in ("text", "integer", "date"):
        people = xp.read(Path(table.engine.name), unit=xp.Unit("c", rows=1), neighbours="add-remove", key=1)
        yield people.count()
        yield people.histogram("n", keys=[1, 2])


def by_number(table: xp.PrivateTable, keys: Sequence[int]) -> list[int]:
    """The number of rows by n, with hardly any noise."""
    groups = table.by("n", keys=list(keys))
    asked = groups.agg(rows=groups.count()).mechanism(epsilon=10_000)
    return [round(row[1]) for row in xp.Ledger(epsilon=10_000, noise=xp.SeededNoise(1)).run(asked).output.rows]


def answered(path: Path, rows: int, most: int | None = None) -> xp.PrivateTable:
    """The table, after every question was asked, or so many of those about its column."""
    table = read(path)
    assert table.sum("n", bounds=(0, 99)).exact() == rows * (rows + 1) // 2
    for asked in islice(questions(table), most):
        asked.exact()
    if most is None:
        assert table.count().exact() == rows
        assert by_number(table, [1]) == [1]
    return table


@pytest.mark.parametrize("name", [name for name in ODD if name != "bson"])
def test_no_value_fails_a_question(name: str, tmp_path: Path) -> None:
    odd, path = ODD[name], tmp_path / "t.parquet"
    for value in odd.values:
        odd_file(path, odd, [odd.values[0], value])
        assert (answered(path, 2, most=1).schema["c"] == "other") == (name in UNREAD)
    for shape in SHAPES:
        for statistics, dictionary in ((True, False), (False, True)):
            odd_file(path, odd, odd.values, shape, statistics=statistics, dictionary=dictionary)
            table = answered(path, len(odd.values))
            assert (table.schema["c"] == "other") == (name in UNREAD or shape != "flat")


def test_a_type_that_nobody_reads_is_refused_whatever_its_values(tmp_path: Path) -> None:
    for values in (ODD["bson"].values[:1], ODD["bson"].values):
        with pytest.raises(xp.InvalidValue, match="cannot be read"):
            read(odd_file(tmp_path / "t.parquet", ODD["bson"], values))


@pytest.mark.parametrize("name", ["timestamp ms", "decimal in bytes", "decimal in fixed bytes, few digits"])
def test_these_files_are_hostile(name: str, tmp_path: Path) -> None:
    """DuckDB fails for a column that the query does not use, and so would we: from what the file's statistics say."""
    odd = ODD[name]
    path = odd_file(tmp_path / "t.parquet", odd, odd.values)
    with pytest.raises(duckdb.Error):
        duckdb.execute(f"SELECT sum(n) FROM (SELECT * FROM '{path}')").fetchall()
    assert read(path).sum("n", bounds=(0, 99)).exact() > 0


def _by_pyarrow(path: Path, times: pa.Array) -> None:
    pq.write_table(pa.table({"n": [1, 2], "c": times}), path)


def _by_polars(path: Path, times: pa.Array) -> None:
    pl.DataFrame({"n": [1, 2], "c": pl.from_arrow(times)}).write_parquet(path)


def _by_pandas(path: Path, times: pa.Array) -> None:
    pd.DataFrame({"n": [1, 2], "c": pd.Series(times, dtype=pd.ArrowDtype(times.type))}).to_parquet(path)


@pytest.mark.parametrize("writer", [_by_pyarrow, _by_polars, _by_pandas])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_that_libraries_write(writer: Callable[[Path, pa.Array], None], zone: str | None, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    writer(path, pa.array([0, FAR]).cast(pa.timestamp("ms", zone)))
    assert answered(path, 2).schema["c"] == "other"
    with pytest.raises(xp.InvalidValue, match="as a time in microseconds"):
        read(path).where("c IS NULL")
    writer(path, pa.array([0, 2**63 - 1]).cast(pa.timestamp("us", zone)))
    assert answered(path, 2).where("year(c) = 1970").count().exact() == 1
    assert xp.read(pq.read_table(path), unit="row", neighbours="add-remove").schema["c"] == "timestamp"


def test_one_file_in_milliseconds_suffices(tmp_path: Path) -> None:
    """DuckDB reads both as the same type; a question reads all files."""
    for name, unit, time in (("1", "us", 0), ("2", "ms", FAR)):
        pq.write_table(
            pa.table({"n": [1], "c": pa.array([time]).cast(pa.timestamp(unit))}), tmp_path / f"{name}.parquet"
        )
    table = read(tmp_path)
    assert table.schema == {"n": "integer", "c": "other"}
    assert table.count().exact() == 2


def test_a_file_in_which_nothing_can_be_read_is_refused(tmp_path: Path) -> None:
    for values in ([0], [0, FAR]):
        pq.write_table(pa.table({"c": pa.array(values).cast(pa.timestamp("ms"))}), tmp_path / "t.parquet")
        with pytest.raises(xp.InvalidValue, match="no column can be read"):
            read(tmp_path / "t.parquet")


def test_names_that_are_not_utf8_are_nobody_rather_than_one_person(tmp_path: Path) -> None:
    """DuckDB shows a question mark for each such byte. As one unit, two people would share a bound on rows."""
    path = tmp_path / "t.parquet"

    def people(*names: bytes) -> xp.PrivateTable:
        values = [len(name).to_bytes(4, "little") + name for name in names]
        return read(odd_file(path, ODD["text"], values), xp.Unit("c", rows=1))

    both = people(b"caf\xe9", b"caf\xff", b"Ann")
    assert both.count().exact() == both.count(of="units").exact() == 1
    assert by_number(both, [1, 2, 3]) == [0, 0, 1]
    assert both.discover("c").exact() == [("Ann", 1)]
    first, second = people(b"caf\xe9", b"Ann"), people(b"caf\xff", b"Ann")
    assert first.histogram("n", keys=[1, 2]).exact().tolist() == second.histogram("n", keys=[1, 2]).exact().tolist()
    assert read(path).discover("c").exact() == [("Ann", 1), ("caf?", 1)]  # as a text it is what is shown


# ---- folders


def _in_folders(folder: Path, columns: dict[str, Sequence[Any]], other: dict[str, Sequence[Any]]) -> None:
    for person, data in (("Müller", columns), ("Xanthippe", other)):
        (folder / f"patient={person}").mkdir()
        pq.write_table(pa.table(data), folder / f"patient={person}" / "1.parquet")


def test_no_error_quotes_what_a_folder_says(tmp_path: Path) -> None:
    _in_folders(tmp_path, {"n": [1]}, {"n": ["a"]})
    for partitions in (None, {"patient": "text"}):
        with pytest.raises(
            xp.InvalidValue, match=r"patient=…/1\.parquet has other columns than .*patient=…/1"
        ) as wrong:
            xp.read(tmp_path, unit="row", neighbours="add-remove", partitions=partitions)
        assert "Müller" not in repr(wrong.value)
        assert "Xanthippe" not in repr(wrong.value)


def test_folders_beside_columns_that_cannot_be_read(tmp_path: Path) -> None:
    times = pa.array([FAR]).cast(pa.timestamp("ms"))
    _in_folders(tmp_path, {"n": [1], "c": times}, {"n": [2], "c": times})
    unit = xp.Unit("patient", rows=1)
    table = xp.read(tmp_path, unit=unit, neighbours="add-remove", partitions={"patient": "text"})
    assert table.schema == {"n": "integer", "c": "other", "patient": "text"}
    assert table.count(of="units").exact() == 2
    assert table.where("patient = 'Müller'").sum("n", bounds=(0, 9)).exact() == 1


def test_nested_columns_of_other_columns_names(tmp_path: Path) -> None:
    """A column is known by its place in the schema: fields of structures may have the same name."""
    odd: Odd = ODD["timestamp ms"]
    whole, inner = ODD["int64"], odd.values[:2]
    write_odd(tmp_path / "t.parquet", [Column("s", odd, inner, "struct"), Column("a", whole, whole.values[:2])])
    assert read(tmp_path / "t.parquet").schema == {"s": "other", "a": "integer"}


def test_a_table_says_which_names_name_nobody(tmp_path: Path) -> None:
    """By the kind of file and the column's type alone, which are public."""
    pq.write_table(pa.table({"id": ["a", "b"], "n": [1, 2]}), tmp_path / "t.parquet")
    named = xp.read(tmp_path / "t.parquet", unit=xp.Unit("id", rows=1), neighbours="add-remove")
    assert "rows without 'id', and rows in which it contains a question mark, do not count" in str(named)
    by_number = xp.read(tmp_path / "t.parquet", unit=xp.Unit("n", rows=1), neighbours="add-remove")
    frame = xp.read(pa.table({"id": ["a", "b"]}), unit=xp.Unit("id", rows=1), neighbours="add-remove")
    assert by_number.nobody == frame.nobody == ""
