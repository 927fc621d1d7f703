"""Requests that are small to send and would be large to answer: faults, replies, waits, lists, plans."""

from __future__ import annotations

import asyncio
import gc
import re
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ValidationError

from expost.ledger import Ledger
from expost.ledger.imagined import Imagined
from expost.service.api import asking, models, reading
from expost.service.asked import MOST_FAULTS, InvalidRequest, asked_of
from expost.service.callers import Callers, Lane
from expost.service.config import read_config
from expost.service.connections import GuardedConnection
from expost.service.database import ServiceTables
from expost.service.door import Door
from expost.service.jobs import ServiceJob
from expost.service.problems import Refusal
from expost.service.results import ended, result_text
from expost.service.sending import AT_ONCE
from expost.service.served import open_data
from expost.service.tokens import new_token
from serving import COUNT, REVIEWED, Forked, Running, answer, signed_in, submit

SMALL = """answer_every = 2
margin = 60
pace = 0.2
late = "lose"
queue = 1
questions = 5
connections = 40
accounts = 4"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service that has room for little, and whose answers take long to come."""
    service = Forked(tmp_path_factory.mktemp("small"), server=SMALL, more=REVIEWED)
    yield service.start()
    service.stop()


# ---- faults

ENDLESS = {f"{number:x}": 1 for number in range(6000)}
FAULTY: tuple[tuple[type[BaseModel], dict[str, Any]], ...] = (
    (models.Ask, {"questions": [1] * 19_000}),
    (models.Ask, {"questions": [COUNT], "derive": ENDLESS}),
    (models.Ask, ENDLESS),
    (models.ChargeModel, {"charge": ["x"] * 19_000}),
    (models.NewReservation, {"key": "k", "label": "l", "parts": ENDLESS, "lease": 1}),
    (models.NewAccount, ENDLESS),
)


@pytest.mark.parametrize(("model", "body"), FAULTY)
def test_faults_are_not_looked_for_without_end(model: type[BaseModel], body: dict[str, Any]) -> None:
    """They are found on the event loop, at 15 µs each."""
    with pytest.raises(ValidationError) as refused:
        model.model_validate(body)
    assert refused.value.error_count() <= 2 * models.MOST_PARTS


@pytest.mark.parametrize(
    "body",
    [
        *(body for model, body in FAULTY if model is models.Ask),
        {"questions": [1] * 90},
        {"questions": [{**COUNT, **ENDLESS}]},
        {"toml": "[[question]]\n" + "".join(f"{name} = 1\n" for name in ENDLESS)},
        {"toml": "".join(f"{name} = 1\n" for name in ENDLESS)},
        {"toml": "[[question]]\n" * 4500},
        {"toml": "[derive]\n" + "".join(f'd{name} = "age"\n' for name in range(3000))},
    ],
)
def test_a_few_faults_are_told(running: Running, body: dict[str, Any]) -> None:
    with running.client("alice") as client:
        reply = client.post("/v1/data/people/plan", json=body)
    assert reply.status_code == 422
    assert len(reply.json()["errors"]) <= MOST_FAULTS + 1
    assert len(reply.content) < 10_000


def test_faults_that_are_left_out_are_counted(running: Running) -> None:
    with running.client("alice") as client:
        faults = client.post("/v1/data/people/plan", json={"questions": [1] * 90}).json()["errors"]
    assert [faults[0]["pointer"], faults[19]["pointer"]] == ["/questions/0", "/questions/19"]
    assert faults[20] == {"pointer": "", "detail": "and 70 more"}


def test_columns_of_a_job_are_counted(running: Running) -> None:
    data = read_config(running.file).data["people"]
    asked = asked_of({"toml": "[derive]\n" + "".join(f'd{name} = "age"\n' for name in range(201))})
    with pytest.raises(InvalidRequest, match="at most 200 derived columns"):
        asked.study(data, ("people",), running.ledger().limit)


# ---- numbers


