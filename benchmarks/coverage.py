"""Coverage: how often an interval that claims 95 % has the truth in it, of every statistic that shows one.

A setting is a statistic, one of eight data sets, its bounds and ε; each is asked 400 times. The truth is what an
interval is about: the statistic of the data as it is or, where bounds were stated, clamped to those; where an interval
was found, clamped to as far beyond it as the answer says; of quantiles the records whose ranks are said. How often the
mean of all records as they are is covered stands apart ("raw"): nothing is claimed of that. Bounds are tight (the range
of the data), loose (a hundred times that) or wrong (its lower half); "none" are left out. What is withheld, or
published without an interval, says nothing and is not counted; its share stands in the name of the row. Settings that
are refused before anything is paid are left out.

A setting that covers less than 94 % is repeated with 10,000 runs, and must reach 94.5 %; of about a hundred settings
that cover just 95 % one does not, by chance, so that such a one is asked four times as often, which decides. What
takes more than two milliseconds (large arrays) is repeated with 2,000 runs, and 8,000, instead. A row has the least
coverage of a statistic with these bounds and this ε, over all data sets. The first row says that the
intervals are not wide for nothing: the median setting covers at most 98 %.

Tables are queried once for each setting, and only their noise is drawn again. Groups are five, each with noise of its
own, so that a release of all counts as five runs.

Rows say how many runs a setting had where these are not 400. The table that is kept was made with 60 runs of trimmed
means, quantiles, quartiles, means, medians and winsorized means of tables, of sums, means and variances of groups, and
of what is raw; these are judged by what chance allows, and only what that does not explain was repeated (one sum).

``--runs 50`` makes fewer runs of each, ``--only mean`` takes some statistics and prints without keeping the table. What
a statistic covers is kept in ``build/coverage`` once it is known; ``--kept`` takes that, and asks the others alone.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, partial
from statistics import median
from time import process_time
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.mechanism import Withheld
from report import ROOT, Row, at_most, report, table

EPSILONS = (0.1, 1.0, 4.0)
RUNS, MORE_RUNS = 400, 10_000
CLAIMED, SUSPICIOUS, ENOUGH, AT_MOST = 0.95, 0.94, 0.945, 0.98
SLOW = 0.002  # seconds of a run
FEWEST = 20  # intervals of which a share says something
NOISE = xp.noise.SystemNoise()
Data: TypeAlias = NDArray[np.float64]
Bounds: TypeAlias = tuple[float, float] | None
Trial: TypeAlias = Callable[[], bool | None]
"""One run: whether the truth was covered, or None if there was no interval."""


@cache
def data_sets() -> dict[str, Data]:
    rng = np.random.default_rng(40)
    few = rng.normal(1, 0.3, 10_000)
    few[:8] = 20_000
    return {
        "heights, n = 30": rng.normal(170, 10, 30),
        "heights, n = 100,000": rng.normal(170, 10, 100_000),
        "ties, n = 300": np.where(rng.random(300) < 0.8, 3.0, rng.normal(5, 2, 300)),
        "whole numbers, n = 3,000": rng.integers(0, 6, 3_000).astype(np.float64),
        "visits, n = 300": rng.poisson(1, 300).astype(np.float64),
        "incomes, n = 3,000": rng.lognormal(10, 0.8, 3_000),
        "heavy tails, n = 30,000": rng.standard_t(3, 30_000),
        "few that hold much, n = 10,000": few,
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
    raw = statistic(clamped(data, bounds))

    def trial() -> bool | None:
        found = mechanism.sample(data, NOISE)
        if isinstance(found, Withheld) or found.noise is None:
            return None
        truth = raw
        if found.beyond is not None:
            truth = statistic(np.clip(clamped(data, bounds), found.low - found.beyond, found.high + found.beyond))
        return bool(abs(found.value - truth) <= found.noise + (found.high - found.low) / 2**20)

    return trial


def raw_mean(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """Whether the mean of all records is covered, which nothing claims."""
    mechanism = xp.mechanisms.MeanOfRecords(epsilon=epsilon, bounds=bounds)
    mechanism.check(data)
    return partial(_within, mechanism, data, float(data.mean()))


def _within(mechanism: Any, data: Any, truth: float) -> bool | None:
    found = mechanism.sample(data, NOISE)
    if isinstance(found, Withheld) or found.noise is None:
        return None
    return bool(abs(found.value - truth) <= found.noise)


def covariance(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    rows = np.column_stack([data, np.roll(data, 1) + data])
    both = None if bounds is None else [bounds, (2 * bounds[0], 2 * bounds[1])]
    mechanism = xp.mechanisms.CovarianceOfRecords(epsilon=epsilon, bounds=both)
    mechanism.check(rows)

    def trial() -> bool | None:
        found = mechanism.sample(rows, NOISE)
        if isinstance(found, Withheld) or found.noise is None:
            return None
        ends = both or [(1.5 * low - 0.5 * high, 1.5 * high - 0.5 * low) for low, high in found.ranges]
        first, second = (np.clip(rows[:, i], *ends[i]) for i in (0, 1))
        truth = float(np.mean(first * second) - first.mean() * second.mean())
        return bool(abs(found.value - truth) <= found.noise + np.prod([high - low for low, high in ends]) / 2**20)

    return trial


def trimmed_mean(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """Its error is that of noise between the quantiles that it publishes."""
    mechanism, left_out = xp.mechanisms.TrimmedMean(trim=0.1, epsilon=epsilon, bounds=bounds), len(data) // 10
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
    mechanism = xp.mechanisms.QuantileOfRecords(quantile=level, epsilon=epsilon, bounds=bounds, neighbours="substitute")
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
    mechanism = xp.mechanisms.QuantilesOfRecords(
        quantiles=(0.25, 0.75), epsilon=epsilon, bounds=bounds, neighbours="substitute"
    )
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
    mechanism = xp.mechanisms.Histogram(epsilon=epsilon, edges=np.linspace(*bounds, 11).tolist())
    mechanism.check(data)
    truth = xp.mechanisms.Histogram(epsilon=2_000, edges=np.linspace(*bounds, 11).tolist()).sample(data, NOISE)
    error = mechanism.error_bound("0.95")
    return lambda: bool(np.abs(mechanism.sample(data, NOISE) - truth).max() <= error)


def total(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """A sum of clamped values with Laplace noise."""
    assert bounds is not None
    exact = float(np.clip(data, *bounds).sum())
    mechanism = xp.Laplace(epsilon=epsilon, sensitivity=max(bounds[1] - bounds[0], 1e-6), neighbours="substitute")
    error = mechanism.error_bound("0.95", floats=True)
    return lambda: bool(abs(mechanism.sample(exact, NOISE) - exact) <= error)


# ---- propose, test, release


def stable(
    kind: Any, statistic: Callable[[Data], float], data: Data, bounds: Bounds, epsilon: float, **how: Any
) -> Trial:
    """For a proposal of a fiftieth of the quartiles' distance."""
    low, high = np.quantile(data, [0.25, 0.75])
    mechanism = kind(epsilon=epsilon, delta="1e-6", proposed=max(high - low, 0.1) / 50, bounds=bounds, **how)
    mechanism.check(data)
    truth, error = statistic(clamped(data, bounds)), mechanism.error_bound("0.95")

    def trial() -> bool | None:
        found = mechanism.sample(data, NOISE)
        return None if isinstance(found, Withheld) else bool(abs(found - truth) <= error)

    return trial


