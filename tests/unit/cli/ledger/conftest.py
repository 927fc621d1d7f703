"""A ledger that `expost ledger …` is tried on in this folder."""

from collections.abc import Callable

import pytest

from ledger_commands import furnished

pytestmark = pytest.mark.counted


@pytest.fixture
def clinic(sqlite_url: Callable[[], str]) -> str:
    """A ledger with an account that settled one entry with a key and left one open."""
    return furnished(sqlite_url())
