"""The last head of each ledger: in a file beside its database or, of a server's, in a file of each client's machine.

A head is noted after its commit is on disk, so a noted head is never ahead of the books, whatever fails, unless lines
were lost: a file restored from an old backup, a write-ahead log removed, a database created again. A place is made for
it before the first commit, so that heads that are kept are never missing either.

The file beside a database is named after it: a database that is moved or copied without it has no noted heads. A
machine's file has heads of whatever this machine wrote to, each under the server's address and the hash of the ledger's
first line: the address stays as a server fails over, or is restored.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

from expost.canonical import sha256
from expost.errors import InvalidValue, LedgerCorrupt, LedgerUnavailable
from expost.ledger.remedies import ADOPT
from expost.ledger.trail import GENESIS, Head

try:
    import fcntl
except ImportError:  # where there is no fork either
    fcntl = None  # type: ignore[assignment]

_LOG = logging.getLogger("expost.ledger")
_SIZE = 128  # bytes of a record, which is written at once, within one block of the disk
_WAITS = 200  # milliseconds for which a write waits for another; then it is left to the next commit
_EXCLUSIVE = 0 if fcntl is None else fcntl.LOCK_EX | fcntl.LOCK_NB
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)  # a pipe in its place is not waited for
_BLANK = b" " * (_SIZE - 1) + b"\n"  # a place that was damaged, and given up
_FAILURES = 2
"""How many notes fail before that is told: one may have met somebody who was reading the file."""


class _Damaged(OSError):
    """A record is missing, and others cannot be read: one of them may be it."""


class Heads:
    """Writes heads to the file, and detects books that end before them or differ from them.

    Parameters
    ----------
    path
        The database.
    file
        Where heads are noted; by default beside the database, with its mode and its group. Of what is noted elsewhere
        nobody expects a head.
    """

    def __init__(self, path: str, file: str | None = None) -> None:
        self.path = f"{path}-heads" if file is None else file
        self.is_beside = file is None
        self._like = path
        self._places: dict[str, int] = {}
        self._file: int | None = None
        """The open file, as long as it is the one at that path."""
        self._identity = 0, 0
        self._written: dict[str, tuple[bytes, int, int]] = {}
        """The records that this process wrote last, with their lines and positions in the file."""
        self._failures = 0
        """How many notes failed since one succeeded."""

    # ---- reading

    def lost(
        self, name: str, sequence: int, hash_of: Callable[[int], str | None], since: int | None = None
    ) -> LedgerCorrupt | None:
        """The error if books that end at that line do not contain the noted head, by the hashes of their lines; or if
        heads are kept ``since`` a line, and none can be found."""
        try:
            noted = self.noted(name)
        except LedgerCorrupt as damaged:
            return damaged
        if noted is not None:
            return self.compare(noted, name, sequence, hash_of)
        return None if since is None else self._missing(name, since)

    def compare(
        self, noted: Head, name: str, sequence: int, hash_of: Callable[[int], str | None]
    ) -> LedgerCorrupt | None:
        """The error if books that end at that line do not contain this head."""
        if noted.sequence == 0 or (noted.sequence <= sequence and hash_of(noted.sequence) == noted.hash):
            return None
        restore = "file with its -wal" if self.is_beside else "database, from an archive or a standby that has them"
        found = f"ends at line {sequence}" if sequence < noted.sequence else f"has another line {noted.sequence}"
        return LedgerCorrupt(
            f"ledger {name!r} {found}, but {self.path} notes {noted.sequence}:{noted.hash[:12]}…: lines are lost, so "
            f"nothing can be reserved; restore the {restore}, or close this ledger. If the lost lines were "
            "never about people, remove the file of heads, and note the head anew with ",
            ADOPT,
        )

    def refuse_intact(self, name: str, sequence: int, hash_of: Callable[[int], str | None]) -> None:
        """Raise unless the head of a ledger is missing or damaged: then nothing says that lines are lost."""
        try:
            noted = self.noted(name)
        except LedgerCorrupt:
            return
        if noted is not None:
            raise self.compare(noted, name, sequence, hash_of) or InvalidValue(
                f"the head of ledger {name!r} noted in {self.path} is one of its books: nothing is to be adopted"
            )

    def noted(self, name: str) -> Head | None:
        """The head that was noted last, or the start of a trail where a place was made and nothing noted yet.

        Raises ``LedgerUnavailable`` if the file exists and cannot be read, and ``LedgerCorrupt`` if it is damaged.
        """
        try:
            file = _opened(self.path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._unreadable(error) from None
        try:
            return self._read_again(file, name)
        except _Damaged as error:
            raise self._damaged(error) from None
        except OSError as error:
            raise self._unreadable(error) from None
        finally:
            os.close(file)

    def _read_again(self, file: int, name: str) -> Head | None:
        """The record of a ledger. Somebody may be writing it: what looks damaged is read once more, under the lock."""
        try:
            return self._read(file, name)
        except _Damaged:
            if fcntl is None or not _locked(file):
                raise
        try:
            return self._read(file, name)
        finally:
            _unlock(file)

    def _read(self, file: int, name: str) -> Head | None:
        """The record of a ledger; remembers its position, or where it belongs."""
        known = self._places.get(name)
        if known is not None and (found := _parsed(os.pread(file, _SIZE, known * _SIZE), name)) is not None:
            return found
        records = _records(file)
        for place, record in enumerate(records):
            if (found := _parsed(record, name)) is not None:
                self._places[name] = place
                return found
        self._places[name] = len(records)
        wrong = [place for place, record in enumerate(records) if record != _BLANK and not _is_whole(record)]
        if wrong:
            raise _Damaged(f"record {wrong[0] + 1} of {len(records)} is not as it was written")
        return None

    # ---- what is wrong

    def _unreadable(self, error: OSError) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"the heads noted in {self.path} cannot be read ({error.strerror or error}), so lines could be lost "
            "unnoticed: let this user read the file"
        )

    def _damaged(self, error: OSError) -> LedgerCorrupt:
        return LedgerCorrupt(
            f"the heads noted in {self.path} are damaged ({error}), and that of this ledger is not among the "
            f"others, so lines could be lost unnoticed, and nothing can be reserved: {_PUT_BACK}",
            ADOPT,
        )

    def _missing(self, name: str, since: int) -> LedgerCorrupt:
        return LedgerCorrupt(
            f"heads of ledger {name!r} are noted since its line {since}, and {self.path} has none, so this may be an "
            f"old backup, and nothing can be reserved: {_PUT_BACK}",
            ADOPT,
        )

    # ---- writing

    def prepare(self, name: str) -> bool:
        """Make a place for a ledger, on the disk, before its first head is noted; whether there is one."""
        if self.note(name, _NOTHING):
            return True
        try:
            found = self.noted(name)
        except (LedgerUnavailable, LedgerCorrupt):
            found = None
        if found is None:
            _LOG.warning("no heads of ledger %r can be noted in %s: lines could be lost unnoticed", name, self.path)
        return found is not None

    def note(self, name: str, head: Head) -> bool:
        """Note a head, unless a later one is noted, and return whether it was. A failed write does not fail the
        commit."""
        try:
            if not self._is_current():
                self.close()
            if self._file is None:
                self._file = self._made()
                known = os.fstat(self._file)
                self._identity = known.st_ino, known.st_dev
            done = self._note(self._file, name, head)
        except OSError as error:
            self.close()
            self._failed(error)
            return False
        except BaseException:
            self.close()  # and release its lock
            raise
        self._failures = 0
        return done

    def _failed(self, error: OSError) -> None:
        self._failures += 1
        if self._failures == _FAILURES:
            _LOG.warning(
                "heads cannot be noted in %s (%s): until they are, lines could be lost unnoticed; let this user write "
                "the file, and nobody keep it locked", self.path, error.strerror or error,
            )  # fmt: skip

    def _made(self) -> int:
        """The file, opened for writing; a new one is for whoever may use the database."""
        try:
            return _opened(self.path, os.O_RDWR)
        except FileNotFoundError:
            if not self.is_beside:
                os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            file = _opened(self.path, os.O_RDWR | os.O_CREAT)
        if self.is_beside:
            with suppress(OSError):
                like = os.stat(self._like)
                os.fchmod(file, stat.S_IMODE(like.st_mode))
                os.fchown(file, like.st_uid if os.geteuid() == 0 else -1, like.st_gid)
        return file

    def _note(self, file: int, name: str, head: Head) -> bool:
        if fcntl is not None and not _locked(file):
            raise TimeoutError("somebody else keeps it locked")
        try:
            record, line, at = self._written.get(name, (b"", 0, 0))
            if os.pread(file, _SIZE, at) != record or not record:  # another process noted one
                noted = self._read(file, name)
                line, at = -1 if noted is None else noted.sequence, self._places[name] * _SIZE
            if line >= head.sequence:
                return False
            self._write(file, name, head, at)
            if line < 0:  # a new place; what is written over it later stays within its block
                os.fsync(file)
                _sync_folder(self.path)
        finally:
            if fcntl is not None:
                _unlock(file)
        return True

    def _write(self, file: int, name: str, head: Head, at: int) -> None:
        record = _record(name, head)
        self._written[name] = record, head.sequence, at
        os.pwrite(file, record, at)

    def renew(self, name: str, head: Head) -> None:
        """Note a head in place of one that is missing or cannot be read. Raises ``OSError``."""
        self.close()
        file = self._made()
        try:
            if fcntl is not None and not _locked(file):
                raise TimeoutError(f"{self.path} is locked: end who reads it")
            records = _records(file)
            os.ftruncate(file, len(records) * _SIZE)
            for place, record in enumerate(records):
                if not _is_whole(record):
                    os.pwrite(file, _BLANK, place * _SIZE)
            self._places.pop(name, None)
            self._read(file, name)
            self._write(file, name, head, self._places[name] * _SIZE)
            os.fsync(file)
            _sync_folder(self.path)
        finally:
            os.close(file)  # and release its lock
        self._failures = 0

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
            found = os.stat(self.path)
            return (found.st_ino, found.st_dev) == self._identity
        except FileNotFoundError:
            return False

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


def of_this_machine() -> str:
    """The file in which this user's processes note heads of servers."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "expost", "heads")


