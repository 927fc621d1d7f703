"""ALGORITHMS: one file a family."""

from expost.mechanisms.coin import Coin
from expost.mechanisms.descent import LogisticDescent
from expost.mechanisms.gaussian import DiscreteGaussian, Gaussian
from expost.mechanisms.interquantile import (
    StableInterquantileRange,
    StableInterquartileRange,
    StableNoisyInterquartileRange,
)
from expost.mechanisms.iterative import Iterative
from expost.mechanisms.laplace import Laplace
from expost.mechanisms.linear import LinearModel, ObjectivePerturbation, OutputPerturbation
from expost.mechanisms.location import StableMedian, StableQuantile, StableTrimmedMean
from expost.mechanisms.propose_test_release import Chain, FirstStable, Proposal, ProposeTestRelease, TestedRelease
from expost.mechanisms.regression import StableRegression
from expost.mechanisms.response import RandomizedResponse
from expost.mechanisms.selection import Exponential, PermuteAndFlip
from expost.mechanisms.sparse_vector import AdaptiveSparseVector, SparseVector
from expost.mechanisms.tested import ModelTest, Tested
from expost.mechanisms.tested_logistic import TestedLogisticRegression

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
