"""Quantiles without bounds: candidates of single precision, their order, and the law of the choice among them."""

from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss

import expost as xp
from expost.errors import InvalidValue
from expost.mechanism import WITHHELD
from expost.mechanisms.quantiles.candidates import OrNothing, Unbounded
from expost.noise import SeededNoise, SystemNoise
from published import published

NOISE = SystemNoise()
FLOATS, WHOLE = Unbounded.of(None, floats=True), Unbounded.of(None, floats=False)
CENTS = Unbounded.of("0.01", floats=True)
ALL = [FLOATS, WHOLE, CENTS]
RELATIONS: list[Any] = ["substitute", "add-remove"]
SURE: dict[str, Any] = {"epsilon": 1000, "neighbours": "substitute"}


@pytest.mark.parametrize("candidates", ALL)
@given(share=st.fractions(0, 1))
def test_candidates_ascend_and_are_nearest_to_themselves(candidates: Unbounded, share: Fraction) -> None:
    index = int(share * (candidates.size - 2))
    value = candidates.value(index)
    assert value < candidates.value(index + 1)
    assert candidates.indices(np.array([value]), 0.0).tolist() == [index]


@pytest.mark.parametrize("candidates", ALL)
def test_candidates_at_the_ends_of_ranges(candidates: Unbounded) -> None:
    zero = candidates.size // 2
    assert candidates.value(zero) == 0
    for place in (1, 2**23, 2**24 - 1, 2**24, 2**24 + 1, zero):
        assert candidates.value(zero - place) == -candidates.value(zero + place)
        assert candidates.value(zero + place - 1) < candidates.value(zero + place)


