"""Rows that come in as bytes: hostile CSV files, tables of PostgreSQL in three encodings, Parquet by several writers.

``EXPOST_CASES`` says how many cases are tried.
"""

import os
from pathlib import Path

import pytest

from fuzz_sources import SourceSearch, in_csv, in_parquet, in_postgres
from servers import Server

CASES = int(os.environ.get("EXPOST_CASES", "400"))


def searched(search: SourceSearch) -> None:
    for _ in range(max(CASES // 200, 1)):
        assert search.table() == []
    assert search.asked > 0


def test_no_bytes_of_a_csv_file_move_an_answer_too_far(tmp_path: Path) -> None:
    searched(SourceSearch(CASES, in_csv(tmp_path)))


def test_no_bytes_of_a_parquet_file_move_an_answer_too_far(tmp_path: Path) -> None:
    searched(SourceSearch(CASES, in_parquet(tmp_path)))


@pytest.mark.parametrize("seed", range(2))
def test_no_encoding_of_postgresql_moves_an_answer_too_far(server: Server, seed: int) -> None:
    searched(SourceSearch(CASES + seed, in_postgres(server)))
