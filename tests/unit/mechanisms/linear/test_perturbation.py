"""Linear models: rows in the ball, certified minima, sensitivities by retraining, stated rules for private values."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import isqrt, log, ulp
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import expost as xp
from expost.mechanisms.linear import solver
from expost.mechanisms.linear.model import signs_of, unit_rows
from expost.mechanisms.linear.perturbation import (
    _Linear,
    leaning,
    tilt_epsilon,
    tilt_grid,
    tilt_scale,
    tilted_tolerance,
    tolerance,
    weight_distance,
    weight_grid,
    weight_sensitivity,
)
from expost.mechanisms.linear.solver import Problem, bend, minimise, slope
from expost.noise.spherical import rounded_spherical

pytestmark = pytest.mark.slow
LOSSES: list[Any] = ["logistic", "huber"]


def problem(
    loss: Any = "logistic", seed: int = 0, size: int = 40, columns: int = 3, regularizer: float = 0.1
) -> Problem:
    rng = np.random.default_rng(seed)
    rows = unit_rows(rng.normal(size=(size, columns)), 1.5, 0.0, False)
    tilt = tuple(Fraction(int(b), 4) for b in rng.integers(-20, 20, columns))
    return Problem(loss, rows, regularizer, tilt)


def exact_gradient(task: Problem, at: list[Fraction]) -> list[Fraction]:
    """∇J to 60 digits."""
    total = [Fraction(0)] * len(at)
    with localcontext() as context:
        context.prec = 60
        for row in task.rows.tolist():
            z = [Fraction(entry) for entry in row]
            margin = sum(a * b for a, b in zip(at, z, strict=True))
            if task.loss == "huber":
                pull = max(Fraction(-1), min(Fraction(0), margin - Fraction(3, 2)))
            else:
                power = max(Decimal(-9999), min(Decimal(9999), Decimal(margin.numerator) / margin.denominator)).exp()
                pull = -Fraction(int((1 / (1 + power)).scaleb(60)), 10**60)
            total = [t + pull * entry for t, entry in zip(total, z, strict=True)]
    return [(t + b) / task.size + Fraction(task.regularizer) * a for t, b, a in zip(total, task.tilt, at, strict=True)]


def length(vector: list[Fraction]) -> float:
    return isqrt(int(sum(entry**2 for entry in vector) * 4**200)) / 2**200


@given(
    st.lists(st.lists(st.floats(width=64), min_size=3, max_size=3), min_size=1, max_size=5),
    st.floats(1e-3, 1e3),
    st.booleans(),
)
def test_rows_are_in_the_ball(features: list[list[float]], norm: float, intercept: bool) -> None:
    rows = unit_rows(np.array(features), norm, 0.0, intercept)
    assert rows.shape == (len(features), 3 + intercept)
    for row in rows.tolist():
        assert sum(Fraction(entry) ** 2 for entry in row) <= 1
    alone = unit_rows(np.array(features[:1]), norm, 0.0, intercept)
    assert np.array_equal(alone[0], rows[0])  # a map of single records


def test_rows_inside_stay_and_rows_outside_are_shortened() -> None:
    rows = unit_rows(np.array([[0.3, 0.4], [30, 40], [np.nan, np.inf]]), 1, 0.0, False)
    assert rows[0] == pytest.approx([0.3, 0.4])
    assert rows[1] == pytest.approx([0.6, 0.8])
    assert rows[2] == pytest.approx([0, 1])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(5))
def test_minima_are_certified(loss: Any, seed: int) -> None:
    """The fast way and the slow way, against arithmetic with 60 digits; they agree as far as they guarantee to."""
    task, near = problem(loss, seed), Fraction(1, 10**8)
    fast = minimise(task, near)
    assert length(exact_gradient(task, fast)) <= float(near)
    slow = solver._descend(task, near)
    guaranteed = 2 * float(near) / task.regularizer
    assert 0 < length([a - b for a, b in zip(fast, slow, strict=True)]) <= guaranteed
    far = solver._descend(task, Fraction(1, 10))  # fewer steps, less near
    assert length(exact_gradient(task, far)) > float(near)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_gradients_error_is_bounded(loss: Any) -> None:
    for seed in range(10):
        task = problem(loss, seed, size=200, columns=5)
        at = np.random.default_rng(seed).normal(size=5) * 10.0 ** (seed - 3)
        exact = exact_gradient(task, [Fraction(entry) for entry in at.tolist()])
        computed = [Fraction(entry) for entry in task.gradient(at)[0].tolist()]
        assert length([a - b for a, b in zip(exact, computed, strict=True)]) <= task.error(float(np.linalg.norm(at)))


def test_the_gradients_error_grows_with_the_tilt() -> None:
    """lem-gradient-error, where reading the tilt is most of it."""
    rng = np.random.default_rng(4)
    rows, worst = unit_rows(rng.normal(size=(5, 3)), 1, 0.0, False), 0.0
    for _ in range(20):
        at = rng.normal(size=3)
        tilt = tuple(Fraction(int(rng.integers(-(10**18), 10**18)), 10**6) for _ in at)
        task = Problem("logistic", rows, 0.01, tilt)
        exact = exact_gradient(task, [Fraction(entry) for entry in at.tolist()])
        computed = [Fraction(entry) for entry in task.gradient(at)[0].tolist()]
        off = length([a - b for a, b in zip(exact, computed, strict=True)])
        assert off <= task.error(float(np.linalg.norm(at)))
        worst = max(worst, off)
    assert worst > solver.gradient_error("logistic", rows.shape, 0.01, 10.0, tilt=0.0)


def test_hopeless_problems_are_solved_slowly() -> None:
    """A tilt so long that no float can certify anything: the descent takes more bits, and does."""
    task = Problem("logistic", np.array([[0.5], [-0.25]]), 0.5, (Fraction(10**25),))
    assert solver._newton(task, Fraction(1, 1000)) is None
    found = minimise(task, Fraction(1, 1000))
    assert length(exact_gradient(task, found)) <= 1e-3 * (1 + 0.25 / 0.5)


class ByNewton(_Linear):
    """A classifier without the fallback."""

    def _minimum(self, problem: Problem, tolerance: Fraction) -> list[Fraction]:
        found = solver._newton(problem, tolerance)
        assert found is not None, "Newton's method found nothing"
        return [Fraction(entry) for entry in found.tolist()]


class OutputByNewton(ByNewton, xp.mechanisms.OutputPerturbation):
    """Noise on the weights."""


class ObjectiveByNewton(ByNewton, xp.mechanisms.ObjectivePerturbation):
    """A tilted objective."""


@pytest.mark.parametrize("seed", [1362, 8576, 2941])
def test_newton_does_not_cycle(seed: int) -> None:
    """Rows of very different lengths and little regularisation, where full steps of a kinked loss may go in circles."""
    rng = np.random.default_rng(seed)
    size, columns = int(rng.choice([10, 50, 300])), int(rng.choice([3, 10, 20]))
    regularizer = float(rng.choice([1e-6, 1e-5, 1e-4, 1e-3]))
    spread = rng.normal(size=(size, columns))
    spread *= 10.0 ** (rng.uniform(-12, 2, (size, 1)) if seed % 2 else rng.uniform(-8, 1, (size, columns)))
    signs = np.where(rng.random(size) < 0.5, 1.0, -1.0)
    data = np.column_stack([spread, signs > 0])
    mechanism = OutputByNewton(epsilon=1, norm=1, loss="huber", regularizer=regularizer, intercept=False)
    assert mechanism.sample(data, xp.noise.SystemNoise()) is not None


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_move_no_farther_than_is_stated(loss: Any) -> None:
    """Retraining on neighbours: never beyond 2/nΛ, and, where most records pull one way, more than 60 % of it."""

    def fitted(rows: Any, regularizer: float) -> Any:
        task = Problem(loss, unit_rows(rows, 1, 0.0, False), regularizer, (Fraction(0),) * rows.shape[1])
        return np.array([float(entry) for entry in minimise(task, Fraction(1, 10**9))])

    rng = np.random.default_rng(1)
    for regularizer in (0.01, 0.1, 1.0):
        for _ in range(20):
            rows = rng.normal(size=(30, 3)) + rng.normal(size=3)
            other = rows.copy()
            other[0] = -5 * rng.normal(size=3)
            apart = np.linalg.norm(fitted(rows, regularizer) - fitted(other, regularizer))
            assert apart <= 2 / (30 * regularizer) + 2e-9 / regularizer
    rows = np.tile([1.0, 0.0], (20_000, 1))
    up, down = rows.copy(), rows.copy()
    up[0], down[0] = [-0.6, 0.8], [-0.6, -0.8]
    apart = np.linalg.norm(fitted(up, 0.005) - fitted(down, 0.005))
    assert 0.6 < apart / (2 / (20_000 * 0.005)) <= 1


def test_the_noise_is_for_the_sensitivity() -> None:
    setting = xp.mechanisms.OutputPerturbation(epsilon=1, norm=1, regularizer=0.125).setting(1000, 4)
    assert (setting.size, setting.columns, setting.regularizer) == (1000, 5, 0.125)
    exactly = Fraction(2, 125)
    assert exactly < weight_sensitivity(setting) < exactly * Fraction(101, 100)
    assert weight_sensitivity(setting) < weight_distance(setting) < exactly * Fraction(102, 100)
    assert tolerance(setting) == Fraction(1, 1000 * 1024) or float(tolerance(setting)) == 2.0**-10 / 1000
    several = xp.mechanisms.OutputPerturbation(epsilon=1, norm=1, classes=4).setting(1000, 4)
    assert several.epsilon == Fraction(1, 4)


def test_objective_perturbation_splits_its_budget() -> None:
    mechanism = xp.mechanisms.ObjectivePerturbation(epsilon=1, norm=1, regularizer=0.01)
    setting = mechanism.setting(100, 3)
    spent = tilt_epsilon(setting) + setting.epsilon / 32 + Fraction(log(1 + 0.25 / (100 * 0.01)))
    assert float(spent) == pytest.approx(1)
    raised = xp.mechanisms.ObjectivePerturbation(epsilon=0.1, norm=1, regularizer=1e-6).setting(100, 3)
    assert raised.regularizer == pytest.approx(0.25 / (100 * np.expm1(0.05)))
    assert tilt_epsilon(raised) > Fraction(4, 100)
    for epsilon in (1e-12, 1e-3, 1000, 10**6):
        assert tilt_epsilon(xp.mechanisms.ObjectivePerturbation(epsilon=epsilon, norm=1).setting(10, 2)) > 0


def log_density(task: Problem, lean: float, scale: float, at: Any) -> float:
    """ln of the density of objective perturbation's exact minimiser: that of the tilt it takes, and the Jacobian."""
    slopes = slope(task.loss, task.rows @ at)
    tilt = -(slopes - lean) @ task.rows - task.size * task.regularizer * at
    jacobian = (task.rows * bend(task.loss, slopes)[:, None]).T @ task.rows
    jacobian[np.diag_indices_from(jacobian)] += task.size * task.regularizer
    return float(np.linalg.slogdet(jacobian)[1] - np.linalg.norm(tilt) / scale)


