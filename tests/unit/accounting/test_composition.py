"""Composition against closed forms, exact binomials and dp-accounting."""

from __future__ import annotations

from fractions import Fraction
from math import comb, erfc, exp, isqrt, log, sqrt

import numpy as np
import pytest
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import from_randomized_response
from hypothesis import given, settings
from hypothesis import strategies as st

from expost import Cost, bracket
from expost.accounting import (
    ApproximateDP,
    EitherDirection,
    GaussianNoise,
    IncrementalComposition,
    LaplaceNoise,
    Loss,
    basic_composition,
    compose,
    losses_of,
    optimal_composition,
    optimal_delta,
)
from expost.accounting.convolution import composed
from expost.accounting.curve import Curve
from expost.accounting.law import LossLaw
from expost.accounting.normal import delta_of_normal_noise
from expost.errors import InvalidValue

pytestmark = pytest.mark.slow
EACH: list[Loss] = [
    GaussianNoise(1),
    GaussianNoise(7),
    GaussianNoise(1, 0.01),
    GaussianNoise(2, 0.3),
    LaplaceNoise(1),
    LaplaceNoise(15),
    ApproximateDP(0.7, 0.01),
    ApproximateDP("1/3"),
    EitherDirection(GaussianNoise(1, 0.01)),
    EitherDirection(GaussianNoise(2, 0.3)),
    EitherDirection(GaussianNoise("0.5", "0.5")),
]


def normal_tail(z: float) -> float:
    return erfc(z / sqrt(2)) / 2


def stick(loss: Loss, alpha: float, reverse: bool) -> float:
    """The true hockey stick, in closed form."""
    if isinstance(loss, EitherDirection):
        return max(stick(loss.loss, alpha, way) for way in (False, True))
    if reverse:
        return 1 - alpha + alpha * stick(loss, 1 / alpha, False)
    if isinstance(loss, ApproximateDP):
        epsilon, delta = float(Fraction(str(loss.epsilon))), float(loss.delta)
        chord = delta + (1 - delta) * max(exp(epsilon) - alpha, 0) / (1 + exp(epsilon))
        return max(1 - alpha * (1 - delta), chord, delta)
    if isinstance(loss, LaplaceNoise):
        return max(1 - alpha, 1 - sqrt(alpha) * exp(-loss.spread() / 2) if alpha < exp(loss.spread()) else 0, 0)
    assert isinstance(loss, GaussianNoise)
    mean, rate = 1 / float(loss.noise_multiplier), float(loss.sampling_rate)
    inside = (alpha - 1 + rate) / rate
    if inside <= 0:
        return 1 - alpha
    place = log(inside) / mean + mean / 2
    mixed = (1 - rate) * normal_tail(place) + rate * normal_tail(place - mean)
    return mixed - alpha * normal_tail(place)


def stick_of(law: LossLaw, alpha: float) -> float:
    return float((law.mass * np.maximum(1 - alpha * np.exp(-law.values), 0)).sum()) + law.infinity


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("loss", EACH, ids=str)
def test_grid_laws_are_above_the_truth_at_every_alpha(loss: Loss, reverse: bool) -> None:
    """For all α > 0, between the grid's points too."""
    step = min(loss.spread() / 20.3, 0.01)
    upper = loss.law(step, reverse)
    for y in np.linspace(-1.5, 1.5, 301) * max(loss.spread(), 4 * step):
        true = stick(loss, exp(y), reverse)
        assert true <= stick_of(upper, exp(y)) + 1e-13
    assert upper.mass.min() >= 0


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 200), st.integers(0, 99), st.sampled_from(["0", "1e-6", "0.01"]))
def test_equal_steps_is_the_binomial_sum(steps: int, percent: int, share: int, delta: str) -> None:
    epsilon = Fraction(percent, 100)
    at = epsilon * steps * share / 100
    ratio, allowed = bracket.exp(epsilon, 60).lower, bracket.exp(at, 60).lower
    pure = (
        sum(
            comb(steps, lies) * max(ratio ** (steps - lies) - allowed * ratio**lies, Fraction(0))
            for lies in range(steps + 1)
        )
        / (1 + ratio) ** steps
    )
    exact = 1 - (1 - Fraction(delta)) ** steps * (1 - pure)
    found = optimal_composition([(epsilon, delta)] * steps).delta(at)
    assert found.lower - Fraction(1, 10**45) <= exact <= found.upper + Fraction(1, 10**45)
    assert found.width < Fraction(1, 10**49)


