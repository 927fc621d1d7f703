"""Hostile callers: text that cannot be kept, products, deep keys, large answers, slow clients."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from expost.accounting.amounts import together
from expost.data.unit import stated_unit
from expost.errors import InvalidStudy, InvalidValue, LedgerUnavailable
from expost.ledger import Ledger
from expost.service.addresses import OwnNames
from expost.service.asked import InvalidRequest, asked_of
from expost.service.blank import blank_table
from expost.service.callers import Lane
from expost.service.config import DataSet, read_config
from expost.service.connections import GuardedConnection, room_for
from expost.service.database import ServiceTables
from expost.service.jobs import Held, InFlight, JobRequest, Jobs
from expost.service.limits import MOST_VALUES, Limits
from expost.service.logs import Limited
from expost.service.problems import Refusal
from expost.service.results import ended, result_text
from expost.service.schedule import Schedule
from expost.service.tokens import new_token
from expost.study.parse import toml_of
from serving import COUNT, Running, answer, submit

HALF, ZERO = "\ud800x", "a\0b"


# ---- text that cannot be kept


def send(running: Running, who: str, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    """A body with halves of surrogate pairs, which are written as JSON's escapes."""
    sent = {"content-type": "application/json", "idempotency-key": "hostile", **headers}
    with running.client(who) as client:
        reply = client.post(path, content=json.dumps(body), headers=sent)
    return reply.status_code, reply.json()


@pytest.mark.parametrize("text", [HALF, ZERO])
@pytest.mark.parametrize(
    ("who", "path", "body"),
    [
        ("alice", "/v1/data/people/jobs", lambda text: {"questions": [{**COUNT, "label": text}]}),
        ("alice", "/v1/data/people/jobs", lambda text: {"questions": [{**COUNT, text: 1}]}),
        ("alice", "/v1/data/people/jobs", lambda text: {"toml": f"# {text}"}),
        ("alice", "/v1/data/people/jobs", lambda text: {"questions": [COUNT], "derive": {text: "age"}}),
        ("alice", "/v1/data/people/plan", lambda text: {"questions": [{**COUNT, "where": f"city = '{text}'"}]}),
        ("alice", "/v1/data/people/rehearsal", lambda text: {"questions": [{**COUNT, "label": text}]}),
        ("custodian", "/v1/admin/accounts", lambda text: {"account": f"people/{text}", "epsilon": "1"}),
        ("custodian", "/v1/admin/limits", lambda text: {"account": "people", "epsilon": "2000", "reason": text}),
        ("custodian", "/v1/admin/tokens", lambda text: {"role": "analyst", "account": "people", "name": text}),
    ],
)
def test_text_that_cannot_be_kept_is_refused(
    running: Running, who: str, path: str, body: Callable[[str], Any], text: str
) -> None:
    status, problem = send(running, who, path, body(text))
    assert (status, problem["error"]) == (400, "InvalidValue")
    assert problem["errors"][0]["pointer"].isascii()


@pytest.mark.parametrize("quoted", ["%00", "%ED%A0%80", "%FF"])
def test_addresses_and_forms_are_text(running: Running, quoted: str) -> None:
    with running.client("alice") as client:
        assert client.get(f"/v1/jobs/{quoted}").status_code == 400
        assert client.get(f"/v1/account?account=people{quoted}").status_code == 400
    form = {"content-type": "application/x-www-form-urlencoded"}
    with running.client() as client:
        assert client.post("/sign-in", content=f"token=xp_{quoted}_x", headers=form).status_code == 400
        other = {"content-type": "multipart/form-data; boundary=x"}
        assert client.post("/sign-in", content="token=xp_1_x", headers=other).status_code == 415


def test_values_of_a_request_are_counted(running: Running) -> None:
    status, problem = send(running, "alice", "/v1/data/people/plan", {"questions": [{"keys": [1] * MOST_VALUES}]})
    assert (status, problem["error"]) == (400, "InvalidValue")


@pytest.mark.parametrize("text", ['{"questions": "' + r"\"" * 30_000, "[" * 60_000, '{"' * 30_000, '"' * 60_001])
def test_reading_takes_no_longer_than_a_request_is_long(running: Running, text: str) -> None:
    """Strings that do not end were looked at again from each of their signs: minutes, for one request."""
    headers = {"content-type": "application/json"}
    with running.client() as client:
        assert client.post("/v1/data/people/plan", content=text, headers=headers, timeout=30).status_code == 400


