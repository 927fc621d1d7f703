"""Statistics of ranks and robust regression: answers with little noise where the data is stable, or none."""

from __future__ import annotations

from math import log
from typing import Any

from expost.cost import exact
from expost.errors import InvalidValue
from expost.mechanism import WITHHELD, Mechanism
from expost.mechanisms import (
    StableInterquantileRange,
    StableMedian,
    StableQuantile,
    StableRegression,
    StableTrimmedMean,
)
from expost.mechanisms.stability.quantile_range import Bin
from expost.study.grammar import Key
from expost.study.kinds.kind import (
    COLUMN,
    CONFIDENCE,
    Answer,
    Asked,
    Kind,
    Unscaled,
    need_columns,
    number_text,
    with_error,
)

TESTED = ("released", "withheld")
_BOUNDS = Key("bounds", "pair", "values are moved into these bounds; they make answers better, and may be left out")
_MISSING = Key("missing", "number", "what an empty value counts as; 0 if it is left out")
_SCALE = Key("scale", "scale", "about how far the data spreads: a number, or the name of an earlier "
             "interquartile_range", required=True)  # fmt: skip
_FALLBACK = Key("fallback", "number", "the scale if the earlier question withheld its answer")
_SLACK = Key("slack", "number", "more of it makes an answer likelier and noisier; 4 (trimmed mean: 2) if left out")
_LOCATION = (COLUMN, _SCALE, _FALLBACK, _SLACK, _BOUNDS, _MISSING)


def column(asked: Asked) -> Any:
    """The column, read when it is paid for."""
    return asked.table.column(asked["column"])


def table_of(asked: Asked) -> Any:
    """Features and target, read when they are paid for."""
    return asked.table.column(*asked["features"], asked["target"])


def optional(asked: Asked, *names: str) -> dict[str, Any]:
    """Those of these keys that the study has."""
    return {name: asked[name] for name in names if name in asked.question.values}


def _spread(asked: Asked) -> Mechanism:
    need_columns(asked)
    low, high = asked.get("quantiles", (0.25, 0.75))
    return StableInterquantileRange(
        low=low, high=high, epsilon=asked.epsilon, delta=asked.delta, **optional(asked, "grid", "missing")
    )


def _bin(asked: Asked, mechanism: Any, value: Any) -> Answer:
    if value is WITHHELD:
        return withheld()
    text = f"between {number_text(value.lower)} and {number_text(value.upper)}" if value.upper else "0"
    return Answer(text, [value.lower, value.upper], None, ("released",), released=value)


def withheld() -> Answer:
    """No answer, because the data is not stable enough; cheaper than one."""
    return Answer("withheld: the data does not allow a safe answer at this ε", None, outcomes=("withheld",))


def scale_of(asked: Asked) -> float:
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


def _place(asked: Asked) -> dict[str, Any]:
    need_columns(asked)
    rest = optional(asked, "slack", "bounds", "missing")
    return {"size": asked.size, "epsilon": asked.epsilon, "delta": asked.delta, **rest}


def _median(asked: Asked) -> Mechanism:
    return StableMedian.scaled(scale_of(asked), **_place(asked))


def _quantile(asked: Asked) -> Mechanism:
    return StableQuantile.scaled(scale_of(asked), quantile=asked["quantile"], **_place(asked))


def _trimmed(asked: Asked) -> Mechanism:
    return StableTrimmedMean.scaled(scale_of(asked), trim=asked["trim"], **_place(asked))


def _location(asked: Asked, mechanism: Any, value: Any) -> Answer:
    if value is WITHHELD:
        return withheld()
    proposal = mechanism._proposal
    error = float(proposal.proposed / proposal.epsilon) * log(1 / (1 - CONFIDENCE))
    if "bounds" in asked.question.values:  # all values lie within, so this can only help
        low, high = asked["bounds"]
        value, error = min(max(value, low), high), min(error, high - low)
    return Answer(with_error(value, error), value, error, ("released",), released=value)


def _regression(asked: Asked) -> Mechanism:
    need_columns(asked)
    cell = asked["cell"]
    features = len(asked["features"])
    if isinstance(cell, list) and len(cell) != features + 1:
        raise InvalidValue(f"'cell' is one width, or {features + 1}: one for each feature, the intercept's last")
    return StableRegression(
        cell=tuple(cell) if isinstance(cell, list) else cell,
        blocks=asked["blocks"],
        bounds=tuple(asked["bounds"]),
        target_bounds=tuple(asked["target_bounds"]),
        epsilon=asked.epsilon,
        delta=asked.delta,
        **optional(asked, "grids", "missing"),
    )


def _coefficients(asked: Asked, mechanism: StableRegression, value: Any) -> Answer:
    if value is WITHHELD:
        return withheld()
    names = [*asked["features"], "constant"]
    widths = mechanism.cell if isinstance(mechanism.cell, tuple) else (mechanism.cell,) * len(names)
    found = dict(zip(names, value.values, strict=True))
    text = ", ".join(
        f"{name} {number_text(number)} ± {number_text(float(exact(width, 'cell')) / 2)}"
        for (name, number), width in zip(found.items(), widths, strict=True)
    )
    return Answer(text, found, None, ("released",), bars=found, released=value)


SPREAD = Kind(
    "interquartile_range", "How far the middle half of the data spreads, to within a factor. May withhold.",
    (COLUMN, Key("quantiles", "pair", "between which quantiles; [0.25, 0.75] if left out"),
     Key("grid", "number", "the factor between bins; 2 if left out"), _MISSING),
    _spread, _bin, on=column, delta=True, outcomes=TESTED, example='column = "cost"',
)  # fmt: skip
MEDIAN = Kind(
    "median", "The median. May withhold.", _LOCATION, _median, _location, on=column, delta=True, outcomes=TESTED,
    example='column = "cost"\nscale = 100',
)  # fmt: skip
QUANTILE = Kind(
    "quantile", "A quantile. May withhold.",
    (*_LOCATION, Key("quantile", "number", "which one, between 0 and 1", required=True)),
    _quantile, _location, on=column, delta=True, outcomes=TESTED,
    example='column = "cost"\nquantile = 0.9\nscale = 100',
)  # fmt: skip
TRIMMED_MEAN = Kind(
    "trimmed_mean", "The mean without the lowest and the highest values. May withhold.",
    (*_LOCATION, Key("trim", "number", "the share left out on either side", required=True)),
    _trimmed, _location, on=column, delta=True, outcomes=TESTED, example='column = "cost"\ntrim = 0.1\nscale = 100',
)  # fmt: skip
REGRESSION = Kind(
    "regression", "Linear regression, where most parts of the data agree. May withhold.",
    (Key("features", "texts", "the columns that explain", required=True),
     Key("target", "text", "the column that is explained", required=True),
     Key("cell", "widths", "how coarse coefficients are: one width, or one each, the constant's last", required=True),
     Key("blocks", "whole", "into how many parts the data is dealt", required=True),
     Key("bounds", "pair", "features are moved into these bounds", required=True),
     Key("target_bounds", "pair", "the target is moved into these bounds", required=True),
     Key("grids", "whole", "how many grids are tried; 2 if left out"), _MISSING),
    _regression, _coefficients, on=table_of, delta=True, outcomes=TESTED,
    example='features = ["age"]\ntarget = "cost"\ncell = 5\nblocks = 200\nbounds = [0, 100]\ntarget_bounds = [0, 1000]',
)  # fmt: skip
