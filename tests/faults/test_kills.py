"""kill −9 at random moments, of clients and of the server's own processes: what was acknowledged stays."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

import psycopg
import pytest

from books import wait_until
from expost import Cost, Ledger
from faulty import ACCOUNTINGS, NAME, Worker, acknowledged, check, child, kill, make
from servers import Server
from soak import SOAK

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


def spend(url: str, log: Path, seed: int) -> None:
    Worker(Ledger.load(url, NAME), log, seed).work()


Accounting: TypeAlias = Literal["basic", "renyi"]


def set_up(url: str, epsilon: int | str = 1000, accounting: Accounting = "basic") -> None:
    ledger = make(url, epsilon, accounting=accounting)
    ledger.create_account("team", epsilon=100, delta=1e-3).create_account("alice", epsilon=50, delta=1e-3)


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_clients_killed_at_random_moments(new_url: Callable[[], str], tmp_path: Path, accounting: Accounting) -> None:
    """Two at a time, each killed up to so many milliseconds after it began; the next ones find what was left."""
    url, chance = new_url(), random.Random(7)
    set_up(url, accounting=accounting)
    kills, waited = SOAK or 20, 0
    for number in range(kills // 2):
        pids = []
        for which in range(2):
            log = tmp_path / f"{number}-{which}.log"
            pids.append(child(partial(spend, url, log, 2 * number + which)))
        if chance.random() < 0.8:  # else some die while they open the ledger
            wait_for(tmp_path / f"{number}-{which}.log" for which in range(2))
            waited += 2
        time.sleep(chance.uniform(0, 0.05))
        for pid in pids:
            kill(pid)
        if number % 100 == 99:
            check(Ledger.load(url, NAME), acknowledged(tmp_path))
    ledger = Ledger.load(url, NAME)
    told = acknowledged(tmp_path)
    assert len(told) >= waited > kills / 2
    assert ledger.reserved == Cost(0)  # everybody is dead: what they had reserved was forfeited
    check(ledger, told)


def wait_for(logs: Iterable[Path]) -> None:
    for log in logs:
        wait_until(lambda log=log: log.exists() and log.stat().st_size)  # type: ignore[misc]


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("violence", ["terminate", "SIGKILL"])
def test_backends_killed_at_random_moments(
    request: pytest.FixtureRequest, tmp_path: Path, violence: str, accounting: Accounting
) -> None:
    """The server's processes die under the clients' hands; the clients go on, and nothing is charged twice.

    After a SIGKILL the server stops all its processes and recovers: each such kill is one of the whole server, too.
    """
    if violence == "terminate":
        server = request.getfixturevalue("server")
    else:
        server = Server()
        request.addfinalizer(server.remove)
    url, chance = server.new_database(f"kill_{violence.lower()}_{accounting}_{os.getpid()}"), random.Random(8)
    set_up(url, accounting=accounting)
    ledger = Ledger.load(url, NAME)
    kills, period = SOAK or 6, 0.05
    working = [True]

    def work(number: int) -> None:
        worker = Worker(ledger, tmp_path / f"{number}.log", number)
        while working[0]:
            worker.work(6)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    done = 0
    until = time.monotonic() + 240 + kills
    try:
        while done < kills and time.monotonic() < until:
            time.sleep(chance.uniform(0, 2 * period))
            done += kill_one(server, url, violence, chance)
    finally:
        working[0] = False
        for thread in threads:
            thread.join()
    assert done >= kills
    ledger._store.tend()  # type: ignore[attr-defined]
    check(Ledger.load(url, NAME), acknowledged(tmp_path))


def kill_one(server: Server, url: str, violence: str, chance: random.Random) -> int:
    try:
        with psycopg.connect(url, autocommit=True, application_name="killer") as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'killer' "
                "AND backend_type = 'client backend'"
            ).fetchall()
            if not rows:
                return 0
            pid = chance.choice(rows)[0]
            if violence == "terminate":
                connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
            else:
                server.kill_backend(pid)
    except (psycopg.OperationalError, ProcessLookupError):
        return 0
    return 1


def test_the_order_of_the_trail_is_an_order_of_events(new_url: Callable[[], str], tmp_path: Path) -> None:
    """Four processes on a small budget: refusals, settlements and all are linearizable."""
    url = new_url()
    set_up(url, epsilon="0.2")
    pids = [
        child(lambda n=n: Worker(Ledger.load(url, NAME), tmp_path / f"{n}.log", n).work(50))  # type: ignore[misc]
        for n in range(4)
    ]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * 4
    told = acknowledged(tmp_path)
    assert any(fact["what"] == "refused" for fact in told)
    check(Ledger.load(url, NAME), told)
