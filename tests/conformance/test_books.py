"""What the books of every store tell, and to whom: keys, texts and times give nothing away that nobody paid for."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Barrier, Thread
from traceback import walk_tb
from typing import Any, NamedTuple

import numpy as np
import pytest

import expost as xp
from clocks import Clock
from expost import Cost, Guarantee, Ledger
from expost.accounting.losses import GaussianNoise
from expost.fingerprint import DATA
from expost.guarantee import Part
from expost.mechanisms.stability.release import Proposal
from toys import Fixed

CLAIM = Guarantee({"large": 0.75, "small": 0.25})
SECRET = 987654321


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, clock: Clock) -> Ledger:
    if request.param == "memory":
        ledger = Ledger(epsilon=20, delta=1, name="study")
        ledger._store._clock = clock  # type: ignore[attr-defined]
        return ledger
    url = request.getfixturevalue(f"{request.param}_url")()
    return Ledger.create(
        url, "study", epsilon=20, delta=1, neighbours="add-remove", unit="person", settings=clock.settings()
    )


# ---- a key stands for one mechanism


@dataclass(frozen=True)
class Alike(xp.Mechanism):
    """Measurements of another library that print alike and differ in what is inside."""

    scale: int
    claim: Guarantee = CLAIM
    compute: Callable[..., Any] | None = None
    name: str | None = None

    def __repr__(self) -> str:
        return "Measurement(f64, Laplace)"

    @property
    def guarantee(self) -> Guarantee:
        return self.claim

    def sample(self, data: Any, noise: xp.NoiseSource) -> Any:
        return f"scale {self.scale}"

    def part_of(self, output: Any) -> Part:
        return "small"


class Bare(Alike):
    """The same, by somebody who knows no dataclasses."""

    def __init__(self, scale: int) -> None:
        self.__dict__.update(scale=scale, claim=CLAIM, compute=None, name=None, hidden=[scale])


class Opaque(xp.Mechanism):
    """Says nothing about itself."""

    def __init__(self, scale: int, name: str | None = None) -> None:
        self.scale, self.name = scale, name

    def __repr__(self) -> str:
        return "Opaque"

    guarantee = CLAIM

    def sample(self, data: Any, noise: xp.NoiseSource) -> Any:
        return self.scale

    def part_of(self, output: Any) -> Part:
        return "small"


def test_mechanisms_that_print_alike_do_not_replay_each_other(ledger: Ledger) -> None:
    """Found: two measurements of scale 2 and 3 printed alike, and the second was given the first one's output."""
    assert ledger.run(Alike(2), key="k").value == "scale 2"
    assert ledger.run(Alike(2), key="k").value == "scale 2"
    with pytest.raises(xp.KeyConflict, match="another mechanism"):
        ledger.run(Alike(3), key="k")
    assert ledger.run(Opaque(2, name="of scale 2"), key="k2").value == 2
    with pytest.raises(xp.KeyConflict, match="another mechanism"):
        ledger.run(Opaque(3, name="of scale 3"), key="k2")
    assert ledger.spent == Cost(0.5)


@dataclass(frozen=True)
class Priced(xp.Mechanism):
    """A mechanism whose guarantee is no field of its."""

    epsilons: list[float] = field(compare=False)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.uniform(self.epsilons[-1])

    def sample(self, data: Any, noise: xp.NoiseSource) -> Any:
        return self.epsilons[-1]

    def part_of(self, output: Any) -> Part:
        return "done"


def test_the_guarantee_is_part_of_the_request(ledger: Ledger) -> None:
    """Found: the guarantee was not compared."""
    ledger.run(Priced([1]), key="k")
    assert ledger.run(Priced([1]), key="k").value == 1
    with pytest.raises(xp.KeyConflict, match="another guarantee") as caught:
        ledger.run(Priced([2]), key="k")
    assert caught.value.entry.id == 1
    with pytest.raises(xp.KeyConflict, match="another mechanism"):
        ledger.run(Fixed(Guarantee.uniform(1), 1), key="k")


def local() -> Callable[..., Any]:
    def step(*given: Any) -> Any:
        return given

    return step


class Trainer:
    def __init__(self) -> None:
        self.incomes = [SECRET, SECRET]

    def __repr__(self) -> str:
        return f"Trainer({self.incomes})"

    def step(self, data: Any, outputs: Any) -> Any:
        return 0


@dataclass(frozen=True)
class Called:
    """An object that is called, and prints what it has."""

    incomes: tuple[int, ...] = (SECRET,)

    def __call__(self, data: Any, outputs: Any) -> Any:
        return 0


def module_step(data: Any, outputs: Any) -> Any:
    return 0