def lower_median(data: Data) -> float:
    return float(np.quantile(data, 0.5, method="inverted_cdf"))


def without_tails(data: Data) -> float:
    left_out = len(data) // 10
    return float(np.sort(data)[left_out : len(data) - left_out].mean())


# ---- tables, and groups of their rows


def remembered(data: Data) -> xp.PrivateTable:
    """A table of the data, whose engine answers every query once."""
    import pandas as pd

    frame = pd.DataFrame({"v": data, "g": np.arange(len(data)) % 5})
    asked = xp.read(frame, unit="row", neighbours="add-remove")
    engine: Any = asked.engine
    engine.fetch, engine.arrays, engine.check = cache(engine.fetch), cache(engine.arrays), cache(engine.check)
    return asked


def of_table(question: Any, noisy: Any, truth: float, error: Callable[[Any], float | None], slack: float = 0) -> Trial:
    """A number of a table; its value is the first of an output that has several."""

    def trial() -> bool | None:
        found = noisy.sample(None, NOISE)
        reach = None if isinstance(found, Withheld) else error(found)
        value = found[0] if isinstance(found, tuple) else found
        return None if reach is None else bool(abs(value - truth) <= reach + slack)

    noisy.check(None)
    return trial


def table_count(noise: Any, data: Data, bounds: Bounds, epsilon: float) -> Trial:
    question = remembered(data).where(f"v > {float(np.median(data))!r}").count()
    delta: Any = "1e-6" if noise == "gaussian" else 0
    noisy = question.mechanism(epsilon=epsilon, noise=noise, delta=delta)
    return of_table(question, noisy, int(np.count_nonzero(data > np.median(data))), lambda _: noisy.error_bound("0.95"))


