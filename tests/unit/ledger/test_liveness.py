"""Which processes are alive, and which are given up."""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from books import ALONE, GUARANTEE, execute, make
from clocks import Clock
from expost import Ledger
from expost.canonical import canonical
from expost.ledger import Settings, address, liveness


def test_a_process_that_cannot_look_does_not_think_others_dead(new_url: Callable[[], str]) -> None:
    """No file descriptor is left to read about other processes, or about this one."""
    url = new_url()
    ledger = make(url)
    spending, other = ledger.reserve(GUARANTEE), Ledger.load(url, "study")
    assert other.remaining
    assert other.recover() == 0
    told, opened = liveness.identity(os.getpid()), []
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 9, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                opened.append(os.open("/dev/null", os.O_RDONLY))
        assert liveness.standing(told) != "gone"
        assert other.recover() == 0
    finally:
        for file in opened:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert spending.settle("small").charged == GUARANTEE.cost_of("small")
    assert liveness.standing(canonical({"machine": liveness._machine(), "pid": 2**22 + 1, "started": "1"})) == "gone"
    assert liveness.standing(canonical({"machine": liveness._machine(), "pid": 10**30, "started": "1"})) != "gone"
    assert liveness.standing(canonical({"machine": liveness._machine(), "pid": os.getpid(), "started": "1"})) == "gone"


def test_all_leases_are_renewed_before_anything_else_is_done(caplog: pytest.LogCaptureFixture) -> None:
    """What takes long in one ledger does not cost another its lease."""
    done: list[str] = []

    class Untidy(Patient):
        def beat(self) -> None:
            done.append("beat")

        def tend(self) -> None:
            done.append("tend")
            raise RuntimeError("not reached")

    class Away(Untidy):
        def beat(self) -> None:
            raise RuntimeError("not reached")

    heart, stores = liveness.Heart(600), [Untidy("a"), Away("b"), Untidy("c")]
    heart._stores.update(stores)
    heart.beat()
    assert done == ["beat", "beat", "tend", "tend"]
    assert [record.getMessage().rpartition(" to ")[2] for record in caplog.records] == [
        "send a heartbeat: not reached",
        *["forfeit what was left open: not reached"] * 2,
    ]


class Patient:
    """A store that is reached, or not; it counts how often it was tried."""

    def __init__(self, name: str, database: str = "here") -> None:
        self.address = (database, name)
        self.error: Exception | None = None
        self.tried = 0

    def is_out_of_reach(self, error: Exception) -> bool:
        return isinstance(error, ConnectionError)

    def beat(self) -> None:
        self.tried += 1
        if self.error is not None:
            raise self.error

    def tend(self) -> None:
        pass


def test_one_database_that_is_out_of_reach_is_tried_once(caplog: pytest.LogCaptureFixture) -> None:
    """Found: every ledger in it was tried for its whole patience, and every try was a warning."""
    heart = liveness.Heart(600)
    here, there, broken = [Patient(name) for name in "abc"], Patient("a", "there"), Patient("b", "there")
    broken.error = ValueError("broken")
    heart._stores.update([*here, there, broken])
    for store in here:
        store.error = ConnectionError("away")
    for _ in range(3):
        heart.beat()
    assert sum(store.tried for store in here) == 3
    assert (there.tried, broken.tried) == (3, 3)
    assert sorted(record.getMessage().rpartition(": ")[2] for record in caplog.records) == ["away", "broken"]
    for store in here:
        store.error = None
    heart.beat()
    here[0].error = ConnectionError("away again")
    heart.beat()
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records][2:] == ["away again"]


def test_where_nobody_tells_about_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(path: Any, *rest: Any) -> str:
        raise OSError

    liveness._machine.cache_clear()
    monkeypatch.setattr(Path, "read_text", absent)
    with contextlib.suppress(OSError):
        assert liveness._machine()
    told = canonical({"machine": liveness._machine(), "pid": 1, "started": None})
    assert liveness.standing(told) != "gone"
    monkeypatch.undo()
    liveness._machine.cache_clear()


