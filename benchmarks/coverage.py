"""Coverage: how often an interval that claims 95 % has the truth in it, of every statistic that shows one.

A setting is a statistic, a shape of data, its number of records, its bounds and ε. The truth is what an interval is
about: the statistic of the data as it is or, where bounds were stated, clamped to those; of quantiles the records whose
ranks are said. Bounds are tight (the range of the data), loose (a hundred times that) or wrong (its lower half); "none"
are left out. What is withheld, or published without an interval, says nothing and is not counted; its share stands in
the name of the row. Settings that are refused before anything is paid are left out.

A setting that covers less than 94 % is repeated with 10,000 runs, and must reach 94.5 %. A row has the least coverage
of a statistic with these bounds and this ε, over all shapes and sizes. The first row says that the intervals are not
wide for nothing: the median setting covers at most 98 %.

``--runs 50`` makes fewer runs of each, ``--only mean`` takes some statistics and prints without keeping the table.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.mechanism import Withheld
from report import Row, at_most, report, table

EPSILONS = (0.1, 1.0, 4.0)
SIZES = (30, 300, 3_000, 100_000)
RUNS, MORE_RUNS = 400, 10_000
CLAIMED, SUSPICIOUS, ENOUGH, AT_MOST = 0.95, 0.94, 0.945, 0.98
FEWEST = 20  # intervals of which a share says something
NOISE = xp.SystemNoise()
Data: TypeAlias = NDArray[np.float64]
Bounds: TypeAlias = tuple[float, float] | None
Trial: TypeAlias = Callable[[], bool | None]
"""One run: whether the truth was covered, or None if there was no interval."""


def shapes(size: int) -> dict[str, Data]:
    rng = np.random.default_rng(size)
    return {
        "heights": rng.normal(170, 10, size),
        "ties": np.where(rng.random(size) < 0.8, 3.0, rng.normal(5, 2, size)),
        "whole numbers": rng.integers(0, 6, size).astype(np.float64),
        "visits": rng.poisson(1, size).astype(np.float64),
        "incomes": rng.lognormal(10, 0.8, size),
        "heavy tails": rng.standard_t(3, size),
    }


def bounds_of(data: Data, width: str) -> Bounds:
    low, high = float(data.min()), float(data.max())
    middle, reach = (low + high) / 2, 50 * (high - low)
    known = {"tight": (low, high), "loose": (middle - reach, middle + reach), "wrong": (low, middle)}
    return known.get(width)


# ---- statistics: each makes a trial of its data, its bounds and ε; it raises what is publicly wrong


def clamped(data: Data, bounds: Bounds) -> Data:
    return data if bounds is None else np.clip(data, *bounds)


def moment(kind: Any, statistic: Callable[[Data], float], data: Data, bounds: Bounds, epsilon: float) -> Trial:
    mechanism = kind(epsilon=epsilon, bounds=bounds)
    mechanism.check(data)
    return partial(_within, mechanism, data, statistic(clamped(data, bounds)))


def _within(mechanism: Any, data: Any, truth: float) -> bool | None:
    found = mechanism.sample(data, NOISE)
    if isinstance(found, Withheld) or found.noise is None:
        return None
    return bool(abs(found.value - truth) <= found.noise)


def covariance(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    rows = np.column_stack([data, np.roll(data, 1) + data])
    both = None if bounds is None else [bounds, (2 * bounds[0], 2 * bounds[1])]
    mechanism = xp.Covariance(epsilon=epsilon, bounds=both)
    mechanism.check(rows)
    first, second = (rows[:, i] if both is None else np.clip(rows[:, i], *both[i]) for i in (0, 1))
    truth = float(np.mean(first * second) - first.mean() * second.mean())
    return partial(_within, mechanism, rows, truth)


def trimmed_mean(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """Its error is that of noise between the quantiles that it publishes."""
    mechanism, left_out = xp.TrimmedMean(trim=0.1, epsilon=epsilon, bounds=bounds), len(data) // 10
    mechanism.check(data)
    ordered = np.sort(clamped(data, bounds))

    def trial() -> bool | None:
        found = mechanism.sample(data, NOISE)
        if isinstance(found, Withheld) or found.noise is None:
            return None
        truth = np.clip(ordered, found.low, found.high)[left_out : len(data) - left_out].mean()
        return bool(abs(found.value - truth) <= found.noise + (found.high - found.low) / 2**21)

    return trial


def quantile(level: float, data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """Its error is in ranks, of records as they are rounded to its candidates."""
    mechanism = xp.Quantile(quantile=level, epsilon=epsilon, bounds=bounds, neighbours="substitute")
    mechanism.check(data)
    off, size = int(mechanism.error_bound("0.95")), len(data)
    lattice = mechanism._lattice(floats=True)
    places = np.sort(lattice.indices(data, 0.0))
    rank = int(np.ceil(level * size))
    low = places[rank - 1 - off] if off < rank else 0
    high = places[rank - 1 + off] if rank + off <= size else lattice.size

    def trial() -> bool | None:
        found = mechanism.sample(data, NOISE)
        if isinstance(found, Withheld):
            return None
        return bool(low <= lattice.indices(np.array([found]), 0.0)[0] <= high)

    return trial


def quartiles(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """The interval of the median between two quantiles."""
    mechanism = xp.Quantiles(quantiles=(0.25, 0.75), epsilon=epsilon, bounds=bounds, neighbours="substitute")
    mechanism.check(data)
    truth = float(np.quantile(clamped(data, bounds), 0.5, method="inverted_cdf"))

    def trial() -> bool | None:
        found = mechanism.sample(data, NOISE)
        if isinstance(found, Withheld):
            return None
        low, high = mechanism.interval(found, 0.5, "0.95", n=len(data))
        return low <= truth <= high

    return trial


def histogram(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """All of ten cells at once."""
    assert bounds is not None
    mechanism = xp.Histogram(epsilon=epsilon, edges=np.linspace(*bounds, 11).tolist())
    mechanism.check(data)
    truth = xp.Histogram(epsilon=2_000, edges=np.linspace(*bounds, 11).tolist()).sample(data, NOISE)
    error = mechanism.error_bound("0.95")
    return lambda: bool(np.abs(mechanism.sample(data, NOISE) - truth).max() <= error)


def total(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """A sum of clamped values with Laplace noise."""
    assert bounds is not None
    exact = float(np.clip(data, *bounds).sum())
    mechanism = xp.Laplace(epsilon=epsilon, sensitivity=max(bounds[1] - bounds[0], 1e-6), neighbours="substitute")
    error = mechanism.error_bound("0.95", floats=True)
    return lambda: bool(abs(mechanism.sample(exact, NOISE) - exact) <= error)


STATED, LEFT_OUT = ("tight", "loose", "wrong"), ("tight", "loose", "wrong", "none")
STATISTICS: dict[str, tuple[Callable[[Data, Bounds, float], Trial], tuple[str, ...]]] = {
    "mean": (partial(moment, xp.Mean, np.mean), LEFT_OUT),
    "variance": (partial(moment, xp.Variance, np.var), LEFT_OUT),
    "covariance": (covariance, ("tight", "loose", "none")),
    "trimmed mean": (trimmed_mean, LEFT_OUT),
    "median": (partial(quantile, 0.5), ("tight", "wrong", "none")),
    "0.9-quantile": (partial(quantile, 0.9), ("tight", "none")),
    "median between quartiles": (quartiles, ("tight", "none")),
    "histogram": (histogram, ("tight", "wrong")),
    "sum": (total, STATED),
}


# ---- settings, and what they cover


@dataclass(frozen=True)
class Setting:
    """What was tried, how often there was an interval, and how often the truth was in it."""

    statistic: str
    width: str
    epsilon: float
    about: str
    tried: int
    intervals: int
    covered: int

    @property
    def says_something(self) -> bool:
        return self.intervals >= min(FEWEST, self.tried / 2)

    @property
    def coverage(self) -> float:
        return self.covered / self.intervals

    @property
    def goal(self) -> float:
        """With fewer runs than usual, as low as chance goes."""
        if self.tried >= MORE_RUNS:
            return ENOUGH
        return SUSPICIOUS if self.tried >= RUNS else CLAIMED - 3 * (CLAIMED * (1 - CLAIMED) / self.intervals) ** 0.5

    @property
    def holds(self) -> bool:
        return self.coverage >= self.goal


def tried(trial: Trial, runs: int) -> tuple[int, int]:
    """Intervals, and those that cover."""
    found = [covered for covered in (trial() for _ in range(runs)) if covered is not None]
    return len(found), sum(found)


def settings(only: tuple[str, ...], runs: int) -> list[Setting]:
    found = []
    for name in only:
        make, widths = STATISTICS[name]
        for size in SIZES:
            for shape, data in shapes(size).items():
                for width in widths:
                    for epsilon in EPSILONS:
                        try:
                            trial = make(data, bounds_of(data, width), epsilon)
                        except xp.InvalidValue:  # publicly impossible: nobody would pay for it
                            continue
                        found.append(_setting(trial, runs, (name, width, epsilon, f"{shape}, n = {size:,}")))
    return found


def _setting(trial: Trial, runs: int, what: tuple[str, str, float, str]) -> Setting:
    first = Setting(*what, runs, *tried(trial, runs))
    if not first.says_something or first.holds or runs < RUNS:
        return first
    return Setting(*what, MORE_RUNS, *tried(trial, MORE_RUNS))


def rows_of(found: list[Setting]) -> list[Row]:
    told = [setting for setting in found if setting.says_something]
    middle = median(setting.coverage for setting in told)
    rows = [at_most("the median setting's coverage of intervals that claim 95 %", middle, AT_MOST, "share",
                    middle / AT_MOST, 1)]  # fmt: skip
    groups: dict[tuple[str, str, float], list[Setting]] = defaultdict(list)
    for setting in found:
        groups[setting.statistic, setting.width, setting.epsilon].append(setting)
    for (statistic, width, epsilon), each in groups.items():
        silent = 1 - sum(one.intervals for one in each) / sum(one.tried for one in each)
        title = f"{statistic}, {width} bounds, ε = {epsilon:g}; {100 * silent:.0f} % without an interval"
        known = [one for one in each if one.says_something]
        worst = sorted(known, key=lambda one: (one.holds, one.coverage))
        missed = [one for one in worst if not one.holds]
        rows += [_row(f"{title}; {one.about}", one) for one in missed or worst[:1]]
    return rows


def _row(name: str, setting: Setting) -> Row:
    goal = f"≥ {setting.goal:.3g}"
    return Row(name, setting.coverage, CLAIMED, "share", setting.coverage / CLAIMED, goal, setting.holds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=RUNS, help="of each setting")
    parser.add_argument("--only", nargs="+", choices=STATISTICS, help="these statistics alone; the table is not kept")
    asked = parser.parse_args()
    rows = rows_of(settings(tuple(asked.only or STATISTICS), asked.runs))
    if asked.only or asked.runs < RUNS:
        print(table(rows))
    else:
        report("coverage", rows)


if __name__ == "__main__":
    main()
