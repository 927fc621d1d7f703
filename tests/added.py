"""What statistics add up, exactly: the numbers that noise is added to, and how far one unit may move them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expost.questions.statistic import Sums


class Added(NamedTuple):
    """The numbers of one noise, in the units that it is for: a row for each, a column for each group."""

    name: str
    sums: Sums
    numbers: NDArray[Any]

    @property
    def noisy(self) -> NDArray[Any]:
        """Those that are not public."""
        return self.numbers[self.sums.public :]


def added(question: Any) -> list[Added]:
    """All numbers of a question with stated keys."""
    found, start, all_of = question.exact(), 0, []
    for name, several in question.sums.items():
        for sums in several:
            size = len(sums.sql)
            rows = [
                [(found[key][start + place] if key in found else 0) * times for key in question.keys]
                for place, times in enumerate(sums.times)
            ]
            all_of.append(Added(name, sums, np.array(rows, object)))
            start += size
    return all_of


def rows_of(question: Any) -> list[tuple[Any, ...]]:
    """The exact numbers of every group that has a row."""
    return sorted((key, *numbers) for key, numbers in question.exact().items())
