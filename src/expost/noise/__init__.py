"""Exact samplers on a cryptographic source; a seeded source for tests only.

One number at a time: the functions here. Arrays: the functions of :mod:`expost.noise.vector`.
"""

from expost.noise.scalar import bernoulli as bernoulli
from expost.noise.scalar import bernoulli_exp as bernoulli_exp
from expost.noise.scalar import categorical as categorical
from expost.noise.scalar import discrete_gaussian as discrete_gaussian
from expost.noise.scalar import discrete_laplace as discrete_laplace
from expost.noise.scalar import geometric as geometric
from expost.noise.scalar import rounded_gaussian as rounded_gaussian
from expost.noise.scalar import rounded_laplace as rounded_laplace
from expost.noise.source import NoiseSource as NoiseSource
from expost.noise.source import SeededNoise as SeededNoise
from expost.noise.source import SystemNoise as SystemNoise
