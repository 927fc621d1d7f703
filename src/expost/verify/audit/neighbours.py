"""Neighbouring databases on which mechanisms leak most: worst cases by kind of data, and a random search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, TypeAlias

import numpy as np

from expost.guarantee import Neighbours
from expost.mechanism import Mechanism
from expost.verify.audit.audit import audit

DatabasePair: TypeAlias = tuple[Any, Any]


def numbers(sensitivity: float = 1) -> list[DatabasePair]:
    """Two numbers as far from each other as neighbours allow."""
    return [(0, sensitivity)]


def vectors(size: int, sensitivity: float = 1) -> list[DatabasePair]:
    """Vectors of which one number differs."""
    first = np.zeros(size)
    second = first.copy()
    second[0] = sensitivity
    return [(first, second)]


def scores(candidates: int = 9) -> list[DatabasePair]:
    """Scores of candidates of which one falls and all others rise by one: what hurts a choice most."""
    first = np.zeros(candidates)
    first[0] = 1
    return [(first, 1 - first)]


def answers(each: int = 3) -> list[DatabasePair]:
    """Answers to threshold questions of which half grow and half shrink by one, and of which all grow."""
    half = np.repeat([0.0, 1.0], each)
    return [(half, 1 - half), (np.zeros(each), np.ones(each))]


def samples(low: float, high: float, neighbours: Neighbours | None, size: int = 8) -> list[DatabasePair]:
    """Arrays of records in bounds of which one is exchanged, or added: at an end, in the middle, among equals."""
    middle = (low + high) / 2
    ends = np.repeat([float(low), float(high)], size // 2)
    equal = np.full(size, float(low))
    found = []
    for records in (ends, equal):
        if neighbours == "add-remove":
            found.append((records, np.append(records, float(high))))
        else:
            found.append((records, np.append(records[:-1], float(low if records[-1] == high else high))))
    if neighbours == "add-remove":
        return [*found, (np.array([]), np.array([middle]))]
    return found


def tables(pairs: Iterable[DatabasePair], columns: int = 2) -> list[DatabasePair]:
    """The same with several equal columns."""
    return [(np.column_stack([first] * columns), np.column_stack([second] * columns)) for first, second in pairs]


def search(
    mechanism: Mechanism,
    propose: Callable[[Random], DatabasePair],
    *,
    tries: int = 20,
    samples: int = 2_000,
    seed: int = 0,
) -> list[DatabasePair]:
    """Random pairs, those with the largest excess over the guarantee first: each is audited with few samples.

    ``propose`` makes a pair of neighbours from a source of randomness.

    >>> from expost.mechanisms import Laplace
    >>> search(Laplace(epsilon=1, sensitivity=4), lambda source: (0, source.randint(0, 4)), tries=6)[0]
    (0, 4)
    """
    source = Random(seed)
    pairs: Sequence[DatabasePair] = [propose(source) for _ in range(tries)]

    def excess(pair: DatabasePair) -> float:
        found = audit(mechanism, [pair], samples=samples, seed=seed)
        return max(row.shown - row.guaranteed for row in found.parts)

    return sorted(pairs, key=excess, reverse=True)
