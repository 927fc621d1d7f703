"""ALGORITHMS: one file a family."""

from expost.mechanisms.coin import Coin
from expost.mechanisms.gaussian import DiscreteGaussian, Gaussian
from expost.mechanisms.iterative import Iterative
from expost.mechanisms.laplace import Laplace
from expost.mechanisms.response import RandomizedResponse
from expost.mechanisms.selection import Exponential, PermuteAndFlip
from expost.mechanisms.sparse_vector import AdaptiveSparseVector, SparseVector

__all__ = [
    "AdaptiveSparseVector",
    "Coin",
    "DiscreteGaussian",
    "Exponential",
    "Gaussian",
    "Iterative",
    "Laplace",
    "PermuteAndFlip",
    "RandomizedResponse",
    "SparseVector",
]
