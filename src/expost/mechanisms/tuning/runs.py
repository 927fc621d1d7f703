"""How often to run: a random number, drawn before the data is looked at, that hides how many runs were needed."""

from __future__ import annotations

from fractions import Fraction

from expost import bracket
from expost.noise import NoiseSource, bernoulli


def number_of_runs(noise: NoiseSource, stop: Fraction, factor: Fraction) -> int:
    """k ≥ 1 with probability proportional to (1 − stop)^k · Π (j + factor − 2)/(j + 1) over j < k.

    That is a negative binomial law without its zero: geometric for factor 3, logarithmic for factor 2.

    Proof: lem-runs
    """
    while True:
        runs = 1
        while not bernoulli(noise, stop):
            if not bernoulli(noise, (runs + factor - 2) / (runs + 1)):
                break  # rejected: begin again
            runs += 1
        else:
            return runs


def mean_runs(stop: Fraction, factor: Fraction) -> Fraction:
    """How many runs there are on average, rounded up.

    Proof: lem-runs
    """
    power, log = factor - 2, bracket.log(1 / stop)
    odds = (1 - stop) / stop
    if power == 0:
        return odds / log.lower
    if power > 0:
        return odds * power / (1 - bracket.exp(-power * log.lower).upper)
    return odds * -power / (bracket.exp(-power * log.lower).lower - 1)
