"""Chosen cells of a histogram, and how far off a mean may be."""

from typing import Any

import duckdb
import pytest

from expost import Guarantee, InvalidValue, SeededNoise, Unit, read
from expost.questions import NoisyStatistics, Statistics

pytestmark = pytest.mark.slow


@pytest.fixture
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i % 10 AS x, 'k' || (i % 3) AS k, i % 100 AS person FROM range(1000) t(i)"
    )
    return connection


@pytest.mark.parametrize("unit", ["row", Unit("person", rows=10, groups=1)])
def test_only_some_cells(database: duckdb.DuckDBPyConnection, unit: Unit) -> None:
    table = read(database, table="t", unit=unit, neighbours="add-remove", key=1)
    bins = table.histogram("x", bins=10, bounds=(0, 10), other=None)
    some = bins.only(["[7, 8)", "[2, 3)"])
    assert some.labels == ("[2, 3)", "[7, 8)")
    assert some.present(some.exact()) == {"[2, 3)": 100, "[7, 8)": 100}
    assert some.sensitivity.l1 <= bins.sensitivity.l1
    keys = table.histogram("k", keys=["k0", "k1", "k2"])
    assert keys.only(["k1"]).labels == ("k1",)
    for wrong in ([], ["nothing"], ["k1", "other"]):
        with pytest.raises(InvalidValue):
            keys.only(wrong)


@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_means_lie_within_their_error_bound(
    database: duckdb.DuckDBPyConnection, neighbours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = read(database, table="t", unit="row", neighbours=neighbours)
    mean = table.mean("x", bounds=(0, 20), missing=0).mechanism(epsilon=0.5)
    read_once(monkeypatch, mean.question)
    (name,) = mean.question.names
    bound = mean.expected(name, 1000).error
    noise = SeededNoise(4)
    missed = sum(abs(drawn(mean, noise) - 4.5) > bound for _ in range(200))
    assert missed <= 20
    narrow = sum(abs(drawn(mean, noise) - 4.5) > bound / 10 for _ in range(200))
    assert narrow > 50  # a tenth of it would not be a bound
    assert mean.expected(name, 0).error == 20


@pytest.mark.parametrize("size", [3, 40, 1000])
def test_a_counted_mean_has_an_error_bar_of_its_own(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From what is published alone, whatever the number of values; a fifth of it would not do."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS SELECT 40.0 + i % 50 AS x FROM range({size}) AS r(i)")
    table = read(connection, table="t", unit="row", neighbours="add-remove")
    mechanism = table.mean("x", bounds=(0, 100)).mechanism(epsilon="0.5")
    read_once(monkeypatch, mechanism.question)
    truth = sum(40.0 + i % 50 for i in range(size)) / size
    noise = SeededNoise(5)
    found = [drawn(mechanism, noise) for _ in range(200)]
    off = [(abs(mean - truth), mean.error) for mean in found]
    assert sum(far > bound + 1e-6 for far, bound in off) <= 10
    assert all(bound <= 100 for _, bound in off)
    assert sum(far > bound / 5 for far, bound in off) > 20
    assert mechanism.guarantee == Guarantee.uniform("0.5", neighbours="add-remove").of_unit("row")
    assert "± " in mechanism.describe(mechanism.sample(None, noise))


def drawn(mechanism: NoisyStatistics, noise: SeededNoise) -> Any:
    return mechanism.answer_of(mechanism.sample(None, noise), None)


def read_once(monkeypatch: pytest.MonkeyPatch, question: Statistics) -> None:
    """The rows are the same at every draw: only noise is new."""
    exact = question.exact()
    monkeypatch.setattr(Statistics, "exact", lambda self: exact)