def most_told(mechanism: Any, scale: float) -> float:
    """The largest log-ratio of densities on neighbours that a search finds, and that of two which pull far apart."""
    rng = np.random.default_rng(11)
    setting, worst = mechanism.setting(400, 3), 0.0
    for case in range(100):
        rows = unit_rows(rng.normal(size=(400, 3)) * rng.choice([0.1, 1, 10]), 1, 0.0, False)
        other = rows.copy()
        other[0], at = -rows[1], rng.normal(size=3) * 10.0 ** (case % 4 - 1)
        if case == 0:  # both records are wrongly classified, and the others hold against the regulariser
            rows[:], other[:], at = [0, 1, 0], [0, 1, 0], np.array([-15.0, 0, 0])
            rows[0], other[0] = [0.3, 0.95, 0], [0.3, -0.95, 0]
        tasks = [Problem(setting.loss, z, setting.regularizer, (Fraction(0),) * 3) for z in (rows, other)]
        here, there = (log_density(task, setting.lean, scale, at) for task in tasks)
        worst = max(worst, abs(here - there))
    return worst


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("lean", [0, 0.5, 7])
def test_the_density_of_the_minimum_on_neighbours(loss: Any, lean: float) -> None:
    """thm-objective-perturbation: within ε less a 32nd, nearly reached; and half the noise would pass it."""
    mechanism = xp.mechanisms.ObjectivePerturbation(
        epsilon=1, norm=1, loss=loss, regularizer=0.01, lean=lean, intercept=False
    )
    scale = float(tilt_scale(mechanism.setting(400, 3)))
    assert 0.7 < most_told(mechanism, scale) <= 31 / 32
    assert most_told(mechanism, scale / 2) > 1.3


