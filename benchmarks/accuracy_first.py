"""Accuracy first: what a wanted accuracy costs by noise reduction, the most frequent of a million labels, and tuning.

The peers of noise reduction: doubling ε with fresh noise until the answer is good enough, which pays for every answer;
and an oracle, who knows the truth and so how much ε it takes. Targets are relative errors whose absolute size is
between 10 and 300 at a sensitivity of 1. All stop by the same rule at the same confidence.

Tuning is measured against an even split of the budget, by accuracy on rows that neither has seen, at equal ε charged.
Ten candidates, fixed beforehand: PrivateLogisticRegression with regularizers of half powers of ten from 10⁻⁴ on. Data,
public bounds and preprocessing are those of the benchmark of logistic regression, of the synthetic set 5,000 rows. Ours
is PrivateSearchCV at its defaults with half of ε for each candidate, which is charged ε. The peer fits all ten with a
tenth of ε each, scores each with a tenth of ε on the same share of held-out rows, and releases the best: ε, too.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import ceil, sqrt
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.learn import PrivateLogisticRegression, PrivateSearchCV
from expost.noise import NoiseSource, discrete_laplace
from expost.noise.sums import LaplaceSteps
from logistic import Case, cases
from report import Row, at_least, at_most, report

TARGETS, RUNS, LABELS, REPEATS = 1_000, 10_000, 1_000_000, 7
CONFIDENCE, LAST, DOUBLINGS = Fraction(19, 20), 1, 8
WANTED, PLOTTED = (10, 16, 25, 40, 63, 100, 160, 250), 400
TUNED, SPLITS, HELD_OUT = 1, 300, Fraction(3, 10)
GRID = {"regularizer": [10 ** (-4 + i / 2) for i in range(10)]}
NOISE = xp.noise.SystemNoise()


def targets(count: int) -> list[tuple[int, Fraction]]:
    """A truth and the share of it that an answer may be off."""
    generator = random.Random(23)
    found = []
    for _ in range(count):
        within = Fraction(generator.choice((1, 5, 10)), 100)
        found.append((round(10 ** generator.uniform(1, 2.5) / within), within))
    return found


def reduced(truth: int, within: Fraction) -> tuple[float, int, bool]:
    """The ε charged, the answer, and whether the rule was met."""
    rule = xp.RelativeError(within=within, confidence=CONFIDENCE)
    mechanism = xp.NoiseReduction(epsilon=LAST, sensitivity=1, until=rule)
    value, level, met = mechanism.sample(truth, NOISE)
    return mechanism.guarantee.epsilon_of(level), value, met


def doubled(truth: int, within: Fraction, noise: NoiseSource = NOISE) -> tuple[float, int]:
    """The sum of ε of fresh answers until one is good enough, and that one."""
    rule = xp.RelativeError(within=within, confidence=CONFIDENCE)
    epsilons = tuple(Fraction(LAST, 2**left) for left in range(DOUBLINGS - 1, -1, -1))
    miss, spent = rule.miss_per_level(epsilons, Fraction(0), 1), Fraction(0)
    for epsilon in epsilons:
        spent += epsilon
        answer, error = truth + discrete_laplace(noise, epsilon), Fraction(LaplaceSteps(epsilon).reach(miss))
        if rule.met([Fraction(answer)], error):
            break
    return float(spent), answer


def oracle(truth: int, within: Fraction) -> float:
    """The least ε whose error is small enough, for who knows the truth."""
    return float(xp.Laplace.for_accuracy(truth * within, CONFIDENCE, sensitivity=1).epsilon)


def coverage() -> float:
    """The share of runs whose answer is as near as was asked for, of those that met the rule."""
    found = [(truth, within, *reduced(truth, within)[1:]) for truth, within in targets(RUNS)]
    return fmean(abs(value - truth) <= truth * within for truth, within, value, met in found if met)


def seconds(run: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def top_row(k: int, goal: float | None) -> Row:
    """The choice among ten times k candidates of Zipf counts, against partitioning and sorting them."""
    counts = (10**7 / np.arange(1, LABELS + 1)).astype(np.int64)
    np.random.default_rng(5).shuffle(counts)
    labels, top = np.arange(LABELS), xp.TopK(k=k, epsilon=Fraction(k, 10), delta=1e-9)

    def plain() -> object:
        best = np.argpartition(counts, LABELS - 10 * k)[LABELS - 10 * k :]
        return labels[best[np.argsort(-counts[best], kind="stable")]]

    ours, peer = seconds(lambda: top.sample((labels, counts), NOISE)), seconds(plain)
    name = f"top {k} of 1,000,000 labels, and partition and sort"
    if goal is None:
        return Row(name, ours, peer, "s", ours / peer, "no goal", True)
    return at_most(name, ours, peer, "s", ours / peer, goal)


def searched(rows: NDArray[Any], labels: NDArray[Any]) -> Any:
    """The search, charged ε."""
    inner = PrivateLogisticRegression(epsilon=Fraction(TUNED, 2), norm=1, classes=[0, 1])
    ledger = xp.Ledger(epsilon=TUNED)
    search = PrivateSearchCV(estimator=inner, param_grid=GRID, held_out=HELD_OUT, ledger=ledger).fit(rows, labels)
    assert ledger.spent == xp.Cost(TUNED)
    return search


def evenly(rows: NDArray[Any], labels: NDArray[Any], split: int) -> Any:
    """The best of ten, each with a tenth of ε: one charge for its fit and its score, which are about other rows."""
    order = np.random.default_rng(split).permutation(len(rows))
    held = order[: ceil(HELD_OUT * len(rows))]
    train = order[len(held) :]
    share = Fraction(TUNED, len(GRID["regularizer"]))
    score, scored = xp.mechanisms.CorrectPredictions(), np.column_stack([rows[held], labels[held]])

    def attempt(regularizer: float) -> tuple[float, Any]:
        inner = PrivateLogisticRegression(
            epsilon=share, norm=1, classes=[0, 1], regularizer=regularizer, ledger=xp.Ledger(epsilon=share)
        ).fit(rows[train], labels[train])
        return score.noisy(inner.model_, scored, share, NOISE), inner

    return max((attempt(regularizer) for regularizer in GRID["regularizer"]), key=lambda pair: pair[0])[1]


def one_split(case: Case, split: int) -> tuple[float, float]:
    """The accuracies of both on the fifth of all rows that neither has seen."""
    rows = case.rows()
    order = np.random.default_rng(1000 + split).permutation(len(rows))
    unseen, seen = order[: len(rows) // 5], order[len(rows) // 5 :]
    pair = searched(rows[seen], case.labels[seen]), evenly(rows[seen], case.labels[seen], split)
    ours, peer = (float(model.score(rows[unseen], case.labels[unseen])) for model in pair)
    return ours, peer


def tuning_row(case: Case) -> Row:
    """Holds if ours is better by more than two standard errors of the difference."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        found = np.array(list(pool.map(partial(one_split, case), range(SPLITS))))
    better = found[:, 0] - found[:, 1]
    errors = float(better.mean() / (better.std(ddof=1) / sqrt(SPLITS)))
    ours, peer = found.mean(axis=0).tolist()
    name = f"tuning over 10 candidates, {case.name}, and an even split (ratio: difference in standard errors)"
    return Row(name, ours, peer, "share right", errors, "> 2", errors > 2)


