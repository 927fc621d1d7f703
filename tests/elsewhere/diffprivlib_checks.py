"""diffprivlib's functions on our ledgers, in their own environment: ``make test`` builds it and runs this."""

import copy
import os
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import diffprivlib as dp
import numpy as np
import pytest
from diffprivlib.utils import BudgetError
from sklearn.base import clone

import expost as xp
from elsewhere.documented import example
from expost.adapters import LedgerAccountant

pytestmark = pytest.mark.filterwarnings("ignore")
DATA = np.linspace(0, 1, 500)


def mean(accountant: Any, epsilon: float = 0.1) -> float:
    return float(dp.tools.mean(DATA, epsilon=epsilon, bounds=(0, 1), accountant=accountant))


@pytest.mark.parametrize("durable", [False, True])
def test_eight_threads_on_a_ledger_for_four(durable: bool, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    usual: dict[str, Any] = {"neighbours": "substitute", "unit": "person"}
    ledger = xp.Ledger.create(url, "people", epsilon="0.4", **usual) if durable else xp.Ledger(epsilon="0.4")
    accountant, start = LedgerAccountant(ledger, neighbours="substitute"), Barrier(8)
    answers: list[float] = []
    refused: list[Exception] = []

    def ask() -> None:
        start.wait()
        try:
            answers.append(mean(accountant))
        except BudgetError as error:
            refused.append(error)

    threads = [Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answers), len(refused)) == (4, 4)
    assert ledger.spent == ledger.limit
    assert ledger.reserved == xp.Cost(0)
    assert isinstance(refused[0].__cause__, xp.BudgetExceeded)


def test_their_own_accountant_lets_threads_pass() -> None:
    """What ours prevents: between check and spend there is nothing that holds a budget."""
    theirs = dp.BudgetAccountant(epsilon=1, delta=0)
    assert theirs.check(1, 0)
    assert theirs.check(1, 0)


def test_check_reserves_once_and_spend_settles() -> None:
    ledger = xp.Ledger(epsilon=1)
    accountant = LedgerAccountant(ledger)
    accountant.check(0.5, 0)
    accountant.check(0.5, 0)
    assert ledger.reserved == xp.Cost(0.5)
    accountant.spend(0.5, 0)
    assert (ledger.spent, ledger.reserved) == (xp.Cost(0.5), xp.Cost(0))
    accountant.spend(0.25, 0)  # without a check before
    assert ledger.spent == xp.Cost(0.75)
    assert accountant.spent_budget == [(0.5, 0.0), (0.25, 0.0)]
    assert len(accountant) == 2
    with pytest.raises(BudgetError, match="asked for"):
        accountant.spend(0.5, 0)


def failing(accountant: Any) -> None:
    accountant.check(0.25, 0)
    raise ZeroDivisionError


def test_what_fails_is_charged_when_its_thread_asks_again() -> None:
    ledger = xp.Ledger(epsilon=1)
    accountant = LedgerAccountant(ledger)
    with pytest.raises(ZeroDivisionError):
        failing(accountant)
    assert ledger.reserved == xp.Cost(0.25)
    mean(accountant, 0.25)
    assert ledger.spent == xp.Cost(0.5)
    assert [entry.state for entry in ledger.entries()] == ["forfeited", "settled"]


def test_what_fails_is_charged_at_the_end_of_the_block() -> None:
    ledger = xp.Ledger(epsilon=1)
    with LedgerAccountant(ledger) as accountant:
        thread = Thread(target=lambda: accountant.check(0.25, 0))
        thread.start()
        thread.join()
        assert dp.tools.mean(DATA, epsilon=0.5, bounds=(0, 1)) is not None  # the default accountant is ours
    assert [entry.state for entry in ledger.entries()] == ["forfeited", "settled"]
    assert ledger.spent == xp.Cost(0.75)


def test_models_pay_once_and_clones_share_the_ledger() -> None:
    ledger = xp.Ledger(epsilon=3)
    accountant = LedgerAccountant(ledger)
    model = dp.models.LogisticRegression(epsilon=1, data_norm=2, accountant=accountant)
    model.fit(np.random.default_rng(0).random((60, 2)), np.arange(60) % 2)
    assert ledger.spent == xp.Cost(1)
    assert clone(model).accountant is accountant is copy.copy(accountant)
    assert accountant.total() == (1.0, 0)
    assert accountant.remaining(2) == (1.0, 0)
    assert (accountant.epsilon, accountant.delta, accountant.slack) == (3, 0, 0)


def test_ten_tenths_are_one() -> None:
    ledger = xp.Ledger(epsilon=1)
    accountant = LedgerAccountant(ledger)
    for _ in range(10):
        mean(accountant)
    assert ledger.remaining == xp.Cost(0)


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ((float("inf"), 0), "guarantees nothing"),
        ((float("nan"), 0), "guarantees nothing"),
        ((1, 1), "guarantees nothing"),
        ((-1, 0), "not negative"),
        (("1", 0), "is a number"),
    ],
)
def test_public_mistakes_are_free(amount: tuple[Any, Any], said: str) -> None:
    ledger = xp.Ledger(epsilon=1)
    for method in (LedgerAccountant(ledger).check, LedgerAccountant(ledger).spend):
        with pytest.raises(xp.InvalidValue, match=said):
            method(*amount)
    assert list(ledger.entries()) == []


def test_settings_that_a_ledger_does_not_have() -> None:
    accountant = LedgerAccountant(xp.Ledger(epsilon=1))
    with pytest.raises(xp.InvalidValue, match="no slack"):
        accountant.slack = 0.1
    with pytest.raises(xp.InvalidValue, match="its own"):
        accountant.total(spent_budget=[(1, 0)])
    with pytest.raises(xp.InvalidValue, match="a ledger is needed"):
        LedgerAccountant(1)


def test_a_fork_between_check_and_spend_pays_for_itself(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    ledger = xp.Ledger.create(url, "people", epsilon=1, neighbours="substitute", unit="person")
    accountant = LedgerAccountant(ledger)
    accountant.check(0.25, 0)
    child = os.fork()
    if not child:
        os._exit(0 if accountant._find(xp.Cost(0.25)) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    accountant.spend(0.25, 0)
    assert ledger.spent == xp.Cost(0.25)


def test_the_example_of_the_docs() -> None:
    exec(compile(example("diffprivlib"), "docs/adapters.md", "exec"), {})
