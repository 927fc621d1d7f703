"""Limits that are raised after answers: the best adversary who raises stays within δ; wrong rules are caught."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil, erfc, exp, floor, sqrt

import numpy as np
import pytest

from expost import Cost, Guarantee, Ledger
from expost.accounting.capacities import LedgerMeters, RenyiAccounting
from expost.accounting.renyi.orders import best_order, capacity
from expost.accounting.renyi.tangent import tangent_prices
from expost.cost import EPSILON_UNITS

OWNER = {"by": "the board", "reason": "an answer was surprising"}

# ---- Gaussian noise: under the second law ln x moves by t − n/2 with t ~ N(0, n), where n is the μ² that is spent


@dataclass(frozen=True)
class GaussianGame:
    """An adversary who spends Gaussian noise, looks at the likelihood ratio x, and stops or has the limit raised.

    The value is the largest Σ Q·(x − e^{ε(v)})₊, with ε(v) the limit at which a view v ends. Nothing is lost by
    spending all that a limit holds before looking: values are convex in x. The likelihood ratio is on a grid; noise
    that falls between two points is moved down (``up=False``), which bounds the value from below, because values do not
    fall with x, or up.
    """

    limits: Sequence[float]
    """The ε of the ledger's limits; the adversary may skip some."""
    holds: Sequence[float]
    """The μ² that each limit admits in all."""
    step: float = 0.002

    def value(self, *, up: bool) -> float:
        """The value of the game, bounded from above or from below."""
        first, last = floor(-6 / self.step), ceil((self.limits[-1] + 3) / self.step)
        ratio = np.exp(self.step * np.arange(first, last + 1))
        values: list[np.ndarray] = []
        for k in reversed(range(len(self.limits))):
            best = np.maximum(ratio - exp(self.limits[k]), 0)
            for later, value in enumerate(reversed(values), k + 1):
                best = np.maximum(best, self._after(value, last, self.holds[later] - self.holds[k], up))
            values.append(best)
        return float(self._after(values[-1], last, self.holds[0], up)[-first])

    def _after(self, value: np.ndarray, last: int, spent: float, up: bool) -> np.ndarray:
        """The mean of a value after noise, at every point."""
        if spent <= 0:
            return value
        below, chances = self._noise(spent)
        left, right = -(below + up), below + up + len(chances) - 1
        beyond = np.exp(self.step * np.arange(last + 1, last + 1 + right))
        beyond = beyond if up else beyond - exp(self.limits[-1])  # (x − e^ε)₊ ≤ value ≤ x
        before = np.full(left, value[0] if up else 0)
        return np.convolve(np.concatenate([before, value, beyond]), chances[::-1], mode="valid")

    def _noise(self, spent: float) -> tuple[int, np.ndarray]:
        """The first cell of the grid, and the chance of each. What is beyond twelve deviations has less than 10⁻³²."""
        deviation = sqrt(spent)
        below, above = floor((-spent / 2 - 12 * deviation) / self.step), ceil(12 * deviation / self.step)
        edges = (self.step * np.arange(below, above + 1) + spent / 2) / deviation
        lower, upper = (np.array([erfc(sign * z / sqrt(2)) / 2 for z in edges]) for sign in (-1, 1))
        return below, np.where(edges[1:] <= 0, np.diff(lower), -np.diff(upper))


LIMITS = ["1", "1.2", "1.4", "1.6"]


def held_by_a_ledger(delta: str, accounting: RenyiAccounting) -> list[float]:
    """The μ² of Gaussian noise that a real ledger admits at each limit, after as many raises."""
    ledger = Ledger(LIMITS[0], delta, accounting=accounting)
    found = []
    for limit in LIMITS:
        ledger.raise_limit(limit, **OWNER)
        found.append(2 * ledger.remaining.rho)  # type: ignore[attr-defined]
    return found


def held_by_a_share_at_each_limit(delta: str, accounting: RenyiAccounting) -> list[float]:
    """The wrong rule: the Gaussian meter has its whole share again under every limit."""
    meters = accounting.under(Cost(LIMITS[0], delta))
    return [meters.capacity(Cost(limit, delta)).normal / EPSILON_UNITS for limit in LIMITS]


ACCOUNTING = [("1e-6", RenyiAccounting()), ("1e-2", RenyiAccounting(delta="1e-4", gaussian_delta="0.0099"))]


@pytest.mark.parametrize(("delta", "accounting"), ACCOUNTING)
def test_raising_after_looking_at_gaussian_answers_stays_within_delta(delta: str, accounting: RenyiAccounting) -> None:
    game = GaussianGame([float(limit) for limit in LIMITS], held_by_a_ledger(delta, accounting))
    assert 0.4 * float(delta) < game.value(up=False) <= game.value(up=True) <= float(delta)


@pytest.mark.parametrize(("delta", "accounting"), ACCOUNTING)
def test_a_whole_share_for_the_gaussian_meter_at_every_raise_is_caught(delta: str, accounting: RenyiAccounting) -> None:
    game = GaussianGame([float(limit) for limit in LIMITS], held_by_a_share_at_each_limit(delta, accounting))
    assert game.value(up=False) > 1.4 * float(delta)


def test_the_bounds_of_the_game_enclose_what_is_known() -> None:
    held = held_by_a_share_at_each_limit(*ACCOUNTING[1])[0]  # one limit: the meter's share, by the analytic formula
    game = GaussianGame([1.0], [held])
    assert game.value(up=False) < 0.0099 < game.value(up=True) < 1.02 * game.value(up=False)


