"""Table 1: from how many 0.1-DP mechanisms on the optimal composition beats the basic one, for a given δ.

Kairouz, Oh and Viswanath give k mechanisms of ε the guarantees ((k − 2i)ε, δ_i); the first that beats kε is i = 1.
Its δ falls with k, so the table asks for the least k at which it is small enough. All of it is exact here.

``python -m paper.table1 FOLDER`` writes table1.json and, with matplotlib, table1.png.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

from expost.accounting import optimal_composition

PRINTED = {5: 17, 6: 20, 7: 24, 8: 27, 9: 31, 10: 35, 11: 38, 12: 42}
"""What the paper prints, by the digits of δ."""
EPSILON = Fraction(1, 10)


def delta_of(count: int) -> Fraction:
    """An upper bound on the δ at (count − 2)ε, tight to dozens of digits."""
    return optimal_composition([(EPSILON, 0)] * count).delta((count - 2) * EPSILON).upper


def cutoff(digits: int) -> int:
    """The least number of mechanisms whose δ is at most 10^−digits."""
    count = 2
    while delta_of(count) > Fraction(1, 10**digits):
        count += 1
    return count


def data() -> dict[str, Any]:
    """The table as printed and as computed, and δ below, at and above the computed number."""
    found = [cutoff(digits) for digits in PRINTED]
    return {
        "digits of δ": list(PRINTED),
        "printed": list(PRINTED.values()),
        "computed": found,
        "δ at one less than computed": [float(delta_of(count - 1)) for count in found],
        "δ at computed": [float(delta_of(count)) for count in found],
        "mechanisms": list(range(10, 46)),
        "δ": [float(delta_of(count)) for count in range(10, 46)],
    }


def plot(found: dict[str, Any], path: Path) -> None:
    """Draw δ against the number of mechanisms, and both versions of the table on it. Needs matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.plot(
        found["mechanisms"], found["δ"], ".-", color="0.6", linewidth=1, label="least δ at which the theorem saves ε"
    )
    wanted = [10.0**-digits for digits in found["digits of δ"]]
    axes.hlines(wanted, 10, 45, color="0.85", linewidth=0.8, zorder=0)
    axes.plot(found["computed"], wanted, "o", color="tab:blue", label="computed")
    axes.plot(found["printed"], wanted, "x", color="tab:red", label="printed in the paper")
    axes.set(yscale="log", xlabel="0.1-DP mechanisms composed", ylabel="δ", xlim=(10, 45), yticks=wanted)
    axes.set_title("Table 1: from how many mechanisms on advanced composition saves ε")
    axes.legend(loc="lower left", framealpha=1, edgecolor="none")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(folder: str) -> None:
    """Write the data and the plot."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    found = data()
    (target / "table1.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    plot(found, target / "table1.png")
    print(target / "table1.json", target / "table1.png")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
