"""Spread and dependence: variances, covariances, correlations, and means that extreme values do not dominate."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite, prod
from typing import Any

from expost.data import NoisySearched
from expost.data.searched import FoundMoment
from expost.data.winsorized import NoisyWinsorizedMean
from expost.frame import number_text, with_error
from expost.mechanism import Mechanism, Withheld
from expost.mechanisms import TrimmedMean
from expost.mechanisms.moments.geometric_cells import Interval
from expost.mechanisms.moments.moments import Winsorized
from expost.mechanisms.moments.pairs import FoundCovariance
from expost.mechanisms.moments.trimmed import why_no_error
from expost.questions import ClampedMean, Correlation, Covariance, NoisyStatistics, Ratio, Variance
from expost.study.grammar import Key
from expost.study.kinds import keys
from expost.study.kinds.bounded import TOO_FEW_VALUES
from expost.study.kinds.groups import BY_SPREAD, BY_SUMS, OF_TYPICAL_SIZE, grouped
from expost.study.kinds.kind import (
    Accuracy,
    Answer,
    Asked,
    NoBar,
    OfGroups,
    QuestionKind,
    always,
)
from expost.study.kinds.numbers import bounds_width, of_group, of_sums, of_typical_size
from expost.study.kinds.searched import (
    FOUND_LATER,
    OPTIONAL_BOUNDS,
    OPTIONAL_PAIRS,
    found_answer,
    moved_into,
)

_LOOSE = Key("bounds", "pair", "values are moved into these bounds, which may be loose", required=True)
_ANY = Key("bounds", "pair", "values are moved into these bounds, which may be loose; without them they have any size")
_TRIM = Key("trim", "number", "the share that is left out, or clamped, on either side, such as 0.05", required=True)
_COLUMNS = Key("columns", "texts", "two columns, or expressions such as cost / 100", required=True)
_PAIRED = (_COLUMNS, OPTIONAL_PAIRS, keys.EMPTY, keys.WHERE, keys.SUMS_NOISE)
_CLAMPED = (
    "noise on the mean, in 95 of 100 cases; not how far the two quantiles are off, nor what clipping to them or "
    "leaving out rows changes"
)
_IS_ZERO = "what it is divided by came out as 0"
_MAY_BE_ZERO = "what it is divided by may be 0, so that nobody knows how far off it is"
_TWO_BOUNDS = Key("bounds", "pairs", "the lowest and the highest value of each column that count; others are moved "
                  "there", required=True)  # fmt: skip
_BY_BOTH = NoBar("it depends on how large the two sums are, which is private", later=True)
_SUMS = "on sums of values and of their products"
FOUND_LATER_BY_SPREAD = NoBar("it depends on how far the values spread, which is private", later=True)
_EXAMPLE = 'columns = ["age", "cost"]\nbounds = [[0, 100], [0, 1000]]'


def _trimmed(asked: Asked) -> Mechanism:
    return TrimmedMean(
        trim=asked["trim"], epsilon=asked.epsilon, bounds=tuple(asked["bounds"]), **asked.given("missing")
    )


def _number(asked: Asked, mechanism: Any, value: Any) -> Answer:
    """With an error bar where one is known."""
    if isinstance(mechanism, NoisyStatistics):
        found = mechanism.answer_of(value, None)
        return replace(of_group(asked, found.value, found.error), beside=None, released=value)
    if isinstance(value, Withheld) and isinstance(mechanism, NoisyWinsorizedMean):
        return TOO_FEW_VALUES
    if isinstance(value, FoundMoment | Withheld):
        return found_answer(value)
    if isinstance(value, Winsorized | FoundCovariance):
        text = with_error(value.value, value.noise)
        if isinstance(value, Winsorized) and (value.outside is not None or "trim" in asked.question.values):
            text += f", {moved_into([Interval(value.low, value.high)], value.outside, value.beyond)}"
        if isinstance(value, Winsorized) and "trim" in asked.question.values:
            text += why_no_error(value)
        return Answer(text, value.value, value.noise, released=value)
    return Answer(number_text(value), value, None, released=value)


def _bar(asked: Asked, mechanism: Any) -> Accuracy | NoBar:
    if isinstance(mechanism, NoisyStatistics):
        return _of_sums(asked, mechanism)
    if isinstance(mechanism, NoisySearched) or asked.question.kind == "correlation":
        return NoBar("it is computed from several noisy sums, and how far off that puts it depends on the data")
    framed = isinstance(mechanism, TrimmedMean | NoisyWinsorizedMean)
    if framed and asked.most_values and not mechanism.knows_error(asked.most_values):
        return NoBar(f"{asked.most_values:,} values are too few for this trim and ε, whose quantiles may be anywhere")
    return FOUND_LATER


def _of_sums(asked: Asked, mechanism: NoisyStatistics) -> Accuracy | NoBar:
    """Of a correlation it depends on how far values spread, which is private."""
    if asked.question.kind == "correlation":
        return FOUND_LATER_BY_SPREAD
    return of_typical_size(asked, mechanism, bounds_area(asked) / (4 if asked.question.kind == "variance" else 2))


def bounds_area(asked: Asked) -> float:
    """The product of how wide the ranges are that two values lie in; of one value its square."""
    if "columns" not in asked.question.values:
        return bounds_width(asked) ** 2
    return float(prod(high - low for low, high in asked["bounds"]))


def _quotient(asked: Asked, mechanism: NoisyStatistics, value: Any) -> Answer:
    found = mechanism.answer_of(value, None)
    return replace(_quotient_of_group(asked, found.value, found.error), beside=None, released=value)


def _quotient_of_group(asked: Asked, value: Any, error: float | None) -> Answer:
    """With an error bar, unless noise may have made what it is divided by of 0."""
    if not isfinite(value):
        return Answer(f"no number: {_IS_ZERO}", None, beside="", released=value)
    if error is None or not isfinite(error):
        return Answer(f"{number_text(value)}; {_MAY_BE_ZERO}", value, beside="", released=value)
    return Answer(with_error(value, error), value, error, beside="", released=value)


_TRIMMED = QuestionKind(
    "trimmed_mean", "The mean without the lowest and the highest values.",
    (keys.COLUMN, _TRIM, _LOOSE, keys.FILLED), _trimmed, _number, reads=True, number=True, accuracy=_bar,
    covers=_CLAMPED, noise="two quantiles chosen by rank, then staircase noise for their distance",
    example='column = "cost"\ntrim = 0.1\nbounds = [0, 1000]\nmissing = 0',
)  # fmt: skip
MOMENTS = (*map(grouped, (
    QuestionKind(
        "variance", "The variance of a column.",
        (keys.COLUMN, OPTIONAL_BOUNDS, keys.EMPTY, keys.WHERE, keys.SUMS_NOISE), Variance, _number,
        noised=of_sums, number=True, noise=_SUMS, accuracy=_bar,
        of_groups=OfGroups(of_group, OF_TYPICAL_SIZE, lambda asked: bounds_width(asked) ** 2 / 4),
        amount=always,
        example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "covariance", "The covariance of two columns.", _PAIRED, Covariance, _number, noised=of_sums, number=True,
        noise=_SUMS, accuracy=_bar, example=_EXAMPLE,
        of_groups=OfGroups(of_group, OF_TYPICAL_SIZE, lambda asked: bounds_area(asked) / 2),
    ),
    QuestionKind(
        "correlation", "The correlation of two columns, from -1 to 1.", _PAIRED, Correlation, _number, noised=of_sums,
        number=True, noise=_SUMS, accuracy=_bar, example=_EXAMPLE,
        of_groups=OfGroups(of_group, BY_SPREAD),
    ),
    QuestionKind(
        "ratio", "The sum of one column over the sum of another, such as cost per visit.",
        (_COLUMNS, _TWO_BOUNDS, keys.DROPPED, keys.WHERE, keys.SUMS_NOISE), Ratio, _quotient, noised=of_sums,
        number=True, of_groups=OfGroups(_quotient_of_group, BY_SUMS),
        accuracy=lambda asked, mechanism: _BY_BOTH,
        example='columns = ["cost", "visits"]\nbounds = [[0, 1000], [0, 20]]',
    ),
    QuestionKind(
        "winsorized_mean", "The mean of values clamped to two of their quantiles, which are found privately first.",
        (keys.COLUMN, _TRIM, _ANY, keys.DROPPED, keys.WHERE), ClampedMean, _number, number=True,
        noise="two quantiles chosen by rank, then Laplace, on the mean between them", accuracy=_bar,
        covers=_CLAMPED,
        example='column = "cost"\ntrim = 0.05\nbounds = [0, 1000000]',
    ),
)), _TRIMMED)  # fmt: skip
