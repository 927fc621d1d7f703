"""Audits of private models end to end, each with a control that has too little noise and is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.mechanisms.linear import perturbation
from expost.mechanisms.linear.tested_logistic import ErrorTest

RUNS = 600
SLACK = sqrt(log(4e6) / (2 * RUNS))  # Hoeffding: two frequencies, both orders, a false alarm in 10⁶


def refuted(draw: Callable[[Any], bool], here: Any, there: Any, epsilon: float) -> bool:
    """Whether an event is more than e^ε times as likely on one database as on the other, beyond chance."""
    p, q = (sum(draw(data) for _ in range(RUNS)) / RUNS for data in (here, there))
    return p - SLACK > exp(epsilon) * (q + SLACK)


NEAR = np.array([[1.0, 1.0], [1.0, 1.0]])
FAR = np.array([[1.0, 1.0], [1.0, 0.0]])
"""Neighbours: one of two records changes its class, and the weight its size."""
SOURCE = xp.noise.SystemNoise()


def positive(mechanism: Any, at: float) -> Callable[[Any], bool]:
    return lambda data: mechanism.sample(data, SOURCE).weights[0][0] > at


def test_output_perturbation() -> None:
    usual: dict[str, Any] = {"norm": 1, "regularizer": 0.5, "intercept": False}
    good, bad = (
        xp.mechanisms.OutputPerturbation(epsilon=1, **usual),
        xp.mechanisms.OutputPerturbation(epsilon=8, **usual),
    )
    assert not refuted(positive(good, 0.4), NEAR, FAR, 1)
    assert refuted(positive(bad, 0.4), NEAR, FAR, 1)


def test_objective_perturbation() -> None:
    usual: dict[str, Any] = {"norm": 1, "regularizer": 0.5, "intercept": False}
    good, bad = (
        xp.mechanisms.ObjectivePerturbation(epsilon=1, **usual),
        xp.mechanisms.ObjectivePerturbation(epsilon=8, **usual),
    )
    assert not refuted(positive(good, 0.4), NEAR, FAR, 1)
    assert refuted(positive(bad, 0.4), NEAR, FAR, 1)


@pytest.mark.parametrize("good_enough", [None, 1])
def test_descent(good_enough: float | None) -> None:
    """What it learnt of a record that it trained on, and what a score tells of one that was held out."""
    usual: dict[str, Any] = {"norm": 1, "delta": 0.01, "steps": 2, "intercept": False, "good_enough": good_enough}
    good, bad = (xp.mechanisms.LogisticDescent(epsilon=epsilon, **usual) for epsilon in (1, 30))
    here, there = (NEAR[1:], FAR[1:]) if good_enough is None else (NEAR, FAR)

    def told(mechanism: Any) -> Callable[[Any], bool]:
        if good_enough is None:
            return positive(mechanism, 0.0)
        return lambda data: mechanism.sample(data, SOURCE).score > 0.5

    assert not refuted(told(good), here, there, 1)
    assert refuted(told(bad), here, there, 1)


def test_a_leaning_objective() -> None:
    """One person moves the gradient by 2·(1 + lean): noise for 2, as without a lean, is caught."""
    good, bad = (
        xp.mechanisms.ObjectivePerturbation(epsilon=epsilon, norm=1, regularizer=0.5, lean=4, intercept=False)
        for epsilon in (1, 4.08)
    )
    scales = [perturbation.tilt_scale(each.setting(*np.shape(NEAR[:, :1]))) for each in (good, bad)]
    assert float(scales[0] / scales[1]) == pytest.approx(1 + 4, rel=0.02)
    assert not refuted(positive(good, 4), NEAR, FAR, 1)
    assert refuted(positive(bad, 4), NEAR, FAR, 1)


# ---- the laws: rows of zeros pull nothing, so that the weights are noise alone

DRAWS, COLUMNS, SIZE, REGULARIZER = 1000, 3, 50, 0.5
NOTHING = np.zeros((SIZE, COLUMNS + 1))
ALARM = sqrt(log(2e8) / (2 * DRAWS))  # Dvoretzky–Kiefer–Wolfowitz: a false alarm in 10⁸


def weights(mechanism: Any) -> Any:
    return np.array([mechanism.sample(NOTHING, SOURCE).weights[0] for _ in range(DRAWS)])


def mechanism_of(kind: Any) -> Any:
    return kind(epsilon=1, norm=1, regularizer=REGULARIZER, intercept=False)


def like_gamma(lengths: Any) -> bool:
    """Whether lengths may have the Gamma law of as many degrees as there are columns."""
    x = np.sort(lengths)
    law = 1 - np.exp(-x) * (1 + x + x**2 / 2)
    ranks = np.arange(DRAWS + 1) / DRAWS
    return bool(max(np.abs(law - ranks[1:]).max(), np.abs(law - ranks[:-1]).max()) < ALARM + 0.002)


def told(lengths: Any) -> bool:
    """Whether they have that law, and neither half nor twice as much noise would have passed for it."""
    assert not like_gamma(lengths / 2)
    assert not like_gamma(lengths * 2)
    return like_gamma(lengths)


def on_grid(found: Any, sensitivity: Fraction, epsilon: Fraction) -> bool:
    step = perturbation.weight_grid(sensitivity, COLUMNS, epsilon).step
    return all(Fraction(entry) % step == 0 for entry in found.ravel().tolist())


def test_the_noise_on_weights() -> None:
    mechanism = mechanism_of(xp.mechanisms.OutputPerturbation)
    found, setting = weights(mechanism), mechanism.setting(SIZE, COLUMNS)
    assert told(np.linalg.norm(found, axis=1) / (2 / (SIZE * REGULARIZER) * 1.002))  # the sensitivity, and rounding
    assert float(perturbation.weight_distance(setting)) == pytest.approx(2 / (SIZE * REGULARIZER), rel=0.004)
    assert on_grid(found, perturbation.weight_sensitivity(setting), setting.epsilon)
    assert not on_grid(found * 0.5, perturbation.weight_sensitivity(setting), setting.epsilon)


@pytest.mark.parametrize("lean", [0, 3])
def test_the_tilt_of_objectives(lean: int) -> None:
    """The minimum is −tilt/nΛ, and the tilt's density falls by e^(ε₁‖b‖/(2 + 2·lean))."""
    mechanism = replace(mechanism_of(xp.mechanisms.ObjectivePerturbation), lean=lean)
    left = 1 - 1 / 32 - log(1 + 0.25 / (SIZE * REGULARIZER))
    assert told(np.linalg.norm(weights(mechanism), axis=1) * SIZE * REGULARIZER * left / (2 + 2 * lean))


