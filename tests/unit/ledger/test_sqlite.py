"""What only SQLite can do, or do wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import expost as xp
from books import CLAIM, make
from expost import Ledger


def test_a_transaction_that_could_not_even_be_rolled_back(sqlite_url: Callable[[], str]) -> None:
    ledger = make(sqlite_url())
    ledger.reserve(CLAIM).settle("small")
    ledger._store._engine._writer.execute("BEGIN IMMEDIATE")  # type: ignore[attr-defined]
    ledger.reserve(CLAIM).settle("small")
    ledger.verify()


def test_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.50.4")
    with pytest.raises(xp.InvalidValue, match="can corrupt its log"):
        make(f"sqlite:///{tmp_path}/books.db")


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(xp.LedgerUnavailable, match=r"cannot be written.*let this user read and write it, its folder"):
        make(f"sqlite:///{tmp_path}/no such folder/books.db")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello world " * 100)
    with pytest.raises(xp.LedgerCorrupt, match="not an SQLite database"):
        Ledger.load(f"sqlite:///{tmp_path}/notes.txt", "study")


def test_a_file_whose_reader_was_interrupted(sqlite_url: Callable[[], str]) -> None:
    ledger = make(sqlite_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    real, closed = engine._reader, list[int]()

    class Struck:
        in_transaction = False

        def execute(self, *_: object) -> None:
            raise KeyboardInterrupt

        def close(self, *_: object) -> None:
            closed.append(1)

    engine._reader = Struck()
    with pytest.raises(KeyboardInterrupt):
        assert ledger.remaining
    assert (closed, engine._reader) == ([1], None)
    assert ledger.remaining == ledger.limit
    real.close()


def test_a_file_that_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    other, junk = tmp_path / "other.db", tmp_path / "junk.db"
    apsw.Connection(str(other)).execute("CREATE TABLE theirs (x)").fetchall()
    junk.write_bytes(b"no database " * 100)
    before = other.read_bytes()
    with pytest.raises(xp.InvalidValue, match="holds no ledgers"):
        xp.Ledger.load(f"sqlite:///{other}", "patients")
    assert other.read_bytes() == before
    with pytest.raises(xp.LedgerCorrupt, match="not an SQLite database"):
        xp.ledgers(f"sqlite:///{junk}")
