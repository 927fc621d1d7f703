"""The elementary mechanisms' own code, every draw made: exact laws, checked, with guarantees that must fail."""

from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest

from expost import DiscreteGaussian, Guarantee, Laplace, Mechanism, PermuteAndFlip
from expost.mechanisms import Exponential, RandomizedResponse
from expost.noise import bernoulli_exp, rounded_laplace
from expost.verify import FiniteMechanism, check, law, least_delta, tabulate

pytestmark = pytest.mark.slow
CASES: list[tuple[Mechanism, Any, Any, Fraction]] = [
    (Laplace(epsilon=1, sensitivity=1), 7, 8, Fraction(1, 50)),
    (Laplace(epsilon=1, sensitivity=2), 7, 9, Fraction(1, 25)),
    (RandomizedResponse(epsilon=1, choices=3), 0, 2, Fraction(1, 50)),
    (Exponential(epsilon=2, sensitivity=1), np.array([0, 1, 1]), np.array([1, 0, 1]), Fraction(1, 50)),
    (
        Exponential(epsilon=1, sensitivity=1, monotone=True, neighbours="add-remove"),
        np.array([0, 1, 1]),
        np.array([1, 1, 2]),
        Fraction(1, 50),
    ),
    (PermuteAndFlip(epsilon=2, sensitivity=1), np.array([0, 1, 1]), np.array([1, 0, 1]), Fraction(1, 50)),
]


@pytest.mark.parametrize(("mechanism", "one", "other", "missing"), CASES, ids=lambda case: type(case).__name__)
def test_the_code_keeps_its_guarantee_and_not_half_of_it(
    mechanism: Mechanism, one: Any, other: Any, missing: Fraction
) -> None:
    table = tabulate(mechanism, {"x": one, "y": other}, [("x", "y")], missing=missing)
    epsilon = mechanism.guarantee.worst_case.exact_epsilon
    guaranteed = least_delta(table, Guarantee.uniform(epsilon))
    assert guaranteed.lower == 0
    assert guaranteed.upper <= missing * 3
    assert check(table, Guarantee.uniform(epsilon / 4, missing * 3)).holds is False


def test_a_discrete_gaussian_of_small_variance() -> None:
    """Its law on paper, one step apart, against its own (ε, δ); sharper guarantees fail."""
    mechanism = DiscreteGaussian(rho=Fraction(1, 2), delta=Fraction(1, 1000), sensitivity=1)  # variance 1
    weights = {k: Fraction(exp(-k * k / 2)) for k in range(-12, 13)}
    total = sum(weights.values())
    laws = {x: {x + k: weight / total for k, weight in weights.items()} for x in (0, 1)}
    table = FiniteMechanism(laws, [(0, 1)], lambda output: "released")
    assert check(table, mechanism.guarantee)
    epsilon = mechanism.guarantee.worst_case.exact_epsilon
    assert not check(table, Guarantee.uniform(epsilon / 2, Fraction(1, 1000)))


def test_rounded_laplace_noise() -> None:
    """Pr[0] = 1 − e^−r/2 and the tails fall by e^−r."""
    found = law(lambda source: rounded_laplace(source, Fraction(1)), missing=Fraction(1, 50))
    heads = law(lambda source: bernoulli_exp(source, Fraction(1, 2)), missing=Fraction(1, 10**9))
    assert float(found[0]) == pytest.approx(float(heads[False]), abs=1 / 50)
    assert found[1] == pytest.approx(float(found[-1]), abs=1 / 50)
    assert float(found[2] / found[1]) == pytest.approx(0.3679, rel=0.1)
