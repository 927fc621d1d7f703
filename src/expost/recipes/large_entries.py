"""The large entries of a vector: find them, then release them with everything that is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.cost import Cost, Number, exact
from expost.errors import BudgetExceeded, InvalidValue
from expost.guarantee import Neighbours
from expost.ledger import Ledger
from expost.mechanism import Release
from expost.mechanisms import Laplace, SparseVector
from expost.mechanisms.additive import shape_of, whole_sensitivity
from expost.mechanisms.sparse_vector import Kind
from expost.noise.grid import FARTHEST


@dataclass(frozen=True)
class LargeEntries:
    """The entries that were found to be large, with noise; and the receipts."""

    values: dict[Any, int | float]
    """Index or name → noisy value."""
    selection: Release
    """Which entries were found; its value is a mask."""
    release: Release | None
    """Their noisy values; None if none was found, and then nothing was spent on values."""

    @property
    def charged(self) -> Cost:
        """What both steps cost."""
        return self.selection.charged + (self.release.charged if self.release else Cost(0))

    def __str__(self) -> str:
        found = ", ".join(f"{name}: {value:g}" for name, value in list(self.values.items())[:8])
        more = ", …" if len(self.values) > 8 else ""
        return f"{len(self.values)} large entries ({found}{more}) · charged {self.charged}"


def release_large(
    ledger: Ledger,
    values: NDArray[Any] | Mapping[Any, int | float],
    *,
    threshold: Any,
    at_most: int,
    sensitivity: Number,
    epsilon: Number | None = None,
    selection: Number = "1/2",
    l1: Number | None = None,
    monotone: bool = False,
    noise: Kind = "one-sided",
    neighbours: Neighbours | None = None,
    label: str | None = None,
) -> LargeEntries:
    """Release the entries of a vector, or of a histogram {name: count}, that are large; and only those.

    A sparse vector with the share ``selection`` of ε finds entries whose absolute value is above
    ``threshold``, at most ``at_most``. Everything that is then left of ε goes to the signed values of
    those that were found: fewer found means less noise, and so does what the sparse vector gave back.

    ``epsilon`` is the whole budget, by default all that remains. ``sensitivity`` bounds how far one entry
    moves between neighbours, ``l1`` how far all of them move together (by default, ``sensitivity`` times the
    entries found). ``monotone`` is for counts: all entries grow, or all shrink, when a record is added (negative
    ones are then never large). NaN and None count as 0. Names must be public: a name that stands there because
    of one person tells on them; and so must be whether a name has whole numbers or floats.

    >>> ledger = Ledger(epsilon=1)
    >>> counts = np.zeros(100, int)
    >>> counts[[3, 14, 15]] = 100_000
    >>> large = release_large(ledger, counts, threshold=50_000, at_most=20, sensitivity=1)
    >>> list(large.values), ledger.remaining
    ([3, 14, 15], Cost(0))

    Proof: thm-release-large
    """
    share = exact(selection, "selection")
    if not 0 < share < 1:
        raise InvalidValue(f"selection is the share of ε for finding entries, between 0 and 1, got {selection!r}")
    names, entries = _named(values)
    total = ledger.remaining if epsilon is None else Cost.within(epsilon)
    if not Cost.of_units(total.epsilon_units) <= ledger.remaining or not total.epsilon_units:
        raise BudgetExceeded(Cost(max(total.exact_epsilon, Fraction(1, 10**12))), ledger.remaining, ledger.name)
    together = None if l1 is None else exact(l1, "l1")
    if together is not None and together <= 0:
        raise InvalidValue(f"l1 bounds how far all entries move together, above 0, got {l1!r}")
    if entries.dtype.kind != "f":
        whole_sensitivity(sensitivity)
    finder = SparseVector(
        threshold=threshold,
        at_most=at_most,
        epsilon=total.exact_epsilon * share,
        sensitivity=sensitivity,
        monotone=monotone,
        noise=noise,
        neighbours=neighbours,
    )
    sizes = np.maximum(entries, 0) if monotone else _magnitudes(entries)
    found = ledger.run(finder, on=sizes, label=label and f"{label}: find")
    chosen = np.flatnonzero(found.value)
    if not len(chosen):
        return LargeEntries({}, found, None)
    separately = exact(sensitivity, "sensitivity") * len(chosen)
    left = total.exact_epsilon - found.charged.exact_epsilon
    moves = separately if together is None else min(separately, together)
    teller = Laplace(epsilon=left, sensitivity=_plain(moves), neighbours=neighbours)
    told = ledger.run(teller, on=entries[chosen], label=label and f"{label}: values")
    return LargeEntries(dict(zip((names[i] for i in chosen), told.value.tolist(), strict=True)), found, told)


def _named(values: Any) -> tuple[Any, NDArray[Any]]:
    """Names and entries. Floats if any entry is of a float type, whole numbers otherwise: values decide nothing."""
    if isinstance(values, Mapping):
        entries = list(values.values())
        if not all(entry is None or isinstance(entry, Real) for entry in entries):
            raise InvalidValue("a histogram maps names to ints, or to floats; some value is no number")
        if any(isinstance(entry, float | np.floating) for entry in entries):
            return list(values), np.array([np.nan if entry is None else float(entry) for entry in entries])
        whole = [max(-FARTHEST, min(FARTHEST, int(entry or 0))) for entry in entries]
        return list(values), np.array(whole, np.int64)
    shape = shape_of(values)
    if shape.dimensions is None or len(shape.dimensions) != 1:
        raise InvalidValue(f"entries are those of a one-dimensional array, or of a mapping, got {shape.dimensions}")
    return range(shape.size), np.asarray(values)


def _plain(number: Fraction) -> int | Fraction:
    """An int if it is one, which reads better in a ledger."""
    return number.numerator if number.denominator == 1 else number


def _magnitudes(entries: NDArray[Any]) -> NDArray[Any]:
    """Absolute values; the most negative integer, which has none, becomes the largest."""
    if entries.dtype.kind == "i":
        entries = np.maximum(entries, -np.iinfo(entries.dtype).max)
    magnitudes: NDArray[Any] = np.abs(entries) if entries.dtype.kind in "if" else entries
    return magnitudes
