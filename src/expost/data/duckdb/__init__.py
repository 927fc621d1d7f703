"""DuckDB as an engine behind private tables."""

from expost.data.duckdb.engine import DuckDB
from expost.data.duckdb.sources import guessed

__all__ = ["DuckDB", "guessed"]
