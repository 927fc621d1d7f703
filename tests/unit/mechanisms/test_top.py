"""The most frequent labels: the guarantee exactly on small data, wrong variants, the sampler's law, kinds of data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.verify import FiniteMechanism, least_delta_at

BASE = Fraction(1, 3)  # e^−rate
END = "⊥"


def candidates(counts: Mapping[str, int], wanted: int, padded: bool = True) -> tuple[list[tuple[str, int]], int]:
    """The candidates with their counts, dummies included, and the count of the first that is not one."""
    order = sorted(((label, count) for label, count in counts.items() if count), key=lambda pair: (-pair[1], pair[0]))
    order += [(f"dummy {i}", 0) for i in range(wanted if padded else 0)]
    return order[:wanted], order[wanted][1] if len(order) > wanted else 0


def law(
    counts: Mapping[str, int], k: int, wanted: int, margin: int, base: Fraction = BASE, padded: bool = True
) -> dict[Any, Fraction]:
    """The law of the output, in rationals."""
    field, outside = candidates(counts, wanted, padded)
    weights = {label: base**-count for label, count in field} | {END: base ** -(outside + margin)}
    found: dict[Any, Fraction] = {}

    def choose(chosen: tuple[str, ...], left: dict[str, Fraction], probability: Fraction) -> None:
        if len(chosen) == k:
            found[chosen] = found.get(chosen, Fraction(0)) + probability
            return
        for label, weight in left.items():
            share = probability * weight / sum(left.values())
            if label == END or label.startswith("dummy"):
                found[chosen] = found.get(chosen, Fraction(0)) + share
            else:
                choose((*chosen, label), {other: w for other, w in left.items() if other != label}, share)

    choose((), weights, Fraction(1))
    return found


def neighbours(groups: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Counts of three labels, and with one person more who has at most so many of them."""
    for counts, added in product(product(range(3), repeat=3), product((0, 1), repeat=3)):
        if 0 < sum(added) <= groups:
            yield counts, tuple(c + a for c, a in zip(counts, added, strict=True))


def worst(k: int, wanted: int, groups: int, margin: int, shares: Mapping[int, int]) -> Fraction:
    """The least δ over all those neighbours, at these numbers of shares for each part."""
    pairs = list(neighbours(groups))
    databases = {each for pair in pairs for each in pair}
    laws = {each: law(dict(zip("abc", each, strict=True)), k, wanted, margin) for each in databases}
    return least_delta_at(FiniteMechanism(laws, pairs, len), {part: BASE**-n for part, n in shares.items()})


@pytest.mark.parametrize(("k", "wanted", "groups"), [(1, 1, 1), (1, 2, 2), (2, 2, 1), (2, 3, 2), (2, 2, 3)])
def test_the_guarantee(k: int, wanted: int, groups: int) -> None:
    """δ is min(groups, candidates)·e^−(rate·margin), where the margin is above the one person."""
    for over in (0, 1, 3):
        guaranteed = min(groups, wanted) * BASE**over
        assert worst(k, wanted, groups, 1 + over, {c: min(c + 1, k) for c in range(k + 1)}) <= guaranteed


def test_the_end_is_not_free() -> None:
    """Charged for labels alone, it would need far more δ than it has."""
    assert worst(1, 1, 1, 4, {0: 0, 1: 1}) > BASE**3
    assert worst(2, 2, 1, 4, {0: 0, 1: 1, 2: 2}) > BASE**3


@pytest.mark.parametrize("margin", [2, 9, 40])
def test_retries_are_not_free(margin: int) -> None:
    """The counterexample of the docs: whatever the margin, and so the δ of one call."""
    laws = {}
    for count in (margin, margin + 1):
        once = law({"a": count}, 1, 1, margin)
        none = once[()]
        laws[count] = {("a", j): none ** (j - 1) * once[("a",)] for j in range(1, 6)} | {(): none**5}
    retried = FiniteMechanism(laws, [(margin, margin + 1)], lambda output: bool(output))
    assert least_delta_at(retried, {True: 1 / BASE, False: 1}) >= Fraction(82, 1024)
    paid = FiniteMechanism(laws, [(margin, margin + 1)], lambda output: output[1] if output else 5)
    assert least_delta_at(paid, {calls: BASE**-calls for calls in range(1, 6)}) == 0


