import pickle

import pytest

import expost as xp
from expost import Cost, Guarantee, Ledger
from expost.ledger import MemoryStore, Request


def test_a_ledger_in_memory_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="could spend its budget twice"):
        pickle.dumps(Ledger(epsilon=1))


def test_the_store_itself_refuses_a_charge_above_the_worst_case() -> None:
    """Not even a bug in the rules above it can overspend."""
    store = MemoryStore("ledger", Cost(1), None)
    claim = Guarantee({"a": 0.5})
    entry = store.reserve(Request("reserve", ("ledger",), claim, claim, None, None), begin=True)
    with pytest.raises(xp.InvalidValue, match=r"cannot take ε 0\.6 from ε 0\.5"):
        store.settle(entry.id, "a", Cost(0.6), None)
    (balance,) = store.balances(("ledger",))
    assert (balance.spent, balance.reserved, balance.remaining) == (Cost(0), Cost(0.5), Cost(0.5))


def test_entries_may_be_read_while_others_write() -> None:
    ledger = Ledger(epsilon=1)
    for _ in range(3):
        ledger.reserve(Guarantee.uniform(0.1)).settle("any")
    reading = ledger.entries()
    next(reading)
    ledger.reserve(Guarantee.uniform(0.1)).settle("any")
    assert len(list(reading)) == 2
