"""Order statistics near a few ranks, exactly, and how many changes move them so far.

Sorting commutes with every monotone map, so records are clamped and rounded after sorting, and only those near the
ranks that matter. Those are found by selection, which is faster than sorting.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from operator import sub
from typing import Any

from numpy.typing import NDArray

from expost.errors import InvalidValue
from expost.mechanisms.numbers import shape_of, without_nan


def rank(quantile: Fraction, size: int) -> int:
    """The rank, from 1, of a quantile among ``size`` records: ⌈quantile·size⌉, at least 1."""
    return max(1, ceil(quantile * size))


def check_records(data: Any, what: str) -> int:
    """The public number of records of a one-dimensional array of numbers."""
    dimensions = shape_of(data).dimensions
    if dimensions is None or len(dimensions) != 1:
        shape = "a single number" if dimensions is None else f"shape {dimensions}"
        raise InvalidValue(
            f"{what} is about a one-dimensional array with one value per person, got {shape}: try .ravel()"
        )
    if not dimensions[0]:
        raise InvalidValue(f"{what} needs at least one record, and the number of records is public; got an empty array")
    return dimensions[0]


def arranged(data: Any, missing: float, spans: Sequence[tuple[int, int]]) -> NDArray[Any]:
    """A copy in which the records of the ranks in each span (first, last; from 1) are where sorting would put them.

    NaN counts as ``missing``. Ranks out of range are cut off.
    """
    values = without_nan(data, missing)
    inside = _merged([(max(first, 1) - 1, min(last, len(values)) - 1) for first, last in spans])
    if sum(end - start for start, end in inside) > len(values) // 4:
        values.sort()
    elif inside:
        _select(values, inside)
    return values


def _select(values: NDArray[Any], inside: list[tuple[int, int]]) -> None:
    done = 0
    for place in sorted({place for span in inside for place in span}):  # one at a time: numpy is fastest at that
        values[done:].partition(place - done)
        done = place + 1  # what was placed must not be moved again
    for start, end in inside:
        values[start : end + 1].sort()


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(span for span in spans if span[0] <= span[1]):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def widening(up: Sequence[int], down: Sequence[int], reach: int, cap: int) -> int:
    """min(cap, k − 1) for the least k ≥ 1 such that k changes can bring up[0] − down[0] to ``reach``.

    ``up`` and ``down`` are the order statistics from two ranks outwards, at least cap + 1 of each. With k changes the
    pair becomes up[t], down[k − t] for any t in 0, …, k. The best of these grows with k, so bisection finds the least.

    Proof: lem-widening
    """
    low, high = 0, cap + 1  # k = low does not reach (or is 0); k = high does (or is past the cap)
    while high - low > 1:
        k = (low + high) // 2
        low, high = (low, k) if max(map(sub, up[: k + 1], down[k::-1])) >= reach else (k, high)
    return high - 1


def narrowing(from_low: Sequence[int], to_high: Sequence[int], width: int, cap: int) -> int:
    """min(cap, k − 1) for the least k such that k changes can bring the upper less the lower rank below ``width``.

    ``from_low`` has the order statistics from the lower rank upwards, ``to_high`` those up to the upper rank; cap + 1
    of each, or as many as there are.

    Proof: lem-narrowing
    """
    best = cap + 1
    for place, start in enumerate(from_low[: cap + 1]):
        if place and start == from_low[place - 1]:
            continue
        left = place  # records below the start that would have to move up
        if left >= best:
            break
        right = len(to_high) - bisect_left(to_high, start + width)
        best = min(best, left + right)
    return max(best - 1, 0)