UNSAYABLE: dict[str, Callable[[], Any]] = {
    "lambda": lambda: lambda data, outputs: 0,
    "partial": lambda: partial(module_step, [SECRET]),
    "bound method": lambda: Trainer().step,
    "local function": local,
    "object": Trainer,
}


@pytest.mark.parametrize("what", UNSAYABLE)
def test_what_cannot_say_what_it_is_needs_a_name_for_a_key(ledger: Ledger, what: str) -> None:
    held = UNSAYABLE[what]
    with pytest.raises(xp.InvalidValue, match=r"'compute'.*give the mechanism name=") as caught:
        ledger.run(Alike(1, compute=held()), key="k")
    assert str(SECRET) not in str(caught.value)
    assert (ledger.spent, ledger.reserved, list(ledger.entries())) == (Cost(0), Cost(0), [])
    ledger.run(Alike(1, compute=held()))
    assert ledger.run(Alike(1, compute=held(), name="first"), key="k").entry.id == 2
    assert ledger.run(Alike(1, compute=held(), name="first"), key="k").entry.id == 2
    for other in (Alike(1, compute=held(), name="second"), Alike(2, compute=held(), name="first"), Alike(1)):
        with pytest.raises(xp.KeyConflict, match="another mechanism"):
            ledger.run(other, key="k")


def test_functions_of_a_module_say_what_they_are(ledger: Ledger) -> None:
    ledger.run(Alike(1, compute=module_step), key="k")
    assert ledger.run(Alike(1, compute=module_step), key="k").entry.id == 1
    with pytest.raises(xp.KeyConflict, match="another mechanism"):
        ledger.run(Alike(1, compute=local), key="k")


def test_classes_that_nobody_finds_need_a_name_for_a_key(ledger: Ledger) -> None:
    """Made in a function, or in ``__main__``, which is another program tomorrow; or with more than its fields."""

    @dataclass(frozen=True)
    class Inner(Alike):
        pass

    @dataclass(frozen=True)
    class Main(Alike):
        __module__ = "__main__"

    for mechanism in (Inner(1), Main(1), Bare(1), Opaque(1)):
        with pytest.raises(xp.InvalidValue, match="give the mechanism name="):
            ledger.run(mechanism, key="k")
    assert ledger.run(Inner(1, name="inner"), key="k").entry.id == 1
    assert ledger.run(Opaque(1, name="one"), key="k2").entry.id == 2
    assert list(ledger.entries())[1].what.endswith(":Opaque>")


@dataclass(frozen=True)
class Says(Alike):
    says: Any = ""

    @property
    def fingerprint(self) -> str:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says  # type: ignore[no-any-return]


def test_a_fingerprint_of_ones_own(ledger: Ledger) -> None:
    for bad in ("", None, 5, "x" * 501, "\0", "\ud800", KeyError("mine")):
        with pytest.raises((xp.InvalidValue, KeyError)):
            ledger.run(Says(1, says=bad), key="k")
        assert ledger.run(Says(1, says=bad)).value == "scale 1"
    assert ledger.run(Says(1, says="one"), key="k").entry == ledger.run(Says(2, says="one"), key="k").entry
    with pytest.raises(xp.KeyConflict, match="another mechanism"):
        ledger.run(Says(1, says="two"), key="k")
    ledger.verify()


def test_a_key_of_another_account_says_only_that_it_is_taken(ledger: Ledger) -> None:
    """Found: the conflict carried the other's entry, label and charge included."""
    alice, bob = ledger.create_account("alice", epsilon=5, delta=1), ledger.create_account("bob", epsilon=5, delta=1)
    alice.run(Fixed(CLAIM, "private to alice", part="small"), key="k", label="alice's diagnosis")
    for asker in (bob, ledger, alice.create_account("below", epsilon=1, delta=1)):
        for attempt in (
            lambda asker=asker: asker.run(Fixed(CLAIM, "private to alice", part="small"), key="k"),
            lambda asker=asker: asker.run(Alike(1), key="k", label="mine"),
            lambda asker=asker: asker.reserve(CLAIM, key="k"),
        ):
            with pytest.raises(xp.KeyConflict) as caught:
                attempt()
            assert caught.value.entry is None
            assert caught.value.args == ("k", "account", None)
            told = f"{caught.value} {caught.value!r} {vars(caught.value)}"
            assert "taken by another account" in told
            for word in ("alice", "diagnosis", "0.25", "entry 1", "settled"):
                assert word not in told
            assert "diagnosis" not in frames(caught.value)


def frames(error: BaseException) -> str:
    """What a reporter of errors would show of the frames below this test."""
    found = [frame for frame, _ in walk_tb(error.__traceback__)][2:]
    assert found
    return " ".join(repr(value) for frame in found for value in frame.f_locals.values())


