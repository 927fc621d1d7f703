"""Quantiles, and linear regression within declared bounds: pure ε, and always an answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from expost.cost import exact
from expost.data import PrivateQuantiles
from expost.frame import number_text, with_error
from expost.mechanism import WITHHELD
from expost.noise.grid import Grid
from expost.questions import LinearRegression, Median, OnColumns, Quantile, Quartiles
from expost.questions.regression import NamedFit, terms_of
from expost.study.grammar import Key
from expost.study.kinds import keys
from expost.study.kinds.groups import NOISY_SUMS, OF_MODELS, grouped
from expost.study.kinds.kind import (
    CONFIDENCE,
    Accuracy,
    Answer,
    Asked,
    NoBar,
    OfGroups,
    QuestionKind,
)

_BOUNDS = Key("bounds", "pair", "the lowest and the highest answer; values are moved into these bounds. Without them "
              "values may have any size, and it takes more of them for an answer: with too few it is "
              "withheld")  # fmt: skip
_GRID = Key("grid", "above 0", "what values were measured to, such as 0.01; values are rounded to a power of two that "
            "is not larger. By default 1 for whole numbers, and otherwise about a millionth of the bounds",
            read=lambda grid: Grid.within(exact(grid, "grid")).step)  # fmt: skip
_FEATURE_RANGES = replace(
    keys.FEATURE_BOUNDS, type="ranges", help=f"{keys.FEATURE_BOUNDS.help}: one pair for all, or a pair for each"
)
_RANKS = (_BOUNDS, _GRID, keys.DROPPED, keys.WHERE)
_CHOSEN = "chosen at random by rank (permute-and-flip)"
TOO_FEW_VALUES = Answer(
    "withheld: there are too few values for this ε; state 'bounds', or more ε", None, outcomes=("withheld",)
)
"""Of quantiles without bounds."""
MANY_RANKS = 100
"""From which on an error in ranks says little without the number of values."""


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
    text = f"off by at most {number_text(off)} rank{'s' * (off != 1)}{of}"
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

    return OfGroups(answer, "ranks each", lambda asked: asked.most_values)


def _line(asked: Asked, mechanism: Any, value: Any) -> Answer:
    return _line_of_group(asked, mechanism.answer_of(value, None), None)


def _line_of_group(asked: Asked, fit: NamedFit, error: float | None) -> Answer:
    """The features first. ± holds for all numbers of a fit at once; a group is said to be by itself."""
    constant, *features = terms_of(asked["features"], "constant")
    fitted, *slopes = fit.terms.values()
    named = dict(zip([*features, constant], [*slopes, fitted], strict=True))
    text = ", ".join(f"{name} {with_error(number.value, number.error)}" for name, number in named.items())
    return Answer(text, {name: number.value for name, number in named.items()}, None, beside="", released=fit)


def _no_bar(asked: Asked, mechanism: Any) -> NoBar:
    later = not isinstance(mechanism, OnColumns)
    return NOISY_SUMS if later else NoBar("how far noise moves a fit to records depends on the data")


BOUNDED = tuple(map(grouped, (
    QuestionKind(
        "median", "The median, chosen by rank.", (keys.COLUMN, *_RANKS), Median, _of_all(_placed), number=True,
        noise=_CHOSEN, accuracy=_ranks_off, of_groups=_of_each(_placed),
        example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "quantile", "A quantile, chosen by rank.",
        (keys.COLUMN, keys.QUANTILE, *_RANKS),
        Quantile, _of_all(_placed), number=True, noise=_CHOSEN, accuracy=_ranks_off, of_groups=_of_each(_placed),
        example='column = "cost"\nquantile = 0.9\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "quantiles", "Several quantiles at once, chosen jointly by rank.",
        (keys.COLUMN, Key("quantiles", "numbers", "which ones, from 0 to 1, ascending", required=True,
                          setting="quantile"), *_RANKS),
        Quantile, _of_all(_several), noise=_CHOSEN, accuracy=_ranks_off, of_groups=_of_each(_several),
        example='column = "cost"\nquantiles = [0.1, 0.5, 0.9]\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "interquartile_range", "How far the middle half of the data spreads, from quartiles chosen by rank.",
        (keys.COLUMN, *_RANKS), Quartiles, _of_all(_range), number=True, noise=_CHOSEN, accuracy=_ranks_off,
        of_groups=_of_each(_range),
        example='column = "cost"\nbounds = [0, 1000]',
    ),
    QuestionKind(
        "regression", "Linear regression: least squares, or for one feature and little data the median of slopes.",
        (keys.FEATURES, keys.TARGET, _FEATURE_RANGES, keys.TARGET_BOUNDS, keys.EMPTY, keys.WHERE,
         keys.SUMS_NOISE),
        LinearRegression, _line, noised=Asked.noised,
        noise="on sums of squares and products, or a median of slopes chosen by rank",
        accuracy=_no_bar, of_groups=OfGroups(_line_of_group, OF_MODELS),
        example='features = ["age"]\ntarget = "cost"\nbounds = [0, 100]\ntarget_bounds = [0, 1000]',
    ),
)))  # fmt: skip
