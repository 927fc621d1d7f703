import json
import math
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, Flag
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost import Cost, Guarantee
from expost.canonical import canonical
from expost.ledger import codec
from expost.mechanisms.stability.quantile_range import Bin
from toys import Fixed


class Pair(NamedTuple):
    left: int
    right: float


@dataclass(frozen=True)
class Found:
    where: tuple[int, ...]
    what: Any


class Colour(Enum):
    RED = 1


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.fractions()
    | st.decimals(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.frozensets(st.integers())
        | st.sets(st.text())
    ),
    max_leaves=8,
)


@given(values)
def test_values_come_back_exactly(value: Any) -> None:
    text = codec.encode(value)
    again = codec.decode(text)
    assert again == value
    assert type(again) is type(value)
    assert codec.encode(again) == text
    assert text.isascii()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.array([1.5, -0.0, np.inf]),
        np.array([True, False]),
        np.array(7, dtype=np.uint8),
        np.array([], dtype=np.float32),
        np.array([(1, 2.0)], dtype=[("a", "<i4"), ("b", "<f8")]),
        np.arange(6)[::2],
        np.array(["x", "yz"]),
    ],
)
def test_arrays_come_back_exactly(array: Any) -> None:
    again = codec.decode(codec.encode(array))
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tobytes() == array.tobytes()
    again.flags.writeable  # noqa: B018 - it is an array of its own
    assert again.flags.owndata


@pytest.mark.parametrize(
    "value",
    [
        xp.WITHHELD,
        Pair(1, 0.1),
        Found((1, 2), xp.WITHHELD),
        Colour.RED,
        Cost("0.1", delta="1e-9"),
        Guarantee({"a": 1, (1, "b"): 2}, delta="1e-6"),
        np.float64(0.1),
        np.int32(-3),
        np.bool_(True),
        Decimal("1.10"),
        Fraction(1, 3),
        (True, 1, 1.0),
    ],
)
def test_records_come_back_as_they_are(value: Any) -> None:
    again = codec.decode(codec.encode(value))
    assert again == value
    assert type(again) is type(value)
    assert repr(again) == repr(value)


def test_nan_comes_back() -> None:
    assert math.isnan(codec.decode(codec.encode(float("nan"))))


def test_mechanisms_outputs_come_back() -> None:
    ledger = xp.Ledger(epsilon=100, delta="0.1", noise=xp.SeededNoise(2))
    values = np.random.default_rng(0).normal(size=500)
    for mechanism, data in (
        (xp.mechanisms.Coin(epsilon=1, sensitivity=1), 3),
        (xp.Laplace(epsilon=1, sensitivity=1), np.arange(5)),
        (xp.SparseVector(threshold=2, at_most=2, epsilon=1, sensitivity=1), np.arange(5)),
        (xp.mechanisms.StableInterquartileRange(epsilon=1, delta=1e-6), values),
    ):
        value = ledger.run(mechanism, on=data).output  # type: ignore[misc]
        again = codec.decode(codec.encode(value))
        assert np.array_equal(again, value) if isinstance(value, np.ndarray) else again == value
    assert Bin.__module__.startswith("expost.")


def test_what_cannot_come_back_is_refused() -> None:
    local = namedtuple("local", "a")
    for value in (object(), lambda: 1, np.array([object()]), local(1), iter([1]), {1: object()}, np.ma.array([1])):
        with pytest.raises(TypeError, match="a durable ledger cannot store"):
            codec.encode(value)


def test_what_is_sealed_is_opened_and_never_the_same_twice() -> None:
    for text in (codec.encode(1), codec.encode("nonce:"), ""):
        stored = codec.sealed(text)
        assert codec.unsealed(stored) == text
        assert stored != codec.sealed(text)
    with pytest.raises(xp.errors.LedgerCorrupt, match="begins with 'nonce:'"):
        codec.unsealed("17884")


@pytest.mark.parametrize(
    "name", ["os:system", "nowhere:Thing", "builtins:tuple", "subprocess:Popen", "expost.cost:exact"]
)
def test_nothing_but_records_is_ever_made(name: str) -> None:
    with pytest.raises(xp.InvalidValue, match="import its module first"):
        codec.decode(canonical({"$record": [name, []]}))


class Twice(namedtuple("Twice", "first second")):
    __slots__ = ()

    def __new__(cls, both: int) -> "Twice":
        return super().__new__(cls, both, both)


class Days(Flag):
    MONDAY = 1
    TUESDAY = 2


@pytest.mark.parametrize("value", [Twice(3), Days.MONDAY | Days.TUESDAY, Days(0)])
def test_what_would_not_be_read_back_is_not_kept(value: Any, sqlite_url: Callable[[], str]) -> None:
    """Found when it is stored, while the worst case can still be charged, and not when it is to be delivered."""
    with pytest.raises(TypeError, match="durable ledger cannot store"):
        codec.kept(value)
    assert codec.kept([1, "a"]) == codec.encode([1, "a"])
    ledger = xp.Ledger.create(sqlite_url(), "study", epsilon=1, neighbours="add-remove", unit="person")
    with pytest.raises(TypeError, match="durable ledger cannot store"):
        ledger.run(Fixed(Guarantee({"a": 1, "b": 0}), None, part="b"), on=lambda: value, key="k")
    assert ledger.spent == Cost(1)


def test_a_field_that_is_newer_than_the_output_is_at_its_default() -> None:
    text = codec.encode(xp.mechanisms.LinearModel(((1.0,),), 1.0, True, 2.0, (0,)))
    content = json.loads(text)["$record"]
    assert content[0] == "expost.mechanisms:LinearModel"
    content[1] = [field for field in content[1] if field[0] not in ("missing", "features")]
    assert codec.decode(canonical({"$record": content})) == xp.mechanisms.LinearModel(((1.0,),), 1.0, True)