@pytest.mark.parametrize("steps", [1, 2, 17, 1000, 100_000])
def test_equal_steps_inverts(steps: int) -> None:
    whole = optimal_composition([(0.05, 1e-9)] * steps)
    for delta in (1e-3, 0.02):
        epsilon = whole.epsilon(delta)
        assert whole.delta(epsilon.upper).upper <= Fraction(str(delta)) + Fraction(1, 10**45)
        if epsilon.lower > 0:
            assert whole.delta(epsilon.lower * (1 - Fraction(1, 10**20))).upper > Fraction(str(delta))
    with pytest.raises(InvalidValue, match="at every ε"):
        optimal_composition([(0.05, 1e-3)] * steps).epsilon(1e-4)


def test_equal_steps_at_the_edges() -> None:
    assert optimal_composition([(0, 0)] * 5).delta(0).upper == 0
    assert optimal_composition([(0, 0.5)] * 1).epsilon(0.5).upper == 0
    assert optimal_composition([(1, 0)] * 3).delta(3).upper == 0
    assert optimal_composition([(1, 0)] * 3).epsilon(0).upper == 3
    for wrong in ((-1, 0, 1), (1, 2, 1), (1, 0, 0)):
        with pytest.raises(InvalidValue):
            optimal_composition([wrong[:2]] * wrong[2])
    with pytest.raises(InvalidValue):
        optimal_composition([(1, 0)] * 1).delta(-1)


def test_basic_composition_adds_up() -> None:
    assert basic_composition([(0.1, 0.4), (0.2, 0.7)]) == Cost("0.3", 1)


@pytest.mark.parametrize(("ratio", "steps"), [(1, 1), (3, 10), (20, 400), (60, 3000)])
def test_normal_noise_composes_to_normal_noise(ratio: int, steps: int) -> None:
    """k steps at σ/Δ are one at σ/(Δ√k), whose δ is known to forty digits."""
    found = compose([GaussianNoise(ratio)] * steps)
    single = Fraction(ratio * 10**30, isqrt(steps * 10**60))
    epsilon = found.epsilon(1e-5)
    assert epsilon.width <= 1e-3
    for at in (0.5, 1.7, round(epsilon.upper, 3)):
        exact = delta_of_normal_noise(single, Fraction(str(at)))
        delta = found.delta(at)
        assert delta.lower <= exact.upper * (1 + Fraction(1, 10**28))
        assert exact.lower * (1 - Fraction(1, 10**28)) <= delta.upper


PEERS = [
    (SelfComposedDpEvent(GaussianDpEvent(8.0), 50), 1e-3),
    (SelfComposedDpEvent(LaplaceDpEvent(20.0), 50), 1e-3),
    (SelfComposedDpEvent(PoissonSampledDpEvent(0.02, GaussianDpEvent(1.0)), 200), 1e-3),
    (ComposedDpEvent([GaussianDpEvent(8.0), LaplaceDpEvent(5.0), NoOpDpEvent()]), 1e-3),
]


@pytest.mark.parametrize(("event", "width"), PEERS)
def test_dp_accounting_agrees_within_the_brackets(event: object, width: float) -> None:
    """Its pessimistic ε on a fine grid is above our lower end, and within a thousandth of our upper end."""
    ours = compose(losses_of(event)).epsilon(1e-5)
    theirs = PLDAccountant(value_discretization_interval=1e-4).compose(event).get_epsilon(1e-5)
    assert ours.width <= width
    assert ours.lower <= theirs + 1e-9
    assert theirs == pytest.approx(ours.upper, abs=2e-3)


def test_randomised_response_agrees_with_dp_accounting() -> None:
    """With its distribution itself: the accountant of version 0.6 forgets how often such an event is repeated."""
    ours = compose(losses_of(SelfComposedDpEvent(RandomizedResponseDpEvent(0.9, 2), 50)))
    theirs = from_randomized_response(0.9, 2, value_discretization_interval=1e-4).self_compose(50)
    assert ours.epsilon(1e-5).width <= 1e-3
    assert ours.epsilon(1e-5).upper == pytest.approx(theirs.get_epsilon_for_delta(1e-5), abs=2e-3)


