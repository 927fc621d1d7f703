"""Tampering is found by verification, and some of it before."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import expost as xp
from books import GUARANTEE, OWNER, beat, disarm, execute, file_of, make
from expost import Cost, Guarantee, Ledger
from expost.ledger import Settings
from expost.ledger.address import open_store
from expost.ledger.entry import Note
from expost.ledger.rows import CHARGED, LIMIT, RESERVED
from expost.ledger.trail import GENESIS, link
from toys import Fixed

CHARGES, RESERVES = CHARGED.split(", "), RESERVED.split(", ")
FORFEITED = ", ".join(f"{charged} = {reserved}" for charged, reserved in zip(CHARGES, RESERVES, strict=True))
TAMPERING = {
    "UPDATE expost_account SET limit_epsilon = limit_epsilon + 1": "balances are not those",
    "UPDATE expost_account SET reserved_epsilon = reserved_epsilon - 1": "balances are not those",
    "UPDATE expost_account SET closed = 1": "balances are not those",
    f"UPDATE expost_entry SET state = 'forfeited', {FORFEITED} WHERE number = 2": (
        "entry 2 is not as the audit trail records it"
    ),
    "UPDATE expost_account SET entries = entries + 1 WHERE parent IS NULL": "number of entries is not",
    "INSERT INTO expost_event ({place}, line, hash) SELECT {next}, line, hash FROM expost_event WHERE sequence = 4": (
        "end differently"
    ),
    "INSERT INTO expost_event ({place}, line, hash) SELECT {next}, 'nonsense', hash FROM expost_event "
    "WHERE sequence = 4": "end differently",
}

OF_LINES = {"place": "id", "next": "id + 1"}
OF_LINES_ON_SERVERS = {"place": "ledger, sequence", "next": "ledger, sequence + 1"}


@pytest.mark.parametrize("statement", TAMPERING)
def test_tampering_that_the_tables_allow_is_found(new_url: Callable[[], str], statement: str) -> None:
    url = new_url()
    ledger = make(url)
    ledger.reserve(GUARANTEE).settle("small")
    ledger.reserve(GUARANTEE)
    ledger.verify()
    execute(url, statement.format(**(OF_LINES if url.startswith("sqlite") else OF_LINES_ON_SERVERS)))
    with pytest.raises(xp.errors.LedgerCorrupt, match=TAMPERING[statement]):
        ledger.verify()


def test_a_changed_output_is_found(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = make(url)
    told = Fixed(GUARANTEE, None, part="small")
    ledger.run(told, on=lambda: 7, key="k")
    execute(url, "DROP TRIGGER expost_entry_ends_once", "UPDATE expost_entry SET output = '8'")
    with pytest.raises(xp.errors.LedgerCorrupt, match="not the one that was published"):
        ledger.run(told, key="k")


REWRITING = {
    "DELETE FROM expost_entry WHERE number = 1": "entry 1 is in the audit trail, but was removed",
    "UPDATE expost_entry SET label = 'other' WHERE number = 2": "entry 2 is not as",
    "UPDATE expost_entry SET reserved_at = 1 WHERE number = 2": "entry 2 is not as",
    "UPDATE expost_entry SET ended_line = ended_line + 1 WHERE number = 1": "entry 1 is not as",
    "UPDATE expost_entry SET subject = 'other' WHERE number = 1": "entry 1 is not as",
    "UPDATE expost_entry SET fingerprint = 'other' WHERE number = 1": "entry 1 is not as",
    "UPDATE expost_entry SET operation = 'open' WHERE number = 1": "entry 1 is not as",
    "UPDATE expost_entry SET key = NULL WHERE number = 1": "entry 1 is not as",
    "UPDATE expost_entry SET account = 77 WHERE number = 1": "entry 1 is not as",
    "UPDATE expost_entry SET output = '8' WHERE number = 1": "stored output of entry 1 is not the one",
    "UPDATE expost_entry SET output = '8' WHERE number = 2": "stored output of entry 2 is not the one",
    "UPDATE expost_entry SET output = NULL WHERE number = 1": "stored output of entry 1 was removed",
    "UPDATE expost_guarantee SET json = '{}'": "entry 1 is not as",
    "UPDATE expost_ledger SET neighbours = 'substitute'": "name, neighbours, unit or accounting",
    "UPDATE expost_ledger SET unit = 'device'": "name, neighbours, unit or accounting",
}


@pytest.mark.parametrize("statement", REWRITING)
def test_rewriting_past_the_tables_defences_is_found(new_url: Callable[[], str], statement: str) -> None:
    url = new_url()
    ledger = make(url)
    ledger.run(Fixed(GUARANTEE, None, part="small"), on=lambda: 7, key="k")
    ledger.reserve(GUARANTEE)
    head = ledger.verify()
    for table in ("expost_entry", "expost_ledger", "expost_guarantee"):
        disarm(url, table)
    execute(url, statement)
    with pytest.raises(xp.errors.LedgerCorrupt, match=REWRITING[statement]):
        ledger.verify(known=head)


def quoted(text: str) -> str:
    return text.replace("'", "''")


@pytest.mark.parametrize("end", [True, False])
def test_a_key_that_was_used_twice_is_found(new_url: Callable[[], str], end: bool) -> None:
    """Found: two entries of one key in the same page of a verification passed."""
    url = new_url()
    ledger: Any = make(url)
    for key in ("one", "two"):
        spending = ledger.reserve(GUARANTEE, key=key)
        if end:
            spending.settle("small")
    rows = ledger._store._engine.rows("SELECT sequence, line FROM expost_event ORDER BY sequence")
    lines = [line.replace('"key":"two"', '"key":"one"') for _, line in rows]
    heads = list(accumulate(lines, link, initial=GENESIS))[1:]
    for table in ("expost_entry", "expost_event", "expost_ledger"):
        disarm(url, table)
    execute(
        url,
        "DROP INDEX expost_entry_key",
        "DROP INDEX expost_event_key",
        "UPDATE expost_entry SET key = 'one'",
        f"UPDATE expost_account SET head = '{heads[-1]}' WHERE parent IS NULL",
        *(
            f"UPDATE expost_event SET line = '{quoted(line)}', hash = '{head}' WHERE sequence = {number}"
            for number, (line, head) in enumerate(zip(lines, heads, strict=True), 1)
        ),
    )
    Path(f"{url.removeprefix('sqlite:///')}-heads").unlink(missing_ok=True)
    with pytest.raises(xp.errors.LedgerCorrupt, match="a key belongs to more than one entry"):
        ledger.verify()


def test_outputs_that_were_removed_after_others_were_dropped_are_found(new_url: Callable[[], str]) -> None:
    """Found: outputs dropped up to a number that was not reached yet excused every later removal."""
    url = new_url()
    ledger: Any = make(url)
    ledger.run(Fixed(GUARANTEE, 7, part="small"), key="one")
    ledger._store.drop_outputs(10**9, Note("me", "because"))
    head = ledger.verify()
    ledger.run(Fixed(GUARANTEE, 7, part="small"), key="two")
    ledger.verify()
    with pytest.raises(xp.InvalidValue, match="was dropped, or not imported"):
        ledger.output("one")
    disarm(url, "expost_entry")
    execute(url, "UPDATE expost_entry SET output = NULL")
    for work in (ledger.verify, lambda: ledger.verify(head, since=True), lambda: ledger.output("two")):
        with pytest.raises(xp.errors.LedgerCorrupt, match="stored output of entry 2 was removed"):
            work()


def test_a_changed_clock_of_the_books_is_found(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledger = make(url)
    head = ledger.verify()
    execute(url, "UPDATE expost_account SET at = at + 3600000000 WHERE parent IS NULL")
    for since in (False, True):
        with pytest.raises(xp.errors.LedgerCorrupt, match="the ledger's clock"):
            ledger.verify(head, since=since)


def test_an_entry_before_the_first_is_found(tmp_path: Path) -> None:
    """Found: a row of number 0 delivered a forged output under a key that was never used."""
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = make(url)
    ledger.run(Fixed(GUARANTEE, 7, part="small"), key="k")
    disarm(url, "expost_entry")
    columns = "ledger, account, below, operation, subject, fingerprint, guarantee, owner, begun, state, "
    columns += f"part, output, digest, reserved_at, reserved_line, ended_line, {CHARGED}, {RESERVED}"
    execute(
        url,
        "PRAGMA ignore_check_constraints = ON",
        f"INSERT INTO expost_entry (number, key, {columns}) SELECT 0, 'fresh', {columns} FROM expost_entry",
    )
    with pytest.raises(xp.errors.LedgerCorrupt, match="entry 0 is not in the audit trail"):
        ledger.verify()


def test_a_line_in_the_place_of_another_is_found(tmp_path: Path) -> None:
    """A flipped bit: line 2 is still between lines 1 and 3, but nobody finds it by its number."""
    path = tmp_path / "books.db"
    ledger = make(f"sqlite:///{path}")
    ledger.reserve(GUARANTEE).settle("small")
    head = ledger.verify()
    execute(f"sqlite:///{path}", "PRAGMA wal_checkpoint(TRUNCATE)")
    place = b"\xa0\x80\x80\x80\x80"  # ledger 1, as SQLite writes the first five bytes of the key of a line
    assert path.read_bytes().count(place + b"\x02") == 1
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(path.read_bytes().replace(place + b"\x02", place + b"\x03"))
    with pytest.raises(xp.errors.LedgerCorrupt, match="line 2 of the audit trail is in the place of line 3"):
        Ledger.load(f"sqlite:///{damaged}", "study").verify(head)


def test_an_output_that_was_removed_is_not_delivered_as_none(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledger, told = make(url), Fixed(GUARANTEE, None, part="small")
    ledger.run(told, on=lambda: 7, key="k")
    disarm(url, "expost_entry")
    execute(url, "UPDATE expost_entry SET output = NULL")
    with pytest.raises(xp.errors.LedgerCorrupt, match="stored output of entry 1 was removed"):
        ledger.run(told, key="k")


def test_a_balance_that_was_changed_by_hand_stops_all_spending(new_url: Callable[[], str]) -> None:
    """What is reserved is compared with the open entries at every load and every beat."""
    url = new_url()
    ledger = make(url)
    spending = ledger.reserve(GUARANTEE)
    execute(url, "UPDATE expost_account SET reserved_epsilon = reserved_epsilon - 1")
    other = Ledger.load(url, "study")
    beat(ledger, other)
    for party in (ledger, other):
        for work in (party.recover, partial(party.reserve, GUARANTEE)):
            with pytest.raises(xp.errors.LedgerCorrupt, match="not the sum of its open entries"):
                work()
    assert len(list(other.entries())) == 1  # reading goes on
    execute(url, "UPDATE expost_account SET reserved_epsilon = reserved_epsilon + 1")
    other.recover()
    assert other.reserve(GUARANTEE).settle("small").id == 2
    spending.settle("small")
    ledger.verify()


CHANGES = [
    "UPDATE expost_account SET reserved_epsilon = reserved_epsilon - 1 WHERE path = 'study/team/alice'",
    "UPDATE expost_account SET reserved_delta = 0 WHERE path = 'study/team'",
    "UPDATE expost_account SET reserved_epsilon = 1 WHERE path = 'study/team/bob'",
    "UPDATE expost_account SET reserved_epsilon = reserved_epsilon + 1 WHERE path = 'study'",
    "UPDATE expost_account SET parent = id WHERE path = 'study/team'",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_a_balance_that_was_changed_by_hand_is_found_below(new_url: Callable[[], str], statement: str) -> None:
    url = new_url()
    ledger, other = make(url), make(url, name="other")
    team = ledger.create_account("team", epsilon=4, delta=1e-3)
    alice, _ = (team.create_account(name, epsilon=3, delta=1e-3) for name in ("alice", "bob"))
    for account in (alice, alice, team, ledger, other):
        account.reserve(GUARANTEE, begin=False)
    alice.reserve(GUARANTEE).settle("small")
    Ledger.load(url, "study").reserve(GUARANTEE, begin=False).void()
    disarm(url, "expost_account")
    execute(url, statement)
    with pytest.raises(xp.errors.LedgerCorrupt, match="'study' has reserved is not the sum of its open entries"):
        Ledger.load(url, "study").account("team").account("bob").reserve(GUARANTEE)
    Ledger.load(url, "other").reserve(GUARANTEE).settle("small")


def test_a_balance_that_was_changed_by_hand_locks_nobody_out(new_url: Callable[[], str], tmp_path: Path) -> None:
    """What a dead process left cannot be forfeited then; it stays reserved, and everything can be read."""
    url = new_url()
    make(url).reserve(GUARANTEE, label="left")
    execute(
        url,
        """UPDATE expost_owner SET identity = replace(identity, '"started":"', '"started":"1')""",
        "UPDATE expost_account SET reserved_epsilon = 0",
    )
    ledger = Ledger.load(url, "study")
    assert [entry.label for entry in ledger.entries()] == ["left"]
    assert (ledger.spent, ledger.reserved) == (Cost(0), Cost(0, "1e-6"))
    assert str(ledger.statement())
    ledger.export(tmp_path / "trail")
    with pytest.raises(xp.errors.LedgerCorrupt, match="balances are not those that follow from the audit trail"):
        ledger.verify()
    for work in (ledger.recover, partial(ledger.reserve, GUARANTEE)):
        with pytest.raises(xp.errors.LedgerCorrupt, match="not the sum of its open entries"):
            work()
    ledger.close(**OWNER)
    assert Ledger.load(url, "study").closed


def test_verifying_while_others_spend(new_url: Callable[[], str]) -> None:
    url = new_url()
    ledger = make(url, epsilon=1000)
    done = threading.Event()

    def spend() -> None:
        while not done.is_set():
            ledger.reserve(Guarantee.uniform("0.001")).settle("any")

    thread = threading.Thread(target=spend)
    thread.start()
    reader = Ledger.load(url, "study")
    heads = [reader.verify() for _ in range(10)]
    done.set()
    thread.join()
    assert heads == sorted(heads)
    assert heads[0].sequence < reader.verify(known=heads[0]).sequence


# ---- several meters


SMALL = Guarantee({"large": "0.01", "small": "0.003"})


def make_metered(url: str) -> Ledger:
    ledger = make(url, epsilon=1, delta=1e-6, accounting="renyi")
    ledger.reserve(SMALL).settle("small")
    ledger.run(xp.Gaussian(epsilon="0.01", delta="1e-9", sensitivity=1), on=4)
    ledger.reserve(SMALL)
    ledger.verify()
    return ledger


@pytest.mark.parametrize("column", [*LIMIT.split(", "), *CHARGES, *RESERVES])
def test_each_number_of_the_meters_is_verified(new_url: Callable[[], str], column: str) -> None:
    url = new_url()
    ledger = make_metered(url)
    disarm(url, "expost_account")
    execute(url, f"UPDATE expost_account SET {column} = {column} + 1")
    with pytest.raises(xp.errors.LedgerCorrupt, match="balances are not those"):
        ledger.verify()
    execute(url, f"UPDATE expost_account SET {column} = {column} - 1")
    ledger.verify()


@pytest.mark.parametrize("column", [*CHARGES, *RESERVES])
def test_each_number_of_an_entry_is_verified(new_url: Callable[[], str], column: str) -> None:
    url = new_url()
    ledger = make_metered(url)
    disarm(url, "expost_entry")
    try:
        execute(url, f"UPDATE expost_entry SET {column} = {column} + 1 WHERE number = 1")
    except (apsw.ConstraintError, psycopg.IntegrityError):  # not even without its guards
        return
    with pytest.raises(xp.errors.LedgerCorrupt, match="entry 1 is not as the audit trail records it"):
        ledger.verify()


def test_numbers_of_meters_are_whole_numbers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = make_metered(url)
    for table in ("expost_account", "expost_entry"):
        disarm(url, table)
        for column in (*CHARGES, *RESERVES):
            with pytest.raises(apsw.ConstraintError, match="cannot store REAL value in INTEGER column"):
                execute(url, f"UPDATE {table} SET {column} = 0.5")
    ledger.verify()


def test_an_account_that_lost_its_meters_reserves_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = make_metered(url)
    disarm(url, "expost_account")
    execute(
        url,
        "PRAGMA ignore_check_constraints = ON",
        "UPDATE expost_account SET capacity_renyi = -1, capacity_normal = -1, capacity_others = -1",
    )
    with pytest.raises(xp.errors.LedgerCorrupt, match="has other meters than its ledger"):
        ledger.reserve(SMALL)
    with pytest.raises(xp.errors.LedgerCorrupt, match="balances are not those"):
        ledger.verify()


def test_an_account_that_was_renamed_in_its_row_alone(sqlite_url: Callable[[], str]) -> None:
    """Found: verification read names of accounts from an index, which is a copy of them."""
    url = sqlite_url()
    ledger: Any = make(url)
    ledger.create_account("unmistakable", epsilon=1, delta="1e-5").reserve(GUARANTEE).settle("small")
    ledger._store._engine.close()
    file, name, found = file_of(url), b"study/unmistakable", 0
    whole = file.read_bytes()
    places = [match.start() for match in re.finditer(name, whole)]
    for place in places:
        changed = file.with_name(f"{place}.db")
        changed.write_bytes(whole[:place] + b"study/unmistakenly" + whole[place + len(name) :])
        try:
            store = open_store(f"sqlite:///{changed}", "study", Settings(heads=False), read_only=True)
            store.verify(None)
        except xp.errors.ExpostError:
            found += 1
    assert found >= len(places) - 1  # of an index nobody reads