def _opened(path: str, flags: int) -> int:
    """Open a plain file; what else is at that path is not waited for. Raises ``OSError``."""
    file = os.open(path, flags | _AT_ONCE, 0o600)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError("it is not a plain file")
    return file


def _sync_folder(path: str) -> None:
    """Have the file's name on the disk; where folders cannot be synced, the file system does it."""
    with suppress(OSError):
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


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


# ---- records: 20 digits of the line, 64 of its hash, 32 that tell whose it is, and 8 of a checksum


_NOTHING = Head(0, GENESIS)
_PUT_BACK = "put the file of heads back or, if the books are known to be the last ones, note their head anew with "
_WHOSE = slice(86, 118)
_END = "\n"


def _record(name: str, head: Head) -> bytes:
    text = f"{head.sequence:020} {head.hash} {_whose(name)}"
    return f"{text} {sha256(text)[:8]}{_END}".encode()


def _records(file: int) -> list[bytes]:
    """All records; the last one is shorter if the file was cut off."""
    found = os.pread(file, os.fstat(file).st_size, 0)
    return [found[at : at + _SIZE] for at in range(0, len(found), _SIZE)]


def _is_whole(record: bytes) -> bool:
    """Whether a record is as it was written."""
    try:
        text = record.decode("ascii")
    except UnicodeDecodeError:
        return False
    return len(text) == _SIZE and text[:20].isdigit() and text[118:] == f" {sha256(text[:118])[:8]}{_END}"


def _parsed(record: bytes, name: str) -> Head | None:
    """The head in a record, if it is a whole one of that ledger."""
    if record[_WHOSE] != _whose(name).encode() or not _is_whole(record):
        return None
    return Head(int(record[:20]), record[21:85].decode())


@lru_cache(256)
def _whose(name: str) -> str:
    return sha256(name)[:32]
