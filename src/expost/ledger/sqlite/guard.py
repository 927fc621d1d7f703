"""Locks against other SQLite libraries in this process.

SQLite's locks belong to the process. Two libraries in it, such as apsw's and Python's own ``sqlite3``, do not see each
other's: the second one to read the file takes itself for the only one, and as it closes, it removes the write-ahead log
from under the first and releases all locks of the process. Locks of an open file description (Linux) are seen by
everybody, and nobody else's closing releases them.
"""

from __future__ import annotations

import os
import struct
import sys
from threading import RLock
from typing import Any

from expost.forks import around_forks

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

_SHARED = 0x40000002, 510
"""Locked for writing by who is the last to close the database, before the log is removed."""
_IN_USE = 128, 1
"""Of the locks' file: locked by all who use it. Who finds it free empties the file."""


class _Held:
    """The files of one database, opened for their locks, for all who have it open in this process."""

    def __init__(self, files: list[int]) -> None:
        self.files, self.users = files, 0
        self.older: list[int] = []
        """Files that others before these users had open."""


_ALL: dict[tuple[int, int], _Held] = {}
"""By the database's inode and device. To close one of these files releases SQLite's own locks, too, so it is closed
when nobody in this process has the database open."""
_OPENED: dict[tuple[int, int], list[int]] = {}
"""Files that could not be locked yet, such as one whose second file does not open because the process has no more
descriptors. They are kept for the next try, for closing one would release SQLite's own locks, too."""
_TURN = RLock()


def _forked() -> None:
    global _TURN
    _TURN = RLock()
    _ALL.clear()


around_forks(child=_forked)


class Guard:
    """One engine's share in the locks of its database. Without support by the system it does nothing."""

    is_supported = sys.platform == "linux" and sys.maxsize > 2**32 and hasattr(fcntl, "F_OFD_SETLK")
    """Whether the system has such locks; then their C struct is the one below."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._mine: tuple[tuple[int, int], _Held] | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether there are locks that are not held yet."""
        return self._mine is None and self.is_supported

    def hold(self) -> None:
        """Lock the database as one that is in use; it is open, and was read or written."""
        with _TURN:
            if self._mine is not None:
                return
            try:
                found = os.stat(self._path)
                key = found.st_ino, found.st_dev
                held = _ALL.get(key) or _locked(self._path, key)
            except OSError:  # it is tried again with the next transaction
                return
            _ALL[key] = held
            held.users += 1
            self._mine = key, held

    def beginning(self) -> bytes | None:
        """The first bytes of the database, from the file that is open here; None if none is."""
        with _TURN:
            return None if self._mine is None else os.pread(self._mine[1].files[0], 100, 0)

    def loosen(self) -> None:
        """Called before the connections are closed: who is the last to close the database may remove the log."""
        with _TURN:
            if self._mine is not None and self._mine[1].users == 1:
                key, held = self._mine
                _ALL.pop(key, None)
                _set(fcntl.F_UNLCK, held.files)

    def release(self) -> None:
        """Called when the connections are closed."""
        with _TURN:
            mine, self._mine = self._mine, None
            if mine is None:
                return
            key, held = mine
            held.users -= 1
            if held.users:
                return
            files = held.files + held.older
            if key in _ALL:  # somebody opened it meanwhile, and would lose SQLite's own locks
                _ALL[key].older += files
                return
            for file in files:
                os.close(file)


def _locked(path: str, key: tuple[int, int]) -> _Held:
    files = _OPENED.setdefault(key, [])
    for name in (path, f"{path}-shm")[len(files) :]:
        files.append(os.open(name, os.O_RDONLY | os.O_NONBLOCK))  # a pipe in its place is not waited for
    _set(fcntl.F_RDLCK, files)
    return _Held(_OPENED.pop(key))


def _set(kind: Any, files: list[int]) -> None:
    for file, (start, length) in zip(files, (_SHARED, _IN_USE), strict=True):
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0))
