"""Which events of dp-accounting are understood, and what is wrong with those that are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import isfinite
from typing import Any

from expost.checks import as_whole
from expost.errors import InvalidValue
from expost.guarantee import Neighbours
from expost.mentions import brief

MOST_STEPS = 10**7
"""Leaves of an event, repetitions counted."""


def checked_leaves(event: Any, neighbours: Neighbours) -> list[tuple[Any, int]]:
    """The events that an event is composed of, with how often each occurs. Refuses what is not understood, by name.

    >>> import dp_accounting as dp
    >>> checked_leaves(dp.SelfComposedDpEvent(dp.GaussianDpEvent(2.0), 3), "add-remove")
    [(GaussianDpEvent(noise_multiplier=2.0), 3)]
    """
    if neighbours not in ("add-remove", "substitute"):
        raise InvalidValue(
            f"events are for 'add-remove' or 'substitute' neighbours: say which, got {brief(neighbours)}"
        )
    try:
        leaves = list(_leaves(event, 1))
    except RecursionError:
        raise InvalidValue("the event holds itself, or is nested too deeply: list its events side by side") from None
    steps = sum(count for _, count in leaves)
    if steps > MOST_STEPS:
        raise InvalidValue(f"an event has at most {MOST_STEPS} steps, got {steps}: count them in several")
    for leaf, _ in leaves:
        _check_leaf(leaf)
        if type(leaf).__name__ == "RandomizedResponseDpEvent" and neighbours != "substitute":
            raise InvalidValue(
                "RandomizedResponseDpEvent is about a record that is exchanged: say neighbours='substitute'"
            )
    return [(_with_tuples(leaf), count) for leaf, count in leaves if count]


def _with_tuples(leaf: Any) -> Any:
    """A mixture, which may hold lists, as a value that can be told from others."""
    if type(leaf).__name__ != "MixtureOfGaussiansDpEvent":
        return leaf
    return type(leaf)(leaf.standard_deviation, tuple(leaf.sensitivities), tuple(leaf.sampling_probs))


def _leaves(event: Any, times: int) -> Iterator[tuple[Any, int]]:
    kind = type(event).__name__
    if not _is_theirs(event):
        raise InvalidValue(f"a DpEvent of dp-accounting is needed, got {kind}, which is not understood")
    if kind == "SelfComposedDpEvent":
        count = as_whole(event.count, "count of a SelfComposedDpEvent", 0)
        yield from _leaves(event.event, times * count)
    elif kind == "ComposedDpEvent":
        for part in event.events:
            yield from _leaves(part, times)
    elif kind == "NoOpDpEvent":
        return
    else:
        yield event, times


def _is_theirs(event: Any) -> bool:
    """Whether it is an event of that library itself: what a class of somebody else's means is not known."""
    return type(event).__module__ == "dp_accounting.dp_event"


def _check_leaf(event: Any) -> None:
    kind = type(event).__name__
    if kind not in _CHECKS:
        reason = _REFUSED.get(kind, "is not understood here")
        raise InvalidValue(f"{kind} {reason}, and nothing is guessed: leave it out, or charge it by a guarantee")
    for name, rule in _CHECKS[kind].items():
        rule(getattr(event, name), f"{name} of a {kind}")
    if kind == "MixtureOfGaussiansDpEvent" and abs(sum(event.sampling_probs) - 1) > 1e-9:
        raise InvalidValue(f"the probabilities of a mixture add up to 1, got {brief(event.sampling_probs)}")
    if kind == "SampledWithoutReplacementDpEvent" and event.sample_size > event.source_dataset_size:
        raise InvalidValue(f"a sample of {event.sample_size} is larger than its data set: {event.source_dataset_size}")


def _positive(value: Any, what: str) -> None:
    if _number(value, what) <= 0:
        raise InvalidValue(f"{what} is above 0, got {brief(value)}: without noise it guarantees nothing")


def _not_negative(value: Any, what: str) -> None:
    if _number(value, what) < 0:
        raise InvalidValue(f"{what} is not negative, got {brief(value)}")


def _probability(value: Any, what: str) -> None:
    if not 0 <= _number(value, what) <= 1:
        raise InvalidValue(f"{what} is a probability, got {brief(value)}")


def _share(value: Any, what: str) -> None:
    if not 0 < _number(value, what) <= 1:
        raise InvalidValue(f"{what} is above 0 and at most 1, got {brief(value)}: without lies it guarantees nothing")


def _numbers(values: Any, what: str) -> None:
    for value in values:
        _not_negative(value, what)


def _inner(event: Any, what: str) -> None:
    for leaf, _ in _leaves(event, 1):
        _check_leaf(leaf)


def _number(value: Any, what: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise InvalidValue(f"{what} is a number, got {brief(value)}")
    if not isfinite(value):
        raise InvalidValue(f"{what} is a finite number, got {value}")
    return Fraction(value)


_CHECKS: dict[str, dict[str, Callable[[Any, str], object]]] = {
    "DiscreteLaplaceDpEvent": {"noise_parameter": _positive, "sensitivity": as_whole},
    "GaussianDpEvent": {"noise_multiplier": _positive},
    "LaplaceDpEvent": {"noise_multiplier": _positive},
    "MixtureOfGaussiansDpEvent": {
        "standard_deviation": _positive,
        "sensitivities": _numbers,
        "sampling_probs": _numbers,
    },
    "PoissonSampledDpEvent": {"sampling_probability": _probability, "event": _inner},
    "RandomizedResponseDpEvent": {"noise_parameter": _share, "num_buckets": as_whole},
    "RepeatAndSelectDpEvent": {"mean": _positive, "shape": _not_negative, "event": _inner},
    "SampledWithoutReplacementDpEvent": {"source_dataset_size": as_whole, "sample_size": as_whole, "event": _inner},
    "TruncatedSubsampledGaussianDpEvent": {
        "dataset_size": as_whole,
        "sampling_probability": _probability,
        "truncated_batch_size": as_whole,
        "noise_multiplier": _positive,
    },
    "ZCDpEvent": {"rho": _not_negative, "xi": _not_negative},
}
_REFUSED = {
    "NonPrivateDpEvent": "guarantees nothing",
    "UnsupportedDpEvent": "says itself that nothing is known about it",
    "SampledWithReplacementDpEvent": "is analysed by neither accountant of dp-accounting",
    "SingleEpochTreeAggregationDpEvent": "is about records replaced by a special one, a relation that expost lacks",
}