def test_leaning_is_the_gradient_of_straight_lines() -> None:
    """Each coordinate of the sum to half a unit in the last place, also where a sum in order loses everything."""
    rows = np.random.default_rng(2).normal(size=(1000, 4)) * [1, 1e-9, 3, 1e-300]
    rows[:, 2] = np.tile([1.0, 1e-17, -1.0, 1e-17], 250)
    rows /= 8
    for found, column in zip(leaning(rows, 3.5), rows.T.tolist(), strict=True):
        exactly = sum(map(Fraction, column), Fraction(0))
        assert abs(found + Fraction(7, 2) * exactly) <= Fraction(7, 2) * Fraction(ulp(float(exactly))) / 2
    assert leaning(rows, 0.0) == [0] * 4


@given(
    st.integers(1, 10**12),
    st.integers(1, 2**20),
    st.floats(1e-12, 1e6),
    st.none() | st.floats(0, 100),
    st.none() | st.floats(1e-6, 1e6),
)
@example(30_000, 2**20 - 2, 1000.0, 100.0, 1e6)  # where nothing else keeps it
def test_summing_straight_lines_is_within_the_tolerance(
    size: int, columns: int, epsilon: float, lean: float | None, regularizer: float | None
) -> None:
    setting = xp.mechanisms.ObjectivePerturbation(
        epsilon=epsilon, norm=1, lean=lean, regularizer=regularizer, intercept=False
    ).setting(size, columns)
    assert 0 <= setting.lean <= 100
    errs = Fraction(setting.lean) * size / 2**53  # each coordinate of a sum of at most n, to half a unit
    assert errs**2 * columns <= (tilted_tolerance(setting) * size / 8) ** 2
    assert tilted_tolerance(setting) <= 1


