"""Private input: tables behind an engine, bounded to a privacy unit, and questions that know their own sensitivity."""

from expost.data.column import Column
from expost.data.discovery import Discovered, Discovery, MostFrequent
from expost.data.engine import Engine
from expost.data.expression import ALLOWED
from expost.data.group_answers import GroupAnswers
from expost.data.groups import Grouped, Groups
from expost.data.histograms import Above, BalancedCounts, Histogram
from expost.data.moments import Moments, NoisyMoments, OnColumns
from expost.data.quantiles import PrivateQuantiles, Ranks
from expost.data.questions import Count, Noisy, NoisyUntil, Question
from expost.data.sensitivity import Sensitivity
from expost.data.sums import CountedMean, Mean, NoisyMean, Sum
from expost.data.table import PrivateTable, read
from expost.data.unit import Unit
from expost.data.winsorized import NoisyWinsorizedMean, WinsorizedMean

__all__ = [
    "ALLOWED",
    "Above",
    "BalancedCounts",
    "Column",
    "Count",
    "CountedMean",
    "Discovered",
    "Discovery",
    "Engine",
    "GroupAnswers",
    "Grouped",
    "Groups",
    "Histogram",
    "Mean",
    "Moments",
    "MostFrequent",
    "Noisy",
    "NoisyMean",
    "NoisyMoments",
    "NoisyUntil",
    "NoisyWinsorizedMean",
    "OnColumns",
    "PrivateQuantiles",
    "PrivateTable",
    "Question",
    "Ranks",
    "Sensitivity",
    "Sum",
    "Unit",
    "WinsorizedMean",
    "read",
]