NUMBERS = ("1e400", "-1e400", "NaN", "Infinity", "1" + "0" * 400, "1" + "0" * 5000)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("where", ["plan", "jobs", "rehearsal"])
def test_numbers_that_are_not_finite_are_refused(running: Running, where: str, number: str) -> None:
    body = f'{{"questions": [{{"name": "a", "kind": "count", "epsilon": {number}}}]}}'
    headers = {"content-type": "application/json", "idempotency-key": "infinite"}
    with running.client("alice") as client:
        reply = client.post(f"/v1/data/people/{where}", content=body, headers=headers)
    readable = number.endswith("e400") or len(number) == 401
    assert reply.status_code == (422 if readable else 400)  # the others are not JSON, or no number that Python reads
    assert reply.json()["errors"][0]["pointer"] == ("/questions/0/epsilon" if readable else "")


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999", f"1{'0' * 400}"])
@pytest.mark.parametrize("where", ["plan", "jobs"])
def test_numbers_of_toml_are_finite(running: Running, where: str, number: str) -> None:
    with running.client("alice") as client:
        for keys in (f"epsilon = {number}", f'epsilon = 0.01\nwhere = "age > 1"\ndelta = {number}'):
            toml = f'[[question]]\nname = "a"\nkind = "count"\n{keys}\n'
            headers = {"idempotency-key": number[:9]}
            reply = client.post(f"/v1/data/people/{where}", json={"toml": toml}, headers=headers)
            assert (reply.status_code, reply.json()["error"]) == (422, "InvalidValue")


@pytest.mark.parametrize("number", ["nan", "1e999", "-inf", "1" + "0" * 400])
@pytest.mark.parametrize("do", ["plan", "ask"])
def test_numbers_of_forms_are_finite(running: Running, do: str, number: str) -> None:
    with signed_in(running, "alice") as (browser, form):
        typed = {"form": form, "name": "a", "column": "age", "bins": "4", "bounds": "0, 80", "epsilon": "0.1"}
        for field, value in (("epsilon", number), ("bounds", f"0, {number}"), ("bins", number)):
            reply = browser.post("/ask/people/histogram", data={**typed, field: value, "do": do})
            assert reply.status_code == 422
            assert 'class="wrong"' in reply.text


# ---- lines of the trail

TWO_LINES, TURNED = "a reason\n2026 another line", "a reason \u202edenosrep"


@pytest.mark.parametrize("text", [TWO_LINES, TURNED, "a\ttab", "a\u2028b", "a\u200bb", "\x1b[2J", "   ", "x" * 2001])
def test_what_stands_in_the_trail_is_one_line(running: Running, text: str) -> None:
    before = running.ledger().head
    reserving = {"key": "lines", "parts": {"a": "0.01"}, "lease": 60}
    for who, path, body in (
        ("custodian", "/v1/admin/limits", {"account": "people/alice", "epsilon": "1000", "reason": text}),
        ("custodian", "/v1/admin/closings", {"account": "people/alice", "reason": text}),
        ("custodian", "/v1/admin/reviews/none", {"accept": False, "reason": text}),
        ("custodian", "/v1/admin/tokens", {"role": "analyst", "account": "people/alice", "name": text}),
        ("engine", "/v1/engine/reservations", {**reserving, "label": text}),
        ("engine", "/v1/engine/reservations", {**reserving, "label": "l", "parts": {text: "0.01"}}),
        ("engine", "/v1/engine/reservations", {**reserving, "label": "l", "key": text}),
        ("alice", "/v1/data/people/jobs", {"questions": [{**COUNT, "label": text}]}),
    ):
        with running.client(who) as client:
            reply = client.post(path, json=body, headers={"idempotency-key": "lines"})
        assert (path, reply.status_code) == (path, 422)
    assert running.ledger().head == before


@pytest.mark.parametrize("text", [TWO_LINES, TURNED, ""])
def test_reasons_of_pages_are_one_line(running: Running, text: str) -> None:
    with running.client("alice") as client:
        job = submit(client, f"line {text!a}", COUNT, data="guarded").json()["id"]
    with signed_in(running, "custodian") as (browser, form):
        typed = {"form": form, "verdict": "decline", "reason": text}
        assert browser.post(f"/reviews/{job}", data=typed).status_code == 422
        assert browser.post(f"/reviews/{job}", data={**typed, "reason": "čas vypršel, 李"}).status_code == 303


# ---- refusals


ABOVE = {"name": "a", "kind": "above", "column": "city", "keys": ["x", "y"], "threshold": 10**6, "at_most": 1,
         "epsilon": 0.01}  # fmt: skip


