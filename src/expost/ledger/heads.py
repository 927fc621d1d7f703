"""The last head of each ledger of a database, in a file beside it.

A head is noted after its commit is on the disk, so the noted head is never ahead of the books, whatever breaks; unless
lines were lost: a file restored from an old backup, a write-ahead log removed, a database created anew.
"""

from __future__ import annotations

import os

from expost.canonical import sha256
from expost.errors import LedgerCorrupt
from expost.ledger.trail import Head

_SIZE = 128  # bytes of a record: written at once, within one block of the disk


class Heads:
    """Notes heads, and finds books that end before them."""

    def __init__(self, path: str) -> None:
        self.path = f"{path}-heads"
        self._places: dict[str, int] = {}

    def check(self, name: str, sequence: int, digest: str) -> None:
        """Refuse books that end before the noted head, or in another one."""
        noted = self.noted(name)
        if noted is None or noted.sequence < sequence or noted == (sequence, digest):
            return
        raise LedgerCorrupt(
            f"ledger {name!r} ends at line {sequence}, and {self.path} notes {noted.sequence}:{noted.hash[:12]}…: "
            "lines are lost, so nothing is reserved; restore the file with its -wal. If what is "
            "lost was never about people, remove the file of heads"
        )

    def noted(self, name: str) -> Head | None:
        """The head that was noted last."""
        try:
            file = os.open(self.path, os.O_RDONLY)
        except OSError:
            return None
        try:
            return self._read(file, name)
        finally:
            os.close(file)

    def note(self, name: str, head: Head) -> None:
        """Note a head, unless a later one is noted. What cannot be written is not noted: the commit stands."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError:
            return
        try:
            noted = self._read(file, name)
            if noted is None or noted.sequence < head.sequence:
                os.pwrite(file, _record(name, head), self._places.get(name, 0) * _SIZE)
        except OSError:
            pass
        finally:
            os.close(file)

    def _read(self, file: int, name: str) -> Head | None:
        """The record of a ledger; remembers where it is, or where it belongs."""
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


def _record(name: str, head: Head) -> bytes:
    text = f"{head.sequence:020d} {head.hash} {sha256(name)[:32]}"
    return text.ljust(_SIZE - 1).encode() + b"\n"


def _parsed(record: bytes, name: str) -> Head | None:
    try:
        sequence, digest, whose = record.decode().split()
        return Head(int(sequence), digest) if whose == sha256(name)[:32] and len(digest) == 64 else None
    except ValueError:
        return None
