"""One model after another behind a private test, until one passes or the budget is spent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from expost.cost import Cost
from expost.errors import BudgetExceeded, InvalidValue
from expost.ledger import Ledger
from expost.mechanism import Mechanism, Release


@dataclass(frozen=True)
class Attempts:
    """What was tried: the receipts, the last of which may hold a model."""

    releases: tuple[Release, ...]
    exhausted: bool
    """Whether a candidate was left untried because the ledger could not reserve for it."""

    @property
    def release(self) -> Release | None:
        """The one that passed; None if none did."""
        return self.releases[-1] if self.releases and not self.releases[-1].withheld else None

    @property
    def charged(self) -> Cost:
        """What all attempts cost."""
        return sum((release.charged for release in self.releases), Cost(0))

    def __str__(self) -> str:
        end = "one passed" if self.release else "the budget ended it" if self.exhausted else "none passed"
        return f"{len(self.releases)} tried, {end} · charged {self.charged}"


def try_until_one_passes(
    ledger: Ledger, candidates: Iterable[Mechanism], on: Any, *, label: str | None = None
) -> Attempts:
    """Run candidates that may withhold in order, until one answers; each that does not costs only its refusal.

    Candidates are mechanisms such as :class:`~expost.mechanisms.TestedLogisticRegression` with different regularisers
    or features. A list, or an iterator that makes each one when the one before has failed. Stops before the first
    that the ledger cannot reserve for.

    >>> from expost.mechanisms import TestedLogisticRegression
    >>> import numpy as np
    >>> candidates = [
    ...     TestedLogisticRegression(epsilon=1, test_epsilon=0.1, threshold=0.2, norm=1, regularizer=r)
    ...     for r in (1, 0.1)
    ... ]
    >>> nothing_to_learn = np.random.default_rng(0).integers(0, 2, (5000, 4)).astype(float)
    >>> print(try_until_one_passes(Ledger(epsilon=2), candidates, nothing_to_learn))
    2 tried, none passed · charged ε 0.2

    Proof: thm-attempts
    """
    releases: list[Release] = []
    for number, candidate in enumerate(candidates, 1):
        if not isinstance(candidate, Mechanism):
            raise InvalidValue(f"candidates are mechanisms, got {type(candidate).__name__}")
        try:
            releases.append(ledger.run(candidate, on=on, label=label and f"{label}: {number}"))
        except BudgetExceeded:
            return Attempts(tuple(releases), exhausted=True)
        if not releases[-1].withheld:
            break
    return Attempts(tuple(releases), exhausted=False)
