"""The mechanisms of the library, each with parameters and neighbours that an audit by name uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from expost import mechanisms as m
from expost.accounting.losses import GaussianNoise
from expost.errors import InvalidValue
from expost.mechanism import Mechanism
from expost.verify.audit import neighbours


class Subject(NamedTuple):
    """A mechanism and pairs of neighbouring databases."""

    mechanism: Mechanism[Any, Any]
    pairs: list[tuple[Any, Any]]


def subject(name: str) -> Subject:
    """The subject of that name. Raises ``InvalidValue`` if there is none."""
    if name not in _SUBJECTS:
        raise InvalidValue(f"there is no mechanism {name!r} to audit: it is one of {', '.join(_SUBJECTS)}")
    kind, pairs, parameters = _SUBJECTS[name]
    mechanism = kind(**parameters)
    return Subject(mechanism, pairs(mechanism))


def names() -> tuple[str, ...]:
    """All subjects."""
    return tuple(_SUBJECTS)


_Pairs = list[tuple[Any, Any]]


def _number(mechanism: Any) -> _Pairs:
    return neighbours.numbers()


def _scores(mechanism: Any) -> _Pairs:
    return neighbours.scores()


def _answers(mechanism: Any) -> _Pairs:
    return neighbours.answers()


def _values(mechanism: Any) -> _Pairs:
    return neighbours.samples(0, 4, mechanism.guarantee.neighbours)


def _rows(mechanism: Any) -> _Pairs:
    return neighbours.tables(_values(mechanism))


def _labelled(mechanism: Any) -> _Pairs:
    return _last_changed(np.column_stack([np.repeat([0.0, 1.0], 8)] * 2))


def _fitted(mechanism: Any) -> _Pairs:
    return _last_changed(np.column_stack([np.linspace(0, 4, 16)] * 2))


def _last_changed(rows: Any) -> _Pairs:
    """These rows, and the same with 0 as the last target."""
    others = rows.copy()
    others[-1, -1] = 0
    return [(rows, others)]


def _counted(mechanism: m.TopK) -> _Pairs:
    """Counts at the bar, and a label that enters because of one person."""
    bar = mechanism.margin
    return [
        ({"a": bar, "b": bar}, {"a": bar, "b": bar + 1}),
        ({"a": bar, "b": 1, "c": 1}, {"a": bar, "b": 1, "c": 2}),
    ]


def _itself(data: Any, so_far: tuple[Any, ...]) -> Any:
    return data


_ONE: dict[str, Any] = {"epsilon": 1, "sensitivity": 1}
_ABOVE: dict[str, Any] = {"threshold": 0, "epsilon": 4, "sensitivity": 1}
_BOUNDS: dict[str, Any] = {"bounds": (0, 4), "epsilon": 1}
_PAIRED: dict[str, Any] = {"bounds": ((0, 4), (0, 4)), "epsilon": 1}
_RANKED: dict[str, Any] = {**_BOUNDS, "neighbours": "add-remove"}
_STABLE: dict[str, Any] = {"epsilon": 1, "delta": 0.05}
_PROPOSED: dict[str, Any] = {**_STABLE, "proposed": 2, "bounds": (0, 4)}
_LINE: dict[str, Any] = {"epsilon": 1, "bounds": [(0, 4)], "target_bounds": (0, 4)}
_MODEL: dict[str, Any] = {"epsilon": 1, "norm": 1}


def _decided(threshold: int) -> dict[str, Any]:
    """Levels that double, until it is known on which side of a threshold the data is."""
    return {"sensitivity": 1, "ratio": 2, "until": m.Decided(threshold=threshold, confidence="0.6")}


def _tuned() -> dict[str, Any]:
    models = tuple(m.OutputPerturbation(epsilon=epsilon, norm=1) for epsilon in (0.5, 1))
    return {"candidates": models, "score": m.CorrectPredictions(), "held_out": 0.5, "good_enough": 0.9, "runs": 4}


_TABLE: tuple[tuple[type, Callable[[Any], _Pairs], dict[str, Any]], ...] = (
    (m.Laplace, _number, _ONE),
    (m.Gaussian, _number, {**_ONE, "delta": 0.01}),
    (m.DiscreteGaussian, lambda _: neighbours.vectors(1), {"rho": 0.25, "delta": 0.01, "sensitivity": 1}),
    (m.Coin, _number, _ONE),
    (m.RandomizedResponse, _number, {"epsilon": 1, "choices": 3}),
    (m.Exponential, _scores, _ONE),
    (m.PermuteAndFlip, _scores, _ONE),
    (m.SparseVector, _answers, {**_ABOVE, "at_most": 3}),
    (m.AdaptiveSparseVector, _answers, {**_ABOVE, "at_most": 2}),
    (m.NoiseReduction, lambda _: [*neighbours.numbers(), (3, 4)], {"epsilon": 2, "levels": 4, **_decided(3)}),
    (m.GaussianReduction, _number, {"rho": 1, "delta": 0.01, "levels": 3, **_decided(2)}),
    (m.TopK, _counted, {"k": 2, "epsilon": 4, "delta": 0.05, "candidates": 2}),
    (m.Histogram, _values, {"epsilon": 1, "edges": (0, 1, 2, 4)}),
    (m.MeanOfRecords, _values, _BOUNDS),
    (m.VarianceOfRecords, _values, _BOUNDS),
    (m.TrimmedMean, _values, {**_BOUNDS, "trim": 0.25}),
    (m.CovarianceOfRecords, _rows, _PAIRED),
    (m.CorrelationOfRecords, _rows, _PAIRED),
    (m.MedianOfRecords, _values, _RANKED),
    (m.QuantileOfRecords, _values, {**_RANKED, "quantile": 0.9}),
    (m.QuantilesOfRecords, _values, {**_RANKED, "quantiles": (0.25, 0.75)}),
    (m.InterquartileRange, _values, _RANKED),
    (m.DistributionFunction, _values, {**_RANKED, "points": 3}),
    (m.QuantileLadder, _values, {**_RANKED, "quantile": 0.5, "within": 1}),
    (m.StableMedian, _values, _PROPOSED),
    (m.StableTrimmedMean, _values, {**_PROPOSED, "trim": 0.25}),
    (m.StableInterquartileRange, _values, _STABLE),
    (m.StableQuantile, _values, {**_PROPOSED, "quantile": 0.75}),
    (m.StableInterquantileRange, _values, {**_STABLE, "low": 0.1, "high": 0.9}),
    (m.StableNoisyInterquartileRange, _values, _STABLE),
    (m.StableRegression, _fitted, {**_STABLE, "cell": 0.5, "blocks": 4, "bounds": (0, 4), "target_bounds": (0, 4)}),
    (m.PrivateRange, _values, {"epsilon": 1, "neighbours": "add-remove"}),
    (m.TypicalRange, _values, _RANKED),
    (
        m.Iterative,
        _number,
        {"steps": (GaussianNoise(2),) * 3, "stops": (1, 3), "delta": 0.01, "sensitivity": 1, "compute": _itself},
    ),
    (m.LogisticDescent, _labelled, {**_MODEL, "delta": 0.01, "steps": 4, "every": 2}),
    (m.TestedLogisticRegression, _labelled, {**_MODEL, "test_share": 0.5, "threshold": 0.5}),
    (m.Tuning, _labelled, _tuned()),
    (m.RegressionOfRecords, _fitted, _LINE),
    (m.LeastSquares, _fitted, _LINE),
    (m.TheilSen, _fitted, _LINE),
    (m.OutputPerturbation, _labelled, _MODEL),
    (m.ObjectivePerturbation, _labelled, _MODEL),
)
"""A mechanism, pairs of databases for it, and its parameters."""
_SUBJECTS = {kind.__name__: (kind, pairs, parameters) for kind, pairs, parameters in _TABLE}
