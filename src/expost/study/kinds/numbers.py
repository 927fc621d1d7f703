"""Counts, sums and means."""

from __future__ import annotations

from typing import Any

from expost.data import Noisy, NoisyMean
from expost.errors import InvalidValue
from expost.mechanism import Mechanism
from expost.study.grammar import Key
from expost.study.kinds.kind import COLUMN, CONFIDENCE, COUNTED, WHERE, Answer, Asked, Kind, with_error

_BOUNDS = Key("bounds", "pair", "the lowest and the highest value that counts; all else is moved there", required=True)
_MISSING = Key("missing", "number", "what an empty value counts as; left out, it does not count")
_COUNTED_BY = Key("counted_by", "text", "an earlier count of the same rows, from which the error bar is made")
NOISE = Key(
    "noise",
    "text",
    "laplace, which it is if left out, or gaussian, which needs a delta",
    choices=("laplace", "gaussian"),
)


def noisy(asked: Asked, question: Any) -> Noisy:
    """The question with the noise that was asked for."""
    if asked.get("noise", "laplace") == "gaussian":
        gaussian: Noisy = question.gaussian(epsilon=asked.epsilon, delta=asked.delta)
        return gaussian
    laplace: Noisy = question.laplace(epsilon=asked.epsilon)
    return laplace


def _count(asked: Asked) -> Mechanism:
    question = asked.rows.count(of=asked.get("count", "rows"))
    if not question.sensitivity.l1:
        raise InvalidValue("how many there are is public under substitute and needs no question: say 'where'")
    return noisy(asked, question)


def _sum(asked: Asked) -> Mechanism:
    missing = asked.get("missing", "drop")
    return noisy(asked, asked.rows.sum(asked["column"], bounds=tuple(asked["bounds"]), missing=missing))


def _mean(asked: Asked) -> Mechanism:
    missing = asked.get("missing", "drop")
    question = asked.rows.mean(asked["column"], bounds=tuple(asked["bounds"]), missing=missing)
    return question.laplace(epsilon=asked.epsilon)


def _number(asked: Asked, mechanism: Noisy, value: Any) -> Answer:
    error = mechanism.error_bound(CONFIDENCE)
    return Answer(with_error(value, error), value, error, released=value)


def _average(asked: Asked, mechanism: NoisyMean, value: float) -> Answer:
    values = _values(asked)
    error = None if values is None else mechanism.error_bound(CONFIDENCE, values=values)
    unknown = "" if error is not None else " (name an earlier count of these rows in 'counted_by' for an error bar)"
    return Answer(with_error(value, error) + unknown, value, error, released=value)


def _values(asked: Asked) -> int | None:
    """How many values are averaged at least, as far as it is public or was released."""
    if asked.size and "where" not in asked.question.values and "missing" in asked.question.values:
        return asked.size
    counted = asked.earlier.get(asked.get("counted_by", ""))
    return None if counted is None or counted.error is None else int(counted.value - counted.error)


COUNT = Kind(
    "count", "How many rows, or units, there are.", (WHERE, COUNTED, NOISE), _count, _number,
    example='where = "visits > 0"',
)  # fmt: skip
SUM = Kind(
    "sum", "The sum of a column.", (COLUMN, _BOUNDS, _MISSING, WHERE, NOISE), _sum, _number,
    example='column = "cost"\nbounds = [0, 1000]',
)  # fmt: skip
MEAN = Kind(
    "mean", "The mean of a column.", (COLUMN, _BOUNDS, _MISSING, WHERE, _COUNTED_BY), _mean, _average,
    example='column = "cost"\nbounds = [0, 1000]',
)  # fmt: skip