class Machines:
    """A process here that judges others, and its timer."""

    def __init__(self, *, local: bool = False) -> None:
        self.clock = Clock()
        self.judge = liveness.Judge(15, 60, self.clock.timer, local=local)

    def look(self, after: float, *owners: tuple[str, str, int]) -> tuple[str, ...]:
        self.clock.seconds += after
        return self.judge.given_up(owners, "me")


ELSEWHERE = canonical({"machine": "another pid:[1]", "pid": 1, "started": "1"})
CONTAINER = canonical({"machine": f"{liveness._machine().split()[0]} pid:[1]", "pid": 1, "started": "1"})


def test_a_silent_process_elsewhere_is_given_up_after_a_while() -> None:
    judge = Machines()
    assert [judge.look(15, ("far", ELSEWHERE, 3)) for _ in range(5)] == [(), (), (), (), ("far",)]
    assert judge.look(15, ("far", ELSEWHERE, 4)) == ()  # it beats again
    assert judge.look(15, ("me", ELSEWHERE, 4)) == ()


@pytest.mark.parametrize("held_up", [88.0, 31.0])
def test_a_judge_that_was_late_gives_nobody_up(held_up: float) -> None:
    """After an outage, or a hold of the interpreter, everybody is silent: the judge starts to observe again."""
    judge, owner = Machines(), ("far", ELSEWHERE, 3)
    assert [judge.look(15, owner) for _ in range(4)] == [()] * 4
    assert judge.look(held_up, owner) == ()
    assert [judge.look(15, owner) for _ in range(4)] == [(), (), (), ("far",)]


def test_a_process_that_lives_on_this_machine_is_never_given_up() -> None:
    judge, owner = Machines(), ("near", liveness.identity(os.getpid()), 3)
    assert [judge.look(15, owner) for _ in range(100)] == [()] * 100
    gone = canonical({"machine": liveness._machine(), "pid": os.getpid(), "started": "1"})
    assert judge.look(15, ("near", gone, 3)) == ("near",)


def test_a_process_of_an_earlier_boot_is_gone_where_all_are_on_one_machine() -> None:
    assert Machines(local=True).look(1, ("before", ELSEWHERE, 1)) == ("before",)
    assert Machines().look(1, ("before", ELSEWHERE, 1)) == ()


def test_a_host_that_was_renamed_has_not_been_restarted() -> None:
    """Found: where the kernel does not name its boots, a new host name forfeited live work."""
    for told in ("laptop.wifi", ""):
        owner = canonical({"machine": told, "pid": 1, "started": None})
        assert Machines(local=True).look(1, ("near", owner, 1)) == ()
        assert liveness.standing(owner, local=True, here="laptop.office") == "unknown"
        assert liveness.standing(ELSEWHERE, local=True, here="laptop.office") == "unknown"


class Short:
    """Processes that are over soon. What one of them left open is in another container."""

    def __init__(self, url: str) -> None:
        self.url, self._loads = url, 0
        self.left = make(url, settings=Settings(beat=10**6)).reserve(GUARANTEE)
        execute(url, f"UPDATE expost_owner SET identity = '{CONTAINER}'")
        self.owner = self.left._store._engine.owner(1)  # type: ignore[attr-defined]

    def wait(self, seconds: int) -> None:
        execute(self.url, f"UPDATE expost_owner SET seen = seen - {seconds * 10**6}")

    def load(self) -> str:
        """By another process each time; what became of the entry."""
        self._loads += 1
        Ledger.load(self.url, "study", settings=Settings(beat=10**6 + self._loads))
        return self.left.entry.state


def test_processes_that_are_over_soon_give_up_the_dead_elsewhere(new_url: Callable[[], str]) -> None:
    """Found: each load observed from the beginning, so without a process that stays nothing was ever forfeited."""
    short = Short(new_url())
    assert short.load() == "reserved"
    short.wait(61)
    assert short.load() == "reserved"  # the first that finds it silent
    short.wait(30)
    assert short.load() == "reserved"
    short.wait(31)
    assert short.load() == "forfeited"


