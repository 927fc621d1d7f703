"""What was published under a key can be read again."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from books import GUARANTEE, make
from expost import Guarantee, InvalidValue, Laplace, Ledger
from expost.errors import AlreadyReserved, UnknownEntry
from expost.ledger.entry import Note
from expost.ledger.kept import MOST_KEPT
from expost.ledger.memory import MemoryStore
from toys import Fixed


def test_in_memory_and_on_disk(sqlite_url: Callable[[], str]) -> None:
    for ledger in (
        Ledger(epsilon=2),
        Ledger.create(sqlite_url(), "people", epsilon=2, neighbours="substitute", unit="person"),
    ):
        release = ledger.run(Laplace(epsilon=0.5, sensitivity=1), on=10, key="a")
        assert ledger.output("a") == release.value
        assert ledger.spent == release.charged
        with pytest.raises(UnknownEntry):
            ledger.output("b")
        ledger.reserve(Guarantee.uniform(0.5), key="c").forfeit()
        with pytest.raises(AlreadyReserved):
            ledger.output("c")


def test_rows_come_back_with_their_errors(sqlite_url: Callable[[], str]) -> None:
    """A number has the ± that its release showed, whoever reads it later, without the mechanism."""
    url = sqlite_url()
    made = Ledger.create(url, "people", epsilon=9, neighbours="substitute", unit="person")
    count, cells = made.run(Laplace(epsilon=0.5, sensitivity=1), on=10, key="a"), np.arange(3)
    several = made.run(Laplace(epsilon=0.5, sensitivity=1), on=cells, key="b")
    ledger = Ledger.load(url, "people")
    assert (ledger.frame("a"), ledger.frame("b")) == (count.frame, several.frame)
    assert count.frame["error"] == [count.error]
    assert None not in several.frame["error"]
    assert np.array_equal(ledger.output("b"), several.output)
    ledger.verify()


def test_rows_of_many_numbers_are_not_kept_twice() -> None:
    ledger = Ledger(epsilon=2)
    release = ledger.run(Laplace(epsilon=0.5, sensitivity=1), on=np.arange(MOST_KEPT + 1), key="a")
    assert ledger.frame("a")["value"] == release.output.tolist()
    assert set(ledger.frame("a")["error"]) == {None}


def test_an_output_without_its_rows_is_of_another_format() -> None:
    ledger = Ledger(epsilon=1)
    entry = ledger.run(Laplace(epsilon=0.5, sensitivity=1), on=10, key="a").entry
    assert isinstance(ledger._store, MemoryStore)
    ledger._store._outputs[entry.id] = 10
    for read in (ledger.output, ledger.frame):
        with pytest.raises(InvalidValue, match="and this is of type int: a development version"):
            read("a")


def test_outputs_are_dropped_in_batches(new_url: Callable[[], str]) -> None:
    """Found: everybody waited for nine seconds while a million were dropped at once. No batch has nothing to drop."""
    ledger: Any = make(new_url(), epsilon=100, delta="1e-3")
    for number in range(11):
        if number in (4, 5, 6):
            ledger.reserve(GUARANTEE).settle("small")
        else:
            ledger.run(Fixed(GUARANTEE, number, part="small"), key=f"k{number}")
    ledger._store.drop_outputs(10**6, Note("me", "old"), batch=3)
    drops = [event.body["upto"] for event in ledger.audit_trail() if event.kind == "drop"]
    assert drops == [3, 6, 9, 10**6]
    assert [row for (row,) in ledger._store._engine.rows("SELECT output FROM expost_entry")] == [None] * 11
    head = ledger.verify()
    ledger._store.drop_outputs(2, Note("me", "again"))
    assert ledger.verify(head).sequence == head.sequence + 1
    with pytest.raises(InvalidValue, match="was dropped"):
        ledger.output("k3")