@pytest.mark.parametrize(("padded", "holds"), [(True, True), (False, False)])
def test_candidates_are_padded(padded: bool, holds: bool) -> None:
    """Without dummies, a label that one person adds makes another one less likely by more than one share."""
    base = Fraction(9, 10)
    alone, beside = (law(counts, 1, 2, 2, base, padded)[("a",)] for counts in ({"a": 1}, {"a": 1, "b": 1}))
    assert (alone / beside <= 1 / base) == holds


def test_half_the_price_is_too_little() -> None:
    assert worst(2, 2, 1, 4, {0: 0, 1: 1, 2: 1}) > BASE**3


def test_a_margin_without_the_person_is_too_small() -> None:
    """The bar is above the count of who is not a candidate by one person more."""
    assert worst(1, 1, 1, 3, {0: 1, 1: 1}) > BASE**3


@pytest.mark.slow
def test_the_sampler_has_the_law_of_the_model() -> None:
    counts = {"a": 3, "b": 2, "c": 2}
    top = xp.TopK(k=2, epsilon=2, delta=Fraction(1, 3), candidates=3)
    rate = float(top.rate)
    weights = np.exp(rate * np.array([3, 2, 2, top.margin]))  # a, b, c, and the bar above the dummies
    noise, runs = xp.SeededNoise(4), 10_000
    found = Counter(top.sample(counts, noise) for _ in range(runs))
    first = weights / weights.sum()
    assert found[()] / runs == pytest.approx(first[3], abs=4 * 0.5 / runs**0.5)
    for i, label in enumerate("abc"):
        after = first[i] * weights[3] / (weights.sum() - weights[i])
        assert found[(label,)] / runs == pytest.approx(after, abs=4 * 0.5 / runs**0.5)


def test_frequent_labels_come_first_and_rare_ones_never() -> None:
    counts = {"rare": 1, "seldom": 2, "often": 900, "always": 2000}
    release = xp.Ledger(epsilon=4, delta=1e-6).run(xp.TopK(k=4, epsilon=4, delta=1e-6), on=counts)
    assert release.value == ("always", "often")
    assert release.charged == xp.Cost(3, 1e-6)
    assert release.refunded == xp.Cost(1)


def test_arrays_and_mappings_agree() -> None:
    labels, counts = np.array(["x", "y", "z", "w"]), np.array([5, 900, 700, 900])
    top = xp.TopK(k=3, epsilon=30, delta=1e-3, candidates=3)
    for data in ((labels, counts), dict(zip(labels.tolist(), counts.tolist(), strict=True))):
        found, heights = top._field(data)
        assert found == ["w", "y", "z"]
        assert heights.tolist() == [900, 900, 700, 5 + top.margin]


def test_ties_are_broken_by_labels_whatever_their_order() -> None:
    top = xp.TopK(k=1, epsilon=1, delta=1e-3, candidates=2)
    numbers = np.arange(1000)
    for order in (numbers, numbers[::-1]):
        assert top._field((order, np.ones(1000, int)))[0] == [0, 1]


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"a": -5, "b": 10**400, 3: 2.5, None: "text", (1, None): 7, ("x",): 7},
        (np.array([], dtype=int), np.array([], dtype=int)),
        (np.array(["a", "b"]), np.array([2**64 - 1, 0], np.uint64)),
        (np.array([True, False]), np.array([-9, 7])),
    ],
)
def test_private_values_follow_rules(data: Any) -> None:
    value = xp.Ledger(epsilon=1, delta=1e-3).run(xp.TopK(k=2, epsilon=1, delta=1e-3), on=data).value
    assert len(value) <= 2


@dataclass(frozen=True)
class Alike:
    """Labels that all print the same."""

    number: int = field(repr=False)


