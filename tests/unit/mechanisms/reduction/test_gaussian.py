"""Reduction of Gaussian noise: its path, its prices at stops, and ledgers with Rényi accounting."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm  # type: ignore[import-untyped]

import expost as xp
from expost.noise import SeededNoise
from expost.noise.path import NormalNumber, normal_paths

QUARTER = Fraction(1, 4)


def path(**changes: Any) -> xp.mechanisms.GaussianReduction:
    usual: dict[str, Any] = {"rho": "0.02", "delta": 1e-7, "sensitivity": 1, "until": xp.RelativeError(within="0.1")}
    return xp.mechanisms.GaussianReduction(**{**usual, **changes})


# ---- the path


def test_a_normal_number_is_known_better_and_better() -> None:
    number = NormalNumber(SeededNoise(1), Fraction(50))
    low, high = number.span
    for _ in range(3):
        number.more()
        nearer = number.span
        assert low <= nearer[0] < nearer[1] <= high
        low, high = nearer


def test_the_path_has_the_covariances_of_a_brownian_motion() -> None:
    count, variances = 600, [Fraction(40), Fraction(10), QUARTER]
    levels = np.array(normal_paths(SeededNoise(3), variances, count), float)
    for i, large in enumerate(variances):
        for j, small in enumerate(variances[i:], i):
            added = Fraction(1, 12) if i == j else 0  # by rounding
            spread = sqrt((large * small + small**2) / count)
            assert np.mean(levels[i] * levels[j]) == pytest.approx(float(small + added), abs=5 * spread + 0.05)
    assert np.abs(levels[2]).max() <= 3
    with pytest.raises(xp.InvalidValue, match="variances of a path fall"):
        normal_paths(SeededNoise(1), [QUARTER, QUARTER], 1)


# ---- prices


Laws = tuple[Any, Any]
"""The law of the first answer, and the joint law of both."""


def best_stop(q: Laws, p: Laws, order: float, prices: tuple[float, float]) -> float:
    """The left side of what makes prices valid, for the best rule that looks at the first answer."""
    (q_one, q_two), (p_one, p_two) = q, p
    stop = q_one * (p_one / q_one) ** order * exp(-(order - 1) * prices[0])
    likely = q_two > 1e-200
    ratios = np.divide(p_two, q_two, out=np.zeros_like(q_two), where=likely)
    further = (q_two * ratios**order).sum(axis=1) * exp(-(order - 1) * prices[1])
    return float(np.maximum(stop, further).sum())


def rounded(shift: float) -> Laws:
    """A path of variances 0.6 and 0.3, rounded."""
    fine = (np.arange(-500, 700) + 0.5) / 100  # the second answer before rounding
    density = norm.pdf(fine, shift, sqrt(0.3)) / 100
    first, second = np.arange(-6, 8), np.arange(-5, 7)
    ends = first[:, None] - fine
    near = norm.cdf((ends + 0.5) / sqrt(0.3)) - norm.cdf((ends - 0.5) / sqrt(0.3))
    return near @ density, (near * density) @ (np.floor(fine + 0.5) == second[:, None]).T


def discrete(shift: int) -> Laws:
    """The same with discrete normal numbers of variance 0.3 each."""
    numbers = np.arange(-20, 21)
    weights = np.exp(-(np.arange(-60, 61) ** 2) / 0.6)
    law = weights / weights.sum()
    joint = law[(numbers[:, None] - numbers) + 60] * law[numbers - shift + 60]
    return joint.sum(axis=1), joint


@pytest.mark.parametrize("order", [2.0, 3.0])
def test_prices_hold_at_every_stop_of_a_rounded_path(order: float) -> None:
    """Not at seven tenths of them, and not of sums of discrete normal numbers."""
    prices = (order / 1.2, order / 0.6)
    assert best_stop(rounded(0), rounded(1), order, prices) <= 1 + 1e-3
    assert best_stop(rounded(0), rounded(1), order, (0.7 * prices[0], 0.7 * prices[1])) > 1.02
    assert best_stop(discrete(0), discrete(1), order, prices) > 1.2


def test_the_line_is_crossed_as_rarely_as_said() -> None:
    """With δ = 0.05, by simulation; a line at each level's own 95 % is crossed more often somewhere."""
    mechanism = path(rho=1, delta="0.05", levels=12, ratio=2)
    rhos = np.array([float(rho) for rho in mechanism.rhos])
    steps = np.diff(2 * rhos, prepend=0)
    moves = np.random.default_rng(5).normal(size=(20_000, 12)) * np.sqrt(steps)
    losses = rhos + np.cumsum(moves, axis=1)
    line = np.array([mechanism.guarantee.epsilon_of(level) for level in range(1, 13)])
    assert np.mean((losses > line).any(axis=1)) <= 0.05
    assert np.mean((losses > rhos + 1.645 * np.sqrt(2 * rhos)).any(axis=1)) > 0.1
    assert line[-1] == pytest.approx(1 + 2 * sqrt(log(20)))


def test_prices_by_level() -> None:
    prices = path(levels=3, ratio=2)
    assert [prices.renyi_prices(10).of(level) for level in (1, 2, 3)] == [5 * 10**10, 10**11, 2 * 10**11]
    assert [prices.gaussian_prices().of(level) for level in (1, 2, 3)] == [10**10, 2 * 10**10, 4 * 10**10]


# ---- through ledgers


def test_rényi_ledgers_refund_all_but_the_last_level() -> None:
    counted = xp.Ledger(epsilon=2, delta=1e-5, accounting="renyi")
    plain = xp.Ledger(epsilon=2, delta=1e-5)
    wide = path(neighbours="add-remove")
    assert sum(fits(counted, wide) for _ in range(12)) == 12
    assert sum(fits(plain, wide) for _ in range(12)) < 6


def fits(ledger: xp.Ledger, mechanism: xp.mechanisms.GaussianReduction) -> bool:
    try:
        return bool(ledger.run(mechanism, on=3_000).output.met)
    except xp.BudgetExceeded:
        return False


def test_answers_one_at_a_time() -> None:
    with xp.Ledger(epsilon=3, delta=1e-5, accounting="renyi").open(path(), on=np.array([5_000.5, 4_000.25])) as ask:
        first, second = ask.refine(), ask.refine()
    assert first.shape == second.shape == (2,)
    assert ask.release.part == 2
    assert ask.error_bound("0.95") < 1_000


def test_answers_become_better() -> None:
    found = [
        path(rho=8, until=xp.mechanisms.AbsoluteError(within=within)).sample(10**6, SeededNoise(2))
        for within in (20, 2)
    ]
    assert [run.met for run in found] == [True, True]
    assert found[0].level < found[1].level
    assert abs(found[1].value - 10**6) <= 2
    assert path(until=xp.mechanisms.Decided(threshold=0)).sample(10**4, SeededNoise(2)).met


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rho": 0}, "ρ"),
        ({"delta": 0}, "δ"),
        ({"ratio": 1}, "ratio"),
        ({"levels": 0}, "levels"),
        ({"until": 3}, "until is a rule"),
        ({"rho": "1e-11"}, "take fewer levels"),
    ],
)
def test_what_is_publicly_wrong_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(xp.InvalidValue, match=message):
        path(**changes)
    with pytest.raises(xp.InvalidValue, match="at most 1,000 values"):
        xp.Ledger(epsilon=9, delta=1e-3).run(path(), on=np.zeros(1_001))
