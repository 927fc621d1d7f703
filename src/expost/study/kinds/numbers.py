"""Counts, sums and means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from expost.accounting.renyi import normal_noise_worth
from expost.cost import DELTA_UNITS, Cost
from expost.data import BalancedCounts, CountedMean, Groups, Noisy, NoisyMean, NoisySearched, NoisyUntil, Question
from expost.data.aggregates import GroupCount, GroupMean, GroupSum
from expost.data.questions import Count
from expost.data.sums import Mean, Sum
from expost.errors import InvalidValue
from expost.mechanism import Mechanism
from expost.study.grammar import Key, share_of
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
    known_settings,
    number_text,
    with_error,
)
from expost.study.kinds.searched import FOUND_LATER, OPTIONAL_BOUNDS, found_answer, group_bounds, searched_settings

_BOUNDS = Key("bounds", "pair", "the lowest and the highest value that counts; others are moved there", required=True)


def noisy(
    asked: Asked, question: Question[Any], pure: Callable[..., Noisy[Any] | BalancedCounts] | None = None
) -> Noisy[Any] | BalancedCounts:
    """The question with the noise that was asked for. ``pure`` is the one that needs no δ, Laplace noise if None."""
    wanted, pure = asked.get("noise", "laplace"), pure or question.laplace
    if wanted == "laplace" or (asked.replayed and not asked.delta):
        return pure(epsilon=asked.epsilon)
    epsilon, delta = (asked.epsilon, asked.delta) if asked.delta else _worth(asked)
    normal = question.gaussian(epsilon=epsilon, delta=delta)
    if wanted == "gaussian" or asked.replayed:
        return normal
    return min(pure(epsilon=asked.epsilon), normal, key=lambda one: one.error_bound(CONFIDENCE))


def _worth(asked: Asked) -> tuple[Fraction, Fraction]:
    """The (ε, δ) of Gaussian noise that costs at most the Rényi price of the question's ε."""
    if asked.meters is None:
        raise InvalidValue(
            "Gaussian noise needs a δ where the basic sum is the only meter: leave 'noise' out, or state 'delta'"
        )
    delta = Fraction(asked.meters.delta, DELTA_UNITS)
    return normal_noise_worth(asked.meters.order, Fraction(str(asked.epsilon)), delta), delta


def _with_noise(asked: Asked, question: Question[Any]) -> Mechanism:
    """The question with the noise that was asked for, or that the wanted accuracy allows."""
    wanted = asked.get("accuracy")
    if wanted is None:
        return noisy(asked, question)
    if asked.get("noise", "laplace") != "laplace":
        raise InvalidValue("an accuracy is reached with Laplace noise: leave 'noise' out, or state an ε instead")
    if isinstance(wanted, str):
        return question.reduced(epsilon=asked.epsilon, within=share_of(wanted) or 0)
    found = question.laplace_within(wanted)
    if found.guarantee.worst_case.exact_epsilon > Cost.within(str(asked.epsilon)).exact_epsilon:
        raise InvalidValue(
            f"± {number_text(wanted)} at 95 % takes {found.guarantee.worst_case}, more than the ε {asked.epsilon:g} "
            "that it may use: ask for less accuracy"
        )
    return found


def _count(asked: Asked) -> Mechanism:
    of = asked.get("count", "rows")
    question = asked.rows.count(of=of)
    if not question.sensitivity.l1:
        raise InvalidValue(
            f"under substitute the number of {of} is public: leave this question out, which would cost ε for nothing, "
            "or count some of them, with 'where'"
        )
    return _with_noise(asked, question)


def _sum(asked: Asked) -> Mechanism:
    question = asked.rows.sum(asked["column"], bounds=tuple(asked["bounds"]), **asked.given("missing"))
    return _with_noise(asked, question)


def _mean(asked: Asked) -> Mechanism:
    if "bounds" not in asked.question.values:
        unbounded = asked.rows.mean(asked["column"], missing=asked.get("missing", "drop"))
        return unbounded.laplace(epsilon=asked.epsilon)
    question = asked.rows.mean(asked["column"], bounds=tuple(asked["bounds"]), **asked.given("missing"))
    if not question.count_sensitivity.l1:
        return question.laplace(epsilon=asked.epsilon)
    return question.counted(epsilon=asked.epsilon)


def _plain(asked: Asked) -> None:
    """What can be asked about groups."""
    if asked.get("noise", "laplace") != "laplace":
        raise InvalidValue("groups are asked with Laplace noise: leave 'noise' out, or ask for a histogram")
    if "accuracy" in asked.question.values:
        raise InvalidValue("an accuracy is of one answer, not of several groups: leave 'by' out, or state an ε instead")


def _counts(asked: Asked, groups: Groups) -> GroupCount:
    _plain(asked)
    return groups.count(of=asked.get("count", "rows"))


def _sums(asked: Asked, groups: Groups) -> GroupSum:
    _plain(asked)
    return groups.sum(asked["column"], bounds=tuple(asked["bounds"]), **asked.given("missing"))


