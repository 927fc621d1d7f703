"""The plot of how many questions fit under one limit, by four ways to add up. `make docs` makes it."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from expost import Cost, Guarantee
from expost.accounting.metering import MeterFilter
from expost.accounting.meters import BasicMeter, Meter, RenyiMeter
from expost.accounting.tariff import tariff_of_guarantee

LIMIT = Cost(1, delta="1e-6")
ORDERS = [Fraction(order) for order in (16, 18, 20, 22, 24, 28, 40, 100, 1000)]


def rounds_within(meter: Meter, worst: Fraction, comes_out: Fraction) -> int:
    """How many rounds with this worst case fit if each comes out at another ε."""
    guarantee = Guarantee({"worst": worst, "out": comes_out})
    if isinstance(meter, RenyiMeter):
        tariff = tariff_of_guarantee(guarantee, meter.order, interactive=False)
        most, price = tariff.worst.renyi, tariff.of("out").renyi
    else:
        most, price = guarantee.worst_case.epsilon_units, guarantee.cost_of("out").epsilon_units
    return max(0, (meter.capacity[0] - most) // price + 1)


def ways(worst: Fraction) -> dict[str, int]:
    """How many fit, by each way to add up, if a third of the worst case comes out."""
    third, basic = worst / 3, BasicMeter.of(LIMIT.exact_epsilon)
    orders = [RenyiMeter.of(1, LIMIT.exact_delta, order) for order in ORDERS]
    ours = [meter for meter in MeterFilter.of(LIMIT).meters if isinstance(meter, BasicMeter | RenyiMeter)]
    return {
        "classic: worst cases add up": rounds_within(basic, worst, worst),
        "RDP: worst cases at the best order": max(rounds_within(meter, worst, worst) for meter in orders),
        "accounting = 'basic': what came out adds up": rounds_within(basic, worst, third),
        "accounting = 'renyi': prices of what came out": max(rounds_within(meter, worst, third) for meter in ours),
    }


def plot(target: Path) -> None:
    """The number of rounds against their worst case."""
    worst = [Fraction(float(each)).limit_denominator(10**6) for each in np.geomspace(0.001, 0.5, 40)]
    found = [ways(each) for each in worst]
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    axes = figure.subplots()
    styles = {
        "classic": ("--", "#888888"),
        "RDP": (":", "#b8860b"),
        "basic": ("-.", "#c0392b"),
        "renyi": ("-", "#1b6ca8"),
    }
    for name in found[0]:
        line, color = next(style for word, style in styles.items() if word in name)
        axes.loglog(
            [float(each) for each in worst], [each[name] for each in found], line, color=color, lw=2, label=name
        )
    axes.set(xlabel="worst case of a question, in ε; a third of it comes out", ylabel="questions that fit")
    axes.set_title("How many questions fit under ε = 1, δ = 10⁻⁶", fontsize=11)
    axes.grid(visible=True, which="major", color="#dddddd")
    axes.legend(frameon=False)
    figure.savefig(target, dpi=150)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    plot(folder / "what_fits.png")
