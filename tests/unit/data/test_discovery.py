"""Discovered keys: the hockey stick of the whole output, for all that a unit can do to a few keys."""

from itertools import product
from math import exp, sqrt
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

import expost as xp
from duck import remembering
from expost.data.discovery import Discovered, leak
from expost.recipes import top_until

pytestmark = pytest.mark.slow
Law = NDArray[np.float64]


def table(unit: Any, neighbours: str = "add-remove", rows: str = "SELECT NULL, NULL") -> xp.PrivateTable:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (person VARCHAR, city VARCHAR)")
    connection.execute(f"INSERT INTO t {rows}")
    return xp.read(connection, table="t", unit=unit, neighbours=neighbours)


def law(count: int, rate: float, threshold: int, reach: int = 80) -> Law:
    """Of one key: the probability of each noisy count from the threshold on, and last, that it is not released."""
    if not count:
        return np.array([0.0] * reach + [1.0])
    values = np.arange(threshold, threshold + reach) - count
    mass = np.exp(-rate * np.abs(values)) * (1 - exp(-rate)) / (1 + exp(-rate))
    return np.append(mass, 1 - mass.sum())


def hockey_stick(counts: tuple[int, ...], others: tuple[int, ...], mechanism: Discovered) -> float:
    """Σ (P − e^ε·Q)₊ over the outputs on two tables with these counts."""
    rate, threshold = float(mechanism.rate), mechanism.threshold
    p, q = np.ones(1), np.ones(1)
    for a, b in zip(counts, others, strict=True):
        p = np.multiply.outer(p, law(a, rate, threshold)).ravel()
        q = np.multiply.outer(q, law(b, rate, threshold)).ravel()
    return float(np.maximum(p - exp(float(mechanism.epsilon)) * q, 0).sum())


def contributions(rows: int, groups: int, keys: int) -> list[tuple[int, ...]]:
    return [v for v in product(range(rows + 1), repeat=keys) if 0 < sum(v) <= rows and sum(x > 0 for x in v) <= groups]


@pytest.mark.parametrize(("of", "rows", "groups"), [("units", 1, 1), ("units", 2, 2), ("rows", 2, 1), ("rows", 3, 2)])
def test_every_unit_keeps_the_guarantee(of: str, rows: int, groups: int) -> None:
    mechanism = table(xp.Unit("person", rows=rows, groups=groups)).discover("city", of=of)
    ours = mechanism.mechanism(epsilon=1.5, delta=0.01)
    bases = list(product((0, 1, ours.threshold - 1), repeat=2))
    most = groups if of == "units" else rows
    worst = 0.0
    for base, unit in product(bases, contributions(most, groups, 2)):
        if of == "units" and max(unit) > 1:
            continue
        with_unit = tuple(a + b for a, b in zip(base, unit, strict=True))
        worst = max(worst, hockey_stick(with_unit, base, ours), hockey_stick(base, with_unit, ours))
    guaranteed = float(leak(ours.threshold, ours.rate, ours.question.alone))
    assert (
        guaranteed * (1 - guaranteed) <= worst <= guaranteed * (1 + 1e-9) <= 0.01
    )  # kept, and attained but for a union bound
    assert leak(ours.threshold - 1, ours.rate, ours.question.alone) > 0.01  # the threshold is the least


@pytest.mark.parametrize(("of", "rows", "groups"), [("units", 1, 1), ("units", 2, 2), ("rows", 2, 1), ("rows", 3, 2)])
def test_substitution(of: str, rows: int, groups: int) -> None:
    asked = table(xp.Unit("person", rows=rows, groups=groups), "substitute").discover("city", of=of)
    ours = asked.mechanism(epsilon=3, delta=0.01)
    touched = [v for v in contributions(rows, groups, 2) if of == "rows" or max(v) <= 1]
    pairs = list(product(touched, repeat=2))
    worst = 0.0
    for base, (u, w) in product(product((0, 1, ours.threshold - 1), repeat=2), pairs):
        one, other = (tuple(a + b for a, b in zip(base, unit, strict=True)) for unit in (u, w))
        worst = max(worst, hockey_stick(one, other, ours))
    assert 0.001 < worst <= 0.01


def test_a_lone_key_is_released_as_often_as_computed() -> None:
    unit = xp.Unit("person", rows=2)
    visits = remembering(table(unit, rows="VALUES ('p', 'a'), ('p', 'b')"))
    ours = visits.discover("city").mechanism(epsilon=4, delta=0.2)
    source, runs = xp.SeededNoise(3), 600
    seen = sum(bool(ours.sample(None, source)) for _ in range(runs)) / runs
    each, one_less = (float(leak(ours.threshold - less, ours.rate, ours.question.alone)) / 2 for less in (0, 1))
    expected, lower = (1 - (1 - chance) ** 2 for chance in (each, one_less))
    spread = 4 * sqrt(expected * (1 - expected) / runs)
    assert abs(seen - expected) < spread < abs(lower - expected)  # one less would be noticed


