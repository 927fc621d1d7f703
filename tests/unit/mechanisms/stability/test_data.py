"""Data rules of the robust mechanisms: any values are answered, public mistakes are free and clear."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.mechanisms.stability.quantile_range import Bin
from expost.mechanisms.stability.votes import Coefficients
from expost.noise import discrete_laplace

RANGE = xp.mechanisms.StableInterquartileRange(epsilon=1, delta=1e-6)
NOISY = xp.mechanisms.StableNoisyInterquartileRange(epsilon=3, delta=1e-6)
MEDIAN = xp.mechanisms.StableMedian(epsilon=1, delta=1e-6, proposed=1)
MEAN = xp.mechanisms.StableTrimmedMean(trim=0.1, epsilon=1, delta=1e-6, proposed=1, bounds=(-10, 10))
ALL = [RANGE, NOISY, MEDIAN, MEAN, xp.mechanisms.StableQuantile(quantile=1, epsilon=1, delta=1e-6, proposed=1)]

RNG = np.random.default_rng(5)
AWKWARD = [
    np.array([3.5]),
    np.array([np.nan]),
    np.zeros(1000),
    np.full(1000, np.nan),
    np.full(1000, np.inf),
    np.array([-np.inf, np.inf] * 500),
    np.array([np.nan, np.inf, -np.inf, 0.0, 5e-324, 1.7e308] * 100),
    RNG.normal(size=1000),
    RNG.normal(size=1000).astype(np.float32),
    RNG.normal(size=1000).astype(np.float16),
    RNG.integers(0, 3, 1000),
    RNG.integers(0, 255, 1000, dtype=np.uint8),
    np.array([2**64 - 1, 0] * 100, dtype=np.uint64),
    np.array([-(2**63), 2**63 - 1] * 100),
    RNG.integers(0, 2, 1000).astype(bool),
    np.asfortranarray(RNG.normal(size=2000))[::2],
]


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("data", AWKWARD, ids=range(len(AWKWARD)))
def test_any_values_are_answered(mechanism: xp.Mechanism, data: Any) -> None:
    before = data.copy()
    ledger = xp.Ledger(epsilon=100, delta=1e-3, noise=xp.SeededNoise(1))
    for _ in range(5):
        release = ledger.run(mechanism, on=data)
        assert mechanism.guarantee.cost_of(release.part) == release.charged
        assert str(release)
        if not release.withheld:
            published = release.value[1:] if isinstance(release.value, Bin) else [release.value]
            assert np.isfinite(published).all()
    assert np.array_equal(before, data, equal_nan=data.dtype.kind == "f")


@pytest.mark.parametrize("mechanism", ALL, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (3.5, "one-dimensional"),
        (np.zeros((3, 3)), "one-dimensional"),
        (np.zeros(0), "at least one record"),
        (np.array(["a"]), "dtype"),
        (np.array([1j]), "dtype"),
        ({1.0, 2.0}, "numpy array"),
    ],
)
def test_public_mistakes_are_free(mechanism: xp.Mechanism, data: Any, rule: str) -> None:
    ledger = xp.Ledger(epsilon=10, delta=1e-3)
    with pytest.raises(xp.InvalidValue, match=rule):
        ledger.run(mechanism, on=data)
    assert ledger.remaining == ledger.limit


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: xp.mechanisms.StableInterquantileRange(low=0.5, high=0.5, epsilon=1, delta=1e-6), "low < high"),
        (lambda: xp.mechanisms.StableInterquartileRange(epsilon=1, delta=1e-6, grid=1), "factor"),
        (lambda: xp.mechanisms.StableInterquartileRange(epsilon=1, delta=0), "δ of at least"),
        (lambda: xp.mechanisms.StableInterquartileRange(epsilon="1e-12", delta=1e-6), "split in 2"),
        (lambda: xp.mechanisms.StableInterquartileRange(epsilon=1, delta=1e-6, missing="1e390"), "fit a float"),
        (lambda: xp.mechanisms.StableMedian(epsilon=1, test_share=1, delta=1e-6, proposed=1), "test_share"),
        (lambda: xp.mechanisms.StableMedian(epsilon=1, delta=1e-6, proposed=0), "above 0"),
        (lambda: xp.mechanisms.StableMedian(epsilon=1, delta=1e-6, proposed=1, bounds=(1, 0)), "the lowest first"),
        (lambda: xp.mechanisms.StableMedian(epsilon=1, delta=1e-6, proposed=1, bounds=3), "pair"),
        (lambda: xp.mechanisms.StableQuantile(quantile=2, epsilon=1, delta=1e-6, proposed=1), "between 0 and 1"),
        (lambda: xp.mechanisms.StableTrimmedMean(trim=0.5, epsilon=1, delta=1e-6, proposed=1), "either side"),
        (lambda: xp.mechanisms.StableMedian.scaled(0, size=10, epsilon=1, delta=1e-6), "above 0"),
        (lambda: xp.mechanisms.StableMedian.scaled(1, size=0, epsilon=1, delta=1e-6), "number of records"),
        (lambda: regression(blocks=0), "blocks"),
        (lambda: regression(bounds=None), "bounds are a pair"),
        (lambda: regression(cell=0), "above 0"),
    ],
)
def test_parameters_are_refused_with_a_reason(make: Any, rule: str) -> None:
    with pytest.raises(xp.InvalidValue, match=rule):
        make()


def test_zero_is_a_bin_of_its_own_and_n_of_one_is_always_answered() -> None:
    """With one record the range is 0 whatever the data; constant data needs enough records."""
    outputs = [RANGE.sample(np.array([x]), xp.SeededNoise(2)) for x in (0.0, 7.0, np.nan, np.inf)]
    assert outputs == [Bin(1, 0.0, 0.0)] * 4
    assert RANGE.sample(np.full(1000, 3.0), xp.SeededNoise(2)) == (1, 0.0, 0.0)
    assert NOISY.sample(np.full(1000, 3.0), xp.SeededNoise(2)) == 0.0
    assert Bin(1, 0.0, 0.0).middle == 0.0
    assert Bin(2, 1.0, 4.0).middle == 2.0


def test_answers_are_right_on_plenty_of_data() -> None:
    data = RNG.normal(10, 2, size=200_000)
    found = RANGE.sample(data, xp.SeededNoise(3))
    assert isinstance(found, Bin)
    assert found.lower <= np.subtract(*np.quantile(data, [0.75, 0.25])) < found.upper
    whole = {"size": len(data), "epsilon": 1, "delta": 1e-6}
    assert abs(xp.mechanisms.StableMedian.scaled(found, **whole).sample(data, xp.SeededNoise(3)) - 10) < 0.1
    high = xp.mechanisms.StableQuantile.scaled(found, quantile=0.9, **whole).sample(data, xp.SeededNoise(3))
    assert abs(high - np.quantile(data, 0.9)) < 0.1
    wide = xp.mechanisms.StableInterquantileRange(low=0.1, high=0.9, epsilon=1, delta=1e-6).sample(
        data, xp.SeededNoise(3)
    )
    assert (
        abs(xp.mechanisms.StableTrimmedMean.scaled(wide, trim=0.1, **whole).sample(data, xp.SeededNoise(3)) - 10) < 0.1
    )
    assert (
        xp.mechanisms.StableMedian(epsilon=1, delta=1e-6, proposed=1e-9).sample(data, xp.SeededNoise(3)) is xp.WITHHELD
    )


def test_the_mean_of_ranks_is_summed_exactly() -> None:
    """Values past 2^53 steps, alternating in sign: floats would lose them."""
    mean = xp.mechanisms.StableTrimmedMean(
        trim=0, epsilon=1 + 10**6, test_share=Fraction(1, 1 + 10**6), delta=1e-6, proposed=1, bounds=(-(2**50), 2**50)
    )
    data = np.tile([2.0**50, -(2.0**50), 3.0, 5.0], 1000)
    value = mean._proposal.release(data, xp.SeededNoise(1))
    assert abs(value - 2) < 1e-4


@pytest.mark.parametrize(("proposed", "epsilon"), [("1", "1"), ("0.3", "2"), ("1000", "0.1"), ("1e-6", "5")])
def test_noise_is_for_the_proposed_sensitivity(proposed: str, epsilon: str) -> None:
    """The release is the quantile on the grid plus noise whose rate, times the steps in what was proposed, is ε."""
    proposal = xp.mechanisms.StableMedian(
        epsilon=1 + Fraction(epsilon), test_share=1 / (1 + Fraction(epsilon)), delta=1e-6, proposed=proposed
    )._proposal
    step = proposal.grid.step
    steps = -(-Fraction(proposed) // step)
    assert 1024 * max(1, Fraction(epsilon)) <= steps < 2050 * max(1, Fraction(epsilon))
    for seed in range(5):
        value = proposal.release(np.array([0.0, 4 * float(step), 9.0]), xp.SeededNoise(seed))
        drawn = discrete_laplace(xp.SeededNoise(seed), Fraction(epsilon) / steps)
        assert value == (4 + drawn) * float(step)


def test_mechanisms_compare_and_hash() -> None:
    pair = [xp.mechanisms.StableMedian(epsilon=epsilon, delta=1e-6, proposed=1) for epsilon in (0.25, "0.25")]
    assert pair[0] == pair[1]
    assert len({*pair, *ALL, regression()}) == 2 + len(ALL)


# ---- regression


def regression(**changes: Any) -> xp.mechanisms.StableRegression:
    usual: dict[str, Any] = {
        "cell": 0.5,
        "blocks": 60,
        "bounds": (-1, 1),
        "target_bounds": (-3, 3),
        "epsilon": 1,
        "delta": 1e-6,
    }
    return xp.mechanisms.StableRegression(**{**usual, **changes})


def line(size: int = 3000) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(1)
    features = rng.uniform(-1, 1, size=(size, 2))
    return np.column_stack([features, features @ [1.2, -0.8] + 0.3 + rng.normal(0, 0.05, size)])


def test_regression_finds_the_cell() -> None:
    found = regression().sample(line(), xp.SeededNoise(1))
    assert found == (1, (1.25, -0.75, 0.25))
    shifted = regression(cell=(4, 0.8, 4), blocks=100).sample(line(), xp.SeededNoise(1))
    assert isinstance(shifted, Coefficients)
    assert shifted.leg == 2  # −0.8 is on an edge of the first grid
    assert np.allclose(shifted.values, [0.0, -0.8, 0.0])
    assert regression(cell=1e-4).sample(line(), xp.SeededNoise(1)) is xp.WITHHELD
    assert regression(intercept=False, cell=(0.5, 0.5)).sample(line(), xp.SeededNoise(1)) is not None


def test_one_record_changes_one_vote() -> None:
    mechanism, data = regression(blocks=7), line(100)
    before = mechanism._fits(data.copy())
    for place, value in ((0, 1e300), (13, np.nan), (99, -np.inf)):
        changed = data.copy()
        changed[place] = value
        different = np.flatnonzero((mechanism._fits(changed) != before).any(axis=1))
        assert set(different) <= {place % 7}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, 5e-324, 0.0])
def test_regression_answers_any_values(value: float) -> None:
    data = np.full((200, 3), value)
    wide = regression(bounds=(-1e308, 1e308), target_bounds=(-1e308, 1e308))
    for mechanism in (regression(), wide):
        release = xp.Ledger(epsilon=1, delta=1e-6).run(mechanism, on=data)
        assert str(release)


@pytest.mark.parametrize(
    ("data", "rule"),
    [(np.zeros(5), "two-dimensional"), (np.zeros((5, 2)), "fewer blocks"), (np.zeros((90, 2), dtype="U1"), "dtype")],
)
def test_public_mistakes_of_regression(data: Any, rule: str) -> None:
    with pytest.raises(xp.InvalidValue, match=rule):
        regression().check(data)


def test_regression_wants_a_width_for_each_coefficient() -> None:
    with pytest.raises(xp.InvalidValue, match="3 coefficients"):
        regression(cell=(1, 1)).check(np.zeros((90, 3)))
    with pytest.raises(xp.InvalidValue, match="nothing to fit"):
        regression(intercept=False).check(np.zeros((90, 1)))
    assert regression(grids=3, epsilon=3).guarantee == xp.Guarantee(
        {1: 1, 2: 2, 3: 3, "withheld": 3}, 1e-6, neighbours="substitute"
    )
    assert regression().part_of(xp.WITHHELD) == "withheld"
    assert Fraction(1, 2) == regression().inner.proposals[1].shift  # type: ignore[attr-defined]


@pytest.mark.parametrize("statistic", [xp.mechanisms.StableMedian, xp.mechanisms.StableTrimmedMean])
def test_error_bounds_of_location_hold_and_are_not_idle(statistic: Any) -> None:
    """By the tail of the noise, exactly: t steps and one for rounding; and by sampling."""
    extra = {"trim": 0} if statistic is xp.mechanisms.StableTrimmedMean else {}
    mechanism = statistic(epsilon=2, delta=1e-6, proposed=1, bounds=(-9, 9), **extra)
    grid, rate = mechanism._proposal.grid, float(mechanism._proposal.rate)
    steps = round(mechanism.error_bound(0.9) / float(grid.step)) - 1
    tails = [2 * np.exp(-rate * (t + 1)) / (1 + np.exp(-rate)) for t in (steps, steps - 1)]
    assert tails[0] <= 0.1 < tails[1]
    data, noise = np.full(1000, 0.3), xp.SeededNoise(1)
    off = np.array([abs(mechanism.sample(data, noise) - 0.3) for _ in range(500)])
    assert 0.04 < np.mean(off > mechanism.error_bound(0.9)) < 0.16


def test_error_bounds_refuse_what_is_no_confidence() -> None:
    with pytest.raises(xp.InvalidValue, match="confidence lies strictly between 0 and 1"):
        xp.mechanisms.StableMedian(epsilon=1, delta=1e-6, proposed=1).error_bound(1)


@pytest.mark.parametrize(
    "mechanism",
    [
        xp.mechanisms.StableMedian(epsilon=1, delta=1e-6, proposed=40, bounds=(15, 45)),
        xp.mechanisms.StableQuantile(epsilon=1, delta=1e-6, proposed=40, bounds=(15, 45), quantile=0.9),
        xp.mechanisms.StableTrimmedMean(epsilon=1, delta=1e-6, proposed=40, bounds=(15, 45), trim=0.1),
    ],
)
def test_what_is_released_lies_within_the_bounds(mechanism: xp.Mechanism[Any, Any]) -> None:
    ages = np.linspace(10, 50, 1000)
    values = [mechanism.sample(ages, xp.SeededNoise(seed)) for seed in range(60)]
    released = [value for value in values if value is not xp.WITHHELD]
    assert len(released) > 30
    assert all(15 <= value <= 45 for value in released)
    assert {15, 45} <= set(released), "so much noise leaves the bounds often"
