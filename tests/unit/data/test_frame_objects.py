"""Objects in frames: only known types are read, no code of an object runs, and names that are not UTF-8 stay apart."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import expost as xp

KINDS = ("integer", "number", "text", "boolean", "date", "timestamp")
RAN: list[str] = []
"""What code of objects ran."""


def traps(*bases: type) -> Any:
    """A class all of whose special methods take note that they ran, and so do those of the class itself."""

    def noted(name: str) -> Any:
        def method(*given: Any, **named: Any) -> Any:
            RAN.append(name)
            raise RuntimeError("Xanthippe")

        return method

    names = ("__int__", "__index__", "__float__", "__str__", "__repr__", "__bool__", "__eq__", "__ne__", "__lt__",
             "__hash__", "__len__", "__iter__", "__array__", "__arrow_array__", "is_integer", "utcoffset", "encode",
             "__getattr__", "__abs__", "__trunc__", "__complex__", "__sub__", "__add__")  # fmt: skip
    own = {name: noted(name) for name in names}
    meta = type("Meta", (type,), {name: noted(f"meta {name}") for name in ("__eq__", "__hash__", "__instancecheck__")})
    claimed = property(lambda self: RAN.append("__class__") or float)
    return meta("Trap", bases, {**own, "__class__": claimed})


class Zone(tzinfo):
    """A time zone with code of its own."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        RAN.append("zone")
        return timedelta(hours=1)

    dst = tzname = utcoffset  # type: ignore[assignment]


class Ward(StrEnum):
    A = "a"


class Size(IntEnum):
    LARGE = 3


def hostile() -> Iterator[Any]:
    """Objects of types that are not known, all of which some ``isinstance`` takes for a value."""
    yield traps()()
    yield traps(str)("a")
    yield traps(int)(1)
    yield traps(float)(1.0)
    yield traps(Decimal)("1")
    yield traps(date)(2020, 1, 1)
    yield traps(datetime)(2020, 1, 1)
    yield datetime(2020, 1, 1, tzinfo=Zone())
    yield Ward.A
    yield Size.LARGE


def objects(values: list[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


@pytest.mark.parametrize("kind", KINDS)
def test_no_code_of_an_object_runs(kind: str) -> None:
    odd = [object(), *hostile()]  # Polars looks at the first when it makes a column
    array = objects(odd)
    for frame in (
        pd.DataFrame({"n": range(len(odd)), "c": pd.Series(array, dtype=object)}),
        pl.DataFrame({"n": range(len(odd)), "c": pl.Series("c", odd, dtype=pl.Object)}),
    ):
        RAN.clear()  # making a frame may run something; reading it does not
        table = xp.read(frame, unit="row", neighbours="add-remove", schema={"c": kind})
        assert RAN == []
        assert table.where("c IS NULL").count().exact() == len(odd)


def test_objects_would_run() -> None:
    """The control: the same objects do run code where somebody asks them."""
    RAN.clear()
    for odd in list(hostile())[:7]:
        with pytest.raises(RuntimeError):
            float(odd)
    assert len(RAN) >= 6


KNOWN: dict[str, list[Any]] = {
    "integer": [3, np.int8(3), np.uint64(3), np.longlong(3), 3.0, np.float32(3), np.longdouble(3)],
    "number": [1.5, np.float16(1.5), np.longdouble(1.5), Decimal("1.5")],
    "text": ["a", np.str_("a")],
    "boolean": [True, np.True_],
    "date": [date(2020, 1, 2), datetime(2020, 1, 2, 5), pd.Timestamp("2020-01-02 05:00")],
    "timestamp": [
        datetime(2020, 1, 2, 5, 0, 0, 7),
        datetime(2020, 1, 2, 7, 0, 0, 7, tzinfo=timezone(timedelta(hours=2))),
        datetime(2020, 1, 2, 6, 0, 0, 7, tzinfo=ZoneInfo("Europe/Rome")),
        pd.Timestamp("2020-01-02 05:00:00.000007999"),
        pd.Timestamp("2020-01-02 06:00:00.000007", tz="Europe/Rome"),
    ],
}
SAYS = {
    "integer": "c = 3", "number": "c = 1.5", "text": "c = 'a'", "boolean": "c", "date": "c = DATE '2020-01-02'",
    "timestamp": "c = TIMESTAMP '2020-01-02 05:00:00.000007'",
}  # fmt: skip
FAR, BEFORE = (pd.Timestamp(np.datetime64(seconds, "s")) for seconds in (10**13, -(10**13)))
NULL: dict[str, list[Any]] = {
    "integer": [2**63, -(2**63) - 1, 1.5, float("inf"), float("nan"), 1e300, np.uint64(2**63), True, "3", None],
    "number": [10**400, True, "1.5", None, Decimal("sNaN"), np.datetime64("2020-01-01")],
    "text": [b"a", 1, None, date(2020, 1, 1)],
    "boolean": [1, 0.0, "true", None],
    "timestamp": [pd.NaT, "2020-01-01", 5, None, FAR, BEFORE,
                  datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))],
    "date": [pd.NaT, "2020-01-01", 5, None, FAR],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_known_types_are_read(kind: str) -> None:
    for values, expected in ((KNOWN[kind], len(KNOWN[kind])), (NULL[kind], 0)):
        frame = pd.DataFrame({"c": pd.Series(objects(values), dtype=object)})
        table = xp.read(frame, unit="row", neighbours="add-remove", schema={"c": kind})
        assert table.where(SAYS[kind]).count().exact() == expected
        assert table.where("c IS NOT NULL").count().exact() == expected


# ---- names that are not UTF-8

LATIN = [b"caf\xe9", b"caf\xff", b"Ann", b"Ann", b"caf\xe9", None]


def of_arrow(kind: Any) -> Any:
    wide = pa.large_binary() if kind == pa.large_string() else pa.binary()
    return pa.table({"p": pa.array(LATIN, wide).view(kind), "n": range(6)})


def of_dictionary(_: Any) -> Any:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 2, 0, None]), pa.array(LATIN[:3]).view(pa.string()))
    return pa.table({"p": coded, "n": range(6)})


