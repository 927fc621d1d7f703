"""Quantiles, and linear regression within declared bounds: pure ε, and always an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from expost.cost import exact
from expost.data import PrivateQuantiles, Ranks
from expost.frame import number_text
from expost.mechanism import WITHHELD, Mechanism
from expost.noise.grid import Grid
from expost.questions import LinearRegression, Quantile, Statistics
from expost.study.grammar import Key
from expost.study.kinds import keys
from expost.study.kinds.groups import OF_MODELS, grouped
from expost.study.kinds.kind import (
    CONFIDENCE,
    Accuracy,
    Answer,
    Asked,
    NoBar,
    OfGroups,
    QuestionKind,
    known_settings,
    statistic_of,
)
from expost.study.kinds.numbers import settings_of

_BOUNDS = Key("bounds", "pair", "the lowest and the highest answer; values are moved into these bounds. Without them "
              "values may have any size, and it takes more of them for an answer: with too few it is "
              "withheld")  # fmt: skip
_GRID = Key("grid", "above 0", "what values were measured to, such as 0.01; values are rounded to a power of two that "
            "is not larger. By default 1 for whole numbers, and otherwise about a millionth of the bounds")  # fmt: skip
_RANKS = (_BOUNDS, _GRID, keys.DROPPED, keys.WHERE)
_CHOSEN = "chosen at random by rank (permute-and-flip)"
TOO_FEW_VALUES = Answer(
    "withheld: there are too few values for this ε; state 'bounds', or more ε", None, outcomes=("withheld",)
)
"""Of quantiles without bounds."""
MANY_RANKS = 100
"""From which on an error in ranks says little without the number of values."""
_QUARTILES = (Fraction(1, 4), Fraction(3, 4))


def _ranked(asked: Asked) -> Mechanism:
    question: Ranks = asked.rows.asked(_quantile_of(asked))
    return asked.made(question)


def _quantile_of(asked: Asked) -> Quantile:
    grid = Grid.within(exact(asked["grid"], "grid")).step if "grid" in asked.question.values else None
    bounds = tuple(asked["bounds"]) if "bounds" in asked.question.values else None
    return Quantile(asked["column"], _levels(asked), bounds, asked.get("missing", "drop"), grid)


def _levels(asked: Asked) -> Any:
    named = {"median": Fraction(1, 2), "interquartile_range": _QUARTILES}
    return named.get(asked.question.kind) or asked.get("quantiles", asked.get("quantile"))


def _placed(asked: Asked, value: float, off: str) -> Answer:
    return Answer(f"{number_text(value)} ({off})", value, None, beside=off, released=value)


def _range(asked: Asked, value: tuple[float, float], off: str) -> Answer:
    low, high = value
    text = f"{number_text(high - low)}, from {number_text(low)} to {number_text(high)} ({off})"
    return Answer(text, high - low, None, beside=off, released=value)


def _ranks_off(asked: Asked, mechanism: PrivateQuantiles) -> Accuracy:
    return Accuracy(float(mechanism.error_bound(CONFIDENCE)), "ranks", within=asked.most_values)


def _several(asked: Asked, value: Any, off: str) -> Answer:
    found = dict(zip(map(str, asked["quantiles"]), value if isinstance(value, tuple) else (value,), strict=True))
    listed = ", ".join(f"{level}: {number_text(number)}" for level, number in found.items())
    return Answer(f"{listed} ({off})", found, None, beside=off, released=value)


def _off(asked: Asked, mechanism: PrivateQuantiles) -> str:
    of = f" of {asked.size:,}" if asked.size and mechanism.question.relation == "substitute" else _at_most(asked)
    return _ranks_text(mechanism.error_bound(CONFIDENCE), of)


def _at_most(asked: Asked) -> str:
    """Of how many ranks there are at most, where that is public."""
    return f" of at most {asked.most_values:,}" if asked.most_values else ""


def _ranks_text(off: float, of: str = "") -> str:
    """How far off; many ranks may be few or all of them, which only the number of values can say."""
    text = f"off by at most {number_text(off)}{of} rank{'s' * (off != 1)}"
    return text if of or off < MANY_RANKS else f"{text}; whether that is much cannot be judged, their number is private"


_AnswerOf = Callable[[Asked, Any, str], Answer]


def _of_all(answer_of: _AnswerOf) -> Callable[[Asked, PrivateQuantiles, Any], Answer]:
    """The answer about all rows."""

    def answer(asked: Asked, mechanism: PrivateQuantiles, value: Any) -> Answer:
        return TOO_FEW_VALUES if value is WITHHELD else answer_of(asked, value, _off(asked, mechanism))

    return answer


def _of_each(answer_of: _AnswerOf) -> OfGroups:
    """The answers about each group of rows."""

    def answer(asked: Asked, value: Any, error: float | None) -> Answer:
        assert error is not None
        return TOO_FEW_VALUES if value is None else answer_of(asked, value, _ranks_text(error, _at_most(asked)))

    return OfGroups(_quantile_of, answer, "ranks each", lambda asked: asked.most_values)


def _fitted(asked: Asked) -> Mechanism:
    question: Statistics = asked.rows.asked(_regression_of(asked))
    return asked.made(question)


def _regression_of(asked: Asked) -> LinearRegression:
    return LinearRegression(
        tuple(asked["features"]),
        asked["target"],
        tuple(asked["bounds"]),
        tuple(asked["target_bounds"]),
        asked.get("missing", "drop"),
    )


def _line(asked: Asked, mechanism: Any, value: Any) -> Answer:
    return _line_of_group(asked, mechanism.answer_of(value, None), None)


def _line_of_group(asked: Asked, fit: Any, error: float | None) -> Answer:
    found = dict(zip(asked["features"], fit.coefficients, strict=True)) | {"constant": fit.intercept}
    text = ", ".join(f"{name} {number_text(number)}" for name, number in found.items())
    return Answer(text, found, None, beside="", released=fit)


def _no_bar(asked: Asked, mechanism: Any) -> NoBar:
    return NoBar("coefficients are computed from noisy sums, and how far off that puts them depends on the data")


def column_settings(question: Ranks) -> dict[str, Any]:
    """The column of a question about ranks, as a study states it."""
    value: Any = question.value
    bounds = [*value.bounds] if hasattr(value, "bounds") else None
    return known_settings(column=value.expression.name, missing=value.missing, bounds=bounds)


def _median_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    question = mechanism.question
    if isinstance(question, Ranks) and question.levels == (Fraction(1, 2),):
        yield from _rank_settings(question, {})


def _quantile_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    question = mechanism.question
    if isinstance(question, Ranks) and len(question.levels) == 1:
        yield from _rank_settings(question, {"quantile": float(question.levels[0])})


def _quantiles_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    if isinstance(mechanism.question, Ranks):
        yield from _rank_settings(mechanism.question, {"quantiles": [*map(float, mechanism.question.levels)]})


def _rank_settings(question: Ranks, levels: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {**levels, **column_settings(question)}
    grid = getattr(question.value, "grid", None)
    if grid is not None:
        yield {**levels, **column_settings(question), "grid": float(grid.step)}


def _regression_settings(mechanism: Any) -> Iterator[dict[str, Any]]:
    """With one pair of bounds, as studies have it, if all features have the same."""
    if isinstance(statistic := statistic_of(mechanism.question), LinearRegression):
        found = settings_of(statistic)
        if isinstance(found["bounds"][0], list) and all(pair == found["bounds"][0] for pair in found["bounds"]):
            found["bounds"] = found["bounds"][0]
        yield found


BOUNDED = tuple(map(grouped, (
    QuestionKind(
        "median", "The median, chosen by rank.", (keys.COLUMN, *_RANKS), _ranked, _of_all(_placed), number=True,
        noise=_CHOSEN, accuracy=_ranks_off, of_groups=_of_each(_placed), settings=_median_settings,
        example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "quantile", "A quantile, chosen by rank.",
        (keys.COLUMN, keys.QUANTILE, *_RANKS),
        _ranked, _of_all(_placed), number=True, noise=_CHOSEN, accuracy=_ranks_off, of_groups=_of_each(_placed),
        settings=_quantile_settings, example='column = "cost"\nquantile = 0.9\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "quantiles", "Several quantiles at once, chosen jointly by rank.",
        (keys.COLUMN, Key("quantiles", "numbers", "which ones, from 0 to 1, ascending", required=True), *_RANKS),
        _ranked, _of_all(_several), noise=_CHOSEN, accuracy=_ranks_off, of_groups=_of_each(_several),
        settings=_quantiles_settings, example='column = "cost"\nquantiles = [0.1, 0.5, 0.9]\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "interquartile_range", "How far the middle half of the data spreads, from quartiles chosen by rank.",
        (keys.COLUMN, *_RANKS), _ranked, _of_all(_range), number=True, noise=_CHOSEN, accuracy=_ranks_off,
        of_groups=_of_each(_range),
        example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "regression", "Linear regression: least squares, or for one feature and little data the median of slopes.",
        (keys.FEATURES, keys.TARGET, keys.FEATURE_BOUNDS, keys.TARGET_BOUNDS, keys.EMPTY, keys.WHERE),
        _fitted, _line, noise="on sums of squares and products, or a median of slopes chosen by rank",
        accuracy=_no_bar, settings=_regression_settings, of_groups=OfGroups(_regression_of, _line_of_group, OF_MODELS),
        example='features = ["age"]\ntarget = "cost"\nbounds = [0, 100]\ntarget_bounds = [0, 1000]',
    ),
)))  # fmt: skip
