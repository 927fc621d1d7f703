"""The tilt, the grid and the window of a composition, chosen by a stated rule before anything is composed.

The rule reads sketches of the losses, so that no guarantee rests on it: brackets are true for every choice, and how
wide they are is seen when they are read. It wants an ε to a relative tolerance:

- *tilt* θ: the one at which Chernoff's bound on δ is least, so that the masses that matter are the largest;
- *grid* h: what n losses that were split add is undone by lem-read-back at a cost of about ½·n·(1 + θ)·h² in ε, which
  is given four fifths of the tolerance;
- *cutoff*: where rare large losses make Chernoff's bound useless, sums with such losses are kept apart, with a tilt of
  their own, if that lowers Chernoff's ε by a fiftieth;
- *window*: it may miss 10⁻⁹ of the tilted mass, some 10⁻⁸ of δ;
- *tails* of the single losses: together 10⁻⁷ of δ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, inf, log, sqrt

import numpy as np

from expost.accounting.law import Floats
from expost.accounting.losses import ApproximateDP, LaplaceNoise, Loss

Counts = Sequence[tuple[Loss, int]]

MISS = 1e-9
"""What windows may cut off of a tilted law."""
MOST_POINTS = 2**21
"""No grid is longer: some 300 MB and two seconds."""
READ_BOTH = 0.52
"""lem-read-back: ε is known to about this times n·(1 + θ)·h² on a grid of step h."""
READ_ABOVE = 0.125
"""lem-blur: the upper end is too large by at most about this times n·(1 + θ)·h²."""
CUT_SHARE = 1e-3
"""Chernoff's bound on δ is too large by less than one over this."""
FEW_KINDS = 8
"""Of losses, up to which each has a spectrum of full length, and large losses may be kept apart."""
_SHARE = 0.8
_TILTS = 96
_CUTOFFS = 24
_WORTH = 4.0  # in ln δ: for less, large losses are not kept apart


