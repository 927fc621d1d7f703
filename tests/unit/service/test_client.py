"""The client: the same Python and exceptions as with a local ledger, sync and async; and retries under one key."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import expost as xp
from expost.errors import UnknownEntry
from expost.mechanisms import Comparison
from expost.service.client import Connection
from serving import Running

BOUNDS = {"bounds": (0, 100)}
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "count": lambda t: t.where("age >= 60").count().laplace(epsilon=0.5),
    "filters": lambda t: t.where("age >= 60").derive(half="age / 2").where("half < 35").count().laplace(epsilon=0.5),
    "gaussian": lambda t: t.where("age >= 60").count().gaussian(epsilon=0.5, delta=1e-9),
    "sum": lambda t: t.sum("age", **BOUNDS).laplace(epsilon=1),
    "missing": lambda t: t.sum("cost", bounds=(0, 200), missing=1).laplace(epsilon=1),
    "mean": lambda t: t.mean("cost", missing=0, bounds=(0, 200)).laplace(epsilon=1),
    "counted": lambda t: t.where("age > 3").mean("cost", bounds=(0, 200)).counted(epsilon=1),
    "keys": lambda t: t.histogram("city", keys=["Rome", "Oslo"]).balanced(epsilon=1),
    "bins": lambda t: t.where("age > 3").histogram("age", bins=4, bounds=(0, 80)).laplace(epsilon=1),
    "edges": lambda t: t.where("age > 3").histogram("age", bins=[0, 10, 80]).laplace(epsilon=1),
    "above": lambda t: t.histogram("city", keys=["Rome", "Oslo"], other=None).above(5, at_most=1, epsilon=1),
    "discover": lambda t: t.discover("city").laplace(epsilon=1, delta=1e-9),
    "top": lambda t: t.discover("city").top(2, epsilon=1, delta=1e-9),
    "median": lambda t: t.median("age", **BOUNDS).permute_and_flip(epsilon=1),
    "quantiles": lambda t: t.quantile("age", [0.2, 0.8], **BOUNDS).permute_and_flip(epsilon=1),
    "variance": lambda t: t.variance("age", **BOUNDS).noisy(epsilon=1),
    "covariance": lambda t: t.covariance("age", "cost", bounds=[(0, 100), (0, 200)]).noisy(epsilon=1),
    "without bounds": lambda t: t.mean("cost").laplace(epsilon=1),
    "two without bounds": lambda t: t.correlation("age", "cost", missing=0).noisy(epsilon=1),
    "winsorized": lambda t: t.winsorized_mean("cost", trim=0.05, bounds=(0, 1000)).laplace(epsilon=1),
}


@pytest.fixture(scope="module")
def connection(running: Running) -> Iterator[Connection]:
    with xp.connect(running.address, running.secrets["alice"]) as found:
        yield found


@pytest.fixture(scope="module")
def at_home(running: Running) -> xp.PrivateTable:
    schema = {"person": "integer", "age": "integer", "city": "text", "cost": "number", "word": "text"}
    return xp.read(running.folder / "people.csv", unit="row", neighbours="substitute", schema=schema)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_same_python_as_at_home(connection: Connection, at_home: xp.PrivateTable, name: str) -> None:
    question = QUESTIONS[name]
    theirs = connection.ledger.run(question(connection.tables["people"]))
    ours = xp.Ledger(epsilon=10, delta=1e-5, neighbours="substitute").run(question(at_home))
    assert type(theirs.value) is type(ours.value)
    assert theirs.reserved == ours.reserved
    assert theirs.charged == theirs.mechanism.guarantee.cost_of(theirs.part)
    assert theirs.mechanism.describe(theirs.value)


def test_what_was_not_compared_is_told(connection: Connection) -> None:
    """Over the wire, in the result's words, and with the same price."""
    cells = connection.tables["people"].histogram("city", keys=["Rome", "Oslo"], other=None)
    found = connection.ledger.run(cells.above(-(10**6), at_most=1, epsilon=1))
    assert found.value == {"Rome": Comparison.ABOVE, "Oslo": Comparison.NOT_COMPARED}
    assert [type(each) for each in found.value.values()] == [Comparison] * 2
    assert found.part == found.mechanism.part_of(found.value)
    about = {"column": "city", "keys": ["Rome", "Oslo"], "threshold": -(10**6), "at_most": 1, "epsilon": 1}
    job = connection.ask("people", [{"name": "busy", "kind": "above", **about}])
    (question,) = job["result"]["questions"]
    assert question["value"] == {"Rome": "above", "Oslo": "not compared"}
    assert question["text"] == "above -1,000,000: Rome; not compared: Oslo"
    assert "stopped after 1 (at_most)" in question["notice"]


