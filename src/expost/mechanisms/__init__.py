"""ALGORITHMS: one file a family."""

from expost.mechanisms.coin import Coin
from expost.mechanisms.descent import LogisticDescent
from expost.mechanisms.gaussian import DiscreteGaussian, Gaussian
from expost.mechanisms.interquantile import InterquantileRange, InterquartileRange, NoisyInterquartileRange
from expost.mechanisms.iterative import Iterative
from expost.mechanisms.laplace import Laplace
from expost.mechanisms.linear import LinearModel, ObjectivePerturbation, OutputPerturbation
from expost.mechanisms.location import Median, Quantile, TrimmedMean
from expost.mechanisms.propose_test_release import Chain, FirstStable, Proposal, ProposeTestRelease, TestedRelease
from expost.mechanisms.regression import RobustRegression
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
    "InterquantileRange",
    "InterquartileRange",
    "Iterative",
    "Laplace",
    "LinearModel",
    "LogisticDescent",
    "Median",
    "ModelTest",
    "NoisyInterquartileRange",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "PermuteAndFlip",
    "Proposal",
    "ProposeTestRelease",
    "Quantile",
    "RandomizedResponse",
    "RobustRegression",
    "SparseVector",
    "Tested",
    "TestedLogisticRegression",
    "TestedRelease",
    "TrimmedMean",
]
