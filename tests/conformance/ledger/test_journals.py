"""What was run on a journal is posted once, as it was, in every store; what was set aside for a lost one is charged."""

from __future__ import annotations

import json
from typing import Any

import pytest

import expost as xp
from books import NewLedger
from expost import Cost, Guarantee, Ledger
from expost.accounting.amounts import NO_AMOUNTS, Amounts, together
from expost.ledger.following import run_following
from expost.ledger.imagined import Imagined
from expost.ledger.journal import Posting, forfeits, new_journal, post, postings_of, postings_text
from toys import Fixed

TWO = Guarantee({"small": "0.25", "large": "0.75"}, delta="1e-6")


def journal_of(ledger: Ledger) -> Ledger:
    """A journal on what the ledger's balances are now."""
    return new_journal(ledger, ledger._store.balances(ledger._path))


def kept(journal: Ledger) -> list[Posting]:
    """Its postings, as they come back from where they were kept."""
    return [Posting.from_json(each) for each in json.loads(postings_text(journal))]


def published(output: Any, key: str | None, part: str = "small", guarantee: Guarantee = TWO) -> Any:
    """Runs a toy on a ledger: it publishes an output at the price of a part."""
    return lambda ledger: ledger.run(Fixed(guarantee, None, part), lambda: output, key=key, label=f"label of {key}")


def lost_once(store: Any, method: str) -> None:
    """The store is lost when it is asked for this, once, before anything was done."""

    def lost(*_: Any) -> Any:
        delattr(store, method)
        raise xp.errors.LedgerUnavailable("gone")

    setattr(store, method, lost)


def test_what_a_journal_holds_is_posted_as_it_is(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5, delta="1e-3")
    team = ledger.create_account("team", epsilon=3, delta="1e-4").create_account("alice", epsilon=2, delta="1e-4")
    journal = journal_of(team)
    first = published({"sum": 1.5, "cells": (1, 2)}, "a")(journal)
    published("nothing much", None, "large")(journal)
    assert (ledger.spent, ledger.reserved, list(ledger.entries())) == (Cost(0), Cost(0), [])
    made = post(team, kept(journal))
    assert [(entry.id, entry.state, entry.part, entry.charged) for entry in made] == [
        (1, "settled", "small", TWO.cost_of("small")),
        (2, "settled", "large", TWO.worst_case),
    ]
    for entry, asked in zip(made, journal.entries(), strict=True):
        assert (entry.operation, entry.account, entry.label, entry.key, entry.request.guarantee) == (
            asked.operation, "ledger/team/alice", asked.label, asked.key, asked.request.guarantee
        )  # fmt: skip
        assert repr(entry.request.subject) == repr(asked.request.subject)
    assert team.output("a") == first.output
    assert team.spent == ledger.spent == journal.spent == TWO.cost_of("small") + TWO.worst_case
    assert ledger.reserved == Cost(0)
    ledger.verify()


def test_a_posted_answer_is_a_stored_one_for_whoever_asks_next(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5)
    journal, coin = journal_of(ledger), xp.mechanisms.Coin(epsilon=1, sensitivity=1)
    release = journal.run(coin, on=100, key="k")
    post(ledger, kept(journal))
    again = ledger.run(coin, on=None, key="k")  # type: ignore[misc]
    assert (again.replayed, again.output) == (True, release.output)
    assert ledger.spent == release.charged


def test_posting_again_changes_nothing(new_ledger: NewLedger) -> None:
    """As after a crash between posting and writing down that it was done."""
    ledger = new_ledger(epsilon=5, delta="1e-3")
    journal = journal_of(ledger)
    for key in "abc":
        published(key, key)(journal)
    made = post(ledger, kept(journal))
    head = ledger.verify()
    assert post(ledger, kept(journal)) == made
    assert (ledger.verify(), ledger.spent) == (head, TWO.cost_of("small") * 3)


