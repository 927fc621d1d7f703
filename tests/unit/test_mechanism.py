import copy
import pickle
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost import WITHHELD, Cost, Guarantee
from expost.guarantee import Part
from toys import Asking, Fixed, Responses

pytestmark = pytest.mark.counted


def asking(ledger: xp.Ledger, at_most: int = 3) -> Asking:
    interaction = ledger.open(Responses(Fraction(2), at_most))
    assert isinstance(interaction, Asking)
    return interaction


def test_leaving_settles_what_was_published() -> None:
    ledger = xp.Ledger(epsilon=5)
    with asking(ledger) as ask:
        ask(True)
        assert ledger.reserved.epsilon == pytest.approx(3 * np.log(2))
        assert not ask.closed
    assert ask.closed
    assert ask.release.part == 1
    assert ask.release.value == ask.transcript
    assert ledger.spent == ask.release.charged
    assert ledger.reserved == Cost(0)


def test_it_closes_itself_when_finished_and_never_answers_again() -> None:
    ledger = xp.Ledger(epsilon=5)
    ask = asking(ledger)
    for _ in range(3):
        assert not ask.closed
        ask(lambda: True)
    assert ask.closed
    with pytest.raises(xp.errors.InteractionClosed, match="answers no more"):
        ask(True)
    assert ask.release.refunded == Cost(0)
    ask.close()
    assert len(ask.transcript) == 3


def test_nothing_asked_costs_nothing_not_even_delta() -> None:
    ledger = xp.Ledger(epsilon=5)
    with asking(ledger) as ask:
        pass
    assert ledger.spent == ledger.reserved == Cost(0)
    assert ask.release.part is None
    assert str(ask.release).startswith("Responses: nothing was asked · reserved ε 2.07")
    assert next(ledger.entries()).state == "voided"


def interrupt_after_one_question(ledger: xp.Ledger, asked: list[Asking]) -> None:
    with asking(ledger) as ask:
        asked.append(ask)
        ask(True)
        raise KeyboardInterrupt


def test_the_callers_own_exception_settles() -> None:
    ledger = xp.Ledger(epsilon=5)
    asked: list[Asking] = []
    with pytest.raises(KeyboardInterrupt):
        interrupt_after_one_question(ledger, asked)
    assert asked[0].release.part == 1


