"""What a mechanism says about itself: the same in every process, and enough to tell any two apart."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntFlag
from fractions import Fraction
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pytest

import expost as xp
from expost import Cost, Guarantee
from expost.fingerprint import DATA, identify
from expost.guarantee import Part
from expost.names import class_name, find, function_name
from expost.text import text_of

pytestmark = pytest.mark.counted
T = TypeVar("T")


class Bits(IntFlag):
    ONE = 1


class Colour(Enum):
    RED = 1


class Pair(NamedTuple):
    left: Any
    right: Any = 0


@dataclass(frozen=True)
class Holder(xp.Mechanism):
    value: Any
    more: Any = 0
    listed: list[int] = field(default_factory=list)
    cache: Any = field(default=None, compare=False)
    rows: Any = field(default=None, metadata=DATA)
    name: str | None = None

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.uniform(1)

    def part_of(self, output: Any) -> Part:
        return "done"


class Stateless(xp.Mechanism):
    guarantee = Guarantee.uniform(1)

    def part_of(self, output: Any) -> Part:
        return "done"


class Slotted(Stateless):
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Counted(int, Stateless): ...


class Listed(tuple[Any, ...], Stateless): ...


class Mapped(dict[str, Any], Stateless): ...


class Failure(RuntimeError, Stateless): ...


@dataclass(frozen=True)
class Typed(Stateless, Generic[T]):
    value: T


@dataclass(frozen=True)
class SlottedRecord:
    __slots__ = ("more", "value")
    value: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "more", 0)


class Widened(Pair):
    """A named tuple with a dictionary beside its fields."""


class Lazy(Stateless):
    def __init__(self, model: Any) -> None:
        self.model = model

    @cached_property
    def model(self) -> Any:
        return 1


class ByClass(Stateless):
    name = "by class"

    def __init__(self, value: Any) -> None:
        self.value = value


class ByProperty(ByClass):
    @property
    def name(self) -> str:  # type: ignore[override]
        return "by property"


class Titled(Stateless):
    def __init__(self, name: Any, **others: Any) -> None:
        self.name = name
        vars(self).update(others)


class Own(Stateless):
    def __init__(self, inner: Any, text: str) -> None:
        self.inner, self.text = inner, text

    @property
    def fingerprint(self) -> str:
        return self.text


def function(*given: Any) -> None: ...


SAYABLE = [
    *(None, True, False, 1, 2, 0.5, 0.1, -1, "1", "a", "", b"a", 1j, math.inf, -math.inf, math.nan, Fraction(1, 3)),
    *(Decimal("0.25"), (), (1,), (1, 2), ((1, 2),), {1}, {1: 2}, {2: 1}, {"a": (1,)}, range(3)),
    *(date(2020, 1, 1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC), time(1), timedelta(1)),
    *(Colour.RED, Pair(1), Pair(1, 2), Cost(1), Cost(0, 1), Guarantee.uniform(1), Guarantee({"a": 1})),
    *(np.arange(3), np.arange(3.0), np.arange(4).reshape(2, 2), np.array([(1, 2.0)], [("a", "<i4"), ("b", "<f8")])),
    *(np.timedelta64(1, "Y"), np.timedelta64(1, "M"), np.timedelta64(5, "ns"), np.timedelta64("NaT"), Bits(1), Bits(8)),
    *(np.datetime64(5, "ns"), np.datetime64("NaT"), np.array([(1, 2)], "i4,i4")[0], Bits(16), Bits(9)),
    *(np.array([(1, 2)], [("b", "i4"), ("a", "i4")])[0], np.array([(1, 2)], [("a", "i4"), ("b", "i4")])[0]),
    *(function, len, np.mean, math.sqrt, xp.Laplace, int, Holder(1), Holder(2), Stateless(), xp.WITHHELD),
    *(xp.Laplace(epsilon=1, sensitivity=1), xp.Laplace(epsilon=2, sensitivity=1), Own(1, "x"), Own(1, "y")),
]


def test_whatever_differs_has_another_fingerprint() -> None:
    found = [Holder(value).fingerprint for value in SAYABLE]
    assert len(set(found)) == len(found)
    assert found == [Holder(value).fingerprint for value in SAYABLE]
    assert all(len(one) == 64 for one in found)


@pytest.mark.parametrize(
    "alike",
    [
        (1, 1.0, Fraction(1), Decimal(1), Decimal("1.00"), np.int64(1), np.float32(1)),
        (0.5, Fraction(1, 2), Decimal("0.5"), np.float64(0.5)),
        ([1, 2], (1, 2)),
        ({1: 2, 3: 4}, {3: 4, 1: 2}, MappingProxyType({1: 2, 3: 4})),
        ({1, 2}, frozenset({2, 1})),
        (Guarantee({"a": 1, "b": 2}), Guarantee({"b": 2, "a": 1})),
        (np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3))),
        (0.0, -0.0, 0),
    ],
)
def test_equal_values_have_one_fingerprint(alike: tuple[Any, ...]) -> None:
    assert len({Holder(value).fingerprint for value in alike}) == 1


def test_fields_of_our_own_at_their_defaults_are_left_out() -> None:
    for mechanism, given in (
        (xp.Laplace(epsilon=1, sensitivity=2), {"epsilon", "sensitivity"}),
        (xp.TopK(k=2, epsilon=1, delta="1e-6", groups=3), {"k", "epsilon", "delta", "groups"}),
    ):
        content = identify(mechanism).content["$record"]
        assert content[0] == f"expost:{type(mechanism).__name__}"
        assert set(content[1]) == given


def test_defaults_of_other_people_are_written() -> None:
    """They may change: with a constant that they read, or with the next version of the class."""
    all_of_them = {"value": 1, "more": 0, "listed": [], "name": None}
    assert identify(Holder(1)).content == {"$record": [f"{__name__}:Holder", all_of_them]}
    assert Holder(1, 0.0, [], name=None).fingerprint == Holder(1).fingerprint
    assert Holder(1, 1).fingerprint != Holder(1).fingerprint
    assert identify(Holder(Pair(1))).content["$record"][1]["value"] == {
        "$record": [f"{__name__}:Pair", {"left": 1, "right": 0}]
    }


def test_a_truth_value_is_not_the_number_that_it_equals() -> None:
    assert Holder(1, False).fingerprint != Holder(1, 0).fingerprint == Holder(1).fingerprint


SETTING = {"threshold": 5}


@dataclass(frozen=True)
class Configured(Stateless):
    threshold: int = field(default_factory=lambda: SETTING["threshold"])


def test_a_default_that_is_read_elsewhere_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Configured()
    said = before.fingerprint
    monkeypatch.setitem(SETTING, "threshold", 10)
    assert before.fingerprint == said != Configured().fingerprint


def test_data_and_what_is_not_compared_are_no_part_of_it() -> None:
    rows = object()
    assert Holder(1, cache=object(), rows=rows).fingerprint == Holder(1).fingerprint
    assert identify(Holder(Holder(1, rows=rows), rows=2)).data == (rows, 2)


class Counter:
    def step(self) -> None: ...


@dataclass(frozen=True)
class Called:
    """What is called may carry data with it: it is not looked into, not even to be hashed."""

    rows: tuple[int, ...] = (1, 2, 3)

    def __call__(self) -> None: ...


def local() -> Callable[[], None]:
    def inner() -> None: ...

    return inner


def widened() -> Widened:
    pair = Widened(1)
    pair.__dict__["more"] = 1
    return pair


class Speaker:
    def __init__(self, value: Any) -> None:
        self.value = value

    def fingerprint(self) -> str:
        return "mine"


UNSAYABLE: Mapping[str, Any] = {
    "lambda": lambda: 1,
    "local function": local(),
    "bound method": Counter().step,
    "class method": dict.fromkeys,
    "partial": partial(function),
    "object": Counter(),
    "object that is called": Called(),
    "plain object": object(),
    "generator": (n for n in "ab"),
    "array of objects": np.array([object()]),
    "subclass of a number": type("Odd", (int,), {})(1),
    "masked array": np.ma.array([1]),
    "slots": SlottedRecord(1),
    "named tuple and more": widened(),
    "object with a fingerprint that is no mechanism": Speaker(1),
    "void of objects": np.array([(object(),)], [("a", object)])[0],
    "proposal": type("Mine", (), {})(),
}


@pytest.mark.parametrize("what", UNSAYABLE)
@pytest.mark.parametrize("inside", [lambda x: x, lambda x: (1, x), lambda x: {"a": x}, lambda x: Pair(x), Holder])
def test_what_cannot_be_told_apart_needs_a_name(what: str, inside: Callable[[Any], Any]) -> None:
    held = inside(UNSAYABLE[what])
    with pytest.raises(
        xp.InvalidValue, match=r"^Holder (holds a .* in '\w+'|has attributes).*give the mechanism name="
    ):
        _ = Holder(held).fingerprint
    assert Holder(held, name="a").fingerprint == Holder(held, name="a").fingerprint
    assert Holder(held, name="a").fingerprint != Holder(held, name="b").fingerprint
    assert Holder(held, name="a").fingerprint != Holder(held, 1, name="a").fingerprint
    assert Holder(Holder(held, name="a"), name=None).fingerprint
    with pytest.raises(xp.InvalidValue, match="name="):
        _ = Holder((Holder(1, name="a"), held)).fingerprint


@pytest.mark.parametrize(
    "mechanism",
    [Slotted(1), Counted(1), Listed((1,)), Mapped(a=1), Failure(1), Lazy(2), ByClass(1), ByProperty(1), Titled(1)],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_what_a_mechanism_holds_besides_fields_needs_a_name(mechanism: xp.Mechanism) -> None:
    with pytest.raises(xp.InvalidValue, match=f"^{type(mechanism).__name__} .*give the mechanism name="):
        _ = mechanism.fingerprint
    with pytest.raises(xp.InvalidValue, match=f"^{type(mechanism).__name__} .*give the mechanism name="):
        xp.Ledger(epsilon=1).run(mechanism, key="a")


def test_a_name_stands_only_for_what_cannot_be_said() -> None:
    told = [Titled("a"), Titled("b"), Titled("a", value=1), Titled("a", value=2), Titled("a", value=object())]
    found = [mechanism.fingerprint for mechanism in told]
    assert len(set(found)) == len(found)
    assert Titled("a", value=object()).fingerprint == found[-1]


def test_a_generic_class_holds_nothing_unseen() -> None:
    assert Typed(1).fingerprint != Typed(2).fingerprint


def test_a_field_that_was_never_set() -> None:
    bare = object.__new__(Typed)
    with pytest.raises(xp.InvalidValue, match=r"^Typed has a field that was never set \(value\)"):
        _ = bare.fingerprint


def test_a_mechanism_may_say_what_it_is_itself() -> None:
    assert Own(object(), "mine").fingerprint == "mine"
    assert Holder(Own(object(), "mine")).fingerprint == Holder(Own(1, "mine")).fingerprint
    with pytest.raises(xp.InvalidValue, match=r"a fingerprint is a text .*, got a list"):
        _ = Holder(Own(1, [])).fingerprint  # type: ignore[arg-type]


def test_fingerprints_are_the_same_in_every_process() -> None:
    code = "import expost as xp; print(xp.SparseVector(threshold=3, at_most=2, epsilon=1, sensitivity=1).fingerprint)"
    mine = xp.SparseVector(threshold=3, at_most=2, epsilon=1, sensitivity=1).fingerprint
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True
        )
        assert told.stdout.strip() == mine, told.stderr


def test_names() -> None:
    assert class_name(xp.Laplace) == "expost:Laplace"
    assert class_name(xp.PrivateTable) == "expost:PrivateTable"
    assert find("expost:Laplace") is xp.Laplace
    assert class_name(int) == "builtins:int"
    assert class_name(type("Nowhere", (), {})) is None
    assert function_name(function) == f"{__name__}:function"
    assert function_name(len) == "builtins:len"
    assert find("nowhere:Thing") is None
    assert find("expost.nowhere:Thing") is None


def test_texts() -> None:
    for value in (1, "a", None, (1,), (1, 2), [1], {1: 2}, {1}, frozenset({1}), Fraction(1, 2), Cost(1), np.float64(1)):
        assert text_of(value) == repr(value)
    assert text_of(set()) == "{}"
    assert text_of(Colour.RED) == "Colour.RED"
    assert text_of(Pair(1, len)) == f"<{__name__}:Pair>"
    assert text_of(SlottedRecord("secret")) == f"<{__name__}:SlottedRecord>"
    assert text_of(Holder(SlottedRecord("secret"), rows="secret")) == (
        f"Holder(value=<{__name__}:SlottedRecord>, more=0, listed=[], cache=None, name=None)"
    )
    assert text_of(np.array([(Failure("secret"),)], [("a", object)])[0]) == "<numpy:void>"
    assert text_of(object.__new__(Typed)) == f"<{__name__}:Typed>"
    assert text_of(partial(function, "secret")) == f"<partial of {__name__}:function>"
    assert text_of(Counter().step) == f"{__name__}:Counter.step"
    assert text_of(Counter()) == f"<{__name__}:Counter>"
    assert text_of([].append) == "list.append"
    assert text_of(np.zeros((2, 3))) == "<array of 2 × 3 float64>"
    assert text_of(Holder) == f"{__name__}:Holder"
    assert text_of(Stateless()) == f"<{__name__}:Stateless>"
    assert repr(Stateless()) == text_of(Stateless())
    coin = xp.mechanisms.Coin(epsilon=1, sensitivity=1)
    assert text_of(coin) == repr(coin) == "Coin(epsilon=1, sensitivity=1, heads=Fraction(1, 2), neighbours=None)"


def test_what_has_no_end_has_no_fingerprint_but_a_text() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value, why in (
        (endless, "holds itself"),
        (10**5000, "too many digits"),
        (Decimal("1e5000"), "too many digits"),
    ):
        with pytest.raises(xp.InvalidValue, match=f"{why}.*name="):
            _ = Holder(value).fingerprint
        assert "Holder" in text_of(Holder(value))
        ledger = xp.Ledger(epsilon=2)
        ledger._store.reserve(ledger._request("run", Holder(value), Guarantee.uniform(1), None, None), begin=True)
        assert ledger.verify().sequence == 2
