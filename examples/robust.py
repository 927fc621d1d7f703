"""Where the data lies and how far it spreads, without bounds; and what the paper's analyses would have charged.

The inter-quartile range comes first. What it did not cost goes to the median.
"""

import numpy as np

import expost as xp


def main() -> None:
    """Location and spread of skewed data with a few absurd values, and a refusal."""
    incomes = np.random.default_rng(0).lognormal(10, 0.5, size=50_000)  # the private data
    incomes[:20] = [np.inf, -1e300, np.nan, 0.0] * 5
    ledger = xp.Ledger(epsilon=1, delta=1e-5, name="incomes", neighbours="substitute", unit="person")
    print(
        xp.recipes.location_and_spread(
            ledger, on=incomes, epsilon="rest", delta="rest", fallback=10_000, label="incomes"
        )
    )
    print(f"\n{ledger.statement()}\n")

    print("Without bounds and without a δ, a mean pays for the range that it needs, and no more:")
    print(f"  {xp.Ledger(epsilon=1).run(xp.mechanisms.MeanOfRecords(epsilon=1), on=incomes)}\n")

    print("Charged for the inter-quartile range with ε = 0.25 for each test:")
    for what, data in (("stable", incomes), ("unstable", incomes[:30])):
        fresh = xp.Ledger(epsilon=10, delta=1e-3)
        ours = fresh.run(xp.mechanisms.StableInterquartileRange(epsilon=0.5, delta=1e-6), on=data)
        one = fresh.run(xp.mechanisms.StableNoisyInterquartileRange(epsilon=0.75, delta=1e-6), on=data)
        print(f"  {what} data: {ours.charged.epsilon_text} ours, {one.charged.epsilon_text} by the paper's analysis")


if __name__ == "__main__":
    main()
