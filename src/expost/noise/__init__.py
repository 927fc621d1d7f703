"""RANDOMNESS: exact samplers on a cryptographic source; a seeded source for tests only."""

from expost.noise.scalar import bernoulli, bernoulli_exp, discrete_laplace, geometric
from expost.noise.source import SeededNoise, Source, SystemNoise

__all__ = [
    "SeededNoise",
    "Source",
    "SystemNoise",
    "bernoulli",
    "bernoulli_exp",
    "discrete_laplace",
    "geometric",
]
