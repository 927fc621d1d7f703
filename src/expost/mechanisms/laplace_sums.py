"""How far sums of independent discrete Laplace noise reach: by their law, where a sum of bounds would be too wide.

Probabilities are computed in floats, and every one is taken to be larger by ``_GUARD`` than it was found, which is more
than all rounding together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, inf, lgamma, log, pi, prod, tanh

import numpy as np
from numpy.typing import NDArray

from expost.noise.sums import LaplaceSteps

_GUARD = 1e-9
_LEAST_MISS = 1e-6
"""Below which the guard would matter: then bounds are added up."""
_APART = 1 + 1 / 256
"""Scales that are nearer to each other are made larger: the closed form divides by their differences."""
_FINE = 1 / 16
"""The rate below which steps are small enough for a continuous law."""
_VANISHES = 30.0
"""e to minus that is far below the guard."""
_MOST_PLACES = 2**18


def sum_reach(rates: tuple[Fraction, ...], weights: tuple[float, ...], miss: Fraction, times: int = 1) -> float:
    """A size that Σ wᵢ·Xᵢ exceeds with probability at most ``miss``, whatever numbers up to the weights the wᵢ are.

    Each Xᵢ is the sum of as many numbers of discrete Laplace noise as ``times`` says, with a rate of its own.

    Proof: lem-laplace-sums
    """
    terms = [(rate, weight) for rate, weight in zip(rates, weights, strict=True) if weight]
    if times > 1 or len(terms) == 1:
        return sum(weight * repeated_reach(rate, times, miss / len(terms)) for rate, weight in terms)
    if len(terms) == 2 and terms[0][1] == 1:
        return pair_reach(terms[0][0], *terms[1], miss)
    return weighted_reach(rates, weights, miss) if terms else 0.0


def pair_reach(first: Fraction, second: Fraction, most: float, miss: Fraction) -> float:
    """A size that X − μ·Y exceeds with probability at most ``miss``, whatever number up to ``most`` in size μ is.

    X and Y are discrete Laplace noise with the two rates.

    Proof: lem-laplace-sums
    """
    smooth = weighted_reach((first, second), (1.0, most), miss)
    if float(second) < _FINE or miss < _LEAST_MISS:
        return smooth
    return min(smooth, _by_steps(float(first), float(second), most, float(miss)))


@lru_cache(maxsize=4096)
def weighted_reach(rates: tuple[Fraction, ...], weights: tuple[float, ...], miss: Fraction) -> float:
    """A size that a sum of discrete Laplace noise with these rates, times at most these weights, exceeds that rarely.

    Proof: lem-laplace-sums
    """
    terms = [(rate, weight) for rate, weight in zip(rates, weights, strict=True) if weight]
    added = sum(weight * LaplaceSteps(rate).reach(miss / len(terms)) for rate, weight in terms)
    if miss < _LEAST_MISS or len(terms) == 1:
        return added
    scales = _apart([weight / (2 * tanh(float(rate) / 2)) for rate, weight in terms])
    shares = [prod(1 / (1 - (other / scale) ** 2) for other in scales if other != scale) for scale in scales]

    def beyond(size: float) -> float:
        return sum(share * exp(-size / scale) for share, scale in zip(shares, scales, strict=True))

    rounding = sum(weight for _, weight in terms) / 2
    return min(added, _least(beyond, float(miss), added) + rounding)


def _apart(scales: Sequence[float]) -> list[float]:
    """The scales in ascending order, none near another, none smaller than it was."""
    found: list[float] = []
    for scale in sorted(scales):
        found.append(max(scale, found[-1] * _APART) if found else scale)
    return found


@lru_cache(maxsize=4096)
def _by_steps(first: float, second: float, most: float, miss: float) -> float:
    """As :func:`pair_reach`, by every value that Y has."""
    places = np.arange(ceil(_VANISHES / second) + 1, dtype=np.float64)
    chances = np.exp(-second * places) * tanh(second / 2)
    chances[1:] *= 2  # of either sign

    def beyond(size: float) -> float:
        return float(chances @ (_upper(first, size + most * places) + _upper(first, size - most * places)))

    return _least(beyond, miss, (1 / first + most / second) * _VANISHES) + 0.5


def _upper(rate: float, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability that X + U is above each size, for discrete Laplace X and uniform U from −½ to ½."""
    away = np.abs(sizes) + 0.5
    steps = np.floor(away)
    at_least = np.exp(-rate * steps) / (1 + exp(-rate))
    found = at_least * (1 - (away - steps) * -np.expm1(-rate))
    return np.asarray(np.where(sizes >= 0, found, 1 - found), np.float64)


def _least(beyond: Callable[[float], float], miss: float, most: float) -> float:
    """A size, at most ``most`` and near the least, beyond which the probability is at most ``miss``."""
    low, high = 0.0, most
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if beyond(middle) + _GUARD <= miss else (middle, high)
    return high * (1 + 2**-40)


@lru_cache(maxsize=1024)
def repeated_reach(rate: Fraction, times: int, miss: Fraction) -> float:
    """A size that the sum of ``times`` numbers of discrete Laplace noise exceeds with probability at most ``miss``.

    Proof: lem-laplace-sums
    """
    added = float(times * LaplaceSteps(rate).reach(miss / times))
    if times == 1 or miss < _LEAST_MISS:
        return min(added, _chernoff(float(rate), times, float(miss)))
    places = 2 * ceil(_chernoff(float(rate), times, _GUARD / 2))
    if places <= _MOST_PLACES:
        return min(added, _convolved(float(rate), times, float(miss), places))
    return min(added, _chernoff(float(rate), times, float(miss)), _continuous(float(rate), times, float(miss)))


