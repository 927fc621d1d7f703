"""The elementary mechanisms: guarantees, public checks, private values, error bounds, solvers."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction
from math import exp, inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expost import mechanisms as m
from expost.cost import Cost, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee
from expost.mechanism import Mechanism
from expost.noise import SeededNoise
from soak import SOAK

pytestmark = pytest.mark.slow
NOISE = SeededNoise(11)
ADDITIVE: list[Any] = [
    m.Laplace(epsilon=0.5, sensitivity=1),
    m.Gaussian(epsilon=1, delta=1e-6, sensitivity=1),
    m.DiscreteGaussian(rho=0.1, delta=1e-6, sensitivity=1),
]
ALL: list[Mechanism] = [
    *ADDITIVE,
    m.RandomizedResponse(epsilon=1, choices=3),
    m.Exponential(epsilon=1, sensitivity=1),
    m.PermuteAndFlip(epsilon=1, sensitivity=1),
]


@pytest.mark.parametrize("mechanism", ALL, ids=lambda x: type(x).__name__)
def test_small_frozen_and_comparable(mechanism: Mechanism) -> None:
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert hash(mechanism) == hash(pickle.loads(pickle.dumps(mechanism)))
    with pytest.raises(FrozenInstanceError):
        mechanism.epsilon = 9  # type: ignore[attr-defined]
    assert "Proof: thm-" in str(type(mechanism).__doc__)
    assert mechanism.part_of(object()) == "released"


def test_guarantees() -> None:
    assert m.Laplace(epsilon=0.5, sensitivity=3, neighbours="substitute").guarantee == Guarantee.uniform(
        0.5, neighbours="substitute"
    )
    assert m.Gaussian(epsilon=1, delta=1e-6, sensitivity=2).guarantee.worst_case == Cost(1, 1e-6)
    assert m.RandomizedResponse(epsilon=2, choices=2).guarantee == Guarantee.uniform(2, neighbours="substitute")
    assert m.PermuteAndFlip(epsilon=2, sensitivity=2).guarantee == Guarantee.uniform(2)


def test_a_request_rounds_down_and_is_what_is_charged() -> None:
    third = m.Laplace(epsilon="1/3", sensitivity=1)
    assert third.guarantee.worst_case == Cost.within("1/3")
    shape_rate = third._calibrate(m.numbers.Shape(False, None))[1]
    assert shape_rate == Fraction(333333333333, 10**12)


@pytest.mark.parametrize("mechanism", ADDITIVE, ids=lambda x: type(x).__name__)
def test_kinds_of_data(mechanism: Any) -> None:
    data: Any
    for data, kind in ((5, int), (True, int), (np.int16(5), int), (5.5, float), (np.float32(5.5), float)):
        mechanism.check(data)
        assert type(mechanism.sample(data, NOISE)) is kind
    for data in (np.arange(3), np.zeros((2, 40), np.uint8), np.array([True]), np.array(2), np.zeros(0, int)):
        mechanism.check(data)
        result = mechanism.sample(data, NOISE)
        assert result.dtype == np.int64
        assert result.shape == data.shape
    for data in (np.zeros(3), np.zeros((2, 40), np.float16), np.zeros(0)):
        mechanism.check(data)
        result = mechanism.sample(data, NOISE)
        assert result.dtype == np.float64
        assert result.shape == data.shape


@pytest.mark.parametrize("mechanism", ADDITIVE, ids=lambda x: type(x).__name__)
def test_data_of_other_kinds_is_refused_before_anything_is_charged(mechanism: Any) -> None:
    for data in ([1, 2], "7", None, np.array(["a"]), np.array([1j]), np.array([object()])):
        with pytest.raises(InvalidValue, match="numeric data"):
            mechanism.check(data)


@pytest.mark.parametrize("mechanism", ADDITIVE, ids=lambda x: type(x).__name__)
def test_private_values_never_raise(mechanism: Any) -> None:
    wild_ints = np.array([2**63 - 1, -(2**63), 0])
    assert np.abs(mechanism.sample(wild_ints, NOISE)).max() <= 2**60
    assert mechanism.sample(np.array([2**64 - 1], np.uint64), NOISE)[0] > 2**59
    assert mechanism.sample(10**40, NOISE) <= 2**60
    wild = np.array([nan, inf, -inf, 1.8e308, -1.8e308, 5e-324])
    results = mechanism.sample(wild, NOISE)
    assert np.isfinite(results).all()
    assert results[1] > 1e9
    assert results[2] < -1e9
    for value in wild.tolist():
        assert np.isfinite(mechanism.sample(value, NOISE))
    assert np.isfinite(mechanism.sample(np.array([[nan] * 50]), NOISE)).all()


def test_missing_is_what_nan_counts_as() -> None:
    mechanism = m.Laplace(epsilon=100, sensitivity=1, missing=1000)
    assert mechanism.sample(nan, NOISE) == pytest.approx(1000, abs=3)
    assert mechanism.sample(np.full(100, nan), NOISE) == pytest.approx(1000, abs=3)
    assert "missing=1000" in repr(mechanism)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ADDITIVE, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize("size", [1, 50])
def test_error_bounds_hold_and_are_not_idle(mechanism: Any, floats: bool, size: int) -> None:
    bound = mechanism.error_bound(0.9, n=size, floats=floats)
    runs = 2000 if SOAK else 300
    data = np.zeros(size, float if floats else int)
    if floats:
        data += 0.1
    noise = SeededNoise(5)
    errors = np.array([np.abs(mechanism.sample(data, noise) - data).max() for _ in range(runs)])
    missed = float((errors > bound).mean())
    assert missed < 0.1 + 5 * (0.1 * 0.9 / errors.size) ** 0.5
    assert float((errors > bound * 0.6).mean()) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("floats", [False, True])
def test_solvers_buy_what_was_asked_for_and_no_more(floats: bool) -> None:
    given_delta: dict[str, Any] = {"delta": 1e-6}
    family: Any
    for family, extra, parameter in (
        (m.Laplace, {}, "epsilon"),
        (m.Gaussian, given_delta, "epsilon"),
        (m.DiscreteGaussian, given_delta, "rho"),
    ):
        chosen = family.for_accuracy(12, 0.95, sensitivity=2, floats=floats, n=3, **extra)
        assert chosen.error_bound(0.95, n=3, floats=floats) <= 12
        less = exact(getattr(chosen, parameter), "") * Fraction(99, 100)
        cheaper = family(**{parameter: less}, sensitivity=2, **extra)
        assert cheaper.error_bound(0.95, n=3, floats=floats) > 12


def test_results_describe_themselves() -> None:
    mechanism = m.Laplace(epsilon=0.5, sensitivity=1)
    assert mechanism.describe(17) == "17 ± 6 at 95 %"
    assert mechanism.describe(17.25) == "17.25 ± 5.99 at 95 %"
    assert mechanism.describe(np.zeros((10, 100), int)) == "1000 values, all ± 20 at 95 %"


def test_solvers_say_when_nothing_buys_it() -> None:
    with pytest.raises(InvalidValue, match="finer grid"):
        m.Laplace.for_accuracy(0.1, 0.95, sensitivity=1, floats=True, grid=1)
    with pytest.raises(InvalidValue, match="more answers"):
        m.RandomizedResponse.for_accuracy(0.01, 0.95, n=100, choices=2)


@settings(max_examples=25)
@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=1000),
    st.fractions(min_value=Fraction(1, 100), max_value=1000, max_denominator=100),
    st.integers(1, 10**5),
)
def test_noise_on_the_grid_covers_the_rounding(epsilon: Fraction, sensitivity: Fraction, size: int) -> None:
    """The rate is ε per grid sensitivity, and the rounding costs less than a hundredth."""
    from expost.mechanisms.numbers import Shape

    mechanism = m.Laplace(epsilon=epsilon, sensitivity=sensitivity)
    grid, rate = mechanism._calibrate(Shape(True, (size,)))
    guaranteed = exact(mechanism.epsilon, "")
    assert rate * grid.l1(sensitivity, size) == guaranteed
    assert grid.step / rate <= sensitivity / guaranteed * Fraction(101, 100)


def test_parameters_that_are_refused() -> None:
    for refused in (
        lambda: m.Laplace(epsilon=0, sensitivity=1),
        lambda: m.Laplace(epsilon=1, sensitivity=0),
        lambda: m.Laplace(epsilon=1, sensitivity=1, grid=0.3),
        lambda: m.Laplace(epsilon=1, sensitivity=1, neighbours="friends"),  # type: ignore[arg-type]
        lambda: m.Laplace(epsilon=1, sensitivity=0.5).check(3),
        lambda: m.Laplace(epsilon=1, sensitivity=1).error_bound(1),
        lambda: m.Laplace(epsilon=1, sensitivity=1).error_bound(0.5, n=0),
        lambda: m.Laplace(epsilon=1e-12, sensitivity=10**6).check(3),
        lambda: m.Gaussian(epsilon=1, delta=0, sensitivity=1),
        lambda: m.Gaussian(epsilon=2000, delta=0.1, sensitivity=1),
        lambda: m.DiscreteGaussian(rho=0, delta=0.1, sensitivity=1),
        lambda: m.RandomizedResponse(epsilon=1, choices=1),
        lambda: m.RandomizedResponse(epsilon=1, choices=2).check(0.5),
        lambda: m.RandomizedResponse(epsilon=1, choices=2).error_bound(0.9, n=0),
        lambda: m.Exponential(epsilon=1, sensitivity=-1),
        lambda: m.Exponential(epsilon=1, sensitivity=1).check(np.zeros((2, 2))),
        lambda: m.Exponential(epsilon=1, sensitivity=1).check(np.zeros(0)),
        lambda: m.Exponential(epsilon=1, sensitivity=1).error_bound(0, n=3),
    ):
        with pytest.raises(InvalidValue):
            refused()


# ---- randomised response and selection


def test_responses_and_their_estimate() -> None:
    mechanism = m.RandomizedResponse(epsilon=2, choices=3)
    truth = np.array([0] * 60_000 + [1] * 30_000 + [2] * 10_000, np.int8)
    answers = mechanism.sample(truth, SeededNoise(5))
    kept = float((answers == truth).mean())
    assert kept == pytest.approx(exp(2) / (exp(2) + 2), abs=0.01)
    bound = mechanism.error_bound(0.999999, n=truth.size)
    assert bound < 0.02
    assert np.abs(mechanism.estimate(answers) - [0.6, 0.3, 0.1]).max() <= bound
    assert "100000 answers" in mechanism.describe(answers)


def test_answers_outside_the_choices_count_as_the_nearest() -> None:
    certain = m.RandomizedResponse(epsilon=200, choices=300)
    data = np.array([-5, 0, 299, 10**6, 2**62])
    assert certain.sample(data, NOISE).tolist() == [0, 0, 299, 299, 299]
    assert certain.sample(np.array([-5, 100], np.int8), NOISE).tolist() == [0, 100]
    assert [certain.sample(int(x), NOISE) for x in data] == [0, 0, 299, 299, 299]


def test_response_solver() -> None:
    mechanism = m.RandomizedResponse.for_accuracy(0.05, 0.95, n=10_000, choices=4)
    assert mechanism.error_bound(0.95, n=10_000) == pytest.approx(0.05, rel=1e-6)
    assert mechanism.error_bound(0.95, n=10_000) <= 0.05


SELECTIONS: list[type[m.Exponential]] = [m.Exponential, m.PermuteAndFlip]


@pytest.mark.slow
@pytest.mark.parametrize("family", SELECTIONS)
@pytest.mark.parametrize("candidates", [5, 60])
def test_choices_are_good_enough(family: type[m.Exponential], candidates: int) -> None:
    mechanism = family(epsilon=1, sensitivity=1)
    scores = np.arange(candidates) % 5 * 4
    bound = mechanism.error_bound(0.9, n=candidates)
    noise = SeededNoise(5)
    chosen = np.array([mechanism.sample(scores, noise) for _ in range(1500)])
    missed = float((scores.max() - scores[chosen] > bound).mean())
    assert missed < 0.1 + 5 * (0.09 / 1500) ** 0.5
    assert mechanism.describe(3) == "candidate 3"
    solved = family.for_accuracy(6, 0.9, sensitivity=1, n=candidates, floats=True)
    assert type(solved) is family
    assert solved.error_bound(0.9, n=candidates, floats=True) <= 6


@pytest.mark.slow
@pytest.mark.parametrize("family", SELECTIONS)
@pytest.mark.parametrize("padding", [0, 40])
def test_selection_probabilities(family: type[m.Exponential], padding: int) -> None:
    """Against the textbook probabilities, and against those of a 30 % other ε, which must not fit.

    Candidates that are hopelessly behind change nothing, except the way in which the choice is made.
    """
    scores = np.array([0.0, 1.0, 2.0] + [-1e4] * padding)
    mechanism, noise = family(epsilon=2, sensitivity=1), SeededNoise(5)
    runs = 10_000 if SOAK else 4_000
    chosen = np.bincount([mechanism.sample(scores, noise) for _ in range(runs)], minlength=3) / runs
    assert chosen.size == 3
    assert np.abs(chosen - _law(family, 1.0)).max() < 0.025
    assert np.abs(chosen - _law(family, 1.3)).max() > 0.03


def _law(family: type[m.Exponential], rate: float) -> Any:
    weights = np.exp(-rate * np.array([2, 1, 0]))
    if family is m.Exponential:
        return weights / weights.sum()
    a, b, _ = weights  # heads of the two that are not best; the best always shows heads
    first = a * (1 - b) / 2 + a * b / 3
    second = b * (1 - a) / 2 + a * b / 3
    return np.array([first, second, 1 - first - second])


@pytest.mark.parametrize("family", SELECTIONS)
def test_monotone_scores_are_worth_twice_the_rate(family: type[m.Exponential]) -> None:
    general, monotone = (
        family(epsilon=1, sensitivity=3, monotone=flag, neighbours="add-remove") for flag in (False, True)
    )
    assert monotone._calibrate(False)[1] == 2 * general._calibrate(False)[1] == Fraction(1, 3)


@pytest.mark.parametrize("family", SELECTIONS)
def test_scores_that_are_no_numbers_are_the_lowest(family: type[m.Exponential]) -> None:
    mechanism = family(epsilon=1, sensitivity=1)
    assert mechanism.sample(np.array([nan, -inf, 5.0]), NOISE) == 2
    assert mechanism.sample(np.array([1.0, inf, nan]), NOISE) == 1
    assert mechanism.sample(np.array([0, 2**64 - 1], np.uint64), NOISE) == 1
    assert mechanism.sample(np.array([nan]), NOISE) == 0
    assert family(epsilon=1, sensitivity=1, grid=0.5).sample(np.array([0.0, 1e6]), NOISE) == 1
