"""A table that hostile tests ask, on a connection of its own."""

from collections.abc import Iterator

import duckdb
import pytest

import expost as xp
import expost.data

pytestmark = pytest.mark.slow


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as made:
        made.execute("CREATE TABLE t (p VARCHAR, s VARCHAR, i BIGINT, d DOUBLE, dt DATE, ts TIMESTAMP)")
        made.execute("INSERT INTO t SELECT 'p' || k, 's', k, k, DATE '2020-01-01', '2020-01-01' FROM range(100) r(k)")
        yield made


@pytest.fixture
def table(connection: duckdb.DuckDBPyConnection) -> xp.PrivateTable:
    return xp.read(connection, table="t", unit="row", neighbours="add-remove")
