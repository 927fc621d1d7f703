"""Visits of people, as a private table with each unit. Tables as people use them are tested in this folder."""

from collections.abc import Iterator

import duckdb
import pytest

import expost as xp
import expost.data
from duck import SECRET, database


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with database() as made:
        made.execute(f"""
            CREATE TABLE visits AS SELECT 'p' || (i % 400) AS person, (i * 7) % 90 AS age,
            CASE WHEN i % 3 = 0 THEN 'Rome' WHEN i = 5 THEN '{SECRET}' ELSE 'Oslo' END AS city, i / 8 AS cost,
            DATE '2024-01-01' + CAST(i % 300 AS INTEGER) AS day, [i] AS list
            FROM range(2000) t(i)""")
        yield made


@pytest.fixture
def visits(connection: duckdb.DuckDBPyConnection) -> xp.PrivateTable:
    return xp.read(connection, table="visits", unit=xp.Unit("person", rows=3, groups=2), neighbours="add-remove")


@pytest.fixture
def people(connection: duckdb.DuckDBPyConnection) -> xp.PrivateTable:
    return xp.read(connection, table="visits", unit="row", neighbours="substitute")


@pytest.fixture
def ledger() -> xp.Ledger:
    return xp.Ledger(epsilon=100, delta=1e-3, noise=xp.SeededNoise(2))