def test_a_job_that_never_fits_is_not_told_to_come_again(small: Running) -> None:
    repeated = {**ABOVE, "repeat": {"until": "any", "floor": 0, "at_most": 6}}
    with small.client("bob") as client:
        refused = submit(client, "large", repeated)
        assert (refused.status_code, refused.json()["error"]) == (422, "InvalidValue")
        assert "at most 5" in refused.json()["detail"]
        assert submit(client, "five", {**repeated, "repeat": {**repeated["repeat"], "at_most": 5}}).status_code == 202
        assert submit(client, "more", COUNT).status_code == 429


def test_pages_say_why_a_question_was_refused(small: Running) -> None:
    typed = {"name": "bands", "column": "age", "bins": "4", "bounds": "0, 80", "epsilon": "0.01", "do": "ask"}
    with signed_in(small, "alice") as (browser, form):

        def ask(key: str, **more: str) -> httpx.Response:
            return browser.post("/ask/people/histogram", data={**typed, "form": form, "key": key, **more})

        assert ask("first").status_code == 303
        full, taken, short = ask("second"), ask("first", epsilon="0.02"), ask("third", epsilon="100000")
        again = ask("first")
    assert [each.status_code for each in (full, taken, short, again)] == [429, 409, 409, 303]
    for reply, why in ((full, "too much waits"), (taken, "used before"), (short, "largest affordable")):
        assert re.search(rf'class="wrong".*{why}', reply.text)
        assert 'value="0, 80"' in reply.text
    assert int(full.headers["retry-after"]) >= 1
    keys = [re.findall(r'name="key" value="(.*?)"', each.text)[0] for each in (full, taken, short)]
    assert (keys[0], keys[2]) == ("second", "third")
    assert re.fullmatch("[0-9a-f]{32}", keys[1])


# ---- waits


def waiting_request(running: Running, who: str, job: str) -> socket.socket:
    host, port = running.address.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)), 60)
    asked = f"GET /v1/jobs/{job}?wait=60 HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {running.secrets[who]}"
    made.sendall(f"{asked}\r\n\r\n".encode())
    return made


def test_requests_that_wait_leave_room_for_others(small: Running) -> None:
    """Sixty of them held all connections, so that nobody else was served for a minute."""
    with small.client("alice") as client:
        job = submit(client, "waits", COUNT, data="guarded").json()["id"]
    with ExitStack() as stack:
        held = [stack.enter_context(closing(waiting_request(small, "alice", job))) for _ in range(39)]
        refused = select.select(held, [], [], 30)[0]
        until = time.monotonic() + 60
        while len(refused) < 29 and time.monotonic() < until:
            time.sleep(0.1)
            refused = select.select(held, [], [], 0)[0]
        replies = [each.recv(65536) for each in refused]
        assert len(replies) == 29
        assert all(b" 429 " in each and b"retry-after: 1" in each for each in replies)
        with small.client("bob") as bob, small.client("alice") as alice:
            assert bob.get("/health").status_code == 200
            assert bob.get("/v1/events", params={"once": True}).status_code == 200
            assert alice.get(f"/v1/jobs/{job}").status_code == 200  # without waiting
            assert alice.get("/v1/events", params={"once": True}).status_code == 429
    with small.client("alice") as alice:
        until = time.monotonic() + 60
        while alice.get("/v1/events", params={"once": True}).status_code == 429 and time.monotonic() < until:
            time.sleep(0.1)
        assert alice.get("/v1/events", params={"once": True}).status_code == 200  # places are given back


def test_all_who_wait_leave_a_quarter_of_the_connections() -> None:
    door = Door(Any, (), 100, 16)  # type: ignore[arg-type]
    tokens = [new_token("analyst", "people", name=f"{number}", days=1)[0] for number in range(5)]
    with ExitStack() as stack:
        for token in tokens[:3]:
            for _ in range(4):
                stack.enter_context(door.listening(token))
            with pytest.raises(Refusal, match="at most 4"):
                stack.enter_context(door.listening(token))
        with pytest.raises(Refusal, match="too many"):
            stack.enter_context(door.listening(tokens[3]))
    with door.listening(tokens[3]):
        pass


# ---- replies that nobody reads

SIZE = 8_000_000


def large_job(running: Running, who: str) -> str:
    """An answered job whose result is made large."""
    with running.client(who) as client:
        job: str = answer(client, submit(client, f"large {who}", COUNT).json()["id"])["id"]
    tables = ServiceTables(running.url)
    result = result_text(ended("answered", "x" * SIZE))
    tables.write(lambda run: run("UPDATE expost_job SET result = ? WHERE id = ? RETURNING id", result, job))
    tables.close()
    return job


