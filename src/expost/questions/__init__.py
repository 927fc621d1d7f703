"""Questions: what is asked, without an ε and without data. Each statistic is defined once, in a file of its name."""

import expost.data  # noqa: F401  # first: tables and statistics know each other, and the package of tables loads both
from expost.questions.count import Count as Count
from expost.questions.covariance import Correlation as Correlation
from expost.questions.covariance import Covariance as Covariance
from expost.questions.mean import Mean as Mean
from expost.questions.on_columns import OnColumns as OnColumns
from expost.questions.quantile import Median as Median
from expost.questions.quantile import Quantile as Quantile
from expost.questions.ratio import Ratio as Ratio
from expost.questions.regression import LinearRegression as LinearRegression
from expost.questions.share import Share as Share
from expost.questions.statistic import Statistic as Statistic
from expost.questions.statistics import NoisyStatistics as NoisyStatistics
from expost.questions.statistics import NumericStatistic as NumericStatistic
from expost.questions.statistics import Statistics as Statistics
from expost.questions.sum import Sum as Sum
from expost.questions.variance import Variance as Variance
