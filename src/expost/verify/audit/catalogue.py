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
    return _SUBJECTS[name]()


def names() -> tuple[str, ...]:
    """All subjects."""
    return tuple(_SUBJECTS)


def _values(mechanism: Mechanism[Any, Any]) -> Subject:
    return Subject(mechanism, neighbours.samples(0, 4, mechanism.guarantee.neighbours))


def _rows(mechanism: Mechanism[Any, Any]) -> Subject:
    return Subject(mechanism, neighbours.tables(neighbours.samples(0, 4, mechanism.guarantee.neighbours)))


def _labelled(mechanism: Mechanism[Any, Any]) -> Subject:
    rows = np.column_stack([np.repeat([0.0, 1.0], 8), np.repeat([0.0, 1.0], 8)])
    return Subject(mechanism, [(rows, _last_changed(rows))])


def _fitted(mechanism: Mechanism[Any, Any]) -> Subject:
    rows = np.column_stack([np.linspace(0, 4, 16)] * 2)
    return Subject(mechanism, [(rows, _last_changed(rows))])


def _counted(mechanism: m.TopK) -> Subject:
    """Counts at the bar, and a label that enters because of one person."""
    bar = mechanism.margin
    pairs: list[tuple[Any, Any]] = [
        ({"a": bar, "b": bar}, {"a": bar, "b": bar + 1}),
        ({"a": bar, "b": 1, "c": 1}, {"a": bar, "b": 1, "c": 2}),
    ]
    return Subject(mechanism, pairs)


def _last_changed(rows: Any) -> Any:
    """The last target is 0."""
    others = rows.copy()
    others[-1, -1] = 0
    return others


def _itself(data: Any, so_far: tuple[Any, ...]) -> Any:
    return data


