"""Questions: what is asked, without an ε and without data. Each statistic is defined once, in a file of its name."""

import expost.data  # noqa: F401  # first: tables and statistics know each other, and the package of tables loads both
from expost.questions.cells import CountedCells as CountedCells
from expost.questions.cells import LargeCells as LargeCells
from expost.questions.clamped_mean import ClampedMean as ClampedMean
from expost.questions.count import Count as Count
from expost.questions.covariance import Correlation as Correlation
from expost.questions.covariance import Covariance as Covariance
from expost.questions.found import Discover as Discover
from expost.questions.found import Top as Top
from expost.questions.lost_values import LostValues as LostValues
from expost.questions.mean import Mean as Mean
from expost.questions.on_columns import OnColumns as OnColumns
from expost.questions.quantile import Median as Median
from expost.questions.quantile import Quantile as Quantile
from expost.questions.quantile import Quartiles as Quartiles
from expost.questions.ratio import Ratio as Ratio
from expost.questions.record import QuestionRecord as QuestionRecord
from expost.questions.regression import LinearRegression as LinearRegression
from expost.questions.share import Share as Share
from expost.questions.statistic import Statistic as Statistic
from expost.questions.statistics import NoisyStatistics as NoisyStatistics
from expost.questions.statistics import NumericStatistic as NumericStatistic
from expost.questions.statistics import Statistics as Statistics
from expost.questions.sum import Sum as Sum
from expost.questions.variance import Variance as Variance