def test_other_events_take_their_law_from_dp_accounting() -> None:
    event = SelfComposedDpEvent(PoissonSampledDpEvent(0.1, LaplaceDpEvent(2.0)), 20)
    ours = compose(losses_of(event), grid=2.0**-10).epsilon(1e-5)
    theirs = PLDAccountant(value_discretization_interval=2.0**-10).compose(event).get_epsilon(1e-5)
    assert ours.upper == pytest.approx(theirs, abs=1e-4)
    assert ours.lower == 0
    with pytest.raises(InvalidValue):
        losses_of("a string")


def test_running_is_the_composition_so_far() -> None:
    running, steps = IncrementalComposition(2.0**-9), [GaussianNoise(4, 0.1), LaplaceNoise(9), GaussianNoise(6)] * 4
    for loss in steps:
        running.add(loss)
    whole = compose(steps, grid=2.0**-9)
    assert running.epsilon(1e-5) == pytest.approx(whole.epsilon(1e-5).upper, abs=1e-6)
    assert running.epsilon(1e-5) >= whole.epsilon(1e-5).lower
    assert IncrementalComposition(2.0**-9).epsilon(1e-5) == 0
    assert whole.epsilon(1e-12).lower < running.epsilon(1e-12) < 1.2 * whole.epsilon(1e-12).upper


def changing_directions(noise_multiplier: float, rate: float, epsilon: float) -> float:
    """What an adversary reaches who takes one direction first, and then the worse one for what came out."""
    mean, loss = 1 / noise_multiplier, GaussianNoise(noise_multiplier, rate)
    z = np.linspace(-12, mean + 12, 200_001)
    ratios = 1 - rate + rate * np.exp(mean * z - mean**2 / 2)
    later = [max(stick(loss, exp(epsilon) / ratio, way) for way in (False, True)) for ratio in ratios[::20]]
    density = np.exp(-(z[::20] ** 2) / 2) / sqrt(2 * np.pi) * ratios[::20]
    return float((density * later).sum() * (z[20] - z[0]))


def test_directions_that_change_cost_more_and_are_covered() -> None:
    """σ = q = ½, two steps, ε = 2: 0.2302 in one direction, 0.2408 if it may change."""
    loss = GaussianNoise("0.5", "0.5")
    reached = changing_directions(0.5, 0.5, 2.0)
    assert round(reached, 4) == 0.2408
    assert round(compose([loss] * 2).delta(2).upper, 4) == 0.2302 < reached
    either = compose([EitherDirection(loss)] * 2).delta(2)
    assert reached <= either.upper < reached * 1.05  # a pair for both directions is more than either in turn
    assert either.width <= 2e-4 * either.upper
    stopped = optimal_delta([EitherDirection(loss)] * 2, [1, 2], [2, 2])
    assert stopped.upper >= either.lower


@pytest.mark.parametrize("rate", ["0.02", "0.1"])
def test_either_direction_is_one_step_in_the_worse_one(rate: str) -> None:
    loss = GaussianNoise(1, rate)
    for epsilon in ("0.01", "0.3", "1"):
        one, either = compose([loss]).delta(epsilon), compose([EitherDirection(loss)]).delta(epsilon)
        assert either.lower <= one.upper
        assert one.lower <= either.upper <= one.upper * 1.001
    many = compose([EitherDirection(loss)] * 300).epsilon(1e-5)
    assert compose([loss] * 300).epsilon(1e-5).upper <= many.upper
    assert many.width <= 2e-4 * many.upper


def test_a_hundred_thousand_steps_do_not_overflow() -> None:
    for loss in (GaussianNoise(300), LaplaceNoise(1), ApproximateDP(0.3), GaussianNoise(2, "0.001")):
        found = compose([loss] * 100_000, grid=loss.spread() / 4)
        assert 0 < found.epsilon(1e-5).upper < 1e5


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in (
        lambda: GaussianNoise(0),
        lambda: LaplaceNoise(-1),
        lambda: GaussianNoise(1, 2),
        lambda: ApproximateDP(-1),
    ):
        with pytest.raises(InvalidValue):
            wrong()
    with pytest.raises(InvalidValue):
        compose([])
    with pytest.raises(InvalidValue):
        compose([3])


@pytest.mark.parametrize("kind", [GaussianNoise, LaplaceNoise])
def test_steps_that_differ_are_bracketed_as_closely(kind: type[Loss]) -> None:
    found = compose([kind(scale / 10) for scale in range(101, 300, 11)]).epsilon(1e-5)  # type: ignore[call-arg]
    assert found.width <= 1e-3


