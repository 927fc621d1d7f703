"""Hostile callers of every kind, each with an account of its own, against one process: others hardly notice.

They plan large products and what is slow to price, send keys and text that nobody can read, and questions that are
none, read long lists, submit large jobs, leave requests half sent, and do not read what they are sent. Meanwhile the
event loop replies, another analyst's jobs are accepted, and memory stays bounded. How quickly that is, is measured in
`make soak`, which has the machine to itself: other tests share theirs, and ask only that nobody waits for the end.
"""

from __future__ import annotations

import json
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from statistics import quantiles
from threading import Event, Thread
from typing import Any, NamedTuple

from expost import Ledger
from expost.service.database import ServiceTables
from expost.service.results import ended, result_text
from serving import COUNT, METERED, REVIEWED, UNIT, Forked, Running, answer, submit
from soak import SOAK

CALLERS = 24 if SOAK else 9
SECONDS = 120.0 if SOAK else 2.0
LOOP_WITHIN, ACCEPTED_WITHIN = 0.1, 0.5
"""Seconds, in `make soak`: for 99 of 100 replies that need no thread, and for each job of another analyst."""
MEMORY = 600_000
"""Kilobytes that the process has at most, ever."""

KEYS = [f"k{number}" for number in range(1500)]
CELLS: dict[str, Any] = {"name": "a", "kind": "histogram", "column": "age", "bounds": [0, 100], "epsilon": 1e-3}
BY = {"by": ["city", "word"], "by_keys": {"city": KEYS[:100], "word": KEYS[:95]}}
PRODUCT = {"by": ["age", "city", "word"], "by_keys": {"age": list(range(1500)), "city": KEYS, "word": KEYS}}
ABOVE = {"kind": "above", "column": "age", "bins": 400, "bounds": [0, 80], "threshold": 5, "at_most": 100}
SLOW = [{**ABOVE, "name": f"q{number}", "share_of_remaining": 0.01} for number in range(30)]
"""Seconds to price, on a ledger that counts Rényi prices."""
MANY = [{**CELLS, "name": f"q{number}", "bins": 450} for number in range(100)]


class Sent(NamedTuple):
    """A request. Its body is bytes, so that it need not be text."""

    path: str
    body: bytes | None = None


def _plan(*questions: dict[str, Any], path: str = "plan", data: str = "people") -> Sent:
    return Sent(f"/v1/data/{data}/{path}", json.dumps({"questions": questions}).encode())


REQUESTS: tuple[tuple[Sent, ...], ...] = (
    (_plan({**COUNT, **PRODUCT}), _plan({**COUNT, **BY}), _plan(*MANY)),
    (_plan({**CELLS, "bins": 45_000}), _plan(*MANY)),
    (Sent("/v1/data/people/plan", json.dumps({"toml": "a." * 15_000 + "a = 1"}).encode()),
     Sent("/v1/data/people/plan", json.dumps({"toml": "[" + "[x]\n[" * 9000 + "x]"}).encode())),
    (_plan({**CELLS, "bins": 9000, "epsilon": 1e-12}, path="jobs"), Sent("/v1/jobs?limit=100"), Sent("/v1/statement"),
     Sent("/v1/entries?last=1000")),
    (Sent("/v1/data/people/plan", json.dumps({"questions": [1] * 19_000}).encode()),
     Sent("/v1/data/people/plan", json.dumps({"questions": [COUNT], "derive": dict.fromkeys(KEYS, 1)}).encode())),
    (_plan(*SLOW, data="metered"),),
    (Sent("/v1/data/people/jobs", b'{"questions": [{"name": "\\ud800", "kind": "count", "epsilon": 1}]}'),
     Sent("/v1/data/people/plan", b'{"questions": ' + b"[" * 60_000), Sent("/v1/data/people/plan", b"\xff\x00")),
)  # fmt: skip


KINDS = len(REQUESTS) + 2
"""Kinds of callers: those that send requests, those that send halves, and those that do not read."""
UNREAD = len(REQUESTS) + 1
PLANNING = 5
"""The kind that plans what is slow to price."""
HELD = 20
"""Connections that one who does not read holds."""
LARGE = 4_000_000
"""Bytes of a result that nobody reads."""


