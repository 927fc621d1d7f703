"""Journals: what a job published is posted to its ledger all at once, exactly once, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expost import Cost, Guarantee, Ledger
from expost.accounting.amounts import NO_AMOUNTS, Amounts, together
from expost.errors import BudgetExceeded, KeyConflict, LedgerUnavailable, ReservationClosed
from expost.ledger import codec
from expost.ledger.journal import Posting, forfeits, new_journal, post, postings_text
from expost.ledger.operations import Forfeit, Void
from expost.mechanisms import Laplace
from toys import Fixed


def posted(account: Ledger, key: str, epsilon: float = 0.25, on: int = 7) -> list[Posting]:
    journal = new_journal(account, account._store.balances(account._path))
    journal.run(Laplace(epsilon=epsilon, sensitivity=1), on=on, key=key)
    return [Posting.from_json(each) for each in json.loads(postings_text(journal))]


def books(tmp_path: Path) -> Ledger:
    url = f"sqlite:///{tmp_path}/books.db"
    return Ledger.create(url, "l", 1, 1e-6, neighbours="substitute", unit="row").create_account("a", 1, 1e-6)


def test_what_another_published_under_a_key_is_not_published_again(tmp_path: Path) -> None:
    account = books(tmp_path)
    one, other = posted(account, "k", 0.001), posted(account, "k")
    same = posted(account, "k", 0.001, on=10**6)  # the same request, with other noise
    post(account, one)
    for wrong in (other, same):
        with pytest.raises(KeyConflict):
            post(account, wrong)
    assert account.spent == Cost("0.001")
    assert [entry.state for entry in account.entries()] == ["settled"]


def test_all_entries_of_a_job_are_made_or_none(tmp_path: Path) -> None:
    account = books(tmp_path)
    two = [*posted(account, "a", 0.4), *posted(account, "b", 0.4)]
    account.run(Laplace(epsilon=0.4, sensitivity=1), on=1)  # somebody spends without the service
    with pytest.raises(BudgetExceeded):
        post(account, two)
    assert account.spent == Cost("0.4")
    assert account.reserved == Cost(0)
    account.verify()


@pytest.fixture
def counted(new_url: Callable[[], str]) -> tuple[Ledger, list[int]]:
    """An account in a database, and how many steps each of its transactions has."""
    account = Ledger.create(new_url(), "l", 100, 1e-6, neighbours="substitute", unit="row").create_account(
        "a", 100, 1e-6
    )
    store: Any = account._store
    apply, steps = store._engine.apply, list[int]()

    def counting(ledger: int, given: list[Any]) -> Any:
        steps.append(len(given))
        return apply(ledger, given)

    store._engine.apply = counting
    return account, steps


def several(account: Ledger, count: int) -> list[Posting]:
    """What a job of many questions posts, some of them lost."""
    journal = new_journal(account, account._store.balances(account._path))
    for number in range(count):
        journal.run(Laplace(epsilon=0.1, sensitivity=1), on=7, key=f"k{number}")
    made = [Posting.from_json(each) for each in json.loads(postings_text(journal))]
    return [each._replace(part=None, output=None) if place % 50 == 7 else each for place, each in enumerate(made)]


def test_entries_of_a_job_are_made_in_few_transactions(counted: tuple[Ledger, list[int]]) -> None:
    """Nobody is accepted meanwhile, and each commit waits for the disk: before, each entry had three of its own."""
    account, steps = counted
    postings = several(account, 200)
    made = post(account, postings)
    assert len(steps) <= 8, steps
    assert [(entry.key, entry.state) for entry in made] == [
        (posting.request.key, "forfeited" if posting.part is None else "settled") for posting in postings
    ]
    assert [entry.id for entry in made] == list(range(1, 201))
    assert account.output("k0") == codec.decode(postings[0].output or "").output
    assert post(account, postings) == made
    assert (account.spent, account.reserved) == (Cost(20), Cost(0))
    account.verify()


def test_of_many_entries_none_is_made_if_one_cannot_be(counted: tuple[Ledger, list[int]]) -> None:
    account, steps = counted
    postings = several(account, 150)
    account.run(Laplace(epsilon=90, sensitivity=1), on=1)  # somebody spends without the service
    with pytest.raises(BudgetExceeded):
        post(account, postings)
    assert len(steps) <= 10, steps
    assert (account.spent, account.reserved) == (Cost(90), Cost(0))
    account.verify()


def test_a_job_is_posted_again_after_a_database_was_away(
    counted: tuple[Ledger, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once between reserving and settling: each entry is made once, with its own output."""
    account, _ = counted
    postings = several(account, 20)
    with monkeypatch.context() as away:
        away.setattr(type(account._store), "end_all", lambda *arguments: (_ for _ in ()).throw(LedgerUnavailable("")))
        with pytest.raises(LedgerUnavailable):
            post(account, postings)
    assert account.reserved == Cost(2)
    made = post(account, postings)
    assert [entry.id for entry in made] == list(range(1, 21))
    assert (account.spent, account.reserved) == (Cost(2), Cost(0))
    account.verify()


