"""What every ledger does, wherever its books are kept. One suite that each store passes."""

import copy
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from threading import Barrier, Thread
from typing import TypeAlias

import pytest

import expost as xp
from expost import Cost, Guarantee, Ledger
from expost.ledger.verify.lines import replay
from toys import Fixed, Responses

NewLedger: TypeAlias = Callable[..., Ledger]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def new_ledger(request: pytest.FixtureRequest) -> NewLedger:
    """Makes an empty ledger of the store under test, given a limit and options."""
    return Ledger if request.param == "memory" else durable(request.getfixturevalue(f"{request.param}_url"))


def durable(new_url: Callable[[], str]) -> NewLedger:
    def make(epsilon: object, delta: object = 0, **options: object) -> Ledger:
        options = {"name": "ledger", "neighbours": "add-remove", "unit": "person", **options}
        return Ledger.create(new_url(), epsilon=epsilon, delta=delta, **options)

    return make


CLAIM = Guarantee({"large": 0.75, "small": 0.25}, delta="1e-6")


def settle(ledger: Ledger, claim: Guarantee, part: str = "small") -> None:
    with ledger.reserve(claim) as spending:
        spending.settle(part)


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
        thirds.run(xp.Coin(epsilon=1 / 3, sensitivity=1, heads=1), on=0)
    assert thirds.remaining == Cost("1e-12")


def test_everything_that_remains_can_be_asked_for(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon="1234567.123456789012")
    ledger.run(xp.Coin(epsilon=ledger.remaining.epsilon, sensitivity=1), on=0)