def table_sum(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    assert bounds is not None
    question = remembered(data).sum("v", bounds=bounds)
    noisy = question.mechanism(epsilon=epsilon)
    return of_table(question, noisy, question.present(question.exact()), lambda _: noisy.error_bound("0.95"))


def table_mean(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    question: Any = remembered(data).mean("v", bounds=bounds)
    if bounds is None:
        return found_mean(question.mechanism(epsilon=epsilon), data)
    noisy = question.mechanism(epsilon=epsilon)
    slack = float(question.alone.value.grid.step)
    truth = float(np.clip(data, *bounds).mean())

    def trial() -> bool | None:
        found = noisy.answer_of(noisy.sample(None, NOISE), None)
        return bool(abs(found - truth) <= found.error + slack)

    noisy.check(None)
    return trial


def of_pairs(kind: str, data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """A statistic of two columns, the second one following the first."""
    import pandas as pd

    assert bounds is not None
    follower = (clamped(data, bounds) - bounds[0]) / (bounds[1] - bounds[0]) + np.arange(len(data)) % 7 / 7 + 1
    frame = pd.DataFrame({"v": data, "w": follower})
    table, ends = xp.read(frame, unit="row", neighbours="add-remove"), [bounds, (0, 3)]
    engine: Any = table.engine
    engine.fetch, engine.check = cache(engine.fetch), cache(engine.check)
    noisy = getattr(table, kind)("v", "w", bounds=ends).mechanism(epsilon=epsilon)
    noisy.check(None)
    cut = clamped(data, bounds)
    truths = {
        "covariance": np.cov(cut, follower, ddof=0)[0, 1],
        "correlation": np.corrcoef(cut, follower)[0, 1] if cut.std() else 0.0,
        "ratio": cut.sum() / follower.sum(),
    }
    slack = 3 * (bounds[1] - bounds[0]) / 2**12 if kind == "covariance" else 2**-12

    def trial() -> bool:
        low, high = noisy.answer_of(noisy.sample(None, NOISE), None).interval()
        return bool(low - slack <= truths[kind] <= high + slack)

    return trial


def found_mean(noisy: Any, data: Data) -> Trial:
    noisy.check(None)

    def trial() -> bool | None:
        found = noisy.sample(None, NOISE)
        if isinstance(found, Withheld) or found.noise is None:
            return None
        (low, high), *_ = found.ranges
        truth = np.clip(data, low - found.beyond, high + found.beyond).mean()
        return bool(abs(found.value - truth) <= found.noise + (high - low) / 2**20)

    return trial


def table_winsorized(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    question: Any = remembered(data).winsorized_mean("v", trim=0.05, bounds=bounds)
    noisy: Any = question.mechanism(epsilon=epsilon)
    noisy.check(None)

    def trial() -> bool | None:
        found = noisy.sample(None, NOISE)
        if isinstance(found, Withheld) or found.noise is None:
            return None
        truth = np.clip(clamped(data, bounds), found.low, found.high).mean()
        step = 0.0 if bounds is None else float(question.ranks.value.grid.step)
        return bool(abs(found.value - truth) <= found.noise + step + (found.high - found.low) / 2**20)

    return trial


def table_median(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """Its error is in ranks, of values as they are rounded to its candidates."""
    question = remembered(data).median("v", bounds=bounds)
    noisy: Any = question.mechanism(epsilon=epsilon)
    noisy.check(None)
    off, size, lattice = int(noisy.error_bound("0.95")), len(data), question.lattice
    places = np.sort(lattice.indices(clamped(data, bounds), 0.0))
    rank = int(np.ceil(size / 2))
    low = places[rank - 1 - off] if off < rank else 0
    high = places[rank - 1 + off] if rank + off <= size else lattice.size

    def trial() -> bool | None:
        found = noisy.sample(None, NOISE)
        if isinstance(found, Withheld):
            return None
        return bool(low <= lattice.indices(np.array([float(found)]), 0.0)[0] <= high)

    return trial


def table_histogram(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """All of ten cells at once."""
    assert bounds is not None
    question = remembered(data).histogram("v", bins=10, bounds=bounds)
    noisy: Any = question.mechanism(epsilon=epsilon)
    truth, error = np.array(question.exact()), noisy.error_bound("0.95")
    return lambda: bool(np.abs(np.array([*noisy.sample(None, NOISE).values()]) - truth).max() <= error)


def lost(data: Data, bounds: Bounds, epsilon: float) -> Trial:
    """Both shares at once."""
    assert bounds is not None
    noisy = remembered(data).lost("v", bounds=bounds).mechanism(epsilon=epsilon)
    noisy.check(None)
    truths = float(np.mean(data < bounds[0])), float(np.mean(data > bounds[1]))

    def trial() -> bool:
        found = noisy.sample(None, NOISE)
        return all(share.low <= truth <= share.high for share, truth in zip(found[:2], truths, strict=True))

    return trial


def grouped(kind: str, statistic: Callable[[Data], float], total: bool, data: Data, bounds: Bounds, e: float) -> Trial:
    """Five groups, one after the other, or all of them together."""
    groups = remembered(data).by("g", keys=range(5))
    asked = groups.count() if kind == "count" else getattr(groups, kind)("v", bounds=bounds)
    noisy = groups.agg(total=total, x=asked).mechanism(epsilon=e)
    noisy.check(None)
    each = [data] if total else [data[place::5] for place in range(5)]
    truths = [statistic(clamped(group, bounds)) for group in each]
    size = 0.0 if bounds is None else bounds[1] - bounds[0]
    slack = {"count": 0.0, "sum": len(data) * size, "mean": size, "variance": size**2}[kind] / 2**19

    def releases() -> Iterator[bool]:
        while True:
            answers = noisy.answer_of(noisy.sample(None, NOISE), None)
            for found, truth in zip([answers.all_together] if total else answers.values(), truths, strict=True):
                yield bool(abs(found - truth) <= found.error + slack)

    return partial(next, releases())


def of_groups(kind: str, statistic: Callable[[Data], Any], total: bool = False) -> Callable[..., Trial]:
    return partial(grouped, kind, statistic, total)


STATED, LEFT_OUT = ("tight", "loose", "wrong"), ("tight", "loose", "wrong", "none")
STATISTICS: dict[str, tuple[Callable[[Data, Bounds, float], Trial], tuple[str, ...]]] = {
    "mean": (partial(moment, xp.mechanisms.MeanOfRecords, np.mean), LEFT_OUT),
    "variance": (partial(moment, xp.mechanisms.VarianceOfRecords, np.var), LEFT_OUT),
    "covariance": (covariance, ("tight", "loose", "none")),
    "trimmed mean": (trimmed_mean, LEFT_OUT),
    "median": (partial(quantile, 0.5), ("tight", "wrong", "none")),
    "0.9-quantile": (partial(quantile, 0.9), ("tight", "none")),
    "median between quartiles": (quartiles, ("tight", "none")),
    "histogram": (histogram, ("tight", "wrong")),
    "sum": (total, STATED),
    "stable median": (partial(stable, xp.mechanisms.StableMedian, lower_median), ("tight", "none")),
    "stable trimmed mean": (
        partial(stable, xp.mechanisms.StableTrimmedMean, without_tails, trim=0.1),
        ("tight", "none"),
    ),
    "table's count": (partial(table_count, "laplace"), ("none",)),
    "table's count, Gaussian": (partial(table_count, "gaussian"), ("none",)),
    "table's sum": (table_sum, STATED),
    "table's mean": (table_mean, LEFT_OUT),
    "table's covariance": (partial(of_pairs, "covariance"), STATED),
    "table's correlation": (partial(of_pairs, "correlation"), STATED),
    "table's ratio": (partial(of_pairs, "ratio"), STATED),
    "table's winsorized mean": (table_winsorized, ("tight", "none")),
    "table's median": (table_median, ("tight", "none")),
    "table's histogram": (table_histogram, ("tight", "wrong")),
    "what is lost": (lost, ("tight", "wrong")),
    "groups' count": (of_groups("count", len), ("none",)),
    "groups' sum": (of_groups("sum", np.sum), STATED),
    "groups' mean": (of_groups("mean", np.mean), STATED),
    "groups' variance": (of_groups("variance", np.var), STATED),
    "groups' total mean": (of_groups("mean", np.mean, total=True), ("tight", "wrong")),
    "raw: mean of all records": (raw_mean, LEFT_OUT),
}
RAW = "raw"


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
        if self.tried > RUNS:
            return ENOUGH
        return SUSPICIOUS if self.tried == RUNS else CLAIMED - 3 * (CLAIMED * (1 - CLAIMED) / self.intervals) ** 0.5

    @property
    def claimed(self) -> bool:
        return not self.statistic.startswith(RAW)

    @property
    def holds(self) -> bool:
        return not self.claimed or self.coverage >= self.goal


def tried(trial: Trial, runs: int) -> tuple[int, int]:
    """Intervals, and those that cover."""
    found = [covered for covered in (trial() for _ in range(runs)) if covered is not None]
    return len(found), sum(found)


def settings(only: tuple[str, ...], runs: int, kept: bool) -> list[Setting]:
    """One process for each statistic, as many at once as there are cores."""
    with ProcessPoolExecutor() as pool:
        return [setting for found in pool.map(partial(known, runs=runs, kept=kept), only) for setting in found]


def known(name: str, runs: int, kept: bool) -> list[Setting]:
    """The settings of a statistic, as they were kept or anew."""
    file = ROOT / "build" / "coverage" / f"{name.replace(':', '')}, {runs} runs.json"
    if not (kept and file.exists()):
        found = settings_of(name, runs)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([asdict(setting) for setting in found]))
    return [Setting(**setting) for setting in json.loads(file.read_text())]


def settings_of(name: str, runs: int) -> list[Setting]:
    make, widths = STATISTICS[name]
    found = []
    for about, data in data_sets().items():
        for width in widths:
            for epsilon in EPSILONS:
                try:
                    trial = make(data, bounds_of(data, width), epsilon)
                except xp.InvalidValue:  # publicly impossible: nobody would pay for it
                    continue
                found.append(_setting(trial, runs, (name, width, epsilon, about)))
    return found


def _setting(trial: Trial, runs: int, what: tuple[str, str, float, str]) -> Setting:
    start = process_time()
    first = Setting(*what, runs, *tried(trial, runs))
    if not first.says_something or first.holds or runs < RUNS:
        return first
    more = MORE_RUNS if process_time() - start < SLOW * runs else MORE_RUNS // 5
    again = Setting(*what, more, *tried(trial, more))
    return again if again.holds else Setting(*what, 4 * more, *tried(trial, 4 * more))


def rows_of(found: list[Setting]) -> list[Row]:
    told = [setting for setting in found if setting.says_something and setting.claimed]
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
    goal = f"≥ {setting.goal:.3g}" if setting.claimed else "not claimed"
    name += "" if setting.tried == RUNS else f", {setting.tried:,} runs"
    return Row(name, setting.coverage, CLAIMED, "share", setting.coverage / CLAIMED, goal, setting.holds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=RUNS, help="of each setting")
    parser.add_argument("--only", nargs="+", choices=STATISTICS, help="these statistics alone; the table is not kept")
    parser.add_argument("--kept", action="store_true", help="take what was kept of statistics that were asked before")
    asked = parser.parse_args()
    rows = rows_of(settings(tuple(asked.only or STATISTICS), asked.runs, asked.kept))
    if asked.only or asked.runs < RUNS:
        print(table(rows))
    else:
        report("coverage", rows)


if __name__ == "__main__":
    main()
