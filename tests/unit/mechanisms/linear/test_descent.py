"""Descent that stops early: what one record can move, when it stops, and what it pays."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expost import Cost, InvalidValue, Iterative, Ledger, SeededNoise
from expost.accounting.losses import GaussianNoise
from expost.mechanisms import LogisticDescent
from expost.mechanisms.linear.model import unit_rows

SMALL = LogisticDescent(epsilon=1, delta=1e-6, features=2, norm=1, steps=20, every=10)
wild = st.one_of(st.floats(), st.sampled_from([1e308, -1e308, 5e-324, np.inf, -np.inf, np.nan]), st.floats(-2, 2))
records = st.lists(st.tuples(wild, wild, st.sampled_from([0.0, 1.0, 7.0, np.nan])), min_size=2, max_size=6)
outputs = st.lists(st.lists(st.integers(-(2**60), 2**60), min_size=3, max_size=3), max_size=3)


def gradient(table: np.ndarray, before: tuple[np.ndarray, ...]) -> np.ndarray:
    signs = np.where(table[:, -1] == 1, 1.0, -1.0)
    rows = unit_rows(table[:, :-1], 1.0, 0.0, True) * signs[:, None]
    return SMALL._gradient(rows, before)


@settings(deadline=None)
@given(records, st.tuples(wild, wild, st.sampled_from([0.0, 1.0])), outputs)
def test_one_record_moves_a_gradient_by_its_sensitivity_at_most(
    people: list[tuple[float, ...]], other: tuple[float, ...], before: list[list[int]]
) -> None:
    published = tuple(np.array(output) for output in before)
    table = np.array(people)
    neighbour = table.copy()
    neighbour[0] = other
    moved = [int(x) for x in gradient(table, published) - gradient(neighbour, published)]
    assert sum(x * x for x in moved) <= (2 * SMALL.longest) ** 2


def test_the_sensitivity_is_nearly_reached() -> None:
    """The bound is no looser than it must be: two extreme records come within five per cent of it."""
    rows = np.array([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    up, down = gradient(rows[:1], ()), gradient(rows[1:], ())
    assert np.linalg.norm(up - down) > 0.95 * SMALL.longest  # at weights 0 slopes are a half: half of 2·longest
    far = (np.array([2**55, 0, 0]),)
    assert np.linalg.norm(gradient(rows[:1], far)) > 0.95 * SMALL.longest


def test_noise_keeps_the_guarantee() -> None:
    assert SMALL.guarantee.worst_case <= Cost(1, 1e-6)
    assert SMALL.guarantee.worst_case.epsilon > 0.97
    assert SMALL.guarantee.best_case.epsilon < 0.8
    quieter = (GaussianNoise(SMALL.noise_multiplier * 0.9),) * 20
    louder = Iterative(steps=quieter, stops=(10, 20), delta=1e-6, sensitivity=1)
    assert louder.guarantee.worst_case.epsilon > 1  # a tenth less noise would break it


def people(size: int, signal: float) -> np.ndarray:
    generator = np.random.default_rng(5)
    features = generator.normal(size=(size, 2)) / 3
    labels = features @ [signal, -signal] + generator.logistic(size=size) > 0
    return np.column_stack([features, labels])


def test_it_stops_when_there_is_nothing_to_learn() -> None:
    ledger = Ledger(epsilon=2, delta=1e-5, noise=SeededNoise(3))
    release = ledger.run(SMALL, on=people(2000, 0))
    assert len(release.value) == 10
    assert release.charged == SMALL.guarantee.best_case
    assert release.refunded.epsilon > 0.2


def test_it_goes_on_and_learns() -> None:
    table = people(40_000, 6)
    eager = LogisticDescent(epsilon=1, delta=1e-6, features=2, norm=1, steps=20, every=10, patience=0)
    release = Ledger(epsilon=2, delta=1e-5, noise=SeededNoise(3)).run(eager, on=table)
    assert len(release.value) == 20
    model = eager.model(release.value, len(table))
    assert (model.predict(table[:, :-1]) == table[:, -1]).mean() > 0.75


@pytest.mark.parametrize(
    "wrong", [{"steps": 15}, {"every": 0}, {"norm": 0}, {"features": True}, {"learning_rate": 0}, {"patience": -1}]
)
def test_settings_that_are_none(wrong: dict[str, float]) -> None:
    given = {"epsilon": 1, "delta": 1e-6, "features": 2, "norm": 1, "steps": 20, "every": 10} | wrong
    with pytest.raises(InvalidValue):
        LogisticDescent(**given)


def test_data_of_another_shape() -> None:
    with pytest.raises(InvalidValue, match="2 features and a class"):
        SMALL.check(np.zeros((5, 2)))
    assert Fraction(str(SMALL.epsilon)) == 1
