"""What only SQLite can do, or do wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import expost as xp
from books import GUARANTEE, make
from expost import Ledger
from expost.ledger import Settings


def test_a_transaction_that_could_not_even_be_rolled_back(sqlite_url: Callable[[], str]) -> None:
    ledger = make(sqlite_url())
    ledger.reserve(GUARANTEE).settle("small")
    ledger._store._engine._writer.execute("BEGIN IMMEDIATE")  # type: ignore[attr-defined]
    ledger.reserve(GUARANTEE).settle("small")
    ledger.verify()


def test_an_old_sqlite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.50.4")
    with pytest.raises(xp.InvalidValue, match="can corrupt its write-ahead log"):
        make(f"sqlite:///{tmp_path}/books.db")


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(
        xp.errors.LedgerUnavailable, match=r"cannot be written.*let this user read and write it, its folder"
    ):
        make(f"sqlite:///{tmp_path}/no such folder/books.db")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello world " * 100)
    with pytest.raises(xp.errors.LedgerCorrupt, match="not an SQLite database"):
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
    with pytest.raises(xp.InvalidValue, match="has no ledgers"):
        xp.Ledger.load(f"sqlite:///{other}", "patients")
    assert other.read_bytes() == before
    with pytest.raises(xp.errors.LedgerCorrupt, match="not an SQLite database"):
        xp.ledgers(f"sqlite:///{junk}")


def _file(url: str) -> str:
    return url.removeprefix("sqlite:///")


def test_what_was_remembered_is_read_again_once_somebody_else_wrote(sqlite_url: Callable[[], str]) -> None:
    ledger = make(url := sqlite_url())
    ledger.reserve(GUARANTEE).settle("small")
    other = apsw.Connection(_file(url))
    other.execute("UPDATE expost_account SET charged_epsilon = limit_epsilon")
    other.close()
    with pytest.raises(xp.BudgetExceeded):
        ledger.reserve(GUARANTEE)


def test_what_a_failed_transaction_learnt_is_not_remembered(
    sqlite_url: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = make(sqlite_url())
    engine: Any = ledger._store._engine  # type: ignore[attr-defined]
    ledger.reserve(GUARANTEE).settle("small")
    before = ledger.spent, ledger.reserved
    with monkeypatch.context() as patched:
        patched.setattr(engine.files, "check", lambda: 1 / 0)  # everything was written, and is rolled back
        with pytest.raises(ZeroDivisionError):
            ledger.reserve(GUARANTEE)
    assert (ledger.spent, ledger.reserved) == before
    ledger.reserve(GUARANTEE).settle("large")
    ledger.verify()


def test_ledgers_of_one_file_remember_each_their_own(sqlite_url: Callable[[], str]) -> None:
    first = make(url := sqlite_url())
    second = Ledger.create(url, "second", 10, 1e-3, neighbours="add-remove", unit="person")
    account = second.create_account("team", 5, 1e-3)
    for ledger in (first, account, first, second, account):
        ledger.reserve(GUARANTEE).settle("small")
    assert [len(list(ledger.entries())) for ledger in (first, second, account)] == [2, 3, 2]
    first.verify()
    second.verify()


def test_little_is_remembered(sqlite_url: Callable[[], str]) -> None:
    ledger = make(sqlite_url(), epsilon=10, settings=Settings(remembered=2))
    guarantees = [xp.Guarantee({"yes": f"0.{n}", "no": 0}) for n in range(1, 6)]
    spendings = [ledger.reserve(guarantee) for guarantee in guarantees]
    for spending in spendings:
        spending.settle("yes")
    assert ledger.spent == xp.Cost("1.5")
    ledger.verify()