def test_a_part_of_it_that_was_posted_before_is_not_posted_again(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5, delta="1e-3")
    journal = journal_of(ledger)
    for key in "abc":
        published(key, key)(journal)
    post(ledger, kept(journal)[1:2])
    assert [entry.key for entry in post(ledger, kept(journal))] == ["a", "b", "c"]
    assert [entry.key for entry in ledger.entries()] == ["b", "a", "c"]
    assert ledger.spent == TWO.cost_of("small") * 3


@pytest.mark.parametrize("count", [1, 3])
def test_posting_goes_on_where_it_was_lost(new_ledger: NewLedger, count: int) -> None:
    """What was reserved and not settled, because the database was lost between, is settled; nothing is made twice."""
    ledger = new_ledger(epsilon=5, delta="1e-3")
    journal = journal_of(ledger)
    for number in range(count):
        published(number, str(number))(journal)
    lost_once(ledger._store, "end_all")
    with pytest.raises(xp.errors.LedgerUnavailable):
        post(ledger, kept(journal))
    assert ledger.reserved == TWO.worst_case * count
    assert [entry.begun for entry in ledger.entries()] == [count == 1] * count  # several can be undone until all are in
    made = post(ledger, kept(journal))
    assert [(entry.id, entry.state) for entry in made] == [(n, "settled") for n in range(1, count + 1)]
    assert (ledger.spent, ledger.reserved) == (TWO.cost_of("small") * count, Cost(0))
    assert [ledger.output(str(number)) for number in range(count)] == [*range(count)]
    ledger.verify()


def test_what_was_forfeited_meanwhile_stays_forfeited(new_ledger: NewLedger) -> None:
    """The process died after it reserved: its entries were charged, and their outputs are published no more."""
    ledger = new_ledger(epsilon=5, delta="1e-3")
    journal = journal_of(ledger)
    published("secret", "a")(journal)
    lost_once(ledger._store, "end_all")
    with pytest.raises(xp.errors.LedgerUnavailable):
        post(ledger, kept(journal))
    ledger.reservation("a").forfeit()
    (entry,) = post(ledger, kept(journal))
    assert (entry.state, entry.charged) == ("forfeited", TWO.worst_case)
    with pytest.raises(xp.errors.AlreadyReserved) as caught:
        ledger.output("a")
    assert caught.value.entry.id == entry.id
    assert ledger.spent == TWO.worst_case


