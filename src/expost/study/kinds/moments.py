"""Spread and dependence: variances, covariances, correlations, and means that extreme values do not dominate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from expost.data import Groups, GroupStatistic, NoisyMoments, NoisySearched
from expost.data.moments import Moments
from expost.data.searched import FoundMoment
from expost.data.winsorized import NoisyWinsorizedMean, WinsorizedMean
from expost.errors import InvalidValue
from expost.frame import number_text, with_error
from expost.mechanism import Mechanism, Withheld
from expost.mechanisms import TrimmedMean
from expost.mechanisms.moments.geometric_cells import Interval
from expost.mechanisms.moments.moments import Winsorized
from expost.mechanisms.moments.pairs import FoundCovariance
from expost.mechanisms.moments.trimmed import why_no_error
from expost.study.grammar import Key
from expost.study.kinds import keys
from expost.study.kinds.bounded import TOO_FEW_VALUES, column_settings
from expost.study.kinds.groups import OF_TYPICAL_SIZE, grouped
from expost.study.kinds.kind import (
    Answer,
    Asked,
    NoBar,
    OfGroups,
    QuestionKind,
    always,
    known_settings,
)
from expost.study.kinds.numbers import bounds_width, of_group
from expost.study.kinds.searched import (
    FOUND_LATER,
    OPTIONAL_BOUNDS,
    OPTIONAL_PAIRS,
    found_answer,
    group_bounds,
    moved_into,
    searched_settings,
)

_LOOSE = Key("bounds", "pair", "values are moved into these bounds, which may be loose", required=True)
_ANY = Key("bounds", "pair", "values are moved into these bounds, which may be loose; without them they have any size")
_TRIM = Key("trim", "number", "the share that is left out, or clamped, on either side, such as 0.05", required=True)
_COLUMNS = Key("columns", "texts", "two columns, or expressions such as cost / 100", required=True)
_PAIRED = (_COLUMNS, OPTIONAL_PAIRS, keys.EMPTY, keys.WHERE)
_CLAMPED = (
    "noise on the mean, in 95 of 100 cases; not how far the two quantiles are off, nor what clipping to them or "
    "leaving out rows changes"
)
_SUMS = "on sums of values and of their products"
_EXAMPLE = 'columns = ["age", "cost"]\nbounds = [[0, 100], [0, 1000]]'


def _variance(asked: Asked) -> Mechanism:
    bounds = tuple(asked["bounds"]) if "bounds" in asked.question.values else None
    question: Any = asked.rows.variance(asked["column"], bounds=bounds, missing=asked.get("missing", "drop"))
    return asked.made(question)


def _variances(asked: Asked, groups: Groups) -> GroupStatistic:
    return groups.variance(asked["column"], bounds=group_bounds(asked), missing=asked.get("missing", "drop"))


def _paired(asked: Asked) -> Mechanism:
    if len(asked["columns"]) != 2:
        raise InvalidValue(f"a {asked.question.kind} is of two columns, got {len(asked['columns'])}")
    ask = getattr(asked.rows, asked.question.kind)
    question = ask(*asked["columns"], bounds=asked.get("bounds"), missing=asked.get("missing", "drop"))
    return asked.made(question)


def _winsorized(asked: Asked) -> Mechanism:
    bounds = tuple(asked["bounds"]) if "bounds" in asked.question.values else None
    question = asked.rows.winsorized_mean(asked["column"], trim=asked["trim"], bounds=bounds, **asked.given("missing"))
    return asked.made(question)


def _trimmed(asked: Asked) -> Mechanism:
    return TrimmedMean(
        trim=asked["trim"], epsilon=asked.epsilon, bounds=tuple(asked["bounds"]), **asked.given("missing")
    )


def _number(asked: Asked, mechanism: Any, value: Any) -> Answer:
    """With an error bar where the mechanism publishes one."""
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


def _bar(asked: Asked, mechanism: Any) -> NoBar:
    if isinstance(mechanism, NoisyMoments | NoisySearched) or asked.question.kind == "correlation":
        return NoBar("it is computed from several noisy sums, and how far off that puts it depends on the data")
    framed = isinstance(mechanism, TrimmedMean | NoisyWinsorizedMean)
    if framed and asked.most_values and not mechanism.knows_error(asked.most_values):
        return NoBar(f"{asked.most_values:,} values are too few for this trim and ε, whose quantiles may be anywhere")
    return FOUND_LATER


def _variance_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    question = mechanism.question
    if isinstance(question, Moments) and question.statistic == "variance":
        yield known_settings(column=question.values[0].name, bounds=[*question.bounds[0]], missing=question.missing)
    yield from searched_settings(mechanism, "variance")


def _paired_settings(statistic: str) -> Callable[[Any], Iterator[dict[str, Any]]]:
    def settings(mechanism: Any) -> Iterator[dict[str, Any]]:
        question = mechanism.question
        if isinstance(question, Moments) and question.statistic == statistic:
            bounds = [[*each] for each in question.bounds]
            yield known_settings(
                columns=[value.name for value in question.values], bounds=bounds, missing=question.missing
            )
        yield from searched_settings(mechanism, statistic)

    return settings


def _winsorized_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    if isinstance(mechanism.question, WinsorizedMean):
        ranks = mechanism.question.ranks
        yield {"trim": float(ranks.levels[0]), **column_settings(ranks)}


_TRIMMED = QuestionKind(
    "trimmed_mean", "The mean without the lowest and the highest values.",
    (keys.COLUMN, _TRIM, _LOOSE, keys.FILLED), _trimmed, _number, reads=True, number=True, accuracy=_bar,
    covers=_CLAMPED, noise="two quantiles chosen by rank, then staircase noise for their distance",
    example='column = "cost"\ntrim = 0.1\nbounds = [0, 1000]\nmissing = 0',
)  # fmt: skip
MOMENTS = (*map(grouped, (
    QuestionKind(
        "variance", "The variance of a column.", (keys.COLUMN, OPTIONAL_BOUNDS, keys.EMPTY, keys.WHERE), _variance,
        _number, number=True, noise=_SUMS, accuracy=_bar,
        of_groups=OfGroups(_variances, of_group, OF_TYPICAL_SIZE, lambda asked: bounds_width(asked) ** 2 / 4),
        amount=always,
        settings=_variance_settings,
        example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "covariance", "The covariance of two columns.", _PAIRED, _paired, _number, number=True, noise=_SUMS,
        accuracy=_bar, settings=_paired_settings("covariance"), example=_EXAMPLE,
    ),
    QuestionKind(
        "correlation", "The correlation of two columns, from -1 to 1.", _PAIRED, _paired, _number, number=True,
        noise=_SUMS, accuracy=_bar, settings=_paired_settings("correlation"), example=_EXAMPLE,
    ),
    QuestionKind(
        "winsorized_mean", "The mean of values clamped to two of their quantiles, which are found privately first.",
        (keys.COLUMN, _TRIM, _ANY, keys.DROPPED, keys.WHERE), _winsorized, _number, number=True,
        noise="two quantiles chosen by rank, then Laplace, on the mean between them", accuracy=_bar,
        covers=_CLAMPED, settings=_winsorized_settings,
        example='column = "cost"\ntrim = 0.05\nbounds = [0, 1000000]',
    ),
)), _TRIMMED)  # fmt: skip
