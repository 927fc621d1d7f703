"""What the optimum gains over Lemma 11 and a Rényi filter, against the number of stops.

The paper leaves the first question open. ``python -m paper.stopping_gain FOLDER`` prints Markdown and writes
stopping_gain.json and, with matplotlib, stopping_gain.png. The Rényi filter is dp-accounting's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

from expost.accounting import GaussianNoise, compose, optimal_composition, optimal_delta, plan

STEPS, DELTA = 1000, 1e-5
RESPONSE_STOPS = (1, 2, 5, 10, 20, 50, 100, 200)
TRAINING_STOPS = (1, 5, 20, 100)


def response_gain(stops: int) -> tuple[float, float]:
    """δ by Lemma 11 and at the optimum: 0.1-DP steps (δ 10⁻⁶ each) at the E of advanced composition."""
    every = STEPS // stops
    numbers = list(range(every, STEPS + 1, every))
    guaranteed = [min(0.1 * k, sqrt(2 * k * log(1 / DELTA)) * 0.1 + k * 0.1 * (exp(0.1) - 1)) for k in numbers]
    summed = sum(
        float(optimal_composition([(0.1, 1e-6)] * k).delta(e).upper) for k, e in zip(numbers, guaranteed, strict=True)
    )
    return summed, optimal_delta([(0.1, 1e-6)] * STEPS, numbers, guaranteed).upper


def training_gain(stops: int) -> tuple[float, ...]:
    """ε at the first stop and at full length, by Lemma 11 and at the optimum: σ = 1, rate 0.01, 2000 steps."""
    loss, every = GaussianNoise(1, 0.01), 2000 // stops
    planned = plan([loss] * 2000, range(every, 2001, every), DELTA, grid=2.0**-10)
    first, full = (compose([loss] * k, grid=2.0**-10).epsilon_above(DELTA / stops) for k in (every, 2000))
    return first, planned.epsilon_of(every), full, planned.epsilon_of(2000)


def renyi(steps: int) -> float:
    """What a Rényi filter charges, where stopping anywhere is free.

    A charge that depends on the stop needs one order for all stops: the best one at full length is fixed beforehand.
    """
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    each = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0))
    full = RdpAccountant().compose(SelfComposedDpEvent(each, 2000))
    _, order = full.get_epsilon_and_optimal_order(DELTA)
    return float(RdpAccountant([order]).compose(SelfComposedDpEvent(each, steps)).get_epsilon(DELTA))


def data(few: Sequence[int] = TRAINING_STOPS, many: Sequence[int] = RESPONSE_STOPS) -> dict[str, Any]:
    """Every number of the figure: with few stops in a training, with many in a series of responses."""
    responses = {stops: response_gain(stops) for stops in many}
    training = {stops: training_gain(stops) for stops in few}
    return {
        "response stops": list(many),
        "response Lemma 11": [summed for summed, _ in responses.values()],
        "response optimum": [best for _, best in responses.values()],
        "training stops": list(few),
        "first stop Lemma 11": [row[0] for row in training.values()],
        "first stop optimum": [row[1] for row in training.values()],
        "first stop Rényi": [renyi(2000 // stops) for stops in few],
        "full length Lemma 11": [row[2] for row in training.values()],
        "full length optimum": [row[3] for row in training.values()],
        "full length Rényi": [renyi(2000)] * len(few),
    }


def plot(found: dict[str, Any], path: Path) -> None:
    """Draw both comparisons. Needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for name, style in (("Lemma 11", "o--"), ("optimum", "o-")):
        left.plot(found["response stops"], found[f"response {name}"], style, label=name)
    left.set(xscale="log", yscale="log", xlabel="stops", ylabel="δ", title="1000 steps of 0.1-DP: δ at the same ε's")
    for name, style in (("Lemma 11", "--"), ("optimum", "-"), ("Rényi", ":")):
        for where, colour in (("full length", "tab:blue"), ("first stop", "tab:orange")):
            label = f"{where}, {name}"
            right.plot(found["training stops"], found[f"{where} {name}"], style, color=colour, marker="o", label=label)
    right.set(xscale="log", xlabel="stops", ylabel="ε at δ = 10⁻⁵", title="2000 steps of DP-SGD (σ = 1, rate 0.01)")
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def markdown(found: dict[str, Any]) -> str:
    """The same numbers as tables."""
    lines = ["| stops | δ by Lemma 11 | δ at the optimum | gain |", "|---:|---:|---:|---:|"]
    for stops, summed, best in zip(
        found["response stops"], found["response Lemma 11"], found["response optimum"], strict=True
    ):
        lines.append(f"| {stops} | {summed:.3e} | {best:.3e} | {summed / best:.1f} |")
    kinds = [f"{where} {name}" for where in ("first stop", "full length") for name in ("Lemma 11", "optimum", "Rényi")]
    lines += ["", f"| stops | {' | '.join(kinds)} |", "|---:" * (len(kinds) + 1) + "|"]
    for row in zip(found["training stops"], *(found[kind] for kind in kinds), strict=True):
        lines.append(f"| {row[0]} | {' | '.join(f'{value:.3f}' for value in row[1:])} |")
    return "\n".join(lines)


def main(folder: str) -> None:
    """Print the tables; write the data and the plot."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    found = data()
    (target / "stopping_gain.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    plot(found, target / "stopping_gain.png")
    print(markdown(found))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
