"""What is charged and refunded in every store, whatever happens while it is reserved."""

from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest

import expost as xp
from books import GUARANTEE, NewLedger, settle
from expost import Cost, Guarantee, Ledger
from toys import Fixed


def test_ten_tenths_fill_one_and_the_eleventh_is_refused(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    for _ in range(10):
        settle(ledger, Guarantee.uniform(0.1))
    assert ledger.remaining == Cost(0)
    with pytest.raises(xp.BudgetExceeded) as refused:
        ledger.reserve(Guarantee.uniform(0.1))
    assert refused.value.requested == Cost(0.1)
    assert refused.value.remaining == Cost(0)
    assert ledger.spent == Cost(1)
    settle(ledger, Guarantee.uniform(0))
    assert len(list(ledger.entries())) == 11


def test_a_budget_split_in_three_is_spent_in_three(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    for share in ledger.remaining.split(3):
        settle(ledger, Guarantee.uniform(share.epsilon, share.delta))
    assert ledger.remaining == Cost(0)
    thirds = new_ledger(epsilon=1)
    for _ in range(3):
        thirds.run(xp.mechanisms.Coin(epsilon=1 / 3, sensitivity=1, heads=1), on=0)
    assert thirds.remaining == Cost("1e-12")


def test_everything_that_remains_can_be_asked_for(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon="1234567.123456789012")
    ledger.run(xp.mechanisms.Coin(epsilon=ledger.remaining.epsilon, sensitivity=1), on=0)


def test_refunds(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    with ledger.reserve(GUARANTEE, label="spark job 17") as spending:
        assert ledger.reserved == Cost(0.75, delta="1e-6")
        assert ledger.remaining == Cost(0.25)
        entry = spending.settle("small")
    assert entry.charged == Cost(0.25, delta="1e-6")
    assert entry.refunded == Cost(0.5)
    assert ledger.remaining == Cost(0.75)  # δ is not refunded
    assert ledger.reserved == Cost(0)


def test_entries_say_who_what_when(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6, name="study")
    before = datetime.now(UTC) - timedelta(hours=1)
    reservation = ledger.create_account("alice", epsilon=1, delta=1).reserve(GUARANTEE, label="job", key="k")
    (entry,) = ledger.entries()
    assert (entry.id, entry.account, entry.what, entry.operation) == (1, "study/alice", "job", "reserve")
    assert (entry.key, entry.label) == ("k", "job")
    assert (entry.state, entry.part, entry.charged, entry.refunded) == ("reserved", None, None, None)
    assert entry.guarantee == GUARANTEE
    assert before <= entry.when <= datetime.now(UTC)
    reservation.settle("large")
    (later,) = ledger.entries()
    assert later.when == entry.when
    assert entry.state == "reserved"  # what was read does not change
    with pytest.raises(AttributeError):
        entry.state = "settled"  # type: ignore[misc]
    assert (
        repr(later)
        == "<entry 1 of 'study/alice': job, settled, part 'large', reserved ε 0.75, δ 1e-6, charged ε 0.75, δ 1e-6>"
    )


def test_leaving_without_a_part_charges_the_worst_case_and_warns(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    with (
        pytest.warns(xp.errors.UnsettledWarning, match=r"worst case \(ε 0.75, δ 1e-6\) was charged"),
        ledger.reserve(GUARANTEE),
    ):
        pass
    assert ledger.spent == GUARANTEE.worst_case


def test_an_exception_in_the_block_charges_the_worst_case_with_a_note(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(RuntimeError) as caught, ledger.reserve(GUARANTEE):
        raise RuntimeError("engine down")
    assert "worst case (ε 0.75, δ 1e-6) was charged to 'ledger' as entry 1" in caught.value.__notes__[0]
    assert next(ledger.entries()).state == "forfeited"


def test_before_it_began_nothing_is_charged(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(RuntimeError), ledger.reserve(GUARANTEE, begin=False):
        raise RuntimeError("no connection")
    spending = ledger.reserve(GUARANTEE, begin=False)
    assert spending.void().refunded == GUARANTEE.worst_case
    assert [entry.state for entry in ledger.entries()] == ["voided", "voided"]
    assert ledger.remaining == ledger.limit
    begun = ledger.reserve(GUARANTEE, begin=False)
    begun.begin()
    with pytest.raises(xp.errors.ReservationClosed, match="sampling has begun"):
        begun.void()
    begun.settle("small")
    forgotten = ledger.create_account("late", epsilon=1).reserve(Guarantee.uniform(0.1), begin=False)
    with pytest.warns(xp.errors.UnsettledWarning), forgotten:
        pass


def test_a_reservation_ends_once(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    spending = ledger.reserve(GUARANTEE)
    spending.settle("small")
    for again in (lambda: spending.settle("small"), spending.forfeit, spending.void, spending.begin):
        with pytest.raises(xp.errors.ReservationClosed, match="it is settled already"):
            again()
    assert ledger.spent == Cost(0.25, delta="1e-6")
    assert repr(spending).startswith("<reservation <entry 1")


def test_an_unknown_part_charges_the_worst_case_and_raises(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(xp.errors.UnknownPart) as caught, ledger.reserve(GUARANTEE) as spending:
        spending.settle("medium")
    assert "worst case" in caught.value.__notes__[0]
    assert ledger.spent == GUARANTEE.worst_case
    other = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(xp.errors.UnknownPart):
        other.run(Fixed(GUARANTEE, None, part="medium"))
    with pytest.raises(ValueError, match="cannot tell"):
        new_ledger(epsilon=1, delta=1).run(Fixed(GUARANTEE, None, part=ValueError("cannot tell")))
    assert other.spent == GUARANTEE.worst_case


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt()])
def test_an_exception_while_sampling_charges_the_worst_case(new_ledger: NewLedger, error: BaseException) -> None:
    def broken() -> None:
        raise error

    ledger = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(type(error)) as caught:
        ledger.run(Fixed(GUARANTEE, None), on=broken)
    assert "worst case" in caught.value.__notes__[0]
    assert ledger.spent == GUARANTEE.worst_case


def test_public_mistakes_are_free(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    with pytest.raises(xp.InvalidValue, match="one integer, got data of type str"):
        ledger.run(xp.mechanisms.Coin(epsilon=1, sensitivity=1), on="seven")  # type: ignore[misc]
    for wrong in ("coin", None, GUARANTEE):
        with pytest.raises(xp.InvalidValue, match="a question or a mechanism"):
            ledger.run(wrong)  # type: ignore[call-overload]
    with pytest.raises(xp.InvalidValue, match="reserve takes a guarantee"):
        ledger.reserve(xp.mechanisms.Coin(epsilon=1, sensitivity=1))
    for text in ("", 7):
        with pytest.raises(xp.InvalidValue, match="a label is a string"):
            ledger.reserve(GUARANTEE, label=text)
        with pytest.raises(xp.InvalidValue, match="a key is a string"):
            ledger.reserve(GUARANTEE, key=text)
    for name in ("", "a/b", 7):
        with pytest.raises(xp.InvalidValue, match="no '/'"):
            new_ledger(epsilon=1, name=name)
    with pytest.raises(xp.InvalidValue, match="noise must be a NoiseSource"):
        new_ledger(epsilon=1, noise=42)
    with pytest.raises(xp.InvalidValue, match="a unit is a string"):
        new_ledger(epsilon=1, unit=3)
    with pytest.raises(xp.InvalidValue, match="quote takes questions, mechanisms and guarantees"):
        ledger.quote([1])
    with pytest.raises(xp.InvalidValue, match="neighbours must be"):
        new_ledger(epsilon=1, neighbours="any")
    assert list(ledger.entries()) == []


def test_starting_an_interaction_badly_forfeits(new_ledger: NewLedger) -> None:
    class Broken(xp.Mechanism):
        guarantee = Guarantee.uniform(1)

        def part_of(self, output: object) -> str:
            return "never"

        def start(self, data: object, noise: xp.noise.NoiseSource) -> xp.Interaction:
            raise RuntimeError("lost")

    ledger = new_ledger(epsilon=1)
    with pytest.raises(RuntimeError):
        ledger.open(Broken())
    assert ledger.remaining == Cost(0)


def test_an_output_that_cannot_be_kept_charges_the_worst_case(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(TypeError) as caught:
        ledger.run(Fixed(GUARANTEE, None, part="small"), on=lambda: (x for x in "abc"), key="k")
    assert "worst case" in caught.value.__notes__[0]
    assert ledger.spent == GUARANTEE.worst_case


def test_threads_never_pass_the_limit(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon="0.15")
    accounts = [ledger.create_account(f"analyst {i}", epsilon="0.1") for i in range(4)]
    barrier, refused = Barrier(8), []

    def spend(account: Ledger) -> None:
        barrier.wait()
        for _ in range(25):
            try:
                settle(account, Guarantee({"small": "0.001", "large": "0.002"}), "small")
            except xp.BudgetExceeded as error:
                refused.append(error)

    threads = [Thread(target=spend, args=(accounts[i % 4],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent + Cost(0.001) * len(refused) == Cost(0.2)
    assert refused
    assert ledger.spent == sum((account.spent for account in accounts), Cost(0))
    assert ledger.reserved == Cost(0)
