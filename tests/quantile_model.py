"""Quantile mechanisms by brute force: scores by counting changes, and the law of permute-and-flip as an integral."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import ceil

from expost import bracket


def quantile(data: Sequence[int], level: Fraction) -> int:
    """The record of rank ⌈level·n⌉, at least the first."""
    return sorted(data)[max(ceil(level * len(data)), 1) - 1]


def neighbours(data: tuple[int, ...], values: Sequence[int], relation: str) -> Iterator[tuple[int, ...]]:
    """All neighbours of a data set, sorted."""
    without = [data[:i] + data[i + 1 :] for i in range(len(data))]
    if relation == "add-remove":
        yield from without
        yield from (tuple(sorted((*data, value))) for value in values)
    else:
        yield from (tuple(sorted((*rest, value))) for rest in without for value in values)


def data_sets(values: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """All data sets of a size."""
    return list(combinations_with_replacement(values, size))


def changes(data: tuple[int, ...], values: Sequence[int], level: Fraction, relation: str) -> dict[int, int]:
    """For each value, the least number of steps to a neighbour after which it is the quantile."""
    found: dict[int, int] = {}
    reached, edge, steps = {data}, {data}, 0
    while len(found) < len(values):
        for one in edge:
            if one:
                found.setdefault(quantile(one, level), steps)
        edge = {other for one in edge for other in neighbours(one, values, relation)} - reached
        reached |= edge
        steps += 1
    return found


def permute_and_flip(exponents: Sequence[Fraction], digits: int = 60) -> list[Fraction]:
    """Pr[i] = p_i ∫ Π_{j ≠ i} (1 − p_j t) dt over [0, 1], for p = e^−exponent rounded to ``digits`` digits."""
    heads = [bracket.exp(-x, digits).upper if x else Fraction(1) for x in exponents]

    def chosen(i: int) -> Fraction:
        polynomial = [Fraction(1)]
        for j, p in enumerate(heads):
            if j != i:
                shifted = [Fraction(0), *polynomial]
                polynomial = [a - p * b for a, b in zip([*polynomial, Fraction(0)], shifted, strict=True)]
        return heads[i] * sum((c / (k + 1) for k, c in enumerate(polynomial)), Fraction(0))

    return [chosen(i) for i in range(len(heads))]


def tuples(size: int, count: int) -> list[tuple[int, ...]]:
    """All candidates for this number of quantiles."""
    return list(product(range(size), repeat=count))
