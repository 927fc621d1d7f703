"""A key stands for one request in every store, and its output is given again."""

from fractions import Fraction

import pytest

import expost as xp
from books import GUARANTEE, NewLedger
from expost import Cost, Guarantee, Ledger
from toys import Fixed, Responses


def test_a_replayed_run_samples_nothing(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    coin = xp.mechanisms.Coin(epsilon=1, sensitivity=1, heads=1)
    first = ledger.run(coin, on=100, key="monday")
    for data in (100, None, "not even data"):
        again = ledger.run(coin, on=data, key="monday")  # type: ignore[misc]
        assert again == first
    assert ledger.spent == Cost(1)


def test_a_stored_output_cannot_be_changed(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10, delta=1)
    told = Fixed(Guarantee.uniform(1), None)
    first = ledger.run(told, on=lambda: [1, 2], key="k")
    first.value.append(3)
    ledger.run(told, key="k").value.append(4)
    assert ledger.run(told, key="k").value == [1, 2]


def test_a_used_key_never_pretends(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10, delta=1)
    spending = ledger.reserve(GUARANTEE, key="k")
    with pytest.raises(xp.errors.AlreadyReserved, match="which is reserved: settle it through") as caught:
        ledger.reserve(GUARANTEE, key="k")
    assert caught.value.entry.id == spending.id
    ledger.reservation("k").settle("small")
    with pytest.raises(xp.errors.AlreadyReserved, match="which is settled: nothing is sampled twice"):
        ledger.reserve(GUARANTEE, key="k")
    told = Fixed(GUARANTEE, None, part="unknown")
    with pytest.raises(xp.errors.UnknownPart):
        ledger.run(told, key="forfeited")
    with pytest.raises(xp.errors.AlreadyReserved, match="forfeited"):
        ledger.run(told, key="forfeited")


def test_a_used_key_of_an_interaction(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    with ledger.open(Responses(Fraction(2), 1), key="talk"):
        pass
    with pytest.raises(xp.errors.AlreadyReserved, match="voided"):
        ledger.open(Responses(Fraction(2), 1), key="talk")


def test_the_same_key_with_another_request(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10, delta=1)
    other = ledger.create_account("other", epsilon=5, delta=1)
    coin = xp.mechanisms.Coin(epsilon=1, sensitivity=1)
    ledger.run(coin, on=1, key="k", label="a")
    for differs, attempt in (
        ("label", lambda: ledger.run(coin, on=1, key="k", label="b")),
        ("account", lambda: other.run(coin, on=1, key="k", label="a")),
        ("mechanism", lambda: ledger.run(xp.mechanisms.Coin(epsilon=2, sensitivity=1), on=1, key="k", label="a")),
        ("operation", lambda: ledger.reserve(coin.guarantee, key="k", label="a")),
    ):
        with pytest.raises(xp.errors.KeyConflict, match=f"another {differs}"):
            attempt()
    assert ledger.spent <= Cost(1)


def test_a_refused_request_leaves_its_key_free(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    with pytest.raises(xp.BudgetExceeded):
        ledger.reserve(Guarantee.uniform(2), key="k")
    ledger.reserve(Guarantee.uniform(1), key="k").settle("done")


def test_finding_reservations(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    spending = ledger.reserve(Guarantee.uniform(0.5), key="k")
    assert ledger.reservation(spending.id).entry == ledger.reservation("k").entry
    ledger.reservation(spending.id).forfeit()
    assert spending.entry.state == "forfeited"
    for unknown in (0, 2, "nobody"):
        with pytest.raises(xp.errors.UnknownEntry, match="no entry"):
            ledger.reservation(unknown)
    with pytest.raises(xp.InvalidValue, match="entry number or key"):
        ledger.reservation(1.5)


def test_a_reservation_is_found_from_its_own_account_and_above() -> None:
    ledger = Ledger(epsilon=5)
    alice, bob = ledger.create_account("alice", epsilon=1), ledger.create_account("bob", epsilon=1)
    spending = bob.reserve(Guarantee.uniform(0.5))
    with pytest.raises(xp.errors.UnknownEntry, match="not one of 'ledger/alice'"):
        alice.reservation(spending.id)
    ledger.reservation(spending.id).settle("done")


def test_a_run_that_is_under_way_elsewhere(new_ledger: NewLedger) -> None:
    """The same key from within the run itself: in flight, neither replayed nor sampled again, nor settled."""
    ledger = new_ledger(epsilon=5, delta=1)
    told = Fixed(GUARANTEE, None, part="small")
    seen = []

    def meanwhile() -> str:
        for attempt in (lambda: ledger.run(told, key="k"), lambda: ledger.reservation("k").settle("small")):
            with pytest.raises((xp.errors.AlreadyReserved, xp.InvalidValue)) as caught:
                attempt()
            seen.append(str(caught.value))
        return "answer"

    assert ledger.run(told, on=meanwhile, key="k").value == "answer"
    assert "it is still running" in seen[0]
    assert "end it with forfeit()" in seen[1]
    assert ledger.run(told, key="k").value == "answer"


def test_an_output_whose_copy_looks_at_the_ledger() -> None:
    ledger = Ledger(epsilon=5, delta=1)

    class Curious:
        def __deepcopy__(self, memo: object) -> "Curious":
            assert ledger.remaining
            return self

    assert ledger.run(Fixed(GUARANTEE, None, part="small"), on=Curious, key="k").part == "small"
