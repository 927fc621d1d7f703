"""What an ordinary run of the tests leaves to ``make soak``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

SOAK = int(os.environ.get("EXPOST_SOAK", "0"))
"""How many kills a test of faults makes; 0 in an ordinary run."""

Case = TypeVar("Case")


def some(cases: Sequence[Case], every: int) -> Sequence[Case]:
    """Each ``every``-th case, beginning with the first; all cases in ``make soak``."""
    return cases if SOAK else cases[::every]
