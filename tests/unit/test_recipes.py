"""What each recipe releases, charges and refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import expost as xp
from expost import Cost
from expost.mechanisms.stability.quantile_range import Bin
from expost.recipes import location_and_spread, refine_until, release_large, top_until, try_until_one_passes

pytestmark = pytest.mark.counted


def test_large_entries_get_everything_that_remains() -> None:
    ledger = xp.Ledger(epsilon=1)
    values = np.zeros(100)
    values[[7, 30]] = 1e6, -1e6
    large = release_large(ledger, values, threshold=5e5, at_most=20, sensitivity=1, epsilon="rest", label="weights")
    assert list(large.value) == [7, 30]
    assert large.value[30] == pytest.approx(-1e6, abs=1000)
    assert ledger.remaining == Cost(0)
    assert large.charged == Cost(1)
    assert large.releases[1].charged > Cost(0.5)  # more than the half that was planned for it
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
    assert set(large.value) == {"flu", "cold"}
    assert all(isinstance(value, int) for value in large.value.values())
    assert ledger.remaining == Cost(1)
    assert large.releases[1].mechanism.sensitivity == 1  # type: ignore[attr-defined]


def test_nothing_found_costs_only_the_search() -> None:
    ledger = xp.Ledger(epsilon=1)
    large = release_large(ledger, np.zeros(50, np.int64), threshold=10**6, at_most=5, sensitivity=1, epsilon="rest")
    assert large.value == {}
    assert len(large.releases) == 1
    assert large.charged == large.releases[0].charged < Cost(0.1)
    assert str(large).startswith("no large entries")


def test_the_most_negative_integer_is_large() -> None:
    values = np.array([-(2**63), 0])
    large = release_large(xp.Ledger(epsilon=5), values, threshold=2**50, at_most=1, sensitivity=1, epsilon="rest")
    assert list(large.value) == [0]


def test_mistakes_are_free() -> None:
    ledger = xp.Ledger(epsilon=1)
    for selection in (0, 1, 2):
        with pytest.raises(xp.InvalidValue, match="selection_share is a share"):
            release_large(
                ledger, np.zeros(3), threshold=1, at_most=1, sensitivity=1, epsilon="rest", selection_share=selection
            )
    for values in (np.zeros((2, 2)), {"a": "many"}, np.array(["x"])):
        with pytest.raises(xp.InvalidValue):
            release_large(ledger, values, threshold=1, at_most=1, sensitivity=1, epsilon="rest")
    for changes in ({"l1": 0}, {"l1": -1}, {"l1": "x"}, {"sensitivity": 0.5}):
        with pytest.raises(xp.InvalidValue):
            release_large(
                ledger,
                np.full(9, 10**6),
                **{"threshold": 1, "at_most": 1, "sensitivity": 1, "epsilon": "rest", **changes},
            )
    with pytest.raises(xp.InvalidValue, match=r"np\.asarray"):
        release_large(ledger, [1, 2], threshold=1, at_most=1, sensitivity=1, epsilon="rest")
    with pytest.raises(xp.BudgetExceeded):
        release_large(ledger, np.zeros(9), threshold=1, at_most=1, sensitivity=1, epsilon=2)
    assert ledger.spent == Cost(0)
    with pytest.raises(xp.BudgetExceeded, match="has ε 0 remaining"):
        release_large(xp.Ledger(epsilon=0), np.zeros(9), threshold=1, at_most=1, sensitivity=1, epsilon="rest")


def test_private_values_decide_nothing_about_the_release() -> None:
    """Whole numbers stay whole however large they are, and None is 0."""
    for extreme in (2**63 - 1, 2**63, 2**70, -(2**70), None):
        counts = {"a": extreme, "b": 10**7, "c": 10**7}
        large = release_large(xp.Ledger(epsilon=9), counts, threshold=10**6, at_most=3, sensitivity=1, epsilon="rest")
        assert all(isinstance(value, int) for value in large.value.values())
        assert {"b", "c"} <= set(large.value)


def test_monotone_entries_below_zero_are_never_large() -> None:
    """All entries grow with a record; the size of negative ones would shrink, and monotone noise be too little."""
    values = np.array([-(10**6), 10**6])
    large = release_large(
        xp.Ledger(epsilon=5), values, threshold=10**5, at_most=2, sensitivity=1, epsilon="rest", monotone=True,
        neighbours="add-remove",
    )  # fmt: skip
    assert list(large.value) == [1]


DATA = np.random.default_rng(0).normal(10, 2, size=20_000)


def seeded(epsilon: float = 4, seed: int = 1) -> xp.Ledger:
    return xp.Ledger(epsilon=epsilon, delta=1e-5, noise=xp.SeededNoise(seed))


def test_the_median_gets_all_that_remains() -> None:
    ledger = seeded()
    both = location_and_spread(ledger, DATA, epsilon="rest", delta="rest", fallback=5, label="heights")
    assert isinstance(both.value.spread, Bin)
    assert both.value.spread[:1] == (1,)
    assert both.releases[0].charged.epsilon == 1
    assert both.releases[1].reserved.epsilon == 3
    assert abs(both.value.location - 10) < 0.5
    assert both.charged == ledger.spent == ledger.limit
    assert str(both).startswith("median ")
    assert [entry.label for entry in ledger.entries()] == ["heights: spread", "heights: location"]


def test_with_the_paper_s_analysis_more_remains_when_the_range_was_withheld() -> None:
    """3ε₁ is reserved; a value costs all of it, ⊥ only 2ε₁, and the median gets ε₁ more."""
    spread = xp.mechanisms.StableNoisyInterquartileRange(epsilon=3, delta="5e-6")
    answered = location_and_spread(seeded(), DATA, epsilon="rest", delta="rest", fallback=5, spread=spread)
    assert not answered.releases[0].withheld
    assert answered.releases[1].reserved.epsilon == 1
    two_values = np.array([0.0, 1.0] * 7)
    withheld = location_and_spread(seeded(), two_values, epsilon="rest", delta="rest", fallback=5, spread=spread)
    assert withheld.releases[0].withheld
    assert withheld.releases[1].reserved.epsilon == 2


def test_a_range_of_zero_falls_back() -> None:
    both = location_and_spread(seeded(), np.full(1000, 3.0), epsilon="rest", delta="rest", fallback=1)
    assert isinstance(both.value.spread, Bin)
    assert both.value.spread[1:] == (0.0, 0.0)
    assert not both.releases[1].withheld


def test_what_does_not_fit_is_refused_before_anything_is_run() -> None:
    ledger = seeded(epsilon=1)
    for epsilon, error in ((2, xp.BudgetExceeded), (1, xp.InvalidValue)):
        spread = xp.mechanisms.StableInterquartileRange(epsilon=epsilon, delta=1e-6)
        with pytest.raises(error):
            location_and_spread(ledger, DATA, epsilon="rest", delta="rest", fallback=5, spread=spread)
    with pytest.raises(xp.InvalidValue, match="public guess"):
        location_and_spread(ledger, DATA, epsilon="rest", delta="rest", fallback=0)
    with pytest.raises(xp.InvalidValue, match="one-dimensional"):
        location_and_spread(ledger, DATA[None, :], epsilon="rest", delta="rest", fallback=1)
    assert ledger.spent == xp.Cost(0)


def test_extreme_slack_is_refused_before_anything_is_charged() -> None:
    data = np.array([1.0, 2.0, 3.0, 4.0])
    poor = xp.Ledger(epsilon=2, delta=0.1)
    for slack in ("1e30", "1e-30"):
        with pytest.raises(xp.InvalidValue, match="slack"):
            location_and_spread(poor, data, epsilon="rest", delta="rest", fallback=1, slack=slack)
    assert not poor.spent


def records(size: int = 3000) -> Any:
    """Features 0 and 1 know nothing, 2 and 3 everything."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(size, 4))
    return np.column_stack([features, features[:, 2] > features[:, 3]])


