"""Propose-test-release: answers with little noise where the data is stable, or none, without bounds."""

from __future__ import annotations

from math import inf
from typing import Any

from expost import mechanisms
from expost.cost import exact
from expost.errors import InvalidValue
from expost.frame import number_text, with_error
from expost.mechanism import WITHHELD, Mechanism
from expost.mechanisms.stability.quantile_range import Bin
from expost.questions.regression import terms_of
from expost.study.grammar import Key
from expost.study.kinds import keys
from expost.study.kinds.kind import (
    CONFIDENCE,
    Accuracy,
    Answer,
    Asked,
    NoBar,
    QuestionKind,
    Unscaled,
)
from expost.study.model import Question

TESTED = ("released", "withheld")
_PTR = "a private test of stability, then noise (propose-test-release)"
_LOCATION = (
    keys.COLUMN,
    Key("scale", "scale",
        "about how far the data spreads: a number, or the name of an earlier stable_interquartile_range",
        required=True, refers_to="stable_interquartile_range"),
    Key("fallback", "number", "the scale if the earlier question withheld its answer"),
    Key("slack", "number", "a larger one makes an answer likelier and noisier; 4 by default, for a trimmed mean 2"),
    Key("bounds", "pair", "values are moved into these bounds, which makes answers better; none by default"),
    keys.FILLED,
)  # fmt: skip
_WITHHELD = Answer("withheld: the data does not allow a safe answer at this ε", None, outcomes=("withheld",))


def _spread(asked: Asked) -> Mechanism:
    low, high = asked.get("quantiles", (0.25, 0.75))
    return mechanisms.StableInterquantileRange(
        low=low, high=high, epsilon=asked.epsilon, delta=asked.delta, **asked.given("grid", "missing")
    )


def _bin(asked: Asked, mechanism: Any, value: Any) -> Answer:
    if value is WITHHELD:
        return _WITHHELD
    text = f"between {number_text(value.lower)} and {number_text(value.upper)}" if value.upper else "0"
    return Answer(text, [value.lower, value.upper], None, ("released",), released=value)


def _scale(asked: Asked) -> float:
    """The scale: stated, or the upper edge of what an earlier question released."""
    given = asked["scale"]
    if not isinstance(given, str):
        return float(given)
    found = asked.earlier.get(given)
    if found is not None and isinstance(found.released, Bin) and found.released.upper > 0:
        return found.released.upper
    if "fallback" in asked.question.values:
        return float(asked["fallback"])
    raise Unscaled(f"it needs the scale from {given!r}, which was not released, and has no 'fallback'")


def _earlier_scale(asked: Asked) -> dict[str, float]:
    """The scale, by the name of the question that released one: also if it is 0, and the fallback is used.

    Raises if there is no scale.
    """
    found, scale = asked.earlier.get(str(asked["scale"])), _scale(asked)
    return {asked["scale"]: scale} if found is not None and isinstance(found.released, Bin) else {}


def _may_lack_scale(question: Question) -> bool:
    return isinstance(question.values["scale"], str) and "fallback" not in question.values


def _location(asked: Asked) -> Mechanism:
    statistic: Any = {
        "stable_median": mechanisms.StableMedian,
        "stable_quantile": mechanisms.StableQuantile,
        "stable_trimmed_mean": mechanisms.StableTrimmedMean,
    }
    return statistic[asked.question.kind].scaled(  # type: ignore[no-any-return]
        _scale(asked),
        size=asked.size,
        epsilon=asked.epsilon,
        delta=asked.delta,
        **asked.given("quantile", "trim", "slack", "bounds", "missing"),
    )


def _placed(asked: Asked, mechanism: Any, value: Any) -> Answer:
    if value is WITHHELD:
        return _WITHHELD
    error = _error(asked, mechanism)
    return Answer(with_error(value, error), value, error, ("released",), released=value)


def _placed_accuracy(asked: Asked, mechanism: Any) -> Accuracy | NoBar:
    """Where the scale is stated, and not an earlier answer."""
    if isinstance(asked["scale"], str):
        return NoBar(f"it depends on the answer of {asked['scale']!r}", later=True)
    return Accuracy(_error(asked, mechanism), "if released")