def test_results_can_always_be_encoded() -> None:
    kept = result_text(ended("refused", f"of {HALF}, é and {float('nan')}"))
    assert json.loads(kept.encode())["problem"]["detail"] == f"of {HALF}, é and nan"


def table_of(tables: ServiceTables) -> Jobs:
    return Jobs(tables, "one", InFlight(50, 500, 50), Schedule(10**6, 10**6, 10**4), {"people": 0})


def accepted(jobs: Jobs, data: DataSet, *accounts: str) -> list[int]:
    """The numbers of jobs that were accepted, with nothing held for them."""
    held = Held(together([]), ())
    made = [
        jobs.accept(JobRequest(account, "token", "key", data, "{}"), 1, lambda run, account: held).result().job
        for account in accounts
    ]
    return [job.number for job in made]


def test_a_result_that_cannot_be_kept_holds_up_no_other(tmp_path: Path) -> None:
    running = Running(tmp_path)
    tables = ServiceTables(running.url)
    table = table_of(tables)
    bad, good = accepted(table, read_config(running.file).data["people"], "people/alice", "people/bob")
    table.deliver(2, [(bad, f'{{"state": "{HALF}"}}'), (good, result_text(ended("refused", "said")))])
    (bob,), (alice,) = table.of_account("people/bob", 9), table.of_account("people/alice", 9)
    assert (bob.delivered_at, alice.delivered_at) == (2, 2)
    found = table.find(alice.id)
    assert found is not None
    assert found.result is not None  # what could not be kept has become an incident
    assert re.search(r"incident [0-9a-f]{8}", json.loads(found.result)["problem"]["detail"])
    tables.close()


class Away(ServiceTables):
    """A database that takes nothing for a while."""

    away = False

    def submit(self, work: Callable[..., Any]) -> Future[Any]:
        if not self.away:
            return super().submit(work)
        failed: Future[Any] = Future()
        failed.set_exception(LedgerUnavailable("away"))
        return failed


def test_results_wait_while_the_database_is_away(tmp_path: Path) -> None:
    running = Running(tmp_path)
    tables = Away(running.url)
    table = table_of(tables)
    (number,) = accepted(table, read_config(running.file).data["people"], "people/alice")
    assert table.begin(number)
    table.keep(number, result_text(ended("refused", "said")), "[]")
    tables.away = True
    with pytest.raises(LedgerUnavailable):
        table.deliver(2, [(number, "{}")])
    tables.away = False
    (due,) = table.due(3 * 10**6)
    assert (due.number, due.state, due.delivered_at) == (number, "ready", None)
    table.deliver(3, [(number, due.result or "")])
    assert table.of_account("people/alice", 9)[0].delivered_at == 3
    tables.close()


# ---- errors of our own


