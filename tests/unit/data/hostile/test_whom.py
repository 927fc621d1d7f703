"""Nobody becomes somebody else, and no value fails, on ways that were found by attacks."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import expost as xp
from expost.data import Searched, WinsorizedMean
from expost.data.encodings import as_text
from expost.errors import InvalidValue
from hostile_bytes import postgres_database
from servers import Server


@pytest.mark.parametrize(
    ("codec", "one", "other"),
    [
        ("euc_kr", b"\xa4\xd4\xa4\xa1\xa4\xbf\xa4\xd4", b"\xb0\xa1"),
        ("euc_jp", b"~", b"\x8f\xa2\xb7"),
        ("euc_jis_2004", b"\xaa\xa2", b"\x8f\xa2\xaf"),
    ],
)
def test_a_character_that_is_written_in_two_ways_is_two_names(codec: str, one: bytes, other: bytes) -> None:
    assert one.decode(codec) == other.decode(codec)
    assert as_text(one, codec) != as_text(other, codec)
    assert as_text("가~亜".encode("euc_kr", "ignore"), "euc_kr").startswith("가~")


def test_times_name_nobody() -> None:
    """Sources differ in how fine times are, so that two people could become one."""
    times = np.array(["2024-01-01T00:00:00.000000001", "2024-01-01T00:00:00.000000002"], "datetime64[ns]")
    with pytest.raises(InvalidValue, match="cannot identify units"):
        xp.read(pd.DataFrame({"who": times}), unit=xp.Unit("who", rows=1), neighbours="add-remove")


def test_columns_that_duckdb_renames_are_refused(tmp_path: Path) -> None:
    arrays = [pa.array([1]), pa.array([2**62], pa.timestamp("ms")), pa.array([5])]
    pq.write_table(pa.Table.from_arrays(arrays, names=["a", "A", "a_1"]), tmp_path / "t.parquet")
    with pytest.raises(InvalidValue, match="differ only in case"):
        xp.read(tmp_path / "t.parquet", unit="row", neighbours="add-remove")


def test_folders_whose_names_cannot_be_decoded_name_nobody(tmp_path: Path) -> None:
    for name in ("%FF", "%25FF", "a"):
        (tmp_path / f"who={name}").mkdir()
        pq.write_table(pa.table({"x": [1]}), tmp_path / f"who={name}" / "f.parquet")
    table = xp.read(tmp_path, unit=xp.Unit("who", rows=1), neighbours="add-remove", partitions={"who": "text"})
    assert (table.count(of="units").exact(), table.count().exact()) == (2, 2)


def test_decimals_with_more_digits_than_any_are_missing() -> None:
    data = (5).to_bytes(16, "little") + (10**38 + 7).to_bytes(16, "little")
    decimals = pa.Array.from_buffers(pa.decimal128(10, 2), 2, [None, pa.py_buffer(data)])
    table = xp.read(pa.table({"x": decimals}), unit="row", neighbours="add-remove")
    assert table.sum("x", bounds=(0, 1), missing=1, grid=2**-10).exact() == round(0.05 * 2**10) + 2**10


@pytest.mark.parametrize("last", ["1", "1e4000"])
def test_no_number_causes_a_warning(last: str) -> None:
    frame = pd.DataFrame({"x": np.array(["1", last], np.longdouble)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert xp.read(frame, unit="row", neighbours="add-remove").count().exact() == 2


def test_views_of_postgresql_are_refused(server: Server) -> None:
    import psycopg

    url = postgres_database(server, "UTF8")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (x int)")
        connection.execute("CREATE VIEW v AS SELECT 10 / (x - 3) AS y FROM t")
    assert xp.read(url, table="t", unit="row", neighbours="add-remove").count().exact() == 0
    with pytest.raises(InvalidValue, match="is a view"):
        xp.read(url, table="v", unit="row", neighbours="add-remove")


def test_a_question_is_about_one_table() -> None:
    frame = pd.DataFrame({"who": ["a", "b"], "x": [1.0, 9.0]}).astype({"who": "str"})
    rows = xp.read(frame, unit="row", neighbours="add-remove")
    people = xp.read(frame, unit=xp.Unit("who", rows=1), neighbours="add-remove")
    other: Any = rows.quantile("x", ["1/4", "3/4"], bounds=(0, 10))
    with pytest.raises(InvalidValue, match="of another table"):
        WinsorizedMean(people, other)
    with pytest.raises(InvalidValue, match="of another table"):
        Searched(people, "mean", (rows.median("x"),))