def test_the_tilt_is_drawn_on_a_fine_grid() -> None:
    """thm-objective-perturbation: rounding the tilt moves it by at most nτ/4 altogether."""
    tasks: list[Problem] = []

    class Noted(xp.mechanisms.ObjectivePerturbation):
        def _minimum(self, problem: Problem, tolerance: Fraction) -> list[Fraction]:
            tasks.append(problem)
            return super()._minimum(problem, tolerance)

    for lean in (0, 100):
        mechanism = Noted(epsilon=1, norm=1, lean=lean)
        setting = mechanism.setting(3000, 2)
        step = tilt_grid(setting).step
        assert setting.columns * (step / 2) ** 2 <= (tilted_tolerance(setting) * setting.size / 4) ** 2
        mechanism.sample(separable(), xp.SeededNoise(1))
        drawn = rounded_spherical(xp.SeededNoise(1), tilt_scale(setting) / step, setting.columns)
        task = tasks.pop()
        pull = leaning(task.rows, lean)
        assert task.tilt == tuple(number * step + along for number, along in zip(drawn, pull, strict=True))


def test_newton_certifies_where_the_loss_leans_most() -> None:
    """The fallback would take hours: the tolerance is made for such tilts."""
    data = separable(1000)
    for regularizer in (1e-6, 1e-3, 1, None):
        mechanism = ObjectiveByNewton(epsilon=1000, norm=3, lean=100, regularizer=regularizer)
        assert mechanism.sample(data, xp.noise.SystemNoise()).weights


