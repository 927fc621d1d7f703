"""Trying models until one passes: failures cost the test only, and the ledger has the last word."""

from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.recipes import Attempts, try_until_one_passes


def records(size: int = 3000) -> Any:
    """Features 0 and 1 know nothing, 2 and 3 everything."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(size, 4))
    return np.column_stack([features, features[:, 2] > features[:, 3]])


def candidate(features: tuple[int, ...]) -> xp.Mechanism:
    return xp.TestedLogisticRegression(epsilon=2, test_epsilon=0.2, threshold=0.93, norm=2, features=features)


def test_feature_sets_in_turn() -> None:
    ledger = xp.Ledger(epsilon=3, noise=xp.SeededNoise(2))
    tried = []

    def candidates() -> Any:
        for features in ((0,), (1,), (0, 1), (2, 3), (0, 2)):
            tried.append(features)
            yield candidate(features)

    found = try_until_one_passes(ledger, candidates(), records(), label="features")
    assert tried == [(0,), (1,), (0, 1), (2, 3)]
    assert found.release is not None
    assert found.release.value.features == (2, 3)
    assert found.charged == ledger.spent == xp.Cost("2.6")
    assert str(found) == "4 tried, one passed · charged ε 2.6"
    assert [entry.label for entry in ledger.entries()] == [f"features: {i}" for i in range(1, 5)]


def test_the_budget_ends_it() -> None:
    ledger = xp.Ledger(epsilon="2.3", noise=xp.SeededNoise(2))
    found = try_until_one_passes(ledger, [candidate((0,))] * 10, records())
    assert found.exhausted
    assert found.release is None
    assert len(found.releases) == 2
    assert ledger.remaining == xp.Cost("1.9")
    assert str(found) == "2 tried, the budget ended it · charged ε 0.4"


def test_nothing_to_try_and_nonsense() -> None:
    ledger = xp.Ledger(epsilon=1)
    assert try_until_one_passes(ledger, [], None) == Attempts((), exhausted=False)
    assert Attempts((), exhausted=False).charged == xp.Cost(0)
    with pytest.raises(xp.InvalidValue, match="mechanisms"):
        try_until_one_passes(ledger, [1], None)
