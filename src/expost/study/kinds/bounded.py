"""Quantiles and linear regression within declared bounds: pure ε, and always an answer."""

from __future__ import annotations

from typing import Any

from expost.mechanism import Mechanism
from expost.mechanisms import InterquartileRange, LinearRegression, Median, Quantile
from expost.study.grammar import Key
from expost.study.kinds.kind import COLUMN, CONFIDENCE, Answer, Asked, QuestionKind, number_text

_BOUNDS = Key("bounds", "pair", "the lowest and the highest answer; values are moved into these bounds", required=True)
_GRID = Key("grid", "number", "what values were measured to, such as 0.01; by default about a millionth of the bounds")
_MISSING = Key("missing", "number", "what an empty value counts as; 0 by default")
_WITHIN = {"median": Median, "quantile": Quantile, "interquartile_range": InterquartileRange}


def _ranked(asked: Asked) -> Mechanism:
    kind: Any = _WITHIN[asked.question.kind]
    given = asked.given("quantile", "grid", "missing")
    return kind(  # type: ignore[no-any-return]
        epsilon=asked.epsilon, bounds=tuple(asked["bounds"]), neighbours=asked.table.neighbours, **given
    )


def _placed(asked: Asked, mechanism: Any, value: Any) -> Answer:
    ranks = mechanism.error_bound(CONFIDENCE)
    text = f"{number_text(value)} (off by at most {ranks:,} of {asked.size:,} ranks)"
    return Answer(text, value, None, released=value)


def _fitted(asked: Asked) -> Mechanism:
    bounds = [tuple(asked["bounds"])] * len(asked["features"])
    target = tuple(asked["target_bounds"])
    return LinearRegression(epsilon=asked.epsilon, bounds=bounds, target_bounds=target, **asked.given("missing"))


def _line(asked: Asked, mechanism: Any, value: Any) -> Answer:
    found = dict(zip(asked["features"], value.coefficients, strict=True)) | {"constant": value.intercept}
    text = ", ".join(f"{name} {number_text(number)}" for name, number in found.items())
    return Answer(text, found, None, bars=found, released=value)


BOUNDED = (
    QuestionKind(
        "median", "The median, chosen by rank within bounds.", (COLUMN, _BOUNDS, _GRID, _MISSING), _ranked, _placed,
        reads=True, number=True, example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "quantile", "A quantile, chosen by rank within bounds.",
        (COLUMN, Key("quantile", "number", "which one, between 0 and 1", required=True), _BOUNDS, _GRID, _MISSING),
        _ranked, _placed, reads=True, number=True, example='column = "cost"\nquantile = 0.9\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "interquartile_range", "How far the middle half of the data spreads, from quartiles chosen within bounds.",
        (COLUMN, _BOUNDS, _GRID, _MISSING), _ranked, _placed, reads=True, number=True,
        example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "regression", "Linear regression: least squares, or for one feature and little data the median of slopes.",
        (Key("features", "texts", "the columns that explain", required=True),
         Key("target", "text", "the column that is explained", required=True),
         Key("bounds", "pair", "features are moved into these bounds", required=True),
         Key("target_bounds", "pair", "the target is moved into these bounds", required=True), _MISSING),
        _fitted, _line, reads=True,
        example='features = ["age"]\ntarget = "cost"\nbounds = [0, 100]\ntarget_bounds = [0, 1000]',
    ),
)  # fmt: skip
