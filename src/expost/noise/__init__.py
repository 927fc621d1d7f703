"""RANDOMNESS: exact samplers on a cryptographic source; a seeded source for tests only.

One number at a time: the functions here. Arrays: the functions of :mod:`expost.noise.vector`.
"""

from expost.noise.scalar import (
    bernoulli,
    bernoulli_exp,
    categorical,
    discrete_gaussian,
    discrete_laplace,
    geometric,
    rounded_gaussian,
    rounded_laplace,
)
from expost.noise.source import NoiseSource, SeededNoise, SystemNoise

__all__ = [
    "NoiseSource",
    "SeededNoise",
    "SystemNoise",
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "discrete_gaussian",
    "discrete_laplace",
    "geometric",
    "rounded_gaussian",
    "rounded_laplace",
]