def test_a_conflict_and_a_used_key_survive_pickling(ledger: Ledger) -> None:
    """Found: the entry held the data that a question leads to."""
    ledger.reserve(CLAIM, key="r")
    ledger.run(Asked(1, rows=Thread()), key="k")
    for attempt, kind in (
        (lambda: ledger.run(Asked(2, rows=Thread()), key="k"), xp.KeyConflict),
        (lambda: ledger.reserve(CLAIM, key="r"), xp.AlreadyReserved),
    ):
        with pytest.raises(kind) as caught:
            attempt()
        told: Any = caught.value
        again = pickle.loads(pickle.dumps(told))
        assert str(again) == str(told)
        assert again.entry == told.entry._replace(request=again.entry.request)


def test_who_is_quicker_with_a_key_tells_others_nothing() -> None:
    """Found: the slower of two accounts that took one key at the same time was given the other's entry."""
    for _ in range(20):
        ledger = Ledger(epsilon=20)
        told = both([ledger.create_account(name, epsilon=5) for name in ("alice", "bob")])
        assert [type(error) for error in told] == [xp.KeyConflict]
        assert told[0].entry is None


def both(accounts: list[Ledger]) -> list[Any]:
    """How it fails where accounts take one key at the same time."""
    ready = Barrier(len(accounts))
    told: list[Any] = []

    def ask(account: Ledger) -> None:
        ready.wait()
        try:
            account.reserve(CLAIM, key="k")
        except xp.ExpostError as error:
            told.append(error)

    threads = [Thread(target=ask, args=(account,)) for account in accounts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def test_a_store_asked_at_once_tells_others_nothing() -> None:
    """The same, for certain: the key is taken between the look and the reservation."""
    ledger = Ledger(epsilon=20)
    alice, bob = ledger.create_account("alice", epsilon=5), ledger.create_account("bob", epsilon=5)
    store, request = ledger._store, bob._request("reserve", CLAIM, CLAIM, None, "k")
    alice.reserve(CLAIM, key="k")
    store.earlier = lambda asked: None  # type: ignore[assignment,method-assign]
    with pytest.raises(xp.KeyConflict) as caught:
        store.reserve(request, begin=True)
    assert caught.value.entry is None


# ---- texts


@dataclass(frozen=True)
class Table:
    rows: tuple[int, ...] = (SECRET,)


class Row(NamedTuple):
    income: int = SECRET


@dataclass(frozen=True)
class Asked(Alike):
    rows: Any = field(default=None, metadata=DATA)


class HomeMade(Proposal):
    price = 0

    def __init__(self) -> None:
        self.rows = [SECRET]

    def __repr__(self) -> str:
        return f"HomeMade({self.rows})"

    def distance(self, data: Any, cap: int) -> int:
        return cap

    def release(self, data: Any, noise: xp.NoiseSource) -> Any:
        return 0


def iterative(compute: Any) -> xp.Iterative:
    steps = (GaussianNoise(10),) * 2
    return xp.Iterative(steps=steps, stops=(2,), delta=1e-5, sensitivity=1, compute=compute)


HOLDERS: dict[str, Callable[[], xp.Mechanism]] = {
    "bound method": lambda: iterative(Trainer().step),
    "partial": lambda: iterative(partial(module_step, [SECRET])),
    "called": lambda: iterative(Called()),
    "until": lambda: iterative(partial(Trainer().step)),
    "proposal": lambda: xp.ProposeTestRelease(proposal=HomeMade(), test_epsilon=1, delta=1e-6),
    "proposals": lambda: xp.FirstStable(proposals=(HomeMade(),), test_epsilon=1, delta=1e-6),
    "array": lambda: Alike(np.array([SECRET])),  # type: ignore[arg-type]
    "dict": lambda: Alike({"step": [Trainer().step]}),  # type: ignore[arg-type]
    "data": lambda: Asked(1, rows=[SECRET]),
    "record": lambda: Alike(Table()),  # type: ignore[arg-type]
    "records": lambda: Alike([Row()]),  # type: ignore[arg-type]
    "home-made": lambda: Opaque(Trainer()),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", HOLDERS)
def test_the_books_hold_no_object_of_a_callable(ledger: Ledger, what: str, tmp_path: Path) -> None:
    """Found: incomes that a bound method carried with it stood in the entry, the audit trail and its export."""
    mechanism = HOLDERS[what]()
    ledger._store.reserve(ledger._request("run", mechanism, CLAIM, None, None), begin=True)
    ledger.export(tmp_path / "trail.jsonl")
    (entry,) = ledger.entries()
    books = [entry.what, repr(entry), repr(entry.request), ledger.statement(), (tmp_path / "trail.jsonl").read_text()]
    books += [event.line for event in ledger.audit()]
    assert str(SECRET) not in "".join(books)
    if what in ("bound method", "partial", "called"):
        assert "module_step" in entry.what or "Trainer.step" in entry.what or ":Called" in entry.what
        assert str(SECRET) not in repr(mechanism)


def test_without_a_key_there_is_no_hash_of_the_parameters(ledger: Ledger) -> None:
    """Found: whoever guesses a parameter that does not print could check the guess by the fingerprint."""
    ledger.run(Alike(np.array([SECRET])))  # type: ignore[arg-type]
    with ledger.reserve(CLAIM) as spending:
        spending.settle("small")
    ledger.run(Alike(2), key="k")
    told = [event.body["fingerprint"] for event in ledger.audit() if event.kind == "reserve"]
    assert told == ["", "", Alike(2).fingerprint]
    ledger.verify()


def test_the_trail_is_written_when_it_happens(ledger: Ledger) -> None:
    """Found: in memory it was written when it was read, and parameters had changed meanwhile."""
    given = [1]
    ledger.run(Alike(given))  # type: ignore[arg-type]
    head = ledger.verify()
    given.append(2)
    assert ledger.verify(known=head) == head
    assert "[1]" in next(ledger.entries()).what


@pytest.mark.parametrize(
    "attempt",
    [
        lambda ledger: ledger.run([SECRET], Alike(1)),
        lambda ledger: ledger.open(np.array([SECRET])),
        lambda ledger: ledger.reserve([SECRET]),
        lambda ledger: ledger.run(SECRET, Alike(1)),
        lambda ledger: ledger.quote([SECRET]),
        lambda ledger: ledger.quote(Asked(1, rows=[SECRET])),
        lambda ledger: ledger.run(Alike(1), label=[SECRET]),
        lambda ledger: ledger.run(Alike(1), key=[SECRET]),
        lambda ledger: ledger.account([SECRET]),
        lambda ledger: ledger.reservation([SECRET]),
        lambda ledger: ledger.reserve(CLAIM, lease=[SECRET]),
    ],
)
def test_messages_do_not_show_what_may_be_data(attempt: Callable[[Ledger], Any]) -> None:
    with pytest.raises(xp.InvalidValue, match=r"got (a|one) (list|ndarray|Asked|int)") as caught:
        attempt(Ledger(epsilon=1))
    assert str(SECRET) not in str(caught.value)


# ---- times


def books(ledger: Ledger) -> str:
    """Everything that the books tell of times."""
    times = [entry.when.isoformat() for entry in ledger.entries()]
    return json.dumps([times, [event.at for event in ledger.audit()]])


HOUR = 3_600_000_000


@pytest.mark.parametrize("ending", ["settle", "forfeit", "void"])
def test_the_books_do_not_tell_how_long_it_took(ledger: Ledger, clock: Clock, ending: str) -> None:
    """Found: ``ended − reserved`` told 1.5 s from 0.25 s, for one chosen person. Also around a full hour."""
    turn = clock.set_on(ledger)
    start = (time.time_ns() // 1000 // HOUR + 1) * HOUR
    for begun, took in ((start + 5, 250_000), (start + 5, 1_500_000), (start + HOUR - 1_000_000, 1_500_000)):
        turn(begun)
        spending = ledger.reserve(CLAIM, begin=ending != "void")
        before = books(ledger)
        turn(begun + took)
        spending.settle("small") if ending == "settle" else getattr(spending, ending)()
        after = json.loads(books(ledger))
        assert after[0] == json.loads(before)[0]
        assert after[1][:-1] == json.loads(before)[1]
        assert after[1][-1] == after[1][-2] == start
    ledger.verify()


def test_the_clock_of_the_books_shows_full_hours(ledger: Ledger, clock: Clock) -> None:
    turn = clock.set_on(ledger)
    start = (time.time_ns() // 1000 // HOUR + 1) * HOUR
    for at in (start + 1, start + HOUR - 1, start + HOUR + 1_234_567, start):
        turn(at)
        ledger.reserve(CLAIM).settle("small")
    when = [int(entry.reserved_at * 1e6) for entry in ledger.entries()]
    assert when == [start, start, start + HOUR, start + HOUR]  # a clock that went backwards stands still
    assert all(event.at % HOUR == 0 for event in ledger.audit())
    ledger.create_account("new", epsilon=1)
    ledger.close(by="me", reason="done")
    assert all(event.at % HOUR == 0 for event in ledger.audit())
    ledger.verify()
