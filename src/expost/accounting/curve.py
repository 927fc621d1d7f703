"""δ as a function of ε, read off a law: from above as it is, and from below by undoing what the grid added."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from math import exp, expm1, fsum, inf, log, log1p, sqrt

import numpy as np

from expost.accounting.law import ULP, Blur, Floats, LossLaw, log_peak, points, upright
from expost.accounting.read_back import ReadBack, smear_shift

_BLOCK = 300.0  # losses whose e^−y are kept in one scale


@dataclass(frozen=True, eq=False)
class Curve:
    """The δ's of a law at every grid point. The law may come in parts that add up, each tilted in its own way.

    Proof: lem-read-back
    """

    parts: tuple[LossLaw, ...]

    @cached_property
    def step(self) -> float:
        """The step of the grid."""
        return self.parts[0].step

    @cached_property
    def low(self) -> int:
        """The first point, in steps."""
        return min(part.low for part in self.parts)

    @cached_property
    def size(self) -> int:
        """How many points there are."""
        return max(part.high for part in self.parts) - self.low + 1

    @cached_property
    def infinity(self) -> float:
        """The mass of infinite losses."""
        return fsum(part.infinity for part in self.parts)

    @cached_property
    def shift(self) -> float:
        """By how much rounding may have lowered losses."""
        return fsum(part.shift for part in self.parts)

    @cached_property
    def blur(self) -> Blur:
        """How far the law may be above the truth."""
        return reduce(lambda a, b: a + b, (part.blur for part in self.parts))

    @cached_property
    def _rounding(self) -> float:
        """What δ's may be off by, relatively: two sums, one after the other, over all points."""
        return max(1e-9, 4 * ULP * self.size)

    @cached_property
    def _whole(self) -> float:
        return min(1.0, fsum(float(part.mass.sum()) for part in self._upright))

    @cached_property
    def _upright(self) -> tuple[LossLaw, ...]:
        return tuple(upright(part) for part in self.parts)

    @cached_property
    def _deltas(self) -> Floats:
        """Σ mass·(1 − e^{ε − y}) over losses above ε, for ε at each point."""
        deltas = np.zeros(self.size)
        for part in self._upright:
            start, found = part.low - self.low, deltas_of(part)
            deltas[start : start + found.size] += found
            if start:
                before = np.exp(np.arange(-start, 0) * self.step)
                deltas[:start] += float(part.mass.sum()) * (1 - before) + before * found[0]
        return deltas

    @cached_property
    def _unsure(self) -> Floats:
        """What the parts' slacks may add to δ or take from it, at each point.

        Proof: lem-tilt
        """
        unsure, values = np.zeros(self.size), points(self.low, self.low + self.size - 1, self.step)
        for part in self.parts:
            if part.slack:
                unsure += np.exp(np.minimum(_slack_level(part) - part.tilt * values, 1.0))
        return np.minimum(unsure, 1.0)

    @cached_property
    def _above(self) -> Floats:
        """The truth's δ at each point is at most this."""
        moved = self._moved(self._deltas, min(1.0, expm1(-self.shift) / expm1(-self.step)))
        return np.minimum((moved + self.infinity + self._unsure) * (1 + self._rounding), 1.0)

    def _moved(self, deltas: Floats, share: float) -> Floats:
        """δ a share of a cell to the left; the curve is linear in e^ε between points."""
        left = np.append(self._whole, deltas[:-1])
        return deltas + (left - deltas) * share

    @cached_property
    def _truth(self) -> ReadBack:
        drift = self.blur.drift + smear_shift(self.blur, self.step)
        share = expm1(drift) / expm1(self.step) if drift < self.step else inf
        if share > 1:
            return ReadBack(self.step, np.zeros(self.size), self._above, self.blur)
        after = np.append(self._deltas[1:], 0.0)
        least = (self._deltas + (after - self._deltas) * share + self.infinity) * (1 - self._rounding)
        return ReadBack(self.step, least - self._unsure * (1 + 1e-9), self._above, self.blur)

    def delta_above(self, epsilon: float) -> float:
        """The truth's δ is at most this."""
        place = epsilon / self.step - self.low
        left = int(np.floor(place))
        if left < 0:
            return self._before(epsilon)
        if left >= self.size - 1:
            return min(1.0, float(self._above[-1]))
        share = expm1((place - left) * self.step) / expm1(self.step)
        first, second = float(self._above[left]), float(self._above[left + 1])
        return min(1.0, (first + (second - first) * share) * (1 + 1e-12))

    def _before(self, epsilon: float) -> float:
        """The same left of all points."""
        share = exp(epsilon - self.low * self.step)
        slack = fsum(exp(min(_slack_level(part) - part.tilt * epsilon, 1.0)) for part in self.parts if part.slack)
        return min(
            1.0, (self._whole * (1 - share) + share * float(self._above[0]) + self.infinity + slack) * (1 + 1e-9)
        )

    def epsilon_above(self, delta: float) -> float:
        """The truth's ε at this δ is at most this."""
        if self.delta_above(0.0) <= delta:
            return 0.0
        enough = np.flatnonzero(self._above <= delta)
        if not enough.size:
            return self._past_the_end(delta)
        right = int(enough[0])
        if right == 0:
            return max(0.0, self.low * self.step)
        first, second = float(self._above[right - 1]), float(self._above[right])
        inside = log1p((first - delta) / (first - second) * expm1(self.step))
        found = (self.low + right - 1) * self.step + min(inside, self.step)
        return max(0.0, found + 16 * ULP * (1 + abs(found)))

    def _past_the_end(self, delta: float) -> float:
        """An ε past the law's end at which its slack adds no more than δ has left."""
        left = (delta * (1 - 1e-9) - self.infinity * (1 + 1e-9)) / len(self.parts)
        if left <= 0 or not all(part.tilt or not part.slack for part in self.parts):
            return inf
        ends = [(_slack_level(part) - log(left)) / part.tilt for part in self.parts if part.slack]
        return max(*ends, (self.low + self.size) * self.step) + self.shift

    def delta_below(self, epsilon: float) -> float:
        """The truth's δ is at least this."""
        certain = self.infinity * (1 - 1e-9) * exp(-self.blur.growth) - self.blur.excess
        place = int(np.floor(epsilon / self.step)) - self.low
        found = self._continued(place, self._truth.at(place), epsilon) if 0 <= place < self.size else 0.0
        return max(found, certain, 0.0)

    def epsilon_below(self, delta: float) -> float:
        """The truth's ε at this δ is at least this."""
        more = np.flatnonzero(self._above > delta)
        last, step = (int(more[-1]) if more.size else -1), 1
        least = max(0, -self.low)
        while last - step >= least and not self._truth.at(last - step) > delta:
            step *= 2  # far left the slack is large: the truth is found near the upper end, or not at all
        if last - step < least:
            return 0.0
        left, right = last - step, last - step // 2 + 1
        while right - left > 1:
            middle = (left + right) // 2
            left, right = (middle, right) if self._truth.at(middle) > delta else (left, middle)
        return self._where(left, self._truth.at(left), delta)

    def _line(self, place: int, here: float) -> tuple[float, float] | None:
        """A distance, in units of e^ε at this place, and by how much δ falls over it at most.

        A law that smears nothing is linear up to the next point; else a chord from the left is steeper.
        """
        if self.blur.smear == 0:
            after = float(self._deltas[place + 1]) if place + 1 < self.size else 0.0
            return expm1(self.step), float(self._deltas[place]) - after
        back = max(1, round(4 * sqrt(self.blur.smear) / self.step))
        if place - back < 0:
            return None
        return -expm1(-back * self.step), max(float(self._above[place - back]) - here, 0.0)

    def _continued(self, place: int, here: float, epsilon: float) -> float:
        """δ is at least this right of a place where it is ``here``: a convex curve is above its chords, continued.

        Proof: lem-read-back
        """
        line = self._line(place, here)
        over = expm1(epsilon - (self.low + place) * self.step)
        if over <= 0:
            return here
        return here - line[1] / line[0] * over * (1 + 1e-9) if line else 0.0

    def _where(self, place: int, here: float, delta: float) -> float:
        """Where that line meets δ."""
        base, line = (self.low + place) * self.step, self._line(place, here)
        if line and line[1] > 0 and here > delta:
            base += min(log1p((here - delta) / line[1] * line[0] * (1 - 1e-9)), self.step - self.blur.drift)
        return max(0.0, base - 16 * ULP * (1 + abs(base)))


def deltas_of(law: LossLaw) -> Floats:
    """δ at each of the law's points, from the right: δ(ε − h) = e^{−h}·δ(ε) + (1 − e^{−h})·Pr[Y ≥ ε]."""
    step, size = law.step, law.mass.size
    above = np.append(np.cumsum(law.mass[:0:-1])[::-1], 0.0) * -expm1(-step)
    deltas, width = np.zeros(size + 1), max(1, int(_BLOCK / step))
    for stop in range(size, 0, -width):
        start = max(0, stop - width)
        decay = np.exp(np.arange(stop - start) * -step)
        sums = np.cumsum((above[start:stop] * decay)[::-1])[::-1]
        deltas[start:stop] = (sums + deltas[stop] * exp((start - stop) * step)) / decay
    return deltas[:-1]


def _slack_level(law: LossLaw) -> float:
    """The logarithm of what the slack may come to at ε = 0; it falls as e^{−tilt·ε}.

    Proof: lem-tilt
    """
    return log(law.slack) + law.level + log_peak(law.tilt) + 1e-9
