"""One verb for every question: ledger.run(question, epsilon=…), by a public rule; and words for first mistakes."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import expost as xp
from expost.data import BalancedCounts, Noisy, NoisyUntil
from expost.errors import InvalidValue, NeighbourMismatch
from expost.question import Question
from expost.questions import NoisyStatistics, OnColumns

pytestmark = pytest.mark.counted
FRAME = pd.DataFrame(
    {"p": [i // 4 for i in range(400)], "cost": [float(i % 40) for i in range(400)], "ward": ["A", "B"] * 200}
)
BOUNDS: dict[str, Any] = {"bounds": (0, 40)}
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "count": lambda t: t.count(),
    "sum": lambda t: t.sum("cost", **BOUNDS),
    "mean": lambda t: t.mean("cost", **BOUNDS),
    "mean without bounds": lambda t: t.mean("cost"),
    "variance": lambda t: t.variance("cost", **BOUNDS),
    "median": lambda t: t.median("cost", **BOUNDS),
    "winsorized": lambda t: t.winsorized_mean("cost", trim=0.1, **BOUNDS),
    "lost": lambda t: t.lost("cost", **BOUNDS),
    "histogram": lambda t: t.histogram("ward", keys=["A", "B"]),
    "above": lambda t: t.histogram("ward", keys=["A", "B"]).above(10, at_most=1),
    "discover": lambda t: t.discover("ward"),
    "top": lambda t: t.discover("ward").top(2),
    "by group": lambda t: t.by("ward", keys=["A", "B"]).mean("cost", **BOUNDS),
    "median by group": lambda t: t.by("ward", keys=["A", "B"]).median("cost", **BOUNDS),
    "each group": lambda t: t.by("ward", keys=["A", "B"]).ask(lambda rows: rows.count()),
    "found groups": lambda t: t.by("ward").count(),
}
TAKE_DELTA = {"discover", "top", "found groups"}
GAUSSIAN = {"mean", "variance", "by group"}
"""What is made with Gaussian noise, too, for a δ."""


@pytest.fixture(scope="module")
def visits() -> xp.PrivateTable:
    return xp.read(FRAME, unit=xp.Unit("p", rows=4), neighbours="add-remove", key=1)


@pytest.fixture(scope="module")
def rows() -> xp.PrivateTable:
    return xp.read(FRAME, unit="row", neighbours="substitute", key=1)


def ledger(**said: Any) -> xp.Ledger:
    return xp.Ledger(**{"epsilon": 50, "delta": 1e-6, "noise": xp.SeededNoise(3), **said})


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_is_run_by_the_same_verb(visits: xp.PrivateTable, name: str) -> None:
    question = QUESTIONS[name](visits)
    terms: dict[str, Any] = {"epsilon": 2} | ({"delta": 1e-7} if name in TAKE_DELTA else {})
    mechanism = question.mechanism(**terms)
    assert isinstance(question, Question)
    assert ledger().quote(question, **terms).worst == mechanism.guarantee.worst_case
    assert ledger().quote([question, mechanism], **terms).worst == 2 * mechanism.guarantee.worst_case
    asked, run = ledger().run(question, **terms), ledger().run(mechanism)
    assert asked.mechanism == mechanism
    assert str(asked) == str(run)  # the same noise, and the same price


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_without_an_amount_says_what_is_missing(visits: xp.PrivateTable, name: str) -> None:
    """It said "run and open take a mechanism; reserve takes guarantees; got a Count"."""
    book, question = ledger(), QUESTIONS[name](visits)
    for ask in (book.run, book.quote):
        with pytest.raises(
            InvalidValue, match="say what it may cost or how accurate it must be: epsilon=… or within=…"
        ):
            ask(question)
    if name in TAKE_DELTA:
        with pytest.raises(InvalidValue, match="needs a δ: pass delta="):
            book.run(question, epsilon=1)
    elif name in GAUSSIAN:
        with pytest.raises(InvalidValue, match="pass epsilon=, not within="):
            book.run(question, within=3)
    elif name not in {"count", "sum", "histogram"}:
        for wrong, rule in ({"delta": 1e-7}, "δ"), ({"noise": "gaussian"}, "noise"):
            with pytest.raises(InvalidValue, match=f"leave {'delta' if rule == 'δ' else 'noise'} out"):
                book.run(question, epsilon=1, **wrong)
        with pytest.raises(InvalidValue, match="pass epsilon=, not within="):
            book.run(question, within=3)
    assert list(book.entries()) == []


def test_the_rule_takes_the_most_accurate_mechanism_without_a_delta(
    visits: xp.PrivateTable, rows: xp.PrivateTable
) -> None:
    cells = rows.histogram("ward", keys=["A", "B"])
    assert isinstance(cells.mechanism(epsilon=1), BalancedCounts)
    assert isinstance(cells.mechanism(epsilon=1, noise="laplace"), Noisy)
    assert isinstance(visits.mean("cost", **BOUNDS).mechanism(epsilon=1), NoisyStatistics)
    assert isinstance(rows.mean("cost", missing=0, **BOUNDS).mechanism(epsilon=1), NoisyStatistics)
    variance = rows.variance("cost", missing=0, **BOUNDS)
    assert isinstance(variance.mechanism(epsilon=1), OnColumns)
    assert isinstance(variance.mechanism(epsilon=1, noise="laplace"), NoisyStatistics)


def test_delta_is_spent_only_where_gaussian_noise_is_better(visits: xp.PrivateTable) -> None:
    cells = visits.histogram("cost", bins=40, bounds=(0, 40), of="units")
    assert ledger().run(visits.count(), epsilon=1, delta=1e-9).reserved == xp.Cost(1)
    many = xp.read(FRAME, unit=xp.Unit("p", rows=100, groups=100), neighbours="add-remove", key=1)
    wide = many.histogram("cost", bins=400, bounds=(0, 400), of="units")
    assert isinstance(wide.mechanism(epsilon=1, delta=1e-9).noise, xp.Gaussian)
    assert wide.mechanism(epsilon=1, delta=1e-9).guarantee.worst_case == xp.Cost(1, delta=1e-9)
    assert isinstance(cells.mechanism(epsilon=1).noise, xp.Laplace)
    with pytest.raises(InvalidValue, match="Laplace noise takes no δ"):
        cells.mechanism(epsilon=1, delta=1e-9, noise="laplace")
    with pytest.raises(InvalidValue, match="takes a δ where the basic sum is the only meter"):
        ledger().run(cells, epsilon=1, noise="gaussian")


def test_all_that_remains_is_its_epsilon_and_no_delta(visits: xp.PrivateTable) -> None:
    book = ledger(epsilon=1)
    book.run(visits.count(), epsilon="0.3")
    assert book.run(visits.count(), epsilon=book.remaining).reserved == xp.Cost("0.7")
    assert book.remaining == xp.Cost(0, delta=1e-6)


def test_an_accuracy_buys_the_least_epsilon(visits: xp.PrivateTable) -> None:
    for question in (visits.count(), visits.sum("cost", **BOUNDS), visits.histogram("ward", keys=["A", "B"])):
        made = question.mechanism(within=50)
        assert made.error_bound("0.95") <= 50 < made.error_bound("0.95") * Fraction(11, 10)
        assert ledger().run(question, within=50, epsilon=40).reserved == made.guarantee.worst_case
        with pytest.raises(InvalidValue, match=r"more than the ε 0\.001 that it may use"):
            ledger().run(question, within=50, epsilon=0.001)
    release = ledger().run(visits.count(), within="20 %", epsilon=20)
    assert isinstance(release.mechanism, NoisyUntil)
    assert (release.reserved, release.charged < xp.Cost(5)) == (xp.Cost(20), True)
    with pytest.raises(InvalidValue, match="pass epsilon=, too, the most that may be reserved"):
        ledger().run(visits.count(), within="2 %")
    for wrong in ("2", "200 %", "much"):
        with pytest.raises(InvalidValue, match="a number, or a text such as '2 %'"):
            ledger().run(visits.count(), within=wrong, epsilon=1)
    with pytest.raises(InvalidValue, match="an accuracy is reached with Laplace noise"):
        ledger().run(visits.count(), within=50, noise="gaussian")


def test_gaussian_noise_in_a_ledger_with_renyi_prices_takes_no_delta(visits: xp.PrivateTable) -> None:
    book = ledger(epsilon=1, accounting="renyi")
    first = book.run(visits.count(), epsilon="0.1")
    assert isinstance(first.mechanism.noise, xp.Laplace)  # type: ignore[attr-defined]
    whole = book.remaining
    assert whole.epsilon >= 0.9  # the basic sum holds: Gaussian noise, which has no ε, would have ended it
    found = book.run(visits.count(), epsilon="0.1", noise="gaussian")
    assert (found.reserved, book.remaining.delta) == (xp.Cost(0), whole.delta)
    assert found.entry.amounts is not None
    assert first.entry.amounts is not None
    assert first.entry.amounts.renyi <= found.entry.amounts.renyi <= first.entry.amounts.renyi * 1.2
    quote = ledger(epsilon=1, accounting="renyi").quote(visits.count(), epsilon="0.1", noise="gaussian")
    assert quote.worst_amounts == found.entry.amounts


def test_a_key_returns_what_was_published_under_it(visits: xp.PrivateTable) -> None:
    book = ledger()
    first = book.run(visits.count(), epsilon=1, key="k")
    assert book.run(visits.count(), epsilon=1, key="k").output == first.output
    assert book.spent == xp.Cost(1)


def test_statistics_of_groups_know_their_groups(visits: xp.PrivateTable) -> None:
    wards = visits.by("ward", keys=["A", "B"])
    alone = ledger().run(wards.mean("cost", **BOUNDS), epsilon=3)
    assert alone.frame.names == ("what", "ward", "value", "low", "high", "error")
    assert {*alone.frame["what"]} == {"mean of cost"}
    assert [row[0] for row in alone.output.rows] == ["A", "B"]
    several = wards.agg(n=wards.count(), cost=wards.mean("cost", **BOUNDS), total=True)
    release = ledger().run(several, epsilon=3)
    assert isinstance(release.mechanism, NoisyStatistics)
    assert release.reserved == xp.Cost(3)
    assert release.output.names == ("ward", "n", "cost #1", "cost #2")
    assert (len(release.output.rows), len(release.frame.rows)) == (2, 6)
    named = visits.derive(**{"mean of cost": "1"}).by('"mean of cost"', keys=[1])
    assert {*ledger().run(named.mean("cost", **BOUNDS), epsilon=3).frame["what"]} == {"mean of cost_"}
    with pytest.raises(InvalidValue, match="is a NumericStatistic: make it from the groups"):
        wards.agg(n=visits.count())  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="total"):  # it made a row for the total of a statistic of this name
        wards.agg(total=wards.count())  # type: ignore[arg-type]


def test_a_mechanism_has_its_own_epsilon() -> None:
    book, mechanism = ledger(), xp.Laplace(epsilon=1, sensitivity=1)
    for said in ({"epsilon": 1}, {"within": 3}, {"delta": 1e-9}, {"noise": "laplace"}):
        with pytest.raises(InvalidValue, match=f"has its own ε: leave {next(iter(said))}= out"):
            book.run(mechanism, on=3, **said)  # type: ignore[call-overload]
    with pytest.raises(InvalidValue, match="have their own ε"):
        book.quote([mechanism], epsilon=1)
    assert book.quote(mechanism).worst == xp.Cost(1)
    assert list(book.entries()) == []


LAPLACE: Any = xp.Laplace(epsilon=1, sensitivity=1)
MISTAKES: dict[str, tuple[Callable[[xp.Ledger, xp.PrivateTable], Any], str]] = {
    "a table": (lambda book, t: book.run(t, epsilon=1), "is data, not a question about it"),  # type: ignore[call-overload]
    "groups": (lambda book, t: book.run(t.by("ward", keys=["A"])), "got a Groups: ask a table or its groups"),  # type: ignore[call-overload]
    "a class": (lambda book, t: book.run(xp.Laplace), "is a class: give it its parameters"),  # type: ignore[call-overload]
    "a guarantee": (lambda book, t: book.run(xp.Guarantee.uniform(1)), "a guarantee is reserved"),  # type: ignore[call-overload]
    "opened": (lambda book, t: book.open(t.count()), "use ledger.run"),  # type: ignore[type-var,arg-type]
    "data for a question": (lambda book, t: book.run(t.count(), on=t, epsilon=1), "run it without on="),  # type: ignore[call-overload]
    "a table as data": (lambda book, t: book.run(LAPLACE, on=t), "on= is a private table"),
    "no data": (lambda book, t: book.run(LAPLACE), "on= is missing"),
    "a frame": (lambda book, t: book.run(LAPLACE, on=FRAME), "one of its columns"),
    "a file": (lambda book, t: book.run(LAPLACE, on="a.csv"), "xp.read"),
    "wrong noise": (lambda book, t: book.run(t.count(), epsilon=1, noise="normal"), "'laplace' or 'gaussian'"),  # type: ignore[call-overload]
    "a number": (lambda book, t: book.quote(3), "a question, a mechanism or a guarantee"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", MISTAKES)
def test_first_mistakes_get_words_that_help_and_cost_nothing(visits: xp.PrivateTable, name: str) -> None:
    book = ledger()
    mistake, words = MISTAKES[name]
    with pytest.raises(InvalidValue, match=words):
        mistake(book, visits)
    assert list(book.entries()) == []


def test_a_mean_of_an_array_says_what_to_ask_where_the_number_of_records_is_private(visits: xp.PrivateTable) -> None:
    """It said to work out sensitivities anew, and Mean has no neighbours to declare."""
    book = ledger()
    book.run(visits.count(), epsilon=1)
    with pytest.raises(NeighbourMismatch, match=r"as in table\.mean"):
        book.run(xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(0, 1)), on=np.ones(5))
