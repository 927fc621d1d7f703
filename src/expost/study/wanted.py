"""The ε that a wanted accuracy needs: found before anything is asked, from the mechanism alone."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from fractions import Fraction
from math import ceil, floor, log10

from expost.cost import Cost
from expost.errors import InvalidValue
from expost.frame import number_text
from expost.study.check import Questions
from expost.study.kinds import KINDS
from expost.study.kinds.kind import Accuracy, NoBar
from expost.study.model import Question, Study
from expost.study.sources import imagined, open_table

_LEAST, _MOST = 1e-6, 100.0


def epsilon_for(study: Study, name: str, error: float) -> tuple[float, Accuracy]:
    """The least ε, to three digits, with which noise moves the answer of a question by at most ``error`` at 95 %.

    And the accuracy that it buys. Reads no value and charges nothing.
    """
    question = _named(study, name)
    if not error > 0:
        raise InvalidValue(f"{name}={error:g}: a wanted ± is above 0")
    found = _accuracy_of(study, question)
    return _least(found, error, question)


def _named(study: Study, name: str) -> Question:
    known = {question.name: question for question in study.questions}
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise InvalidValue(f"there is no question {name!r}: {hint}")
    return known[name]


def _accuracy_of(study: Study, question: Question) -> Callable[[float], Accuracy | None]:
    """The accuracy that an ε buys; None if it buys nothing, or that is not known."""
    questions = Questions(study, open_table(study), study.privacy.size, imagined(study, None))
    kind = KINDS[question.kind]
    delta = question.delta_of(study.limit)
    earlier = {each.name: KINDS[each.kind].stand_in for each in study.questions}
    stand_ins = {name: answer for name, answer in earlier.items() if answer is not None}

    def accuracy(epsilon: float) -> Accuracy | None:
        asked = questions.asked(question, Cost.within(Fraction(str(epsilon)), delta), stand_ins)
        try:
            found = kind.accuracy(asked, kind.mechanism(asked))
        except InvalidValue:
            if epsilon == _MOST:
                raise
            return None
        if isinstance(found, NoBar):
            raise InvalidValue(f"question {question.name!r}: {found}")
        if found.relative:
            raise InvalidValue(f"question {question.name!r} states its accuracy itself: leave 'accuracy' out of it")
        return found

    return accuracy


def _least(found: Callable[[float], Accuracy | None], error: float, question: Question) -> tuple[float, Accuracy]:
    low, high = _LEAST, _MOST
    best = found(high)
    if best is None or best.error > error:
        least = "" if best is None else f": it is {best} with ε {_MOST:g}"
        raise InvalidValue(f"question {question.name!r}: no ε buys ± {number_text(error)}{least}")
    while high > 1.0005 * low:
        middle = (low * high) ** 0.5
        bought = found(middle)
        low, high = (low, middle) if bought is not None and bought.error <= error else (middle, high)
    epsilon = _rounded_up(high)
    bought = found(epsilon)
    assert bought is not None
    return epsilon, bought


def _rounded_up(number: float) -> float:
    """To three digits."""
    places = 2 - floor(log10(number))
    return float(ceil(Fraction(number) * Fraction(10) ** places) / Fraction(10) ** places)