_BOUNDS: dict[str, Any] = {"bounds": (0, 4), "epsilon": 1}
_RANKED: dict[str, Any] = {**_BOUNDS, "neighbours": "add-remove"}
_SUBJECTS: dict[str, Callable[[], Subject]] = {
    "Laplace": lambda: Subject(m.Laplace(epsilon=1, sensitivity=1), neighbours.numbers()),
    "Gaussian": lambda: Subject(
        m.Gaussian(epsilon=1, delta=0.01, sensitivity=1),
        neighbours.numbers(),
    ),
    "DiscreteGaussian": lambda: Subject(m.DiscreteGaussian(rho=0.25, delta=0.01, sensitivity=1), neighbours.vectors(1)),
    "Coin": lambda: Subject(m.Coin(epsilon=1, sensitivity=1), neighbours.numbers()),
    "RandomizedResponse": lambda: Subject(m.RandomizedResponse(epsilon=1, choices=3), neighbours.numbers()),
    "Exponential": lambda: Subject(m.Exponential(epsilon=1, sensitivity=1), neighbours.scores()),
    "PermuteAndFlip": lambda: Subject(m.PermuteAndFlip(epsilon=1, sensitivity=1), neighbours.scores()),
    "SparseVector": lambda: Subject(
        m.SparseVector(threshold=0, at_most=3, epsilon=4, sensitivity=1), neighbours.answers()
    ),
    "AdaptiveSparseVector": lambda: Subject(
        m.AdaptiveSparseVector(threshold=0, at_most=2, epsilon=4, sensitivity=1), neighbours.answers()
    ),
    "NoiseReduction": lambda: Subject(
        m.NoiseReduction(epsilon=2, sensitivity=1, levels=4, ratio=2, until=m.Decided(threshold=3, confidence="0.6")),
        [*neighbours.numbers(), (3, 4)],
    ),
    "GaussianReduction": lambda: Subject(
        m.GaussianReduction(
            rho=1, delta=0.01, sensitivity=1, levels=3, ratio=2, until=m.Decided(threshold=2, confidence="0.6")
        ),
        neighbours.numbers(),
    ),
    "TopK": lambda: _counted(m.TopK(k=2, epsilon=4, delta=0.05, candidates=2)),
    "Histogram": lambda: _values(m.Histogram(epsilon=1, edges=(0, 1, 2, 4))),
    "Mean": lambda: _values(m.Mean(**_BOUNDS)),
    "Variance": lambda: _values(m.Variance(**_BOUNDS)),
    "TrimmedMean": lambda: _values(m.TrimmedMean(trim=0.25, **_BOUNDS)),
    "Covariance": lambda: _rows(m.Covariance(epsilon=1, bounds=((0, 4), (0, 4)))),
    "Correlation": lambda: _rows(m.Correlation(epsilon=1, bounds=((0, 4), (0, 4)))),
    "Median": lambda: _values(m.Median(**_RANKED)),
    "Quantile": lambda: _values(m.Quantile(quantile=0.9, **_RANKED)),
    "Quantiles": lambda: _values(m.Quantiles(quantiles=(0.25, 0.75), **_RANKED)),
    "InterquartileRange": lambda: _values(m.InterquartileRange(**_RANKED)),
    "DistributionFunction": lambda: _values(m.DistributionFunction(points=3, **_RANKED)),
    "QuantileLadder": lambda: _values(m.QuantileLadder(quantile=0.5, within=1, **_RANKED)),
    "StableMedian": lambda: _values(m.StableMedian(epsilon=1, delta=0.05, proposed=2, bounds=(0, 4))),
    "StableTrimmedMean": lambda: _values(
        m.StableTrimmedMean(trim=0.25, epsilon=1, delta=0.05, proposed=2, bounds=(0, 4))
    ),
    "StableInterquartileRange": lambda: _values(m.StableInterquartileRange(epsilon=1, delta=0.05)),
    "StableQuantile": lambda: _values(
        m.StableQuantile(quantile=0.75, epsilon=1, delta=0.05, proposed=2, bounds=(0, 4))
    ),
    "StableInterquantileRange": lambda: _values(m.StableInterquantileRange(low=0.1, high=0.9, epsilon=1, delta=0.05)),
    "StableNoisyInterquartileRange": lambda: _values(m.StableNoisyInterquartileRange(epsilon=1, delta=0.05)),
    "StableRegression": lambda: _fitted(
        m.StableRegression(cell=0.5, blocks=4, bounds=(0, 4), target_bounds=(0, 4), epsilon=1, delta=0.05)
    ),
    "PrivateRange": lambda: _values(m.PrivateRange(epsilon=1, neighbours="add-remove")),
    "TypicalRange": lambda: _values(m.TypicalRange(**_RANKED)),
    "Iterative": lambda: Subject(
        m.Iterative(steps=(GaussianNoise(2),) * 3, stops=(1, 3), delta=0.01, sensitivity=1, compute=_itself),
        neighbours.numbers(),
    ),
    "LogisticDescent": lambda: _labelled(
        m.LogisticDescent(epsilon=1, delta=0.01, features=1, norm=1, steps=4, every=2)
    ),
    "TestedLogisticRegression": lambda: _labelled(
        m.TestedLogisticRegression(epsilon=1, test_share=0.5, threshold=0.5, norm=1)
    ),
    "Tuning": lambda: _labelled(
        m.Tuning(
            candidates=(m.OutputPerturbation(epsilon=0.5, norm=1), m.OutputPerturbation(epsilon=1, norm=1)),
            score=m.CorrectPredictions(),
            held_out=0.5,
            good_enough=0.9,
            runs=4,
        )
    ),
    "LinearRegression": lambda: _fitted(m.LinearRegression(epsilon=1, bounds=[(0, 4)], target_bounds=(0, 4))),
    "LeastSquares": lambda: _fitted(m.LeastSquares(epsilon=1, bounds=[(0, 4)], target_bounds=(0, 4))),
    "TheilSen": lambda: _fitted(m.TheilSen(epsilon=1, bounds=[(0, 4)], target_bounds=(0, 4))),
    "OutputPerturbation": lambda: _labelled(m.OutputPerturbation(epsilon=1, norm=1)),
    "ObjectivePerturbation": lambda: _labelled(m.ObjectivePerturbation(epsilon=1, norm=1)),
}
