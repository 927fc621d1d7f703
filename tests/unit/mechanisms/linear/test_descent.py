"""Descent that stops early: what one record can move, when it stops, what it pays, and what it releases."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expost import Cost, InvalidValue, Iterative, Ledger, SeededNoise
from expost.accounting.losses import GaussianNoise
from expost.mechanisms import LogisticDescent, TrainedModel
from expost.mechanisms.linear.model import signs_of, unit_rows

SMALL = LogisticDescent(epsilon=1, delta=1e-6, norm=1, steps=20, every=10)
THREE = replace(SMALL, classes=3)
wild = st.one_of(st.floats(), st.sampled_from([1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan]), st.floats(-2, 2))
label = st.sampled_from([0.0, 1.0, 2.0, 7.0, np.nan])
records = st.lists(st.tuples(wild, wild, label), min_size=2, max_size=6)
places = st.lists(st.floats(-1e6, 1e6), min_size=9, max_size=9)


def gradient(descent: LogisticDescent, table: Any, at: Any) -> Any:
    wanted = 0.5 + 0.5 * np.column_stack(signs_of(table[:, -1], descent.classes))
    return descent._gradient(unit_rows(table[:, :-1], 1.0, 0.0, True), wanted, at)


@pytest.mark.parametrize("descent", [SMALL, THREE])
@settings(deadline=None)
@given(records, st.tuples(wild, wild, label), places)
def test_one_record_moves_a_gradient_by_its_sensitivity_at_most(
    descent: LogisticDescent, people: list[tuple[float, ...]], other: tuple[float, ...], place: list[float]
) -> None:
    problems = 1 if descent.classes == 2 else descent.classes
    at, table = np.array(place[: 3 * problems]).reshape(problems, 3), np.array(people)
    neighbour = table.copy()
    neighbour[0] = other
    moved = [int(x) for x in gradient(descent, table, at) - gradient(descent, neighbour, at)]
    assert sum(x * x for x in moved) <= (2 * descent._longest(problems, 3)) ** 2


@pytest.mark.parametrize(("descent", "problems"), [(SMALL, 1), (THREE, 3)])
def test_the_sensitivity_is_nearly_reached(descent: LogisticDescent, problems: int) -> None:
    """The bound is no looser than it must be, at the start and where all records are on the wrong side."""
    rows = np.array([[1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]])
    for far in (0.0, 100.0):
        at = np.zeros((problems, 3))
        at[:, 0] = -far if problems == 1 else far * np.array([1, -1, 0])
        assert np.linalg.norm(gradient(descent, rows[:1], at)) > 0.95 * descent._longest(problems, 3)
    moved = gradient(SMALL, rows[:1], np.zeros((1, 3))) - gradient(SMALL, rows[1:], np.zeros((1, 3)))
    assert np.linalg.norm(moved) > 0.75 * 2 * SMALL._longest(1, 3)  # the constant is on the same side of both


def test_records_are_added_up_in_blocks() -> None:
    """So many columns that not all records fit one block: the sum is that of two halves."""
    generator = np.random.default_rng(1)
    table = np.column_stack([generator.normal(size=(3000, 3000)), generator.integers(0, 2, 3000)])
    at = np.ones((1, 3001))
    halves = gradient(SMALL, table[:1300], at) + gradient(SMALL, table[1300:], at)
    assert gradient(SMALL, table, at).tolist() == halves.tolist()


def test_noise_keeps_the_guarantee() -> None:
    assert SMALL.guarantee.worst_case <= Cost(1, 1e-6)
    assert SMALL.guarantee.worst_case.epsilon > 0.97
    assert SMALL.guarantee.best_case.epsilon < 0.8
    quieter = (GaussianNoise(SMALL.noise_multiplier * 0.9),) * 20
    louder = Iterative(steps=quieter, stops=(10, 20), delta=1e-6, sensitivity=1)
    assert louder.guarantee.worst_case.epsilon > 1  # a tenth less noise would break it


def test_a_score_costs_a_held_out_record_what_the_steps_cost_one_that_is_trained_on() -> None:
    """μ² of the score is that of the steps between two stops: at least, and with a tenth less noise no more."""
    step, score = GaussianNoise(SMALL.noise_multiplier), SMALL._noise(1, 10)
    assert 10 / Fraction(step.noise_multiplier) ** 2 >= 1 / Fraction(score.noise_multiplier) ** 2
    assert 10 / Fraction(step.noise_multiplier) ** 2 < 1 / (Fraction(score.noise_multiplier) * Fraction(9, 10)) ** 2


def people(size: int, signal: float) -> Any:
    generator = np.random.default_rng(5)
    features = generator.normal(size=(size, 2)) / 3
    labels = features @ [signal, -signal] + generator.logistic(size=size) > 0
    return np.column_stack([features, labels])


def run(descent: LogisticDescent, table: Any, seed: int = 3) -> Any:
    return Ledger(epsilon=2, delta=1e-5, noise=SeededNoise(seed)).run(descent, on=table)


def test_it_stops_when_there_is_nothing_to_learn() -> None:
    releases = [run(replace(SMALL, patience=10), people(2000, 0), seed) for seed in range(12)]
    early = [release for release in releases if release.value.steps == 10]
    assert len(early) >= 8  # what noise moved the weights by, the next gradients point back from
    assert early[0].charged == SMALL.guarantee.best_case
    assert early[0].refunded.epsilon > 0.2
    assert run(replace(SMALL, patience=None), people(2000, 0)).value.steps == 20


def test_it_goes_on_and_releases_a_model() -> None:
    table = people(40_000, 6)
    release = run(SMALL, table)
    model = release.value
    assert isinstance(model, TrainedModel)
    assert model == release.output
    assert (release.part, model.steps, model.score) == (20, 20, None)
    assert (model.predict(table[:, :-1]) == table[:, -1]).mean() > 0.75
    assert [row[0] for row in release.frame.rows] == ["intercept", "coefficient", "coefficient"]
    assert "20 of at most 20 steps" in str(release)


def test_it_stops_as_soon_as_it_is_good_enough() -> None:
    table = people(40_000, 6)
    eager = replace(SMALL, steps=20, every=2, good_enough=0.75)
    release = run(eager, table)
    assert release.value.steps == 2
    assert release.charged == eager.guarantee.best_case
    assert release.refunded.epsilon > 0.6
    assert release.value.score - eager.error_bound(0.95, n=len(table)) >= 0.75
    exact = (release.value.predict(table[:, :-1]) == table[:, -1]).mean()
    assert release.value.score == pytest.approx(exact, abs=0.02)
    assert "held-out accuracy 0.8" in str(release)
    assert run(replace(eager, good_enough=0.95, patience=None), table).value.steps == 20  # out of reach


def test_scores_miss_by_no_more_than_their_bound_says() -> None:
    """One of twenty scores is above the truth by more than the bound at 95 %; and of those at 50 %, half are."""
    held_out, weights = people(120, 6), np.array([[1.0, -1.0, 0.0]])
    once = replace(SMALL, good_enough=1)
    share = (TrainedModel(((1.0, -1.0, 0.0),), 1.0, True).predict(held_out[:, :-1]) == held_out[:, -1]).mean()
    found = [once._score(weights, held_out, SeededNoise(seed)) - share for seed in range(1000)]
    assert np.mean(np.array(found) > once.error_bound(0.95, n=400)) == pytest.approx(0.05, abs=0.025)
    assert np.mean(np.array(found) > once.error_bound(0.5, n=400)) == pytest.approx(0.5, abs=0.06)


def test_more_classes_need_no_more_noise() -> None:
    generator = np.random.default_rng(1)
    features = generator.normal(size=(4000, 2))
    labels = (features[:, 0] > 0).astype(int) + 2 * (features[:, 1] > 0)
    four = replace(SMALL, classes=4, norm=3)
    assert four.noise_multiplier == SMALL.noise_multiplier
    model = run(four, np.column_stack([features, labels])).value
    assert len(model.weights) == 4
    assert (model.predict(features) == labels).mean() > 0.85


def test_some_columns_and_no_constant() -> None:
    table = np.column_stack([np.random.default_rng(0).normal(size=2000), people(2000, 6)])
    model = run(replace(SMALL, features=(1, 2), intercept=False), table).value
    assert (len(model.weights[0]), model.features) == (2, (1, 2))
    assert (model.predict(table[:, :-1]) == table[:, -1]).mean() > 0.75


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"steps": 15}, "multiple of every"),
        ({"every": 0}, "every"),
        ({"norm": 0}, "norm"),
        ({"features": 3}, "different numbers of columns"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"patience": 1}, "patience"),
        ({"good_enough": 90}, "such as 0.9"),
        ({"held_out": 1}, "held_out"),
        ({"classes": 1}, "classes"),
        ({"steps": 101, "every": 1}, "100 places"),
    ],
)
def test_settings_that_are_none(wrong: dict[str, Any], says: str) -> None:
    given = {"epsilon": 1, "delta": 1e-6, "norm": 1, "steps": 20, "every": 10} | wrong
    with pytest.raises(InvalidValue, match=says):
        LogisticDescent(**given)


def test_data_of_another_shape() -> None:
    for descent, data in (
        (SMALL, np.zeros(5)),
        (replace(SMALL, features=(4,)), np.zeros((5, 3))),
        (replace(SMALL, good_enough=0.9), np.zeros((1, 3))),
    ):
        with pytest.raises(InvalidValue, match=r"two-dimensional|asks for column|at least two"):
            descent.check(data)
    SMALL.check(np.zeros((1, 3)))