def test_refunds(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    with ledger.reserve(CLAIM, label="spark job 17") as spending:
        assert ledger.reserved == Cost(0.75, delta="1e-6")
        assert ledger.remaining == Cost(0.25)
        entry = spending.settle("small")
    assert entry.charged == Cost(0.25, delta="1e-6")
    assert entry.refunded == Cost(0.5)
    assert ledger.remaining == Cost(0.75)  # δ does not come back
    assert ledger.reserved == Cost(0)


def test_entries_say_who_what_when(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6, name="study")
    before = datetime.now(UTC) - timedelta(hours=1)
    reservation = ledger.create_account("alice", epsilon=1, delta=1).reserve(CLAIM, label="job", key="k")
    (entry,) = ledger.entries()
    assert (entry.id, entry.account, entry.what, entry.operation) == (1, "study/alice", "job", "reserve")
    assert (entry.key, entry.label) == ("k", "job")
    assert (entry.state, entry.part, entry.charged, entry.refunded) == ("reserved", None, None, None)
    assert entry.guarantee == CLAIM
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
    with pytest.warns(xp.UnsettledWarning, match=r"worst case \(ε 0.75, δ 1e-6\) was charged"), ledger.reserve(CLAIM):
        pass
    assert ledger.spent == CLAIM.worst_case


def test_an_exception_in_the_block_charges_the_worst_case_with_a_note(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(RuntimeError) as caught, ledger.reserve(CLAIM):
        raise RuntimeError("engine down")
    assert "worst case (ε 0.75, δ 1e-6) was charged to 'ledger' as entry 1" in caught.value.__notes__[0]
    assert next(ledger.entries()).state == "forfeited"


def test_before_it_began_nothing_is_charged(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(RuntimeError), ledger.reserve(CLAIM, begin=False):
        raise RuntimeError("no connection")
    spending = ledger.reserve(CLAIM, begin=False)
    assert spending.void().refunded == CLAIM.worst_case
    assert [entry.state for entry in ledger.entries()] == ["voided", "voided"]
    assert ledger.remaining == ledger.limit
    begun = ledger.reserve(CLAIM, begin=False)
    begun.begin()
    with pytest.raises(xp.ReservationClosed, match="sampling has begun"):
        begun.void()
    begun.settle("small")
    forgotten = ledger.create_account("late", epsilon=1).reserve(Guarantee.uniform(0.1), begin=False)
    with pytest.warns(xp.UnsettledWarning), forgotten:
        pass


def test_a_reservation_ends_once(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    spending = ledger.reserve(CLAIM)
    spending.settle("small")
    for again in (lambda: spending.settle("small"), spending.forfeit, spending.void, spending.begin):
        with pytest.raises(xp.ReservationClosed, match="it is settled already"):
            again()
    assert ledger.spent == Cost(0.25, delta="1e-6")
    assert repr(spending).startswith("<reservation <entry 1")


def test_an_unknown_part_charges_the_worst_case_and_raises(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(xp.UnknownPart) as caught, ledger.reserve(CLAIM) as spending:
        spending.settle("medium")
    assert "worst case" in caught.value.__notes__[0]
    assert ledger.spent == CLAIM.worst_case
    other = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(xp.UnknownPart):
        other.run(Fixed(CLAIM, None, part="medium"))
    with pytest.raises(ValueError, match="cannot tell"):
        new_ledger(epsilon=1, delta=1).run(Fixed(CLAIM, None, part=ValueError("cannot tell")))
    assert other.spent == CLAIM.worst_case


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt()])
def test_an_exception_while_sampling_charges_the_worst_case(new_ledger: NewLedger, error: BaseException) -> None:
    def broken() -> None:
        raise error

    ledger = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(type(error)) as caught:
        ledger.run(Fixed(CLAIM, None), on=broken)
    assert "worst case" in caught.value.__notes__[0]
    assert ledger.spent == CLAIM.worst_case


def test_public_mistakes_are_free(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    with pytest.raises(xp.InvalidValue, match="one integer, got data of type str"):
        ledger.run(xp.Coin(epsilon=1, sensitivity=1), on="seven")  # type: ignore[misc]
    for wrong in ("coin", None, CLAIM):
        with pytest.raises(xp.InvalidValue, match="take a mechanism"):
            ledger.run(wrong)
    with pytest.raises(xp.InvalidValue, match="reserve takes a guarantee"):
        ledger.reserve(xp.Coin(epsilon=1, sensitivity=1))
    for text in ("", 7):
        with pytest.raises(xp.InvalidValue, match="a label is a string"):
            ledger.reserve(CLAIM, label=text)
        with pytest.raises(xp.InvalidValue, match="a key is a string"):
            ledger.reserve(CLAIM, key=text)
    for name in ("", "a/b", 7):
        with pytest.raises(xp.InvalidValue, match="no '/'"):
            new_ledger(epsilon=1, name=name)
    with pytest.raises(xp.InvalidValue, match="noise must be a NoiseSource"):
        new_ledger(epsilon=1, noise=42)
    with pytest.raises(xp.InvalidValue, match="a unit is a string"):
        new_ledger(epsilon=1, unit=3)
    with pytest.raises(xp.InvalidValue, match="quote takes a list"):
        ledger.quote([1])
    with pytest.raises(xp.InvalidValue, match="neighbours must be"):
        new_ledger(epsilon=1, neighbours="any")
    assert list(ledger.entries()) == []


def test_starting_an_interaction_badly_forfeits(new_ledger: NewLedger) -> None:
    class Broken(xp.Mechanism):
        guarantee = Guarantee.uniform(1)

        def part_of(self, output: object) -> str:
            return "never"

        def start(self, data: object, noise: xp.NoiseSource) -> xp.Interaction:
            raise RuntimeError("lost")

    ledger = new_ledger(epsilon=1)
    with pytest.raises(RuntimeError):
        ledger.open(Broken())
    assert ledger.remaining == Cost(0)


def test_an_output_that_cannot_be_kept_charges_the_worst_case(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    with pytest.raises(TypeError) as caught:
        ledger.run(Fixed(CLAIM, None, part="small"), on=lambda: (x for x in "abc"), key="k")
    assert "worst case" in caught.value.__notes__[0]
    assert ledger.spent == CLAIM.worst_case


# ---- keys


def test_a_replayed_run_samples_nothing(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    coin = xp.Coin(epsilon=1, sensitivity=1, heads=1)
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
    spending = ledger.reserve(CLAIM, key="k")
    with pytest.raises(xp.AlreadyReserved, match="which is reserved: settle it through") as caught:
        ledger.reserve(CLAIM, key="k")
    assert caught.value.entry.id == spending.id
    ledger.reservation("k").settle("small")
    with pytest.raises(xp.AlreadyReserved, match="which is settled: nothing is sampled twice"):
        ledger.reserve(CLAIM, key="k")
    told = Fixed(CLAIM, None, part="unknown")
    with pytest.raises(xp.UnknownPart):
        ledger.run(told, key="forfeited")
    with pytest.raises(xp.AlreadyReserved, match="forfeited"):
        ledger.run(told, key="forfeited")


def test_a_used_key_of_an_interaction(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10)
    with ledger.open(Responses(Fraction(2), 1), key="talk"):
        pass
    with pytest.raises(xp.AlreadyReserved, match="voided"):
        ledger.open(Responses(Fraction(2), 1), key="talk")


def test_the_same_key_with_another_request(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=10, delta=1)
    other = ledger.create_account("other", epsilon=5, delta=1)
    coin = xp.Coin(epsilon=1, sensitivity=1)
    ledger.run(coin, on=1, key="k", label="a")
    for differs, attempt in (
        ("label", lambda: ledger.run(coin, on=1, key="k", label="b")),
        ("account", lambda: other.run(coin, on=1, key="k", label="a")),
        ("mechanism", lambda: ledger.run(xp.Coin(epsilon=2, sensitivity=1), on=1, key="k", label="a")),
        ("operation", lambda: ledger.reserve(coin.guarantee, key="k", label="a")),
    ):
        with pytest.raises(xp.KeyConflict, match=f"another {differs}"):
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
        with pytest.raises(xp.UnknownEntry, match="no entry"):
            ledger.reservation(unknown)
    with pytest.raises(xp.InvalidValue, match="entry number or key"):
        ledger.reservation(1.5)


def test_a_reservation_is_found_from_its_own_account_and_above() -> None:
    ledger = Ledger(epsilon=5)
    alice, bob = ledger.create_account("alice", epsilon=1), ledger.create_account("bob", epsilon=1)
    spending = bob.reserve(Guarantee.uniform(0.5))
    with pytest.raises(xp.UnknownEntry, match="not one of 'ledger/alice'"):
        alice.reservation(spending.id)
    ledger.reservation(spending.id).settle("done")


def test_a_run_that_is_under_way_elsewhere(new_ledger: NewLedger) -> None:
    """The same key from within the run itself: in flight, neither replayed nor sampled again, nor settled."""
    ledger = new_ledger(epsilon=5, delta=1)
    told = Fixed(CLAIM, None, part="small")
    seen = []

    def meanwhile() -> str:
        for attempt in (lambda: ledger.run(told, key="k"), lambda: ledger.reservation("k").settle("small")):
            with pytest.raises((xp.AlreadyReserved, xp.InvalidValue)) as caught:
                attempt()
            seen.append(str(caught.value))
        return "answer"

    assert ledger.run(told, on=meanwhile, key="k").value == "answer"
    assert "it is still running" in seen[0]
    assert "forfeit() it" in seen[1]
    assert ledger.run(told, key="k").value == "answer"


def test_an_output_whose_copy_looks_at_the_ledger() -> None:
    ledger = Ledger(epsilon=5, delta=1)

    class Curious:
        def __deepcopy__(self, memo: object) -> "Curious":
            assert ledger.remaining
            return self

    assert ledger.run(Fixed(CLAIM, None, part="small"), on=Curious, key="k").part == "small"


# ---- accounts


def test_a_charge_counts_at_every_level_or_at_none(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, name="study")
    team = ledger.create_account("team", epsilon=0.75)
    alice = team.create_account("alice", epsilon=2)
    settle(alice, Guarantee.uniform(0.5), "any")
    assert [level.spent for level in (ledger, team, alice)] == [Cost(0.5)] * 3
    assert [level.remaining for level in (ledger, team, alice)] == [Cost(0.5), Cost(0.25), Cost(0.25)]
    with pytest.raises(xp.BudgetExceeded) as refused:
        alice.reserve(Guarantee.uniform(0.3))
    assert refused.value.ledger == "study/team"
    assert refused.value.affordable_epsilon == 0.25
    assert [level.spent for level in (ledger, team, alice)] == [Cost(0.5)] * 3
    with pytest.raises(xp.BudgetExceeded) as refused:
        ledger.create_account("bob", epsilon=9).reserve(Guarantee.uniform(0.6))
    assert refused.value.ledger == "study"


def test_an_over_ask_names_the_level_that_is_short_of_what(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon="0.8684946", name="study")
    alice = ledger.create_account("alice", epsilon=0.1, delta=1e-5)
    with pytest.raises(xp.BudgetExceeded) as refused:
        alice.reserve(Guarantee.uniform(0.5, 1e-6))
    assert (refused.value.ledger, refused.value.short) == ("study/alice", ("epsilon",))
    assert refused.value.affordable == Cost(0.1)
    with pytest.raises(xp.BudgetExceeded, match=r"largest affordable ε is 0\.8684946;"):
        ledger.reserve(Guarantee.uniform(1))


def test_a_statement_knows_the_limits_above(new_ledger: NewLedger) -> None:
    account = new_ledger(epsilon=1, name="study").create_account("rich", epsilon=5)
    assert account.statement().endswith("limit ε 5 · spent ε 0 · reserved ε 0 · remaining ε 1")


def test_accounts_are_found_by_name(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, unit="person")
    ledger.create_account("alice", epsilon=0.5).create_account("thesis", epsilon=0.1)
    assert ledger.account("alice").account("thesis").limit == Cost(0.1)
    assert [account.name for account in ledger.accounts] == ["ledger/alice"]
    assert ledger.accounts[0].unit == "person"
    with pytest.raises(xp.UnknownEntry, match="has no account 'bob' \\(it has 'alice'\\)"):
        ledger.account("bob")
    with pytest.raises(xp.UnknownEntry, match="it has none"):
        ledger.account("alice").account("thesis").account("x")
    with pytest.raises(xp.AlreadyExists, match="exists already"):
        ledger.create_account("alice", epsilon=1)
    assert ledger.create_account("carol", Cost(0.25, delta=1e-9)).limit == Cost(0.25, delta=1e-9)
    with pytest.raises(xp.InvalidValue, match="not both"):
        ledger.create_account("dora", Cost(0.25), delta=0.1)
    with pytest.raises(xp.InvalidValue, match="an account's name"):
        ledger.create_account("a/b", epsilon=1)


def test_entries_of_an_account(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    alice, bob = ledger.create_account("alice", epsilon=1), ledger.create_account("bob", epsilon=1)
    for account in (alice, bob, ledger):
        settle(account, Guarantee.uniform(0.1), "any")
    assert [entry.account for entry in ledger.entries()] == ["ledger/alice", "ledger/bob", "ledger"]
    assert [entry.id for entry in bob.entries()] == [2]


# ---- neighbours, quotes, copies, looks


def test_the_first_relation_fixes_it() -> None:
    ledger = Ledger(epsilon=10)
    settle(ledger, Guarantee.uniform(1), "any")
    assert ledger.neighbours is None
    with pytest.raises(xp.BudgetExceeded):
        ledger.reserve(Guarantee.uniform(100, neighbours="add-remove"))
    assert ledger.neighbours is None  # a refusal changes nothing
    settle(ledger, Guarantee.uniform(1, neighbours="substitute"), "any")
    assert ledger.neighbours == "substitute"
    claim = Guarantee.uniform(1, neighbours="add-remove")
    with pytest.raises(xp.NeighbourMismatch, match=r"guarantee\.under\('substitute'\)"):
        ledger.reserve(claim)
    settle(ledger, claim.under("substitute"), "any")
    assert ledger.spent == Cost(4)


def test_one_relation_in_one_ledger(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, neighbours="add-remove")
    with pytest.raises(xp.NeighbourMismatch):
        ledger.reserve(Guarantee.uniform(1, neighbours="substitute"))
    settle(ledger, Guarantee.uniform(1, neighbours="add-remove"), "any")
    assert ledger.neighbours == "add-remove"


def test_a_quote_charges_nothing(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2, delta=1e-6)
    quote = ledger.quote([xp.Coin(epsilon=1, sensitivity=1), CLAIM])
    assert (quote.worst, quote.best) == (Cost(1.75, delta="1e-6"), Cost(0.25, delta="1e-6"))
    assert quote.fits
    assert not ledger.quote([CLAIM, CLAIM]).fits
    assert ledger.quote([]).worst == Cost(0)
    assert list(ledger.entries()) == []
    with pytest.raises(xp.InvalidValue, match=r"quote\(\[…\]\)"):
        ledger.quote(CLAIM)


def test_a_ledger_is_never_copied(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    assert copy.copy(ledger) is ledger
    assert copy.deepcopy({"ledger": ledger})["ledger"] is ledger


def test_how_ledgers_look(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6, name="study")
    assert repr(ledger) == "<ledger 'study': ε 1, δ 1e-6 remaining of ε 1, δ 1e-6>"
    settle(ledger, CLAIM)
    ledger.reserve(Guarantee.uniform(0.25), label="a label that is much too long to be printed in a table cell")
    lines = ledger.statement().splitlines()
    assert lines[0].split() == ["#", "account", "what", "state", "part", "reserved", "charged", "refunded"]
    assert "settled" in lines[2]
    assert "…" in lines[3]
    assert lines[-1] == "study: limit ε 1, δ 1e-6 · spent ε 0.25, δ 1e-6 · reserved ε 0.25 · remaining ε 0.5"


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


# ---- the owner's business, and auditing


def test_a_limit_is_raised_by_somebody_for_a_reason(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1, delta=1e-6)
    alice = ledger.create_account("alice", epsilon=0.5)
    with pytest.raises(xp.BudgetExceeded):
        alice.reserve(Guarantee.uniform(0.75))
    alice.raise_limit(epsilon=0.75, by="the board", reason="a second wave")
    settle(alice, Guarantee.uniform(0.75), "any")
    assert (alice.limit, alice.remaining) == (Cost(0.75), Cost(0))
    ledger.raise_limit(delta=1e-5, by="the board", reason="δ of the new study")
    assert ledger.limit == Cost(1, delta=1e-5)
    for less in ({"epsilon": 0.5}, {"delta": 1e-9}, {"epsilon": 5, "delta": 0}):
        with pytest.raises(xp.InvalidValue, match="can only be raised"):
            ledger.raise_limit(**less, by="the board", reason="thrift")
    with pytest.raises(xp.InvalidValue, match="pass epsilon= or delta="):
        ledger.raise_limit(by="the board", reason="none")
    with pytest.raises(xp.InvalidValue, match="a reason is"):
        ledger.raise_limit(epsilon=9, by="the board", reason="")
    told = [event.body for event in ledger.audit() if event.kind == "raise"]
    assert told == [
        {"account": "ledger/alice", "limit": [75 * 10**10, 0], "by": "the board", "reason": "a second wave"},
        {"account": "ledger", "limit": [10**12, 10**13], "by": "the board", "reason": "δ of the new study"},
    ]
    ledger.verify()


def test_a_closed_ledger_reserves_nothing_more(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    alice, bob = ledger.create_account("alice", epsilon=0.5), ledger.create_account("bob", epsilon=0.5)
    spending = alice.reserve(Guarantee({"a": 0.25, "b": 0.1}))
    alice.close(by="the board", reason="she left")
    for claim in (Guarantee.uniform(0.1), Guarantee.uniform(0)):
        with pytest.raises(xp.LedgerClosed, match="'ledger/alice' was closed by its owner"):
            alice.reserve(claim)
    assert (alice.closed, alice.remaining, ledger.closed) == (True, Cost(0), False)
    assert spending.settle("b").charged == Cost(0.1)
    settle(bob, Guarantee.uniform(0.1), "any")
    ledger.close(by="the board", reason="the study is over")
    with pytest.raises(xp.LedgerClosed, match="'ledger' was closed"):
        bob.reserve(Guarantee.uniform(0.1))
    assert bob.closed
    assert ledger.statement().endswith("closed")
    assert [event.body["reason"] for event in ledger.audit() if event.kind == "close"] == [
        "she left",
        "the study is over",
    ]
    ledger.verify()


def test_the_audit_trail_adds_up(new_ledger: NewLedger, tmp_path: Path) -> None:
    ledger = new_ledger(epsilon=5, delta=1e-5, name="study", unit="person", neighbours="add-remove")
    alice = ledger.create_account("alice", epsilon=3, delta=1e-5)
    settle(alice, CLAIM)
    noted = ledger.verify()
    alice.reserve(CLAIM, begin=False).void()
    ledger.run(xp.Coin(epsilon=1, sensitivity=1, heads=1), on=3, key="k")
    waiting = ledger.reserve(CLAIM, begin=False)
    waiting.begin()
    waiting.forfeit()
    ledger.reserve(Guarantee.uniform(0.5))
    head = ledger.verify(known=noted)
    kinds = "create account reserve settle reserve void reserve settle reserve begin forfeit reserve"
    assert " ".join(event.kind for event in ledger.audit()) == kinds
    books, again = replay(ledger.audit())
    assert again == head == ledger.export(tmp_path / "trail.jsonl")
    assert books.accounts["study",][:4] == (ledger.limit, ledger.spent, ledger.reserved, False)
    assert books.accounts["study", "alice"].spent == Cost(0.25, delta="1e-6")
    lines = [json.loads(line) for line in (tmp_path / "trail.jsonl").read_text().splitlines()]
    assert [line["line"]["sequence"] for line in lines] == list(range(1, 13))
    claims: dict[str, object] = {}
    for told in (line["line"]["body"] for line in lines if line["line"]["event"] == "reserve"):
        claims[told["claim"]] = told.get("guarantee") or claims[told["claim"]]  # each was told of when it came first
        assert Guarantee.from_json(claims[told["claim"]]).worst_case == Cost.of_units(*told["worst"])
    before = "0" * 64
    for line in lines:  # as anyone can, without expost
        text = json.dumps(line["line"], sort_keys=True, separators=(",", ":"))
        before = hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()
        assert line["hash"] == before
    assert before == head.hash
    with pytest.raises(xp.LedgerCorrupt, match="was rewritten"):
        ledger.verify(known=noted._replace(hash="0" * 64))
    with pytest.raises(xp.LedgerCorrupt, match="old backup"):
        ledger.verify(known=head._replace(sequence=99))


def test_a_statement_by_day(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5, delta=1e-5, name="study")
    alice = ledger.create_account("alice", epsilon=3, delta=1e-5)
    for account in (ledger, alice, alice):
        settle(account, CLAIM)
    ledger.reserve(Guarantee.uniform(1))
    lines = ledger.statement(by="day").splitlines()
    assert lines[0].split() == ["day", "account", "reserved", "charged", "refunded"]
    assert " ".join(lines[2].split()[1:]) == "study ε 1.75, δ 1e-6 ε 0.25, δ 1e-6 ε 0.5"
    assert " ".join(lines[3].split()[1:]) == "study/alice ε 1.5, δ 2e-6 ε 0.5, δ 2e-6 ε 1"
    with pytest.raises(xp.InvalidValue, match="by 'entry' or by 'day'"):
        ledger.statement(by="week")


def test_leases_are_positive_numbers(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=1)
    for wrong in (0, -1, True, "soon", float("nan")):
        with pytest.raises(xp.InvalidValue, match="a lease is"):
            ledger.reserve(Guarantee.uniform(0.1), lease=wrong)
    ledger.reserve(Guarantee.uniform(0.1), lease=60, key="k")
    assert ledger.recover() == 0
    assert ledger.reservation("k").settle("any").charged == Cost(0.1)
