"""Means, variances and covariances without bounds: what finding a range costs, and how good they are."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost import mechanisms as mech
from expost.errors import InvalidValue
from expost.guarantee import Part
from expost.mechanism import WITHHELD, Withheld
from expost.mechanisms.moments.geometric_cells import Interval
from expost.mechanisms.moments.moments import Clamp, Winsorized, comoment_moved, count_outside
from expost.mechanisms.moments.private_range import LEVELS
from expost.mechanisms.moments.staircase import Staircase
from expost.verify import FiniteMechanism, check
from published import published

NOISE = xp.SeededNoise(11)
EXTREMES = np.array([np.inf, -np.inf, np.nan, 1.7e308, -1.7e308, 5e-324, -0.0, 1e-100, 3.0])
WITHOUT: list[xp.Mechanism] = [
    mech.MeanOfRecords(epsilon=1), mech.VarianceOfRecords(epsilon=1), mech.TrimmedMean(trim=0.1, epsilon=1),
]  # fmt: skip
ROWS = np.random.default_rng(6).normal(size=(50_000, 2))


@pytest.mark.parametrize("share", [None, "0.3"])
@pytest.mark.parametrize("kind", [mech.MeanOfRecords, mech.VarianceOfRecords])
def test_a_moment_costs_its_noise_and_the_level_of_the_search(kind: Any, share: Any) -> None:
    moment = kind(epsilon=1, range_share=share)
    for_range = Fraction(share or "1/2")
    prices: dict[Part, Fraction] = {
        level: for_range / 2 ** (LEVELS - level) + 1 - for_range for level in range(1, LEVELS + 1)
    }
    assert moment.guarantee == xp.Guarantee({**prices, "withheld": for_range}, neighbours="substitute")
    assert moment.guarantee.worst_case == xp.Cost(1)
    assert kind(epsilon=1, range_share=share, bounds=(0, 1)).guarantee == xp.Guarantee.uniform(
        1, neighbours="substitute"
    )


@pytest.mark.parametrize("kind", [mech.CovarianceOfRecords, mech.CorrelationOfRecords])
def test_two_columns_cost_their_noise_and_the_level_of_the_search(kind: Any) -> None:
    prices: dict[Part, Fraction] = {
        level: Fraction(1, 2) / 2 ** (LEVELS - level) + Fraction(1, 2) for level in range(1, LEVELS + 1)
    }
    prices["withheld"] = Fraction(1, 2)
    assert kind(epsilon=1).guarantee == xp.Guarantee(prices, neighbours="substitute")
    assert kind(epsilon=1).part_of(kind(epsilon=1).sample(ROWS, NOISE)) < LEVELS


@pytest.mark.parametrize(
    "mechanism",
    [mech.MeanOfRecords(epsilon=1), mech.VarianceOfRecords(epsilon=1)],
    ids=lambda one: type(one).__name__,
)
def test_a_ledger_is_refunded_what_the_range_did_not_take(mechanism: Any) -> None:
    ledger = xp.Ledger(epsilon=2, noise=xp.SeededNoise(1))
    large = ledger.run(mechanism, on=np.random.default_rng(0).normal(size=50_000))
    assert large.part == large.output.level < LEVELS
    assert large.refunded.exact_epsilon == Fraction(1, 2) - Fraction(1, 2) / 2 ** (LEVELS - large.output.level)
    small = ledger.run(mechanism, on=np.random.default_rng(0).normal(size=240))
    assert (small.withheld, small.part, small.charged, small.refunded) == (
        True, "withheld", xp.Cost("1/2"), xp.Cost("1/2"),
    )  # fmt: skip
    assert str(small).startswith(type(mechanism).__name__)
    assert small.frame.rows == ((mechanism.what, None, None, None, None),)
    with pytest.raises(InvalidValue, match="40 records are too few"):
        ledger.run(mechanism, on=np.arange(40.0))


def test_groups_are_charged_what_the_costliest_search_took() -> None:
    means = mech.ByGroup(mechanism=mech.MeanOfRecords(epsilon=1), groups=("a", "b"), split="record")
    rng = np.random.default_rng(0)
    groups = {"a": rng.normal(size=50_000), "b": rng.normal(size=5_000)}
    release = xp.Ledger(epsilon=1, noise=xp.SeededNoise(1)).run(means, on=groups)
    levels = [published(release.output[group]).level for group in ("a", "b")]
    assert levels[0] < levels[1]
    assert release.charged == mech.MeanOfRecords(epsilon=1).guarantee.cost_of(levels[1])


@pytest.mark.parametrize("mechanism", WITHOUT, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("data", [EXTREMES, np.array([5.0]), np.zeros(30), np.array([1e308, -1e308] * 20)])
def test_no_record_causes_an_error(mechanism: Any, data: Any) -> None:
    """Whatever is published is a number, and nothing is said of the error of a point."""
    for one in (mechanism, replace(mechanism, epsilon=1000)):  # type: ignore[type-var]
        found = one.sample(data, NOISE)
        if isinstance(found, Withheld):
            assert one.part_of(found) == "withheld"
            continue
        assert np.isfinite(found.value)
        assert found.noise is None or (found.noise >= 0 and found.low < found.high)


@pytest.mark.parametrize("kind", [mech.CovarianceOfRecords, mech.CorrelationOfRecords])
def test_no_pair_of_records_causes_an_error(kind: Any) -> None:
    rows = np.column_stack([EXTREMES, EXTREMES[::-1]])
    assert kind(epsilon=1).sample(rows, NOISE) is WITHHELD
    assert np.isfinite(published(kind(epsilon=1000).sample(np.tile(rows, (50, 1)), NOISE)).value)


def stopping(noisy: Fraction, late: bool) -> FiniteMechanism:
    """A bit told twice, with odds of 2 and then of ``noisy``: the exact law of an attempt and of the value after it.

    An attempt that says 0 withholds the value, and costs ln 2. If ``late``, it is the value that decides on that, as a
    test of the noisy mean itself would.
    """
    laws: dict[Any, dict[Any, Fraction]] = {}
    for bit in (0, 1):
        law: dict[Any, Fraction] = {}
        for attempt, value in product((0, 1), repeat=2):
            chance = (Fraction(2, 3) if attempt == bit else Fraction(1, 3)) * (
                noisy / (1 + noisy) if value == bit else 1 / (1 + noisy)
            )
            output = "withheld" if (value if late else attempt) == 0 else (attempt, value)
            law[output] = law.get(output, Fraction(0)) + chance
        laws[bit] = law
    return FiniteMechanism(laws, [(0, 1), (1, 0)], lambda output: "withheld" if output == "withheld" else 1)


def test_what_is_withheld_before_the_noise_costs_the_search_alone() -> None:
    """Proof: thm-moments, in rationals. Withheld by a look at the noisy value, it would cost more: the control."""
    prices: dict[Part, float] = {"withheld": np.log(2) + 1e-9, 1: np.log(2) + np.log(5) + 1e-9}
    assert check(stopping(Fraction(5), late=False), xp.Guarantee(prices)).holds
    assert check(stopping(Fraction(5), late=True), xp.Guarantee(prices)).holds is False
    less: dict[Part, float] = {**prices, "withheld": np.log(2) - 1e-3}
    assert check(stopping(Fraction(5), late=False), xp.Guarantee(less)).holds is False


def test_no_noise_for_the_value_is_drawn_before_it_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of ε is not spent: neither the count outside nor the moment is looked at."""

    def refuse(*_: Any) -> Staircase:
        raise AssertionError("noise for the value")

    monkeypatch.setattr(Staircase, "of", refuse)
    data = np.random.default_rng(0).normal(size=40)
    for mechanism in (
        mech.MeanOfRecords(epsilon=1),
        mech.VarianceOfRecords(epsilon=1),
        mech.TrimmedMean(trim=0.1, epsilon="1/10"),
    ):
        assert mechanism.sample(data, xp.SeededNoise(2)) is WITHHELD
    for paired in (mech.CovarianceOfRecords(epsilon=1), mech.CorrelationOfRecords(epsilon=1)):
        assert paired.sample(np.column_stack([data, data]), xp.SeededNoise(2)) is WITHHELD


