"""The client: the same Python and exceptions as with a local ledger, sync and async; and retries under one key."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import duckdb
import httpx
import pytest

import expost as xp
from expost.errors import InvalidValue, UnknownEntry
from expost.frame import Frame
from expost.mechanisms import Comparison, Laplace
from expost.questions import Quartiles
from expost.service.client import Connection
from servers import free_port
from serving import Running

CITIES = ["Rome", "Oslo"]
BOUNDS: Any = {"bounds": (0, 100)}
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "count": lambda t: t.where("age >= 60").count().mechanism(epsilon=0.5),
    "filters": lambda t: t.where("age >= 60").derive(half="age / 2").where("half < 35").count().mechanism(epsilon=0.5),
    "a share of many digits": lambda t: t.where("age >= 60").count().mechanism(within="12.34567 %", epsilon=1),
    "gaussian": lambda t: t.where("age >= 60").count().mechanism(epsilon=0.5, delta=1e-9, noise="gaussian"),
    "sum": lambda t: t.sum("age", **BOUNDS).mechanism(epsilon=1),
    "missing": lambda t: t.sum("cost", bounds=(0, 200), missing=1).mechanism(epsilon=1),
    "mean": lambda t: t.mean("cost", missing=0, bounds=(0, 200)).mechanism(epsilon=1),
    "counted": lambda t: t.where("age > 3").mean("cost", bounds=(0, 200)).mechanism(epsilon=1),
    "keys": lambda t: t.histogram("city", keys=["Rome", "Oslo"]).mechanism(epsilon=1),
    "bins": lambda t: t.where("age > 3").histogram("age", bins=4, bounds=(0, 80)).mechanism(epsilon=1),
    "edges": lambda t: t.where("age > 3").histogram("age", bins=[0, 10, 80]).mechanism(epsilon=1),
    "above": lambda t: t.histogram("city", keys=["Rome", "Oslo"], other=None).above(5, at_most=1).mechanism(epsilon=1),
    "discover": lambda t: t.discover("city").mechanism(epsilon=1, delta=1e-9),
    "top": lambda t: t.discover("city").top(2).mechanism(epsilon=1, delta=1e-9),
    "median": lambda t: t.median("age", **BOUNDS).mechanism(epsilon=1),
    "quantiles": lambda t: t.quantile("age", [0.2, 0.8], **BOUNDS).mechanism(epsilon=1),
    "variance": lambda t: t.variance("age", **BOUNDS).mechanism(epsilon=1),
    "covariance": lambda t: t.covariance("age", "cost", bounds=[(0, 100), (0, 200)]).mechanism(epsilon=1),
    "without bounds": lambda t: t.mean("cost").mechanism(epsilon=1),
    "two without bounds": lambda t: t.correlation("age", "cost", missing=0).mechanism(epsilon=1),
    "quartiles": lambda t: t.asked(Quartiles("age", (0, 100))).mechanism(epsilon=1),
    "rounded": lambda t: t.quantile("cost", 0.9, bounds=(0, 200), grid=0.25).mechanism(epsilon=1),
    "lost": lambda t: t.lost("cost", bounds=(10, 150)).mechanism(epsilon=1),
    "regression": lambda t: t.regression(["age"], "cost", bounds=[(0, 100)], target_bounds=(0, 200)).mechanism(
        epsilon=1
    ),
    "groups": lambda t: t.where("age > 3").by("city", keys=CITIES).count().mechanism(epsilon=1),
    "a mean by group": lambda t: t.by("city", keys=CITIES).mean("age", **BOUNDS).mechanism(epsilon=1),
    "a median by group": lambda t: t.by("city", keys=CITIES).median("age", **BOUNDS).mechanism(epsilon=1),
    "by two": lambda t: (
        t.derive(old="age >= 60")
        .by("city", "old", keys=[("Rome", True), ("Oslo", False)])
        .sum("age", **BOUNDS)
        .mechanism(epsilon=1)
    ),
    "discovered groups": lambda t: t.by("city").variance("age", **BOUNDS).mechanism(epsilon=2, delta=1e-9),
    "with a total": lambda t: (
        t.by("city", keys=CITIES).agg(total=True, **{"mean of age": xp.Mean("age", **BOUNDS)}).mechanism(epsilon=1)
    ),
    "ratio": lambda t: t.ratio("cost", "age", bounds=[(0, 200), (0, 100)]).mechanism(epsilon=1),
    "a normal mean": lambda t: t.mean("age", **BOUNDS).mechanism(epsilon=0.5, delta=1e-9, noise="gaussian"),
    "normal groups": lambda t: t.by("city", keys=CITIES).count().mechanism(epsilon=0.5, delta=1e-9, noise="gaussian"),
    "winsorized": lambda t: t.winsorized_mean("cost", trim=0.05, bounds=(0, 1000)).mechanism(epsilon=1),
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
    theirs = connection.ledger.run(question(connection.data["people"]))
    ours = xp.Ledger(epsilon=10, delta=1e-5, neighbours="substitute").run(question(at_home))
    assert type(theirs.value) is type(ours.value)
    assert theirs.reserved == ours.reserved
    assert theirs.charged == theirs.mechanism.guarantee.cost_of(theirs.part)
    assert theirs.mechanism.describe(theirs.output)
    assert theirs.frame.names == ours.frame.names


def test_a_number_from_afar_knows_its_error(connection: Connection) -> None:
    """Also what is computed from it: read twice, it is one draw of noise, and cancels."""
    question, key = connection.data["people"].where("age >= 60").count().mechanism(epsilon=0.5), secrets.token_hex(8)
    first, again = (connection.ledger.run(question, key=key) for _ in range(2))
    other = connection.ledger.run(question)
    assert first.error == first.frame["error"][0] > 0
    assert (first.value - again.value).error == 0
    assert (first.value - other.value).error > first.error


def test_rows_of_a_job_are_those_of_its_release(connection: Connection) -> None:
    question = connection.data["people"].where("age >= 70").count().mechanism(epsilon=0.5)
    release = connection.ledger.run(question)
    about = {"name": "old", "kind": "count", "where": "age >= 70", "epsilon": 0.5}
    (found,) = connection.ask("people", [about])["result"]["questions"]
    frame = Frame.from_json(found["frame"])
    assert frame.names == release.frame.names
    assert frame["error"] == [release.error]
    assert frame["value"] == [found["value"]]


def test_questions_are_run_by_the_same_verb_as_at_home(connection: Connection, at_home: xp.PrivateTable) -> None:
    there, home = (table.where("age >= 60") for table in (connection.data["people"], at_home))
    book = xp.Ledger(epsilon=100, delta=1e-5)
    terms: list[dict[str, Any]] = [
        {"epsilon": 0.5}, {"within": 50}, {"within": "2 %", "epsilon": 4},
        {"epsilon": 0.5, "delta": 1e-9, "noise": "gaussian"}, {"epsilon": 0.5, "delta": 1e-9},
    ]  # fmt: skip
    for said in terms:
        theirs, ours = connection.run(there.count(), **said), book.run(home.count(), **said)
        assert theirs.reserved == ours.reserved
        assert type(theirs.value) is type(ours.value)
        assert connection.ledger.quote(there.count(), **said).worst == theirs.reserved
    mean = connection.run(there.mean("cost", bounds=(0, 200)), epsilon=1)
    assert mean.reserved == xp.Cost(1)
    for ask in (connection.run, connection.ledger.quote):
        with pytest.raises(xp.InvalidValue, match="say what it may cost"):
            ask(there.count())


def test_what_was_not_compared_is_told(connection: Connection) -> None:
    """Over the wire, in the result's words, and with the same price."""
    cells = connection.data["people"].histogram("city", keys=["Rome", "Oslo"], other=None)
    found = connection.ledger.run(cells.above(-(10**6), at_most=1).mechanism(epsilon=1))
    assert found.value == {"Rome": Comparison.ABOVE, "Oslo": Comparison.NOT_COMPARED}
    assert [type(each) for each in found.value.values()] == [Comparison] * 2
    assert found.part == found.mechanism.part_of(found.value)
    about = {"column": "city", "keys": ["Rome", "Oslo"], "threshold": -(10**6), "at_most": 1, "epsilon": 1}
    job = connection.ask("people", [{"name": "busy", "kind": "above", **about}])
    (question,) = job["result"]["questions"]
    assert question["value"] == {"Rome": "above", "Oslo": "not compared"}
    assert question["text"] == "above -1,000,000: Rome; not compared: Oslo"
    assert "stopped after 1 (at_most)" in question["notice"]


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a grid": (lambda t: t.sum("cost", bounds=(0, 9), grid=0.5), "a sum with grid=0.5 has no words"),
    "an interval": (lambda t: t.median("age", **BOUNDS, interval=True), "a median with interval=True has no words"),
    "no others": (lambda t: t.histogram("city", keys=CITIES, other=None), "a histogram with other=None has no words"),
    "several": (lambda t: t.by("city", keys=CITIES).agg(n=xp.Count(), m=xp.Mean("age", **BOUNDS)), "one statistic at"),
    "a name": (lambda t: t.by("city", keys=CITIES).agg(n=xp.Count()), "names of its statistics"),
    "each": (lambda t: t.by("city", keys=CITIES).ask(lambda rows: rows.median("age", **BOUNDS)), "asked one question"),
    "a lookup": (
        lambda t: t.join({"age": [1, 2], "size": [3, 4]}, on="age").where("size > 1").count(),
        "looks nothing up",
    ),
    "some bins": (lambda t: t.histogram("age", bins=[0, 9, 80]).only(["[0, 9)"]), "not a question that a service"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_service_cannot_be_asked_is_refused_by_name(connection: Connection, name: str) -> None:
    make, said = REFUSED[name]
    with pytest.raises(xp.InvalidValue, match=said):
        connection.run(make(connection.data["people"]), epsilon=1)


def test_a_mechanism_that_was_made_by_hand_is_refused(connection: Connection) -> None:
    """What a service makes of the same words has other noise, so that the answer would have another error."""
    table = connection.data["people"]
    cells = table.histogram("city", keys=CITIES)
    with pytest.raises(xp.InvalidValue, match="another mechanism of a histogram"):
        connection.run(cells, epsilon=1, noise="laplace")  # the usual noise adds up to zero here
    made = table.where("age > 3").count().mechanism(epsilon=1)
    coarse = replace(made, noise=Laplace(epsilon=1, sensitivity=9, neighbours="substitute"))
    with pytest.raises(xp.InvalidValue, match="another mechanism of a count"):
        connection.ledger.run(coarse)


def test_tables_from_elsewhere_are_refused(connection: Connection, running: Running) -> None:
    """A service asked by name alone would answer about its own rows, by its own unit and without the first filters."""
    local = duckdb.connect()
    local.execute("CREATE TABLE people (person BIGINT, age BIGINT, city VARCHAR, cost DOUBLE, word VARCHAR)")
    here = xp.read(local, table="people", unit=xp.Unit("person", rows=5), neighbours="add-remove")
    own = connection.data["people"]
    another = xp.read(own.engine, unit="row", neighbours="add-remove")
    for table in (here, another):
        with pytest.raises(InvalidValue) as refused:
            connection.run(table.where("age >= 60").count(), epsilon=0.5)
        assert "data['people']" in str(refused.value)
    with xp.connect(running.address, running.secrets["alice"]) as other:
        other.data["people"] = other.data["people"].derive(half="age / 2")  # a service with more columns
        with pytest.raises(InvalidValue):
            other.run(own.where("age > 90").count(), epsilon=0.5)


def test_values_are_about_the_data(connection: Connection) -> None:
    table = connection.data["people"]
    found = connection.ledger.run(table.where("age >= 60").count().mechanism(epsilon=20))
    assert abs(found.value - 1500) < 5
    assert len(connection.data) == 2


def test_the_ledger(connection: Connection) -> None:
    ledger, question = connection.ledger, connection.data["people"].where("age > 1").count().mechanism(epsilon=0.25)
    quote = ledger.quote([question, question])
    assert (quote.worst, quote.best, quote.fits) == (xp.Cost(0.5), xp.Cost(0.5), True)
    key = secrets.token_hex(8)
    first, again = (ledger.run(question, key=key, label="labelled") for _ in range(2))
    assert first == again
    assert (first.replayed, again.replayed) == (False, True)
    with pytest.raises(xp.InvalidValue, match="a key never samples twice"):
        ledger.run(question, key=key, again=True)
    assert ledger.entries(last=1)[0]["what"] == "labelled"
    assert "labelled" in ledger.statement()
    assert ledger.statement(by="day").startswith("day")
    assert ledger.limit >= ledger.spent + ledger.remaining


def test_the_same_exceptions(connection: Connection, running: Running) -> None:
    table = connection.data["people"]
    with pytest.raises(xp.BudgetExceeded, match="largest affordable"):
        connection.ledger.run(table.where("age > 1").count().mechanism(epsilon=10_000))
    with pytest.raises(xp.InvalidValue, match="there is no column 'agee'"):
        table.where("agee > 1")
    with pytest.raises(xp.InvalidValue, match="not a question that a service answers"):
        connection.ledger.run(xp.Laplace(epsilon=1, sensitivity=1))
    with pytest.raises(xp.InvalidValue, match="a sum with grid=4 has no words"):
        connection.ledger.run(table.sum("age", bounds=(0, 100), grid=4).mechanism(epsilon=1))
    looked_up = table.join({"age": [30, 40], "old": [0, 1]}, on="age")
    with pytest.raises(xp.InvalidValue, match="looks nothing up"):
        connection.ledger.run(looked_up.sum("old", bounds=(0, 1)).mechanism(epsilon=1))
    key = secrets.token_hex(8)
    connection.ledger.run(table.where("age > 1").count().mechanism(epsilon=0.1), key=key)
    with pytest.raises(
        xp.errors.KeyConflict, match=f"key '{key}' was used before, for a request with another question"
    ):
        connection.ledger.run(table.where("age > 2").count().mechanism(epsilon=0.1), key=key)
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
            question = connection.data["people"].where("age >= 60").count().mechanism(epsilon=2)
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
        question = connection.data["people"].where("age > 1").count().mechanism(epsilon=0.375)
        assert not connection.ledger.run(question, key=secrets.token_hex(8)).replayed
    assert running.ledger().account("bob").spent - before == xp.Cost(0.375)


# ---- what cannot be reached


class Elsewhere(httpx.BaseTransport):
    """Another server, which knows nothing of this."""

    def __init__(self, status: int, text: str) -> None:
        self.status, self.text = status, text

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(self.status, text=self.text)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (lambda port, own: f"http://127.0.0.1:{port}", "nothing listens at 127.0.0.1:{port}: check the port"),
        (lambda port, own: own.replace("http:", "https:"), "does not speak TLS: if the service has none, say http://"),
        (lambda port, own: "https://no-such-host.invalid", "there is no host 'no-such-host.invalid'"),
    ],
    ids=["port", "scheme", "host"],
)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_wrong_addresses_are_told_apart_at_once(
    running: Running, address: Callable[[int, str], str], said: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without another try: there were pauses of six seconds in all before."""

    def paused(seconds: float) -> None:
        raise AssertionError("it was tried again")

    port = free_port()
    url, token = address(port, running.address), running.secrets["alice"]
    monkeypatch.setattr(time, "sleep", paused)
    monkeypatch.setattr(asyncio, "sleep", paused)
    with pytest.raises(xp.errors.LedgerUnavailable) as told:
        xp.connect(url, token) if kind == "sync" else asyncio.run(_closed(url, token))
    assert said.format(port=port) in str(told.value)


async def _closed(url: str, token: str) -> None:
    await (await xp.connect_async(url, token)).close()


@pytest.mark.parametrize(("status", "text"), [(200, "<html>"), (404, "<html>"), (403, "{}"), (200, "hello")])
def test_another_server_is_not_this_service(status: int, text: str) -> None:
    with pytest.raises(
        xp.errors.LedgerUnavailable, match=f"not this service .status {status}.: check host, port and path"
    ):
        xp.connect("https://host", "xp_a_b", transport=Elsewhere(status, text))


@pytest.mark.parametrize(
    ("url", "token", "said"),
    [
        ("https://host", "xp_a_b\n", "line break or spaces around it, take token.strip()"),
        ("https://host", "xp_a b", "a token is one word"),
        ("https://host", "", "a token is one word"),
        ("https://host", None, "a token is one word"),
        ("host:8765", "xp_a_b", "is https://host or https://host:port, got 'host:8765'"),
        ("ftp://host", "xp_a_b", "is https://host"),
        ("https://user:secret@host", "xp_a_b", "neither a user nor a query"),
        ("http://host.example", "xp_a_b", "would send the token across the network"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_anything_is(url: str, token: Any, said: str) -> None:
    with pytest.raises(xp.InvalidValue) as told:
        xp.connect(url, token)
    assert said in str(told.value)
    assert "xp_a" not in str(told.value)


def test_in_the_clear_if_that_is_wanted() -> None:
    with pytest.raises(xp.errors.LedgerUnavailable, match="not this service"):
        xp.connect("http://host.example", "xp_a_b", in_the_clear=True, transport=Elsewhere(404, ""))
