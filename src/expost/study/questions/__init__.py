"""Every kind of question, by its name."""

from expost.study.kinds import Kind
from expost.study.questions.cells import ABOVE, DISCOVER, HISTOGRAM, LARGE
from expost.study.questions.models import DESCENT, LOGISTIC
from expost.study.questions.numbers import COUNT, MEAN, SUM
from expost.study.questions.robust import MEDIAN, QUANTILE, REGRESSION, SPREAD, TRIMMED_MEAN

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        COUNT, SUM, MEAN, HISTOGRAM, DISCOVER, ABOVE, LARGE, SPREAD, MEDIAN, QUANTILE, TRIMMED_MEAN, REGRESSION,
        LOGISTIC, DESCENT,
    )
}  # fmt: skip

__all__ = ["KINDS"]
