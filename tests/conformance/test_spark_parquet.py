"""What files that Spark reads might hold: no value of any type makes a question fail, or two people one."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import expost as xp
from odd_parquet import ODD, odd_file
from spark_session import WHY_NOT, session

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
FAR = 9_223_372_036_854_776
UNREAD = {
    "timestamp ms", "timestamp ms, converted", "timestamp ms, local", "decimal in bytes", "decimal in bytes, wide",
    "decimal in fixed bytes", "decimal in fixed bytes, long", "bytes", "bytes of fixed length", "bson",
}  # fmt: skip
"""Types that no question can use."""
REFUSED = {
    "time ms", "time us", "time ns", "time us, local", "timestamp ns", "timestamp ns, local", "decimal, wide",
    "text of fixed length", "uuid", "half", "interval",
}  # fmt: skip
"""Types for which Spark refuses the file, whatever its values."""


def read(source: Any, unit: Any = "row") -> xp.PrivateTable:
    session()  # of the tests; otherwise a path starts another
    return xp.read(source, unit=unit, neighbours="add-remove", key=1, engine="spark")


ABOUT = {
    "integer": "c > 0", "number": "c < 1", "text": "length(c) > 1", "boolean": "c", "date": "year(c) > 2000",
    "timestamp": "year(c) > 2000",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in ODD if name not in REFUSED])
def test_no_value_fails_a_question(name: str, tmp_path: Path) -> None:
    odd = ODD[name]
    table = read(odd_file(tmp_path / "t.parquet", odd, odd.values))
    assert (table.schema["c"] == "other") == (name in UNREAD)
    assert table.sum("n", bounds=(0, 99)).exact() == len(odd.values) * (len(odd.values) + 1) // 2
    if name not in UNREAD:
        table.where(f"c IS NULL OR {ABOUT[table.schema['c']]}").count().exact()
    nested = read(odd_file(tmp_path / "s.parquet", odd, odd.values, "struct", dictionary=True))
    assert nested.count().exact() == len(odd.values)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_types_that_spark_does_not_know_are_refused_whatever_their_values(name: str, tmp_path: Path) -> None:
    odd, path = ODD[name], tmp_path / "t.parquet"
    for values in (odd.values[:1], odd.values):
        odd_file(path, odd, values)
        with pytest.raises((xp.InvalidValue, xp.errors.EngineFailed)):
            read(path)


def test_these_files_are_hostile(tmp_path: Path) -> None:
    """The control: Spark itself fails for them."""
    for name in ("timestamp ms", "decimal in bytes", "decimal in fixed bytes"):
        path = odd_file(tmp_path / "t.parquet", ODD[name], ODD[name].values)
        with pytest.raises(Exception, match=r"overflow|collect|NUMERIC_VALUE_OUT_OF_RANGE"):
            session().read.parquet(str(path)).select("c").collect()


def test_one_file_in_milliseconds_suffices(tmp_path: Path) -> None:
    """Spark reads both as the same type; whatever a frame or a table is, its files are looked at."""
    for name, unit, time in (("1", "us", 0), ("2", "ms", FAR)):
        column = pa.array([time]).cast(pa.timestamp(unit))
        pq.write_table(pa.table({"n": [1], "C": column}), tmp_path / f"{name} ä.parquet")
    for source in (tmp_path, session().read.parquet(str(tmp_path)), session().read.parquet(str(tmp_path)).cache()):
        table = read(source)
        assert table.schema == {"n": "integer", "C": "other"}
        assert table.count().exact() == 2
        with pytest.raises(xp.InvalidValue, match="as a time in microseconds"):
            table.where("C IS NULL")
    session().catalog.clearCache()
    (tmp_path / "2 ä.parquet").unlink()
    assert read(tmp_path).where("year(C) = 1970").count().exact() == 1


def test_times_and_decimals_in_orc_are_not_read(tmp_path: Path) -> None:
    """Those before 1970 with part of a second, as Arrow writes them, already fail."""
    times = pa.array([0, -1, 2**62]).cast(pa.timestamp("us"))
    orc.write_table(pa.table({"n": [1, 2, 3], "c": times}), str(tmp_path / "t.orc"))
    frame = session().read.orc(str(tmp_path / "t.orc"))
    with pytest.raises(Exception, match="nanos"):
        frame.select("c").collect()
    table = xp.read(frame, unit="row", neighbours="add-remove")
    assert table.schema == {"n": "integer", "c": "other"}
    assert table.sum("n", bounds=(0, 9)).exact() == 6
    with pytest.raises(xp.InvalidValue, match="no column can be read"):
        xp.read(session().read.schema("c timestamp").orc(str(tmp_path / "t.orc")), unit="row", neighbours="add-remove")


def test_people_whose_names_are_not_utf8_stay_apart(tmp_path: Path) -> None:
    names = [b"caf\xe9", b"caf\xff", b"Ann", b"caf\xe9"]
    values = [len(name).to_bytes(4, "little") + name for name in names]
    path = odd_file(tmp_path / "t.parquet", ODD["text"], values)
    for source in (path, session().read.parquet(str(path)).localCheckpoint()):
        people = read(source, xp.Unit("c", rows=1))
        assert people.count(of="units").exact() == people.count().exact() == 3
        assert people.discover("c").exact() == [("Ann", 1), ("caf\ufffd", 2)]  # as a text each is what is shown