def _means(asked: Asked, groups: Groups) -> GroupMean:
    return groups.mean(asked["column"], bounds=group_bounds(asked), **asked.given("missing"))


def of_group(asked: Asked, value: Any, error: float) -> Answer:
    """A number of a group."""
    return Answer(with_error(value, error), value, error, released=value)


def _number(asked: Asked, mechanism: Noisy[Any] | NoisyUntil, value: Any) -> Answer:
    if isinstance(mechanism, NoisyUntil):
        return _near_enough(asked, mechanism, value)
    error = mechanism.error_bound(CONFIDENCE)
    return Answer(with_error(value, error), value, error, released=value)


def _near_enough(asked: Asked, mechanism: NoisyUntil, found: Any) -> Answer:
    """A reduced answer. What is within a share of the truth is within share/(1 − share) of itself."""
    share, value = share_of(asked["accuracy"]) or Fraction(0), found.value
    if found.met:
        error = float(abs(value) * share / (1 - share))
        text = f"{with_error(value, error)}, within {asked['accuracy']} of the truth"
    else:
        error = float(mechanism.error_bound(CONFIDENCE, output=found))
        text = f"{with_error(value, error)}; {asked['accuracy']} would take more ε than was reserved"
    return Answer(text, value, error, released=value)


def _average(asked: Asked, mechanism: NoisyMean | CountedMean | NoisySearched, value: Any) -> Answer:
    if isinstance(mechanism, NoisySearched):
        return found_answer(value)
    if isinstance(mechanism, NoisyMean):
        error = mechanism.error_bound(CONFIDENCE, n=asked.size)
        return Answer(with_error(value, error), value, error, released=value)
    error = mechanism.error_bound(CONFIDENCE, output=value)
    text = f"{with_error(value[0], error)}, of about {number_text(value[1])} values"
    return Answer(text, value[0], error, released=value)


def _accuracy(asked: Asked, mechanism: Noisy[Any] | NoisyUntil) -> Accuracy:
    if isinstance(mechanism, NoisyUntil):
        return Accuracy(float(share_of(asked["accuracy"]) or 0), "if its ε is enough for that", relative=True)
    within = asked.most_values if asked.question.kind == "count" else None
    return Accuracy(float(mechanism.error_bound(CONFIDENCE)), within=within)


def _average_accuracy(asked: Asked, mechanism: NoisyMean | CountedMean | NoisySearched) -> Accuracy | NoBar:
    """If as many values count as there are units, or a thousand where their number is private."""
    if isinstance(mechanism, NoisySearched):
        return FOUND_LATER
    values, (low, high) = asked.size or 1_000, asked["bounds"]
    nominal = values != asked.most_values
    if isinstance(mechanism, NoisyMean):
        return Accuracy(mechanism.error_bound(CONFIDENCE, n=values), within=high - low, nominal=nominal)
    error = mechanism.error_bound(CONFIDENCE, output=(0.0, values))
    return Accuracy(error, f"if {values:,} values count", within=high - low, nominal=nominal)


def _from_zero(asked: Asked) -> bool:
    """Whether no value is below 0."""
    return "bounds" in asked.question.values and asked["bounds"][0] >= 0


def _count_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    if isinstance(mechanism.question, Count):
        yield {"count": mechanism.question.of}


def _sum_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    if isinstance(mechanism.question, Sum):
        yield _clipped(mechanism.question)


def _mean_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    if isinstance(mechanism.question, Mean):
        yield _clipped(mechanism.question)
    yield from searched_settings(mechanism, "mean")


def _clipped(question: Sum | Mean) -> dict[str, Any]:
    value = question.value
    return known_settings(column=value.expression.name, bounds=[*value.bounds], missing=value.missing)


NUMBERS = tuple(map(grouped, (
    QuestionKind(
        "count", "How many rows, or units, there are.", (keys.WHERE, keys.COUNTED, keys.NOISE, keys.ACCURACY), _count,
        _number, accuracy=_accuracy, number=True, amount=always, of_groups=OfGroups(_counts, of_group),
        settings=_count_settings,
        example='where = "visits > 0"',
    ),
    QuestionKind(
        "sum", "The sum of a column.",
        (keys.COLUMN, _BOUNDS, keys.DROPPED, keys.WHERE, keys.NOISE, keys.ACCURACY), _sum, _number, accuracy=_accuracy,
        number=True, amount=_from_zero, of_groups=OfGroups(_sums, of_group), settings=_sum_settings,
        example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "mean", "The mean of a column.", (keys.COLUMN, OPTIONAL_BOUNDS, keys.DROPPED, keys.WHERE), _mean, _average,
        accuracy=_average_accuracy, number=True, amount=_from_zero,
        of_groups=OfGroups(_means, of_group, OF_TYPICAL_SIZE),
        settings=_mean_settings,
        example='column = "cost"\nbounds = [0, 1000]',
    ),
)))  # fmt: skip
