"""What type checkers know of releases and interactions. mypy reads this file; an unused ignore is an error."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import expost as xp
from expost.mechanism import Withheld
from expost.mechanisms.iterative import IterativeInteraction
from expost.mechanisms.sparse_vector.adaptive import AdaptiveComparisons
from expost.mechanisms.sparse_vector.sparse_vector import Comparisons


def runs(ledger: xp.Ledger, values: NDArray[np.float64]) -> None:
    """A release has the type of the mechanism's output."""
    coin = xp.mechanisms.Coin(epsilon=1, sensitivity=1)
    assert_type(ledger.run(coin, on=5), xp.Release[int | Withheld])
    ledger.run(coin, on="five")  # type: ignore[misc]
    chosen = ledger.run(xp.mechanisms.Exponential(epsilon=1, sensitivity=1), on=values)
    assert_type(chosen.value, int)
    assert_type(chosen.entry, xp.ledger.Entry)
    assert_type(chosen.replayed, bool)
    model = xp.mechanisms.OutputPerturbation(epsilon=1, norm=1)
    assert_type(ledger.run(model, on=values).value, xp.mechanisms.LinearModel)
    assert_type(
        ledger.run(xp.mechanisms.StableMedian(epsilon=1, delta=1e-6, proposed=1), on=values).value, float | Withheld
    )
    assert_type(ledger.run(xp.Laplace(epsilon=1, sensitivity=1), on=5).value, Any)
    ledger.run(xp.Laplace(epsilon=1, sensitivity=1), on="five")  # type: ignore[misc]


def wraps(ledger: xp.Ledger, test: xp.mechanisms.ModelTest, proposal: xp.mechanisms.Proposal[int]) -> None:
    """A mechanism around another one has its type of output, or none."""
    tested = xp.mechanisms.Tested(mechanism=xp.mechanisms.OutputPerturbation(epsilon=1, norm=1), test=test)
    assert_type(ledger.run(tested, on=((), ())), xp.Release[xp.mechanisms.LinearModel | Withheld])
    stable = xp.mechanisms.ProposeTestRelease(proposal=proposal, test_epsilon=1, delta=1e-6)
    assert_type(ledger.run(stable, on=5), xp.Release[int | Withheld])


def opens(ledger: xp.Ledger) -> None:
    """Each mechanism has its own way of asking."""
    sparse = xp.SparseVector(threshold=5, at_most=1, epsilon=1, sensitivity=1)
    assert_type(ledger.open(sparse), Comparisons)
    adaptive = xp.mechanisms.AdaptiveSparseVector(threshold=5, at_most=1, epsilon=1, sensitivity=1)
    assert_type(ledger.open(adaptive), AdaptiveComparisons)
    steps = (xp.mechanisms.Coin(epsilon=1, sensitivity=1),)
    assert_type(ledger.open(xp.Iterative(steps=steps, stops=(1,), delta=1e-6)), IterativeInteraction)
    with ledger.open(sparse) as ask:
        assert_type(ask, Comparisons)
    ledger.open(xp.Cost(1))  # type: ignore[arg-type]


def unknown(ledger: xp.Ledger, mechanism: xp.Mechanism) -> None:
    """A mechanism without parameters takes and publishes anything."""
    assert_type(ledger.run(mechanism, on="anything").value, Any)
