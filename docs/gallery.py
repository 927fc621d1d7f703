"""The plots of the gallery, made by ``make docs``: ``python docs/gallery.py docs/figures``.

That of the README is kept with it: ``python docs/gallery.py docs/plots answers``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from math import ceil
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import expost as xp
from expost import mechanisms as mech
from expost.accounting import GaussianNoise

INK, BLUE, ORANGE, GREY = "#1f2933", "#2a6f97", "#e07a1f", "#c5ccd3"
TRUE_MEANS = (164.4, 319.0, 88.4, 725.4)
"""Of all rows of the example, with costs moved to the bounds."""
LOOK = {
    "font.size": 11, "font.family": "sans-serif", "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False,
    "figure.facecolor": "white", "axes.facecolor": "white", "svg.hashsalt": "expost", "legend.frameon": False,
}  # fmt: skip


def answers(axes: Any) -> None:
    """The answer of the first page: means of groups with their intervals."""
    visits = xp.read(xp.example("visits"), unit=xp.Unit("patient", rows=5), neighbours="add-remove", key=1)
    wards = visits.by("ward", keys=["A", "B", "C", "ICU"])
    means = xp.Ledger(epsilon=1, noise=xp.SeededNoise(1)).run(wards.mean("cost", bounds=(0, 2000)), epsilon=0.4).value
    rows = range(len(means))
    numbers, errors = [each.value for each in means.values()], [each.error for each in means.values()]
    axes.errorbar(
        numbers, rows, xerr=errors, fmt="o", color=BLUE, capsize=4, label="published at ε 0.4, with 95 % intervals"
    )
    axes.plot(TRUE_MEANS, rows, "|", color=ORANGE, ms=16, label="truth, which nobody would know")
    for row, (number, error) in enumerate(zip(numbers, errors, strict=True)):
        axes.annotate(f"{number:.0f} ± {ceil(error)}", (number, row), (0, 11), textcoords="offset points", ha="center")
    axes.set_yticks(rows, [f"ward {ward}" for ward in means])
    axes.set(xlabel="mean cost of a visit", xlim=(0, 800), ylim=(3.4, -0.6))
    axes.legend(loc="lower left", bbox_to_anchor=(0, 0.98), fontsize=10)


def refunds(axes: Any) -> None:
    """Six questions under one limit: what each reserved, and what its answer cost."""
    rng, ledger = np.random.default_rng(1), xp.Ledger(epsilon=2, noise=xp.SeededNoise(4))
    flights = np.where(np.arange(60) % 19 == 3, 2000, rng.integers(0, 200, 60))
    ages = rng.normal(45, 12, 4000).round().astype(int)
    asked: dict[str, tuple[xp.Mechanism, Any]] = {
        "busy gates": (xp.SparseVector(threshold=1000, at_most=12, epsilon=0.5, sensitivity=1), flights),
        "passengers ± 5 %": (xp.NoiseReduction(epsilon=0.5, sensitivity=1, until=xp.RelativeError(within=0.05)), 4000),
        "median ± 2 years": (
            mech.QuantileLadder(quantile=0.5, within=2, epsilon=0.5, bounds=(0, 120), neighbours="substitute"),
            ages,
        ),
        "late flights": (xp.Laplace(epsilon=0.3, sensitivity=1), 812),
        "busy hours": (xp.SparseVector(threshold=1500, at_most=10, epsilon=0.5, sensitivity=1), flights[:24]),
        "over 65?": (xp.NoiseReduction(epsilon=0.3, sensitivity=1, until=mech.Decided(threshold=100)), 240),
    }
    places = range(len(asked))
    releases = [ledger.run(mechanism, on=data) for mechanism, data in asked.values()]
    axes.barh(places, [release.reserved.epsilon for release in releases], color=GREY, label="reserved: the worst case")
    axes.barh(places, [release.charged.epsilon for release in releases], color=BLUE, label="charged: what came out")
    axes.set_yticks(places, asked)
    axes.invert_yaxis()
    axes.set_xlabel("ε")
    reserved, charged = (
        sum(getattr(release, kind).epsilon for release in releases) for kind in ("reserved", "charged")
    )
    axes.set_title(f"Six questions: ε {reserved:.1f} reserved, {charged:.2f} charged", loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.2), ncols=2, fontsize=10)


def sparse_vector(axes: Any) -> None:
    """What a sparse vector is charged, by the number of values that were above."""
    mechanism = xp.SparseVector(threshold=500, at_most=20, epsilon=1, sensitivity=1)
    guarantee, above = mechanism.guarantee, range(21)
    axes.plot(above, [guarantee.worst_case.epsilon] * 21, color=GREY, lw=3, label="worst case: what others charge")
    parts = [mechanism.part_of(np.arange(100) < number) for number in above]
    axes.plot(above, [guarantee.epsilon_of(part) for part in parts], color=BLUE, lw=3, label="charged")
    axes.set(xlabel="values above the threshold, of at most 20", ylabel="ε", ylim=0, xticks=range(0, 21, 5))
    axes.set_title("A sparse vector pays for what came", loc="left")
    axes.legend(loc="lower right")


def reduction(axes: Any) -> None:
    """One answer whose noise is reduced until it is within 5 %."""
    levels = xp.NoiseReduction(epsilon=1, sensitivity=1, neighbours="add-remove")
    ledger, costs, values = xp.Ledger(epsilon=1, noise=xp.SeededNoise(12)), [], []
    with ledger.open(levels, on=1000) as interaction:
        while not interaction.closed:
            values.append(float(interaction.refine()))
            costs.append(levels.guarantee.epsilon_of(len(values)))
    axes.axhspan(950, 1050, color=GREY, alpha=0.5, label="within 5 % of the truth")
    axes.plot(costs, values, "o-", color=BLUE, label="answers")
    axes.set(xlabel="ε charged if it stops here (logarithmic)", ylabel="noisy count", xscale="log", ylim=(700, 1300))
    axes.set_title("A count of 1,000 with less and less noise", loc="left")
    axes.legend()


def early_stopping(axes: Any) -> None:
    """What training costs at each stop."""
    stops = list(range(50, 501, 50))
    training = xp.Iterative(
        steps=[GaussianNoise(1.5, sampling_rate=0.02)] * 500, stops=stops, delta=1e-6, sensitivity=1,
        neighbours="add-remove",
    )  # fmt: skip
    paid = [training.guarantee.epsilon_of(stop) for stop in stops]
    axes.step(stops, paid, where="post", color=BLUE, lw=3, label="charged if it stops here")
    axes.axhline(paid[-1], color=GREY, lw=3, label="worst case")
    axes.set(xlabel="steps taken", ylabel="ε at δ = 10⁻⁶", ylim=0)
    axes.set_title("Training pays for the steps taken", loc="left")
    axes.legend(loc="lower right")


def histogram(axes: Any) -> None:
    """Counts with noise beside the truth."""
    hours = np.clip(np.random.default_rng(2).normal(13, 4, 3000), 0, 23.9)
    truth, edges = np.histogram(hours, bins=12, range=(0, 24))
    mechanism = mech.Histogram(epsilon=0.2, edges=tuple(edges))
    noisy = xp.Ledger(epsilon=1, noise=xp.SeededNoise(5)).run(mechanism, on=hours).value
    middles, error = (edges[1:] + edges[:-1]) / 2, float(mechanism.error_bound(0.95))
    axes.bar(middles, mech.consistent(noisy, total=3000), width=1.7, color=BLUE, yerr=error,
             label="published, ± at 95 %", error_kw={"ecolor": INK, "capsize": 3})  # fmt: skip
    axes.plot(middles, truth, "o", color=ORANGE, label="true counts")
    axes.set(xlabel="hour of the day", ylabel="visits in two hours", ylim=(-50, 800), xticks=range(0, 25, 4))
    axes.set_title("3,000 visits by hour, at ε 0.2", loc="left")
    axes.legend()


def accuracy(axes: Any) -> None:
    """Error bounds against ε."""
    budgets = np.geomspace(0.02, 2, 30)
    for label, colour, bound in (
        ("count of 5,000", BLUE, lambda e: xp.Laplace(epsilon=e, sensitivity=1).error_bound(0.95) / 5000),
        ("median of 5,000, in ranks", ORANGE, lambda e: mech.MedianOfRecords(
            epsilon=e, bounds=(0, 120), neighbours="substitute").error_bound(0.95) / 5000),
    ):  # fmt: skip
        axes.loglog(budgets, [float(bound(round(float(e), 6))) for e in budgets], lw=3, color=colour, label=label)
    axes.set(xlabel="ε (logarithmic)", ylabel="± at 95 %, as a share of 5,000")
    axes.set_title("Twice the ε, half the error", loc="left")
    axes.legend()


PLOTS: tuple[Callable[[Any], None], ...] = (
    answers,
    refunds,
    sparse_vector,
    reduction,
    early_stopping,
    histogram,
    accuracy,
)


def draw(folder: Path, names: Collection[str] = ()) -> None:
    """Write plots as SVG: those named, or all."""
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(LOOK):
        for plot in PLOTS:
            if names and plot.__name__ not in names:
                continue
            figure = Figure(figsize=(5.6, 3.5), layout="constrained")
            plot(figure.subplots())
            figure.savefig(folder / f"{plot.__name__}.svg", metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]), sys.argv[2:])
