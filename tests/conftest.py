"""What several tests need: fresh places for ledgers, one PostgreSQL server per worker."""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from servers import Server, new_schema
from soak import SOAK

os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="expost-state-")  # where heads of servers are noted
os.environ.pop("COLUMNS", None)  # workers inherit one; pages and golden texts are as wide as a pipe
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # what a shell starts in the background inherits that
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "expost",
    deadline=None,  # a busy machine must not fail a test
    suppress_health_check=[HealthCheck.too_slow],  # the same
    max_examples=500 if SOAK else 40,
    derandomize=not SOAK,  # the same source passes or fails each time; `make soak` looks for more
)
settings.load_profile("expost")


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A private PostgreSQL server."""
    server = Server()
    yield server
    server.remove()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> Callable[[], str]:
    """Gives the address of a new file."""
    return lambda: f"sqlite:///{tmp_path}/{secrets.token_hex(4)}.db"


@pytest.fixture
def postgres_url(server: Server) -> Callable[[], str]:
    """Gives the address of a new schema."""
    return lambda: new_schema(server)


@pytest.fixture(params=["sqlite", "postgres"])
def new_url(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Gives new addresses, on either database."""
    found: Callable[[], str] = request.getfixturevalue(f"{request.param}_url")
    return found
