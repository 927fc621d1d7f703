"""DuckDB as an engine behind private tables."""

from expost.data.duckdb.csv import guessed
from expost.data.duckdb.engine import DuckDB

__all__ = ["DuckDB", "guessed"]
