"""Keys give nothing away that nobody paid for: one stands for one mechanism, and says only that it is taken."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Barrier, Thread
from traceback import walk_tb
from typing import Any

import pytest

import expost as xp
from carriers import GUARANTEE, SECRET, Alike, Asked, Opaque, Trainer, module_step
from expost import Cost, Guarantee, Ledger
from expost.guarantee import Part
from toys import Fixed


class Bare(Alike):
    """The same, by somebody who knows no dataclasses."""

    def __init__(self, scale: int) -> None:
        self.__dict__.update(scale=scale, guarantee=GUARANTEE, compute=None, name=None, hidden=[scale])


def test_mechanisms_that_print_alike_do_not_replay_each_other(ledger: Ledger) -> None:
    """Found: two measurements of scale 2 and 3 printed alike, and the second was given the first one's output."""
    assert ledger.run(Alike(2), key="k").value == "scale 2"
    assert ledger.run(Alike(2), key="k").value == "scale 2"
    with pytest.raises(xp.errors.KeyConflict, match="another mechanism"):
        ledger.run(Alike(3), key="k")
    assert ledger.run(Opaque(2, name="of scale 2"), key="k2").value == 2
    with pytest.raises(xp.errors.KeyConflict, match="another mechanism"):
        ledger.run(Opaque(3, name="of scale 3"), key="k2")
    assert ledger.spent == Cost(0.5)


@dataclass(frozen=True)
class Priced(xp.Mechanism):
    """A mechanism whose guarantee is no field of its."""

    epsilons: list[float] = field(compare=False)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.uniform(self.epsilons[-1])

    def sample(self, data: Any, noise: xp.noise.NoiseSource) -> Any:
        return self.epsilons[-1]

    def part_of(self, output: Any) -> Part:
        return "done"


def test_the_guarantee_is_part_of_the_request(ledger: Ledger) -> None:
    """Found: the guarantee was not compared."""
    ledger.run(Priced([1]), key="k")
    assert ledger.run(Priced([1]), key="k").value == 1
    with pytest.raises(xp.errors.KeyConflict, match="another guarantee") as caught:
        ledger.run(Priced([2]), key="k")
    assert caught.value.entry.id == 1
    with pytest.raises(xp.errors.KeyConflict, match="another mechanism"):
        ledger.run(Fixed(Guarantee.uniform(1), 1), key="k")


def local() -> Callable[..., Any]:
    def step(*given: Any) -> Any:
        return given

    return step


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
        with pytest.raises(xp.errors.KeyConflict, match="another mechanism"):
            ledger.run(other, key="k")


def test_functions_of_a_module_say_what_they_are(ledger: Ledger) -> None:
    ledger.run(Alike(1, compute=module_step), key="k")
    assert ledger.run(Alike(1, compute=module_step), key="k").entry.id == 1
    with pytest.raises(xp.errors.KeyConflict, match="another mechanism"):
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
    with pytest.raises(xp.errors.KeyConflict, match="another mechanism"):
        ledger.run(Says(1, says="two"), key="k")
    ledger.verify()


def test_a_key_of_another_account_says_only_that_it_is_taken(ledger: Ledger) -> None:
    """Found: the conflict carried the other's entry, label and charge included."""
    alice, bob = ledger.create_account("alice", epsilon=5, delta=1), ledger.create_account("bob", epsilon=5, delta=1)
    alice.run(Fixed(GUARANTEE, "private to alice", part="small"), key="k", label="alice's diagnosis")
    for asker in (bob, ledger, alice.create_account("below", epsilon=1, delta=1)):
        for attempt in (
            lambda asker=asker: asker.run(Fixed(GUARANTEE, "private to alice", part="small"), key="k"),
            lambda asker=asker: asker.run(Alike(1), key="k", label="mine"),
            lambda asker=asker: asker.reserve(GUARANTEE, key="k"),
        ):
            with pytest.raises(xp.errors.KeyConflict) as caught:
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
    ledger.reserve(GUARANTEE, key="r")
    ledger.run(Asked(1, rows=Thread()), key="k")
    for attempt, kind in (
        (lambda: ledger.run(Asked(2, rows=Thread()), key="k"), xp.errors.KeyConflict),
        (lambda: ledger.reserve(GUARANTEE, key="r"), xp.errors.AlreadyReserved),
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
        assert [type(error) for error in told] == [xp.errors.KeyConflict]
        assert told[0].entry is None


def both(accounts: list[Ledger]) -> list[Any]:
    """How it fails where accounts take one key at the same time."""
    ready = Barrier(len(accounts))
    told: list[Any] = []

    def ask(account: Ledger) -> None:
        ready.wait()
        try:
            account.reserve(GUARANTEE, key="k")
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
    store, request = ledger._store, bob._request("reserve", GUARANTEE, GUARANTEE, None, "k")
    alice.reserve(GUARANTEE, key="k")
    store.earlier = lambda asked: None  # type: ignore[assignment,method-assign]
    with pytest.raises(xp.errors.KeyConflict) as caught:
        store.reserve(request, begin=True)
    assert caught.value.entry is None