@pytest.mark.parametrize("accounting", ["basic", "renyi"])
def test_a_posted_journal_is_what_a_run_would_have_written(accounting: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = Ledger.create(url, "l", 1, 1e-6, neighbours="substitute", unit="row", accounting=accounting)
    account = ledger.create_account("a", 1, 1e-6)
    journal = new_journal(account, account._store.balances(account._path))
    made = journal.run(Laplace(epsilon=0.25, sensitivity=1), on=7, key="k")
    assert account.spent == Cost(0)
    postings = [Posting.from_json(each) for each in json.loads(postings_text(journal))]
    (entry,) = post(account, postings)
    assert (entry.charged, entry.part, account.output("k")) == (made.charged, made.part, made.value)
    assert post(account, postings) == [entry]  # not twice
    (lost,) = post(account, forfeits(account, made.entry.amounts or NO_AMOUNTS, "lost", "late"))
    assert (lost.state, lost.charged) == ("forfeited", Cost(0.25))
    ledger.verify()


# ---- the books that it is posted to


def test_books_in_memory_take_a_journal_too() -> None:
    account = Ledger(epsilon=1, delta=1e-6, neighbours="substitute")
    two = [*posted(account, "a", 0.4), *posted(account, "b", 0.4)]
    assert [entry.state for entry in post(account, two)] == ["settled"] * 2
    assert post(account, two) == list(account.entries())  # not twice
    with pytest.raises(BudgetExceeded):
        post(account, [*posted_anyway("c", 0.1), *posted_anyway("d", 0.4)])
    assert (account.spent, account.reserved) == (Cost("0.8"), Cost(0))


def posted_anyway(key: str, epsilon: float) -> list[Posting]:
    """What a journal has that was begun when there was more left."""
    return posted(Ledger(epsilon=1, delta=1e-6, neighbours="substitute"), key, epsilon)


def test_a_job_of_which_nothing_fits_reserves_nothing(tmp_path: Path) -> None:
    account = books(tmp_path)
    one = posted(account, "a", 0.7)
    account.run(Laplace(epsilon=0.4, sensitivity=1), on=1)  # somebody spends without the service
    with pytest.raises(BudgetExceeded):
        post(account, one)
    assert [entry.state for entry in account.entries()] == ["settled"]


def test_what_failed_after_it_had_begun_is_posted_at_its_worst_case(tmp_path: Path) -> None:
    def broken() -> None:
        raise RuntimeError("the disk is gone")

    account = books(tmp_path)
    journal = new_journal(account, account._store.balances(account._path))
    with pytest.raises(RuntimeError):
        journal.run(Fixed(Guarantee.uniform("0.25"), None), on=broken, key="k")
    (entry,) = post(account, [Posting.from_json(each) for each in json.loads(postings_text(journal))])
    assert (entry.state, entry.charged) == ("forfeited", Cost("0.25"))
    account.verify()


def test_entries_that_have_ended_do_not_end_again(new_url: Callable[[], str]) -> None:
    """Those that are open do: whoever is told of the error knows that the others were tried."""
    account = Ledger.create(new_url(), "l", 1, 1e-6, neighbours="substitute", unit="row")
    over, open_ = (posting.request for key in "ab" for posting in posted(account, key, 0.25))
    made: Any = account._store.reserve_all([over, open_], begin=False)
    account._store.end_all([Forfeit(made[0].id)])
    with pytest.raises(ReservationClosed):
        account._store.end_all([Void(made[0].id), Void(made[1].id)])
    assert [entry.state for entry in account.entries()] == ["forfeited", "voided"]
    account.verify()


def test_what_is_lost_of_gaussian_noise_is_charged_as_such(tmp_path: Path) -> None:
    """On a ledger that counts Rényi prices: noise without an ε of its own, and what has one."""
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = Ledger.create(url, "people", 1, 1e-6, neighbours="substitute", unit="row", accounting="renyi")
    noise = Amounts(renyi=10**9, normal=2 * 10**8, unpriced=1)
    for cost, states in ((Cost(0), ["forfeited"]), (Cost("0.1"), ["forfeited"] * 2)):
        lost = post(ledger, forfeits(ledger, Amounts.of(cost).plus(noise), "lost", f"late {cost}"))
        assert [entry.state for entry in lost] == states
        counted = together(entry.amounts or NO_AMOUNTS for entry in lost)
        assert (counted.renyi, counted.cost) == (noise.renyi, cost)
    ledger.verify()
