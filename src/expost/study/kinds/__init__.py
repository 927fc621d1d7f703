"""Every kind of question, by its name."""

from expost.study.kinds.cells import ABOVE, DISCOVER, HISTOGRAM, LARGE
from expost.study.kinds.kind import Kind
from expost.study.kinds.models import DESCENT, LOGISTIC
from expost.study.kinds.numbers import COUNT, MEAN, SUM
from expost.study.kinds.robust import MEDIAN, QUANTILE, REGRESSION, SPREAD, TRIMMED_MEAN

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        COUNT, SUM, MEAN, HISTOGRAM, DISCOVER, ABOVE, LARGE, SPREAD, MEDIAN, QUANTILE, TRIMMED_MEAN, REGRESSION,
        LOGISTIC, DESCENT,
    )
}  # fmt: skip

__all__ = ["KINDS"]
