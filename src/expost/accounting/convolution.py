"""Sums of independent losses: powers of spectra on a circle, or a tournament, with windows and rounding errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil, exp, expm1, floor, fsum, inf, log, log1p, log2, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.accounting.law import ULP, Blur, Floats, LossLaw, lighter, tilted, trimmed
from expost.accounting.resolution import FEW_KINDS

Spectrum = NDArray[np.complexfloating[Any, Any]]
Row = tuple[LossLaw, int]
"""A loss on the grid, and how many there are of it."""

_ATOMS = 8  # up to which a law is added atom by atom
_CHAIN = 128  # steps of few atoms that are added one after the other
_STRIDES = 16  # by halves or doubles, to find Chernoff's best t


@dataclass(frozen=True)
class Tails:
    """ln E[e^{tY}] for some t of both signs: what Chernoff's bound needs. Adds up over independent losses."""

    at: tuple[float, ...]
    moments: tuple[float, ...]

    @classmethod
    def of(cls, law: LossLaw, at: Sequence[float]) -> Tails:
        """The tails of the masses that are kept."""
        moment = _Moments(law)
        return cls(tuple(at), tuple(moment(tilt) for tilt in at))

    def __add__(self, other: Tails) -> Tails:
        return Tails(self.at, tuple(a + b for a, b in zip(self.moments, other.moments, strict=True)))

    def __mul__(self, count: int) -> Tails:
        return Tails(self.at, tuple(count * moment for moment in self.moments))

    def window(self, miss: float) -> tuple[float, float]:
        """An interval that the sum leaves on either side with mass at most ``miss``.

        Proof: thm-grid-laws
        """
        bounds = [(tilt, (moment - log(miss)) / tilt) for tilt, moment in zip(self.at, self.moments, strict=True)]
        return max(s for tilt, s in bounds if tilt < 0), min(s for tilt, s in bounds if tilt > 0)


class _Moments:
    """ln E[e^{tY}] of the kept masses, a little above."""

    def __init__(self, law: LossLaw) -> None:
        keep = law.mass > 0
        self._logs, self._values = np.log(law.mass[keep]), law.values[keep]
        self._nothing = -700.0  # of no mass, and more

    def __call__(self, tilt: float) -> float:
        if not self._logs.size:
            return self._nothing
        terms = self._logs + tilt * self._values
        top = float(terms.max())
        return top + log(float(np.exp(terms - top).sum())) + 1e-9


def tails_of(rows: Sequence[Row], at: Sequence[float]) -> Tails:
    """The tails of the sum of all losses."""
    return reduce(lambda a, b: a + b, (Tails.of(law, at) * count for law, count in rows))


def window_of(rows: Sequence[Row], miss: float) -> tuple[float, float]:
    """An interval that the sum leaves on either side with mass at most ``miss``: Chernoff's bound near its best t.

    Proof: thm-grid-laws
    """
    moments = [(_Moments(law), count) for law, count in rows]
    deviation = sqrt(fsum(count * law.deviation**2 for law, count in rows))
    best = sqrt(2 * log(1 / miss)) / max(deviation, 1e-300)

    def reach(tilt: float) -> float:
        return (fsum(count * moment(tilt) for moment, count in moments) - log(miss)) / tilt

    return -_least(lambda tilt: -reach(-tilt), best), _least(reach, best)


def _least(bound: Callable[[float], float], start: float) -> float:
    """The least value found from a start by halves, or by doubles, and then a little to either side."""
    place, found = start, bound(start)
    factor = 0.5 if bound(start / 2) < found else 2.0
    for _ in range(_STRIDES):
        if not (next_ := bound(place * factor)) < found:
            break
        place, found = place * factor, next_
    return min(found, bound(place * 0.7), bound(place * 1.4))


def composed(rows: Sequence[Row], miss: float, tilt: float = 0.0) -> LossLaw:
    """The law of the sum of all losses, tilted; its slack includes what windows cut off."""
    steps = sum(count for _, count in rows)
    turned = [(trimmed(lighter(tilted(law, tilt)), miss / (8 * steps)), count) for law, count in rows]
    if len(turned) == 1 and turned[0][1] == 1:
        return turned[0][0]
    return _on_a_circle(turned, miss) if len(turned) <= FEW_KINDS else _tournament(turned, miss)


