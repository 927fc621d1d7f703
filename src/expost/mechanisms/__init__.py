"""ALGORITHMS: one file a family."""

from expost.mechanisms.coin import Coin
from expost.mechanisms.gaussian import DiscreteGaussian, Gaussian
from expost.mechanisms.interquantile import InterquantileRange, InterquartileRange, NoisyInterquartileRange
from expost.mechanisms.iterative import Iterative
from expost.mechanisms.laplace import Laplace
from expost.mechanisms.location import Median, Quantile, TrimmedMean
from expost.mechanisms.propose_test_release import Chain, FirstStable, Proposal, ProposeTestRelease, TestedRelease
from expost.mechanisms.regression import RobustRegression
from expost.mechanisms.response import RandomizedResponse
from expost.mechanisms.selection import Exponential, PermuteAndFlip
from expost.mechanisms.sparse_vector import AdaptiveSparseVector, SparseVector

__all__ = [
    "AdaptiveSparseVector",
    "Chain",
    "Coin",
    "DiscreteGaussian",
    "Exponential",
    "FirstStable",
    "Gaussian",
    "InterquantileRange",
    "InterquartileRange",
    "Iterative",
    "Laplace",
    "Median",
    "NoisyInterquartileRange",
    "PermuteAndFlip",
    "Proposal",
    "ProposeTestRelease",
    "Quantile",
    "RandomizedResponse",
    "RobustRegression",
    "SparseVector",
    "TestedRelease",
    "TrimmedMean",
]
