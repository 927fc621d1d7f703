"""Moments of tables without bounds: what one unit moves, what is charged, and that no value causes an error."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pytest

import expost as xp
from duck import database, insert
from expost.data import NoisySearched
from expost.errors import InvalidValue
from expost.mechanism import Withheld
from expost.mechanisms.moments.geometric_cells import LARGEST_RECORD, Interval, geometric_counts
from expost.mechanisms.moments.private_range import LEVELS, RangeSearch
from published import published

pytestmark = pytest.mark.slow
PERSON = xp.Unit("person", rows=3)
KINDS = ("VARCHAR", "DOUBLE", "DOUBLE", "INTEGER")


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with database() as found:
        found.execute("CREATE TABLE t (person VARCHAR, x DOUBLE, y DOUBLE, k INTEGER)")
        yield found


def table_of(connection: Any, unit: Any, relation: Any) -> xp.PrivateTable:
    return xp.read(connection, table="t", unit=unit, neighbours=relation, key=1)


@pytest.fixture(scope="module")
def people() -> Iterator[duckdb.DuckDBPyConnection]:
    rng = np.random.default_rng(0)
    x = rng.normal(20_260, 4, 40_000)
    with database() as found:
        found.execute("CREATE TABLE t (person VARCHAR, x DOUBLE, y DOUBLE, k INTEGER)")
        y = 1e-3 * x + rng.normal(size=x.size)
        insert(found, "t", KINDS, [(f"p{i}", *one, int(one[0]) % 5) for i, one in enumerate(zip(x, y, strict=True))])
        yield found


@pytest.mark.parametrize(
    ("unit", "relation", "missing", "expected"),
    [
        ("row", "substitute", 0, ("substitute", 1)),
        ("row", "substitute", "drop", ("add-remove", 2)),
        ("row", "add-remove", 0, ("add-remove", 1)),
        (PERSON, "add-remove", "drop", ("add-remove", 3)),
        (PERSON, "substitute", 0, ("add-remove", 6)),
    ],
)
def test_one_unit_moves_counts_by_what_the_search_has_noise_for(
    connection: Any, unit: Any, relation: Any, missing: Any, expected: tuple[str, int]
) -> None:
    """By brute force: all tables of two units whose rows have one of a few values, and what exchanging one does."""
    question = table_of(connection, unit, relation).mean("x", missing=missing)
    search = question.search(1)
    assert search == RangeSearch(1, expected[0], 1, expected[1])  # type: ignore[arg-type]
    values = (None, -1e308, 0.0, 1.0, 5.0)
    most = 1 if unit == "row" else 3
    fewest = 1 if relation == "substitute" else 0
    sets = [own for size in range(fewest, most + 1) for own in product(values, repeat=size)][:: 7 if most > 1 else 1]
    found = []
    for own in sets:
        connection.execute("DELETE FROM t")
        insert(connection, "t", KINDS, [("a", 1.0, 0.0, 0), *(("b", value, 0.0, 0) for value in own)])
        (tally,) = question.tallies()
        found.append(geometric_counts(np.asarray(tally.values), np.asarray(tally.counts, np.int64), 0.0))
    pairs = product(found, repeat=2) if relation == "substitute" else ((one, found[0]) for one in found)
    worst = max(int(np.abs(one - other).sum()) for one, other in pairs)
    assert worst <= (2 if expected[0] == "substitute" else expected[1])
    assert worst >= 1


@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
@pytest.mark.parametrize("missing", ["drop", 0])
def test_a_ledger_is_refunded_what_the_search_did_not_take(people: Any, relation: Any, missing: Any) -> None:
    table = table_of(people, "row", relation)
    ledger = xp.Ledger(epsilon=4, noise=xp.SeededNoise(1))
    mean = ledger.run(table.mean("x", missing=missing).mechanism(epsilon=2))
    found = published(mean.output)
    assert mean.part == found.level < LEVELS
    assert mean.charged.exact_epsilon == 1 + Fraction(1, 2 ** (LEVELS - found.level))
    assert mean.refunded.exact_epsilon == 2 - mean.charged.exact_epsilon > 0
    assert found.value == pytest.approx(20_260, abs=1)
    assert found.noise is not None
    assert abs(found.value - 20_260) < found.noise + 0.1 < 1
    ((low, high),) = found.ranges
    assert 20_100 < low < 20_250 < 20_270 < high < 20_400
    assert "values clamped to" in str(mean)


def test_spread_and_dependence(people: Any) -> None:
    table = table_of(people, "row", "substitute")
    ledger = xp.Ledger(epsilon=40, noise=xp.SeededNoise(2))
    variance = published(ledger.run(table.variance("x", missing=0).mechanism(epsilon=8)).output)
    assert variance.value == pytest.approx(16, rel=0.2)
    assert (variance.noise, len(variance.ranges)) == (None, 1)
    pair = ledger.run(table.covariance("x", "k", missing=0).mechanism(epsilon=8))
    assert (len(published(pair.output).ranges), pair.refunded > xp.Cost(0)) == (2, True)
    alike = ledger.run(table.correlation("x", "x", missing=0).mechanism(epsilon=8))
    assert published(alike.output).value == pytest.approx(1, abs=0.2)
    grouped = table.by("k", [0, 1]).ask(lambda rows: rows.mean("x")).mechanism(epsilon=8)
    assert ledger.run(grouped).value[0] == pytest.approx(20_260, abs=5)


HOSTILE: list[list[Any]] = [
    [],
    [("p", None, None, None)],
    [("p", float("nan"), float("inf"), 1)],
    [("p", 1e308, -1e308, -(2**31)), ("q", -1e308, 5e-324, 2**31 - 1)],
    [("p", 3.0, 3.0, 3)] * 2000,
    [("p", 5e-324, -0.0, 0), ("q", 1e-45, 1e-45, 0)] * 500,
]


@pytest.mark.parametrize("rows", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("unit", ["row", PERSON])
def test_no_value_causes_an_error(connection: Any, rows: Any, unit: Any) -> None:
    if rows:
        insert(connection, "t", KINDS, rows)
    cases: list[Any] = [("substitute", 0), ("add-remove", "drop")]
    for relation, missing in cases:
        if relation == "substitute" and not rows:
            continue
        table = table_of(connection, unit, relation)
        asked = [
            table.mean("x", missing=missing),
            table.mean("k", missing=missing),
            table.variance("y", missing=missing),
        ]
        for question in (*asked, table.correlation("x", "k", missing=missing)):
            mechanism = question.mechanism(epsilon=3)
            found = mechanism.sample(None, xp.SeededNoise(1))
            assert mechanism.describe(found)
            if isinstance(found, Withheld):
                continue
            assert np.isfinite(found.value)
            assert found.noise is None or found.noise > 0
            assert all(np.isfinite(ends).all() and ends[0] < ends[1] for ends in found.ranges)


def test_few_values_are_withheld_for_the_price_of_the_search(connection: Any) -> None:
    insert(connection, "t", KINDS, [(f"p{i}", 170.0 + i % 9, 1.0 + i % 7, i % 5) for i in range(40)])
    table = table_of(connection, "row", "add-remove")
    ledger = xp.Ledger(epsilon=10, noise=xp.SeededNoise(1))
    asked: list[Any] = [table.mean("x"), table.variance("x"), table.covariance("x", "y"), table.correlation("x", "y")]
    for question in asked:
        release = ledger.run(question.mechanism(epsilon=1))
        assert release.withheld
        assert (release.part, release.charged, release.refunded) == ("withheld", xp.Cost("1/2"), xp.Cost("1/2"))
        assert "withheld: no range was clear; take more ε, or state bounds=" in str(release)
        assert release.frame.rows == ((release.mechanism.what, None, None, None, None),)
    median = ledger.run(table.quantile("x", [0.4, 0.6]).mechanism(epsilon=1))
    assert (median.value, median.refunded) == (xp.WITHHELD, xp.Cost(0))
    assert median.frame.rows == (("quantile of x", None, None, None, None),)
    mean = ledger.run(table.winsorized_mean("x", trim=0.1).mechanism(epsilon=1))
    assert (mean.value, mean.part, mean.refunded) == (xp.WITHHELD, "withheld", xp.Cost("1/2"))
    grouped = ledger.run(table.by("k", keys=[0, 1]).quantile("x", 0.5).mechanism(epsilon=1))
    assert [row[1:] for row in grouped.output.rows] == [(None,), (None,)]
    assert [*grouped.value.values()] == [xp.WITHHELD, xp.WITHHELD]
    assert [row[1:] for row in grouped.frame.rows] == [(0, None, None, None, None), (1, None, None, None, None)]


def test_a_public_number_of_values_that_is_too_small_is_refused(connection: Any) -> None:
    insert(connection, "t", KINDS, [(f"p{i}", 170.0 + i % 9, 1.0, i % 5) for i in range(40)])
    table = table_of(connection, "row", "substitute")
    ledger = xp.Ledger(epsilon=10)
    asked: list[Any] = [
        table.mean("x", missing=0).mechanism(epsilon=1),
        table.covariance("x", "y", missing=0).mechanism(epsilon=1),
        table.quantile("x", 0.5, missing=0).mechanism(epsilon=1),
        table.winsorized_mean("x", trim=0.1, missing=0).mechanism(epsilon=1),
        table.mean("x").mechanism(epsilon="0.9"),  # those that are not missing are at most as many
        table.variance("x").mechanism(epsilon="0.9"),
        table.median("x").mechanism(epsilon="0.9"),
        table.where("y > 0").winsorized_mean("x", trim=0.1).mechanism(epsilon="0.9"),
    ]
    for mechanism in asked:
        with pytest.raises(InvalidValue, match="40 records are too few"):
            ledger.run(mechanism)
    assert ledger.remaining == xp.Cost(10)
    private = table_of(connection, "row", "add-remove")
    assert xp.Ledger(epsilon=10).run(private.mean("x").mechanism(epsilon=1)).withheld  # nobody knows how few there are


def test_what_is_refused(connection: Any) -> None:
    table = table_of(connection, "row", "add-remove")
    with pytest.raises(InvalidValue, match="a grid is for values within bounds"):
        table.mean("x", grid=1)  # type: ignore[call-overload]
    with pytest.raises(InvalidValue, match="split in 128"):
        table.mean("x").mechanism(epsilon="1e-11")
    with pytest.raises(InvalidValue, match="person"):
        table.mean("person")
    with pytest.raises(InvalidValue, match="missing is"):
        table.variance("x", missing="zero")


def test_neighbours_are_those_of_the_table(connection: Any) -> None:
    mechanism = table_of(connection, PERSON, "substitute").mean("x").mechanism(epsilon=1)
    assert isinstance(mechanism, NoisySearched)
    assert mechanism.guarantee.neighbours == "substitute"
    assert mechanism.question.search(1).neighbours == "add-remove"


def ranges() -> Iterator[Interval]:
    """What a search can find: a centre of single precision, and a power of two, or nothing, on either side."""
    rng = np.random.default_rng(0)
    for size, low, high in rng.integers(-125, 128, (300, 3)).tolist():
        centre = float(np.float32(rng.uniform(-1, 1) * 2.0**size))
        below, above = (rng.choice([0.0, 2.0**reach]) for reach in (low, high))
        yield Interval(max(centre - below, -LARGEST_RECORD), min(centre + above, LARGEST_RECORD))
    yield Interval(-LARGEST_RECORD, LARGEST_RECORD)


@pytest.mark.parametrize(("unit", "relation"), [("row", "substitute"), (PERSON, "add-remove")])
@pytest.mark.parametrize("missing", [0, "drop"])
def test_noise_that_is_checked_can_be_sampled_for_every_range_that_may_be_found(
    connection: Any, unit: Any, relation: Any, missing: Any
) -> None:
    """Ranges of 0 … 1 have 2^30 steps, others nearly twice as many: the least ε was too small for half of them."""
    question = table_of(connection, unit, relation).mean("x", bounds=None, missing=missing)
    low, high = 128, 10**10  # of 10⁻¹²: refused, and taken
    while high - low > 1:
        middle = (low + high) // 2
        try:
            question.mechanism(epsilon=Fraction(middle, 10**12)).check(None)
            high = middle
        except InvalidValue:
            low = middle
    least = question.mechanism(epsilon=Fraction(high, 10**12))
    for found in ranges():
        within = question.within([found], least._budgets[1])
        if within is not None:
            within.check(None)


def test_winsorized_means_are_checked_for_every_range_too(connection: Any) -> None:
    question = table_of(connection, "row", "add-remove").winsorized_mean("x", trim=0.1, bounds=None, missing=0)
    with pytest.raises(InvalidValue, match="a rate must be at least"):
        question.mechanism(epsilon="0.000002").check(None)  # enough for 0 … 1
    question.mechanism(epsilon="0.000004").check(None)
