"""What was published under a key can be read again."""

from collections.abc import Callable

import pytest

from expost import AlreadyReserved, Guarantee, Laplace, Ledger, UnknownEntry


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