@dataclass(frozen=True)
class Sketch:
    """About the law of a sum of losses in one direction: values, logarithms of masses, and how many there are."""

    rows: tuple[tuple[Floats, Floats, int], ...]

    @classmethod
    def of(cls, counts: Counts, reverse: bool, cut: float, step: float | None = None) -> Sketch:
        """Of all losses, or of their laws on a given grid."""
        return cls(tuple((*_sketched(loss, reverse, cut, step), count) for loss, count in counts))

    def moments(self, tilts: Floats) -> Floats:
        """About ln E[e^{tS}] at each t."""
        found = np.zeros(tilts.size)
        for values, logs, count in self.rows:
            terms = logs[None, :] + tilts[:, None] * values[None, :]
            tops = terms.max(axis=1)
            found += count * (tops + np.log(np.exp(terms - tops[:, None]).sum(axis=1)))
        return found

    def deviation(self, tilt: float = 0.0, cutoff: float = inf) -> float:
        """About the standard deviation of the tilted sum of losses up to the cutoff."""
        variance = 0.0
        for values, logs, count in self.rows:
            terms = np.where(values <= cutoff, logs + tilt * values, -inf)
            if not terms.max() > -inf:
                continue
            weights = np.exp(terms - terms.max())
            weights /= weights.sum()
            mean = float((weights * values).sum())
            variance += count * float((weights * (values - mean) ** 2).sum())
        return sqrt(max(variance, 1e-300))

    def width(self, design: Design) -> float:
        """About how far apart the ends are of the sum's windows, and of a single loss."""
        singles = max(float(values.max() - values.min()) for values, _, _ in self.rows)
        return 2 * sqrt(2 * log(8 / MISS)) * self.deviation(design.tilts[0], design.cutoff) + 2 * singles

    def best(self, bound: Callable[[Floats, Floats], Floats]) -> tuple[float, float]:
        """The tilt at which a bound, of tilts and their moments, is least; and the bound."""
        scale = self.deviation()
        low, high = 1e-2 * min(1.0, 1 / scale), 1e2 * max(1.0, 1 / scale)
        tilts = np.geomspace(low, high, _TILTS)
        for _ in range(2):
            bounds = bound(tilts, self.moments(tilts))
            place = int(np.argmin(bounds))
            near = tilts[max(place - 1, 0)], tilts[min(place + 1, tilts.size - 1)]
            found = float(tilts[place]), float(bounds[place])
            tilts = np.geomspace(*near, 16)
        return found

    def at_delta(self, delta: float) -> Design:
        """The design for reading ε at this δ."""
        tilt, epsilon = self.best(lambda tilts, moments: (moments + _peaks(tilts) - log(delta)) / tilts)
        return self._with_jumps(Design(epsilon, delta, tilt, (tilt, tilt)))

    def at_epsilon(self, epsilon: float) -> Design:
        """The design for reading δ at this ε."""
        tilt, bound = self.best(lambda tilts, moments: moments + _peaks(tilts) - tilts * epsilon)
        plain = Design(epsilon, exp(min(bound, 0.0)), tilt, (tilt, tilt))
        if len(self.rows) > FEW_KINDS:
            return plain
        calm, jumps = (_log_deltas(each, epsilon) for each in self._apart)
        bounds = np.logaddexp(calm.min(axis=0), jumps.min(axis=0))
        place = int(np.argmin(bounds))
        if not bounds[place] < bound - _WORTH:
            return plain
        return self._design(place, epsilon, exp(min(float(bounds[place]), 0.0)))

    def _with_jumps(self, plain: Design) -> Design:
        """Whether Chernoff's ε is smaller if sums without large losses, and those with some, are bounded apart."""
        if len(self.rows) > FEW_KINDS:
            return plain
        wanted = log(plain.delta / 2)
        calm, jumps = (_epsilons(each, wanted).min(axis=0) for each in self._apart)
        bounds = np.maximum(calm, jumps)
        place = int(np.argmin(bounds))
        epsilon = max(float(bounds[place]), 0.0)
        return self._design(place, epsilon, plain.delta) if epsilon < 0.98 * plain.epsilon else plain

    def _design(self, place: int, epsilon: float, delta: float) -> Design:
        bounds = [_log_deltas(each, epsilon)[:, place] for each in self._apart]
        chosen = [int(np.argmin(each)) for each in bounds]
        first, second = (float(self._tilts[k]) for k in chosen)
        least = [float(each[k]) for each, k in zip(bounds, chosen, strict=True)]
        share = 1 / (1 + exp(min(max(least[1] - least[0], -500.0), 500.0)))
        return Design(
            epsilon, delta, share * first + (1 - share) * second, (first, second), float(self._cutoffs[place])
        )

    @cached_property
    def _tilts(self) -> Floats:
        scale = self.deviation()
        return np.geomspace(1e-3 * min(1.0, 1 / scale), 1e2 * max(1.0, 1 / scale), _TILTS)

    @cached_property
    def _cutoffs(self) -> Floats:
        """Losses that may count as large."""
        most = max(float(values.max()) for values, _, _ in self.rows)
        scale = self.deviation() / sqrt(sum(count for _, _, count in self.rows))
        return np.geomspace(min(scale, most / 2), most, _CUTOFFS)[:-1] if most > 0 else np.array([most])

    @cached_property
    def _apart(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """For each tilt and cutoff about ln E[e^{tS}] without large losses, and with some; with the tilts."""
        calm, ratio = np.zeros((_TILTS, self._cutoffs.size)), np.zeros((_TILTS, self._cutoffs.size))
        for values, logs, count in self.rows:
            order = np.argsort(values)
            terms = logs[order][None, :] + self._tilts[:, None] * values[order][None, :]
            tops = terms.max(axis=1)[:, None]
            masses = np.exp(terms - tops)
            places = np.searchsorted(values[order], self._cutoffs, side="right")
            rising = np.concatenate([np.zeros((_TILTS, 1)), np.cumsum(masses, axis=1)], axis=1)
            falling = np.concatenate([np.cumsum(masses[:, ::-1], axis=1)[:, ::-1], np.zeros((_TILTS, 1))], axis=1)
            calm += count * (tops + np.log(np.maximum(rising[:, places], 1e-300)))
            ratio += count * np.log1p(np.minimum(falling[:, places] / np.maximum(rising[:, places], 1e-300), 1e300))
        with np.errstate(divide="ignore"):
            jumps = calm + np.where(ratio > 30, ratio, np.log(np.expm1(np.minimum(ratio, 30.0))))
        return (self._tilts, calm), (self._tilts, jumps)


@dataclass(frozen=True)
class Design:
    """Where a composition is read, and how: about its ε and δ, how steeply ln δ falls there, tilts, and a cutoff.

    Sums in which some loss passes the cutoff are kept apart, with the second tilt.
    """

    epsilon: float
    delta: float
    slope: float
    tilts: tuple[float, float]
    cutoff: float = inf


def _epsilons(moments: tuple[Floats, Floats], log_delta: float) -> Floats:
    """Chernoff's ε at each tilt."""
    tilts, found = moments
    return np.asarray((found + _peaks(tilts)[:, None] - log_delta) / tilts[:, None])


def _log_deltas(moments: tuple[Floats, Floats], epsilon: float) -> Floats:
    """Chernoff's bound on ln δ at each tilt."""
    tilts, found = moments
    return np.asarray(found + _peaks(tilts)[:, None] - tilts[:, None] * epsilon)


def _sketched(loss: Loss, reverse: bool, cut: float, step: float | None) -> tuple[Floats, Floats]:
    values, masses = loss.sketch(reverse, cut)
    if step and step > loss.spread() / 8:
        law = loss.law(step, reverse, cut)
        values, masses = law.values, law.mass
    keep = masses > 0
    return (values[keep], np.log(masses[keep])) if keep.any() else (np.zeros(1), np.zeros(1))


def _peaks(tilts: Floats) -> Floats:
    """The logarithm of the largest e^{−tilt·t}·(1 − e^{−t})."""
    return np.asarray(tilts * np.log(tilts) - (1 + tilts) * np.log1p(tilts))


def cut_for(delta: float, steps: int) -> float:
    """What each of ``steps`` losses may cut off at either end: together 10⁻⁷ of δ."""
    return max(min(1e-7 * delta / steps, 1e-9), 1e-280)


def grid_for(width: float, slope: float, steps: int, known: float) -> float:
    """The grid on which ``steps`` split losses leave ε known to this width, where ln δ falls with this slope."""
    return sqrt(_SHARE * width / (known * steps * (1 + slope)))


def lattice_of(counts: Counts) -> float | None:
    """The only grid needed if all losses are randomised responses of one ε: nothing is split there."""
    return _atom(counts) if all(isinstance(loss, ApproximateDP) for loss, _ in counts) else None


def snapped(counts: Counts, step: float) -> float:
    """A grid that is as fine and has the atoms on it, if all losses have them at one ε; else the grid itself."""
    atom = _atom(counts) if all(isinstance(loss, ApproximateDP | LaplaceNoise) for loss, _ in counts) else None
    return atom / ceil(atom / step) if atom else step


def _atom(counts: Counts) -> float | None:
    spreads = {loss.spread() for loss, _ in counts} - {0.0}
    return spreads.pop() if len(spreads) == 1 else None