def tuning_rows() -> list[Row]:
    """One for each data set."""
    cancer, digits, synthetic = cases()
    features, labels = synthetic.features[:5000], synthetic.labels[:5000]
    fewer = replace(synthetic, name="synthetic 5,000", features=features, labels=labels)
    return list(map(tuning_row, (cancer, digits, fewer)))


def points(pay: Callable[[int, Fraction], tuple[float, int]]) -> tuple[list[float], list[float]]:
    """For each wanted error: the error that 95 of 100 answers stay within, and the mean ε paid."""
    reached, paid = [], []
    for wanted in WANTED:
        found = [pay(wanted * 20, Fraction(1, 20)) for _ in range(PLOTTED)]
        reached.append(float(np.quantile([abs(answer - wanted * 20) for _, answer in found], 0.95)))
        paid.append(fmean(epsilon for epsilon, _ in found))
    return reached, paid


def plot(target: Path) -> None:
    """ε paid against the accuracy reached: by noise reduction, by doubling, and by one Laplace of the right ε."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "accuracy first"  # the same file from the same numbers
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.loglog(*points(doubled), "s-", color="#c0392b", label="doubling ε with fresh noise")
    axes.loglog(*points(lambda *target: reduced(*target)[:2]), "o-", color="#1b6ca8", label="noise reduction")
    known = range(6, 251, 4)
    fixed = [oracle(20 * error, Fraction(1, 20)) for error in known]
    axes.loglog(known, fixed, "--", color="#555", label="one Laplace, if its ε were known beforehand")
    axes.set(xlabel="error that 95 of 100 answers stay within", ylabel="mean ε paid")
    axes.set_title("An answer within 5 % of a count of 20 times the wanted error", fontsize=10)
    axes.grid(visible=True, which="both", color="#eee")
    axes.legend(frameon=False)
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)


def main() -> None:
    plot(Path(__file__).resolve().parent.parent / "docs" / "plots" / "accuracy_first.svg")
    chosen = targets(TARGETS)
    ours = fmean(reduced(*target)[0] for target in chosen)
    doubling, best = fmean(doubled(*target)[0] for target in chosen), fmean(oracle(*target) for target in chosen)
    share = coverage()
    report(
        "accuracy_first",
        [
            at_least("mean ε of 1,000 relative errors, by doubling", ours, doubling, "ε", doubling / ours, 2),
            Row("the same, by an oracle who knows the truth", ours, best, "ε", ours / best, "no goal", True),
            at_least("answers as near as asked for, of 10,000", share, 0.95, "share", share / 0.95, 1),
            top_row(10, 2),
            top_row(100, None),
            *tuning_rows(),
        ],
    )


if __name__ == "__main__":
    main()