def asked(running: Running, who: str, path: str) -> socket.socket:
    """A connection that has sent a request, and reads little."""
    host, port = running.address.removeprefix("http://").split(":")
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(60)
    made.connect((host, int(port)))
    head = f"GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {running.secrets[who]}"
    made.sendall(f"{head}\r\n\r\n".encode())
    return made


def resident(pid: int) -> int:
    """Bytes of memory that a process has now."""
    line = next(each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmRSS"))
    return 1024 * int(line.split()[1])


def test_replies_that_nobody_reads_take_little_memory(running: Running) -> None:
    """A hundred connections had a copy of eight megabytes each, for a minute."""
    job = large_job(running, "alice")
    with running.client("alice") as alice, ExitStack() as stack:
        whole = alice.get(f"/v1/jobs/{job}")
        assert len(whole.content) > SIZE
        assert int(whole.headers["content-length"]) == len(whole.content)
        before = resident(running.pid)
        held = [stack.enter_context(closing(asked(running, "alice", f"/v1/jobs/{job}"))) for _ in range(40)]
        replies = [each.recv(1000) for each in held]
        statuses = Counter(each.split()[1] for each in replies)
        assert statuses == {b"200": AT_ONCE, b"429": 40 - AT_ONCE}
        assert all(b"retry-after: 1" in each for each in replies if b" 429 " in each)
        assert resident(running.pid) - before < 12 * SIZE  # forty copies before
        assert alice.get("/v1/account").status_code == 200
        with running.client("bob") as bob:
            assert bob.get("/v1/jobs").status_code == 200
        with signed_in(running, "alice") as (browser, _):
            page = browser.get(f"/jobs/{job}")
            assert (page.status_code, page.headers["retry-after"]) == (429, "1")
    with running.client("alice") as alice:
        until = time.monotonic() + 60
        while (again := alice.get(f"/v1/jobs/{job}")).status_code == 429 and time.monotonic() < until:
            time.sleep(0.1)
        assert again.content == whole.content
        assert submit(alice, "large alice", COUNT).content == whole.content  # a replay


def test_a_text_is_made_once_for_all_who_are_sent_it() -> None:
    found = list[str]()
    times = {"accepted_at": 1, "starts_at": 1, "next_at": 1, "due_at": 1, "delivered_at": 1}
    fields = {**dict.fromkeys(ServiceJob._fields, ""), **times, "body": "{}", "id": "j", "result": '{"state": "x"}'}
    job = ServiceJob(**fields)  # type: ignore[arg-type]

    def find(name: str) -> ServiceJob:
        found.append(name)
        return job

    here: Any = SimpleNamespace(jobs=SimpleNamespace(find=find), callers=Callers())

    async def both() -> None:
        first, second = await asking._reply(here, job), await asking._reply(here, job)
        assert first.body is second.body

    asyncio.run(both())
    assert found == ["j"]
    gc.collect()
    assert "j" not in asking._TEXTS


class Clock:
    """Time for connections, and what is due."""

    def __init__(self) -> None:
        self.now, self.due = 0.0, float("inf")

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, work: Any) -> Any:
        self.due = self.now + seconds
        return SimpleNamespace(cancel=lambda: setattr(self, "due", float("inf")))


def read_in_pieces(waits: float, pieces: int) -> float | None:
    """When a client that reads every so many seconds is let go, if it is, of so many pieces of a reply."""
    clock, connection = Clock(), object.__new__(GuardedConnection)
    connection.loop, connection.flow = clock, SimpleNamespace(pause_writing=int, resume_writing=int)  # type: ignore[assignment]
    connection._patience = connection.read_within
    for _ in range(pieces):
        connection.pause_writing()
        if clock.due <= clock.now + waits:
            return clock.due
        clock.now += waits
        connection.resume_writing()
    return None


def test_a_reply_as_a_whole_has_a_deadline() -> None:
    """A byte in 59 seconds held a reply for ever."""
    held = read_in_pieces(59, 1000)
    assert held is not None
    assert held < 70
    assert (read_in_pieces(2, 1000) or 0) < 150
    assert read_in_pieces(0.9, 10_000) is None  # 50 kB in a second
    assert read_in_pieces(30, 2) is None  # a link that is away for a while


# ---- many accounts


