"""The most frequent labels of an unknown domain, charged by how many were returned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost import bracket
from expost.checks import as_whole, check_fields
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.frame import Frame
from expost.guarantee import Guarantee, Part
from expost.mechanism import Mechanism
from expost.mechanisms.numbers import whole_numbers
from expost.mentions import shown_labels
from expost.noise import NoiseSource, vector
from expost.noise.grid import FARTHEST
from expost.noise.laws import Rate

_KINDS = "biuU"
_LARGEST = 2**63  # of a label that is a whole number
_NUMBERS = (int, float, complex, Fraction, Decimal, np.number, np.bool_)  # a mapping takes equal ones for one key


@dataclass(frozen=True, kw_only=True)
class TopK(Mechanism[Any, tuple[Any, ...]]):
    """The most frequent labels, most frequent first, without a list of all that could occur.

    Labels are chosen one by one, each e^rate times as likely for every person more that has it. With them competes a
    bar above the count of the first label that is not a candidate. When it is chosen, no further label is returned.

    The part is the number c of labels returned. Its price is c + 1 shares of ε, or k if all k were returned: that no
    further label was found tells something, too.

    Parameters
    ----------
    k
        How many labels to return at most.
    epsilon
        The whole budget, for k labels. What fewer labels did not use is refunded.
    delta
        The probability with which a label may be returned that one person alone made a candidate.
    groups
        How many labels one person has at most. Each person counts once for a label.
    candidates
        How many labels compete with the bar: at least k, by default ten times as many. More make the bar lower.

    The data is a mapping from labels to counts, or a pair of arrays: distinct labels, and their counts. Neighbours are
    databases of which one has a person more (``"add-remove"``). Labels are texts, whole numbers of 64 bits, or tuples
    of these; others are never returned. Numbers that are equal are one key to a mapping, and one label here: True and
    1.0 are returned as 1. Counts below 0 are 0.

    >>> top = TopK(k=3, epsilon=3, delta=1e-6)
    >>> top.guarantee.cost_of(1), top.guarantee.cost_of(3)
    (Cost(2, delta=1e-6), Cost(3, delta=1e-6))

    Proof: thm-top-k
    """

    k: int
    epsilon: Number
    delta: Number
    groups: int = 1
    candidates: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, "epsilon", "delta", k=partial(as_whole, most=10_000))
        check_fields(self, groups=as_whole)
        if self.candidates is not None:
            object.__setattr__(self, "candidates", as_whole(self.candidates, "candidates", least=self.k, most=10**6))
        if not self.rate:
            raise InvalidValue(f"ε {self.epsilon} for {self.k} labels is less than 10⁻¹² each: take more ε")
        vector.check_rate(self.rate)

    @cached_property
    def rate(self) -> Fraction:
        """The share of ε for one label, and what one person counts."""
        return Cost.within(exact(self.epsilon, "ε") / self.k).exact_epsilon

    @property
    def _candidates(self) -> int:
        return 10 * self.k if self.candidates is None else self.candidates

    @cached_property
    def margin(self) -> int:
        """How far the bar is above the count of the first label that is not a candidate."""
        alone = min(self.groups, self._candidates)
        return 1 + max(ceil(bracket.log(alone / exact(self.delta, "δ")).upper / self.rate), 0)

    @cached_property
    def guarantee(self) -> Guarantee:
        """A share of ε for each label and for the end."""
        shares: dict[Part, Fraction] = {count: min(count + 1, self.k) * self.rate for count in range(self.k + 1)}
        return Guarantee(shares, self.delta, neighbours="add-remove")

    def part_of(self, output: tuple[Any, ...]) -> Part:
        """The number of labels."""
        return len(output)

    def check(self, data: Any) -> None:
        """A mapping, or a pair of arrays of one length: whole numbers or texts, and whole numbers."""
        if isinstance(data, Mapping):
            return
        labels, counts = _arrays(data)
        if labels.ndim != 1 or labels.shape != counts.shape or labels.dtype.kind not in _KINDS:
            raise InvalidValue(
                "labels are a one-dimensional array of whole numbers or texts as long as that of the counts, got "
                f"dtype {labels.dtype} of shape {labels.shape} and counts of shape {counts.shape}: try .astype(str)"
            )
        if counts.dtype.kind not in "biu":
            raise InvalidValue(f"counts are whole numbers, got dtype {counts.dtype}")

    def sample(self, data: Any, noise: NoiseSource) -> tuple[Any, ...]:
        """The labels that were chosen before the bar."""
        labels, heights = self._field(data)
        found: list[Any] = []
        remaining = np.arange(len(heights))
        while len(found) < self.k:
            left = heights[remaining]
            chosen = vector.categorical(noise, left.max() - left, Rate(self.rate))
            if remaining[chosen] >= len(labels):
                break
            found.append(labels[remaining[chosen]])
            remaining = np.delete(remaining, chosen)
        return tuple(found)

    def _field(self, data: Any) -> tuple[list[Any], NDArray[np.int64]]:
        """The candidates, most frequent first, and what competes: their counts, dummies of 0, and the bar."""
        labels, counts = (_of_mapping if isinstance(data, Mapping) else _of_arrays)(data, self._candidates + 1)
        heights = np.zeros(self._candidates + 1, np.int64)
        heights[: len(counts)] = counts
        heights[-1] = min(int(heights[-1]) + self.margin, 2 * FARTHEST)
        return labels[: self._candidates], heights

    def frame_of(self, answer: Any) -> Frame:
        """A row for each label, the most frequent first; labels of several parts have a column for each."""
        sizes = {len(label) if isinstance(label, tuple) else 0 for label in answer}
        if sizes == {0} or len(sizes) != 1:
            return Frame(("rank", "label"), tuple(enumerate(_of_one_kind(answer), 1)))
        names = (f"label {part}" for part in range(1, sizes.pop() + 1))
        return Frame(("rank", *names), tuple((rank, *label) for rank, label in enumerate(answer, 1)))

    def describe(self, output: tuple[Any, ...]) -> str:
        """How many were found, and which."""
        return f"{len(output)} of at most {self.k} labels{shown_labels(output)}"


def _of_one_kind(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """The labels; as text, if they are of several kinds, which no column of a library takes."""
    if len({type(label) for label in labels}) < 2:
        return labels
    return tuple(", ".join(map(str, label)) if isinstance(label, tuple) else str(label) for label in labels)


def _arrays(data: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    if not (isinstance(data, tuple | list) and len(data) == 2 and all(isinstance(each, np.ndarray) for each in data)):
        raise InvalidValue(
            f"labels and counts are a mapping, or a pair of numpy arrays, got {type(data).__name__}: try "
            "np.unique(…, return_counts=True)"
        )
    return data[0], data[1]


def _of_arrays(data: Any, most: int) -> tuple[list[Any], NDArray[np.int64]]:
    """The labels with the largest counts above 0, largest first; equal counts in the order of the labels."""
    labels, counts = data
    if len(counts) > most:  # all that are as large as the last one wanted
        least = np.partition(counts, len(counts) - most)[len(counts) - most]
        large = np.flatnonzero(counts >= least)
        labels, counts = labels[large], counts[large]
    counts = whole_numbers(counts)
    labels, counts = labels[counts > 0], counts[counts > 0]
    order = np.lexsort((labels, -counts))[:most]
    return labels[order].tolist(), counts[order]


def _of_mapping(data: Mapping[Any, Any], most: int) -> tuple[list[Any], NDArray[np.int64]]:
    """The same of a mapping, without keys that are no labels."""
    plain = ((_label(key), _count(count)) for key, count in data.items())
    pairs = sorted(
        ((label, count) for label, count in plain if label is not None and count > 0),
        key=lambda pair: (-pair[1], _place(pair[0])),
    )
    return [label for label, _ in pairs[:most]], np.array([count for _, count in pairs[:most]], np.int64)


def _count(count: Any) -> int:
    """A count of a mapping, rounded down: what is not a number counts as none."""
    if isinstance(count, float | np.floating):
        return floor(max(0.0, min(float(count), float(FARTHEST)))) if count == count else 0
    return min(int(count), FARTHEST) if isinstance(count, int | np.integer | np.bool_) else 0


def _label(key: Any) -> Any:
    """The label that a key of a mapping stands for: the same for equal keys, of whatever type. None if it is no label.

    To a mapping 1, True, 1.0 and np.int64(1) are one key, and which of them it holds depends on whose record was first.
    So the label is the whole number: what is published, and its place in the order, depend on no single record.
    """
    if isinstance(key, tuple):
        parts = tuple(None if isinstance(part, tuple) else _label(part) for part in key)
        return None if None in parts else parts
    return str.__str__(key) if isinstance(key, str) else _whole(key)


def _whole(key: Any) -> int | None:
    """The whole number of 64 bits that a number equals, if there is one."""
    if isinstance(key, np.timedelta64) or not isinstance(key, _NUMBERS):  # numpy has durations among whole numbers
        return None
    number = key.item() if isinstance(key, np.generic) else key
    try:
        plain = number.imag == 0 and -_LARGEST <= number.real < _LARGEST and number.real % 1 == 0
        return int(number.real) if plain else None
    except ArithmeticError:  # NaN of Decimal has no order
        return None


def _place(label: Any) -> tuple[bool, tuple[tuple[bool, Any], ...]]:
    """Its place in the order of all labels, which no other has: tuples last, and in them whole numbers before texts.

    Texts are in the order of their code points, halves of characters included.
    """
    parts = label if type(label) is tuple else (label,)
    return type(label) is tuple, tuple((type(part) is str, part) for part in parts)