class Tally(NamedTuple):
    """What hostile callers were told."""

    statuses: Counter[int]
    """0 is a connection that was cut off."""
    wrong: list[str]
    """Replies that should never be: 5xx without an incident, 429 without a time to come back."""


def _call(connection: HTTPConnection, sent: Sent, secret: str, key: str, tally: Tally) -> None:
    headers = {"authorization": f"Bearer {secret}", "content-type": "application/json", "idempotency-key": key}
    connection.request("POST" if sent.body is not None else "GET", sent.path, sent.body, headers)
    reply = connection.getresponse()
    text = reply.read()
    tally.statuses[reply.status] += 1
    if reply.status >= 500 and "incident" not in json.loads(text):
        tally.wrong.append(f"{sent.path}: {text!r}")
    if reply.status in (429, 503) and reply.getheader("retry-after") is None:
        tally.wrong.append(f"{sent.path}: {reply.status} without Retry-After")


def _half_sent(host: str, port: int, body: bool) -> None:
    """A request of which half is sent."""
    with socket.create_connection((host, port), 30) as half, suppress(OSError):
        half.sendall(b"POST /v1/data/people/plan HTTP/1.1\r\nHost: x\r\n")
        half.sendall(b"Content-Length: 9999\r\n\r\n{" if body else b"X-Half: ")
        time.sleep(1)


def _unread(host: str, port: int, secret: str, paths: list[str], until: float) -> None:
    """Requests whose replies are waited for, and not read."""
    held = deque[socket.socket]()
    for path in cycle(paths):
        if time.time() >= until:
            break
        with suppress(OSError):
            held.append(socket.create_connection((host, port), 30))
            asked = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {secret}"
            held[-1].sendall(f"{asked}\r\n\r\n".encode())
        if len(held) > HELD:
            held.popleft().close()
        time.sleep(0.02)
    for each in held:
        each.close()


def _hostile(address: str, secret: str, number: int, until: float, unread: list[str]) -> Tally:
    """One caller, until a time."""
    host, port = address.removeprefix("http://").split(":")
    tally, connection = Tally(Counter(), []), HTTPConnection(host, int(port), timeout=60)
    kind, turn = number % KINDS, 0
    requests = REQUESTS[kind] if kind < len(REQUESTS) else ()
    if kind == UNREAD:
        _unread(host, int(port), secret, unread, until)
        return tally
    while time.time() < until:
        turn += 1
        if not requests:
            _half_sent(host, int(port), turn % 2 == 0)
            continue
        try:
            _call(connection, requests[turn % len(requests)], secret, f"{number} {turn}", tally)
        except (OSError, HTTPException) as error:  # cut off
            tally.statuses[0] += 1
            tally.wrong.extend([] if isinstance(error, ConnectionError) else [repr(error)])
            connection.close()
    return tally


def hostile(address: str, secrets: list[str], until: float, unread: dict[int, list[str]]) -> Tally:
    """All callers, in a process of their own: they do not slow down whoever measures."""
    found = Tally(Counter(), [])
    with ThreadPoolExecutor(CALLERS) as pool:
        for one in pool.map(
            lambda each: _hostile(address, each[1], each[0], until, unread.get(each[0], [])), enumerate(secrets)
        ):
            found.statuses.update(one.statuses)
            found.wrong.extend(one.wrong)
    return found


# ---- others


@contextmanager
def repeated(work: Callable[[], None], pause: float) -> Iterator[list[float]]:
    """How long something takes, again and again."""
    took, stop = list[float](), Event()

    def measure() -> None:
        while not stop.wait(pause):
            since = time.perf_counter()
            work()
            took.append(time.perf_counter() - since)

    thread = Thread(target=measure)
    thread.start()
    try:
        yield took
    finally:
        stop.set()
        thread.join()


