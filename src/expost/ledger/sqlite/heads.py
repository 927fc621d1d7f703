"""The last head of each ledger of a database, in a file beside it.

A head is noted after its commit is on disk, so a noted head is never ahead of the books, whatever fails, unless lines
were lost: a file restored from an old backup, a write-ahead log removed, a database created again.

The file is named after the database: a database that is moved or copied without it has no noted heads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import lru_cache

from expost.canonical import sha256
from expost.errors import LedgerCorrupt, LedgerUnavailable
from expost.ledger.sqlite.identity import Identity, identity_of
from expost.ledger.trail import Head

try:
    import fcntl
except ImportError:  # where there is no fork either
    fcntl = None  # type: ignore[assignment]

_SIZE = 128  # bytes of a record, which is written at once, within one block of the disk
_WAITS = 200  # milliseconds for which a write waits for another; then it is left to the next commit
_OPEN = 1.0  # seconds for which the file is kept open
_EXCLUSIVE = 0 if fcntl is None else fcntl.LOCK_EX | fcntl.LOCK_NB


class Heads:
    """Writes heads to the file, and detects books that end before them or differ from them."""

    def __init__(self, path: str) -> None:
        self.path = f"{path}-heads"
        self._name = os.fsencode(self.path)
        self._places: dict[str, int] = {}
        self._file: int | None = None
        """The open file, as long as it is the one at that path."""
        self._identity: Identity | None = None
        self._until = 0.0
        self._looks: int | None = None
        self._written: dict[str, tuple[bytes, int, int]] = {}
        """The records that this process wrote last, with their lines and positions in the file."""

    def lost(self, name: str, sequence: int, hash_of: Callable[[int], str | None]) -> LedgerCorrupt | None:
        """The error if books that end at that line do not contain the noted head, by the hashes of their lines."""
        noted = self.noted(name)
        return None if noted is None else self.compare(noted, name, sequence, hash_of)

    def compare(
        self, noted: Head, name: str, sequence: int, hash_of: Callable[[int], str | None]
    ) -> LedgerCorrupt | None:
        """The error if books that end at that line do not contain this head."""
        if noted.sequence <= sequence and hash_of(noted.sequence) == noted.hash:
            return None
        found = f"ends at line {sequence}" if sequence < noted.sequence else f"has another line {noted.sequence}"
        return LedgerCorrupt(
            f"ledger {name!r} {found}, but {self.path} notes {noted.sequence}:{noted.hash[:12]}…: lines are lost, so "
            "nothing can be reserved; restore the file with its -wal, or close this ledger. If the lost lines were "
            "never about people, remove the file of heads"
        )

    def noted(self, name: str) -> Head | None:
        """The head that was noted last. Raises ``LedgerUnavailable`` if the file exists and cannot be read."""
        try:
            file = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unreadable(error) from None
        try:
            return self._read(file, name)
        except OSError as error:
            raise self._unreadable(error) from None
        finally:
            os.close(file)

    def _unreadable(self, error: OSError) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"the heads noted in {self.path} cannot be read ({error.strerror}), so lines could be lost unnoticed: "
            "let this user read the file"
        )

    def note(self, name: str, head: Head, looks: int | None = None) -> bool:
        """Note a head, unless a later one is noted, and return whether it was. A failed write does not fail the
        commit. With the same number of ``looks`` as before, nothing in the folder has changed since."""
        now = time.monotonic()
        try:
            if now > self._until or ((looks is None or looks != self._looks) and not self._is_current()):
                self.close()
            self._looks = looks
            if self._file is None:
                self._file, self._until = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644), now + _OPEN
                self._identity = identity_of(self._file)
            return self._note(self._file, name, head)
        except OSError:
            self.close()
            return False
        except BaseException:
            self.close()  # and release its lock
            raise

    def _note(self, file: int, name: str, head: Head) -> bool:
        if fcntl is not None and not _locked(file):
            return False
        try:
            record, line, at = self._written.get(name, (b"", 0, 0))
            if os.pread(file, _SIZE, at) != record:  # another process noted one
                noted = self._read(file, name)
                line, at = 0 if noted is None else noted.sequence, self._places[name] * _SIZE
            if line >= head.sequence:
                return False
            record = _record(name, head)
            self._written[name] = record, head.sequence, at
            os.pwrite(file, record, at)
        finally:
            if fcntl is not None:
                _unlock(file)
        return True

    def is_last(self, name: str) -> bool:
        """Whether the head that this process noted last, in the open file, is still the last one."""
        if self._file is None or name not in self._written:
            return False
        record, _, at = self._written[name]
        try:
            return os.pread(self._file, _SIZE, at) == record
        except OSError:
            return False

    def _is_current(self) -> bool:
        """Whether the open file is still the one at that path."""
        if self._file is None:
            return False
        try:
            return identity_of(self._name) == self._identity
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _read(self, file: int, name: str) -> Head | None:
        """The record of a ledger; remembers its position, or where it belongs."""
        known = self._places.get(name)
        if known is not None and (found := _parsed(os.pread(file, _SIZE, known * _SIZE), name)) is not None:
            return found
        records = os.pread(file, os.fstat(file).st_size, 0)
        for place in range(len(records) // _SIZE):
            found = _parsed(records[place * _SIZE : (place + 1) * _SIZE], name)
            if found is not None:
                self._places[name] = place
                return found
        self._places[name] = -(-len(records) // _SIZE)
        return None


def _locked(file: int) -> bool:
    """Lock a file against other threads and processes; whether that succeeded."""
    for _ in range(_WAITS):
        try:
            fcntl.flock(file, _EXCLUSIVE)
        except BlockingIOError:
            time.sleep(0.001)
        else:
            return True
    return False


def _unlock(file: int) -> None:
    """Unlock a file, even if a process that was forked meanwhile has it open."""
    try:  # noqa: SIM105  # after every commit
        fcntl.flock(file, fcntl.LOCK_UN)
    except OSError:
        pass


def _record(name: str, head: Head) -> bytes:
    return f"{head.sequence:020} {head.hash} {_whose(name)}{_END}".encode()


_WHOSE = slice(86, 118)  # after 20 digits of the sequence and 64 of the hash
_END = " " * (_SIZE - 119) + "\n"


def _parsed(record: bytes, name: str) -> Head | None:
    if record[_WHOSE] != _whose(name).encode() or not record[:20].isdigit():
        return None
    return Head(int(record[:20]), record[21:85].decode("ascii", "replace"))


@lru_cache(256)
def _whose(name: str) -> str:
    return sha256(name)[:32]
