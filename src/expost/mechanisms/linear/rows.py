"""Linear models as rows: the intercept, and a coefficient for each feature."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from expost.estimate import Estimate
from expost.estimates import Estimates
from expost.frame import Frame

NO_ERROR = "how far noise moved each coefficient of a model by itself is not known"


def model_frame(
    names: tuple[str, ...], rows: Iterable[tuple[str, tuple[Any, ...], float]], why: str = NO_ERROR
) -> Frame:
    """What each number is, its key, and the number: without errors."""
    what, keys, numbers = zip(*rows, strict=True)
    known = [Estimate.unknown(float(number), why) for number in numbers]
    return Estimates(names, keys, what, known.__getitem__).frame
