"""The identity of the file at a path, and of the files of an SQLite database.

After a file's times were read, the kernel updates them at the next write, and has to sync more than the data. Before
every commit to the log, that would cost a quarter of the commit's time. ``os.stat`` always reads the times; ``statx``
reads only what is asked for, but the call itself takes longer.
"""

from __future__ import annotations

import ctypes
import os
import stat
from typing import Any, TypeAlias

from expost.errors import LedgerUnavailable
from expost.ledger.sqlite.folder_watch import FolderWatch

_HERE, _OPEN_FILE = -100, 0x1000  # AT_FDCWD: paths are relative to the working directory; AT_EMPTY_PATH
_INODE = 0x100  # STATX_INO
_TRUSTED = 200  # checks, two a commit, between two looks: a folder that another machine shares may change silently
_LIBRARIES = (
    "if this process reads the file with another SQLite library (Python's sqlite3, pandas), which removes them as it "
    "closes it, look with `expost ledger … --json` or ledger.entries().to_pandas() instead; otherwise put the file back"
)
_Buffer = ctypes.c_char * 256
Identity: TypeAlias = bytes | tuple[int, int]
"""A file's inode and device, to be compared with what the same function returned."""


def _library() -> Any:
    try:
        found = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError, TypeError):  # macOS, Windows, an old library
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
    return found


_statx = _library()


def identity_of(path: bytes | int) -> Identity:
    """The identity of the file at a path, or of an open one; its times are not read. Raises ``OSError``."""
    if _statx is not None:
        found = _Buffer()
        if type(path) is bytes:
            failed = _statx(_HERE, path, 0, _INODE, found)
        else:
            failed = _statx(path, b"", _OPEN_FILE, _INODE, found)
        text = found.raw
        if not failed and text[1] & 1:  # it has the inode
            return text[32:40] + text[136:144]
    known = os.stat(path)  # raises the error; or the kernel does not support statx
    return known.st_ino, known.st_dev


class Files:
    """The files of an SQLite database, as they were opened: the database, its write-ahead log, and its locks."""

    def __init__(self, path: str) -> None:
        self._path, self._name = path, os.fsencode(path)
        self._log, self._locks = self._name + b"-wal", self._name + b"-shm"
        self._file: tuple[int, int] | None = None
        self._opened: tuple[Any, ...] | None = None
        """What :meth:`check` found first, and has to find again."""
        self._watch: FolderWatch | None = None
        self._trusted = 0
        """How many checks do without a look at the log and the locks."""
        self.looks = 0
        """How often the folder was looked at; as long as that stays the same, all files in it are the same."""

    @property
    def is_known(self) -> bool:
        """Whether the database was opened before."""
        return self._file is not None

    def check(self) -> None:
        """Called before and after every commit: raise unless the database, its write-ahead log and its locks are still
        those that were opened, and the database has no other hard links."""
        if self._watch is None:
            self._watch = FolderWatch(os.path.dirname(self._name) or b".")
        if self._watch.has_changed():
            self._trusted = 0  # until a look finds everything as it was
            self._watch.reset()
        self._trusted -= 1
        try:
            file = os.stat(self._name)
            found = file.st_ino, file.st_dev, file.st_nlink
            if self._trusted < 0 or self._opened is None or found != self._opened[0]:
                self._look(found)
        except OSError:
            raise self._lost() from None

    def _look(self, file: tuple[int, int, int]) -> None:
        self.looks += 1
        found = file, identity_of(self._log), identity_of(self._locks)
        if found != self._opened:
            self.check_file()
            if self._opened is not None:
                raise self._moved(
                    "was given another write-ahead log (the file ending in -wal)"
                    if found[1] != self._opened[1]
                    else "was given other locks (the file ending in -shm)",
                    _LIBRARIES,
                )
        self._opened, self._trusted = found, _TRUSTED

    def check_file(self) -> None:
        """Raise unless the database is the one that was opened first, and has no other hard links."""
        try:
            found = os.stat(self._name)
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
        watch, self._watch, self._opened, self._trusted = self._watch, None, None, 0
        if watch is not None:
            watch.close()

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
