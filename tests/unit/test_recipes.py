import numpy as np
import pytest

import expost as xp
from expost import Cost, release_large


def test_large_entries_get_everything_that_is_left() -> None:
    ledger = xp.Ledger(epsilon=1)
    values = np.zeros(100)
    values[[7, 30]] = 1e6, -1e6
    large = release_large(ledger, values, threshold=5e5, at_most=20, sensitivity=1, label="weights")
    assert list(large.values) == [7, 30]
    assert large.values[30] == pytest.approx(-1e6, abs=1000)
    assert ledger.remaining == Cost(0)
    assert large.charged == Cost(1)
    assert large.release is not None
    assert large.release.charged > Cost(0.5)  # more than the half that was planned for it
    assert [entry.what for entry in ledger.entries()] == ["weights: find", "weights: values"]
    assert str(large).startswith("2 large entries (7: ")


def test_names_and_counts() -> None:
    ledger = xp.Ledger(epsilon=2)
    counts = {"flu": 100_000, "plague": 0, "cold": 200_000}
    large = release_large(
        ledger,
        counts,
        threshold=50_000,
        at_most=2,
        sensitivity=1,
        l1=1,
        epsilon=1,
        monotone=True,
        neighbours="add-remove",
    )
    assert set(large.values) == {"flu", "cold"}
    assert all(isinstance(value, int) for value in large.values.values())
    assert ledger.remaining == Cost(1)
    assert large.release is not None
    assert large.release.mechanism.sensitivity == 1  # type: ignore[attr-defined]


def test_nothing_found_costs_only_the_search() -> None:
    ledger = xp.Ledger(epsilon=1)
    large = release_large(ledger, np.zeros(50, np.int64), threshold=10**6, at_most=5, sensitivity=1)
    assert large.values == {}
    assert large.release is None
    assert large.charged == large.selection.charged < Cost(0.1)
    assert str(large).startswith("0 large entries")


def test_the_most_negative_integer_is_large() -> None:
    values = np.array([-(2**63), 0])
    large = release_large(xp.Ledger(epsilon=5), values, threshold=2**50, at_most=1, sensitivity=1)
    assert list(large.values) == [0]


def test_mistakes_are_free() -> None:
    ledger = xp.Ledger(epsilon=1)
    for selection in (0, 1, 2):
        with pytest.raises(xp.InvalidValue, match="selection is the share"):
            release_large(ledger, np.zeros(3), threshold=1, at_most=1, sensitivity=1, selection=selection)
    for values in (np.zeros((2, 2)), {"a": "many"}, np.array(["x"])):
        with pytest.raises(xp.InvalidValue):
            release_large(ledger, values, threshold=1, at_most=1, sensitivity=1)
    for changes in ({"l1": 0}, {"l1": -1}, {"l1": "x"}, {"sensitivity": 0.5}):
        with pytest.raises(xp.InvalidValue):
            release_large(ledger, np.full(9, 10**6), **{"threshold": 1, "at_most": 1, "sensitivity": 1, **changes})
    with pytest.raises(xp.InvalidValue, match=r"np\.asarray"):
        release_large(ledger, [1, 2], threshold=1, at_most=1, sensitivity=1)
    with pytest.raises(xp.BudgetExceeded):
        release_large(ledger, np.zeros(9), threshold=1, at_most=1, sensitivity=1, epsilon=2)
    assert ledger.spent == Cost(0)
    with pytest.raises(xp.BudgetExceeded, match="has ε 0 left"):
        release_large(xp.Ledger(epsilon=0), np.zeros(9), threshold=1, at_most=1, sensitivity=1)


def test_private_values_decide_nothing_about_the_release() -> None:
    """Whole numbers stay whole however large they are, and None is 0."""
    for extreme in (2**63 - 1, 2**63, 2**70, -(2**70), None):
        counts = {"a": extreme, "b": 10**7, "c": 10**7}
        large = release_large(xp.Ledger(epsilon=9), counts, threshold=10**6, at_most=3, sensitivity=1)
        assert all(isinstance(value, int) for value in large.values.values())
        assert {"b", "c"} <= set(large.values)


def test_monotone_entries_below_zero_are_never_large() -> None:
    """All entries grow with a record; the size of negative ones would shrink, and monotone noise be too little."""
    values = np.array([-(10**6), 10**6])
    large = release_large(
        xp.Ledger(epsilon=5), values, threshold=10**5, at_most=2, sensitivity=1, monotone=True, neighbours="add-remove"
    )
    assert list(large.values) == [1]