def test_values_are_about_the_data(connection: Connection) -> None:
    table = connection.tables["people"]
    found = connection.ledger.run(table.where("age >= 60").count().laplace(epsilon=20))
    assert abs(found.value - 1500) < 5
    assert len(connection.tables) == 2


def test_the_ledger(connection: Connection) -> None:
    ledger, question = connection.ledger, connection.tables["people"].where("age > 1").count().laplace(epsilon=0.25)
    quote = ledger.quote([question, question])
    assert (quote.worst, quote.best, quote.fits) == (xp.Cost(0.5), xp.Cost(0.5), True)
    key = secrets.token_hex(8)
    first, again = (ledger.run(question, key=key, label="labelled") for _ in range(2))
    assert first == again
    assert ledger.entries(last=1)[0]["what"] == "labelled"
    assert "labelled" in ledger.statement()
    assert ledger.statement(by="day").startswith("day")
    assert ledger.limit >= ledger.spent + ledger.remaining


def test_the_same_exceptions(connection: Connection, running: Running) -> None:
    table = connection.tables["people"]
    with pytest.raises(xp.BudgetExceeded, match="largest affordable"):
        connection.ledger.run(table.where("age > 1").count().laplace(epsilon=10_000))
    with pytest.raises(xp.InvalidValue, match="there is no column 'agee'"):
        table.where("agee > 1")
    with pytest.raises(xp.InvalidValue, match="not a question that a service answers"):
        connection.ledger.run(xp.Laplace(epsilon=1, sensitivity=1))
    with pytest.raises(xp.InvalidValue, match="not a question that a service answers"):
        connection.ledger.run(table.sum("age", bounds=(0, 100), grid=4).laplace(epsilon=1))
    looked_up = table.join({"age": [30, 40], "old": [0, 1]}, on="age")
    with pytest.raises(xp.InvalidValue, match="looks nothing up"):
        connection.ledger.run(looked_up.sum("old", bounds=(0, 1)).laplace(epsilon=1))
    key = secrets.token_hex(8)
    connection.ledger.run(table.where("age > 1").count().laplace(epsilon=0.1), key=key)
    with pytest.raises(xp.KeyConflict):
        connection.ledger.run(table.where("age > 2").count().laplace(epsilon=0.1), key=key)
    with pytest.raises(UnknownEntry):
        connection.ask("nothing", [{"name": "x", "kind": "count", "epsilon": 1}])
    with pytest.raises(xp.InvalidValue, match="valid token"):
        xp.connect(running.address, "xp_0_0")


def test_studies(connection: Connection) -> None:
    questions = [{"name": "old", "kind": "count", "where": "age >= 60", "epsilon": 1}]
    assert connection.plan("people", questions)["fits"]
    assert connection.ask("people", questions)["result"]["answered"] == 1


def test_async(running: Running) -> None:
    async def work() -> None:
        async with await xp.connect_async(running.address, running.secrets["bob"]) as connection:
            question = connection.tables["people"].where("age >= 60").count().laplace(epsilon=2)
            found = await asyncio.gather(*(connection.ledger.run(question) for _ in range(5)))
            assert len({each.entry.id for each in found}) == 5
            assert (await connection.ledger.quote([question])).fits
            assert "people/bob" in await connection.ledger.statement()

    asyncio.run(work())


class Unreliable(httpx.BaseTransport):
    """Loses requests on the way, and replies on the way back, in turn."""

    def __init__(self) -> None:
        self.inner, self.count = httpx.HTTPTransport(), 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.count += 1
        if self.count % 3 == 0:
            raise httpx.ConnectError("lost")
        reply = self.inner.handle_request(request)
        if self.count % 3 == 1:
            reply.read()
            raise httpx.ReadError("lost")
        return reply


def test_retries_are_charged_once(running: Running) -> None:
    before = running.ledger().account("bob").spent
    with xp.connect(running.address, running.secrets["bob"], transport=Unreliable()) as connection:
        connection.ledger.run(connection.tables["people"].where("age > 1").count().laplace(epsilon=0.375))
    assert running.ledger().account("bob").spent - before == xp.Cost(0.375)