@pytest.mark.parametrize("error", [MemoryError(), RecursionError(), ValueError("of a person")])
def test_every_500_has_an_incident(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    from fastapi import FastAPI

    from expost.service.server import create_app

    class Bare:
        """A service that nobody starts."""

        async def start(self) -> None: ...
        async def stop(self) -> None: ...

    bare: Any = Bare()
    app: FastAPI = create_app(bare)

    @app.get("/broken")
    async def broken() -> None:
        raise error

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(Limits(app, 1000, OwnNames((), "127.0.0.1", behind_proxy=True), secure=False))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.get("/broken")

    reply = asyncio.run(asked())
    assert reply.status_code == 500
    incident = reply.json()["incident"]
    assert incident in reply.json()["detail"]
    assert "person" not in reply.text
    assert [record for record in caplog.records if getattr(record, "facts", {}).get("incident") == incident]


# ---- names


@pytest.mark.parametrize(
    "name", ["..", ".", "a%2Fb", "\u202egro", "a\u200bb", " a", "a\\b", "e\u0301", "a\n", "\ud800"]
)
def test_names_read_as_they_are_written(name: str) -> None:
    with pytest.raises(InvalidValue):
        Ledger(epsilon=1).create_account(name, 1)
    with pytest.raises(InvalidValue):
        new_token("analyst", "people", name=name, days=1)


@pytest.mark.parametrize("name", ["José", "team-7 (north)", "a.b", "李", "O'Neill & Co"])
def test_names_that_people_have(name: str) -> None:
    assert Ledger(epsilon=1).create_account(name, 1).name.endswith(name)


def test_names_at_the_door(running: Running) -> None:
    for name in ("..", "a%2Fb", "\u202egro"):
        assert send(running, "custodian", "/v1/admin/accounts", {"account": f"people/{name}", "epsilon": "1"})[0] == 422
        token = {"role": "analyst", "account": "people/alice", "name": name}
        assert send(running, "custodian", "/v1/admin/tokens", token)[0] == 422


# ---- products and sizes, counted before anything is made


KEYS = [f"k{n}" for n in range(1500)]
WIDE = {"column": "cost", "bins": 100_000, "bounds": [0, 1], "epsilon": 0.001}
BY = {"by": ["age", "city", "word"], "by_keys": {"age": list(range(1500)), "city": KEYS, "word": KEYS}}
LARGE: tuple[dict[str, Any], ...] = (
    {**COUNT, **BY},
    {**COUNT, "by": ["city", "word"], "by_keys": {"city": KEYS[:100], "word": ["x" * 400 + k for k in KEYS[:100]]}},
    {"name": "a", "kind": "histogram", **WIDE},
    {"name": "a", "kind": "above", **WIDE, "threshold": 5, "at_most": 1},
    {"name": "a", "kind": "above", **WIDE, "bins": 100, "threshold": 5, "at_most": 1,
     "repeat": {"until": "any", "floor": 0, "at_most": 1000}},
    {"name": "a", "kind": "large", **WIDE, "bins": 30_000, "threshold": 5, "at_most": 1},
    {"name": "a", "kind": "top", "column": "city", "at_most": 60_000, "epsilon": 1, "delta": 1e-7},
)  # fmt: skip


@pytest.mark.parametrize("question", LARGE, ids=lambda question: f"{question['kind']}")
def test_large_answers_are_refused_before_they_are_made(running: Running, question: dict[str, Any]) -> None:
    data = read_config(running.file).data["people"]
    limit = Ledger(epsilon=1000, delta=1e-5).limit
    asked = asked_of({"questions": [question]})
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRequest) as refused:
            asked.study(data, ("people",), limit)
        assert tracemalloc.get_traced_memory()[1] < 2e7
    finally:
        tracemalloc.stop()
    assert refused.value.faults[0].pointer == "/questions/0"
    before = running.ledger().reserved
    with running.client("alice") as client:
        for reply in (
            submit(client, "large", question),
            client.post("/v1/data/people/plan", json={"questions": [question]}),
        ):
            assert (reply.status_code, reply.json()["error"]) == (422, "InvalidValue")
    assert running.ledger().reserved == before


def test_a_job_is_as_large_as_all_its_questions(running: Running) -> None:
    data = read_config(running.file).data["people"]
    limit = Ledger(epsilon=1000, delta=1e-5).limit
    found = {"kind": "discover", "column": "city", "epsilon": 1, "delta": 1e-9}
    five = [{**found, "name": f"q{n}"} for n in range(6)]
    assert asked_of({"questions": five[:5]}).study(data, ("people",), limit).questions
    with pytest.raises(InvalidRequest):
        asked_of({"questions": five}).study(data, ("people",), limit)


def test_groups_of_histograms_are_counted_first() -> None:
    table = blank_table(
        "people", {"age": "integer"}, unit=stated_unit("row", None, None, "visitor"), neighbours="add-remove"
    )  # fmt: skip
    groups = table.by("age", keys=range(1001))
    made = 0

    def question(rows: Any) -> Any:
        nonlocal made
        made += 1
        return rows.histogram("age", bins=100, bounds=(0, 100))

    with pytest.raises(InvalidValue):
        groups.ask(question)
    assert made == 1


def test_dotted_keys() -> None:
    toml_of("a.b.c.d = 1.5\nx = [1.5, 2.5]\ny = 'a." + "b." * 100 + "'", Path("x"))
    began = time.thread_time()
    for text in (
        "a." * 15_000 + "a = 1",
        '"a".' * 7_000 + "a = 1",
        "[" + "a . " * 9_000 + "a]",
        "x = {" + "a." * 9_000 + "a = 1}",
    ):
        with pytest.raises(InvalidStudy):
            toml_of(text, Path("x"))
    assert time.thread_time() - began < 10  # a thousandth, and minutes before


@pytest.mark.parametrize(
    "text",
    [
        "[" + " " * 30_000,
        "x = '''" + r"\"" * 15_000 + "'''",
        "\n".join(f"k{n} = 1" for n in range(5000)),
        "[" + "[x]\n[" * 9000 + "x]",
    ],
)
def test_odd_toml_takes_no_longer_than_it_is_long(text: str) -> None:
    began = time.thread_time()
    with pytest.raises(InvalidRequest) as refused:
        asked_of({"toml": text})
    assert len(refused.value.faults) <= 5000
    assert time.thread_time() - began < 20