def test_labels_without_an_order_are_left_out() -> None:
    """Broken ties would depend on the order of insertion, and one person would move many candidates."""
    top = xp.TopK(k=1, epsilon=1, delta=1e-3, candidates=2)
    odd = {Alike(1): 9, date(2026, 1, 1): 9, 10**5000: 9, b"x": 9, ((1,),): 9, float("nan"): 9, frozenset({1}): 9}
    assert top._field(odd)[0] == []
    mixed = {"b": 7, 3: 7, (1, "a"): 7, True: 7, np.int64(4): 7, np.str_("a"): 7}
    for data in (mixed, dict(reversed(mixed.items()))):
        assert xp.TopK(k=1, epsilon=1, delta=1e-3)._field(data)[0] == [1, 3, 4, "a", "b", (1, "a")]


PARTS = [0, 1, -1, 2**63 - 1, -(2**63), "", "a", "b", "1", "True", "\ud800", "\udcff", "é", "e\u0301", "\x00"]
LABELS: list[Any] = [*PARTS, (), *((part,) for part in PARTS), *product(PARTS, PARTS)]


def test_the_order_of_labels_is_total() -> None:
    """Two labels with one place would be in the order of insertion: one person would move a candidate."""
    top = xp.TopK(k=1, epsilon=1, delta=1e-3, candidates=len(LABELS))
    forward = dict.fromkeys(LABELS, 1)
    assert len(forward) == len(LABELS)
    found = top._field(forward)[0]
    assert found == top._field(dict(reversed(forward.items())))[0]
    assert {(type(label), label) for label in found} == {(type(label), label) for label in LABELS}


class Small(IntEnum):
    ONE = 1


class Letter(StrEnum):
    A = "a"


@pytest.mark.parametrize(
    ("label", "keys"),
    [
        (1, [True, 1.0, 1 + 0j, Fraction(1), Decimal(1), Small.ONE, np.int64(1), np.uint8(1), np.True_, np.float32(1)]),
        ("a", [np.str_("a"), Letter.A]),
        ((1, "a"), [(True, Letter.A), (1.0, "a"), (np.int64(1), np.str_("a"))]),
    ],
)
def test_equal_keys_are_one_label_whoever_came_first(label: Any, keys: list[Any]) -> None:
    """``Counter([True, 1, 1])`` has the key True, and without the first record 1: neither type nor order may tell."""
    top = xp.TopK(k=1, epsilon=1, delta=1e-3)
    for key in keys:
        assert Counter([key, label]) == {label: 2}, "one key to a mapping"
        (found,) = top._field(Counter([key, label, label]))[0]
        assert (type(found), found) == (type(label), label)
        assert not isinstance(found, tuple) or [*map(type, found)] == [*map(type, label)]


@pytest.mark.parametrize(
    "key",
    [1.5, float("inf"), 2.0**63, Decimal("NaN"), Decimal("1e999999"), np.timedelta64(5, "ns"), (1, (2,)), ((),), 1j],
)
def test_other_keys_are_no_labels(key: Any) -> None:
    assert xp.TopK(k=1, epsilon=1, delta=1e-3)._field({key: 9, 5: 8})[0] == [5]


def test_counts_that_are_no_whole_numbers() -> None:
    counts = {"a": 7.9, "b": float("inf"), "c": float("nan"), "d": -1e300, "e": np.float32(2.5), "f": np.bool_(True)}
    labels, heights = xp.TopK(k=1, epsilon=1, delta=1e-3)._field(counts)
    assert labels == ["b", "a", "e", "f"]
    assert heights[:4].tolist() == [2**60, 7, 2, 1]


@pytest.mark.parametrize(
    "data", [[1, 2], "text", (np.arange(3), np.arange(2)), (np.zeros(2), np.arange(2)), (np.arange(2), np.zeros(2))]
)
def test_wrong_data_is_refused_before_any_charge(data: Any) -> None:
    ledger = xp.Ledger(epsilon=1, delta=1e-3)
    with pytest.raises(xp.InvalidValue):
        ledger.run(xp.TopK(k=2, epsilon=1, delta=1e-3), on=data)
    assert ledger.remaining.epsilon == 1


@pytest.mark.parametrize(
    "wrong", [{"k": 0}, {"epsilon": 0}, {"delta": 0}, {"groups": 0}, {"candidates": 1}, {"epsilon": 1e-12}]
)
def test_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(xp.InvalidValue):
        xp.TopK(**{"k": 2, "epsilon": 1, "delta": 1e-3, **wrong})
