"""Empty ledgers of each store. What every ledger does, wherever its books are kept, is in this folder."""

from collections.abc import Callable

import pytest

from books import NewLedger
from expost import Ledger

pytestmark = pytest.mark.counted


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def new_ledger(request: pytest.FixtureRequest) -> NewLedger:
    """Makes an empty ledger of the store under test, given a limit and options."""
    return Ledger if request.param == "memory" else durable(request.getfixturevalue(f"{request.param}_url"))


def durable(new_url: Callable[[], str]) -> NewLedger:
    def make(epsilon: object, delta: object = 0, **options: object) -> Ledger:
        options = {"name": "ledger", "neighbours": "add-remove", "unit": "person", **options}
        return Ledger.create(new_url(), epsilon=epsilon, delta=delta, **options)

    return make
