"""One service for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import Running

REVIEWED = """
[data.guarded]
path = "people.csv"
ledger = "people"
review = true
kinds = ["count", "sum"]
schema = { person = "integer", age = "integer", city = "text", cost = "number", word = "text" }

[data.guarded.privacy]
unit = "row"
who = "visitor"
neighbours = "substitute"

[data.theirs]
path = "people.csv"
ledger = "others"
schema = { person = "integer", age = "integer", city = "text", cost = "number", word = "text" }

[data.theirs.privacy]
unit = "row"
who = "visitor"
neighbours = "substitute"
"""


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with three data sets, two of one ledger and one of another."""
    folder: Path = tmp_path_factory.mktemp("service")
    service = Running(folder, server="external_engines = true", more=REVIEWED)
    yield service.start()
    service.stop()