def test_an_exception_in_a_private_value_forfeits() -> None:
    ledger = xp.Ledger(epsilon=5)
    ask = asking(ledger)
    ask(True)
    with pytest.raises(ZeroDivisionError) as caught:
        ask(lambda: bool(1 // 0))
    assert "worst case (ε 2.07944154168) was charged" in caught.value.__notes__[0]
    assert next(ledger.entries()).state == "forfeited"
    assert ask.closed
    with pytest.raises(xp.errors.InteractionClosed, match="forfeited"):
        _ = ask.release


def test_a_question_may_not_ask_the_interaction_that_answers_it() -> None:
    ledger = xp.Ledger(epsilon=5)
    with pytest.raises(xp.errors.InteractionClosed, match="is answering it"), asking(ledger) as ask:
        ask(lambda: ask(True))
    assert next(ledger.entries()).state == "forfeited"


def test_a_question_may_not_close_the_interaction_that_answers_it() -> None:
    ledger = xp.Ledger(epsilon=5)
    ask = asking(ledger)
    with pytest.raises(xp.errors.InteractionClosed, match="may not close"):
        ask(lambda: (ask.close(), True)[1])
    assert next(ledger.entries()).state == "forfeited"


def test_copies_do_not_outlive_the_original() -> None:
    ask = asking(xp.Ledger(epsilon=5))
    assert copy.copy(ask) is ask
    assert copy.deepcopy(ask) is ask
    with pytest.raises(TypeError, match="could answer after"):
        pickle.dumps(ask)


def test_an_interaction_is_paid_for_once() -> None:
    ledger = xp.Ledger(epsilon=5)
    ask = asking(ledger)
    with pytest.raises(xp.errors.InteractionClosed, match="paid for already"):
        ask.paid_by(ledger.reserve(xp.Guarantee.uniform(0)))


def test_an_interaction_can_only_be_forfeited_from_elsewhere() -> None:
    """Its worst case is then charged, so whatever it still answers is paid for."""
    ledger = xp.Ledger(epsilon=5)
    ask = asking(ledger)
    ask(True)
    elsewhere = ledger.reservation(1)
    for attempt in (lambda: elsewhere.settle(0), elsewhere.void):
        with pytest.raises(xp.InvalidValue, match="only the process that runs it can, by its output"):
            attempt()
    elsewhere.forfeit()
    ask(True)
    with pytest.raises(xp.errors.ReservationClosed, match="it is forfeited already"):
        ask.close()
    assert ledger.spent == Responses(Fraction(2), 3).guarantee.worst_case
    with pytest.raises(xp.errors.InteractionClosed, match="forfeited"):
        _ = ask.release


def test_an_interrupt_between_drawing_and_publishing_publishes_nothing_but_was_begun() -> None:
    class Interrupted(Asking):
        def _answer(self, evaluate):  # type: ignore[no-untyped-def]
            self._spending.begin()  # type: ignore[union-attr]
            self._begun = True
            evaluate()
            raise KeyboardInterrupt

    class Interruptible(Responses):
        def start(self, data: object, noise: xp.noise.NoiseSource) -> Interrupted:
            return Interrupted(self, noise)

    ledger = xp.Ledger(epsilon=5)
    with pytest.raises(KeyboardInterrupt), ledger.open(Interruptible(Fraction(2), 3)) as ask:
        ask(True)  # type: ignore[operator]
    assert ask.release.part == 0
    assert next(ledger.entries()).state == "settled"


def test_a_release_before_the_end() -> None:
    ask = asking(xp.Ledger(epsilon=5))
    with pytest.raises(xp.errors.InteractionClosed, match="close it first"):
        _ = ask.release
    assert repr(ask) == "<open interaction with Responses(ratio=Fraction(2, 1), at_most=3): 0 answers>"


def test_without_a_ledger_it_answers_and_pays_nobody() -> None:
    ask = Responses(Fraction(2), 1).start(None, xp.SeededNoise(1))
    assert ask(True) in (True, False)
    assert ask.closed


def test_the_wrong_way_to_run() -> None:
    ledger = xp.Ledger(epsilon=5)
    with pytest.raises(xp.InvalidValue, match=r"use ledger\.open"):
        ledger.run(Responses(Fraction(2), 1))
    with pytest.raises(xp.InvalidValue, match=r"use ledger\.run"):
        ledger.open(xp.mechanisms.Coin(epsilon=1, sensitivity=1))
    assert list(ledger.entries()) == []


def test_withheld() -> None:
    assert not WITHHELD
    assert repr(WITHHELD) == str(WITHHELD) == "WITHHELD"
    release = xp.Ledger(epsilon=1).run(xp.mechanisms.Coin(epsilon=1, sensitivity=1, heads=0), on=5)
    assert release.withheld
    assert str(release) == "Coin: withheld · reserved ε 1, charged 0, refunded 1"


def test_how_releases_look() -> None:
    guarantee = xp.Guarantee.uniform(0.5, 1e-6)
    ledger = xp.Ledger(epsilon=2, delta=1e-5)
    assert str(ledger.run(Fixed(guarantee, np.zeros((2, 3))))) == (
        "Fixed: 2 × 3 values · reserved ε 0.5, δ 1e-6, charged 0.5 (δ 1e-6), refunded 0"
    )
    assert len(str(ledger.run(Fixed(guarantee, list(range(100)))))) < 150


class Listing(xp.Interaction):
    """A home-made interaction whose answers are lists: the longer, the dearer."""

    def __call__(self) -> Any:
        return self._answer(lambda: {"ids": [1, 2, 3], "values": np.arange(3.0)})


@dataclass(frozen=True)
class Listed(xp.Mechanism):
    guarantee = Guarantee({0: 0, 1: 0.1, 2: 0.5, 3: 1})

    def part_of(self, output: Any) -> Part:
        return max((len(answer["ids"]) for answer in output), default=0)

    def start(self, data: Any, noise: xp.noise.NoiseSource) -> Listing:
        return Listing(self)


def test_an_answer_is_priced_as_it_was_given() -> None:
    """Found: popping from the list that was answered made an ε of 1 into 0.1."""
    ledger = xp.Ledger(epsilon=5)
    with ledger.open(Listed(), key="k") as ask:
        answer = ask()
        answer["ids"].pop()
        answer["values"][:] = 7
        ask.transcript[0]["ids"].clear()
        ask.output[0]["values"][:] = 8
        answer["ids"].pop()
    assert ledger.spent == Cost(1)
    for kept in (ask.transcript, ask.release.value, ledger.output("k")):
        assert kept[0]["ids"] == [1, 2, 3]
        assert kept[0]["values"].tolist() == [0, 1, 2]


def test_an_answer_that_cannot_be_copied_costs_the_worst_case() -> None:
    ledger = xp.Ledger(epsilon=5)
    ask = ledger.open(Listed())
    with pytest.raises(TypeError, match="pickle"):
        ask._answer(lambda: (n for n in range(3)))
    assert (ask.closed, ledger.spent) == (True, Cost(1))


def twice(value: Any) -> tuple[xp.Release[Any], xp.Release[Any]]:
    """A release and its replay."""
    ledger = xp.Ledger(epsilon=5)
    mechanism = Fixed(Guarantee({"small": 1, "large": 2}), value, part="small")
    return ledger.run(mechanism, key="k"), ledger.run(mechanism, key="k")


@pytest.mark.parametrize(
    "value",
    [
        np.array([1.0, np.nan]),
        (np.arange(3), {"a": np.zeros(2)}, [None, float("nan")]),
        np.float64("nan"),
        xp.mechanisms.LinearModel(((1.0, 2.0),), 1.0, True, 0.0),
        WITHHELD,
    ],
    ids=lambda value: type(value).__name__,
)
def test_releases_compare_whatever_was_published(value: Any) -> None:
    first, again = twice(value)
    assert first == again
    assert hash(first) == hash(again)
    assert (first.replayed, again.replayed) == (False, True)
    assert first != twice((value,))[0]


@pytest.mark.parametrize("other", [np.array([1, 3]), np.array([1.0, 2.0]), np.array([[1, 2]]), [1, 2], None])
def test_releases_of_other_values_are_not_equal(other: Any) -> None:
    assert twice(np.array([1, 2]))[0] != twice(other)[0]
    assert twice({"a": 1})[0] != twice({"b": 1})[0]
    assert twice(1)[0] != 1


def test_a_release_carries_its_entry() -> None:
    ledger = xp.Ledger(epsilon=5)
    release = ledger.run(Fixed(Guarantee({"small": 1, "large": 2}), 7, part="small"), label="seven")
    assert release.entry == next(ledger.entries())
    assert (release.entry.what, release.entry.state, release.part) == ("seven", "settled", "small")
    assert (release.reserved, release.charged, release.refunded) == (Cost(2), Cost(1), Cost(1))
    assert str(release) == "Fixed: 7 · reserved ε 2, charged 1, refunded 1"
    assert str(twice(7)[1]).endswith("refunded 1 · replayed, nothing more was charged")
    assert pickle.loads(pickle.dumps(release)) == release
