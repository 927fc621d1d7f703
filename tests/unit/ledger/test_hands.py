"""One reservation, one output: forked copies and other hands cannot settle what they did not publish."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import pytest

import expost as xp
from expost import Cost, Guarantee, Ledger
from faulty import child
from toys import Fixed, Responses

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
GUARANTEE = Guarantee({"large": 0.75, "small": 0.25})


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest) -> Ledger:
    if request.param == "memory":
        return Ledger(epsilon=20, name="study")
    url = request.getfixturevalue(f"{request.param}_url")()
    return Ledger.create(url, "study", epsilon=20, neighbours="add-remove", unit="person")


def forked(work: Callable[[], object]) -> str:
    """What it gives, or how it fails, in a forked process."""
    hear, say = os.pipe()

    def tell() -> None:
        try:
            told = repr(work())
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(say, told.encode())

    os.waitpid(child(tell), 0)
    told = os.read(hear, 1000).decode()
    os.close(hear)
    os.close(say)
    return told


def test_a_forked_interaction_answers_in_one_process(ledger: Ledger) -> None:
    talk = ledger.open(Responses(Fraction(2), 4))
    talk(True)
    assert "answers only there" in forked(lambda: talk(True))
    assert "answers only there" in forked(talk.close)
    assert forked(lambda: talk.__exit__(None, None, None)) == "None"
    assert not talk.closed
    talk.close()
    assert (talk.release.part, ledger.reserved) == (1, Cost(0))


def test_a_forked_interaction_is_not_voided(ledger: Ledger) -> None:
    talk = ledger.open(Responses(Fraction(2), 4))
    assert forked(talk.close).startswith("InteractionClosed")
    talk(True)
    talk.close()
    assert talk.release.part == 1


def test_a_run_that_forks_publishes_once(ledger: Ledger) -> None:
    """The child comes back out of ``sample``, too; only the parent publishes."""
    hear, say = os.pipe()
    parent = os.getpid()

    def sample() -> str:
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
        return "output"

    try:
        release = ledger.run(Fixed(GUARANTEE, None, part="small"), on=sample)
    except BaseException as error:
        os.write(say, f"{type(error).__name__}: {error}".encode())
    if os.getpid() != parent:
        os.write(say, b".")
        os._exit(0)
    assert "in a forked process" in os.read(hear, 1000).decode()
    assert release.charged == Cost(0.25)
    assert ledger.spent == Cost(0.25)


def test_another_hand_can_only_forfeit_a_interaction(ledger: Ledger) -> None:
    told = Responses(Fraction(2), 3)
    talk = ledger.open(told, key="talk")
    talk(True)
    found = ledger.reservation("talk")
    for attempt in ("publish", "abandon"):
        assert not hasattr(found, attempt)
    for end in (lambda: found.settle(0), found.void):
        with pytest.raises(xp.InvalidValue, match=r"if that process is gone, end it with forfeit"):
            end()
    assert found.entry.state == "reserved"
    found.forfeit()
    with pytest.raises(xp.errors.ReservationClosed):
        talk.close()
    assert ledger.spent == told.guarantee.worst_case


def test_a_run_that_fails_in_a_forked_copy_goes_on(ledger: Ledger) -> None:
    """Found: a worker that failed forfeited its parent's run, whose output was then not delivered."""
    parent = os.getpid()

    def sample() -> str:
        pid = os.fork()
        if pid == 0:
            raise KeyError("mine")
        _, status = os.waitpid(pid, 0)
        return f"child {os.waitstatus_to_exitcode(status)}"

    try:
        release = ledger.run(Fixed(GUARANTEE, None, part="small"), on=sample)
    except BaseException as error:
        if os.getpid() == parent:
            raise
        os._exit(7 if "belongs to process" in "".join(getattr(error, "__notes__", ())) else 8)
    assert release.value == "child 7"
    assert (release.charged, ledger.spent) == (Cost(0.25), Cost(0.25))


def test_a_number_that_is_used_again_is_another_process(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = ledger.open(Responses(Fraction(2), 4))
    same = os.getpid()

    def ask_as_if_its_parent() -> object:
        monkeypatch.setattr(os, "getpid", lambda: same)
        return talk(True)

    assert "answers only there" in forked(ask_as_if_its_parent)
    talk.close()


def too_late(*given: object) -> None:
    raise TimeoutError


def test_a_forked_copy_in_memory_can_be_read_whoever_held_the_lock() -> None:
    """Found: it waited for ever for a thread that was not there."""
    ledger = Ledger(epsilon=20, name="study")
    ledger.reserve(GUARANTEE).settle("small")
    with ledger._store._lock:  # type: ignore[attr-defined]

        def read() -> object:
            signal.signal(signal.SIGALRM, too_late)
            signal.alarm(5)
            list(ledger.entries())
            return ledger.remaining, ledger.verify().sequence

        assert forked(read) == repr((Cost(19.75), 3))


def test_ledgers_are_there_where_there_is_no_fork() -> None:
    code = (
        "import logging, os, random, numpy; del os.register_at_fork; import expost.ledger, expost; "
        "print(expost.Ledger(epsilon=1).run(expost.mechanisms.Coin(epsilon=1, sensitivity=1), 1).entry.id)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.strip() == "1", told.stderr


FORKED = "LedgerUnavailable: ledger 'study' is in the memory of process"


def test_a_forked_reservation_in_memory_settles_nothing() -> None:
    """Found: both copies settled the part that each had sampled: two samples, one charge."""
    ledger = Ledger(epsilon=20, name="study")
    spending, waiting = ledger.reserve(GUARANTEE), ledger.reserve(GUARANTEE, begin=False)
    for attempt in (
        lambda: spending.settle("small"), spending.forfeit, waiting.begin, waiting.void,
        lambda: ledger.reserve(GUARANTEE), lambda: ledger.run(Fixed(GUARANTEE, 1, part="small")),
        lambda: ledger.create_account("new", epsilon=1),
        lambda: ledger.raise_limit(30, by="me", reason="more"), lambda: ledger.close(by="me", reason="end"),
        lambda: ledger.reservation(1).settle("small"),
    ):  # fmt: skip
        assert forked(attempt).startswith(FORKED)
    assert forked(lambda: [entry.state for entry in ledger.entries()]) == "['reserved', 'reserved']"
    assert forked(lambda: ledger.remaining) == repr(Cost(18.5))
    spending.settle("small")
    waiting.void()
    assert ledger.spent == Cost(0.25)
    ledger.verify()


def test_leaving_a_block_in_a_forked_copy_keeps_the_error() -> None:
    """The worst case stays reserved where the ledger lives; what went wrong in the copy is not hidden."""
    ledger = Ledger(epsilon=20, name="study")
    for begin in (True, False):
        spending = ledger.reserve(GUARANTEE, begin=begin)

        def leave(spending: xp.ledger.Reservation = spending) -> None:
            with spending:
                raise KeyError("mine")

        assert forked(leave) == "KeyError: 'mine'"
        assert spending.entry.state == "reserved"
        spending.forfeit()
