"""What bounds and the cap on rows take away: the shares, their intervals, and how far one unit moves the counts."""

import itertools
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import expost as xp
from expost.data.lost import LostShare, _share


def read(rows: list[tuple[str, Any]], **options: Any) -> xp.PrivateTable:
    frame = pd.DataFrame(rows, columns=["person", "cost"]).astype({"person": "str", "cost": "float"})
    return xp.read(frame, key=1, **({"unit": xp.Unit("person", rows=2), "neighbours": "add-remove"} | options))


ROWS = [("a", 1), ("a", 50), ("a", 99), ("b", -3), ("c", 10), ("c", 10.5), ("d", None), ("d", float("inf"))]


def test_values_beyond_the_bounds_and_units_with_more_rows_are_counted() -> None:
    values, units = read(ROWS).lost("cost", bounds=(0, 10)).exact()
    assert values.sum() == 6  # two of a, one of b, two of c, one of d, whose other value is missing
    assert (values[0], units.tolist()) == (1, [3, 1])
    every_row = read(ROWS, unit="row").lost("cost", bounds=(0, 10))
    assert [counts.tolist() for counts in every_row.exact()] == [[1, 2, 4]]
    filled = read(ROWS, unit="row").lost("cost", bounds=(0, 10), missing=0)
    assert [counts.tolist() for counts in filled.exact()] == [[1, 3, 4]]


VALUES = [None, -1.0, 0.0, 3.0, 10.0, 11.0, float("nan")]


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("missing", ["drop", 5])
def test_one_unit_moves_the_counts_as_far_as_stated_and_no_further(relation: Any, missing: Any) -> None:
    others = [("x", 3.0), ("x", 11.0), ("x", -1.0), ("y", 4.0)]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (person VARCHAR, cost DOUBLE)")
    table = xp.read(connection, table="t", unit=xp.Unit("person", rows=2), neighbours=relation, key=1)
    asked = table.lost("cost", bounds=(0, 10), missing=missing)
    persons = [own for size in range(4) for own in itertools.product(VALUES, repeat=size)]
    persons = [own for own in persons if own or relation == "add-remove"][::3]
    found = []
    for own in persons:
        connection.execute("DELETE FROM t")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [*others, *(("p", value) for value in own)])
        found.append(asked.exact())
    moved = [0, 0]
    pairs = itertools.combinations(found, 2) if relation == "substitute" else ((found[0], one) for one in found)
    for one, other in pairs:
        for place, (counts, again) in enumerate(zip(one, other, strict=True)):
            moved[place] = max(moved[place], int(abs(counts - again).sum()))
    assert moved == [asked.sensitivity.l1, asked.units_sensitivity.l1]


def test_intervals_hold_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(5)
    people = np.repeat(np.arange(300).astype(str), rng.integers(1, 6, 300))
    table = read([*zip(people, rng.normal(5, 5, people.size), strict=True)])
    mechanism = table.lost("cost", bounds=(0, 9)).mechanism(epsilon=0.5)
    (below, inside, above), (few, many) = mechanism.question.exact()
    truth = (below / (below + inside + above), above / (below + inside + above), many / (few + many))
    missed, noise = 0, xp.SeededNoise(3)
    for _ in range(1000):
        found = mechanism.sample(None, noise)
        shares = [share for share in found if share is not None]
        missed += not all(share.low <= true <= share.high for share, true in zip(shares, truth, strict=True))
    assert missed <= 75  # 50 are expected at most; 3.6 standard deviations more


def test_an_interval_for_a_quarter_of_the_noise_would_be_caught() -> None:
    rng, noise = np.random.default_rng(5), xp.SeededNoise(3)
    mechanism = read([*zip(map(str, range(300)), rng.normal(5, 5, 300), strict=True)]).lost("cost", bounds=(0, 9))
    wrong, right = mechanism.mechanism(epsilon=2), mechanism.mechanism(epsilon=0.5)
    (below, inside, above), _ = mechanism.exact()
    missed = 0
    for _ in range(500):
        counts = [each.sample(exact, noise) for each, exact in zip(right._noises, mechanism.exact(), strict=True)]
        found = wrong.shares(counts).below
        missed += not found.low <= below / (below + inside + above) <= found.high
    assert missed > 40


@pytest.mark.parametrize(
    ("counts", "share"),
    [((0, 0, 3), LostShare(0, 0, 1)), ((-5, -5, 3), LostShare(0, 0, 1)), ((50, 50, 0), LostShare(0.5, 0.5, 0.5))],
)
def test_shares_of_noisy_counts(counts: tuple[int, int, int], share: LostShare) -> None:
    assert _share(*counts, 1) == share


def test_what_is_published_can_be_read_stored_and_shown() -> None:
    ledger = xp.Ledger(epsilon=10)
    release = ledger.run(read(ROWS * 50).lost("cost", bounds=(0, 10)).mechanism(epsilon=5))
    assert release.charged == xp.Cost(5)
    assert release.frame.names == ("what", "value", "low", "high", "error")
    assert release.frame["what"][2] == "units with more such rows"
    assert "of their units have more such rows than count" in str(release)


def test_what_is_shown_of_a_share_includes_its_rounding() -> None:
    assert str(LostShare(0.1049, 0.0851, 0.1248)) == "10 ± 3 %"
    assert str(LostShare(0.0012, 0.001, 0.002)) == "0.1 ± 0.1 %"


@pytest.mark.parametrize("outside", [0, 300, 900])
def test_no_error_is_larger_than_was_foretold(outside: int) -> None:
    costs = [5.0] * (1000 - outside) + [99.0] * outside
    mechanism = read([*zip(map(str, range(1000)), costs, strict=True)], unit="row").lost("cost", bounds=(0, 10))
    noisy, noise = mechanism.mechanism(epsilon=1), xp.SeededNoise(2)
    shown = [max(share.error for share in noisy.sample(None, noise)[:2]) for _ in range(40)]
    assert np.median(shown) <= noisy.expected_error(1000, 1000)