@pytest.mark.parametrize(
    "steps",
    [
        [GaussianNoise(10)] * 100,
        [GaussianNoise(1, "0.01")] * 2000,
        [LaplaceNoise(20)] * 500,
        [GaussianNoise(scale) for scale in range(20, 60)] * 5,
        [LaplaceNoise(30), GaussianNoise(25), GaussianNoise(3, "0.02")] * 7,
    ],
    ids=["gaussian", "sampled", "laplace", "different", "mixed"],
)
def test_brackets_are_as_narrow_as_was_asked_for(steps: list[Loss]) -> None:
    whole = compose(steps)
    for delta in (1e-5, 1e-7):
        found = whole.epsilon(delta)
        assert 0 < found.width <= 2e-4 * found.upper
        assert found.reason == ""
        assert whole.delta(found.upper).lower <= delta <= whole.delta(found.lower).upper


@pytest.mark.parametrize("epsilon", ["1", "4", "6", "8"])
def test_tilted_brackets_contain_the_normal_curve(epsilon: str) -> None:
    """k steps of Gaussian noise are one step with √k times less; δ from 0.1 to 10⁻¹⁴, and no digits lost."""
    found = compose([GaussianNoise(10)] * 100, grid=2.0**-9).delta(epsilon)
    exact = delta_of_normal_noise(Fraction(1), Fraction(epsilon))
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper <= float(exact.upper) * 1.01


KINDS = [ApproximateDP("0.5"), ApproximateDP("0.25", "0.01"), ApproximateDP("0.75")]


@given(st.lists(st.sampled_from(KINDS), min_size=2, max_size=9))
def test_every_tilt_brackets_the_same_law(steps: list[Loss]) -> None:
    """On the lattice, where δ is known to 30 digits: it lies in the bracket of each tilt, good or bad."""
    whole = compose(steps, grid=0.25)
    pairs = [(loss.epsilon, loss.delta) for loss in steps if isinstance(loss, ApproximateDP)]
    for epsilon in (0.1, 0.6, 1.7):
        exact = optimal_composition(pairs).delta(epsilon)
        for tilt in (0.0, 0.5, 2.0, 8.0):
            rows = [(loss.law(0.25), count) for loss, count in whole.counts]
            curve = Curve((composed(rows, 1e-12, tilt),))
            above, below = curve.delta_above(epsilon), curve.delta_below(epsilon)
            assert below <= exact.upper
            assert exact.lower <= above
            assert tilt > 2 or above - below < 1e-7  # a tilt far from the best is loose, not wrong