def _widths(mechanism: mechanisms.StableRegression, number: int) -> list[float]:
    """How far rounding moves each coefficient at most."""
    widths = mechanism.cell if isinstance(mechanism.cell, tuple) else (mechanism.cell,) * number
    return [float(exact(width, "cell")) / 2 for width in widths]


def _rounded(asked: Asked, mechanism: mechanisms.StableRegression) -> Accuracy:
    widest = max(_widths(mechanism, len(asked["features"]) + 1))
    return Accuracy(widest, "each at most, if released")


def _error(asked: Asked, mechanism: Any) -> float:
    low, high = asked.get("bounds", (-inf, inf))
    return float(min(mechanism.error_bound(CONFIDENCE), high - low))


def _regression(asked: Asked) -> Mechanism:
    cell, features = asked["cell"], len(asked["features"])
    if isinstance(cell, list) and len(cell) != features + 1:
        raise InvalidValue(f"'cell' is one width, or {features + 1}: one for each feature, the constant's last")
    return mechanisms.StableRegression(
        cell=tuple(cell) if isinstance(cell, list) else cell,
        blocks=asked["blocks"],
        bounds=tuple(asked["bounds"]),
        target_bounds=tuple(asked["target_bounds"]),
        epsilon=asked.epsilon,
        delta=asked.delta,
        **asked.given("grids", "missing"),
    )


def _line(asked: Asked, mechanism: mechanisms.StableRegression, value: Any) -> Answer:
    if value is WITHHELD:
        return _WITHHELD
    constant, *features = terms_of(asked["features"], "constant")
    names = [*features, constant]
    found = dict(zip(names, value.values, strict=True))
    text = ", ".join(
        f"{name} {number_text(number)} ± {number_text(off)}"
        for (name, number), off in zip(found.items(), _widths(mechanism, len(names)), strict=True)
    )
    return Answer(text, found, None, ("released",), released=value)


def _of_ranks(name: str, help_: str, *own: Key, example: str) -> QuestionKind:
    return QuestionKind(
        name, f"{help_} May withhold.", (*_LOCATION, *own), _location, _placed, reads=True, delta=True, number=True,
        outcomes=TESTED, noise=_PTR, accuracy=_placed_accuracy, made_from=_earlier_scale, may_lack=_may_lack_scale,
        example=f'column = "cost"\n{example}scale = 100\nmissing = 0',
    )  # fmt: skip


ROBUST = (
    QuestionKind(
        "stable_interquartile_range", "How far the middle half of the data spreads, to within a factor. May withhold.",
        (keys.COLUMN, Key("quantiles", "pair", "between which quantiles; [0.25, 0.75] by default"),
         Key("grid", "number", "the factor between bins; 2 by default"), keys.FILLED),
        _spread, _bin, reads=True, delta=True, outcomes=TESTED, noise=_PTR,
        accuracy=lambda asked, mechanism: NoBar("the answer is a range itself"),
        stand_in=Answer("", None, released=Bin(1, 1.0, 2.0)), example='column = "cost"\nmissing = 0',
    ),
    _of_ranks("stable_median", "The median.", example=""),
    _of_ranks("stable_quantile", "A quantile.", keys.QUANTILE, example="quantile = 0.9\n"),
    _of_ranks("stable_trimmed_mean", "The mean without the lowest and the highest values.",
              Key("trim", "number", "the share left out on either side", required=True), example="trim = 0.1\n"),
    QuestionKind(
        "stable_regression", "Linear regression, where most parts of the data agree. May withhold.",
        (keys.FEATURES, keys.TARGET,
         Key("cell", "widths", "how coarse coefficients are: one width, or one each, the constant's last",
             required=True),
         Key("blocks", "whole", "the number of parts that the data is dealt into", required=True),
         keys.FEATURE_BOUNDS, keys.TARGET_BOUNDS,
         Key("grids", "whole", "the number of grids that are tried; 2 by default"), keys.FILLED),
        _regression, _line, reads=True, delta=True, outcomes=TESTED, noise=_PTR, accuracy=_rounded,
        covers="half a cell, to which coefficients are rounded; not what clipping to bounds or leaving out rows "
               "changes",
        example='features = ["age"]\ntarget = "cost"\ncell = 5\nblocks = 200\nbounds = [0, 100]\n'
                "target_bounds = [0, 1000]\nmissing = 0",
    ),
)  # fmt: skip
