"""Whether the files of an SQLite database are still those that were opened, and none was written over."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from expost.errors import LedgerUnavailable

_LIBRARIES = (
    "if this process reads the file with another SQLite library (Python's sqlite3, pandas), which removes them as it "
    "closes it, look with `expost ledger … --json` or ledger.entries().to_pandas() instead; otherwise put the file back"
)
_OVERWRITTEN = (
    "was written over while this process had it open, with an older copy or something else; nothing was acknowledged: "
    "stop all that use it, and restore it as after a lost file (docs/runbook.md)"
)
_LOOKS = 3  # at a header that another process may just be writing


class Header(NamedTuple):
    """What the first page of a database says of itself. The first two never go down while it is used."""

    counter: int
    """How often the first page was changed."""
    pages: int
    mark: int
    """The user version."""

    @classmethod
    def read(cls, text: bytes) -> Self | None:
        """The header in the first hundred bytes; None if these are not of a database."""
        if len(text) < 100 or not text.startswith(b"SQLite format 3\0"):
            return None
        return cls(*(int.from_bytes(text[at : at + 4], "big") for at in (24, 28, 60)))

    def follows(self, before: Header) -> bool:
        """Whether the same database can have this header later."""
        return (self.counter, self.pages) >= (before.counter, before.pages) and before.mark in (0, self.mark)


class Files:
    """The files of an SQLite database, as they were opened: the database, its write-ahead log, and its locks.

    Parameters
    ----------
    path
        The database.
    beginning
        Reads its first bytes; None while it is not open. To open and close it here would release SQLite's locks.
    """

    def __init__(self, path: str, beginning: Callable[[], bytes | None]) -> None:
        self._path, self._log, self._locks = path, f"{path}-wal", f"{path}-shm"
        self._beginning = beginning
        self._file: tuple[int, int] | None = None
        self._opened: tuple[Any, ...] | None = None
        """What :meth:`check` found first, and has to find again."""
        self._size, self._changed = 0, 0
        """Of the database when it was looked at last; only checkpoints change them."""
        self._header: Header | None = None

    @property
    def is_known(self) -> bool:
        """Whether the database was opened before."""
        return self._file is not None

    def check(self) -> None:
        """Called before and after every commit: raise unless the database, its write-ahead log and its locks are still
        those that were opened, the database has no other hard links, and nobody wrote over it."""
        try:
            file, log, locks = os.stat(self._path), os.stat(self._log), os.stat(self._locks)
        except OSError:
            raise self._lost() from None
        found = file.st_ino, file.st_dev, file.st_nlink, log.st_ino, log.st_dev, locks.st_ino, locks.st_dev
        if found != self._opened:
            self._refuse_others(found)
        if (file.st_size, file.st_mtime_ns) != (self._size, self._changed):
            self._refuse_older(file.st_size)
            self._size, self._changed = file.st_size, file.st_mtime_ns

    def _refuse_others(self, found: tuple[int, ...]) -> None:
        self.check_file()
        if self._opened is not None:
            raise self._moved(
                "was given another write-ahead log (the file ending in -wal)"
                if found[3:5] != self._opened[3:5]
                else "was given other locks (the file ending in -shm)",
                _LIBRARIES,
            )
        self._opened = found

    def _refuse_older(self, size: int) -> None:
        """Raise if the database was written over: its header is of an earlier state, or of something else; or, where it
        cannot be read, the file is shorter."""
        text = self._beginning()
        if text is None:
            if size < self._size:
                raise self._overwritten()
            return
        for look in range(_LOOKS):
            header = Header.read(text)
            if self._header is None or (header is not None and header.follows(self._header)):
                self._header = header
                return
            time.sleep(0.002 * look)
            text = self._beginning() or b""
        raise self._overwritten()

    def _overwritten(self) -> LedgerUnavailable:
        return LedgerUnavailable(f"the ledger's file {self._path!r} {_OVERWRITTEN}")

    def check_file(self) -> None:
        """Raise unless the database is the one that was opened first, and has no other hard links."""
        try:
            found = os.stat(self._path)
        except OSError:
            raise self._moved("was removed or renamed") from None
        file = found.st_ino, found.st_dev
        if not stat.S_ISREG(found.st_mode):  # to open a pipe would wait for whoever writes into it
            raise LedgerUnavailable(
                f"{self._path!r} is not a plain file: check the path, or put the ledger's file back"
            )
        if file != (self._file or file):
            raise self._moved("was replaced by another file")
        if found.st_nlink > 1:
            raise self._moved(f"got {found.st_nlink} names (hard links), each of which would have a log of its own,")
        self._file = file

    def close(self) -> None:
        """Called when the writer is closed: when it is opened again, the log and the locks may be others."""
        self._opened = None

    def _lost(self) -> LedgerUnavailable:
        self.check_file()
        gone = (
            "locks (the file ending in -shm)"
            if os.path.exists(self._log)
            else "write-ahead log (the file ending in -wal)"
        )
        return self._moved(f"lost its {gone}", _LIBRARIES)

    def _moved(self, what: str, remedy: str = "put the file back under one name only") -> LedgerUnavailable:
        return LedgerUnavailable(
            f"the ledger's file {self._path!r} {what} while this process had it open; nothing was acknowledged: "
            f"{remedy}, and start this process again"
        )
