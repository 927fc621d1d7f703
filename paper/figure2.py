"""Figure 2: how noisy the test of a model is, against the number of records; and how many models it lets one try.

Seven tenths of the records train a logistic regression, three tenths test it. The 95th percentile of the noise on the
error is (a/ε₂)·ln 10 for Laplace noise of scale a/ε₂, where a is the larger of 2/n_test and a bound on what a training
record can do: 2(e^2/nΛ − 1) in the paper, 2·tanh(1/2nΛ) at best. At Λ = 1, the paper's setting, 2/n_test is the
larger one from 28 records on, whichever bound is taken; at Λ = 0.1 the bounds differ by four or more.

``python -m paper.figure2 FOLDER`` writes figure2.json and tries.json and, with matplotlib, the plots.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import count
from math import log
from pathlib import Path
from typing import Any

from expost import bracket
from expost.errors import BudgetExceeded
from expost.ledger import Ledger
from expost.mechanisms import TestedLogisticRegression
from expost.mechanisms.linear.tested import held_out_size
from expost.mechanisms.linear.tested_logistic import error_sensitivity

EPSILONS = (0.01, 0.1, 1.0)
REGULARIZERS = (1.0, 0.1)
SIZES = sorted({round(10 ** (i / 8)) for i in range(4, 49)})  # 3 to a million
HELD_OUT = Fraction(3, 10)
LIMIT, MODEL = 1, 0.5
SHARES = (1, 2, 3, 5, 10, 20, 50, 100)


def loose(training: int, regularizer: Fraction) -> Fraction:
    """The paper's bound, 2(e^2/nΛ − 1)."""
    return 2 * (bracket.exp(2 / (training * regularizer)).upper - 1)


def tight(training: int, regularizer: Fraction) -> Fraction:
    """2·tanh(1/2nΛ)."""
    return error_sensitivity(2 / (training * regularizer))


def percentile(
    size: int, epsilon: float, regularizer: float, bound: Callable[[int, Fraction], Fraction], level: float = 0.95
) -> float:
    """What the test's noise on the error stays below with this probability."""
    held_out = held_out_size(size, HELD_OUT)
    scale = max(Fraction(2, held_out), bound(size - held_out, Fraction(str(regularizer))))
    return float(scale) / epsilon * log(1 / (2 * (1 - level)))


def data(sizes: Sequence[int] = SIZES) -> dict[str, Any]:
    """Every curve of the figure, by the number of records."""
    curves: dict[str, Any] = {"records": list(sizes)}
    for regularizer in REGULARIZERS:
        for epsilon in EPSILONS:
            for name, bound in (("paper", loose), ("tight", tight)):
                key = f"Λ = {regularizer:g}, ε₂ = {epsilon:g}, {name}"
                curves[key] = [percentile(size, epsilon, regularizer, bound) for size in sizes]
    return curves


def tries(limit: float = LIMIT, model: float = MODEL) -> dict[str, Any]:
    """How many models can be tried under one limit if all but the last fail: counted by a ledger, not by a formula."""
    counted = [_until_refused(limit, model, Fraction(1) / share) for share in SHARES]
    plain = [_until_refused(limit, model, Fraction(1))] * len(SHARES)
    return {"model ε / test ε": list(SHARES), "with recovery": counted, "without": plain}


def _until_refused(limit: float, model: float, test_share: Fraction) -> int:
    """Runs that fail, until the ledger cannot reserve for another; that one was the last."""
    ledger = Ledger(epsilon=limit)
    guarantee = TestedLogisticRegression(epsilon=model, test_share=test_share, threshold=1, norm=1).guarantee
    for tried in count():
        try:
            with ledger.reserve(guarantee) as spending:
                spending.settle("withheld")
        except BudgetExceeded:
            return tried
    raise AssertionError("unreachable: every ledger ends")


def plot(curves: dict[str, Any], path: Path) -> None:
    """Draw the figure. Needs matplotlib."""
    plt = _pyplot()
    figure, panels = plt.subplots(1, len(REGULARIZERS), figsize=(10, 4.2), layout="constrained", sharey=True)
    colours = ("tab:red", "tab:orange", "tab:blue")
    for axes, regularizer in zip(panels, REGULARIZERS, strict=True):
        for epsilon, colour in zip(EPSILONS, colours, strict=True):
            key = f"Λ = {regularizer:g}, ε₂ = {epsilon:g}"
            axes.plot(curves["records"], curves[f"{key}, tight"], color=colour, label=f"ε₂ = {epsilon:g}")
            axes.plot(curves["records"], curves[f"{key}, paper"], color=colour, linestyle=":", linewidth=2)
        axes.plot([], [], color="0.3", linestyle=":", linewidth=2, label="with the paper's bound")
        axes.set(xscale="log", yscale="log", xlabel="records", title=f"Λ = {regularizer:g}", ylim=(1e-5, 1e5))
        axes.axhline(1, color="0.6", linewidth=1, label="the error of knowing nothing")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("95th percentile of the noise on the error")
    panels[0].legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def plot_tries(bars: dict[str, Any], path: Path) -> None:
    """Draw how many models can be tried. Needs matplotlib."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    places = range(len(SHARES))
    axes.bar(places, bars["with recovery"], color="tab:blue", label="with recovery: a failure costs the test")
    axes.plot(places, bars["without"], color="0.3", linestyle="--", label="without: a failure costs the model")
    for place, tried in zip(places, bars["with recovery"], strict=True):
        axes.annotate(str(tried), (place, tried), ha="center", va="bottom")
    labels = ["the same", *(f"1/{share}" for share in SHARES[1:])]
    axes.set(xticks=places, xticklabels=labels, yscale="log", ylim=(1, 3 * max(bars["with recovery"])))
    axes.set(xlabel="the test's ε, as a share of the model's", ylabel="models that can be tried")
    axes.set_title(f"Models under one limit ε = {LIMIT:g}, each worth ε = {MODEL:g}")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def main(folder: str, sizes: Sequence[int] = SIZES) -> None:
    """Write the data and the plots."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    curves, bars = data(sizes), tries()
    for name, found in (("figure2", curves), ("tries", bars)):
        (target / f"{name}.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    plot(curves, target / "figure2.png")
    plot_tries(bars, target / "tries.png")
    print(target / "figure2.json", target / "figure2.png", target / "tries.json", target / "tries.png")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