# ---- lists


def test_lists_are_in_pages_and_have_no_results(running: Running) -> None:
    running_jobs = [f"page-{n}" for n in range(3)]
    with running.client("bob") as client:
        made = [answer(client, submit(client, key, COUNT).json()["id"])["id"] for key in running_jobs]
        listed = client.get("/v1/jobs", params={"limit": 2}).json()
        assert [each["id"] for each in listed] == made[:0:-1]
        assert all("result" not in each and each["outcome"] == "answered" for each in listed)
        rest = client.get("/v1/jobs", params={"limit": 2, "after": listed[-1]["id"]}).json()
        assert rest[0]["id"] == made[0]
        assert client.get("/v1/jobs", params={"after": "0" * 32}).status_code == 404
    with running.client("alice") as client:
        assert client.get("/v1/jobs", params={"after": made[0]}).status_code == 404


# ---- threads


def test_accounts_take_turns_among_threads() -> None:
    """One account's many pieces of work, none of which ends before another's, do not keep it waiting."""

    async def raced() -> list[str]:
        lane, go, done = Lane("plans", threads=2, at_once=1, most=20), threading.Event(), list[str]()

        async def one(account: str) -> None:
            await lane.run(account, (lambda: go.wait(60)) if account == "many" else (lambda: True))
            done.append(account)
            go.set()

        async with asyncio.TaskGroup() as tasks:
            for account in ["many"] * 20 + ["few"]:
                tasks.create_task(one(account))
        return done

    assert asyncio.run(raced()) == ["few"] + ["many"] * 20


def test_an_account_has_so_much_work_at_once() -> None:
    async def crowded() -> list[Any]:
        lane, go = Lane("plans", threads=3, at_once=2, most=4), threading.Event()
        waiting = [asyncio.create_task(lane.run("a", lambda: go.wait(10))) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as refused:
            await lane.run("a", lambda: True)
        other = asyncio.create_task(lane.run("b", lambda: True))
        go.set()
        assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "1")
        return [*[await each for each in waiting], await other, await lane.run("a", lambda: True)]

    assert asyncio.run(crowded()) == [True] * 6


def test_pages_say_when_to_come_back() -> None:
    from starlette.requests import Request

    from expost.service.dashboard.pages import refusal_page

    request = Request({"type": "http", "headers": [], "method": "GET", "path": "/"})
    assert refusal_page(request, Refusal(429, "later")).headers["retry-after"] == "1"


# ---- slow clients


WITHIN = 1.0
"""Seconds: what a busy machine needs from a connection to what is sent on it, and more."""


@contextmanager
def slow_server(most: int = 1000) -> Iterator[tuple[int, asyncio.AbstractEventLoop]]:
    """A constant reply behind guarded connections with short deadlines, in a thread of its own."""
    import uvicorn

    class Quick(GuardedConnection):
        headers_within = body_within = read_within = WITHIN

    Quick.most = most

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            while (await receive()).get("more_body"):
                pass
            await send({"type": "http.response.start", "status": 200, "headers": []})
            size = 10**8 if scope["path"] == "/much" else 2
            await send({"type": "http.response.body", "body": b"x" * size})

    config = uvicorn.Config(app, host="127.0.0.1", port=0, http=Quick, ws="none", log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 20
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1], None  # type: ignore[misc]
    server.should_exit = True
    thread.join(20)


def opened(stack: ExitStack, port: int, sent: bytes = b"") -> socket.socket:
    made = stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
    made.sendall(sent)
    return made


def whole(connection: socket.socket) -> bool:
    """Whether a reply comes."""
    read = b""
    while not read.endswith(b"0\r\n\r\n") and (more := connection.recv(65536)):
        read += more
    return b"200" in read


