"""A mechanism by group: one charge, the guarantee exactly with a control, and what is refused."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.verify import check, tabulate

NOISE = xp.SeededNoise(2)
MEDIAN = xp.mechanisms.MedianOfRecords(epsilon=1, bounds=(0, 9), neighbours="add-remove")
DATA = {"a": np.array([1, 2, 3]), "b": np.array([], np.int64)}


def by_group(**changed: Any) -> xp.mechanisms.ByGroup:
    return xp.mechanisms.ByGroup(**{"mechanism": MEDIAN, "groups": ("a", "b"), "split": "value", **changed})


def test_groups_cost_what_one_costs() -> None:
    ledger = xp.Ledger(epsilon=3)
    release = ledger.run(by_group(), on=DATA)
    assert set(release.value) == {"a", "b"}
    assert release.entry.charged == xp.Cost(1)
    means = xp.mechanisms.ByGroup(
        mechanism=xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(0, 9)), groups=["a", "b"], split="record"
    )
    release = xp.Ledger(epsilon=1).run(means, on={"a": np.ones(100), "b": np.full(7, 3)})
    assert str(release).count("records clamped to") == 2
    assert release.entry.charged == xp.Cost(1)


def test_what_a_group_did_not_use_is_refunded() -> None:
    ladder = xp.mechanisms.QuantileLadder(quantile=0.5, within=9, epsilon=1, bounds=(0, 9), neighbours="add-remove")
    groups = by_group(mechanism=ladder)
    output = {"a": ladder.sample(np.full(5000, 4), NOISE), "b": ladder.sample(np.full(5000, 4), NOISE)}
    parts = [ladder.part_of(output[group]) for group in ("a", "b")]
    paid = max(ladder.guarantee.epsilon_of(part) for part in parts)
    assert groups.guarantee.epsilon_of(groups.part_of(output)) == paid < 1


@pytest.mark.slow
def test_the_guarantee_holds_and_half_of_it_does_not() -> None:
    """Randomised response for one record of each group: all data, all of the code's own draws."""
    coin = xp.mechanisms.RandomizedResponse(epsilon=1, choices=2)
    groups = by_group(mechanism=coin, split="record")
    data = {pair: {"a": pair[0], "b": pair[1]} for pair in product((0, 1), repeat=2)}
    pairs = [(x, y) for x in data for y in data if sum(a != b for a, b in zip(x, y, strict=True)) == 1]
    missing = Fraction(1, 100)

    class Hashable(xp.Mechanism[Any, Any]):
        guarantee = groups.guarantee

        def part_of(self, output: Any) -> Any:
            return "released"

        def sample(self, data: Any, noise: xp.noise.NoiseSource) -> Any:
            return tuple(groups.sample(data, noise).values())

    table = tabulate(Hashable(), data, pairs, missing=missing)
    assert check(table, xp.Guarantee.uniform(1, missing * 10)).holds is not False
    assert check(table, xp.Guarantee.uniform("0.5", missing * 10)).holds is False


@pytest.mark.parametrize(
    "wrong",
    [
        {"groups": ()},
        {"groups": ("a", "a")},
        {"groups": (1.5,)},
        {"groups": "ab"},
        {"split": "other"},
        {"mechanism": 3},
        {"mechanism": xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(0, 1))},  # substitution, split by value
    ],
)
def test_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(xp.InvalidValue):
        by_group(**wrong)


@pytest.mark.parametrize("data", [np.zeros(3), {"a": np.zeros(3)}, {**DATA, "c": np.zeros(3)}, {**DATA, "b": 3}])
def test_data_is_refused_before_any_charge(data: Any) -> None:
    ledger = xp.Ledger(epsilon=1)
    with pytest.raises(xp.InvalidValue):
        ledger.run(by_group(), on=data)
    assert ledger.remaining.epsilon == 1