def candidate(features: tuple[int, ...]) -> xp.Mechanism:
    return xp.mechanisms.TestedLogisticRegression(epsilon=2, test_share=0.1, threshold=0.93, norm=2, features=features)


def test_feature_sets_in_turn() -> None:
    ledger = xp.Ledger(epsilon=3, noise=xp.SeededNoise(2))
    tried = []

    def candidates() -> Any:
        for features in ((0,), (1,), (0, 1), (2, 3), (0, 2)):
            tried.append(features)
            yield candidate(features)

    found = try_until_one_passes(ledger, candidates(), records(), label="features")
    assert tried == [(0,), (1,), (0, 1), (2, 3)]
    assert isinstance(found.value, xp.mechanisms.LinearModel)
    assert found.value.features == (2, 3)
    assert found.charged == ledger.spent == xp.Cost("2.6")
    assert str(found) == "4 tried, one passed · charged ε 2.6"
    assert [entry.label for entry in ledger.entries()] == [f"features: {i}" for i in range(1, 5)]


def test_the_budget_ends_it() -> None:
    ledger = xp.Ledger(epsilon="2.3", noise=xp.SeededNoise(2))
    found = try_until_one_passes(ledger, [candidate((0,))] * 10, records())
    assert found.exhausted
    assert found.withheld
    assert len(found.releases) == 2
    assert ledger.remaining == xp.Cost("1.9")
    assert str(found) == "2 tried, the budget ended it · charged ε 0.4"


