"""Location and spread, and the paper's analysis as two mechanisms: what each case charges."""

import numpy as np
import pytest

import expost as xp
from expost.recipes import interquartile_range_in_two, location_and_spread

DATA = np.random.default_rng(0).normal(10, 2, size=20_000)


def seeded(epsilon: float = 4, seed: int = 1) -> xp.Ledger:
    return xp.Ledger(epsilon=epsilon, delta=1e-5, noise=xp.SeededNoise(seed))


def test_the_median_gets_all_that_is_left() -> None:
    ledger = seeded()
    both = location_and_spread(ledger, DATA, fallback=5, label="heights")
    assert both.spread.value[:1] == (1,)
    assert both.spread.charged.epsilon == 1
    assert both.location.reserved.epsilon == 3
    assert abs(both.location.value - 10) < 0.5
    assert both.charged == ledger.spent == ledger.limit
    assert "StableMedian" in str(both)
    assert [entry.label for entry in ledger.entries()] == ["heights: spread", "heights: location"]


def test_with_the_paper_s_analysis_more_is_left_when_the_range_was_withheld() -> None:
    """3ε₁ is reserved; a value costs all of it, ⊥ only 2ε₁, and the median gets ε₁ more."""
    spread = xp.StableNoisyInterquartileRange(epsilon=3, delta="5e-6")
    answered = location_and_spread(seeded(), DATA, fallback=5, spread=spread)
    assert not answered.spread.withheld
    assert answered.location.reserved.epsilon == 1
    two_values = np.array([0.0, 1.0] * 7)
    withheld = location_and_spread(seeded(), two_values, fallback=5, spread=spread)
    assert withheld.spread.withheld
    assert withheld.location.reserved.epsilon == 2


def test_a_range_of_zero_falls_back() -> None:
    both = location_and_spread(seeded(), np.full(1000, 3.0), fallback=1)
    assert both.spread.value[1:] == (0.0, 0.0)
    assert not both.location.withheld


def test_what_does_not_fit_is_refused_before_anything_is_run() -> None:
    ledger = seeded(epsilon=1)
    with pytest.raises(xp.BudgetExceeded):
        location_and_spread(ledger, DATA, fallback=5, spread=xp.StableInterquartileRange(epsilon=2, delta=1e-6))
    with pytest.raises(xp.InvalidValue):
        location_and_spread(ledger, DATA, fallback=5, spread=xp.StableInterquartileRange(epsilon=1, delta=1e-6))
    with pytest.raises(xp.InvalidValue, match="public guess"):
        location_and_spread(ledger, DATA, fallback=0)
    with pytest.raises(xp.InvalidValue, match="one-dimensional"):
        location_and_spread(ledger, DATA[None, :], fallback=1)
    assert ledger.spent == xp.Cost(0)


def test_two_mechanisms_charge_two_three_or_two() -> None:
    """The paper's three cases, by the ledger: (2ε, δ), (3ε, 2δ), (2ε, 2δ); and both orders occur."""
    unstable = np.array([0.0, 1.0] * 7)
    edge = np.linspace(0, 2, 4001)  # its range, 1, is on an edge of the first scale
    seen = set()
    for seed in range(12):
        for data in (DATA, unstable, edge):
            found = interquartile_range_in_two(seeded(40, seed), data, epsilon=1, delta=1e-6)
            case = (len(found.legs), found.value is xp.WITHHELD)
            seen.add(case)
            expected = {(1, False): (2, 1), (2, False): (3, 2), (2, True): (2, 2)}[case]
            assert found.charged == xp.Cost(expected[0], delta=expected[1] * 1e-6)
    assert seen == {(1, False), (2, False), (2, True)}


def test_two_ranges_and_extreme_slack_are_refused_before_anything_is_charged() -> None:
    data = np.array([1.0, 2.0, 3.0, 4.0])
    poor = xp.Ledger(epsilon=2, delta=0.1)
    with pytest.raises(xp.BudgetExceeded):
        interquartile_range_in_two(poor, data, epsilon=1, delta=1e-6)
    with pytest.raises(xp.InvalidValue):
        interquartile_range_in_two(poor, np.zeros((2, 2)), epsilon="0.1", delta=1e-6)
    for slack in ("1e30", "1e-30"):
        with pytest.raises(xp.InvalidValue, match="slack"):
            location_and_spread(poor, data, fallback=1, slack=slack)
    assert not poor.spent
