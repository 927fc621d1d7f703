"""The corners of the accounting: nothing lost, nothing known, nothing affordable."""

from fractions import Fraction
from math import inf

import numpy as np
import pytest

import expost.accounting
from expost import InvalidValue
from expost.accounting import (
    ApproximateDP,
    GaussianNoise,
    IncrementalComposition,
    LaplaceNoise,
    compose,
    losses_of,
    optimal_composition,
    optimal_delta,
    plan,
)
from expost.accounting.closed_forms import LaplaceOnce, formula_of
from expost.accounting.law import LossLaw, lighter, trimmed
from expost.bracket import Bracket


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = expost.accounting.nothing


def test_steps_that_lose_nothing() -> None:
    quiet = ApproximateDP(0, 0)
    assert compose([quiet] * 3).delta(0).upper < 1e-9
    assert optimal_delta([(0, 0)] * 3, [1, 3], [0, 0]).upper < 1e-9
    assert plan([quiet] * 3, [1, 3], 1e-6).worst_case.epsilon < 1e-6


def test_noise_so_large_that_a_step_is_lost_on_the_grid() -> None:
    faint = compose([LaplaceNoise(10**6)] * 2, grid=2.0**-8)
    assert faint.delta(0.0).lower <= faint.delta(0.0).upper < 0.05


def test_equal_steps_at_the_ends_of_its_curve() -> None:
    law = optimal_composition([("0.5", 0)] * 4)
    assert law.epsilon(0).upper == 2
    assert law.epsilon(1).upper == 0
    with pytest.raises(InvalidValue, match="at every ε"):
        optimal_composition([("0.5", "0.1")] * 4).epsilon(0)


def test_the_running_sum_before_and_beyond() -> None:
    running = IncrementalComposition(2.0**-8)
    assert running.epsilon(1e-6) == 0
    running.add(ApproximateDP("0.1", "1e-3"))
    assert running.epsilon(1e-6) == inf  # this step alone may lose more than δ
    assert 0.08 < running.epsilon(0.01) < 0.1


def test_the_running_sum_agrees_with_composition_as_it_grows() -> None:
    """Also where the circle must grow, and whatever was asked before."""
    running = IncrementalComposition(2.0**-8)
    for count in range(1, 61):
        running.add(GaussianNoise(3))
        if count in (1, 10, 60):
            for delta in (0.3, 1e-5, 0.9, 1e-3):
                exact = compose([GaussianNoise(3)] * count, grid=2.0**-8).epsilon(delta)
                assert exact.lower <= running.epsilon(delta) <= exact.upper + 0.02


def test_what_cannot_be_planned() -> None:
    with pytest.raises(InvalidValue, match="fewer steps"):
        plan([ApproximateDP("0.1", "0.01")] * 10, [5, 10], Fraction(1, 10**6))


def test_events_that_are_none_or_have_no_distribution() -> None:
    import dp_accounting as dp

    with pytest.raises(InvalidValue, match="takes a DpEvent"):
        losses_of("gaussian")
    with pytest.raises(InvalidValue, match="no privacy-loss distribution"):
        compose(losses_of(dp.ZCDpEvent(0.1)))
    mixed = losses_of(dp.ComposedDpEvent([dp.LaplaceDpEvent(1.0), dp.GaussianDpEvent(2.0)]))
    assert len(mixed) == 2
    assert compose(mixed, grid=2.0**-8).delta(0.5).upper < 1


def test_a_single_step_of_laplace_noise_at_the_edges() -> None:
    """At δ = 1 nothing is lost, and from its own ε on no δ is."""
    once = LaplaceOnce(Fraction(1, 2))
    assert once.epsilon(Fraction(1)) == Bracket(Fraction(0), Fraction(0))
    assert once.delta(Fraction(1, 2)) == Bracket(Fraction(0), Fraction(0))
    assert once.epsilon(Fraction(0)) == Bracket(Fraction(1, 2), Fraction(1, 2))


def test_no_formula_for_noise_that_is_next_to_nothing() -> None:
    assert formula_of([(GaussianNoise(Fraction(1, 1000), sampling_rate=Fraction(1, 2)), 1)]) is None


def test_laws_without_mass() -> None:
    empty = LossLaw(0.5, 3, np.zeros(4))
    assert lighter(empty).mass.tolist() == [0.0]
    assert trimmed(empty, 0.1) is empty


def test_different_pairs_have_both_curves() -> None:
    whole = optimal_composition([("0.5", 0), ("0.25", "0.01"), ("0.3", 0)])
    least = whole.epsilon("0.05")
    assert 0 < least.lower <= least.upper < Fraction(21, 20)
    assert whole.delta(least.upper).lower <= Fraction(1, 20) <= whole.delta(least.lower).upper
    with pytest.raises(InvalidValue, match="whatever ε is"):
        whole.epsilon("0.001")


def test_an_optimal_composition_is_of_pairs() -> None:
    for wrong in ([], [GaussianNoise(1)], [("0.5", 0), LaplaceNoise(1)]):
        with pytest.raises(InvalidValue, match="one or more pairs"):
            optimal_composition(wrong)  # type: ignore[arg-type]


def test_stops_of_events_are_known_from_above_only() -> None:
    import dp_accounting as dp

    event = dp.PoissonSampledDpEvent(0.1, dp.LaplaceDpEvent(2.0))
    found = optimal_delta(losses_of(event) * 4, [2, 4], [0.05, 0.08], grid=2.0**-8)
    assert found.lower == 0 < found.upper < 1
    assert "as was asked" in found.reason