# ---- every other meter: rounds of randomised response, some with a δ, and limits that are raised in ε and in δ


@dataclass(frozen=True)
class RaisingGame:
    """An adversary who asks rounds of ``step`` and rounds that also leak, and has the limit raised, in any order."""

    limits: tuple[Cost, ...]
    meters: LedgerMeters
    step: str = "0.25"
    leak: str = "0.01"
    cut: Fraction = Fraction(1)
    """The share of Rényi prices that is charged."""

    def value(self, within: Cost | None = None) -> float:
        """The largest Σ (P − e^{ε(v)}·Q)₊ over views v, or over those that end at a limit with at most this δ."""
        step, far = float(self.step), 100
        ratio = np.exp(step * np.arange(-far, far + 1))
        leak = Guarantee.uniform(self.step, self.leak)
        each = floor(tangent_prices(Guarantee.uniform(self.step), self.meters.order).worst * self.cut)
        epsilon = leak.worst_case.epsilon_units
        capacities = [self.meters.capacity(self.limits[0])]
        for limit in self.limits[1:]:
            capacities.append(self.meters.raised(limit, capacities[-1]))

        @cache
        def best(rounds: int, leaks: int, at: int) -> np.ndarray:
            limit, holds = self.limits[at], capacities[at]
            counts = within is None or limit.delta_units <= within.delta_units
            found = np.maximum(ratio - exp(limit.epsilon), 0) if counts else np.zeros_like(ratio)
            for later in range(at + 1, len(self.limits)):
                found = np.maximum(found, best(rounds, leaks, later))
            if (rounds + 1) * epsilon <= limit.epsilon_units or (rounds + 1) * each <= holds.renyi:
                found = np.maximum(found, _answered(best(rounds + 1, leaks, at), step))
                if (leaks + 1) * leak.worst_case.delta_units <= holds.delta:
                    shown = float(self.leak)  # of the first law, where the second has nothing
                    answered = _answered(best(rounds + 1, leaks + 1, at), step)
                    found = np.maximum(found, shown * counts * ratio + (1 - shown) * answered)
            return np.asarray(found)

        return float(best(0, 0, 0)[far])


def _answered(value: np.ndarray, step: float) -> np.ndarray:
    """The mean of a value after a round of randomised response. What is rolled over the end is out of reach."""
    up = 1 / (1 + exp(step))
    return np.asarray(up * np.roll(value, -1) + (1 - up) * np.roll(value, 1))


SHARES = RenyiAccounting(delta="0.07", gaussian_delta=0)  # of δ 0.1; the rest is for rounds that leak
RAISED = [
    ["1", "1.5", "2"],
    ["0.8", "1", "1.1", "1.2"],
]


@pytest.mark.parametrize("limits", RAISED)
def test_raising_epsilon_after_answers_stays_within_delta(limits: list[str]) -> None:
    costs = tuple(Cost(limit, "0.1") for limit in limits)
    game = RaisingGame(costs, SHARES.under(costs[0]))
    assert 0.05 < game.value() <= 0.1


@pytest.mark.parametrize("limits", RAISED)
def test_raising_with_prices_cut_to_a_third_is_caught(limits: list[str]) -> None:
    costs = tuple(Cost(limit, "0.1") for limit in limits)
    assert RaisingGame(costs, SHARES.under(costs[0]), cut=Fraction(1, 3)).value() > 0.1


def test_raising_delta_too_the_views_up_to_each_delta_stay_within_it() -> None:
    costs = (Cost(1, "0.1"), Cost(1, "0.15"), Cost("1.5", "0.15"), Cost("1.5", "0.2"), Cost(2, "0.2"))
    game = RaisingGame(costs, SHARES.under(costs[0]))
    found = {delta: game.value(Cost(0, delta)) for delta in ("0.1", "0.15", "0.2")}
    assert all(value <= float(delta) for delta, value in found.items())
    assert game.value() == found["0.2"] > 0.1  # more than the first δ: the guarantee has the largest that is reached


def lattice_value(limits: Sequence[float], fits: Sequence[int], step: float, far: int = 600) -> float:
    """The best adversary who asks rounds of ``step``, of which each limit admits so many in all, and raises."""
    ratio = np.exp(step * np.arange(-far, far + 1))
    values: list[np.ndarray] = []
    for k in reversed(range(len(limits))):
        best = np.maximum(ratio - exp(limits[k]), 0)
        for later, value in enumerate(reversed(values), k + 1):
            answered = value
            for _ in range(fits[later] - fits[k]):
                answered = _answered(answered, step)
            best = np.maximum(best, answered)
        values.append(best)
    first = values[-1]
    for _ in range(fits[0]):
        first = _answered(first, step)
    return float(first[far])


def test_the_best_order_chosen_anew_at_every_raise_is_caught() -> None:
    limits, delta, step = range(1, 9), Fraction(1, 100), Fraction(1, 10)

    def fits(order_of: int, limit: int) -> int:
        order = best_order(order_of, delta)
        price = tangent_prices(Guarantee.uniform(step), order).worst
        return floor(capacity(order, limit, delta) * EPSILON_UNITS / price)

    fixed, anew = [fits(1, limit) for limit in limits], [fits(limit, limit) for limit in limits]
    assert lattice_value(limits, fixed, float(step)) <= delta
    assert lattice_value(limits, anew, float(step)) > 1.1 * float(delta)
