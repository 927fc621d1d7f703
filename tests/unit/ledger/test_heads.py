"""Heads that cannot be noted, or read again, change nothing but what is noted."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from threading import RLock
from typing import Any

from books import CLAIM, make
from expost.ledger import Settings
from expost.ledger.engine import Hold
from expost.ledger.sqlite.heads import Heads
from expost.ledger.trail import Head


def test_a_note_gives_up_while_somebody_holds_the_file(tmp_path: Path) -> None:
    """The commit is on the disk: it is left to the next one."""
    heads = Heads(f"{tmp_path}/books.db")
    assert heads.note("study", Head(1, "1" * 64))
    other = os.open(heads.path, os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)
    assert not heads.note("study", Head(2, "2" * 64))
    os.close(other)
    assert heads.noted("study") == (1, "1" * 64)
    assert heads.note("study", Head(3, "3" * 64))
    assert heads.noted("study") == (3, "3" * 64)
    heads.close()


def test_a_file_that_cannot_be_read_again_is_not_trusted(tmp_path: Path) -> None:
    heads: Any = Heads(f"{tmp_path}/books.db")
    assert not heads.is_last("study")
    heads.note("study", Head(1, "1" * 64))
    assert heads.is_last("study")
    assert not heads.is_last("other")
    file, heads._file = heads._file, os.open(tmp_path, os.O_RDONLY)  # a folder has no bytes
    assert not heads.is_last("study")
    os.close(file)
    heads.close()


def test_a_small_cache_is_cleared_and_read_again(sqlite_url: Callable[[], str]) -> None:
    """Whatever of it has grown too large, and nothing else."""
    ledger = make(sqlite_url(), epsilon=1000, settings=Settings(remembered=6))
    held = [ledger.reserve(CLAIM) for _ in range(9)]
    for one in reversed(held):
        one.settle("small")
    assert [entry.state for entry in ledger.entries()] == ["settled"] * 9
    ledger.verify()


def test_a_hold_that_was_not_taken_is_left_alone() -> None:
    lock: Any = RLock()
    hold = Hold(lock)
    hold.leave()
    hold.take()
    hold.take()
    assert lock._is_owned()
    hold.leave()
    assert not lock._is_owned()
