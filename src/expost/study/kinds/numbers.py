"""Counts, sums and means."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from expost.checks import share_of
from expost.cost import exact
from expost.data import (
    CountedMean,
    Groups,
    GroupStatistic,
    Noisy,
    NoisySearched,
    NoisyUntil,
    NumericQuestion,
)
from expost.data.questions import Count
from expost.data.sums import Mean, Sum
from expost.errors import InvalidValue
from expost.frame import number_text, with_error
from expost.mechanism import Mechanism
from expost.mechanisms import RelativeError
from expost.question import Question
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
    known_settings,
)
from expost.study.kinds.searched import FOUND_LATER, OPTIONAL_BOUNDS, found_answer, group_bounds, searched_settings

_BOUNDS = Key("bounds", "pair", "the lowest and the highest value that counts; others are moved there", required=True)


def noisy(asked: Asked, question: NumericQuestion[Any]) -> Any:
    """The question with the noise that was asked for."""
    wanted, replayed = asked.get("noise", "laplace"), asked.replayed
    if wanted == "laplace" or (replayed and not asked.delta):
        return asked.made(question)
    if not asked.delta and asked.meters is None:
        raise InvalidValue(
            "Gaussian noise needs a δ where the basic sum is the only meter: leave 'noise' out, or state 'delta'"
        )
    normal: Any = asked.made(question, delta=asked.delta, noise="gaussian", meters=asked.meters)
    if wanted == "gaussian" or replayed:
        return normal
    pure: Any = asked.made(question)
    return min(pure, normal, key=lambda one: one.error_bound(CONFIDENCE))


def _with_noise(asked: Asked, question: NumericQuestion[Any]) -> Mechanism:
    """The question with the noise that was asked for, or that the wanted accuracy allows."""
    wanted = asked.get("accuracy")
    if wanted is None:
        return noisy(asked, question)  # type: ignore[no-any-return]
    if asked.get("noise", "laplace") != "laplace":
        raise InvalidValue("an accuracy is reached with Laplace noise: leave 'noise' out, or state an ε instead")
    return asked.made(question, within=wanted)


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
        question: Question = asked.rows.mean(asked["column"], missing=asked.get("missing", "drop"))
    else:
        question = asked.rows.mean(asked["column"], bounds=tuple(asked["bounds"]), **asked.given("missing"))
    return asked.made(question)


def _plain(asked: Asked) -> None:
    """What can be asked about groups."""
    if asked.get("noise", "laplace") != "laplace":
        raise InvalidValue("groups are asked with Laplace noise: leave 'noise' out, or ask for a histogram")
    if "accuracy" in asked.question.values:
        raise InvalidValue("an accuracy is of one answer, not of several groups: leave 'by' out, or state an ε instead")


def _counts(asked: Asked, groups: Groups) -> GroupStatistic:
    _plain(asked)
    return groups.count(of=asked.get("count", "rows"))


def _sums(asked: Asked, groups: Groups) -> GroupStatistic:
    _plain(asked)
    return groups.sum(asked["column"], bounds=tuple(asked["bounds"]), **asked.given("missing"))


def _means(asked: Asked, groups: Groups) -> GroupStatistic:
    return groups.mean(asked["column"], bounds=group_bounds(asked), **asked.given("missing"))


def bounds_width(asked: Asked) -> float:
    """How wide the range is that a mean lies in."""
    low, high = group_bounds(asked)
    return high - low


def of_group(asked: Asked, value: Any, error: float) -> Answer:
    """A number of a group."""
    return Answer(with_error(value, error), value, error, beside="", released=value)


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


def _average(asked: Asked, mechanism: CountedMean | NoisySearched, value: Any) -> Answer:
    if isinstance(mechanism, NoisySearched):
        return found_answer(value)
    error, about = mechanism.error_bound(CONFIDENCE, output=value), f", of about {number_text(value[1])} values"
    text = with_error(value[0], error) + (about if mechanism.question.count_sensitivity.l1 else "")
    return Answer(text, value[0], error, released=value)


def _accuracy(asked: Asked, mechanism: Noisy[Any] | NoisyUntil) -> Accuracy:
    if isinstance(mechanism, NoisyUntil):
        return Accuracy(float(share_of(asked["accuracy"]) or 0), "if its ε is enough for that", relative=True)
    within = asked.most_values if asked.question.kind == "count" else _sum_range(asked)
    return Accuracy(float(mechanism.error_bound(CONFIDENCE)), within=within)


def _average_accuracy(asked: Asked, mechanism: CountedMean | NoisySearched) -> Accuracy | NoBar:
    """If as many values count as there are units, or a thousand where their number is private."""
    if isinstance(mechanism, NoisySearched):
        return FOUND_LATER
    values, (low, high) = asked.size or 1_000, asked["bounds"]
    nominal = values != asked.most_values
    if not mechanism.question.count_sensitivity.l1:
        return Accuracy(mechanism.error_bound(CONFIDENCE, n=values), within=high - low, nominal=nominal)
    error = mechanism.error_bound(CONFIDENCE, output=(high, values))  # the farther from the middle, the larger
    return Accuracy(error, f"if {values:,} values count", within=high - low, nominal=nominal)


def _sum_range(asked: Asked) -> float | None:
    """How wide the range is that a sum lies in, where that is public."""
    low, high = asked["bounds"]
    return None if asked.most_values is None else asked.most_values * (max(high, 0) - min(low, 0))


def _from_zero(asked: Asked) -> bool:
    """Whether all values lie on one side of 0, but for a hundredth of the bounds."""
    low, high = map(float, asked.get("bounds", (-1, 1)))
    near, far = sorted((abs(low), abs(high)))
    return low * high >= 0 or 100 * near <= far


def _count_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    if isinstance(mechanism.question, Count):
        yield {"count": mechanism.question.of, **_share_wanted(mechanism)}


def _sum_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    if isinstance(mechanism.question, Sum):
        yield _clipped(mechanism.question) | _share_wanted(mechanism)


def _mean_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    if isinstance(mechanism.question, Mean):
        yield _clipped(mechanism.question)
    yield from searched_settings(mechanism, "mean")


def _share_wanted(mechanism: Any) -> dict[str, Any]:
    """How accurate the answer must be, if noise is reduced until it is."""
    if not isinstance(mechanism, NoisyUntil) or not isinstance(mechanism.noise.until, RelativeError):
        return {}
    return {"accuracy": f"{float(100 * exact(mechanism.noise.until.within, 'within')):g} %"}


def _clipped(question: Sum | Mean) -> dict[str, Any]:
    value = question.value
    return known_settings(column=value.expression.name, bounds=[*value.bounds], missing=value.missing)


TOTALS = tuple(map(grouped, (
    QuestionKind(
        "count", "How many rows, or units, there are.", (keys.WHERE, keys.COUNTED, keys.NOISE, keys.ACCURACY), _count,
        _number, accuracy=_accuracy, number=True, from_zero=True, amount=always, of_groups=OfGroups(_counts, of_group),
        settings=_count_settings,
        example='where = "visits > 0"',
    ),
    QuestionKind(
        "sum", "The sum of a column.",
        (keys.COLUMN, _BOUNDS, keys.DROPPED, keys.WHERE, keys.NOISE, keys.ACCURACY), _sum, _number, accuracy=_accuracy,
        number=True, from_zero=True, amount=_from_zero, of_groups=OfGroups(_sums, of_group), settings=_sum_settings,
        example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "mean", "The mean of a column.", (keys.COLUMN, OPTIONAL_BOUNDS, keys.DROPPED, keys.WHERE), _mean, _average,
        accuracy=_average_accuracy, number=True, amount=_from_zero,
        of_groups=OfGroups(_means, of_group, OF_TYPICAL_SIZE, bounds_width),
        settings=_mean_settings,
        example='column = "cost"\nbounds = [0, 1000]',
    ),
)))  # fmt: skip
