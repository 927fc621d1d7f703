"""ALGORITHMS: one file a family."""

from expost.mechanisms.gaussian import DiscreteGaussian, Gaussian
from expost.mechanisms.laplace import Laplace
from expost.mechanisms.response import RandomizedResponse
from expost.mechanisms.selection import Exponential, PermuteAndFlip

__all__ = ["DiscreteGaussian", "Exponential", "Gaussian", "Laplace", "PermuteAndFlip", "RandomizedResponse"]