def test_small_multiples_are_all_candidates() -> None:
    zero = WHOLE.size // 2
    assert [WHOLE.value(zero + i) for i in (-7, 0, 3, 2**24, 2**24 + 1)] == [-7, 0, 3, 2**24, 2**24 + 2]
    assert CENTS.value(CENTS.size // 2 + 19) == 0.19


@given(st.lists(st.floats(allow_nan=False, width=64), min_size=2))
def test_rounding_never_changes_the_order(values: list[float]) -> None:
    for candidates in ALL:
        indices = candidates.indices(np.sort(np.array(values)), 0.0)
        assert np.all(indices[1:] >= indices[:-1])
        assert 0 <= indices[0] <= indices[-1] < candidates.size


@given(st.floats(-1e30, 1e30))
@example(2433816.23828125)  # to 243381624 steps, half way between two candidates, and up to the next
@example(0.005 - 2**-60)  # half a step is added to it, which makes it a whole one
def test_a_record_lies_around_its_candidate(value: float) -> None:
    for candidates in (FLOATS, CENTS):
        limited = min(max(value, -1e15), 1e15)
        nearest = candidates.value(int(candidates.indices(np.array([limited]), 0.0)[0]))
        low, high = candidates.around(nearest, floats=True)
        assert low <= limited <= high


@pytest.mark.parametrize("candidates", [CENTS, Unbounded.of(1, floats=True)])
@given(share=st.fractions(0, 1))
def test_half_a_step_reaches_no_other_candidate(candidates: Unbounded, share: Fraction) -> None:
    zero, dense = candidates.size // 2, 2**24 - 1
    chosen = zero + int((2 * share - 1) * dense)
    assert candidates.within(chosen, (candidates.step or 0) / 2, floats=True) == range(chosen, chosen + 1)
    assert len(candidates.within(chosen, 2 * (candidates.step or 0), floats=True)) in (2, 3)  # at an end it is 2


def test_missing_and_infinite_values_have_places() -> None:
    data = np.array([nan, inf, -inf, 5.0])
    values = [FLOATS.value(int(index)) for index in FLOATS.indices(data, 2.0)]
    assert values == [2.0, np.finfo(np.float32).max, np.finfo(np.float32).min, 5.0]


@pytest.mark.parametrize(
    ("data", "median"),
    [
        (np.array([1, 2, 3]), 2),
        (np.array([2**60, 2**60, -(2**63)]), 2**60),
        (np.array([0.1, 0.25, 1e300]), 0.25),
        (np.array([-1e-40, -1e-40, 3.0]), float(np.float32(-1e-40))),
        (np.array([7.0]), 7.0),
    ],
)
def test_a_sure_median_is_exact(data: Any, median: float) -> None:
    value = xp.mechanisms.MedianOfRecords(**SURE).sample(data, NOISE)
    assert value == median
    assert isinstance(value, float) == (data.dtype.kind == "f")


@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
@pytest.mark.parametrize("size", [0, 20])
def test_few_records_give_nothing_but_rarely(relation: Any, size: int) -> None:
    """Two thousand that are no number for every one: of 800 choices that the data hardly guides, 0 or 1 are numbers."""
    source, data = SeededNoise(4), np.random.default_rng(1).normal(170, 10, size)
    kinds: list[xp.Mechanism] = [
        xp.mechanisms.MedianOfRecords(epsilon=1, neighbours=relation),
        xp.mechanisms.InterquartileRange(epsilon=1, neighbours=relation),
        xp.mechanisms.QuantilesOfRecords(quantiles=(0.2, 0.5), epsilon=1, neighbours=relation),
        xp.mechanisms.DistributionFunction(points=3, epsilon=1, neighbours=relation),
    ]
    for mechanism in kinds:
        found = [mechanism.sample(data, source) for _ in range(200)]
        assert sum(value is WITHHELD for value in found) > 195
        assert mechanism.describe(WITHHELD).startswith("withheld")
        assert {mechanism.part_of(value) for value in found} == {"released"}  # one draw: nothing is refunded


def test_enough_records_give_a_number() -> None:
    source, data = SeededNoise(5), np.random.default_rng(1).normal(170, 10, 250)
    for relation in RELATIONS:
        found = [
            published(xp.mechanisms.MedianOfRecords(epsilon=1, neighbours=relation).sample(data, source))
            for _ in range(100)
        ]
        assert min(found) > 130
        assert max(found) < 210


def test_a_public_number_of_records_that_is_too_small_is_refused() -> None:
    """The rule: off by so many ranks that it may be beyond all records. Nothing is charged."""
    median = xp.mechanisms.MedianOfRecords(epsilon=1, neighbours="substitute")
    off = int(median.error_bound("0.95"))
    enough = 2 * off + 1
    median.check(np.zeros(enough))
    median.check(xp.mechanisms.Tally(np.zeros(1), np.array([enough])))
    ledger = xp.Ledger(epsilon=1)
    few: list[Any] = [np.zeros(enough - 1), np.zeros(0), xp.mechanisms.Tally(np.zeros(2), np.array([enough - 1, -5]))]
    for data in few:
        with pytest.raises(InvalidValue, match="records are too few for the quantile"):
            ledger.run(median, on=data)
    assert ledger.remaining == xp.Cost(1)
    with pytest.raises(InvalidValue, match="quantile 1 without"):
        xp.mechanisms.QuantileOfRecords(quantile=1, epsilon=1, neighbours="substitute").check(np.zeros(10**5))
    xp.mechanisms.MedianOfRecords(epsilon=1, neighbours="add-remove").check(
        np.zeros(3)
    )  # a private number refuses nothing
    xp.mechanisms.MedianOfRecords(epsilon=1, bounds=(0, 1), neighbours="substitute").check(np.zeros(3))


def test_candidates_that_are_no_number_lie_beyond_all_that_are() -> None:
    both = OrNothing(FLOATS)
    beyond = (both.size - FLOATS.size) // 2
    assert beyond == 1000 * FLOATS.size
    assert [both.answers(place) for place in (0, beyond - 1, beyond, beyond + FLOATS.size - 1, both.size - 1)] == [
        False, False, True, True, False,
    ]  # fmt: skip
    assert both.ends == (both.value(beyond), both.value(beyond + FLOATS.size - 1)) == FLOATS.ends
    data = np.array([nan, -inf, 0.0, 3.5, inf])
    assert np.array_equal(both.indices(data, 2.0), beyond + FLOATS.indices(data, 2.0))


def test_several_quantiles_and_what_is_made_of_them() -> None:
    data = 1e6 * np.random.default_rng(3).lognormal(size=20_000)
    low, high = np.quantile(data, [0.25, 0.75], method="inverted_cdf")
    assert xp.mechanisms.InterquartileRange(epsilon=2, neighbours="substitute").sample(data, NOISE) == pytest.approx(
        high - low, rel=0.05
    )
    function = published(
        xp.mechanisms.DistributionFunction(points=4, epsilon=2, neighbours="substitute").sample(data, NOISE)
    )
    assert function.levels == (0.25, 0.5, 0.75)  # the largest record has no place without bounds
    assert function.values[0] == pytest.approx(low, rel=0.05)
    quantiles = xp.mechanisms.QuantilesOfRecords(quantiles=(0.25, 0.5, 0.75), epsilon=4, neighbours="substitute")
    start, end = quantiles.interval(quantiles.sample(data, NOISE), 0.5, 0.9, n=len(data))
    assert start <= np.quantile(data, 0.5, method="inverted_cdf") <= end < 1e7


def test_grids_without_bounds() -> None:
    data = np.array([0.104, 0.25, 1e300])
    assert xp.mechanisms.MedianOfRecords(grid="0.1", **SURE).sample(data, NOISE) == pytest.approx(0.3)
    with pytest.raises(InvalidValue, match="at most 1e200"):
        xp.mechanisms.MedianOfRecords(grid=10**201, **SURE)
    with pytest.raises(InvalidValue, match="from 1e-300"):
        xp.mechanisms.MedianOfRecords(grid=0, **SURE)


def test_people_read_how_records_are_rounded() -> None:
    assert xp.mechanisms.MedianOfRecords(**SURE).describe(0.5).endswith("of records rounded to 24 bits at 95 %")
    assert "multiples of 0.1 and to 24 bits" in xp.mechanisms.MedianOfRecords(grid="0.1", **SURE).describe(0.5)


def chance_of_the_median(rate: float, near: int, far: int) -> float:
    """Pr[the one candidate with heads for sure] = ∫ (1 − t·p)^near (1 − t·p²)^far dt, for p = e^−rate."""
    places, weights = leggauss(200)
    times = (places + 1) / 2
    logs = near * np.log1p(-times * np.exp(-rate)) + far * np.log1p(-times * np.exp(-2 * rate))
    return float((weights / 2) @ np.exp(logs))


@pytest.mark.slow
def test_the_law_of_the_choice_among_all_candidates() -> None:
    """Of 1, 2 and 3, the median is 2; 2^23 + 2^22 candidates from 1 to 3 are off by one, all others by two."""
    draws, noise = 1500, SeededNoise(7)
    mechanism = xp.mechanisms.MedianOfRecords(epsilon=32, neighbours="substitute")
    hits = sum(mechanism.sample(np.array([1.0, 2.0, 3.0]), noise) == 2.0 for _ in range(draws))
    near = 2**23 + 2**22
    expected = chance_of_the_median(16, near, OrNothing(FLOATS).size - 1 - near)
    deviation = (expected * (1 - expected) / draws) ** 0.5
    assert abs(hits / draws - expected) < 4 * deviation
    wrong = chance_of_the_median(16, near // 2, OrNothing(FLOATS).size - 1 - near)  # control: twice as coarse
    assert abs(hits / draws - wrong) > 4 * deviation


def test_loose_bounds_are_worse_than_none() -> None:
    """Why: a million cells between bounds cannot resolve what bounds are a trillion times too wide for."""
    data = np.random.default_rng(5).normal(100, 15, size=2000)
    loose = xp.mechanisms.MedianOfRecords(epsilon=1, neighbours="substitute", bounds=(0, 1e14))
    none = xp.mechanisms.MedianOfRecords(epsilon=1, neighbours="substitute")
    assert abs(none.sample(data, NOISE) - np.median(data)) < 3 < abs(loose.sample(data, NOISE) - np.median(data))