SHAPES: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "normal": lambda rng, n: rng.normal(170, 10, n),
    "visits": lambda rng, n: rng.poisson(1, n).astype(float),
    "incomes": lambda rng, n: rng.lognormal(10, 0.8, n),
    "tails": lambda rng, n: rng.standard_t(3, n),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("size", "epsilon"), [(40, 0.9), (300, 1), (600, 1), (3_000, 1), (300, 4)])
def test_errors_hold_wherever_there_is_a_value(shape: str, size: int, epsilon: float) -> None:
    """Of forty runs at most four miss, which chance does once in fifty; it was most of them at few records."""
    rng, source = np.random.default_rng(3), xp.SeededNoise(12)
    data = SHAPES[shape](rng, size)
    for mechanism, truth in (
        (mech.MeanOfRecords(epsilon=epsilon), data.mean()),
        (mech.VarianceOfRecords(epsilon=epsilon), data.var()),
    ):
        found = [mechanism.sample(data, source) for _ in range(40)]
        bars = [one for one in found if isinstance(one, Winsorized) and one.noise is not None]
        if (
            isinstance(mechanism, mech.MeanOfRecords) or shape != "tails"
        ):  # squares beyond any range decide on that variance
            assert sum(abs(one.value - truth) > one.noise for one in bars if one.noise is not None) <= 4
        assert not bars or size >= 300


