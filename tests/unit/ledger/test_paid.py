"""What decides whether an answer from the books will do, and what is remembered of questions without an identity."""

from __future__ import annotations

import dataclasses
import gc
from decimal import Decimal
from fractions import Fraction
from threading import Event, Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.errors import AlreadyReserved
from expost.fingerprint import PublicIdentity
from expost.ledger.kept import Kept
from expost.ledger.paid import MOST_REMEMBERED, OnTerms, _Memory
from expost.question import Terms, is_as_accurate
from expost.questions import Count, Sum

FRAME = pd.DataFrame({"p": [i // 4 for i in range(400)], "cost": [float(i % 40) for i in range(400)]})


def read(**options: Any) -> xp.PrivateTable:
    given = {"unit": xp.Unit("p", rows=4), "neighbours": "add-remove", "name": "visits", "version": "1"} | options
    return xp.read(FRAME, **given)


def suits(question: Any, then: dict[str, Any], now: dict[str, Any], output: Any = 0) -> bool:
    """Whether an answer on some terms will do for others."""
    said = [
        Terms.of(each.get("epsilon"), each.get("within"), each.get("delta", 0), each.get("noise"), None)
        for each in (then, now)
    ]
    made = [question._mechanism(each) for each in said]
    return is_as_accurate(said[0], made[0], output, said[1], made[1])


EPSILONS = st.sampled_from([Fraction(n, 8) for n in range(1, 33)])


@given(EPSILONS, EPSILONS)
def test_of_one_kind_of_noise_more_epsilon_is_more_accurate(then: Fraction, now: Fraction) -> None:
    table = read()
    for question in (table.count(), table.mean("cost", bounds=(0, 40)), table.median("cost", bounds=(0, 40))):
        assert suits(question, {"epsilon": then}, {"epsilon": now}) or then < now
        assert not suits(question, {"epsilon": then}, {"epsilon": 9 * now}) or 9 * now <= then


@given(EPSILONS, st.integers(1, 200))
def test_a_distance_is_reached_by_what_stays_within_it(then: Fraction, within: int) -> None:
    count = read().count()
    bound = count.mechanism(epsilon=then).error_bound("0.95")
    assert suits(count, {"epsilon": then}, {"within": within}) == (bound <= within)


def test_what_is_not_comparable_is_not_compared() -> None:
    count, found = read().count(), read().discover("p")
    assert not suits(count, {"epsilon": 9}, {"epsilon": 1, "delta": 1e-6, "noise": "gaussian"})
    assert not suits(count, {"epsilon": 9}, {"within": "2 %", "epsilon": 1})
    assert not suits(count, {"within": "2 %", "epsilon": 9}, {"epsilon": 1})
    assert suits(found, {"epsilon": 1, "delta": 1e-6}, {"epsilon": 1, "delta": 1e-7})
    assert not suits(found, {"epsilon": 2, "delta": 1e-7}, {"epsilon": 1, "delta": 1e-6})
    assert not suits(found, {"epsilon": 1, "delta": 1e-6}, {"epsilon": 2, "delta": 1e-6})
    assert not suits(found, {"epsilon": 1, "delta": 1e-6}, {"epsilon": 1, "delta": 1e-6}, output=xp.WITHHELD)


def test_of_several_statistics_other_noise_is_not_more_accurate() -> None:
    """Gaussian noise for (1, 10⁻³) makes this count more accurate than Laplace noise, and this sum less."""
    groups = read().by("p", keys=range(50))
    question = groups.agg(people=Count("units"), cost=Sum("cost", bounds=(0, 50)))
    then, now = {"epsilon": 1, "delta": 1e-3}, {"epsilon": 1, "delta": 1e-12}
    made = [question.mechanism(**each) for each in (then, now)]
    assert [each.made_with for each in made] == ["gaussian", "laplace"]
    far, near = ([law.reach(Fraction(1, 20)) for (law,) in each.laws.values()] for each in made)
    assert far[0] < near[0]
    assert far[1] > near[1]
    assert not suits(question, then, now)
    assert suits(question, then, now | {"noise": "gaussian"}) is False
    assert suits(question, then | {"noise": "gaussian"}, now | {"noise": "gaussian"})


def test_a_share_that_was_not_reached_is_tried_again_with_more() -> None:
    count = read().count()
    met, missed = ({"met": each} for each in (True, False))
    outputs = [type("Output", (), each)() for each in (met, missed)]
    ten, twenty = ({"within": f"{each} %", "epsilon": 1} for each in (10, 20))
    for output in outputs:
        assert suits(count, ten, twenty, output)
        assert not suits(count, twenty, ten, output)
    more = {"within": "20 %", "epsilon": 2}
    assert suits(count, ten, more, outputs[0])
    assert not suits(count, ten, more, outputs[1])


@pytest.mark.parametrize("epsilon", ["0.5", 0.5, Decimal("0.5"), Fraction(1, 2), np.float64(0.5)])
def test_every_way_to_write_a_number_is_kept(epsilon: Any, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    ledger = xp.Ledger.create(url, "ledger", epsilon=9, neighbours="add-remove", unit="p")
    first = ledger.run(read().count(), epsilon=epsilon)
    assert ledger.run(read().count(), epsilon="0.25") == first
    assert ledger.run(read().count(), epsilon=epsilon) == first


def test_what_is_being_sampled_is_not_bought_a_second_time() -> None:
    ledger, going, may_go = xp.Ledger(epsilon=9), Event(), Event()
    slow, count = read(), read().count()
    fetch = slow.engine.fetch

    def waits(query: str) -> Any:
        going.set()
        may_go.wait(60)
        return fetch(query)

    slow.engine.fetch = waits  # type: ignore[method-assign]
    thread = Thread(target=lambda: ledger.run(slow.count(), epsilon=1))
    thread.start()
    going.wait(60)
    with pytest.raises(AlreadyReserved, match="it is still running") as caught:
        ledger.run(count, epsilon=1)
    assert caught.value.entry.id == 1
    assert ledger.quote(count, epsilon=1).known == ()
    assert ledger.run(count, epsilon=2).entry.id == 2  # which is not what is under way
    assert ledger.run(count, epsilon=1).entry.id == 2  # and will do
    may_go.set()
    thread.join()
    assert ledger.run(count, epsilon=1).entry.id == 2
    assert ledger.spent == xp.Cost(3)


def test_an_answer_without_its_terms_is_for_its_own_terms_only() -> None:
    ledger, count = xp.Ledger(epsilon=9), read().count()
    first = ledger.run(count, epsilon=1)
    for terms in (None, {**Terms(epsilon=1).said, "noise": "gaussian"}, Terms(epsilon="0.75").said):
        ledger._store._outputs[1] = Kept(first.output, None, terms)  # type: ignore[attr-defined]
        assert ledger.quote(count, epsilon=1).known == (1,)
        assert ledger.quote(count, epsilon="0.5").known == ()


def test_many_answers_are_found_without_reading_them_all() -> None:
    ledger, count = xp.Ledger(epsilon=99), read().count()
    for _ in range(70):
        last = ledger.run(count, epsilon="0.125", again=True)
    asked = OnTerms(count, Terms(epsilon="0.125"), count.mechanism(epsilon="0.125"), ("ledger",))
    looked: list[Any] = []
    find = ledger._store.find
    ledger._store.find = lambda id_or_key: (looked.append(id_or_key), find(id_or_key))[1]  # type: ignore[method-assign]
    assert asked.bought(ledger._store) == 70
    assert len(looked) < 20
    assert ledger.run(count, epsilon="0.125") == last


class Rows:
    """What has rows; nothing can hold it weakly if it has slots."""


class Slotted:
    __slots__ = ()


def test_memory_is_of_the_same_rows_and_keeps_none() -> None:
    memory, rows = _Memory(), Rows()
    made = PublicIdentity("digest", False, (rows,))
    assert not memory.is_news("ledger", ("a",), made)
    assert not memory.is_news("other", ("a",), made)
    assert not memory.is_news("ledger", ("b",), made)
    assert not memory.is_news("ledger", ("a",), made._replace(rows=(Rows(),)))
    assert not memory.is_news("ledger", ("a",), made)
    assert memory.is_news("ledger", ("a",), made)
    assert not memory.is_news("ledger", ("a",), made)  # it was said
    held = PublicIdentity("another", False, (Slotted(),))
    assert not memory.is_news("ledger", ("a",), held)
    assert not memory.is_news("ledger", ("a",), held)
    del rows, made
    gc.collect()
    assert [way() for each in memory._asked.values() for way in each.rows if isinstance(way(), Rows)] == []


def test_memory_is_short() -> None:
    memory, made = _Memory(), PublicIdentity("digest", False, ())
    assert not memory.is_news("ledger", (), made)
    for number in range(MOST_REMEMBERED):
        memory.is_news("ledger", (), made._replace(digest=str(number)))
    assert len(memory._asked) == MOST_REMEMBERED
    assert not memory.is_news("ledger", (), made)


def test_an_error_bound_that_is_no_number_is_none() -> None:
    """As that of noise so large that floats end."""

    @dataclasses.dataclass(frozen=True)
    class Endless:
        def error_bound(self, confidence: Any) -> float:
            return float("inf")

    then = now = Terms(epsilon=1)
    assert is_as_accurate(then, Endless(), 0, now, Endless())  # type: ignore[arg-type]
    assert not is_as_accurate(then, Endless(), 0, Terms(within=5), Endless())  # type: ignore[arg-type]
