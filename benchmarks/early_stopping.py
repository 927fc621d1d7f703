"""Training that stops early against training that does not: accuracy on held-out rows, and how much ε came back.

Ours is PrivateEarlyStoppingClassifier at its defaults, with δ = 10⁻⁶; it is compared with our PrivateLogisticRegression
and with diffprivlib's LogisticRegression, both at their defaults and without a δ. Rows and splits are those of
``logistic.py``, and more classes: all ten digits. The largest price is ε for all three; beside the accuracy stands
which share of it ours was refunded, on average, for steps not taken. A last row for each data set says which accuracy
is good enough at ε = 2, by records that are held out of the training rows, and how many of the models are worse on the
rows held out here.

Ours has to be better by more than a standard error (of the difference, over the splits) than diffprivlib where that is
more than two points below scikit-learn without noise, and no worse than PrivateLogisticRegression by more than a
standard error. Where an accuracy is good enough, it has to be reached by the mean.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from expost.errors import UnrecordedWarning
from expost.learn import PrivateEarlyStoppingClassifier, PrivateLogisticRegression
from logistic import MATTERS, ONE_THREAD, Case, cases, mean_and_error, split
from report import Row, at_least, peer, report

EPSILONS = [0.3, 1.0, 2.0]
DELTA = 1e-6
SEEDS = 30
ENOUGH = {"breast_cancer": 0.8, "digits 3 and 8": 0.8, "ten digits": 0.6}


def data_sets() -> list[Case]:
    """Those of ``logistic.py`` that come with scikit-learn, and all ten digits."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return [*cases()[:2], Case("ten digits", digits.data, digits.target, (0, 16))]


def ours(rows: Any, labels: Any, epsilon: float, **more: Any) -> tuple[list[float], list[float], list[float]]:
    """Accuracies with early stopping, the shares of ε refunded, and accuracies without: split by split."""
    given: dict[str, Any] = {"epsilon": epsilon, "norm": 1, "classes": range(int(labels.max()) + 1)}
    early, refunded, plain = [], [], []
    for seed in range(SEEDS):
        train, test = split(len(rows), seed)
        model = PrivateEarlyStoppingClassifier(delta=DELTA, **given, **more).fit(rows[train], labels[train])
        early.append(float(model.score(rows[test], labels[test])))
        refunded.append(model.refunded_.epsilon / epsilon)
        other = PrivateLogisticRegression(**given).fit(rows[train], labels[train])
        plain.append(float(other.score(rows[test], labels[test])))
    return early, refunded, plain


def peers(rows: Any, labels: Any) -> list[dict[str, float]]:
    """diffprivlib's accuracies at each ε, and scikit-learn's without noise, split by split."""
    with tempfile.TemporaryDirectory() as folder:
        job = {name: str(Path(folder) / f"{name}.npy") for name in ("features", "labels", "splits")}
        np.save(job["features"], rows)
        np.save(job["labels"], labels)
        np.save(job["splits"], np.array([np.concatenate(split(len(rows), seed)) for seed in range(SEEDS)]))
        facts = {**job, "train": int(0.8 * len(rows)), "epsilons": EPSILONS, "seeds": list(range(SEEDS)), "timed": 0}
        scores: list[dict[str, float]] = peer("diffprivlib", "diffprivlib_logistic.py", json.dumps(facts))["scores"]
        return scores


def compared(name: str, mine: Any, other: Any, *, better: bool) -> Row:
    """The difference of mean accuracies, in percentage points, with its standard error over the splits."""
    gain, error = mean_and_error(np.array(mine) - np.array(other))
    least = error if better else -error
    goal = f"{'>' if better else '≥'} {100 * least:.2f} points (± {100 * error:.2f})"
    return Row(name, float(np.mean(mine)), float(np.mean(other)), "share", 100 * gain, goal, gain >= least)


def compare(case: Case) -> list[Row]:
    """Ours, our own without stopping, and diffprivlib on the same splits of one data set."""
    rows, labels = case.rows(), case.labels
    theirs = peers(rows, labels)
    clean = float(np.mean([row["plain"] for row in theirs]))
    found = []
    for epsilon in EPSILONS:
        early, refunded, plain = ours(rows, labels, epsilon)
        scores = [row[str(epsilon)] for row in theirs]
        matters = clean - float(np.mean(scores)) > MATTERS
        back = f"{100 * np.mean(refunded):.0f} % refunded"
        what = f"accuracy at ε = {epsilon:g}, {case.name}, {back} (no noise {clean:.3f})"
        found.append(compared(f"{what}, against diffprivlib", early, scores, better=matters))
        found.append(compared(f"{what}, against PrivateLogisticRegression", early, plain, better=False))
    return [*found, stopped(case)]


def stopped(case: Case) -> Row:
    """Training until an accuracy is reached."""
    enough = ENOUGH[case.name]
    early, refunded, _ = ours(case.rows(), case.labels, EPSILONS[-1], good_enough=enough)
    back, worse = 100 * np.mean(refunded), 100 * np.mean(np.array(early) < enough)
    what = f"accuracy where {enough:g} is enough, {case.name}, {back:.0f} % of ε = 2 refunded, {worse:.0f} % below"
    mean = float(np.mean(early))
    return at_least(what, mean, enough, "share", mean / enough, 1)


def main() -> None:
    if os.environ.get("OMP_NUM_THREADS") != "1":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    warnings.simplefilter("ignore", UnrecordedWarning)
    report("early_stopping", [row for case in data_sets() for row in compare(case)])


if __name__ == "__main__":
    main()
