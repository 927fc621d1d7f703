"""A mechanism for arrays, run on the columns of a table."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from expost.data.questions import TableMechanism
from expost.guarantee import Guarantee, Part
from expost.mechanism import Mechanism
from expost.mechanisms.linear.box import LinearFit
from expost.noise import NoiseSource
from expost.questions.products import Products
from expost.questions.regression import NamedFit

if TYPE_CHECKING:
    from expost.questions.statistics import Statistics


@dataclass(frozen=True, kw_only=True, repr=False)
class OnColumns(TableMechanism[Any]):
    """A mechanism for columns, run on the columns of a question.

    Parameters
    ----------
    question
        Which statistic of which table.
    mechanism
        What is run on its columns.

    Proof: lem-column
    """

    question: Statistics
    mechanism: Mechanism

    @property
    def _plain_guarantee(self) -> Guarantee:
        """The mechanism's guarantee."""
        return self.mechanism.guarantee

    def part_of(self, output: Any) -> Part:
        """The mechanism's part."""
        return self.mechanism.part_of(output)

    def check(self, data: Any) -> None:
        """Raise unless the mechanism can be run on that many records."""
        super().check(data)
        self.mechanism.check(self.question.columns)

    def sample(self, data: Any, noise: NoiseSource) -> Any:
        """Read the columns, and run the mechanism on them."""
        return self.mechanism.sample(np.asarray(self.question.columns), noise)

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """What the mechanism makes of it; a regression with the names of its columns."""
        answer, asked = self.mechanism.answer_of(output, origin), self.question.alone
        return NamedFit.of(answer, asked) if isinstance(answer, LinearFit) and isinstance(asked, Products) else answer

    def describe(self, output: Any) -> str:
        """The question, and the mechanism's description."""
        return f"{self.question.title} {self.mechanism.describe(output)}"