@pytest.mark.parametrize("each", ["1.5", "2", "3", "7", "20", "50", "300", "800"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_steps_of_large_epsilons(each: str, count: int) -> None:
    """Where factors overflow or vanish, what is returned is on the safe side."""
    for delta in (0.5, 1e-5, 1e-13):
        found = compose([(each, 0)] * count).epsilon(delta)
        lies = 1 / (1 + exp(min(float(each), 700.0)))  # all but this tell the truth: ε is all but the whole
        truth = (1 - lies) ** count
        whole = count * float(each)
        least = whole + log(1 - delta / truth) if delta < truth and truth > 0.999 else 0.0
        assert found.lower <= whole + 1e-6
        assert least - 1e-6 <= found.upper <= whole + 1e-5
        assert optimal_composition([(each, 0)] * count).epsilon(delta).upper >= least - 1e-6


@pytest.mark.parametrize(
    ("ratio", "count", "step", "epsilon"), [("117.719", 5000, 0.0093855, "0.18"), ("0.3", 3, 2.0**-3, "20")]
)
def test_coarse_grids_are_loose_and_true(ratio: str, count: int, step: float, epsilon: str) -> None:
    found = compose([GaussianNoise(ratio)] * count, grid=step).delta(epsilon)
    root = Fraction(isqrt(count * 10**60), 10**30)
    assert found.lower <= delta_of_normal_noise(Fraction(ratio) / root, Fraction(epsilon)).upper
    assert found.upper >= delta_of_normal_noise(Fraction(ratio) / root, Fraction(epsilon)).lower


@pytest.mark.filterwarnings("error")
def test_losses_past_floating_point() -> None:
    exact = delta_of_normal_noise(Fraction(1, 100), Fraction(5000))
    found = compose([GaussianNoise("0.01")]).delta(5000)
    assert found.lower <= exact.upper <= found.upper * (1 + 1e-9)
    assert compose([(1, 1)]).epsilon(0.5).upper == float("inf")


@pytest.mark.parametrize(
    ("ratio", "rate", "steps", "delta", "epsilon"),
    [
        ("1", "0.001", 10_000, 1e-5, 0.47574),
        ("1", "0.01", 1_000, 1e-5, 1.82815),
        ("1", "0.01", 2_000, 1e-12, 4.8979),
        ("2", "0.001", 10_000, 1e-8, 0.25873),
        ("10", "1e-4", 100_000, 1e-5, 0.0074584),
        ("1", "1e-4", 100, 1e-12, 0.067453),
    ],
)
def test_ordinary_training_is_bracketed_with_default_arguments(
    ratio: str, rate: str, steps: int, delta: float, epsilon: float
) -> None:
    """Settings that took gigabytes or minutes, or were loose, when windows came from chords between log-moments."""
    found = compose([GaussianNoise(ratio, rate)] * steps).epsilon(delta)
    assert found.reason == ""
    assert found.width <= 2e-4 * found.upper
    assert found.upper == pytest.approx(epsilon, rel=5e-4)


def test_single_steps_and_tiny_noise_have_both_ends() -> None:
    """Lower ends that were 0, or less than half of ε."""
    for loss in (GaussianNoise("0.5", "0.1"), GaussianNoise(10**6), LaplaceNoise(7), GaussianNoise("0.5", "0.01")):
        found = compose([loss]).epsilon(1e-7)
        assert found.width <= 1e-9 * found.upper + 1e-15
    found = compose([GaussianNoise(10**7)] * 100).epsilon(1e-12)
    assert 0 < found.lower <= found.upper < found.lower * (1 + 1e-9)


def test_a_bracket_that_is_too_wide_says_why() -> None:
    assert "as was asked" in compose([GaussianNoise(1, "0.1")] * 20, grid=0.05).epsilon(1e-5).reason
    assert "whatever ε is" in compose([ApproximateDP(1, "0.1"), GaussianNoise(1)]).epsilon(1e-5).reason
    assert compose([ApproximateDP(1, "0.1"), GaussianNoise(1)]).epsilon(1e-5).upper == float("inf")
    for wrong in (-1, 2):
        with pytest.raises(InvalidValue):
            compose([GaussianNoise(1)]).epsilon(wrong)
    with pytest.raises(InvalidValue):
        compose([GaussianNoise(1)]).epsilon(0.5, tolerance=0)
    with pytest.raises(InvalidValue):
        compose([GaussianNoise(1)]).delta(-1)


def test_a_finer_tolerance_gives_a_narrower_bracket() -> None:
    whole = compose([GaussianNoise(2, "0.05")] * 50)
    wide, narrow = whole.epsilon(1e-6, tolerance=1e-2), whole.epsilon(1e-6, tolerance=1e-5)
    assert narrow.width <= 1e-5 * narrow.upper
    assert wide.lower <= narrow.lower <= narrow.upper <= wide.upper
    assert narrow.upper <= whole.epsilon_above(1e-6) <= narrow.upper * 1.0002


def test_without_delta_bounded_losses_add_up() -> None:
    found = compose([ApproximateDP("0.5"), LaplaceNoise(2), LaplaceNoise(4)]).epsilon(0)
    assert found.lower <= 1.25 <= found.upper
    assert found.width < 1e-10
    assert compose([GaussianNoise(1), LaplaceNoise(2)]).epsilon(0).lower == float("inf")


def test_progress_is_told() -> None:
    told: list[str] = []
    compose([GaussianNoise(1, "0.1")] * 3, progress=told.append).epsilon(1e-5)
    assert told
    assert "3 steps" in told[0]


@pytest.mark.parametrize("loss", [GaussianNoise(1, "0.1"), GaussianNoise("0.5", "0.5"), LaplaceNoise(2)], ids=str)
def test_formulas_of_single_steps_agree_with_grids(loss: Loss) -> None:
    formula, gridded = compose([loss]), compose([loss], grid=2.0**-10)
    for epsilon in ("0", "0.2", "0.45", "3"):
        exact, found = formula.delta(epsilon), gridded.delta(epsilon)
        assert exact.width <= 1e-15
        assert found.lower <= exact.upper
        assert exact.lower <= found.upper <= exact.upper * 1.01 + 1e-9
    for delta in ("0.001", "0.01", "0.03"):
        least = formula.epsilon(delta)
        assert least.lower > 0
        assert formula.delta(least.upper).lower <= Fraction(delta) <= formula.delta(least.lower).upper
    assert formula.epsilon("0.9").upper == formula.epsilon(1).upper == 0
