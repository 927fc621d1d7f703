"""Adapters: stops planned in the time of dp-accounting's accountant, and our hook in a step of Opacus."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import dp_accounting
from dp_accounting.pld import PLDAccountant

from expost.adapters import EventSteps
from report import at_most, peer, report

STEP = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
STEPS, STOPS, DELTA = 2000, (400, 800, 1200, 1600, 2000), 1e-5


def ours() -> Any:
    return EventSteps(event=STEP, count=STEPS, stops=STOPS, delta=DELTA, neighbours="add-remove").guarantee


def theirs() -> Any:
    return PLDAccountant().compose(dp_accounting.SelfComposedDpEvent(STEP, STEPS)).get_epsilon(DELTA)


def seconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def main() -> None:
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(6)][1:]
    planned, composed = (median(times) for times in zip(*pairs, strict=True))
    hook = peer("opacus", "opacus_hook.py")
    report(
        "adapters",
        [
            at_most(
                "dp-accounting: 2,000 steps with 5 stops planned, against its PLD of all steps",
                planned, composed, "s", planned / composed, 1.5,
            ),
            at_most(
                "Opacus: our hook, against a step of a network with 102,000 parameters and batches of 64",
                hook["hook"], hook["step"], "s", hook["hook"] / hook["step"], 0.01,
            ),
        ],
    )  # fmt: skip


if __name__ == "__main__":
    main()
