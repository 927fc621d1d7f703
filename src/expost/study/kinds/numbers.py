"""Counts, sums and means."""

from __future__ import annotations

from typing import Any

from expost.checks import share_of
from expost.data import Noisy, NoisySearched, NoisyUntil, NumericQuestion
from expost.errors import InvalidValue
from expost.frame import number_text, with_error
from expost.mechanism import Mechanism
from expost.questions import Count, Mean, NoisyStatistics, Sum
from expost.study.grammar import Key
from expost.study.kinds import keys
from expost.study.kinds.groups import OF_TYPICAL_SIZE, grouped
from expost.study.kinds.kind import (
    CONFIDENCE,
    Accuracy,
    Answer,
    Asked,
    NoBar,
    OfGroups,
    QuestionKind,
    always,
)
from expost.study.kinds.searched import FOUND_LATER, OPTIONAL_BOUNDS, found_answer, group_bounds

_BOUNDS = Key("bounds", "pair", "the lowest and the highest value that counts; others are moved there", required=True)


def _with_noise(asked: Asked, question: NumericQuestion[Any]) -> Mechanism:
    """The question with the noise that was asked for, or that the wanted accuracy allows."""
    wanted = asked.get("accuracy")
    if wanted is None:
        return asked.noised(question)
    if asked.get("noise", "laplace") != "laplace":
        raise InvalidValue("an accuracy is reached with Laplace noise: leave 'noise' out, or state an ε instead")
    return asked.made(question, within=wanted)


def _counted(asked: Asked, question: NumericQuestion[Any]) -> Mechanism:
    if not question.sensitivity.l1:
        raise InvalidValue(
            f"under substitute the number of {asked.get('count', 'rows')} is public: leave this question out, which "
            "would cost ε for nothing, or count some of them, with 'where'"
        )
    return _with_noise(asked, question)


def of_sums(asked: Asked, question: Any) -> Mechanism:
    """With the noise that was asked for; where a range is found first, there is one kind."""
    if asked.get("noise", "laplace") != "laplace" and "bounds" not in asked.question.values:
        raise InvalidValue("where a range is found first noise is Laplace: state 'bounds', or leave 'noise' out")
    return asked.noised(question)


def bounds_width(asked: Asked) -> float:
    """How wide the range is that a mean lies in."""
    low, high = group_bounds(asked)
    return high - low


def of_group(asked: Asked, value: Any, error: float | None) -> Answer:
    """A number of a group."""
    text = number_text(value) if error is None else with_error(value, error)
    return Answer(text, value, error, beside="", released=value)


def _number(asked: Asked, mechanism: Noisy[Any] | NoisyUntil, value: Any) -> Answer:
    if isinstance(mechanism, NoisyUntil):
        return _near_enough(asked, mechanism, value)
    if why := mechanism.answer_of(value, None).why:
        return _without_error(value, why, value)
    error = mechanism.error_bound(CONFIDENCE)
    return Answer(with_error(value, error), value, error, released=value)


def _without_error(value: Any, why: str, released: Any) -> Answer:
    """A number of which no error is known, and why."""
    return Answer(f"{number_text(value)} (no error: {why})", value, None, released=released)


def _near_enough(asked: Asked, mechanism: NoisyUntil, found: Any) -> Answer:
    """A reduced answer, with the error that tables and exports have, too: it holds wherever noise stopped."""
    estimate, value = mechanism.answer_of(found, None), found.value
    if estimate.why:
        return _without_error(value, estimate.why, value)
    error = estimate.error
    more = "" if found.met else f"; {asked['accuracy']} would take more ε than was reserved"
    return Answer(f"{with_error(value, error)}{more}", value, error, released=value)


def _average(asked: Asked, mechanism: NoisyStatistics | NoisySearched, value: Any) -> Answer:
    if isinstance(mechanism, NoisySearched):
        return found_answer(value)
    found = mechanism.answer_of(value, None)
    if found.why:
        return _without_error(found.value, found.why, value)
    about = f", of about {number_text(found.how.values)} values" if has_noisy_count(mechanism) else ""
    return Answer(with_error(found.value, found.error) + about, found.value, found.error, released=value)


def _accuracy(asked: Asked, mechanism: Noisy[Any] | NoisyUntil) -> Accuracy:
    if isinstance(mechanism, NoisyUntil):
        return Accuracy(float(share_of(asked["accuracy"]) or 0), "if the stated ε allows it", relative=True)
    within = asked.most_values if asked.question.kind == "count" else _sum_range(asked)
    return Accuracy(float(mechanism.error_bound(CONFIDENCE)), within=within)


def _average_accuracy(asked: Asked, mechanism: NoisyStatistics | NoisySearched) -> Accuracy | NoBar:
    if isinstance(mechanism, NoisySearched):
        return FOUND_LATER
    return of_typical_size(asked, mechanism, bounds_width(asked))


def of_typical_size(asked: Asked, mechanism: NoisyStatistics, within: float) -> Accuracy:
    """If as many values count as there are units, or as are expected where their number is private."""
    values = asked.size or asked.likely()
    error = mechanism.expected(mechanism.question.names[0], values).error
    about = f"if {values:,} values count" if has_noisy_count(mechanism) else ""
    return Accuracy(error, about, within=within, nominal=values != asked.most_values)


def has_noisy_count(mechanism: NoisyStatistics) -> bool:
    """Whether the number of values has noise: it is the last number of a mean, and the first of other moments."""
    ((first, *_, last),) = mechanism.laws.values()
    return first is not None and last is not None


def _sum_range(asked: Asked) -> float | None:
    """How wide the range is that a sum lies in, where that is public."""
    low, high = asked["bounds"]
    return None if asked.most_values is None else asked.most_values * (max(high, 0) - min(low, 0))


def _from_zero(asked: Asked) -> bool:
    """Whether all values lie on one side of 0, but for a hundredth of the bounds."""
    low, high = map(float, asked.get("bounds", (-1, 1)))
    near, far = sorted((abs(low), abs(high)))
    return low * high >= 0 or 100 * near <= far


TOTALS = tuple(map(grouped, (
    QuestionKind(
        "count", "How many rows, or units, there are.", (keys.WHERE, keys.COUNTED, keys.NOISE, keys.ACCURACY), Count,
        _number, noised=_counted, accuracy=_accuracy, number=True, from_zero=True, amount=always,
        of_groups=OfGroups(of_group),
        example='where = "visits > 0"',
    ),
    QuestionKind(
        "sum", "The sum of a column.",
        (keys.COLUMN, _BOUNDS, keys.DROPPED, keys.WHERE, keys.NOISE, keys.ACCURACY), Sum, _number, noised=_with_noise,
        accuracy=_accuracy,
        number=True, from_zero=True, amount=_from_zero, of_groups=OfGroups(of_group),
        example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "mean", "The mean of a column.", (keys.COLUMN, OPTIONAL_BOUNDS, keys.DROPPED, keys.WHERE, keys.SUMS_NOISE),
        Mean, _average, noised=of_sums,
        accuracy=_average_accuracy, number=True, amount=_from_zero,
        of_groups=OfGroups(of_group, OF_TYPICAL_SIZE, bounds_width),
        example='column = "cost"\nbounds = [0, 1000]',
    ),
)))  # fmt: skip
