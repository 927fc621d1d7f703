"""The ways to a median and to a mean on one array: how far off they are. For the tables in `docs/statistics.md`.

benchmarks/choices/means_and_medians.txt is what it printed last.

    python benchmarks/choices/means_and_medians.py | tee benchmarks/choices/means_and_medians.txt
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import expost as xp
from expost import mechanisms as mech

warnings.simplefilter("ignore", xp.errors.PaidAgainWarning)
RECORDS, RUNS = 20_000, 501
INCOMES = np.random.default_rng(0).lognormal(10, 1, size=RECORDS)
WIDE = (0, 1_000_000)
PUBLIC: Any = {"neighbours": "substitute"}


def asked(question: Any) -> Callable[[], xp.Release[Any]]:
    return lambda: xp.Ledger(epsilon=1, **PUBLIC).run(question, on=INCOMES, epsilon=1)


def of_records(mechanism: Any) -> Callable[[], xp.Release[Any]]:
    return lambda: xp.Ledger(epsilon=1, delta=1e-6).run(mechanism, on=INCOMES)


MEDIANS = {
    "Median": asked(xp.Median(bounds=WIDE)),
    "Median, interval=True": asked(xp.Median(bounds=WIDE, interval=True)),
    "Median, no bounds": asked(xp.Median()),
    "MedianOfRecords": of_records(mech.MedianOfRecords(epsilon=1, bounds=WIDE, **PUBLIC)),
    "QuantileLadder, within 2000": of_records(
        mech.QuantileLadder(quantile=0.5, within=2000, epsilon=0.999, bounds=WIDE, **PUBLIC)
    ),
    "StableMedian": of_records(mech.StableMedian.scaled(2**14, size=RECORDS, epsilon=1, delta=1e-6)),
}
MEANS = {
    "Mean": asked(xp.Mean(bounds=WIDE)),
    "MeanOfRecords": of_records(mech.MeanOfRecords(epsilon=1, bounds=WIDE)),
    "MeanOfRecords, no bounds": of_records(mech.MeanOfRecords(epsilon=1)),
    "TrimmedMean": of_records(mech.TrimmedMean(epsilon=1, bounds=WIDE, trim=0.05)),
}


def main() -> None:
    for truth, ways in ((np.median(INCOMES), MEDIANS), (INCOMES.mean(), MEANS)):
        print(f"truth {truth:,.0f}")
        for name, way in ways.items():
            found = [way() for _ in range(RUNS)]
            off = float(np.median([abs(float(each.value) - truth) for each in found]))
            charged = sum(each.charged.epsilon for each in found) / RUNS
            print(f"  {name:28} off by {off:8,.0f}   charged {charged:.2f}   bar {found[-1].value.error or 0:,.0f}")


if __name__ == "__main__":
    main()