def test_common_keys_come_out_largest_first() -> None:
    city = "CASE WHEN i < 900 THEN 'big' WHEN i < 1200 THEN 'mid' WHEN i = 1200 THEN 'x' END"
    rows = f"SELECT 'p' || i, {city} FROM range(1300) t(i)"
    visits = table(xp.Unit("person", rows=1), rows=rows)
    ledger = xp.Ledger(epsilon=2, delta=1e-6, noise=xp.SeededNoise(1))
    found = ledger.run(visits.discover("city").mechanism(epsilon=1, delta=1e-6))
    assert list(found.value) == ["big", "mid"]
    assert abs(found.value["big"] - 900) < 30
    assert "\nDiscovered: 2 keys with at least " in str(found)
    assert ledger.remaining == xp.Cost(1)


def test_an_epsilon_below_delta_is_refused() -> None:
    with pytest.raises(xp.InvalidValue, match="too small"):
        table(xp.Unit("person", rows=1)).discover("city").mechanism(epsilon=0.01, delta=0.5)


MANY = "SELECT 'p' || i, CASE WHEN i < 900 THEN 'big' WHEN i < 1200 THEN 'mid' ELSE 'x' || i END FROM range(1300) t(i)"


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_the_most_frequent_keys(relation: Any) -> None:
    visits = table(xp.Unit("person", rows=1), rows=MANY, neighbours=relation)
    ledger = xp.Ledger(epsilon=5, delta=1e-5, noise=xp.SeededNoise(1))
    found = ledger.run(visits.discover("city").top(5).mechanism(epsilon=5, delta=1e-6))
    assert found.value == ("big", "mid")
    assert float(found.charged.epsilon) == pytest.approx(3)
    assert found.reserved.epsilon <= 5
    assert found.reserved.delta <= 1e-6
    truths = visits.discover("city = 'mid'").top(2).mechanism(epsilon=5, delta=1e-6)
    assert [*map(repr, xp.Ledger(epsilon=5, delta=1e-5).run(truths).value)] == ["False", "True"]


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("row", {"big": 400, "mid": 300, "few": 1}),
        (xp.Unit("person", rows=3, groups=2), {"big": 200, "mid": 150, "few": 1}),
    ],
)
def test_the_most_frequent_keys_of_rows_and_of_people(unit: Any, expected: dict[str, int]) -> None:
    """A row counts once. A person has two rows of one city; one of them has a third city, which makes two groups."""
    rows = (
        "SELECT 'p' || (i // 2), CASE WHEN i < 400 THEN 'big' ELSE 'mid' END FROM range(600) t(i) UNION ALL "
        "SELECT 'q' || (i // 2), 'mid' FROM range(100) t(i) UNION ALL SELECT 'p0', 'few'"
    )
    question = table(unit, rows=rows).discover("city")
    assert dict(question.exact()) == expected
    top = question.top(3).mechanism(epsilon=6, delta=1e-6)
    assert top.choice.groups == (1 if unit == "row" else 2)
    released = xp.Ledger(epsilon=6, delta=1e-5, noise=xp.SeededNoise(2)).run(top)
    assert released.value == ("big", "mid")
    assert released.charged == xp.Cost(6, delta=top.guarantee.worst_case.exact_delta)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_the_most_frequent_are_asked_for_again(relation: Any) -> None:
    """Two cities and the end cost three shares, then two more ends: what was found is left out the next time."""
    question = table(xp.Unit("person", rows=1), rows=MANY, neighbours=relation).discover("city")
    ledger = xp.Ledger(epsilon=10, delta=1e-5, noise=xp.SeededNoise(1))
    found = top_until(ledger, question, k=5, epsilon=10, delta=1e-6, label="cities")
    assert found.value == ("big", "mid")
    assert [release.part for release in found.releases] == [2, 0, 0]
    assert found.charged.exact_epsilon <= 10
    assert float(found.charged.epsilon) == pytest.approx(10)
    assert question.top(1, without=("big",)).mechanism(epsilon=1, delta=1e-6) != question.top(1).mechanism(
        epsilon=1, delta=1e-6
    )
    with pytest.raises(xp.InvalidValue, match="leave out groups="):
        top_until(ledger, question, k=5, epsilon=1, delta=1e-6, groups=2)


def test_the_most_frequent_are_counted_in_units() -> None:
    with pytest.raises(xp.InvalidValue, match="units"):
        table(xp.Unit("person", rows=2)).discover("city", of="rows").top(2).mechanism(epsilon=1, delta=1e-6)