def test_whoever_wrote_to_the_ledger_has_looked(new_url: Callable[[], str]) -> None:
    short = Short(new_url())
    short.wait(61)
    Ledger.load(short.url, "study", recover=False, settings=Settings(beat=10**7)).reserve(GUARANTEE).settle("small")
    short.wait(61)
    assert short.load() == "forfeited"


@pytest.mark.parametrize("outage", [88, 10**6])
def test_after_an_outage_one_look_gives_nobody_up(new_url: Callable[[], str], outage: int) -> None:
    """All were silent. Whoever lives beats again before the second look."""
    short = Short(new_url())
    Ledger.load(short.url, "study", settings=Settings(beat=10**7)).reserve(GUARANTEE)
    short.wait(outage)
    assert [short.load(), short.load()] == ["reserved"] * 2
    short.wait(35)
    short.left._store.beat()  # type: ignore[attr-defined]
    short.wait(35)
    assert [short.load(), short.load()] == ["reserved"] * 2
    assert short.left.settle("small").charged == GUARANTEE.cost_of("small")


def test_a_process_that_looked_long_ago_and_reserves_now_is_alive(new_url: Callable[[], str]) -> None:
    short = Short(new_url())
    short.wait(61)
    late = Ledger.load(short.url, "study", settings=Settings(beat=10**7))
    execute(short.url, f"UPDATE expost_owner SET identity = '{CONTAINER}'")
    short.wait(10**9)
    assert short.load() == "forfeited"
    short.wait(61)
    spending = late.reserve(GUARANTEE)
    assert short.load() == "forfeited"
    assert spending.settle("small").charged == GUARANTEE.cost_of("small")


def test_a_heart_beats_by_itself() -> None:
    beaten = threading.Event()

    class Store(Patient):
        def beat(self) -> None:
            beaten.set()
            raise RuntimeError("not reached")

    heart, store = liveness.Heart(0.01), Store("a")
    heart.watch(store)
    heart.watch(store)
    assert beaten.wait(60)
    heart._every = 600


DAY = 86400 * 10**6