def test_nothing_to_try_and_nonsense() -> None:
    ledger = xp.Ledger(epsilon=1)
    nothing = try_until_one_passes(ledger, [], None)
    assert (nothing.value, nothing.releases, nothing.exhausted) == (xp.WITHHELD, (), False)
    assert nothing.charged == nothing.refunded == xp.Cost(0)
    with pytest.raises(xp.InvalidValue, match="mechanisms"):
        try_until_one_passes(ledger, [1], None)


def test_a_stated_budget_leaves_the_rest_alone() -> None:
    ledger = seeded()
    both = location_and_spread(ledger, DATA, epsilon=1, delta=1e-6, fallback=5)
    assert both.charged == ledger.spent == Cost(1, 1e-6)
    assert ledger.remaining == Cost(3, 9e-6)
    with pytest.raises(xp.BudgetExceeded):
        location_and_spread(ledger, DATA, epsilon=5, delta=1e-6, fallback=5)
    assert ledger.spent == Cost(1, 1e-6)


@pytest.mark.parametrize("arrays", [False, True])
def test_labels_are_asked_for_until_the_shares_end(arrays: bool) -> None:
    counts: Any = {"a": 9000, "b": 8000, "c": 7000, "rare": 1}
    data = (np.array(list(counts)), np.array(list(counts.values()))) if arrays else counts
    ledger = xp.Ledger(epsilon=10, delta=1e-3)
    found = top_until(ledger, data, k=6, epsilon=6, delta=1e-6, label="cities")
    assert (found.value, found.exhausted) == (("a", "b", "c"), False)  # 3 labels and their end, then two ends
    assert [release.part for release in found.releases] == [3, 0, 0]
    assert found.charged == Cost(6, 3e-6)
    assert str(found).startswith("3 of 6 labels in 3 calls")
    assert [entry.what for entry in ledger.entries()] == ["cities: 1", "cities: 2", "cities: 3"]


def test_labels_are_asked_for_until_there_are_enough_or_delta_ends() -> None:
    counts = {f"{i}": 1000 * (i + 1) for i in range(50)}
    enough = top_until(xp.Ledger(epsilon=9, delta=1e-6), counts, k=2, epsilon="rest", delta=1e-6)
    assert (len(enough.value), len(enough.releases)) == (2, 1)
    ended = top_until(xp.Ledger(epsilon=9, delta=2e-6), {"a": 9000}, k=6, epsilon=6, delta=1e-6)
    assert (ended.value, ended.exhausted, len(ended.releases)) == (("a",), True, 2)
    with pytest.raises(xp.BudgetExceeded):
        top_until(xp.Ledger(epsilon=9), counts, k=2, epsilon=1, delta=1e-6)


def near(data: Any, answer: Any) -> int:
    return -abs(int(data) - int(answer))


@pytest.mark.parametrize("accounting", ["basic", "renyi"])
def test_a_stop_that_reads_data_is_charged(accounting: Any) -> None:
    ledger = xp.Ledger(epsilon=4, delta=1e-5, accounting=accounting)
    reduction = xp.NoiseReduction(epsilon=1, sensitivity=1, levels=12, ratio=2)
    test = xp.SparseVector(threshold=-100, at_most=1, epsilon=1, sensitivity=1)
    found = refine_until(ledger, reduction, test, 5_000, score=near, label="visits")
    answers, asked = found.releases
    assert asked.part[0] == 1  # type: ignore[index]
    assert abs(found.value - 5_000) < 150
    assert answers.part == len(asked.value) < 12
    assert found.summary == f"step {answers.part}, which passed its test"
    assert answers.charged.epsilon == reduction.guarantee.epsilon_of(answers.part)


def test_a_stop_that_is_never_reached_pays_for_the_last_level() -> None:
    reduction = xp.NoiseReduction(epsilon=1, sensitivity=1, levels=3, ratio=2)
    test = xp.SparseVector(threshold=10**6, at_most=1, epsilon=1, sensitivity=1)
    ledger = xp.Ledger(epsilon=2)
    found = refine_until(ledger, reduction, test, 5_000, score=near)
    assert found.releases[0].charged == Cost(1)
    assert found.releases[1].charged < Cost(1)
    assert found.summary == "step 3, which did not pass its test"
    with pytest.raises(xp.BudgetExceeded):
        refine_until(xp.Ledger(epsilon=1), reduction, test, 5_000, score=near)


def test_large_entries_after_the_last_one_allowed_were_not_compared() -> None:
    counts = {"a": 10**6, "b": 0, "c": 10**6, "d": 10**6, "e": 10**6}
    large = release_large(xp.Ledger(epsilon=9), counts, threshold=5e5, at_most=2, sensitivity=1, epsilon="rest")
    assert list(large.value) == ["a", "c"]
    assert "; stopped after 2 (at_most), 2 not compared" in str(large)
    assert np.array(list(counts))[large.releases[0].value.not_compared].tolist() == ["d", "e"]
