"""What a ledger can be asked to run, and what it refuses, each before any charge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import expost as xp
from expost import Cost, Guarantee, Ledger
from expost.guarantee import Neighbours
from expost.ledger.asking import as_mechanism, as_plans
from expost.mechanism import PrivateData
from expost.question import Question, Terms
from toys import Fixed

COIN = xp.mechanisms.Coin(epsilon=1, sensitivity=1)


@dataclass(frozen=True)
class Size(Question[Any]):
    """A toy question: it remembers its terms in what it publishes."""

    def _mechanism(self, terms: Terms) -> Any:
        return Fixed(Guarantee({"out": terms.price}, delta=terms.delta), (terms.within, terms.noise, terms.meters))


class Rows(PrivateData):
    """Toy data of persons."""

    def __init__(self, relation: Neighbours = "add-remove", *, asked: bool = False) -> None:
        self._relation, self._asked = relation, asked

    @property
    def unit_name(self) -> str:
        return "person"

    @property
    def relation(self) -> Neighbours:
        return self._relation

    def check_as_data(self) -> None:
        if self._asked:
            raise xp.InvalidValue("ask it questions")


def ledger() -> Ledger:
    return Ledger(epsilon=5, delta="1e-3")


def untouched(found: Ledger) -> bool:
    return not list(found.entries()) and found.spent == found.reserved == Cost(0)


def test_a_question_is_run_on_its_terms() -> None:
    found = ledger()
    release = found.run(Size(), epsilon="0.25", delta="1e-6", noise="gaussian")
    assert release.output == (None, "gaussian", None)
    assert release.charged == Cost("0.25", delta="1e-6")
    (entry,) = found.entries()
    assert (entry.operation, entry.charged) == ("run", Cost("0.25", delta="1e-6"))


def test_a_question_is_told_the_meters_of_its_ledger() -> None:
    found = Ledger(epsilon=1, delta="1e-6", accounting="renyi")
    assert found.run(Size(), epsilon="0.25").output == (None, None, found._store.meters)


def test_a_question_has_its_own_table() -> None:
    found = ledger()
    with pytest.raises(xp.InvalidValue, match="on="):
        found.run(Size(), [1, 2, 3], epsilon=1)  # type: ignore[call-overload]
    assert untouched(found)


def test_a_question_has_no_price_of_its_own() -> None:
    found = ledger()
    for work in (found.run, found.quote):
        with pytest.raises(xp.InvalidValue, match="epsilon=… or within=…"):
            work(Size())
    assert untouched(found)


def test_a_question_is_not_opened() -> None:
    found = ledger()
    with pytest.raises(xp.InvalidValue, match=r"ledger\.run"):
        found.open(Size())  # type: ignore[arg-type]
    assert untouched(found)


@pytest.mark.parametrize(
    ("name", "value"), [("epsilon", 1), ("within", 5), ("delta", 1e-6), ("noise", "laplace")], ids=str
)
def test_a_mechanism_has_its_own_terms(name: str, value: Any) -> None:
    """Whoever gives it others is told which does not belong; nobody believes that they were taken."""
    found = ledger()
    with pytest.raises(xp.InvalidValue, match=f"leave {name}= out"):
        found.run(COIN, 1, **{name: value})
    with pytest.raises(xp.InvalidValue, match="are for questions"):
        found.quote(COIN, **{name: value})
    assert untouched(found)


NEITHER = {
    "ask it one": Rows(),
    "is a class": xp.mechanisms.Coin,
    r"reserved: ledger\.reserve": Guarantee.uniform(1),
    "got a str": "how many?",
    "got a NoneType": None,
}


@pytest.mark.parametrize("remedy", NEITHER)
def test_what_is_neither_a_question_nor_a_mechanism_is_told_what_it_is(remedy: str) -> None:
    found = ledger()
    with pytest.raises(xp.InvalidValue, match=remedy):
        found.run(NEITHER[remedy], 1)  # type: ignore[call-overload]
    assert untouched(found)


def test_words_about_what_was_given_show_no_values() -> None:
    """It may be data."""
    with pytest.raises(xp.InvalidValue) as refused:
        ledger().run([4711, 4712], 1)  # type: ignore[call-overload]
    assert "471" not in str(refused.value)


def test_data_that_is_asked_questions_is_not_run_on() -> None:
    found = ledger()
    with pytest.raises(xp.InvalidValue, match="ask it questions"):
        found.run(COIN, Rows(asked=True))  # type: ignore[misc]
    assert untouched(found)
    mechanism = Fixed(Guarantee.uniform(1), "said")
    assert found.run(mechanism, Rows()).output == "said"
    assert (found.unit, found.neighbours) == ("person", None)


def test_data_of_another_relation_than_the_mechanism_is_refused() -> None:
    found = Ledger(epsilon=5)
    mechanism = Fixed(Guarantee({"out": 1}, neighbours="substitute"), "said")
    with pytest.raises(xp.errors.NeighbourMismatch):
        found.run(mechanism, Rows("add-remove"))
    assert untouched(found)
    assert found.run(mechanism, Rows("substitute")).charged == Cost(1)


def test_a_plan_makes_each_question_into_its_mechanism() -> None:
    terms: Any = {"epsilon": "0.25", "within": None, "delta": 0, "noise": None}
    none: Any = {"epsilon": None, "within": None, "delta": 0, "noise": None}
    guarantee = Guarantee.uniform(1)
    question, *others = as_plans([Size(), COIN, guarantee], None, **terms)
    assert (question.guarantee.worst_case, others) == (Cost("0.25"), [COIN, guarantee])
    for one in (COIN, guarantee):
        assert as_plans(one, None, **none) == [one]
    assert [plan.guarantee.worst_case for plan in as_plans(Size(), None, **terms)] == [Cost("0.25")]
    assert as_plans(iter([COIN]), None, **none) == [COIN]
    assert as_mechanism(COIN, None, None, **none) is COIN
    for no_plan in (5, None):
        with pytest.raises(xp.InvalidValue, match=f"got a {type(no_plan).__name__}"):
            as_plans(no_plan, None, **none)