def ends(connection: socket.socket) -> bool:
    """Whether the other side closes it."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nhost: x\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf",
    ],
)
def test_what_is_sent_has_a_deadline(sent: bytes) -> None:
    with slow_server() as (port, _), ExitStack() as stack:
        connection = opened(stack, port, sent)
        connection.settimeout(60)
        assert ends(connection)


def test_more_bytes_do_not_prolong_a_deadline() -> None:
    with slow_server() as (port, _), ExitStack() as stack:
        connection = opened(stack, port, b"GET / HTTP/1.1\r\n")

        def drip() -> None:
            for _ in range(100):
                connection.sendall(b"x: y\r\n")
                time.sleep(0.05)

        with pytest.raises(ConnectionError):
            drip()


def test_a_second_request_has_a_deadline_too() -> None:
    with slow_server() as (port, _), ExitStack() as stack:
        connection = opened(stack, port, b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert whole(connection)
        time.sleep(1.5 * WITHIN)  # idle for longer than headers may take: that is uvicorn's deadline
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert whole(connection)
        connection.sendall(b"GET / HT")
        assert ends(connection)


def test_who_does_not_read_is_let_go() -> None:
    with slow_server() as (port, _), ExitStack() as stack:
        connection = opened(stack, port, b"GET /much HTTP/1.1\r\nhost: x\r\n\r\n")
        time.sleep(3 * WITHIN)
        read = 0
        with suppress(ConnectionError):
            while got := len(connection.recv(2**20)):
                read += got
        assert read < 10**8  # it ended before all was sent


def test_the_one_that_waits_longest_makes_room() -> None:
    with slow_server(most=20) as (port, _), ExitStack() as stack:
        for _ in range(100):
            opened(stack, port, b"GET / HT")
            asked = opened(stack, port, b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            assert b"200" in asked.recv(65536)


def test_descriptors_are_left_for_other_files() -> None:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 1 <= room_for(10**9) <= max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 192)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= soft


def test_listeners_of_a_token(tmp_path: Path) -> None:
    running = Running(tmp_path, server="listeners = 2").start()
    try:
        with ExitStack() as stack:
            heard = []
            for _ in range(2):
                stream = stack.enter_context(running.client("alice")).stream("GET", "/v1/events")
                heard.append(stack.enter_context(stream).iter_text())
                next(heard[-1])
            with running.client("alice") as client:
                reply = client.get("/v1/events", params={"once": True})
                assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")
            with running.client("bob") as client:
                assert client.get("/v1/events", params={"once": True}).status_code == 200
        with running.client("alice") as client:
            until = time.monotonic() + 30
            while client.get("/v1/events", params={"once": True}).status_code == 429 and time.monotonic() < until:
                time.sleep(0.1)
            assert client.get("/v1/events", params={"once": True}).status_code == 200
    finally:
        running.stop()


def test_the_log_of_others_is_limited() -> None:
    now = [0.0]
    limited = Limited(3, 10.0, lambda: now[0])

    def written(name: str = "asyncio") -> bool:
        return limited.filter(logging.makeLogRecord({"name": name, "levelno": logging.ERROR}))

    assert sum(written() for _ in range(1000)) == 3
    assert all(written("expost.service") for _ in range(1000))
    now[0] = 11.0
    record = logging.makeLogRecord({"name": "asyncio", "levelno": logging.ERROR})
    assert limited.filter(record)
    assert record.facts == {"left_out": 997}  # type: ignore[attr-defined]


# ---- names


@pytest.mark.parametrize(
    ("names", "listens", "behind_proxy", "host", "answers"),
    [
        ((), "127.0.0.1", False, "127.0.0.1:8765", True),
        ((), "127.0.0.1", False, "localhost:8765", True),
        ((), "::1", False, "[::1]:8765", True),
        ((), "127.0.0.1", False, "evil.example:8765", False),  # a name that leads here, of somebody else's page
        ((), "127.0.0.1", False, "127.0.0.1.evil.example", False),
        ((), "127.0.0.1", False, "", False),
        ((), "127.0.0.1", False, "[", False),
        ((), "127.0.0.1", True, "answers.example", True),
        ((), "0.0.0.0", False, "answers.example", True),
        (("answers.example",), "0.0.0.0", True, "Answers.Example", True),
        (("answers.example",), "0.0.0.0", True, "answers.example:443", True),
        (("answers.example:8443",), "0.0.0.0", True, "answers.example:8443", True),
        (("answers.example:8443",), "0.0.0.0", True, "answers.example", False),
        (("answers.example",), "10.0.0.5", True, "10.0.0.5:8765", True),  # whoever looks after it
        (("answers.example",), "0.0.0.0", True, "evil.example", False),
    ],
)
def test_under_which_names_it_answers(
    names: tuple[str, ...], listens: str, behind_proxy: bool, host: str, answers: bool
) -> None:
    assert OwnNames(names, listens, behind_proxy=behind_proxy).has(host) == answers


def test_another_name_is_refused(running: Running) -> None:
    with running.client("alice") as client:
        for path in ("/v1/account", "/health", "/sign-in", "/static/style.css"):
            assert client.get(path, headers={"host": "evil.example"}).status_code == 421
            assert client.get(path, headers={"host": "localhost"}).status_code == 200