def test_custodians_make_so_many_accounts(small: Running) -> None:
    small.add_tokens(("deputy", "custodian", "people/alice"))
    with small.client("custodian") as custodian, small.client("deputy") as deputy:

        def made(client: httpx.Client, account: str) -> int:
            return client.post("/v1/admin/accounts", json={"account": account, "epsilon": "1"}).status_code

        assert [made(deputy, f"people/alice/{each}") for each in ("a", "a/b", "a/c", "d")] == [201] * 4
        assert [made(deputy, f"people/alice/{each}") for each in ("e", "a/f", "a/b/g")] == [409] * 3
        assert [made(custodian, f"people/{each}") for each in ("team", "other", "third")] == [201, 201, 409]
        assert made(custodian, "people/team/a") == 201
        reply = custodian.post("/v1/admin/accounts", json={"account": "people/fourth", "epsilon": "1"})
        assert "'accounts' in server.toml" in reply.json()["detail"]


def test_lists_of_balances_are_in_pages(small: Running) -> None:
    ledger = Ledger.load(small.url, "others", recover=False)
    for number in range(120):
        ledger.create_account(f"a {number}", 1)
    with small.client("stranger") as client:
        until = time.monotonic() + 60
        while len(whole := client.get("/v1/accounts").json()) < 121 and time.monotonic() < until:
            time.sleep(0.2)
        first = client.get("/v1/accounts", params={"limit": 50}).json()
        rest = client.get("/v1/accounts", params={"limit": 100, "after": first[-1]["account"]}).json()
        assert first + rest == whole
        assert client.get("/v1/accounts", params={"after": "others/none"}).status_code == 404
        assert client.get("/v1/accounts", params={"limit": 1001}).status_code == 422
        with signed_in(small, "stranger") as (browser, _):
            page = browser.get("/").text
            more = re.findall(r'href="(/\?after=.*?)"', page)[0]
            shown = re.findall('data-account="(.*?)"', page + browser.get(more).text)
        assert shown == [each["account"] for each in whole]


def test_many_balances_are_not_made_on_the_event_loop() -> None:
    made = list[str]()

    def balances(*asked: Any) -> str:
        made.append(threading.current_thread().name)
        return "[]"

    async def live(*asked: Any) -> bool:
        return True

    async def account(token: Any, wanted: str | None = None) -> str:
        return "people"

    window = SimpleNamespace(balances_text=balances, known_text=lambda account: None)
    here: Any = SimpleNamespace(
        callers=Callers(), window=window, stopping=False, account=account,
        door=SimpleNamespace(is_live=live), bell=SimpleNamespace(answered={}),
    )  # fmt: skip
    token: Any = SimpleNamespace(account="people", role="custodian")

    async def both() -> None:
        await reading.list_accounts(here, token, 10, None)
        assert [each async for each in reading.events(here, token, "people", once=True)]

    asyncio.run(both())
    assert len(made) == 2
    assert all(each.startswith("expost-balances") for each in made)


# ---- plans that take long


def test_one_account_leaves_a_thread_for_others() -> None:
    """Two plans of one analyst took both threads, for half a minute."""

    async def other(lane: Lane) -> int:
        go = threading.Event()
        held = [asyncio.ensure_future(lane.run("a", lambda: go.wait(60))) for _ in range(4)]
        await asyncio.sleep(0.05)
        try:
            return await asyncio.wait_for(lane.run("b", lambda: 7), 30)
        finally:
            go.set()
            await asyncio.gather(*held)

    callers = Callers()
    lanes = [each for each in vars(callers).values() if isinstance(each, Lane)]
    assert callers.plans in lanes
    assert [asyncio.run(other(lane)) for lane in lanes] == [7] * len(lanes)


def test_a_plan_ends_when_it_has_taken_too_long(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    data = open_data(read_config(running.file))["people"]
    asked_for = asked_of({"questions": [{**ABOVE, "name": f"q{number}"} for number in range(20)]})
    budget = Imagined.of(running.ledger())
    assert len(data.plan(asked_for, ("people",), budget)[1].lines) == 20
    now = iter(range(10**6))
    monkeypatch.setattr(time, "thread_time", lambda: next(now))
    with pytest.raises(Refusal, match="in several jobs") as refused:
        data.plan(asked_for, ("people",), budget)
    assert refused.value.status == 422
    assert next(now) < 20
