"""Ledgers with several meters: how many interactions fit, how much noise counts need, and what a charge costs.

Everything is counted in ledgers with default settings, under one limit. An interaction is a sparse vector whose worst
case is ε = 0.01, of which a third is realised: one answer of at most four is positive.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from statistics import median

import expost as xp
from expost.accounting import renyi
from report import Row, at_least, at_most, peer, report

EPSILON, DELTA = 1, "1e-6"
INTERACTION = xp.SparseVector(threshold=0, at_most=4, epsilon="0.01", sensitivity=1, threshold_share="1/9")
COUNTS, REPEATS = 1_000, 9
CHARGES, DURABLE = 2_000, 400


def new(accounting: str) -> xp.Ledger:
    return xp.Ledger(EPSILON, DELTA, accounting=accounting)  # type: ignore[arg-type]


# ---- interactions


def interactions(accounting: str) -> int:
    """How many fit, each opened, asked and closed."""
    ledger, done = new(accounting), 0
    while True:
        try:
            interaction = ledger.open(INTERACTION)
        except xp.BudgetExceeded:
            return done
        with interaction as ask:
            ask(10**9)
            ask(-(10**9))
        done += 1


def worst_cases() -> int:
    """How many fit if each costs its worst case, at the best of several orders, with all of δ."""
    uniform = xp.Guarantee.uniform(INTERACTION.guarantee.worst_case.exact_epsilon)
    orders = [Fraction(k, 4) for k in range(40, 160)]
    return max(
        int(renyi.capacity(order, EPSILON, DELTA) * 10**12 // renyi.tangent_prices(uniform, order).worst)
        for order in orders
    )


def fitting() -> list[Row]:
    ours, basic, classic = interactions("renyi"), interactions("basic"), worst_cases()
    return [
        at_least(
            "sparse vector interactions that fit, basic sum with refunds", ours, basic, "interactions", ours / basic, 10
        ),
        at_least(
            "sparse vector interactions that fit, RDP of worst cases", ours, classic, "interactions", ours / classic, 5
        ),
    ]


# ---- Gaussian noise


def noise_that_fits() -> float:
    """The least noise at which a ledger answers all counts."""
    low, high = Fraction(1, 1000), Fraction(1)

    def fits(epsilon: Fraction) -> bool:
        return new("renyi").quote([xp.Gaussian(epsilon=epsilon, delta=DELTA, sensitivity=1)] * COUNTS).fits

    while high - low > low / 10**5:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    count, ledger = xp.Gaussian(epsilon=low, delta=DELTA, sensitivity=1), new("renyi")
    for _ in range(COUNTS):
        ledger.run(count, on=0)
    squared = count.gaussian_prices().worst
    return float((10**12 / squared) ** 0.5)


def normal_noise() -> Row:
    ours, opendp = noise_that_fits(), peer("opendp", "opendp_zcdp.py", COUNTS, EPSILON, DELTA)
    return at_most(f"noise of {COUNTS:,} Gaussian counts, OpenDP 0.16 zCDP", ours, opendp, "σ", ours / opendp, 0.97)


# ---- what a charge costs, in processor time


def seconds_each(ledger: xp.Ledger, times: int) -> float:
    guarantee = INTERACTION.guarantee
    part = guarantee.parts[3]
    ledger.reserve(guarantee).settle(part)
    start = time.process_time()
    for _ in range(times):
        ledger.reserve(guarantee).settle(part)
    return (time.process_time() - start) / times


def charge(where: str, make: Callable[[str], xp.Ledger], times: int) -> Row:
    """The median of pairs that are measured one after the other."""
    pairs = [(seconds_each(make("renyi"), times), seconds_each(make("basic"), times)) for _ in range(REPEATS)]
    ours, basic = (median(times) * 1e6 for times in zip(*pairs, strict=True))
    ratio = median(one / other for one, other in pairs)
    return at_most(f"a charge, {where}, basic sum", ours, basic, "µs", ratio, 1.5)


def large(accounting: str) -> xp.Ledger:
    return xp.Ledger(1000, DELTA, accounting=accounting)  # type: ignore[arg-type]


def charges() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        names = iter(range(10**6))

        def durable(accounting: str) -> xp.Ledger:
            return xp.Ledger.create(
                f"sqlite:///{folder}/{next(names)}.db", "study", 1000, DELTA, neighbours="add-remove", unit="person",
                accounting=accounting,  # type: ignore[arg-type]
            )  # fmt: skip

        return [charge("in memory", large, CHARGES), charge("SQLite", durable, DURABLE), reading()]


def reading() -> Row:
    """What was spent so far, read after every charge."""

    def seconds(ledger: xp.Ledger) -> float:
        guarantee = INTERACTION.guarantee
        spending, read = 0.0, 0.0
        for _ in range(CHARGES):
            ledger.reserve(guarantee).settle(guarantee.parts[3])
            start = time.process_time()
            spending += ledger.spent.epsilon
            read += time.process_time() - start
        return read / CHARGES

    pairs = [(seconds(large("renyi")), seconds(large("basic"))) for _ in range(REPEATS)]
    ours, basic = (median(times) * 1e6 for times in zip(*pairs, strict=True))
    ratio = median(one / other for one, other in pairs)
    return at_most("reading ε spent so far, basic sum", ours, basic, "µs", ratio, 1.1)


if __name__ == "__main__":
    report("renyi", [*fitting(), normal_noise(), *charges()])
