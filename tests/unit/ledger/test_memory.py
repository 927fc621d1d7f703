import contextlib
import pickle
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

import expost as xp
from expost import Cost, Guarantee, Ledger
from expost.ledger import MemoryStore, Request, memory


def test_a_ledger_in_memory_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="could spend its budget twice"):
        pickle.dumps(Ledger(epsilon=1))


def test_the_store_itself_prices_a_part() -> None:
    """Not even a bug in the rules above it can charge another price."""
    store = MemoryStore("ledger", Cost(1), None)
    guarantee = Guarantee({"a": 0.5})
    entry = store.reserve(Request("reserve", ("ledger",), guarantee, guarantee, None, None), begin=True)
    with pytest.raises(xp.errors.UnknownPart):
        store.settle(entry.id, "b", None)
    (balance,) = store.balances(("ledger",))
    assert (balance.charged.cost, balance.reserved.cost, balance.remaining) == (Cost(0), Cost(0.5), Cost(0.5))
    assert store.settle(entry.id, "a", None).charged == Cost(0.5)


@pytest.mark.parametrize("ending", ["settle", "void", "forfeit"])
def test_an_interrupt_anywhere_never_gives_back_too_much(ending: str) -> None:
    """Interrupt the moving of money at every line in turn, then let the caller end the entry as it may."""
    for line in range(1, 15):
        ledger = Ledger(epsilon=1)
        spending = ledger.reserve(Guarantee({"small": 0.25, "large": 0.5}), begin=ending != "void")
        with interrupted(line):
            spending.settle("small") if ending == "settle" else getattr(spending, ending)()
        for attempt in (spending.void, spending.forfeit):
            with contextlib.suppress(xp.errors.ReservationClosed):
                attempt()
        charged = sum((entry.charged for entry in ledger.entries() if entry.charged), Cost(0))
        assert charged <= ledger.spent + ledger.reserved
        assert ledger.spent + ledger.reserved <= Cost(0.5)


@contextlib.contextmanager
def interrupted(after: int) -> Iterator[None]:
    """KeyboardInterrupt at the so-manieth line that the store runs of moving money."""
    left = [after]

    def trace(frame: FrameType, event: str, argument: object) -> object:
        if frame.f_code.co_filename != memory.__file__ or frame.f_code.co_name != "_end":
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)


def test_entries_may_be_read_while_others_write() -> None:
    ledger = Ledger(epsilon=1)
    for _ in range(3):
        ledger.reserve(Guarantee.uniform(0.1)).settle("any")
    reading = ledger.entries()
    next(reading)
    ledger.reserve(Guarantee.uniform(0.1)).settle("any")
    assert len(list(reading)) == 2


def test_balances_that_contradict_the_trail_are_found() -> None:
    ledger = Ledger(epsilon=1)
    ledger.reserve(Guarantee.uniform(0.5))
    ledger.verify()
    store: Any = ledger._store
    store._accounts["ledger",] = store._accounts["ledger",]._replace(reserved=Cost(0))
    with pytest.raises(xp.errors.LedgerCorrupt, match="balances are not those"):
        ledger.verify()


class StruckLock:
    """A lock that is interrupted as it is left, before it is released."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.struck = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __enter__(self) -> None:
        self._real.acquire()

    def __exit__(self, *_: object) -> None:
        if not self.struck:
            self.struck = True
            raise KeyboardInterrupt
        self._real.release()


def test_an_interrupt_as_the_lock_is_left_does_not_leave_it_held() -> None:
    """Found: the next call hung. What had been decided takes effect."""
    ledger = Ledger(epsilon=1)
    store: Any = ledger._store
    store._lock = StruckLock(store._lock)
    with pytest.raises(KeyboardInterrupt):
        ledger.reserve(Guarantee.uniform(0.25))
    done: list[Cost] = []
    other = threading.Thread(target=lambda: done.append(ledger.reserved), daemon=True)
    other.start()
    other.join(60)
    assert done == [Cost(0.25)]
    ledger.verify()


def test_a_signal_handler_cannot_write_in_between() -> None:
    ledger = Ledger(epsilon=1)
    store: Any = ledger._store
    real = store._clock

    def struck() -> int:
        with pytest.raises(xp.errors.LedgerUnavailable, match="interrupted while it wrote"):
            ledger.reserve(Guarantee.uniform(0.5))
        return int(real())

    store._clock = struck
    ledger.reserve(Guarantee.uniform(0.75))
    store._clock = real
    assert ledger.reserved == Cost(0.75)
    ledger.verify()


def test_a_change_that_was_interrupted_is_completed_by_whoever_comes_next() -> None:
    ledger = Ledger(epsilon=1)
    store: Any = ledger._store
    spending = ledger.reserve(Guarantee({"a": 0.5, "b": 0.25}))
    real, store._keep = store._keep, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        store.settle(spending.id, "b", None)
    store._keep = real
    assert (ledger.spent, ledger.reserved, spending.entry.state) == (Cost(0.25), Cost(0), "settled")
    ledger.verify()
