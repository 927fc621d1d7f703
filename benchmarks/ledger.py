"""N charges against a limit: ours (reserve, settle, an entry kept) and the peers' accountants, in one run.

A peer's charge is what its users call for one mechanism: OpenDP's privacy filter answers a query with a
measurement on constant data, diffprivlib's accountant spends an (ε, δ).
"""

from __future__ import annotations

import time
from statistics import median

import expost as xp
from report import at_least, at_most, peer, report

CHARGES = 4_000
FEW, MANY = 1_000, 100_000
REPEATS = 5


def seconds_for(charges: int) -> float:
    ledger = xp.Ledger(epsilon=10)
    guarantee = xp.Guarantee({"answered": "0.00002", "nothing": 0})
    start = time.perf_counter()
    for _ in range(charges):
        with ledger.reserve(guarantee) as spending:
            spending.settle("answered")
    elapsed = time.perf_counter() - start
    assert ledger.spent == xp.Cost("0.00002") * charges
    return elapsed


def main() -> None:
    ours = median(seconds_for(CHARGES) for _ in range(REPEATS))
    opendp = peer("opendp", "opendp_filter.py", CHARGES)
    diffprivlib = peer("diffprivlib", "diffprivlib_accountant.py", CHARGES)
    each_of_few = median(seconds_for(FEW) for _ in range(REPEATS)) / FEW * 1e6
    each_of_many = median(seconds_for(MANY) for _ in range(REPEATS)) / MANY * 1e6
    report(
        "ledger",
        [
            at_least(f"{CHARGES} charges, OpenDP 0.16 privacy filter", ours, opendp, "s", opendp / ours, 200),
            at_least(f"{CHARGES} charges, diffprivlib 0.6", ours, diffprivlib, "s", diffprivlib / ours, 200),
            at_most(
                f"one charge of {MANY} (ours) and of {FEW} (peer)",
                each_of_many,
                each_of_few,
                "µs",
                each_of_many / each_of_few,
                1.5,
            ),
        ],
    )


if __name__ == "__main__":
    main()