def test_what_failed_while_it_sampled_charges_the_worst_case(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5, delta="1e-3")
    journal = journal_of(ledger)
    published("fine", "a")(journal)
    with pytest.raises(ZeroDivisionError):
        journal.run(Fixed(TWO, None), on=lambda: 1 // 0, key="b")
    journal.reserve(TWO, key="c")  # and what is still open, when the job is over
    made = post(ledger, kept(journal))
    assert [entry.state for entry in made] == ["settled", "forfeited", "forfeited"]
    assert ledger.spent == TWO.cost_of("small") + TWO.worst_case * 2
    assert post(ledger, kept(journal)) == made
    assert ledger.spent == TWO.cost_of("small") + TWO.worst_case * 2


def test_all_of_it_is_posted_or_nothing(new_ledger: NewLedger) -> None:
    """What no longer fits, because somebody else spent meanwhile, takes the rest with it."""
    ledger = new_ledger(epsilon=2, delta="1e-3")
    journal = journal_of(ledger)
    for key in "ab":
        published(key, key)(journal)
    ledger.reserve(Guarantee.uniform("0.75")).settle("done")
    with pytest.raises(xp.BudgetExceeded) as refused:
        post(ledger, kept(journal))
    assert (refused.value.requested, refused.value.remaining.epsilon) == (TWO.worst_case, 0.5)
    assert (ledger.spent, ledger.reserved) == (Cost("0.75"), Cost(0))
    assert [(entry.state, entry.charged) for entry in ledger.entries()][1:] == [("voided", Cost(0))]
    ledger.raise_limit(epsilon=3, by="me", reason="because")
    made = post(ledger, kept(journal))
    assert made[0].state == "voided"  # so that nobody takes this for an answer that was paid
    ledger.verify()


def test_nothing_is_posted_to_a_closed_account(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5, delta="1e-3")
    account = ledger.create_account("team", epsilon=3, delta="1e-4")
    journal = journal_of(account)
    published("a", "a")(journal)
    ledger.close(by="me", reason="because")
    with pytest.raises(xp.errors.LedgerClosed) as refused:
        post(account, kept(journal))
    assert refused.value.ledger == "ledger"
    assert ledger.spent == ledger.reserved == Cost(0)


def test_a_key_has_one_output(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5, delta="1e-3")
    one, other = journal_of(ledger), journal_of(ledger)
    published("one", "k")(one)
    published("first", "free")(other)
    published("another", "k")(other)
    post(ledger, kept(one))
    for conflicting in (kept(other), [kept(one)[0]._replace(part='"large"')]):
        with pytest.raises(xp.errors.KeyConflict) as caught:
            post(ledger, conflicting)
        assert (caught.value.key, caught.value.differs, caught.value.entry) == ("k", "its output", None)
    assert (ledger.output("k"), len(list(ledger.entries()))) == ("one", 1)
    assert (ledger.spent, ledger.reserved) == (TWO.cost_of("small"), Cost(0))


def test_a_key_has_one_request(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5, delta="1e-3")
    journal = journal_of(ledger)
    published("first", "free")(journal)
    published("one", "k", guarantee=Guarantee({"small": "0.1"}))(journal)
    published("one", "k")(ledger)
    with pytest.raises(xp.errors.KeyConflict) as caught:
        post(ledger, kept(journal))
    assert (caught.value.key, caught.value.differs) == ("k", "mechanism")
    assert (len(list(ledger.entries())), ledger.spent) == (1, TWO.cost_of("small"))


def test_no_entries_are_posted_for_an_empty_journal(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5)
    head = ledger.verify()
    assert post(ledger, kept(journal_of(ledger))) == []
    assert ledger.verify() == head


def test_a_journal_admits_what_its_account_did_and_no_more(new_ledger: NewLedger) -> None:
    """Whatever happens to the ledger meanwhile, raised or spent: it has the balances that it was given."""
    ledger = new_ledger(epsilon=2)
    account, half = ledger.create_account("team", epsilon=1), Guarantee.uniform("0.5")
    ledger.reserve(Guarantee.uniform("0.5")).settle("done")  # so that the ledger itself is short before the account
    other = ledger.reserve(Guarantee.uniform("0.75"))
    journal = journal_of(account)
    other.settle("done")
    account.raise_limit(epsilon=2, by="me", reason="because")
    ledger.raise_limit(epsilon=4, by="me", reason="because")
    published("a", "a", "done", half)(journal)
    with pytest.raises(xp.BudgetExceeded) as refused:
        published("b", "b", "done", half)(journal)
    assert (refused.value.ledger, refused.value.remaining) == ("ledger", Cost("0.25"))
    published("c", "c", "done", Guarantee.uniform("0.25"))(journal)
    assert journal.remaining == Cost(0)
    assert [entry.charged for entry in post(account, kept(journal))] == [Cost("0.5"), Cost("0.25")]
    assert account.spent == Cost("0.75")


def test_a_journal_of_a_closed_account_admits_nothing(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=2)
    account = ledger.create_account("team", epsilon=1)
    account.close(by="me", reason="because")
    with pytest.raises(xp.errors.LedgerClosed):
        published("a", "a", "done", Guarantee.uniform("0.5"))(journal_of(account))


def test_what_cannot_be_read_back_is_not_kept(new_ledger: NewLedger) -> None:
    journal = journal_of(new_ledger(epsilon=5, delta="1e-3"))
    published(object(), "k")(journal)
    with pytest.raises(xp.errors.NotStorable):
        postings_text(journal)


def test_the_units_of_a_journal_are_those_of_its_ledger(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5, unit="person", neighbours="add-remove")
    journal = journal_of(ledger)
    assert (journal.unit, journal.neighbours) == ("person", "add-remove")
    with pytest.raises(xp.errors.UnitMismatch):
        published("a", "a", "done", Guarantee.uniform("0.5", unit="household"))(journal)
    with pytest.raises(xp.errors.NeighbourMismatch):
        published("a", "a", "done", Guarantee.uniform("0.5", neighbours="substitute"))(journal)
    assert [*journal.entries()] == []


def test_postings_are_kept_as_they_are() -> None:
    ledger = Ledger(epsilon=5, delta="1e-3")
    journal = journal_of(ledger)
    published([1, 2.5, None], "a")(journal)
    with pytest.raises(ZeroDivisionError):
        journal.run(Fixed(TWO, None), on=lambda: 1 // 0, key="b")
    text = postings_text(journal)
    assert postings_of(kept(journal)) == text  # nothing is lost on the way there and back
    assert [posting.part for posting in kept(journal)] == ['"small"', None]
    assert kept(journal)[1].output is None


def test_books_have_what_follows_an_answer_by_its_class_alone(new_ledger: NewLedger) -> None:
    """Neither the text nor the fingerprint tells the parameter, which is an answer; the key stands for it."""
    ledger = new_ledger(epsilon=5)
    journal = journal_of(ledger)
    for key, secret in (("a", 17), ("b", 4711)):
        run_following(journal, xp.Laplace(epsilon=1, sensitivity=secret), 3, key=key, label="follows")
    one, other = post(ledger, kept(journal))
    assert one.request.subject == other.request.subject
    assert repr(one.request.subject) == "Laplace, with parameters from earlier answers"
    again = run_following(ledger, xp.Laplace(epsilon=1, sensitivity=17), 3, key="a", label="follows")
    assert (again.replayed, ledger.spent) == (True, Cost(2))
    with pytest.raises(xp.errors.KeyConflict) as caught:
        run_following(ledger, xp.mechanisms.Coin(epsilon=1, sensitivity=1), 3, key="a", label="follows")
    assert caught.value.differs == "mechanism"


# ---- several meters


GAUSSIAN = xp.Gaussian(epsilon="0.1", delta="1e-7", sensitivity=1)
DISCRETE = xp.DiscreteGaussian(rho="0.001", delta="1e-7", sensitivity=1)


def metered(new_ledger: NewLedger) -> Ledger:
    return new_ledger(epsilon=1, delta="1e-6", accounting="renyi")


def test_prices_are_posted_as_they_were(new_ledger: NewLedger) -> None:
    """Noise that takes no δ, ρ-zCDP, and a guarantee: each meter counts what the journal counted."""
    ledger = metered(new_ledger)
    journal = journal_of(ledger)
    journal.run(GAUSSIAN, on=0, key="a")
    journal.run(DISCRETE, on=0, key="b")
    published("c", "c", guarantee=Guarantee({"small": "0.01", "large": "0.02"}))(journal)
    with pytest.raises(xp.BudgetExceeded):
        published("d", "d", "done", Guarantee.uniform("0.9"))(journal)  # the basic sum is closed by the noise
    made = post(ledger, kept(journal))
    assert [entry.amounts for entry in made] == [entry.amounts for entry in journal.entries()]
    assert ledger.meters == journal.meters
    assert ledger._store.balances(("ledger",))[0].charged == journal._store.balances(("ledger",))[0].charged
    assert post(ledger, kept(journal)) == made
    assert ledger.meters == journal.meters
    ledger.verify()


def test_a_journal_of_an_account_with_the_basic_sum_alone_takes_delta(new_ledger: NewLedger) -> None:
    """As the account does: there is no meter on which noise without δ has a price."""
    ledger = metered(new_ledger)
    account = ledger.create_account("small", epsilon="0.3", delta="1e-12")
    journal = journal_of(account)
    (gaussian,) = PLANS["gaussian"]
    journal.run(gaussian, on=0, key="a")
    (entry,) = post(account, kept(journal))
    assert entry.charged == Cost("0.1", delta="1e-13") == account.spent
    assert entry.amounts == next(iter(journal.entries())).amounts
    ledger.verify()


def charge_of(ledger: Ledger, *plans: Any) -> Amounts:
    """What is set aside for these."""
    return together([Imagined.of(ledger).charges(plan)[0] for plan in plans])


def test_what_was_set_aside_is_charged_as_a_whole(new_ledger: NewLedger) -> None:
    ledger = new_ledger(epsilon=5, delta="1e-3")
    made = post(ledger, forfeits(ledger, charge_of(ledger, TWO, TWO), "job 7: lost", "late 7"))
    assert [(entry.state, entry.label, entry.key) for entry in made] == [("forfeited", "job 7: lost", "late 7")]
    assert (ledger.spent, ledger.reserved) == (TWO.worst_case * 2, Cost(0))
    assert post(ledger, forfeits(ledger, charge_of(ledger, TWO, TWO), "job 7: lost", "late 7")) == made
    assert ledger.spent == TWO.worst_case * 2
    ledger.verify()


SMALL = Guarantee({"small": "0.25", "large": "0.75"}, delta="1e-14")
PLANS: dict[str, tuple[Any, ...]] = {
    "nothing": (),
    "other": (SMALL, SMALL),
    "gaussian": (xp.Gaussian(epsilon="0.1", delta="1e-13", sensitivity=1),),
    "concentrated": (xp.DiscreteGaussian(rho="0.001", delta="1e-13", sensitivity=1),),
}


@pytest.mark.parametrize(
    "kinds", ["nothing", "other", "gaussian", "concentrated", "gaussian other", "concentrated gaussian other"]
)
@pytest.mark.parametrize("basic_alone", [False, True])
def test_what_was_set_aside_is_charged_on_every_meter(new_ledger: NewLedger, kinds: str, basic_alone: bool) -> None:
    ledger = new_ledger(epsilon=3, delta="1e-4", accounting="renyi")
    account = ledger.create_account("a", epsilon=3, delta="1e-12" if basic_alone else "1e-4")
    held = charge_of(account, *(plan for kind in kinds.split() for plan in PLANS[kind]))
    made = post(account, forfeits(account, held, "lost", "late"))
    amounts = together(entry.amounts or NO_AMOUNTS for entry in made)
    assert {entry.state for entry in made} == {"forfeited"}
    assert (amounts.cost, amounts.renyi, amounts.others) == (held.cost, held.renyi, held.others)
    assert (bool(amounts.unpriced), bool(amounts.foreign)) == (bool(held.unpriced), bool(held.foreign))
    assert amounts.foreign or amounts.normal == held.normal  # where something is foreign, that meter is closed
    assert post(account, forfeits(account, held, "lost", "late")) == made
    ledger.verify()


def test_what_was_set_aside_on_the_meter_of_gaussian_noise_alone_is_charged_there(new_ledger: NewLedger) -> None:
    """Found: in an account with the basic sum alone it was charged as something else, which nobody had room for; so it
    was refused, and cost nothing though it may have been sampled."""
    ledger = metered(new_ledger)
    account = ledger.create_account("small", epsilon="0.3", delta="1e-12")
    while ledger.meters[1].is_full is False:
        ledger.run(GAUSSIAN, on=0)
    held = charge_of(account, *PLANS["gaussian"])
    assert Imagined.of(account).after(held) is not None
    assert held == Amounts(held.epsilon, held.delta, held.renyi, held.normal)
    (entry,) = post(account, forfeits(account, held, "lost", "late"))
    assert (entry.state, entry.charged, entry.amounts) == ("forfeited", held.cost, held)
    assert account.spent == held.cost
    ledger.verify()