def test_the_less_data_the_more_it_leans() -> None:
    leans = [
        xp.mechanisms.ObjectivePerturbation(epsilon=1, norm=1).setting(size, 24).lean
        for size in (1, 100, 500, 1250, 10**6)
    ]
    assert leans == [100, 2.625, 0.125, 0, 0]
    assert xp.mechanisms.ObjectivePerturbation(epsilon=1, norm=1, regularizer=0.1).setting(100, 24).lean == 0
    assert xp.mechanisms.ObjectivePerturbation(epsilon=1, norm=1, lean=3).setting(10**6, 24).lean == 3


def test_leaning_helps_where_noise_decides() -> None:
    """Both on the same draws: with ε = 0.2 on 300 records the loss as it is stays far behind."""
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 2, 300)
    data = np.column_stack([rng.normal(size=(300, 10)) + (2 * labels[:, None] - 1) * 0.4, labels])

    def right(**options: Any) -> float:
        mechanism = xp.mechanisms.ObjectivePerturbation(epsilon=0.2, norm=4, **options)
        models = [mechanism.sample(data, xp.SeededNoise(seed)) for seed in range(40)]
        return float(np.mean([model.predict(data[:, :-1]) == labels for model in models]))

    assert right() > right(lean=0) + 0.05


def separable(size: int = 3000) -> Any:
    rng = np.random.default_rng(5)
    features = rng.normal(size=(size, 2))
    return np.column_stack([features, features @ [1.0, -2.0] > 0.3])


@pytest.mark.parametrize("kind", [xp.mechanisms.OutputPerturbation, xp.mechanisms.ObjectivePerturbation])
@pytest.mark.parametrize("loss", LOSSES)
def test_they_learn(kind: Any, loss: Any) -> None:
    data = separable()
    ledger = xp.Ledger(epsilon=5, noise=xp.SeededNoise(0))
    model = ledger.run(kind(epsilon=5, norm=3, loss=loss), on=data).value
    assert np.mean(model.predict(data[:, :-1]) == data[:, -1]) > 0.9
    margins = data[:, :-1] @ model.coefficients[0] + model.intercepts[0]
    short = np.linalg.norm(data[:, :-1], axis=1) < 3
    assert margins[short] == pytest.approx(model.margins(data[:, :-1])[short, 0], abs=1e-6)
    assert np.abs(np.array(model.weights)).max() <= 2**14


@pytest.mark.parametrize("kind", [xp.mechanisms.OutputPerturbation, xp.mechanisms.ObjectivePerturbation])
def test_private_values_follow_rules(kind: Any) -> None:
    data = separable(50)
    data[0] = [np.nan, np.inf, np.nan]
    data[1] = [-np.inf, 1e308, 7]
    data[2, -1] = np.inf
    mechanism = kind(epsilon=1, norm=1, missing=0.5)
    assert len(xp.Ledger(epsilon=1).run(mechanism, on=data).value.weights[0]) == 3
    assert [signs.tolist() for signs in signs_of(np.array([0, 1, 2, np.nan, -1, 0.5]), 2)] == [[-1, 1, -1, -1, -1, -1]]
    assert len(signs_of(np.array([0.0, 1]), 3)) == 3
    one_class = data.copy()
    one_class[:, -1] = 1
    assert mechanism.sample(one_class, xp.noise.SystemNoise()) is not None


@pytest.mark.parametrize("kind", [xp.mechanisms.OutputPerturbation, xp.mechanisms.ObjectivePerturbation])
@pytest.mark.parametrize("tiny", [1e-200, 1e-320])
def test_numbers_beyond_floats_are_silent(kind: Any, tiny: float) -> None:
    """Also where the caller has told numpy to raise: that would depend on private values."""
    data = separable(40)
    data[:, :-1] *= tiny
    data[0] = [1e308, -1e308, 1]
    with np.errstate(all="raise"):
        model = kind(epsilon=1, norm=1, missing=1e308).sample(data, xp.noise.SystemNoise())
        assert model.predict(data[:, :-1]).shape == (40,)