NAMES = ["caf\ud800", "caf\ud801", "Ann", "Ann", "caf\ud800", None]


def of_objects(_: Any) -> Any:
    return pd.DataFrame({"p": pd.Series(NAMES, dtype=object), "n": range(6)})


def of_categories(_: Any) -> Any:
    kinds = pd.Index(NAMES[:3], dtype=object)
    coded = pd.Categorical.from_codes([0, 1, 2, 2, 0, -1], categories=kinds)
    return pd.DataFrame({"p": coded, "n": range(6)})


@pytest.mark.parametrize(
    ("make", "kind"),
    [(of_arrow, pa.string()), (of_arrow, pa.large_string()), (of_dictionary, None), (of_objects, None),
     (of_categories, None)],
)  # fmt: skip
def test_people_whose_names_are_not_utf8_stay_apart(make: Any, kind: Any) -> None:
    """As one unit, each would lose rows to the other, and who is removed would move two people's rows."""
    declared = {"p": "text"} if kind is None and make is not of_dictionary else None
    people = xp.read(make(kind), unit=xp.Unit("p", rows=1), neighbours="add-remove", schema=declared)
    assert people.schema == {"p": "text", "n": "integer"}
    assert people.count(of="units").exact() == 3
    assert people.count().exact() == 3
    assert people.where("p LIKE 'caf%'").count().exact() == 2
    assert people.discover("p").exact() == [("Ann", 1), ("caf?", 2)]  # as a text each is what is shown
    assert people.histogram("p", keys=["caf?", "Ann"]).exact().tolist() == [2, 1, 0]


def test_a_column_of_the_name_of_our_own_is_kept() -> None:
    frame = pa.table({"p": ["a", "b"], "expost bytes 0": ["x", "y"], "Expost Bytes 0_": [1, 2]})
    table = xp.read(frame, unit=xp.Unit("p", rows=1), neighbours="add-remove")
    assert table.schema == {"p": "text", "expost bytes 0": "text", "Expost Bytes 0_": "integer"}
    assert table.where("\"expost bytes 0\" = 'x'").count().exact() == 1