def test_a_clock_that_is_behind_ends_no_lease(new_url: Callable[[], str]) -> None:
    """Found: it took a lease for too long, shortened it by its own time, and the next right clock ended it."""
    url, clock = new_url(), Clock()
    ledger = make(url, settings=clock.settings())
    turn, now = clock.set_on(ledger), clock.at
    turn(now)
    spending = ledger.reserve(GUARANTEE, lease=86400)
    for behind in (10 * DAY, 30 * 60 * 10**6):
        turn(now - behind)
        assert ledger.recover() == 0
        turn(now + DAY // 2)
        assert ledger.recover() == 0
    turn(now + DAY + 10**6)
    assert ledger.recover() == 1
    assert spending.entry.state == "forfeited"


def test_a_clock_that_is_not_trusted_ends_no_lease(new_url: Callable[[], str]) -> None:
    """One that is more than a year ahead reserves nothing either."""
    url, clock = new_url(), Clock()
    ledger = make(url, settings=clock.settings())
    turn, now = clock.set_on(ledger), clock.at
    turn(now)
    spending = ledger.reserve(GUARANTEE, lease=60)
    turn(now + 3660 * DAY)
    assert ledger.recover() == 0
    turn(now + 30 * 10**6)
    assert spending.settle("small").charged == GUARANTEE.cost_of("small")


def test_a_lease_from_a_clock_that_was_ahead_is_shortened_once_the_clock_is_set(new_url: Callable[[], str]) -> None:
    url, clock = new_url(), Clock()
    ledger = make(url, settings=clock.settings())
    turn, now = clock.set_on(ledger), clock.at
    turn(now + 300 * DAY)
    ledger.reserve(GUARANTEE, lease=60)
    turn(now)
    assert ledger.recover() == 0
    ledger.set_clock(by="me", reason="it was wrong")
    assert ledger.recover() == 0
    turn(now + 61 * 10**6)
    assert ledger.recover() == 1
    ledger.verify()


class Asked(liveness.SystemProcesses):
    """Counts about how many processes somebody asked."""

    def __init__(self) -> None:
        self.count = 0

    def standing(self, owner: str, *, local: bool) -> liveness.Standing:
        self.count += 1
        return super().standing(owner, local=local)


def processes(url: str) -> int:
    """How many are in the books."""
    with contextlib.closing(address.open_engine(url, read_only=True)) as engine:  # type: ignore[type-var]
        ((count,),) = engine.rows("SELECT count(*) FROM expost_owner")
    return int(count)


def test_processes_that_left_nothing_open_are_not_judged(new_url: Callable[[], str]) -> None:
    """Found: 5,000 rows of processes that had ended elsewhere cost every load and every beat four to ten seconds."""
    url, asked = new_url(), Asked()
    left = make(url, settings=ALONE).reserve(GUARANTEE)
    more, values = ("", "") if url.startswith("sqlite") else (", batch, outcomes", ", '', '[]'")
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
    execute(
        url,
        f"{numbers} INSERT INTO expost_owner (id, ledger, identity, seen{more}) "
        f"SELECT 'p' || i, id, '{ELSEWHERE}', at + 3600000000 - i{values} FROM n, expost_books",
        f"UPDATE expost_owner SET identity = '{CONTAINER}' WHERE id NOT LIKE 'p%'",
    )
    begun = time.monotonic()
    ledger: Any = Ledger.load(url, "study", settings=Settings(beat=10**6, processes=asked))
    ledger._store.tend()
    assert asked.count == 2  # the one that has something open, at the load and at the beat
    assert time.monotonic() - begun < 3
    assert left.settle("small").charged == GUARANTEE.cost_of("small")


def test_a_process_that_ends_well_is_forgotten_at_once(new_url: Callable[[], str]) -> None:
    """Found: every process that ever reserved stayed in the books for a month after it was given up."""
    url = new_url()
    make(url, settings=ALONE)
    for work, rows in (
        (lambda ledger: ledger.reserve(GUARANTEE).settle("small"), 0),
        (lambda ledger: ledger.reserve(GUARANTEE), 1),  # it left something open
    ):
        code = os.waitstatus_to_exitcode(os.waitpid(ended_well(url, work), 0)[1])
        assert code == 0
        assert processes(url) == rows
    ledger = Ledger.load(url, "study", settings=Settings(beat=10**7))
    assert [entry.state for entry in ledger.entries()] == ["settled", "forfeited"]
    ledger.verify()


def ended_well(url: str, work: Callable[[Ledger], object]) -> int:
    """A process that runs to its end; its number."""
    pid = os.fork()
    if pid:
        return pid
    try:
        ledger = Ledger.load(url, "study", recover=False, settings=Settings(beat=10**6 + 1))
        work(ledger)
        ledger._store._writer._writer.stop()  # type: ignore[attr-defined]  # what the end of a process does
        os._exit(0)
    except BaseException as error:
        os.write(2, f"child failed: {error!r}\n".encode())
        os._exit(1)


def test_whoever_may_have_looked_stays_known(new_url: Callable[[], str]) -> None:
    """A later process counts on it: else processes that are over soon would never give anybody up."""
    short = Short(new_url())
    short.wait(61)
    os.waitpid(ended_well(short.url, lambda ledger: ledger.reserve(GUARANTEE).settle("small")), 0)
    assert processes(short.url) == 2
    short.wait(61)
    assert short.load() == "forfeited"


def test_processes_that_were_never_given_up_are_forgotten(new_url: Callable[[], str]) -> None:
    """After a month: nobody judges who left nothing open."""
    url = new_url()
    killed = make(url, settings=ALONE)
    killed.reserve(GUARANTEE).settle("small")
    before = killed._store._engine.owner(1)  # type: ignore[attr-defined]
    execute(url, f"UPDATE expost_owner SET seen = seen - {31 * DAY}")
    assert processes(url) == 1
    later: Any = Ledger.load(url, "study", settings=Settings(beat=10**7))
    assert not later._store._engine.rows("SELECT 1 FROM expost_owner WHERE id = ?", before)
