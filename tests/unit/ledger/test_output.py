"""What was published under a key can be read again."""

from collections.abc import Callable

import numpy as np
import pytest

from expost import Guarantee, InvalidValue, Laplace, Ledger
from expost.errors import AlreadyReserved, UnknownEntry
from expost.ledger.kept import MOST_KEPT
from expost.ledger.memory import MemoryStore


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