def memory(pid: int) -> int:
    """The most that a process has had in memory, in kilobytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def prepared(folder: Path) -> Running:
    server = 'answer_every = 0.5\nmargin = 2\nlate = "lose"\nqueue = 500\npace = 0.01'
    running = Forked(folder, server=server, more=METERED + REVIEWED)
    people = Ledger.load(running.url, "people")
    metered = Ledger.create(
        running.url, "metered", 1000, 1e-5, neighbours="substitute", unit=UNIT, accounting="renyi"
    )  # fmt: skip
    for number in range(CALLERS):
        ledger = metered if number % KINDS == PLANNING else people
        ledger.create_account(f"hostile-{number}", 1000, 1e-5)
        running.add_tokens((f"hostile-{number}", "analyst", f"{ledger.name}/hostile-{number}"))
    return running


def _replace(tables: ServiceTables, job: str, result: str) -> None:
    tables.write(lambda run: run("UPDATE expost_job SET result = ? WHERE id = ? RETURNING id", result, job))


def unread_paths(running: Running) -> dict[int, list[str]]:
    """For those who do not read: a result that is large, and a job whose answer does not come."""
    found = {}
    tables = ServiceTables(running.url)
    for number in range(UNREAD, CALLERS, KINDS):
        with running.client(f"hostile-{number}") as client:
            large = answer(client, submit(client, "large", COUNT).json()["id"])["id"]
            waits = submit(client, "waits", COUNT, data="guarded").json()["id"]
        _replace(tables, large, result_text(ended("answered", "x" * LARGE)))
        found[number] = [f"/v1/jobs/{large}", f"/v1/jobs/{waits}?wait=60"]
    tables.close()
    return found


def flooded(
    running: Running, process: ProcessPoolExecutor, secrets: list[str], unread: Any, anybody: Any, ask: Any
) -> tuple[Any, list[float], list[float]]:
    """What hostile callers got, how long the loop took meanwhile, and how long others' jobs took to be accepted."""
    doing = process.submit(hostile, running.address, secrets, time.time() + SECONDS + 1, unread)
    time.sleep(1)
    with (
        repeated(lambda: anybody.get("/health").raise_for_status() and None, 0.01) as loop,
        repeated(ask, 0.25) as accepting,
    ):
        tally = doing.result()
    return tally, loop, accepting


def test_hostile_callers_hold_nobody_up(tmp_path: Path) -> None:
    running = prepared(tmp_path).start()
    secrets = [running.secrets[f"hostile-{number}"] for number in range(CALLERS)]
    keys, accepted = iter(range(10**6)), Counter[int]()
    try:
        unread = unread_paths(running)
        before = memory(running.pid)
        with (
            ProcessPoolExecutor(1, get_context("spawn")) as process,
            running.client() as anybody,
            running.client("bob") as bob,
        ):

            def ask() -> None:
                reply = bob.post(
                    "/v1/data/people/jobs", json={"questions": [COUNT]}, headers={"idempotency-key": f"{next(keys)}"}
                )
                accepted[reply.status_code] += 1

            ask()  # which loads modules
            with repeated(lambda: anybody.get("/health").raise_for_status() and None, 0.01) as quiet:
                time.sleep(1)
            tally, loop, accepting = flooded(running, process, secrets, unread, anybody, ask)
        after = memory(running.pid)
    finally:
        running.stop()
    assert not tally.wrong, tally.wrong[:5]
    assert len(loop) > 2  # while the callers were at it
    assert len(accepting) > 2
    alone, latency = (quantiles(each, n=100)[98] for each in (quiet, loop))
    print(f"\n{dict(tally.statuses)}; loop p99 {1000 * latency:.0f} ms of {len(loop)}, max {max(loop):.3f} s")
    print(f"loop p99 {1000 * alone:.0f} ms of {len(quiet)} without them")
    print(f"accepted within {1000 * max(accepting):.0f} ms of {len(accepting)}, {dict(accepted)}")
    print(f"memory {before // 1000} MB before, {after // 1000} MB at most")
    if SOAK:
        assert latency < LOOP_WITHIN
        assert max(accepting) < ACCEPTED_WITHIN
    assert set(accepted) == {202}
    assert after < MEMORY
    running.ledger().verify()
