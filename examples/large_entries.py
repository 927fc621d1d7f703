"""The large entries of a histogram: find them with a sparse vector, release them with everything that remains.

The private data: visits by diagnosis, of which few are common. At most twenty will be released; four are really
large, so most of what was reserved for finding twenty is refunded and spent on the values.
"""

import numpy as np

import expost as xp

COMMON = {"cold": 48_210, "flu": 31_077, "back pain": 27_540, "allergy": 19_803}
NAMES = [*COMMON, *(f"rare disease {i}" for i in range(1, 97))]


def main() -> None:
    """Release the large counts, and say what they would have looked like without refunds."""
    counts = {name: COMMON.get(name, i % 40) for i, name in enumerate(NAMES)}
    ledger = xp.Ledger(epsilon=0.1, name="visits", neighbours="substitute", unit="patient")
    large = xp.recipes.release_large(
        ledger,
        counts,
        threshold=10_000,
        at_most=20,
        sensitivity=1,
        epsilon="rest",
        neighbours="substitute",
        label="common diagnoses",
    )
    for name, value in large.value.items():
        print(f"{name:12} {value:7,}   (really {counts[name]:,})")

    print(f"\n{ledger.statement()}\n")
    noise = len(large.value) / large.releases[-1].charged.epsilon
    print(f"Laplace scale {noise:.0f} on each value; without refunds it would have been {20 / 0.05:.0f}.")
    print(f"Found {len(large.value)} of {np.sum([count > 10_000 for count in counts.values()])} large counts.")


if __name__ == "__main__":
    main()
