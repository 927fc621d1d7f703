"""Counts, sums and means."""

from __future__ import annotations

from typing import Any

from expost.data import Noisy, NoisyMean, Question
from expost.errors import InvalidValue
from expost.mechanism import Mechanism
from expost.study.grammar import Key
from expost.study.kinds.kind import COLUMN, CONFIDENCE, COUNTED, DROPPED, WHERE, Answer, Asked, QuestionKind, with_error

_BOUNDS = Key("bounds", "pair", "the lowest and the highest value that counts; others are moved there", required=True)
_COUNTED_BY = Key(
    "counted_by", "text", "an earlier count of the same rows, from which the error bar is made", refers_to="count"
)
NOISE = Key(
    "noise",
    "text",
    "laplace, the default, or gaussian, which needs a delta",
    choices=("laplace", "gaussian"),
    needs_delta=("gaussian",),
)


def noisy(asked: Asked, question: Question[Any]) -> Noisy[Any]:
    """The question with the noise that was asked for."""
    if asked.get("noise", "laplace") == "gaussian":
        return question.gaussian(epsilon=asked.epsilon, delta=asked.delta)
    return question.laplace(epsilon=asked.epsilon)


def _count(asked: Asked) -> Mechanism:
    of = asked.get("count", "rows")
    question = asked.rows.count(of=of)
    if not question.sensitivity.l1:
        raise InvalidValue(f"under substitute the number of {of} is public and needs no question: add a 'where'")
    return noisy(asked, question)


def _sum(asked: Asked) -> Mechanism:
    return noisy(asked, asked.rows.sum(asked["column"], bounds=tuple(asked["bounds"]), **asked.given("missing")))


def _mean(asked: Asked) -> Mechanism:
    question = asked.rows.mean(asked["column"], bounds=tuple(asked["bounds"]), **asked.given("missing"))
    return question.laplace(epsilon=asked.epsilon)


def _number(asked: Asked, mechanism: Noisy[Any], value: Any) -> Answer:
    error = mechanism.error_bound(CONFIDENCE)
    return Answer(with_error(value, error), value, error, released=value)


def _average(asked: Asked, mechanism: NoisyMean, value: float) -> Answer:
    values = _values(asked)
    error = None if values is None else mechanism.error_bound(CONFIDENCE, n=values)
    unknown = "" if error is not None else " (name an earlier count of these rows in 'counted_by' for an error bar)"
    return Answer(with_error(value, error) + unknown, value, error, released=value)


def _values(asked: Asked) -> int | None:
    """How many values are averaged at least, as far as it is public or was released."""
    if asked.size and "where" not in asked.question.values and "missing" in asked.question.values:
        return asked.size
    counted = asked.earlier.get(asked.get("counted_by", ""))
    return None if counted is None or counted.error is None else int(counted.value - counted.error)


NUMBERS = (
    QuestionKind(
        "count", "How many rows, or units, there are.", (WHERE, COUNTED, NOISE), _count, _number, number=True,
        example='where = "visits > 0"',
    ),
    QuestionKind(
        "sum", "The sum of a column.", (COLUMN, _BOUNDS, DROPPED, WHERE, NOISE), _sum, _number, number=True,
        example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "mean", "The mean of a column.", (COLUMN, _BOUNDS, DROPPED, WHERE, _COUNTED_BY), _mean, _average, number=True,
        example='column = "cost"\nbounds = [0, 1000]',
    ),
)  # fmt: skip