def _chernoff(rate: float, times: int, miss: float) -> float:
    """The least Chernoff bound on the sum, over several tilts."""
    best = inf
    for place in range(1, 64):
        tilt = rate * place / 64
        growth = 2 * log(-_expm1(-rate)) - log(-_expm1(tilt - rate)) - log(-_expm1(-tilt - rate))
        best = min(best, (log(2 / miss) + times * growth) / tilt)
    return best


def _expm1(value: float) -> float:
    return float(np.expm1(value))


def _convolved(rate: float, times: int, miss: float, places: int) -> float:
    """From the characteristic function at that many places; what is farther away than these is wrapped around."""
    turns = np.sin(pi * np.arange(places // 2 + 1) / places) ** 2
    spread = 4 * exp(-rate) / _expm1(-rate) ** 2
    chances = np.fft.irfft(np.exp(-times * np.log1p(spread * turns)), places)
    chances[1 : places // 2] *= 2  # of either sign
    enough = np.flatnonzero(1 - np.cumsum(chances[: places // 2]) + 2 * _GUARD <= miss)
    return float(enough[0]) if enough.size else inf


def _continuous(rate: float, times: int, miss: float) -> float:
    """From the law of a sum of continuous Laplace noise, a mixture of gamma laws; steps are added."""
    kinds = np.arange(times)
    logs = np.array([lgamma(number + 1) for number in range(2 * times)])
    shares = np.exp(logs[times - 1 + kinds] - logs[kinds] - logs[times - 1] - (times - 1 + kinds) * log(2))
    left = np.cumsum(shares)[::-1]  # of the gamma laws of a shape above each number

    def beyond(size: float) -> float:
        if size <= 0:
            return 1.0
        return float(left @ np.exp(kinds * log(size) - size - logs[:times])) * (1 + 1e-6)

    scale = 1 / (2 * tanh(rate / 2))
    return scale * _least(beyond, miss, rate * _chernoff(rate, times, miss)) + times / 2


def mean_reach(off: float, divisor: float, farthest: float, reach: Callable[[float], float]) -> float:
    """How far noise moved a mean of values that are at most ``farthest`` from 0, if that is ``off`` with noise.

    ``divisor`` is the noisy number of values, and ``reach(most)`` a size that the noise of the sum minus μ times the
    noise of the number exceeds rarely, for every μ up to ``most`` in size.

    Proof: lem-mean-error
    """
    error = reach(farthest) / divisor
    for _ in range(3):
        error = min(error, reach(farthest * _in_parts((abs(off) + error) / farthest)) / divisor)
    return error


def variance_error(
    mean: float, variance: float, miss: Fraction, moved: Callable[[tuple[float, ...], Fraction], float]
) -> float:
    """How far noise moved a variance of values from −1 to 1, from the mean and the variance with noise.

    ``moved(weights, miss)`` is a size that noise of the sum of squares, of the sum, and of the number, times at most
    these weights and divided by the noisy number, exceeds with probability at most ``miss``.

    Proof: lem-variance-error
    """
    of_mean, most, widest = 1.0, 1.0, 1.0
    for _ in range(3):
        of_mean = min(of_mean, moved((1.0, most), miss / 10))
        most = min(most, _in_parts(abs(mean) + of_mean))
    error = 1.0
    for _ in range(3):
        error = min(error, moved((1.0, 2 * most, max(most**2, widest)), miss * 9 / 10) + of_mean**2)
        widest = min(widest, _in_parts(variance + error))
    return error


def covariance_error(
    means: tuple[float, float],
    covariance: float,
    miss: Fraction,
    mean_moved: Callable[[int, float, Fraction], float],
    moved: Callable[[tuple[float, ...], Fraction], float],
) -> float:
    """How far noise moved a covariance of two values from −1 to 1, from the means and the covariance with noise.

    ``mean_moved(which, most, miss)`` is a size that noise of one of the sums, and of the number times at most ``most``,
    divided by the noisy number, exceeds with probability at most ``miss``; ``moved(weights, miss)`` one for noise of
    the sum of products, of the two sums, and of the number, times at most these weights.

    Proof: lem-covariance-error
    """
    of_means, mosts = [1.0, 1.0], [1.0, 1.0]
    for _ in range(3):
        for which in range(2):
            of_means[which] = min(of_means[which], mean_moved(which, mosts[which], miss / 20))
            mosts[which] = min(mosts[which], _in_parts(abs(means[which]) + of_means[which]))
    error, widest = 2.0, 1.0
    for _ in range(3):
        weights = (1.0, mosts[1], mosts[0], mosts[0] * mosts[1] + widest)
        error = min(error, moved(weights, miss * 9 / 10) + of_means[0] * of_means[1])
        widest = min(widest, _in_parts(abs(covariance) + error))
    return error


def _in_parts(share: float) -> float:
    """A share of 1 at most, rounded up to a 32nd: so that few are looked up."""
    return min(ceil(32 * min(share, 1.0) * (1 + 2**-40)), 32) / 32
