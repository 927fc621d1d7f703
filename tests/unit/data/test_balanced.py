"""Histograms of tables whose total is public: noise that adds up to zero, its law, and where it is refused."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pytest

import expost as xp
from duck import database
from expost.data import BalancedCounts, Noisy
from expost.errors import InvalidValue
from expost.mechanisms.histogram import balanced_laplace


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with database() as connection:
        yield connection


def table_of(connection: duckdb.DuckDBPyConnection, name: str, cities: tuple[str | None, ...]) -> xp.PrivateTable:
    connection.execute(f"CREATE TABLE {name} (person INTEGER, city VARCHAR)")
    connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", list(enumerate(cities)))
    return xp.read(connection, table=name, unit="row", neighbours="substitute", key=1)


def test_the_rate_is_for_a_row_that_changes_its_cell(connection: duckdb.DuckDBPyConnection) -> None:
    """One row moves a count up and another one down, and no more: 2·rate is ε, and a larger rate would not do."""
    tables = [table_of(connection, f"t{i}", ("Rome", city)) for i, city in enumerate(("Rome", "Oslo", "Bern", None))]
    questions = [table.histogram("city", keys=["Rome", "Oslo"]) for table in tables]
    moved = {int(np.abs(a.exact() - b.exact()).sum()) for a, b in product(questions, repeat=2)}
    assert moved == {0, 2}
    assert all((a.exact() - b.exact()).sum() == 0 for a, b in product(questions, repeat=2))
    for seed in range(20):
        found = questions[1].mechanism(epsilon=3).sample(None, xp.SeededNoise(seed))
        drawn = balanced_laplace(xp.SeededNoise(seed), Fraction(3, 2), 3)
        assert found == {"Rome": 1 + drawn[0], "Oslo": 1 + drawn[1], "other": drawn[2]}


def test_counts_add_up_to_the_public_total(connection: duckdb.DuckDBPyConnection) -> None:
    table = table_of(connection, "t", ("Rome",) * 30 + ("Oslo",) * 12 + (None,) * 8)
    mechanism = table.histogram("city", keys=["Rome", "Oslo"]).mechanism(epsilon=1)
    ledger = xp.Ledger(epsilon=50, noise=xp.SeededNoise(1))
    for _ in range(20):
        assert sum(ledger.run(mechanism).value.values()) == 50
    exact = table.histogram("city", keys=["Rome", "Oslo"]).mechanism(epsilon=30)
    assert ledger.run(exact).value == {"Rome": 30, "Oslo": 12, "other": 8}
    assert exact.error_bound(0.95) <= 1
    assert mechanism.describe({"Rome": 30, "Oslo": 12, "other": 8}).endswith("adding up to their number")


def test_only_where_every_unit_is_in_one_cell(connection: duckdb.DuckDBPyConnection) -> None:
    table = table_of(connection, "t", ("Rome", "Oslo"))
    keys: dict[str, Any] = {"keys": ["Rome", "Oslo"]}
    assert table.histogram("city", **keys).fixed
    others = [
        table.histogram("city", **keys, other=None),
        table.where("person > 0").histogram("city", **keys),
        xp.read(connection, table="t", unit="row", neighbours="add-remove").histogram("city", **keys),
        xp.read(connection, table="t", unit=xp.Unit("person", rows=2), neighbours="substitute").histogram(
            "city", **keys
        ),
    ]
    for other in others:
        assert not other.fixed
        with pytest.raises(InvalidValue, match="in exactly one cell"):
            BalancedCounts(question=other, epsilon=1)
        assert isinstance(other.mechanism(epsilon=1), Noisy)