def in_parts(rows: Sequence[Row], cutoff: float, tilts: tuple[float, float], miss: float) -> tuple[LossLaw, ...]:
    """The law of the sum, apart for sums in which no loss passes the cutoff and sums in which some do.

    Rare large losses make one tilt a bad choice for all. Each part has its own, and rounding errors of its own size.

    Proof: lem-jumps
    """
    if cutoff == inf or len(rows) > FEW_KINDS or all(law.high * law.step <= cutoff for law, _ in rows):
        return (composed(rows, miss, tilts[0]),)
    places = [min(max(floor(cutoff / law.step) - law.low + 1, 0), law.mass.size) for law, _ in rows]
    calm = [
        (replace(law, mass=law.mass[:k] if k else np.zeros(1)), count)
        for k, (law, count) in zip(places, rows, strict=True)
    ]
    jumps = _jumps(rows, places, tilts[1], miss)
    counted = replace(jumps, infinity=0.0, shift=0.0, blur=Blur(growth=jumps.blur.growth))  # the rest is the other's
    return composed(calm, miss, tilts[0]), counted


def _jumps(rows: Sequence[Row], places: Sequence[int], tilt: float, miss: float) -> LossLaw:
    """Sums with at least one loss at these places or after: Π Fᵢ^nᵢ − Π Bᵢ^nᵢ, without cancellation.

    Proof: lem-jumps
    """
    whole = [(tilted(law, tilt), count) for law, count in rows]
    calm, rest = _separated(rows, whole, places)
    first, last = _jump_window(whole, rest, miss / 8)
    length = fast_length(last - first + 1)
    every, none, some = (
        np.ones(length // 2 + 1, complex),
        np.ones(length // 2 + 1, complex),
        np.zeros(length // 2 + 1, complex),
    )
    for (bulk, count), (tail, _) in zip(calm, rest, strict=True):
        slow, fast = np.fft.rfft(_folded(bulk, length)), np.fft.rfft(_folded(tail, length))
        raised = _raised(slow + fast, slow, fast, count)
        every, none, some = every * raised[0], none * raised[1], some * raised[0] + none * raised[2]
    mass = np.roll(np.fft.irfft(some, length), -(first % length))[: last - first + 1]
    slack = _jump_error(calm, rest, length, float(np.sqrt((mass * mass).sum()))) + miss / 2 * _share(rest)
    return _sum_law(whole, first, np.clip(mass, 0.0, None), slack)


def _separated(rows: Sequence[Row], whole: Sequence[Row], places: Sequence[int]) -> tuple[list[Row], list[Row]]:
    """Each tilted law up to its place, and from there on."""
    calm, rest = [], []
    for (law, _), (turned, count), place in zip(rows, whole, places, strict=True):
        k = min(max(place + law.low - turned.low, 0), turned.mass.size)
        calm.append((replace(turned, mass=turned.mass[:k] if k else np.zeros(1)), count))
        tail = turned.mass[k:] if k < turned.mass.size else np.zeros(1)
        rest.append((replace(turned, low=turned.low + min(k, turned.mass.size - 1), mass=tail), count))
    return calm, rest


def _share(rest: Sequence[Row]) -> float:
    """At most the mass of sums with a jump, the laws being tilted to masses of at most 1."""
    return min(1.0, fsum(count * float(law.mass.sum()) for law, count in rest))


def _jump_window(whole: Sequence[Row], rest: Sequence[Row], miss: float) -> tuple[int, int]:
    """The grid points between which sums with a jump are, but for this share of their mass on either side."""
    step, share = whole[0][0].step, max(_share(rest), 1e-300)
    every = [(_Moments(law), count) for law, count in whole]
    jumps = [_Moments(law) for law, _ in rest]

    def reach(tilt: float) -> float:
        moments = [(moment(tilt), count) for moment, count in every]
        pairs = zip(jumps, moments, strict=True)
        some = fsum(count * exp(min(jump(tilt) - one + 2e-9, 0.0)) for jump, (one, count) in pairs)
        return (log(max(some, 1e-300)) + fsum(count * one for one, count in moments) - log(miss * share)) / tilt

    start = sqrt(2 * log(1 / miss)) / max(max(law.deviation for law, _ in rest), step)
    low, high = -_least(lambda tilt: -reach(-tilt), start), _least(reach, start)
    least, most = sum(count * law.low for law, count in whole), sum(count * law.high for law, count in whole)
    first, last = max(least, floor(low / step)), min(most, ceil(high / step))
    return (first, last) if first < last else (least, most)


def _raised(every: Spectrum, none: Spectrum, some: Spectrum, count: int) -> tuple[Spectrum, Spectrum, Spectrum]:
    """F^n, B^n and F^n − B^n from F, B and F − B: (F^m − B^m)·(F^m + B^m) and so on, never a difference."""
    total: tuple[Spectrum, Spectrum, Spectrum] | None = None
    while True:
        if count & 1:
            if total is None:
                total = every, none, some
            else:
                total = total[0] * every, total[1] * none, total[2] * every + total[1] * some
        count >>= 1
        if not count:
            assert total is not None
            return total
        every, none, some = every * every, none * none, some * (every + none)


def _jump_error(calm: Sequence[Row], rest: Sequence[Row], length: int, norm: float) -> float:
    """What sums with jumps are off by in L1.

    Proof: lem-jumps
    """
    eta, share = fft_error(length) + 16 * ULP * len(rest), _share(rest) * 2
    steps = sum(count for _, count in rest)
    tails = fsum(count * _norm(law.mass) * sqrt(law.mass.size // length + 1) for law, count in rest)
    bulks = fsum(count * _norm(law.mass) * sqrt(law.mass.size // length + 1) for law, count in calm)
    off = (eta + 32 * steps * ULP) * tails + eta * share * bulks + eta * norm
    growth = steps * eta * sqrt(length)
    return off * sqrt(length) * exp(min(growth, 700.0)) * (1 + 1e-6) + 1e-300


def _on_a_circle(rows: Sequence[Row], miss: float) -> LossLaw:
    """All spectra of one length, each to its power: what is outside the window comes back in on the other side.

    Proof: lem-circle
    """
    first, last = _window(rows, miss / 8)
    length = fast_length(last - first + 1)
    spectrum = np.ones(length // 2 + 1, np.complex128)
    error, growth, eta = 0.0, 0.0, fft_error(length)
    for law, count in rows:
        folds = law.mass.size // length + 1
        spectrum *= _power(np.fft.rfft(_folded(law, length)), count)
        each = count * (eta + (6 + 2 * folds) * ULP) * _norm(law.mass) * sqrt(folds)
        error, growth = error + each, growth + each * sqrt(length)
    mass = np.roll(np.fft.irfft(spectrum, length), -(first % length))[: last - first + 1]
    error = (error * exp(min(growth, 700.0)) + eta) * sqrt(length) * (1 + 1e-9) + 1e-30
    slack = fsum(count * law.slack for law, count in rows)
    slack = slack * exp(min(slack + growth, 700.0)) + error + miss / 2
    return _sum_law(rows, first, np.clip(mass, 0.0, None), slack)


def _window(rows: Sequence[Row], miss: float) -> tuple[int, int]:
    """The grid points between which the sum is but for mass ``miss`` on either side."""
    step = rows[0][0].step
    least, most = sum(count * law.low for law, count in rows), sum(count * law.high for law, count in rows)
    if most - least < 64:
        return least, most
    low, high = window_of(rows, miss)
    first = max(least, floor(low / step)) if low > -inf else least
    last = min(most, ceil(high / step)) if high < inf else most
    return (first, last) if first < last else (least, most)


def _sum_law(rows: Sequence[Row], low: int, mass: Floats, slack: float) -> LossLaw:
    """A law with what adds up over the rows."""
    one = rows[0][0]
    return LossLaw(
        one.step,
        low,
        mass,
        infinity=_infinity(rows),
        shift=fsum(count * law.shift for law, count in rows),
        slack=slack,
        tilt=one.tilt,
        level=fsum(count * law.level for law, count in rows),
        blur=reduce(lambda a, b: a + b, (law.blur * count for law, count in rows), Blur()),
    )


def _infinity(rows: Sequence[Row]) -> float:
    """The probability that any of the losses is infinite."""
    if any(law.infinity >= 1 for law, _ in rows):
        return 1.0
    found = -expm1(fsum(count * log1p(-law.infinity) for law, count in rows))
    return min(1.0, found * (1 + 1e-12))


def _folded(law: LossLaw, length: int) -> Floats:
    """The masses on a circle, the loss 0 in front."""
    rounds = -(-law.mass.size // length)
    padded = np.zeros(rounds * length)
    padded[: law.mass.size] = law.mass
    return np.roll(padded.reshape(rounds, length).sum(axis=0), law.low % length)


def _power(spectrum: Spectrum, count: int) -> Spectrum:
    """Each number to this power, by squaring; what is below e^−90 then is 0."""
    if count == 1:
        return spectrum
    kept = np.flatnonzero(np.abs(spectrum) > exp(-90 / count))
    square, result, left = spectrum[kept], None, count
    while left:
        if left & 1:
            result = square.copy() if result is None else result * square
        left >>= 1
        square = square * square if left else square
    found = np.zeros_like(spectrum)
    found[kept] = result
    return found


def _tournament(rows: Sequence[Row], miss: float) -> LossLaw:
    """Many kinds: each to its power by doubling, then added up in pairs, small ones first."""
    share = miss / (64 * len(rows))
    few = [count <= _CHAIN and int(np.count_nonzero(law.mass)) <= _ATOMS for law, count in rows]
    laws = _chains([row for row, sparse in zip(rows, few, strict=True) if sparse], share)
    laws += [_doubled(law, count, share) for (law, count), sparse in zip(rows, few, strict=True) if not sparse]
    while len(laws) > 1:
        laws.sort(key=lambda law: law.mass.size)
        pairs = [_without_noise(convolve(a, b, share)) for a, b in zip(laws[::2], laws[1::2], strict=False)]
        laws = pairs + laws[2 * len(pairs) :]
    return laws[0]


def _chains(rows: Sequence[Row], miss: float) -> list[LossLaw]:
    """Laws of few atoms, a number of steps at a time, one after the other."""
    steps = [law for law, count in rows for _ in range(count)]
    chains = (reduce(_with_atoms, steps[i : i + _CHAIN]) for i in range(0, len(steps), _CHAIN))
    return [trimmed(chain, miss) for chain in chains]


def _with_atoms(law: LossLaw, few: LossLaw) -> LossLaw:
    """The law of the sum of two independent losses, one of them of few atoms: rounding errors only, no transform."""
    mass = np.zeros(law.mass.size + few.mass.size - 1)
    for place in np.flatnonzero(few.mass):
        mass[place : place + law.mass.size] += few.mass[place] * law.mass
    slack = (law.slack + few.slack) * (1 + 1e-9) + 4 * _ATOMS * ULP * float(mass.sum())
    return _sum_law([(law, 1), (few, 1)], law.low + few.low, mass, slack)


def _doubled(law: LossLaw, count: int, miss: float) -> LossLaw:
    """The law of the sum of ``count`` independent losses of one law."""
    result: LossLaw | None = None
    while True:
        if count & 1:
            result = law if result is None else _without_noise(convolve(result, law, miss))
        count >>= 1
        if not count:
            assert result is not None
            return result
        law = _without_noise(convolve(law, law, miss / count))


def _without_noise(law: LossLaw) -> LossLaw:
    """Without ends that hold rounding errors only: less than a sixteenth of what the law may be off by anyway."""
    return trimmed(law, law.slack / 16)


def convolve(a: LossLaw, b: LossLaw, miss: float) -> LossLaw:
    """The law of the sum of two independent losses, without ends of mass ``miss`` each.

    Proof: lem-fft
    """
    length = fast_length(a.mass.size + b.mass.size - 1)
    first = np.fft.rfft(a.mass, length)
    second = first if a is b else np.fft.rfft(b.mass, length)
    mass = np.fft.irfft(first * second, length)[: a.mass.size + b.mass.size - 1]
    norms = float(a.mass.sum()) * _norm(b.mass) + float(b.mass.sum()) * _norm(a.mass)
    error = 2 * fft_error(length) * norms * sqrt(mass.size)
    whole_a, whole_b = max(1.0, float(a.mass.sum())), max(1.0, float(b.mass.sum()))
    slack = (a.slack * whole_b + b.slack * whole_a + a.slack * b.slack) * (1 + 1e-9) + error
    rows = [(a, 2)] if a is b else [(a, 1), (b, 1)]
    return trimmed(_sum_law(rows, a.low + b.low, np.clip(mass, 0.0, None), slack), miss)


def fft_error(size: int) -> float:
    """η: a transform of this length is off by no more than η in L2, relative to its norm.

    Proof: lem-fft
    """
    return 16 * ULP * log2(size + 2)


def fast_length(size: int) -> int:
    """A length that is quick to transform, and at least ``size``: 2^a·{1, 3/4, 5/8}."""
    power = 1 << max(size - 1, 7).bit_length()
    return min(n for n in (power, power * 3 // 4, power * 5 // 8) if n >= size)


def _norm(a: Floats) -> float:
    return sqrt(float((a * a).sum())) * (1 + 1e-9)
