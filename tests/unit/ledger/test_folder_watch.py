"""Whether a watch sees what happens in a folder, and how often the files of a ledger are looked at."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from books import GUARANTEE, make
from expost.ledger.sqlite.folder_watch import FolderWatch

CHANGES: dict[str, Callable[[Path], object]] = {
    "made": lambda folder: (folder / "new").touch(),
    "made as a link": lambda folder: os.link(folder / "old", folder / "new"),
    "removed": lambda folder: (folder / "old").unlink(),
    "renamed": lambda folder: (folder / "old").rename(folder / "new"),
    "renamed away": lambda folder: (folder / "old").rename(folder.parent / "away"),
    "renamed into it": lambda folder: (folder.parent / "other").rename(folder / "old"),
    "the folder renamed": lambda folder: folder.rename(folder.parent / "moved"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_happens_is_seen_once(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "old").touch()
    (tmp_path / "other").touch()
    watch = FolderWatch(bytes(folder))
    assert not watch.has_changed()
    (folder / "old").write_text("what is in a file does not matter")
    assert not watch.has_changed()
    CHANGES[change](folder)
    assert watch.has_changed()
    assert watch.has_changed()  # until it is told
    watch.reset()
    assert not watch.has_changed()
    watch.reset()
    watch.close()
    assert watch.has_changed()  # for all it knows


def test_a_folder_that_cannot_be_watched_may_always_have_changed(tmp_path: Path) -> None:
    watch = FolderWatch(bytes(tmp_path / "none"))
    assert watch.has_changed()
    watch.reset()
    assert watch.has_changed()
    watch.close()


def test_more_changes_than_are_kept_are_still_seen(tmp_path: Path) -> None:
    (tmp_path / "0").touch()
    watch = FolderWatch(bytes(tmp_path))
    for number in range(20_000):
        os.rename(tmp_path / f"{number}", tmp_path / f"{number + 1}")
    resets = 0
    while watch.has_changed():
        resets += 1
        assert resets < 1000
        watch.reset()
    assert resets > 1
    os.rename(tmp_path / "20000", tmp_path / "last")
    assert watch.has_changed()
    watch.close()


@pytest.mark.parametrize("watched", [True, False])
def test_files_are_looked_at_when_something_changed(sqlite_url: Callable[[], str], watched: bool) -> None:
    """Without a watch before and after every commit; with one after a change in the folder, and now and then."""
    url = sqlite_url()
    ledger: Any = make(url, epsilon=1000)
    files, path = ledger._store._engine.files, Path(url.removeprefix("sqlite:///"))
    ledger.reserve(GUARANTEE).settle("small")
    if not watched:
        files._watch.close()

    def looks(commits: int) -> int:
        before = files.looks
        for _ in range(commits // 2):
            ledger.reserve(GUARANTEE).settle("small")
        return int(files.looks - before)

    assert looks(50) == (0 if watched else 100)
    (path.parent / "unrelated").touch()
    assert looks(10) == (1 if watched else 20)
    assert looks(400) in (range(2, 6) if watched else [800])


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize(("ending", "what"), [("-wal", "lost its write-ahead log"), ("-shm", "lost its locks")])
def test_a_lost_file_stays_lost(sqlite_url: Callable[[], str], watched: bool, ending: str, what: str) -> None:
    """Every try says so, not only the first one after the change, until the file is there again."""
    url = sqlite_url()
    ledger: Any = make(url)
    path = url.removeprefix("sqlite:///")
    ledger.reserve(GUARANTEE).settle("small")
    if not watched:
        ledger._store._engine.files._watch.close()
    os.rename(path + ending, f"{path}-away")
    for _ in range(3):
        with pytest.raises(xp.errors.LedgerUnavailable, match=what):
            ledger.reserve(GUARANTEE)
    os.rename(f"{path}-away", path + ending)
    ledger.reserve(GUARANTEE).settle("small")
    ledger.verify()
