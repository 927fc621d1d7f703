"""Audits of private models end to end, each with a control that has too little noise and is caught."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import exp, log, sqrt
from typing import Any

import numpy as np

import expost as xp
from expost.mechanisms import linear
from expost.mechanisms.tested_logistic import ErrorTest

RUNS = 600
SLACK = sqrt(log(4e6) / (2 * RUNS))  # Hoeffding: two frequencies, both orders, a false alarm in 10⁶


def refuted(draw: Callable[[Any], bool], here: Any, there: Any, epsilon: float) -> bool:
    """Whether an event is more than e^ε times as likely on one database as on the other, beyond chance."""
    p, q = (sum(draw(data) for _ in range(RUNS)) / RUNS for data in (here, there))
    return p - SLACK > exp(epsilon) * (q + SLACK)


NEAR = np.array([[1.0, 1.0], [1.0, 1.0]])
FAR = np.array([[1.0, 1.0], [1.0, 0.0]])
"""Neighbours: one of two records changes its class, and the weight its size."""
SOURCE = xp.SystemNoise()


def positive(mechanism: Any, at: float) -> Callable[[Any], bool]:
    return lambda data: mechanism.sample(data, SOURCE).weights[0][0] > at


def test_output_perturbation() -> None:
    usual: dict[str, Any] = {"norm": 1, "regularizer": 0.5, "intercept": False}
    good, bad = xp.OutputPerturbation(epsilon=1, **usual), xp.OutputPerturbation(epsilon=8, **usual)
    assert not refuted(positive(good, 0.4), NEAR, FAR, 1)
    assert refuted(positive(bad, 0.4), NEAR, FAR, 1)


def test_objective_perturbation() -> None:
    usual: dict[str, Any] = {"norm": 1, "regularizer": 0.5, "intercept": False}
    good, bad = xp.ObjectivePerturbation(epsilon=1, **usual), xp.ObjectivePerturbation(epsilon=8, **usual)
    assert not refuted(positive(good, 0.4), NEAR, FAR, 1)
    assert refuted(positive(bad, 0.4), NEAR, FAR, 1)


TRAIN = (np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]]))
HELD_OUT = np.ones((50, 2))


def verdicts(distance: Fraction | None) -> Callable[[Any], bool]:
    """Whether the model is withheld. Without a distance: the one that the mechanism knows to be right."""
    model = xp.OutputPerturbation(epsilon=50, norm=1, regularizer=0.5, intercept=False)
    setting = model.setting(1, 1)
    if distance is None:
        distance = linear.moved(linear.weight_sensitivity(setting), 1)
    test = ErrorTest(epsilon=1, threshold=1, classes=2, distance=distance, columns=1)
    mechanism = xp.Tested(mechanism=model, test=test)
    assert mechanism.guarantee.epsilon_of("withheld") == 1
    return lambda train: mechanism.sample((train, HELD_OUT), SOURCE) is xp.WITHHELD


def test_the_verdict_alone() -> None:
    """ε = 50 for the model, 1 for the verdict; a test that forgets the training records tells them apart."""
    assert not refuted(verdicts(None), TRAIN[1], TRAIN[0], 1)
    assert refuted(verdicts(Fraction(0)), TRAIN[1], TRAIN[0], 1)


def test_tested_logistic_regression_end_to_end() -> None:
    """All records but one say yes; that one may be anywhere in the split. Forty times the test's ε is caught."""
    usual: dict[str, Any] = {"epsilon": 50, "norm": 1, "regularizer": 1, "intercept": False, "held_out": 0.5}
    here, there = np.ones((4, 2)), np.ones((4, 2))
    there[0] = [-1, 1]

    def withheld(epsilon: float) -> Callable[[Any], bool]:
        mechanism = xp.TestedLogisticRegression(test_epsilon=epsilon, threshold=0.9, **usual)
        return lambda data: mechanism.sample(data, SOURCE) is xp.WITHHELD

    assert not refuted(withheld(0.5), there, here, 0.5)
    assert refuted(withheld(20), there, here, 0.5)
