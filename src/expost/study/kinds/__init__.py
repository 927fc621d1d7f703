"""Every kind of question, by its name. A kind is written in one file, its family's; this one only gathers."""

from contextlib import suppress
from typing import Any

from expost.errors import InvalidValue
from expost.questions import QuestionRecord
from expost.study.kinds.bounded import BOUNDED
from expost.study.kinds.cells import CELLS
from expost.study.kinds.kind import QuestionKind
from expost.study.kinds.lost import LOSSES
from expost.study.kinds.models import MODELS
from expost.study.kinds.moments import MOMENTS
from expost.study.kinds.numbers import TOTALS
from expost.study.kinds.robust import ROBUST

FAMILIES: dict[str, tuple[QuestionKind, ...]] = {
    "Counts, sums and means": (*TOTALS, *LOSSES),
    "Histograms, frequent values and thresholds": tuple(CELLS),
    "Quantiles and regression": tuple(BOUNDED),
    "Spread, two columns, and robust means": tuple(MOMENTS),
    "Tests before the release": tuple(ROBUST),
    "Classifiers": tuple(MODELS),
}
"""The kinds in the order of the documentation, by what they are about."""
KINDS: dict[str, QuestionKind] = {kind.name: kind for kinds in FAMILIES.values() for kind in kinds}


def stated_as(record: QuestionRecord[Any]) -> dict[str, Any]:
    """How a study asks what a record says: its kind, and what that states. Raises ``InvalidValue`` if no kind can."""
    kinds = [kind for kind in KINDS.values() if kind.record is type(record)]
    for kind in kinds[:-1]:
        with suppress(InvalidValue):
            return {"kind": kind.name, **kind.stated(record)}
    if not kinds:
        raise InvalidValue(f"no kind of question of a study, or of a service, is a {record.kind}: ask another question")
    return {"kind": kinds[-1].name, **kinds[-1].stated(record)}


__all__ = ["FAMILIES", "KINDS", "stated_as"]