def test_the_noise_that_hides_the_distance_from_the_minimum() -> None:
    """The solver's errors, of up to τ/Λ, get noise of their own: seen where every minimum is found to be 0."""
    asked: list[Fraction] = []

    class Level(xp.mechanisms.ObjectivePerturbation):
        def _minimum(self, problem: Any, tolerance: Fraction) -> list[Fraction]:
            asked.append(tolerance)
            return [Fraction(0)] * COLUMNS

    found = weights(mechanism_of(Level))
    apart = 2 * 2 * asked[0] / Fraction(REGULARIZER)  # solved to τ/2 and tilted on a grid, within τ on either side
    assert told(np.linalg.norm(found, axis=1) / (32 * float(apart) * 1.002))
    assert on_grid(found, apart, Fraction(1, 32))
    assert not on_grid(found * 0.5, apart, Fraction(1, 32))


TRAIN = (np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]]))
HELD_OUT = np.ones((50, 2))


def verdicts(distance: Fraction | None) -> Callable[[Any], bool]:
    """Whether the model is withheld. Without a distance: the one that the mechanism knows to be right."""
    model = xp.mechanisms.OutputPerturbation(epsilon=50, norm=1, regularizer=0.5, intercept=False)
    setting = model.setting(1, 1)
    if distance is None:
        distance = perturbation.weight_distance(setting)
    test = ErrorTest(epsilon=1, threshold=1, classes=2, distance=distance, columns=1)
    mechanism = xp.mechanisms.Tested(mechanism=model, test=test)
    return lambda train: mechanism.sample((train, HELD_OUT), SOURCE) is xp.WITHHELD


def test_the_verdict_alone() -> None:
    """ε = 50 for the model, 1 for the verdict; a test that forgets the training records tells them apart."""
    assert not refuted(verdicts(None), TRAIN[1], TRAIN[0], 1)  # the control is one that no ledger runs
    assert refuted(verdicts(Fraction(0)), TRAIN[1], TRAIN[0], 1)


def test_tested_logistic_regression_end_to_end() -> None:
    """All records but one say yes; that one may be anywhere in the split. Forty times the test's ε is caught."""
    usual: dict[str, Any] = {"epsilon": 50, "norm": 1, "regularizer": 1, "intercept": False, "held_out": 0.5}
    here, there = np.ones((4, 2)), np.ones((4, 2))
    there[0] = [-1, 1]

    def withheld(epsilon: float) -> Callable[[Any], bool]:
        mechanism = xp.mechanisms.TestedLogisticRegression(test_share=epsilon / 50, threshold=0.9, **usual)
        return lambda data: mechanism.sample(data, SOURCE) is xp.WITHHELD

    assert not refuted(withheld(0.5), there, here, 0.5)
    assert refuted(withheld(20), there, here, 0.5)
