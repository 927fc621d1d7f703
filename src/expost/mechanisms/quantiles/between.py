"""A quantile with an interval in its own unit: three choices for one ε, the outer two as far away as any may be off."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.estimate import Estimate
from expost.mechanism import WITHHELD, Withheld
from expost.mechanisms.quantiles.candidates import Candidates
from expost.mechanisms.quantiles.ordered import Ordered
from expost.mechanisms.quantiles.windows import Target, Windows

CHOICES = 3
"""How many values are chosen: below, at and above the quantile."""


class Between(NamedTuple):
    """A quantile, and two values that the true one lies between, with 95 % confidence."""

    value: float
    low: float
    high: float

    @property
    def estimate(self) -> Estimate:
        """The quantile with its interval."""
        return Estimate.between(self.value, (self.low, self.high), how=self)


class Padded(Ordered):
    """The same records, and as many public ones more at the lowest candidate, and at the highest.

    So every place that is some ranks away from a quantile's is the place of a record, whatever the data.
    """

    def __init__(self, inner: Ordered, more: int) -> None:
        super().__init__(inner.size + 2 * more, inner.lattice)
        self._inner, self._more = inner, more

    def _records(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        own = (ranks - self._more).tolist()
        return np.array(self._inner.points(own), np.int64)

    def below(self, candidate: int) -> int:
        """Those of the data, and the public ones below."""
        above_all = self._more if candidate >= self.lattice.size else 0
        return self._inner.below(candidate) + (self._more if candidate > 0 else 0) + above_all


def windows_between(data: Ordered, place: Target, off: int, rate: Fraction, *, paired: bool) -> Windows:
    """The law of three values: a number of ranks below a quantile, at it, and as many above.

    Proof: lem-quantile-between
    """
    more = off + 1
    targets = tuple(Target(place.place + more + shift, place.unit) for shift in (-off, 0, off))
    return Windows(Padded(data, more), targets, rate, paired=paired)


def between(
    lattice: Candidates, chosen: tuple[int, ...], *, floats: bool, within: tuple[float, float] | None
) -> Between | Withheld:
    """What three candidates are: the quantile, and the ends of its interval; nothing if the quantile is no number.

    An end that is no number is infinite: then nothing is known on that side. Bounds are those of what counts.
    """
    low, middle, high = sorted(chosen)
    if not lattice.answers(middle):
        return WITHHELD
    ends = [
        lattice.around(lattice.value(end), floats=floats)[side] if lattice.answers(end) else far
        for side, (end, far) in enumerate(((low, -inf), (high, inf)))
    ]
    first, last = lattice.ends  # without bounds, records may lie beyond the numbers that are candidates
    if within is None:
        ends = [-inf if ends[0] <= first else ends[0], inf if ends[1] >= last else ends[1]]
    least, most = within or (-inf, inf)
    return Between(lattice.value(middle), max(ends[0], least), min(ends[1], most))
