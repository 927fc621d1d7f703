"""One service for all tests of a worker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import REVIEWED, Running
from stepped import StandingClock

pytestmark = pytest.mark.slow


@pytest.fixture
def no_reviews(running: Running) -> None:
    """What other tests left waiting is declined: lists of reviews have twenty a page."""
    with running.client("custodian") as custodian:
        while waiting := custodian.get("/v1/admin/reviews").json():
            for each in waiting:
                verdict = {"accept": False, "reason": "left by another test"}
                assert custodian.post(f"/v1/admin/reviews/{each['job']}", json=verdict).status_code == 204


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with three data sets, two of one ledger and one of another."""
    folder: Path = tmp_path_factory.mktemp("service")
    service = Running(folder, server="external_engines = true", more=REVIEWED)
    yield service.start()
    service.stop()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> StandingClock:
    """Time stands still in this process, but for what counts how long something takes."""
    clock = StandingClock()
    monkeypatch.setattr(time, "time", clock.time)
    monkeypatch.setattr(time, "time_ns", clock.time_ns)
    return clock
