"""Outputs as rows of numbers, for scores that distinguish two laws by their samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

FeatureRows = NDArray[np.float64]

_WIDEST = 24  # numbers of an output; what comes after is not looked at
_HUGE = 1e300
_OTHER = -1e9  # codes of what is not a number start below it


def output_key(output: Any) -> Hashable:
    """Something hashable that is the same for the same output."""
    if isinstance(output, np.ndarray):
        return output.shape, output.tobytes()
    try:
        hash(output)
    except TypeError:
        return repr(output)
    return (type(output).__name__, output)


def atoms(output: Any) -> Iterator[Any]:
    """The numbers, texts and other single things that an output consists of, in order."""
    if isinstance(output, np.ndarray):
        yield from output.ravel().tolist()
    elif isinstance(output, dict):
        for name in sorted(output, key=repr):
            yield from atoms(output[name])
    elif isinstance(output, tuple | list):
        for item in output:
            yield from atoms(item)
    elif is_dataclass(output) and not isinstance(output, type):
        for field in fields(output):
            yield from atoms(getattr(output, field.name))
    else:
        yield output


class Encoder:
    """Rows of numbers for outputs: each number and how fine it is, a code for everything else, and how many there are.

    How fine a number is, its lowest bit, is what rounding leaves behind: naive noise in floating point can be told
    apart by it alone.
    """

    def __init__(self, outputs: Sequence[Any]) -> None:
        self._width = min(_WIDEST, max((sum(1 for _ in atoms(output)) for output in outputs[:5000]), default=0))
        self._codes: dict[str, int] = {}
        if _plain(outputs) is None:
            texts = Counter(repr(atom) for output in outputs for atom in atoms(output) if not isinstance(atom, Real))
            self._codes = {text: code for code, (text, _) in enumerate(texts.most_common(1000), 1)}

    def rows(self, outputs: Sequence[Any]) -> FeatureRows:
        """One row for each output."""
        found = _plain(outputs)
        if found is None:
            lists = [list(atoms(output)) for output in outputs]
            found = np.zeros((len(lists), self._width))
            for row, parts in zip(found, lists, strict=True):
                numbers = [self._number(atom) for atom in parts[: self._width]]
                row[: len(numbers)] = numbers
            lengths = np.array([len(parts) for parts in lists], float)
        else:
            lengths = np.full(len(found), float(found.shape[1]))
            short = max(self._width - found.shape[1], 0)  # as where all outputs of one side are ()
            found = np.pad(found[:, : self._width], ((0, 0), (0, short)))
        filled = np.nan_to_num(found, nan=2 * _HUGE, posinf=_HUGE, neginf=-_HUGE)
        return np.column_stack([filled, lowest_bits(filled), lengths])

    def _number(self, atom: Any) -> float:
        return float(atom) if isinstance(atom, Real) else _OTHER - self._codes.get(repr(atom), 0)


def _plain(outputs: Sequence[Any]) -> FeatureRows | None:
    """Outputs that are numbers, or equally long lists of numbers, as rows; None if they are not.

    A None, which numpy would take for NaN, is not: it has the same code here as beside other outputs.
    """
    if any(is_dataclass(output) for output in outputs[:50]):  # as an array, a record may be less than it says
        return None
    if any(isinstance(atom, str | None) for output in outputs[:50] for atom in atoms(output)):
        return None
    try:
        return np.array(outputs, dtype=float).reshape(len(outputs), -1)
    except (TypeError, ValueError):
        return None


def lowest_bits(numbers: FeatureRows) -> FeatureRows:
    """The exponent of the lowest bit of each number that is set; 0 for 0.

    >>> lowest_bits(np.array([6.0, 0.75, 0.0]))
    array([ 1., -2.,  0.])
    """
    fraction, exponent = np.frexp(numbers)
    whole = (fraction * 2.0**53).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1))
    return np.asarray(np.where(whole == 0, 0.0, lowest + exponent - 53))
