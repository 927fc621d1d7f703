"""Intervals of statistics hold as often as they say: noise is drawn anew on numbers that were fetched once."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import expost as xp
from expost.mechanisms.numbers import Shape
from expost.noise.sums import LaplaceSteps, RoundedGaussianSteps
from expost.questions import Statistics
from expost.questions.mean import error_of_mean
from expost.questions.noised import NoiseOfNumbers

RUNS = 300
_WHOLE = Shape(floats=False, dimensions=None)
BOTH = [(0, 40), (0, 10)]
ASKED: dict[str, Callable[[Any], Any]] = {
    "mean": lambda t: t.mean("x", bounds=(0, 40)),
    "variance": lambda t: t.variance("x", bounds=(0, 40)),
    "covariance": lambda t: t.covariance("x", "y", bounds=BOTH),
    "correlation": lambda t: t.correlation("x", "y", bounds=BOTH),
    "ratio": lambda t: t.ratio("x", "y", bounds=BOTH),
    "share": lambda t: t.share("x > 25"),
}

FOR_GROUPS = {"share": 0.4}
"""ε where another than 4: at that, noise on whole rows is mostly 0, and even a tenth of an interval holds."""


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    chance = np.random.default_rng(3)
    x = chance.uniform(5, 35, 1200)
    y = np.clip(x / 5 + chance.normal(0, 1, 1200), 0, 10)
    return pd.DataFrame({"c": np.where(np.arange(1200) % 3, "a", "b"), "x": x, "y": y})


def truth(name: str, rows: pd.DataFrame) -> float:
    x, y = rows["x"].to_numpy(), rows["y"].to_numpy()
    found = {
        "mean": x.mean(),
        "variance": x.var(),
        "covariance": np.cov(x, y, ddof=0)[0, 1],
        "correlation": np.corrcoef(x, y)[0, 1],
        "ratio": x.sum() / y.sum(),
        "share": (x > 25).mean(),
    }
    return float(found[name])


def drawn(monkeypatch: pytest.MonkeyPatch, mechanism: Any) -> list[Any]:
    """Answers with new noise, on the same numbers."""
    exact, noise = mechanism.question.exact(), xp.SeededNoise(7)
    monkeypatch.setattr(Statistics, "exact", lambda self: exact)
    return [mechanism.answer_of(mechanism.sample(None, noise), place) for place in range(RUNS)]


def missed(numbers: list[Any], true: float, confidence: float = 0.95, narrower: float = 1.0) -> float:
    """How often intervals of that share of their length miss."""
    wrong = 0
    for number in numbers:
        low, high = number.interval(confidence)
        wrong += not number - (number.value - low) * narrower <= true <= number.value + (high - number.value) * narrower
    return wrong / len(numbers)


def slack(confidence: float) -> float:
    return float(4 * (confidence * (1 - confidence) / RUNS) ** 0.5)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ASKED)
def test_intervals_of_whole_tables_hold(
    frame: pd.DataFrame, name: str, noise: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = xp.read(frame, unit="row", neighbours="add-remove", key=1)
    delta = 1e-5 if noise == "gaussian" else 0
    mechanism = ASKED[name](table).mechanism(epsilon=2, delta=delta, noise=noise)
    numbers = drawn(monkeypatch, mechanism)
    for confidence in (0.5, 0.95):
        assert missed(numbers, truth(name, frame), confidence) <= 1 - confidence + slack(confidence)
    assert missed(numbers, truth(name, frame), 0.95, narrower=0.1) > 0.3, "a tenth of it would not do"
    assert all(number.error < 40**2 / 4 for number in numbers)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", ASKED)
def test_intervals_of_groups_and_of_their_total_hold(
    frame: pd.DataFrame, name: str, noise: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = xp.read(frame, unit="row", neighbours="add-remove", key=1).by("c", keys=["a", "b"])
    delta = 1e-5 if noise == "gaussian" else 0
    asked = groups.agg(it=ASKED[name](groups), total=True).mechanism(
        epsilon=FOR_GROUPS.get(name, 4), delta=delta, noise=noise
    )
    answers = drawn(monkeypatch, asked)
    parts = {key: (frame[frame["c"] == key], [found[key] for found in answers]) for key in ("a", "b")}
    parts["total"] = frame, [found.all_together for found in answers]
    for key, (rows, numbers) in parts.items():
        assert missed(numbers, truth(name, rows)) <= 0.05 + slack(0.95), key
        assert missed(numbers, truth(name, rows), narrower=0.1) > 0.3, key


def line(rows: pd.DataFrame) -> dict[str, float]:
    """Least squares of y on x and z without noise."""
    columns = np.column_stack([np.ones(len(rows)), rows["x"], rows["z"]])
    found = np.linalg.lstsq(columns, rows["y"].to_numpy(), rcond=None)[0]
    return dict(zip(("intercept", "x", "z"), found.tolist(), strict=True))


def all_missed(fits: list[dict[str, Any]], true: dict[str, float], confidence: float, narrower: float = 1.0) -> float:
    """How often any of the intervals of a fit misses."""
    wrong = 0
    for terms in fits:
        ends = {name: number.interval(confidence) for name, number in terms.items()}
        held = [
            number.value - (number.value - ends[name][0]) * narrower
            <= true[name]
            <= number.value + (ends[name][1] - number.value) * narrower
            for name, number in terms.items()
        ]
        wrong += not all(held)
    return wrong / len(fits)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_intervals_of_regressions_hold_for_all_coefficients_at_once(
    frame: pd.DataFrame, noise: Any, neighbours: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = frame.assign(z=np.random.default_rng(5).uniform(0, 1, 1200))
    table = xp.read(rows, unit="row", neighbours=neighbours, key=1)
    asked = table.regression(["x", "z"], "y", bounds=[(0, 40), (0, 1)], target_bounds=(0, 10))
    made = asked.mechanism(epsilon=3, delta=1e-5 if noise == "gaussian" else 0, noise=noise)
    fits = [fit.terms for fit in drawn(monkeypatch, made)]
    assert all(number.error is not None for terms in fits for number in terms.values())
    for confidence in (0.5, 0.95):
        assert all_missed(fits, line(rows), confidence) <= 1 - confidence + slack(confidence)
    assert all_missed(fits, line(rows), 0.95, narrower=0.15) > 0.3, "a seventh of it would not do"
    assert np.median([terms["x"].error for terms in fits]) < 0.12, "the slope is 0.2"


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_intervals_of_regressions_by_group_and_of_their_total_hold(
    frame: pd.DataFrame, noise: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = frame.assign(z=np.random.default_rng(5).uniform(0, 1, 1200))
    groups = xp.read(rows, unit="row", neighbours="add-remove", key=1).by("c", keys=["a", "b"])
    asked = groups.agg(
        it=groups.regression(["x", "z"], "y", bounds=[(0, 40), (0, 1)], target_bounds=(0, 10)), total=True
    ).mechanism(epsilon=8, delta=1e-5 if noise == "gaussian" else 0, noise=noise)
    answers = drawn(monkeypatch, asked)
    names = ["intercept", "x", "z"]
    parts = {key: [{name: found[f"it {name}"][key] for name in names} for found in answers] for key in ("a", "b")}
    parts["total"] = [{name: found[f"it {name}"].all_together for name in names} for found in answers]
    for key, fits in parts.items():
        true = line(rows if key == "total" else rows[rows["c"] == key])
        assert all_missed(fits, true, 0.95) <= 0.05 + slack(0.95), key
        assert all_missed(fits, true, 0.95, narrower=0.15) > 0.3, key


def test_no_error_is_claimed_of_a_regression_that_noise_may_have_made(frame: pd.DataFrame) -> None:
    table = xp.read(frame, unit="row", neighbours="add-remove", key=1)
    asked = table.regression(["x"], "y", bounds=[(0, 40)], target_bounds=(0, 10))
    book = xp.Ledger(epsilon=10, noise=xp.SeededNoise(1))
    drowned: Any = book.run(asked, epsilon=0.02).value
    assert [number.error for number in drowned.terms.values()] == [None, None]
    assert "take more ε" in drowned.frame.to_csv() or "take more ε" in drowned.terms["x"].why
    known: Any = book.run(asked, epsilon=5).value
    low, high = known.terms["x"].interval(0.95)
    assert low < line(frame.assign(z=1.0))["x"] < high
    assert known.terms["x"].interval(1 - 1e-9)[0] < low  # wider, or nothing is known


@pytest.mark.parametrize(
    "law", [LaplaceSteps(Fraction(1, 8)), LaplaceSteps(Fraction(2)), RoundedGaussianSteps(Fraction(20))]
)
def test_weights_of_length_one(law: Any) -> None:
    """The bound holds for few and many weights, and for one alone three quarters of it would not."""
    noise, miss = NoiseOfNumbers((law,) * 6), Fraction(1, 40)
    bound = noise.along(miss, *range(6))
    tail = np.concatenate([law.above(np.arange(1, 2001, dtype=float)), [0.0]])
    masses = -np.diff(tail)
    values = np.concatenate([-np.arange(2000, 0, -1), [0], np.arange(1, 2001)])
    chances = np.concatenate([masses[::-1], [1 - 2 * tail[0]], masses])
    draws = np.random.default_rng(1).choice(values, size=(100_000, 6), p=chances / chances.sum())
    for weights in (np.eye(6)[0], np.ones(6) / 6**0.5, np.array([0.9, 0.3, 0.3, 0.1, 0, 0])):
        weights = weights / np.linalg.norm(weights)
        assert (np.abs(draws @ weights) > bound).mean() <= float(miss)
    assert (np.abs(draws[:, 0]) > 0.6 * (bound - 3)).mean() > float(miss)


def test_gaussian_noise_by_group_has_one_price(frame: pd.DataFrame) -> None:
    """Shares are of 1/σ², so that all numbers together are one Gaussian mechanism."""
    groups = xp.read(frame, unit="row", neighbours="add-remove", key=1).by("c", keys=["a", "b"])
    asked = groups.agg(n=groups.count(), m=groups.mean("x", bounds=(0, 40)), v=groups.variance("x", bounds=(0, 40)))
    made = asked.mechanism(epsilon=1, delta=1e-6, noise="gaussian")
    alone = xp.Gaussian(epsilon=1, delta=1e-6, sensitivity=1)
    assert made.guarantee.worst_case == alone.guarantee.worst_case
    assert made.gaussian_prices() == alone.gaussian_prices()
    assert made.renyi_prices(20) == alone.renyi_prices(20)
    spent = Fraction(0)
    for name, sums in asked.sums.items():
        for each, law in zip(sums, made.noises[name], strict=True):
            assert law is not None
            variance = law.noise_of(_WHOLE).noise.variance  # type: ignore[attr-defined]
            spent += Fraction(each.moved.l2_squared) / variance
    expected = 1 / alone.noise_of(_WHOLE).noise.variance  # type: ignore[attr-defined]
    assert spent <= expected
    assert spent > expected * Fraction(999_999, 1_000_000)


def test_a_renyi_ledger_takes_gaussian_noise_by_group_without_a_delta(frame: pd.DataFrame) -> None:
    groups = xp.read(frame, unit="row", neighbours="add-remove", key=1).by("c", keys=["a", "b"])
    ledger = xp.Ledger(epsilon=1, delta=1e-6, accounting="renyi")
    release = ledger.run(groups.mean("x", bounds=(0, 40)), epsilon=0.1, noise="gaussian")
    assert release.reserved.delta == 0
    assert release.value["a"].error > 0


def test_a_delta_is_spent_only_where_gaussian_noise_is_better(frame: pd.DataFrame) -> None:
    people = frame.assign(p=np.arange(1200) % 40)
    table = xp.read(people, unit=xp.Unit("p", rows=30, groups=30), neighbours="add-remove", key=1)
    many = table.by("x > 20", "c", keys=[(side, key) for side in (True, False) for key in ("a", "b")])
    few, wide = many.count().mechanism(epsilon=1, delta=1e-9), many.count(of="units").mechanism(epsilon=1, delta=0.01)
    assert few.guarantee.worst_case == xp.Cost(1)
    assert wide.guarantee.worst_case in (xp.Cost(1), xp.Cost(1, delta=0.01))


def test_errors_of_means_do_not_grow_with_what_is_public() -> None:
    """A count without noise widens nothing."""
    frame = pd.DataFrame({"x": [10.0] * 500})
    table = xp.read(frame, unit="row", neighbours="substitute", key=1)
    public = table.mean("x", bounds=(0, 40), missing=0).mechanism(epsilon=1)
    private = table.mean("x", bounds=(0, 40)).mechanism(epsilon=1)
    one, other = (made.expected(made.question.names[0], 500).error for made in (public, private))
    assert one < other / 2
    ((of_sum, of_count),) = (each for each in public.laws.values())
    assert of_count is None
    value = public.question.alone.value
    assert error_of_mean(value, NoiseOfNumbers((of_sum, None)), 10.0, 500, Fraction(1, 20)) == one


def test_no_error_is_claimed_of_a_sum_that_was_cut_off() -> None:
    """A fine grid far from 0: 5000 values of a million are more than 2^60 steps, and came out as a fifth, ± 0.03 %."""
    rows = pd.DataFrame({"x": np.linspace(1e6, 1e6 + 1, 5000), "y": 1.0, "c": "a"})
    table, ends = xp.read(rows, unit="row", neighbours="add-remove"), (1e6, 1e6 + 1)
    book = xp.Ledger(epsilon=1000, neighbours="add-remove", noise=xp.SeededNoise(1))
    fine: dict[str, Any] = {"bounds": ends, "grid": 2.0**-30}
    release: Any = book.run(table.sum("x", **fine), epsilon=10)
    assert release.value.error is None
    assert "take a larger grid" in release.value.why
    assert "take a larger grid" in release.mechanism.describe(release.output)
    coarse: Any = book.run(table.sum("x", bounds=ends, grid="1/4"), epsilon=10).value
    assert abs(coarse - 5e9) < coarse.error < 1e6
    groups = table.by("c", keys=["a", "b"])
    both = book.run(groups.agg(s=groups.sum("x", **fine), total=True), epsilon=100).value
    assert [both[key].error is None for key in ("a", "b")] == [True, False]
    assert both.frame.rows[-1][-1] is None
    assert book.run(table.mean("x", bounds=ends), epsilon=10).value.error < 1


def test_the_usual_grid_of_a_sum_is_as_fine_as_its_distance_from_0_allows() -> None:
    rows = pd.DataFrame({"x": np.linspace(1e6, 1e6 + 1, 5000), "y": 1.0})
    table, ends = xp.read(rows, unit="row", neighbours="add-remove"), (1e6, 1e6 + 1)
    book = xp.Ledger(epsilon=1000, noise=xp.SeededNoise(1))
    whole: Any = book.run(table.sum("x", bounds=ends), epsilon=10).value
    assert abs(whole - rows["x"].sum()) < whole.error < 1e6
    ratio: Any = book.run(table.ratio("x", "y", bounds=[ends, (0, 1)]), epsilon=100).value
    assert abs(ratio - 1e6) < ratio.error < 1e4
    assert table.sum("x", bounds=(0, 100)).distance(1) == 2.0**-24  # 2^30 steps or more between the bounds
