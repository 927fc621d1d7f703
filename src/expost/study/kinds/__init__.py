"""Every kind of question, by its name. A kind is written in one file, its family's; this one only gathers."""

from expost.study.kinds.bounded import BOUNDED
from expost.study.kinds.cells import CELLS
from expost.study.kinds.kind import QuestionKind
from expost.study.kinds.lost import LOSSES
from expost.study.kinds.models import MODELS
from expost.study.kinds.moments import MOMENTS
from expost.study.kinds.numbers import TOTALS
from expost.study.kinds.robust import ROBUST

KINDS: dict[str, QuestionKind] = {
    kind.name: kind for kind in (*TOTALS, *LOSSES, *CELLS, *BOUNDED, *MOMENTS, *ROBUST, *MODELS)
}

__all__ = ["KINDS"]
