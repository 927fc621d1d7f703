"""A ledger of each store, with a clock of its own. What books tell, and to whom, is tested in this folder."""

from __future__ import annotations

import pytest

from clocks import Clock
from expost import Ledger

pytestmark = pytest.mark.counted


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, clock: Clock) -> Ledger:
    if request.param == "memory":
        ledger = Ledger(epsilon=20, delta=1, name="study")
        ledger._store._clock = clock  # type: ignore[attr-defined]
        return ledger
    url = request.getfixturevalue(f"{request.param}_url")()
    return Ledger.create(
        url, "study", epsilon=20, delta=1, neighbours="add-remove", unit="person", settings=clock.settings()
    )
