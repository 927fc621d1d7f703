"""ALGORITHMS: one file a family."""

from expost.mechanisms.coin import Coin
from expost.mechanisms.gaussian import DiscreteGaussian, Gaussian
from expost.mechanisms.iterative import Iterative
from expost.mechanisms.laplace import Laplace
from expost.mechanisms.linear.descent import LogisticDescent
from expost.mechanisms.linear.model import LinearModel
from expost.mechanisms.linear.perturbation import ObjectivePerturbation, OutputPerturbation
from expost.mechanisms.linear.tested import ModelTest, Tested
from expost.mechanisms.linear.tested_logistic import TestedLogisticRegression
from expost.mechanisms.randomized_response import RandomizedResponse
from expost.mechanisms.selection import Exponential, PermuteAndFlip
from expost.mechanisms.sparse_vector.adaptive import AdaptiveSparseVector
from expost.mechanisms.sparse_vector.sparse_vector import SparseVector
from expost.mechanisms.stability.generalized import TestedRelease
from expost.mechanisms.stability.location import StableMedian, StableQuantile, StableTrimmedMean
from expost.mechanisms.stability.quantile_range import (
    StableInterquantileRange,
    StableInterquartileRange,
    StableNoisyInterquartileRange,
)
from expost.mechanisms.stability.release import Chain, FirstStable, Proposal, ProposeTestRelease
from expost.mechanisms.stability.votes import StableRegression

__all__ = [
    "AdaptiveSparseVector",
    "Chain",
    "Coin",
    "DiscreteGaussian",
    "Exponential",
    "FirstStable",
    "Gaussian",
    "Iterative",
    "Laplace",
    "LinearModel",
    "LogisticDescent",
    "ModelTest",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PermuteAndFlip",
    "Proposal",
    "ProposeTestRelease",
    "RandomizedResponse",
    "SparseVector",
    "StableInterquantileRange",
    "StableInterquartileRange",
    "StableMedian",
    "StableNoisyInterquartileRange",
    "StableQuantile",
    "StableRegression",
    "StableTrimmedMean",
    "Tested",
    "TestedLogisticRegression",
    "TestedRelease",
]
