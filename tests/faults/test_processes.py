"""Several processes, clocks that go backwards, requests that come twice; and the naive way, which overspends."""

from __future__ import annotations

import os
import pickle
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import apsw
import psycopg
import pytest

import expost as xp
from books import execute as by_hand
from clocks import Clock
from expost import Cost, Guarantee, Ledger
from expost.ledger import liveness
from expost.ledger.entry import Note
from faulty import GUARANTEE, NAME, Worker, acknowledged, check, child, kill, linear, make
from toys import Fixed

pytestmark = [pytest.mark.counted, pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")]
HALF = Guarantee({"some": "0.25", "all": "0.5"})


def together(count: int, work: Callable[[int], object]) -> list[int]:
    """So many processes do it at once; how each ended."""
    ready, go = os.pipe()
    pids = []
    for number in range(count):

        def start(number: int = number) -> None:
            os.read(ready, 1)
            os._exit(int(work(number) is not False))

        pids.append(child(start))
    os.write(go, b"x" * count)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    os.close(ready)
    os.close(go)
    return codes


def test_two_processes_create_and_open_at_once(new_url: Callable[[], str]) -> None:
    """One of them makes the tables and one the ledger; nobody sees half of it."""
    url = new_url()

    def create(number: int) -> bool:
        try:
            make(url)
            first = True
        except xp.InvalidValue:  # it exists already
            first = False
        Ledger.load(url, NAME).reserve(GUARANTEE).settle("small")
        return first

    assert sorted(together(6, create)) == [0, 0, 0, 0, 0, 1]
    ledger = Ledger.load(url, NAME)
    assert len(list(ledger.entries())) == 6
    ledger.verify()


def test_processes_together_never_pass_the_limit(new_url: Callable[[], str]) -> None:
    url = new_url()
    make(url, epsilon="0.1")

    def spend(number: int) -> None:
        ledger = Ledger.load(url, NAME)
        for _ in range(20):
            try:
                ledger.reserve(GUARANTEE).settle("large")
            except xp.BudgetExceeded:
                return

    together(4, spend)
    ledger = Ledger.load(url, NAME)
    assert ledger.spent == Cost("0.1", delta="25e-9")
    ledger.verify()


# ---- the naive way


def test_the_naive_way_overspends(tmp_path: Path, server: Any) -> None:
    """Read the balance, then add: two at once both find room. Ours, at the same moments, admits one."""
    path = tmp_path / "naive.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE balance (spent INTEGER)")
        connection.execute("INSERT INTO balance VALUES (0)")
    barrier = Barrier(2)

    def naive() -> None:
        own = apsw.Connection(str(path))
        own.set_busy_timeout(5000)
        spent: Any = own.execute("SELECT spent FROM balance").get
        barrier.wait()
        if spent + 6 <= 10:
            own.execute("UPDATE balance SET spent = spent + 6")
        own.close()

    def in_turn(work: Callable[[], None]) -> None:
        threads = [Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    in_turn(naive)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT spent FROM balance").fetchone() == (12,)  # of 10
    connection.close()
    ledger = make(f"sqlite:///{tmp_path}/ours.db", epsilon=10)
    refused: list[xp.BudgetExceeded] = []

    def ours() -> None:
        barrier.wait()
        try:
            ledger.reserve(Guarantee.uniform(6))
        except xp.BudgetExceeded as error:
            refused.append(error)

    in_turn(ours)
    assert (ledger.reserved, len(refused)) == (Cost(6), 1)


def test_the_naive_way_overspends_on_a_server(postgres_url: Callable[[], str]) -> None:
    """Each statement is a transaction of its own, and the server is right every time; the sum is not."""
    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE balance (spent INTEGER)")
        connection.execute("INSERT INTO balance VALUES (0)")
    ledger, barrier, refused = make(url, epsilon=10), Barrier(2), []

    def both() -> None:
        with psycopg.connect(url, autocommit=True) as own:
            (spent,) = own.execute("SELECT spent FROM balance").fetchone() or (10,)
            barrier.wait()
            if spent + 6 <= 10:
                own.execute("UPDATE balance SET spent = spent + 6")
        barrier.wait()
        try:
            Ledger.load(url, NAME).reserve(Guarantee.uniform(6), lease=60)
        except xp.BudgetExceeded as error:
            refused.append(error)

    threads = [Thread(target=both) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT spent FROM balance").fetchone() == (12,)  # of 10
    assert (ledger.reserved, len(refused)) == (Cost(6), 1)


def test_the_order_check_finds_what_is_out_of_order(tmp_path: Path) -> None:
    ledger = make(f"sqlite:///{tmp_path}/books.db")
    for _ in range(2):
        ledger.reserve(GUARANTEE)
    events = list(ledger.audit_trail())
    first = {"what": "reserve", "entry": 1, "since": 1.0, "until": 2.0}
    second = {"what": "reserve", "entry": 2, "since": 3.0, "until": 4.0}
    linear(events, [first, second])
    with pytest.raises(AssertionError, match="stands behind"):
        linear(events, [first | {"since": 3.0, "until": 4.0}, second | {"since": 1.0, "until": 2.0}])
    with pytest.raises(AssertionError, match="refused while it would have fitted"):
        linear(events, [first, second, {"what": "refused", "since": 2.5, "until": 2.6}])


# ---- death and leases


def test_what_a_dead_process_had_reserved_is_forfeited_at_load(new_url: Callable[[], str]) -> None:
    url = new_url()
    make(url, epsilon=1)
    ready, say = os.pipe()

    def work() -> None:
        ledger = Ledger.load(url, NAME)
        ledger.reserve(HALF)
        ledger.reserve(Guarantee.uniform("0.1"), begin=False)
        ledger.reserve(Guarantee.uniform("0.2"), key="kept", lease=600)
        os.write(say, b"x")
        time.sleep(60)

    pid = child(work)
    os.read(ready, 1)
    alive = Ledger.load(url, NAME)
    assert alive.reserved == Cost("0.8")
    kill(pid)
    after = Ledger.load(url, NAME)
    assert (after.spent, after.reserved) == (Cost("0.6"), Cost("0.2"))
    assert [entry.state for entry in after.entries()] == ["forfeited", "forfeited", "reserved"]
    assert after.reservation("kept").settle("any").charged == Cost("0.2")
    after.verify()


class Two:
    """Two parties that use a ledger: one works, and the other, elsewhere, judges. Both go by clocks of the test."""

    def __init__(self, url: str) -> None:
        self.clock, self.url = Clock(), url
        self.working = make(url, epsilon=3, settings=self.clock.settings(beat=40.0))
        self.other = Ledger.load(url, NAME, settings=self.clock.settings(beat=40.5))
        self.turn = self.clock.set_on(self.working)
        self.turn(self.clock.at)

    def reserve(self, **options: Any) -> xp.ledger.Reservation:
        """A reservation of a process that is on another machine."""
        spending = self.working.reserve(HALF, **options)
        by_hand(self.url, "UPDATE expost_owner SET identity = 'elsewhere'")
        return spending

    def wait(self, seconds: float) -> int:
        """Time passes, while the other looks every now and then; how many entries it forfeited."""
        count = 0
        for _ in range(int(seconds / 15)):
            self.clock.seconds += 15
            self.turn(self.clock.at + 15_000_000)
            count += self.other.recover()
        return count


def test_a_lease_that_expires_is_charged(new_url: Callable[[], str]) -> None:
    """The owner lives, but was silent for too long: it finds its entry forfeited, and delivers nothing."""
    two = Two(new_url())
    assert two.other.recover() == 0
    spending, leased = two.reserve(), two.reserve(lease=10)
    assert two.wait(30) == 1
    assert (leased.entry.state, spending.entry.state) == ("forfeited", "reserved")
    assert two.wait(60) == 1
    with pytest.raises(xp.errors.ReservationClosed, match="it is forfeited already"):
        spending.settle("some")
    told = Fixed(HALF, None, part="some")

    def slowly() -> str:
        by_hand(two.url, "UPDATE expost_owner SET identity = 'elsewhere'")
        assert two.wait(90) == 1
        return "never delivered"

    with pytest.raises(xp.errors.ReservationClosed):
        two.working.run(told, on=slowly)
    assert two.working.spent == Cost("1.5")
    assert two.working.run(told, on=lambda: "delivered").value == "delivered"  # under a new name
    two.working.verify()


def test_a_heart_that_beats_keeps_the_lease(new_url: Callable[[], str]) -> None:
    two = Two(new_url())
    spending = two.reserve()
    for _ in range(6):
        assert two.wait(45) == 0
        liveness.heart(40.0).beat()
    assert spending.settle("some").charged == Cost("0.25")


def test_the_living_are_not_forfeited_after_an_outage(new_url: Callable[[], str]) -> None:
    """Found: 5 of 6 live processes were forfeited after an outage of 88 seconds, for all of them were silent."""
    two = Two(new_url())
    here, far = two.working.reserve(HALF), Ledger.load(two.url, NAME, settings=two.clock.settings(beat=41.0))
    elsewhere = far.reserve(HALF)
    assert two.wait(30) == 0
    two.clock.seconds += 88
    two.turn(two.clock.at + 88_000_000)
    assert [two.other.recover(), far.recover(), two.working.recover()] == [0, 0, 0]
    assert {here.settle("some").state, elsewhere.settle("some").state} == {"settled"}


def test_a_clock_that_goes_backwards(new_url: Callable[[], str]) -> None:
    """The clock of the books stands still, nothing comes back to life, nothing is refunded."""
    two = Two(new_url())
    silent = two.reserve()
    assert two.wait(120) == 1
    two.turn(two.clock.at - 10_000_000_000)
    with pytest.raises(xp.errors.ReservationClosed):
        silent.settle("some")
    open_now = two.working.reserve(HALF)
    assert two.other.recover() == 0
    assert two.working.reserved == Cost("0.5")
    two.turn(two.clock.at - 10_000_000_000)
    assert open_now.settle("some").charged == Cost("0.25")
    times = [event.at for event in two.working.audit_trail()]
    assert times == sorted(times)
    assert two.working.spent == Cost("0.75")
    two.working.verify()


YEAR = 366 * 86_400_000_000


def test_a_clock_ten_years_ahead_is_not_believed(new_url: Callable[[], str]) -> None:
    """Found: it froze the clock of the books for ten years. Now somebody has to confirm it, and can set it back."""
    two = Two(new_url())
    ledger, now = two.working, two.clock.at
    store: Any = ledger._store
    before = ledger.reserve(HALF)
    two.turn(now + 10 * YEAR)
    with pytest.raises(xp.errors.LedgerUnavailable, match=r"more than a year after the last line.*expost ledger clock"):
        ledger.reserve(HALF)
    assert before.settle("some").state == "settled"  # what has begun can end
    store.set_clock(Note("me", "the clock is right"))
    ledger.reserve(HALF).settle("some")
    two.turn(now)
    store.set_clock(Note("me", "the clock was wrong"))
    ledger.reserve(HALF).settle("some")
    hours = [event.at // 3_600_000_000 for event in ledger.audit_trail()]
    assert hours[-1] == hours[0] == now // 3_600_000_000
    assert [event.kind for event in ledger.audit_trail()].count("clock") == 2
    ledger.verify()


# ---- twice


def test_every_request_again(new_url: Callable[[], str], tmp_path: Path) -> None:
    """After a run of everything, everything once more: nothing is sampled, charged or changed."""
    url = new_url()
    ledger = make(url)
    ledger.create_account("team", epsilon=9, delta=1e-3).create_account("alice", epsilon=9, delta=1e-3)
    Worker(ledger, tmp_path / "w.log", 3).work(40)
    ledger.reserve(GUARANTEE, key="a").settle("small")
    ledger.reserve(GUARANTEE, key="b")
    head, spent = ledger.verify(), ledger.spent
    again = Ledger.load(url, NAME)
    for entry in list(ledger.entries()):
        if entry.key is None:
            continue
        if entry.operation == "run":
            release = again.run(Fixed(GUARANTEE, None, part="small"), on=lambda: pytest.fail("sampled"), key=entry.key)
            assert release.entry == entry
        else:
            with pytest.raises(xp.errors.AlreadyReserved):
                again.reserve(GUARANTEE, key=entry.key)
    for entry in list(ledger.entries()):
        if entry.state != "reserved":
            for attempt in ("begin", "settle", "forfeit", "void"):
                step = getattr(again._store, attempt)
                with pytest.raises(xp.errors.ReservationClosed):
                    step(entry.id, "small", None) if attempt == "settle" else step(entry.id)
    assert (again.verify(), again.spent) == (head, spent)
    check(again, acknowledged(tmp_path))


# ---- one book, many hands


def test_a_durable_ledger_goes_by_its_address(new_url: Callable[[], str]) -> None:
    alice = make(new_url(), epsilon=1).create_account("alice", epsilon="0.5")
    again = pickle.loads(pickle.dumps(alice))
    again.reserve(HALF).settle("some")
    assert alice.spent == Cost("0.25")
    assert (again.name, again.unit, again.neighbours) == ("study/alice", "person", "add-remove")


def test_forked_processes_share_the_budget(new_url: Callable[[], str]) -> None:
    """The same object on both sides of a fork, with a reservation open: each side has its own connection."""
    ledger = make(new_url(), epsilon=2)
    mine = ledger.reserve(HALF)

    def work(number: int) -> bool:
        ledger.reserve(HALF).settle("some")
        return mine.entry.state == "reserved"

    assert together(2, work) == [1, 1]
    assert mine.settle("all").charged == Cost("0.5")
    assert ledger.spent == Cost(1)
    ledger.verify()


def test_a_stopped_process_is_alive(tmp_path: Path) -> None:
    pid = child(lambda: time.sleep(30))
    told = liveness.identity(pid)
    os.kill(pid, signal.SIGSTOP)
    assert liveness.standing(told) != "gone"
    os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 30
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) and time.monotonic() < until:
        time.sleep(0.001)
    assert liveness.standing(told) == "gone"  # also before it was waited for
    os.waitpid(pid, 0)
    assert liveness.standing(told) == "gone"
    elsewhere = told.replace(liveness._machine().split()[0], "another boot")
    assert liveness.standing(elsewhere) != "gone"
    assert liveness.standing("nonsense") != "gone"
