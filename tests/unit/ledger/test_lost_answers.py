"""Reservations that are in the books, and that nobody was told of: they end at the next contact."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import expost as xp
from books import ALONE, GUARANTEE, held, make
from expost import Cost, Ledger
from expost.ledger import Settings
from expost.ledger.engine import Beat

IMPATIENT = Settings(beat=3600, patience=1.5)


class Lossy:
    """Loses the answers of a database while it is told to."""

    def __init__(self, url: str) -> None:
        self.ledger: Any = make(url, settings=IMPATIENT)
        store: Any = self.ledger._store
        self.store, self.engine = store, store._engine
        self.lost = 0

    def lose(self, work: Callable[[], object]) -> None:
        """Do it, and lose the answer of what it commits."""
        if self.engine.local:
            self._lose_locally(work)
            return
        real = self.engine._write

        def writes(*given: Any) -> Any:
            real(*given)
            self.lost += 1
            raise psycopg.OperationalError("the connection was lost")

        self.engine._write = writes
        try:
            with pytest.raises(xp.errors.LedgerUnavailable, match="the connection was lost"):
                work()
        finally:
            self.engine._write = real

    def _lose_locally(self, work: Callable[[], object]) -> None:
        files, real, checks = self.engine.files, self.engine.files.check, [0]

        def check() -> None:
            checks[0] += 1
            if checks[0] == 2:
                self.lost += 1
                raise xp.errors.LedgerUnavailable("the log is gone")
            real()

        files.check = check
        try:
            with pytest.raises(xp.errors.LedgerUnavailable, match="the log is gone"):
                work()
        finally:
            files.check = real

    def states(self) -> list[str]:
        return [entry.state for entry in self.ledger.entries()]


@pytest.fixture
def lossy(new_url: Callable[[], str]) -> Lossy:
    return Lossy(new_url())


@pytest.mark.parametrize(("begin", "state"), [(True, "forfeited"), (False, "voided")])
def test_it_ends_at_the_next_contact(lossy: Lossy, begin: bool, state: str) -> None:
    """Found: a service leaked a worst case with every hiccup, until its process ended."""
    before = lossy.ledger.reserve(GUARANTEE)
    lossy.lose(lambda: lossy.ledger.reserve(GUARANTEE, begin=begin))
    assert lossy.states() == ["reserved", "reserved"]
    lossy.store.beat()
    assert lossy.states() == ["reserved", state]
    before.settle("small")
    assert lossy.ledger.reserved == Cost(0)
    lossy.ledger.verify()


def test_the_first_one_of_a_process(lossy: Lossy) -> None:
    lossy.lose(lambda: lossy.ledger.reserve(GUARANTEE, begin=False))
    spending = lossy.ledger.reserve(GUARANTEE)
    assert lossy.states() == ["voided", "reserved"]
    spending.settle("small")
    lossy.ledger.verify()


def test_what_fails_to_end_is_tried_again(lossy: Lossy) -> None:
    lossy.lose(lambda: lossy.ledger.reserve(GUARANTEE))
    real, asked = lossy.engine.rows, []

    def rows(sql: str, *values: Any) -> Any:
        if "e.owner = ?" in sql:
            asked.append(sql)
            raise xp.errors.LedgerUnavailable("not now")
        return real(sql, *values)

    lossy.engine.rows = rows
    lossy.store.beat()
    lossy.engine.rows = real
    assert (len(asked), lossy.states()) == (1, ["reserved"])
    lossy.store.beat()
    assert lossy.states() == ["forfeited"]


def test_what_others_of_this_process_were_given_stays(lossy: Lossy) -> None:
    """Another store of the same database, batches, leases, and what they ended or others did."""
    url = lossy.store.address[0]
    other = Ledger.load(url, "study", settings=IMPATIENT)
    given = [other.reserve(GUARANTEE), lossy.ledger.reserve(GUARANTEE, lease=3600)]
    ended = lossy.ledger.reserve(GUARANTEE)
    Ledger.load(url, "study", settings=ALONE, recover=False).reservation(ended.id).forfeit()
    requests = [lossy.ledger._request("reserve", GUARANTEE, GUARANTEE, None, None) for _ in range(2)]
    together = lossy.store.reserve_all(requests, begin=True)
    lossy.lose(lambda: lossy.ledger.reserve(GUARANTEE))
    lossy.store.beat()
    assert lossy.states() == ["reserved", "reserved", "forfeited", *["reserved"] * 2, "forfeited"]
    for one in given:
        one.settle("small")
    for entry in together:
        lossy.store.settle(entry.id, "small", None)
    lossy.ledger.verify()


def test_a_caller_who_was_interrupted_while_it_waited(new_url: Callable[[], str]) -> None:
    """It had been claimed, so it was committed; nobody was told."""
    ledger = make(new_url(), settings=ALONE)
    store: Any = ledger._store
    batch, struck = store._writer, threading.Event()
    real = batch._await

    def interrupted(ticket: Any) -> None:
        assert ticket.done.acquire(timeout=60)
        struck.set()
        raise KeyboardInterrupt

    with held(ledger) as answers:
        batch._await = interrupted
        answers.ask(lambda: ledger.reserve(GUARANTEE))
    assert struck.wait(60)
    batch._await = real
    assert isinstance(answers[0], KeyboardInterrupt)
    assert [entry.state for entry in ledger.entries()] == ["reserved"]
    store._do(Beat())
    assert [entry.state for entry in ledger.entries()] == ["forfeited"]
    ledger.verify()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_copy_ends_nothing_of_its_parent(lossy: Lossy) -> None:
    spending = lossy.ledger.reserve(GUARANTEE)
    lossy.lose(lambda: lossy.ledger.reserve(GUARANTEE))
    pid = os.fork()
    if not pid:
        try:
            lossy.ledger.reserve(GUARANTEE).settle("small")
            os._exit(0)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert lossy.states() == ["reserved", "reserved", "settled"]
    spending.settle("small")
    assert lossy.states() == ["settled", "forfeited", "settled"]


def test_while_others_reserve_nothing_of_theirs_ends(lossy: Lossy) -> None:
    """Eight threads reserve and settle while answers are lost now and then."""
    failures: list[BaseException] = []
    lossy.ledger.raise_limit(epsilon=10**6, delta=0.9, by="me", reason="many")

    def work() -> None:
        try:
            for _ in range(20):
                try:
                    spending = lossy.ledger.reserve(GUARANTEE)
                except xp.errors.LedgerUnavailable:
                    continue
                spending.settle("small")
        except BaseException as error:
            failures.append(error)

    real, count = lossy.engine.apply, [0]

    def apply(*given: Any) -> Any:
        outcomes = real(*given)
        count[0] += 1
        if count[0] % 7 == 0:
            raise xp.errors.LedgerUnavailable("lost")
        return outcomes

    lossy.engine.apply = apply
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lossy.engine.apply = real
    known = [each for each in failures if not isinstance(each, xp.errors.LedgerUnavailable)]
    assert not known
    lossy.store.tend()
    lossy.store.beat()
    assert lossy.ledger.reserved == Cost(0)
    lossy.ledger.verify()