@pytest.mark.parametrize("kind", ["mean", "variance", "covariance"])
def test_hidden_records_move_statistics_by_no_more_than_is_said(kind: str) -> None:
    """By brute force over clamped data: the lemma's bound is kept, and for a mean and a variance nearly reached."""
    width, extent, worst = Fraction(4), Fraction(2), Fraction(0)
    values = [Fraction(x) for x in (-3, -2, 0, 1, 4, 6, 9)]
    for data in product(values, repeat=4):
        near = [min(max(x, Fraction(0)), width) for x in data]
        far = [min(max(x, -extent), width + extent) for x in data]
        share = Fraction(sum(x != y for x, y in zip(data, near, strict=True)), 4)
        if kind == "mean":
            off, bound = abs(_sum(far) - _sum(near)) / 4, share * extent
        else:
            other_near, other_far = (near, far) if kind == "variance" else (near[::-1], far[::-1])
            off = abs(_covariance(far, other_far) - _covariance(near, other_near))
            outside = [x != y or z != w for x, y, z, w in zip(near, data, near[::-1], data[::-1], strict=True)]
            share = share if kind == "variance" else Fraction(sum(outside), 4)
            bound = comoment_moved(share, (extent, extent), (width, width))
        assert off <= bound
        worst = max(worst, off / bound if bound else worst)
    assert worst > (Fraction(9, 10) if kind == "mean" else Fraction(1, 3))


def _covariance(first: list[Fraction], second: list[Fraction]) -> Fraction:
    pairs = zip(first, second, strict=True)
    return _sum([x * y for x, y in pairs]) / 4 - _sum(first) * _sum(second) / 16


def _sum(numbers: list[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0))


def test_records_outside_are_part_of_the_error_and_many_of_them_leave_none() -> None:
    source = xp.SeededNoise(1)
    none, some, many = (count_outside(number, 1000, Fraction(1000), source) for number in (0, 30, 101))
    assert (none.some, some.some, some.many, many.many) == (False, True, False, True)
    assert [none.share, some.share] == [0, Fraction(30, 1000)]
    assert count_outside(0, 1000, Fraction(1, 10), source).share > Fraction(1, 1000)
    within = Clamp(Interval(2.0, 4.0), Fraction(1), within=Interval(0.0, 100.0), found=True)
    assert [within.extent(counted) for counted in (none, some, many)] == [1, 96, 96]
    assert [within._replace(within=None).extent(counted) for counted in (none, some, many)] == [1, 1, None]
    assert within._replace(within=Interval(1.5, 4.25)).extent(none) == Fraction(1, 2)


def test_records_far_from_an_interval_within_bounds_are_part_of_the_error() -> None:
    """Nearly all records lie on a bound, and the others far away: these are counted, and may be at the other end."""
    data = np.concatenate([np.full(2_940, 0.0), np.random.default_rng(1).uniform(-18, -2, 60)])
    found = [published(mech.MeanOfRecords(epsilon=1, bounds=(-18, 0)).sample(data, NOISE)) for _ in range(40)]
    assert sum(one.low > -18 for one in found) > 20
    assert sum(abs(one.value - data.mean()) > (one.noise or 0) for one in found) <= 4


def test_moments_of_any_size() -> None:
    data = 1e9 + 1e6 * np.random.default_rng(4).normal(size=20_000)
    mean = [published(mech.MeanOfRecords(epsilon=1).sample(data, NOISE)).value for _ in range(10)]
    assert np.mean(np.abs(np.array(mean) - data.mean())) < 0.01 * data.std()
    spread = [published(mech.VarianceOfRecords(epsilon=1).sample(data, NOISE)).value for _ in range(10)]
    assert np.mean(np.abs(np.array(spread) - data.var())) < 0.05 * data.var()
    trimmed = [published(mech.TrimmedMean(trim=0.1, epsilon=1).sample(data, NOISE)).value for _ in range(10)]
    assert np.mean(np.abs(np.array(trimmed) - data.mean())) < 0.05 * data.std()


def test_covariances_of_any_size() -> None:
    rng = np.random.default_rng(5)
    first = rng.normal(1e6, 1e3, size=20_000)
    rows = np.column_stack([first, 1e-3 * first + rng.normal(size=20_000)])
    found = [published(mech.CovarianceOfRecords(epsilon=4).sample(rows, NOISE)).value for _ in range(10)]
    assert np.median(found) == pytest.approx(np.asarray(np.cov(rows.T))[0, 1], rel=0.1)
    correlation: Any = mech.CorrelationOfRecords(epsilon=4)
    likeness = [correlation.sample(rows, NOISE).value for _ in range(10)]
    assert np.median(likeness) == pytest.approx(np.asarray(np.corrcoef(rows.T))[0, 1], abs=0.1)


def test_what_cannot_be_found_is_refused() -> None:
    with pytest.raises(InvalidValue, match="bounds are a pair"):
        mech.TypicalRange(epsilon=1, bounds=None, neighbours="substitute")
    with pytest.raises(InvalidValue, match="there are none"):
        mech.MeanOfRecords(epsilon=1, scales=0)
    for tiny in (
        mech.MeanOfRecords,
        mech.VarianceOfRecords,
        mech.CovarianceOfRecords,
        mech.CorrelationOfRecords,
    ):
        with pytest.raises(InvalidValue, match="split"):
            tiny(epsilon="1e-11")
