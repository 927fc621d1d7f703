"""Quantiles of tables: what one unit moves, through the engine; truths, filters, units, and refusals."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import duckdb
import numpy as np
import pytest

import expost as xp
from duck import database
from expost.errors import InvalidValue
from expost.mechanisms.quantiles.ordered import arrange
from quantile_model import tuples

pytestmark = pytest.mark.slow
ROWS: list[float | None] = [0.0, 2.0, None]
REST = [("r", 1.0), ("s", 2.0), ("s", 0.0), ("t", 2.0)]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with database() as connection:
        connection.execute("CREATE TABLE t (person VARCHAR, x DOUBLE)")
        yield connection


def fill(connection: duckdb.DuckDBPyConnection, rows: list[tuple[str, float | None]]) -> None:
    connection.execute("DELETE FROM t")
    for row in rows:
        connection.execute("INSERT INTO t VALUES (?, ?)", row)


def scores(question: Any, values: Any, counts: Any) -> list[int]:
    windows = question.windows_of(values, counts, Fraction(1), question.relation)
    depth = windows._targets[0].depth - (not counts.size)
    return [windows.score(candidate) - depth for candidate in tuples(3, len(question.levels))]


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("missing", ["drop", 1])
def test_one_unit_moves_every_score_by_no_more_than_the_question_says(
    connection: duckdb.DuckDBPyConnection, most: int, missing: Any
) -> None:
    own = [rows for size in range(most + 2) for rows in combinations_with_replacement(ROWS, size)]
    table = xp.read(connection, table="t", unit=xp.Unit("person", rows=most), neighbours="add-remove", key=7)
    questions = [
        each.quantile("x", levels, bounds=(0, 2), grid=1, missing=missing)
        for each in (table, replace(table, neighbours="substitute"))
        for levels in (0.5, [0.25, 0.75])
    ]
    plans = {question.plan for question in questions}  # one if all ask the same
    for rest in (REST, []):
        found = {}
        for rows in own:
            fill(connection, [*rest, *(("me", x) for x in rows)])
            found[rows] = {plan: table.engine.arrays(plan) for plan in plans}
        for question in questions:
            scored = {rows: scores(question, *by_plan[question.plan]) for rows, by_plan in found.items()}
            add_remove = question.table.neighbours == "add-remove"
            pairs = [((), rows) for rows in own] if add_remove else [(a, b) for a in own[1:] for b in own[1:]]
            for a, b in pairs:
                moved = max(abs(x - y) for x, y in zip(scored[a], scored[b], strict=True))
                assert moved <= question.moved, (question.levels, rest, a, b)


def test_the_rate_is_for_what_a_unit_moves(connection: duckdb.DuckDBPyConnection) -> None:
    """The control: with the rate for one row, a unit of three would be told apart too well."""
    fill(connection, [("r", 0.0)] * 3 + [("s", 2.0)])
    rates = {}
    for most in (1, 3):
        table = xp.read(connection, table="t", unit=xp.Unit("person", rows=most), neighbours="add-remove", key=1)
        mechanism = table.median("x", bounds=(0, 2), grid=1).mechanism(epsilon=1)
        rates[most] = mechanism._rate
        assert 2 * mechanism._rate * mechanism.question.moved == 1
    assert rates[1] == 3 * rates[3]
    assert 2 * rates[1] * 3 > 1


@pytest.fixture
def visits(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    connection.execute(
        "CREATE TABLE v AS SELECT i % 100 AS person, (i % 100)::DOUBLE / 4 AS x, i % 7 AS n FROM range(1000) r(i)"
    )
    return connection


def test_quantiles_are_the_true_ones_with_much_epsilon(visits: duckdb.DuckDBPyConnection) -> None:
    table = xp.read(visits, table="v", unit="row", neighbours="add-remove", key=1)
    ledger = xp.Ledger(epsilon=10**6, noise=xp.SeededNoise(1))

    def ask(question: Any) -> Any:
        return ledger.run(question.mechanism(epsilon=1000)).output

    assert ask(table.median("x", bounds=(0, 30), grid=0.25)) == 12.25
    assert ask(table.median("n", bounds=(0, 10))) == 3
    assert type(ask(table.median("n", bounds=(0, 10)))) is int
    assert ask(table.quantile("x", [0.25, 0.75], bounds=(0, 30), grid=0.25)) == (6.0, 18.5)
    assert ask(table.where("n = 6").median("n", bounds=(0, 10))) == 6
    assert ask(table.where("n > 6").median("n", bounds=(0, 10))) in range(11)
    assert abs(ask(table.median("x", bounds=(0, 30))) - 12.25) < 0.001


def test_what_it_says(visits: duckdb.DuckDBPyConnection) -> None:
    table = xp.read(visits, table="v", unit=xp.Unit("person", rows=2), neighbours="add-remove", key=1)
    mechanism = table.median("n", bounds=(0, 10)).mechanism(epsilon=1)
    assert mechanism.error_bound("0.95") == 11
    release = xp.Ledger(epsilon=1, noise=xp.SeededNoise(1)).run(mechanism)
    assert "off by at most 11 ranks" in str(release)
    assert "quantile 0.5 of n" in repr(mechanism)


@pytest.mark.parametrize("quantile", [[], 2, [0.5, 0.5], [0.9, 0.1], "x"])
def test_what_is_refused(visits: duckdb.DuckDBPyConnection, quantile: Any) -> None:
    table = xp.read(visits, table="v", unit="row", neighbours="add-remove", key=1)
    with pytest.raises(xp.InvalidValue):
        table.quantile("n", quantile, bounds=(0, 10))


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("unit", ["row", xp.Unit("person", rows=10)], ids=["row", "person"])
def test_quantiles_without_bounds(visits: duckdb.DuckDBPyConnection, relation: Any, unit: Any) -> None:
    table = xp.read(visits, table="v", unit=unit, neighbours=relation, key=1)
    ledger = xp.Ledger(epsilon=10**6, noise=xp.SeededNoise(1))

    def ask(question: Any) -> Any:
        return ledger.run(question.mechanism(epsilon=10_000)).output

    assert ask(table.median("x")) == 12.25
    assert ask(table.median("n")) == 3
    assert type(ask(table.median("n"))) is int
    assert ask(table.quantile("1000000 * x", [0.25, 0.75])) == (6.0e6, 18.5e6)
    assert ask(table.where("x > 20").median("x", missing=0)) == 22.5
    assert ask(table.derive(gone="CASE WHEN x > 5 THEN x ELSE NULL END").quantile("gone", 0, missing=-7)) == -7
    assert "of any size" in repr(table.median("x"))


def test_values_of_any_size_are_counted_by_the_engine(connection: duckdb.DuckDBPyConnection) -> None:
    """As in memory: the same candidates, the same law."""
    values = [0.0, -0.0, 1e308, -1e308, float("inf"), float("nan"), 5e-324, 0.1, 0.1, 1e20, None]
    fill(connection, [(f"p{i}", value) for i, value in enumerate(values)])
    table = xp.read(connection, table="t", unit="row", neighbours="substitute", key=1)
    question = table.median("x", missing=2)
    here = np.array([np.nan if value is None else value for value in values])
    one, other = (
        arrange(data, question.lattice, 2.0) for data in (question._tally(*table.engine.arrays(question.plan)), here)
    )
    ranks = list(range(-1, 14))
    assert one.points(ranks) == other.points(ranks)
    assert one.size == len(values)
    dropped = table.median("x")
    assert dropped._tally(*table.engine.arrays(dropped.plan)).counts.sum() == len(values) - 2


def test_a_grid_goes_with_bounds(connection: duckdb.DuckDBPyConnection) -> None:
    table = xp.read(connection, table="t", unit="row", neighbours="substitute", key=1)
    with pytest.raises(InvalidValue, match="give bounds"):
        table.median("x", grid=1)


@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_a_median_with_an_interval(connection: duckdb.DuckDBPyConnection, neighbours: Any) -> None:
    """In the column's own unit, for the ε of the median alone; values beyond the bounds count as the bounds."""
    connection.execute("INSERT INTO t SELECT 'p' || i, 100 + 40 * sin(i) FROM range(3000) r(i)")
    table = xp.read(connection, table="t", unit=xp.Unit("person", rows=1), neighbours=neighbours)
    truth = connection.sql("SELECT quantile_disc(x, 0.5) FROM t").fetchall()[0][0]
    ledger = xp.Ledger(epsilon=40, noise=xp.SeededNoise(1))
    question = table.median("x", bounds=(0, 200), interval=True)
    found = [ledger.run(question, epsilon=1).output for _ in range(40)]
    assert sum(each.low <= truth <= each.high for each in found) >= 38
    assert np.median([each.high - each.low for each in found]) < 20
    release = xp.Ledger(epsilon=1, noise=xp.SeededNoise(1)).run(question, epsilon=1)
    low, high = release.interval()
    assert (float(release.value), low, high) == (*release.output,)
    assert release.frame["low"] == [low]
    assert ledger.remaining == xp.Cost(0)


def test_an_interval_is_for_one_quantile_of_a_whole_table(connection: duckdb.DuckDBPyConnection) -> None:
    table = xp.read(connection, table="t", unit="row", neighbours="add-remove")
    with pytest.raises(InvalidValue, match="an interval is for one quantile"):
        table.quantile("x", [0.1, 0.5], bounds=(0, 1), interval=True)
    groups = table.by("person", keys=["r", "s"])
    with pytest.raises(InvalidValue, match="asked of all groups at once"):
        groups.agg(m=groups.median("x", bounds=(0, 1), interval=True))