def test_the_grid_is_finer_than_the_noise() -> None:
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(10**6)):
        step = weight_grid(Fraction(1, 10), 9, epsilon).step
        least = min(Fraction(1, 10), Fraction(1, 10) / epsilon) / 4096
        assert least / 2 < step <= least


def test_features_can_be_chosen() -> None:
    data = np.column_stack([np.random.default_rng(0).normal(size=(500, 3)) * 1e6, separable(500)])
    chosen = xp.mechanisms.ObjectivePerturbation(epsilon=100, norm=3, features=[3, 4]).sample(
        data, xp.noise.SystemNoise()
    )
    assert np.mean(chosen.predict(data[:, :-1]) == data[:, -1]) > 0.9


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"norm": 0}, "norm"),
        ({"classes": 1}, "classes"),
        ({"classes": True}, "classes"),
        ({"loss": "hinge"}, "loss"),
        ({"intercept": 2}, "intercept"),
        ({"intercept": "no"}, "intercept"),
        ({"regularizer": 0}, "regularizer"),
        ({"features": ()}, "features"),
        ({"features": (0, 0)}, "features"),
        ({"epsilon": 0}, "ε"),
    ],
)
def test_public_mistakes_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(xp.InvalidValue, match=says):
        xp.mechanisms.OutputPerturbation(**{"epsilon": 1, "norm": 1, **wrong})


@pytest.mark.parametrize("lean", [-1, 101, float("nan"), "much"])
def test_a_lean_is_within_bounds(lean: Any) -> None:
    with pytest.raises(xp.InvalidValue, match="lean"):
        xp.mechanisms.ObjectivePerturbation(epsilon=1, norm=1, lean=lean)


def test_data_of_the_wrong_shape_is_refused_and_free() -> None:
    ledger = xp.Ledger(epsilon=1)
    for mechanism, data in (
        (xp.mechanisms.OutputPerturbation(epsilon=1, norm=1), np.zeros(3)),
        (xp.mechanisms.OutputPerturbation(epsilon=1, norm=1, features=(4,)), np.zeros((3, 3))),
        (xp.mechanisms.OutputPerturbation(epsilon=1, norm=1, intercept=False), np.zeros((3, 1))),
        (xp.mechanisms.OutputPerturbation(epsilon=1, norm=1), np.zeros((0, 3))),
        (xp.mechanisms.OutputPerturbation(epsilon=1, norm=1), [[1, 2]]),
        (xp.mechanisms.OutputPerturbation(epsilon=1, norm=1), np.broadcast_to(0.0, (10**13, 2))),  # beyond the lemmas
        (xp.mechanisms.OutputPerturbation(epsilon=1, norm=1), np.broadcast_to(0.0, (1, 2**20 + 1))),
    ):
        with pytest.raises(xp.InvalidValue):
            ledger.run(mechanism, on=data)  # type: ignore[misc]
    assert ledger.spent == xp.Cost(0)


@settings(max_examples=20)
@given(st.integers(1, 10**7), st.integers(1, 500), st.floats(1e-6, 1e4))
def test_default_regularisers_are_ones_that_the_solver_takes(size: int, columns: int, epsilon: float) -> None:
    for kind in (xp.mechanisms.OutputPerturbation, xp.mechanisms.ObjectivePerturbation):
        setting = kind(epsilon=epsilon, norm=1).setting(size, columns)
        assert setting.regularizer >= 1e-6
        assert 0 < tolerance(setting) <= 1


def test_receipts_are_readable() -> None:
    release = xp.Ledger(epsilon=1, noise=xp.SeededNoise(1)).run(
        xp.mechanisms.OutputPerturbation(epsilon=1, norm=1), on=separable(50)
    )
    assert str(release).startswith("OutputPerturbation: 1 × 3 weights · reserved ε 1")
    assert release.mechanism.describe(xp.WITHHELD) == "withheld"
