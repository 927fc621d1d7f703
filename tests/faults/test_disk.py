"""Power cuts, a full disk, a locked file: an SQLite that writes through a file system which we can break."""

from __future__ import annotations

import random
import secrets
from pathlib import Path
from typing import Any

import apsw
import pytest

import expost as xp
from expost import Cost, Guarantee, Ledger
from expost.ledger import Settings
from faulty import ACCOUNTINGS, GUARANTEE, NAME, check, make
from soak import SOAK
from toys import Fixed

pytestmark = pytest.mark.counted


class Disk(apsw.VFS):
    """Remembers which bytes were synced, and what they were at every sync; and may be full."""

    def __init__(self) -> None:
        self.name = f"disk-{secrets.token_hex(4)}"
        super().__init__(self.name, "")
        self.synced: dict[str, bytes] = {}
        self.cuts: list[tuple[dict[str, bytes], dict[str, bytes], int]] = []
        """At each sync: the synced bytes, the written ones, and how much had been acknowledged."""
        self.told: list[dict[str, Any]] = []
        self.room: int | None = None

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _File(self, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:
        super().xDelete(name, sync)
        if sync:  # else the file may be back after a cut
            self.synced.pop(name, None)

    def cut(self) -> None:
        written = {name: Path(name).read_bytes() for name in self.synced if Path(name).exists()}
        self.cuts.append((dict(self.synced), written, len(self.told)))


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._path = name if isinstance(name, str) or name is None else name.filename()

    def xSync(self, flags: int) -> None:
        self._disk.cut()
        super().xSync(flags)
        if self._path:
            self._disk.synced[self._path] = Path(self._path).read_bytes()
        self._disk.cut()

    def xWrite(self, data: Any, offset: int) -> None:
        if self._disk.room is not None:
            self._disk.room -= len(data)
            if self._disk.room < 0:
                raise apsw.FullError("the disk is full")
        super().xWrite(data, offset)


@pytest.fixture
def disk() -> Disk:
    return Disk()


def spend(ledger: Ledger, disk: Disk, count: int) -> None:
    """Reserve, settle, forfeit, run; what is acknowledged is told to the disk."""
    chance = random.Random(5)
    for number in range(count):
        kind = chance.choice(["settled", "forfeited", "released"])
        if kind == "released":
            run = Fixed(GUARANTEE, None, part="small")
            release = ledger.run(run, on=lambda: secrets.token_bytes(8), key=f"key {number}")
            disk.told.append(
                {"what": kind, "entry": release.entry.id, "key": f"key {number}", "value": release.value.hex()}
            )
            continue
        spending = ledger.reserve(GUARANTEE)
        disk.told.append({"what": "reserve", "entry": spending.id, "since": number, "until": number})
        entry = spending.settle("small") if kind == "settled" else spending.forfeit()
        told = {"what": kind, "entry": entry.id, "charged": str(entry.charged), "since": number, "until": number}
        disk.told.append(told)


def after_the_cut(folder: Path, files: dict[str, bytes]) -> str:
    """A machine on which just these bytes are on the disk."""
    folder.mkdir()
    for name, content in files.items():
        (folder / Path(name).name).write_bytes(content)
    return f"sqlite:///{folder}/books.db"


def torn(synced: dict[str, bytes], written: dict[str, bytes], chance: random.Random) -> dict[str, bytes]:
    """Some of the sectors that were written, but not synced, happen to be on the disk, too."""
    files = dict(synced)
    for name, content in written.items():
        known = synced.get(name, b"").ljust(len(content), b"\0")
        sectors = [content if chance.random() < 0.5 else known for _ in range(0, len(content), 512)]
        files[name] = b"".join(whole[512 * k : 512 * k + 512] for k, whole in enumerate(sectors))
    return files


def lost(disk: Disk, tmp_path: Path, every: int) -> int:
    """At how many cuts something acknowledged is not there afterwards."""
    found = 0
    for number, (files, _, told) in enumerate(disk.cuts[::every]):
        try:
            check(Ledger.load(after_the_cut(tmp_path / f"cut {number}", files), NAME), disk.told[:told])
        except (AssertionError, KeyError, xp.ExpostError):
            found += 1
    return found


def begin(disk: Disk, tmp_path: Path, synchronous: str = "EXTRA", accounting: Any = "basic") -> Ledger:
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = make(url, settings=Settings(vfs=disk.name), accounting=accounting)
    if synchronous != "EXTRA":
        ledger = Ledger.load(url, NAME, settings=Settings(vfs=disk.name, synchronous=synchronous))
    disk.cuts.clear()
    return ledger


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_a_power_cut_at_every_sync(disk: Disk, tmp_path: Path, accounting: Any) -> None:
    """Only synced bytes are kept, with and without some of the others: all that was acknowledged is there."""
    chance = random.Random(6)
    ledger = begin(disk, tmp_path, accounting=accounting)
    count = 120 if SOAK else 10
    spend(ledger, disk, count)
    assert len(disk.cuts) > 2 * count
    for number, (synced, written, told) in enumerate(disk.cuts):
        for kind, files in (("clean", synced), ("torn", torn(synced, written, chance))):
            after = Ledger.load(after_the_cut(tmp_path / f"{kind} {number}", files), NAME)
            check(after, disk.told[:told])


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_with_less_a_power_cut_loses_what_was_acknowledged(disk: Disk, tmp_path: Path, synchronous: str) -> None:
    """The negative control: what the simulated power cut is there to find, it finds."""
    ledger = begin(disk, tmp_path, synchronous)
    spend(ledger, disk, 10)
    disk.cut()
    assert lost(disk, tmp_path, 1) > 0


def test_a_full_disk(disk: Disk, tmp_path: Path) -> None:
    """Wherever it fills up, nothing is half done; when there is room again, the ledger goes on."""
    ledger = begin(disk, tmp_path)
    spend(ledger, disk, 3)
    failed = 0
    for room in range(0, 60_000, 1_500):
        disk.room = room
        spending, refused = None, ""
        try:
            spending = ledger.reserve(GUARANTEE)
            spending.settle("small")
        except xp.errors.LedgerUnavailable as error:
            refused = " ".join([str(error), *getattr(error, "__notes__", [])])
        failed += bool(refused)
        assert not refused or "cannot be written" in refused
        assert (spending is not None) == (
            "stays reserved, and will be charged its worst case" in refused
        ) or not refused
        disk.room = None
        ledger._store.tend()  # type: ignore[attr-defined]
        assert ledger.reserved == Cost(0)
        if spending is not None and failed:
            assert spending.entry.state in ("settled", "forfeited")
    assert failed > 5
    check(ledger, disk.told)


def test_a_locked_file(tmp_path: Path) -> None:
    """Somebody else keeps the file to himself: requests fail after a while, and nothing is charged or delivered."""
    ledger = make(f"sqlite:///{tmp_path}/books.db", epsilon=1, settings=Settings(patience=0.1))
    spending = ledger.reserve(GUARANTEE)
    rude = apsw.Connection(str(tmp_path / "books.db"))
    rude.execute("BEGIN IMMEDIATE")
    with pytest.raises(xp.errors.Busy, match="kept the ledger's file locked"):
        ledger.reserve(Guarantee.uniform(0.5))
    with pytest.raises(xp.errors.LedgerUnavailable) as unsettled:
        spending.settle("small")
    assert "stays reserved, and will be charged its worst case" in unsettled.value.__notes__[-1]
    assert ledger.reserved == GUARANTEE.worst_case
    rude.execute("ROLLBACK")
    ledger._store.tend()  # type: ignore[attr-defined]
    assert (ledger.spent, ledger.reserved) == (GUARANTEE.worst_case, Cost(0))
    rude.close()
    ledger.verify()


def test_leaving_a_block_while_the_file_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's own error is what the caller sees; the entry stays reserved until it can be charged."""
    ledger = make(f"sqlite:///{tmp_path}/books.db", epsilon=1)

    def unreadable(*rest: object) -> None:
        raise xp.errors.LedgerUnavailable("locked")

    for error in (RuntimeError("engine down"), None):
        with monkeypatch.context() as patch:
            expected = xp.errors.LedgerUnavailable if error is None else RuntimeError
            with pytest.raises(expected) as caught, ledger.reserve(GUARANTEE):  # noqa: PT012
                patch.setattr(ledger._store, "find", unreadable)
                patch.setattr(ledger._store._writer, "submit", unreadable)  # type: ignore[attr-defined]
                if error is not None:
                    raise error
            assert "stays reserved, and will be charged its worst case" in caught.value.__notes__[-1]
        ledger._store.tend()  # type: ignore[attr-defined]
    assert (ledger.spent, ledger.reserved) == (GUARANTEE.worst_case * 2, Cost(0))
