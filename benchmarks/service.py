"""Jobs of a service against the same question in one process; balances against a constant reply of the framework.

Sixteen connections submit jobs and do not wait for answer times; what counts is the time until all of them are settled
in the ledger. The peer runs the same question as often, from sixteen threads of one process, with keys, on the same
database. Long questions are sums over a table of two hundred thousand rows of ten thousand people, short ones counts of
a hundred thousand rows. Answer times come twice a second and leave no margin, so that margins are not what is measured.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import duckdb

import expost as xp
from expost.ledger.address import opened
from report import ROOT, Row, at_least, report

sys.path.insert(0, str(ROOT / "tests"))
from servers import Server, new_schema
from serving import Running, submit

CALLERS, SECONDS, TURNS = 16, 3.0, 3
SUM = {"name": "total", "kind": "sum", "column": "cost", "bounds": [0, 50], "epsilon": 0.0001}
COUNT = {"name": "total", "kind": "count", "epsilon": 0.0001}
DATA = """
[data.visits]
path = "visits.parquet"
ledger = "visits"

[data.visits.privacy]
unit = "person"
rows = 10
neighbours = "add-remove"

[data.short]
path = "short.parquet"
ledger = "visits"

[data.short.privacy]
unit = "person"
rows = 10
neighbours = "add-remove"
"""
CONSTANT = """
import uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/constant")
async def constant():
    return {"account": "people/alice", "limit": {"epsilon": "1000", "delta": "1e-5"}}
class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)
Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", access_log=False)).run()
"""
LISTENERS = """
import asyncio, httpx, sys
async def one(client, heard):
    async with client.stream("GET", "/v1/events") as reply:
        async for _ in reply.aiter_text():
            heard.release()
async def listen():
    heard = asyncio.Semaphore(0)
    async with httpx.AsyncClient(base_url=sys.argv[1], headers={"authorization": sys.argv[2]}, timeout=None,
            limits=httpx.Limits(max_connections=200)) as client:
        tasks = [asyncio.create_task(one(client, heard)) for _ in range(100)]
        for _ in tasks:
            await heard.acquire()
        print(len(tasks), flush=True)
        await asyncio.gather(*tasks)
asyncio.run(listen())
"""


class Kind(NamedTuple):
    """Questions of one kind: in words, as callers send them, and of a table at home."""

    name: str
    data: str
    each: int
    """Jobs of each connection."""
    sent: dict[str, Any]
    asked: Callable[[xp.PrivateTable], Any]


KINDS = (
    Kind("jobs", "visits", 15, SUM, lambda table: table.sum("cost", bounds=(0, 50)).mechanism(epsilon=0.0001)),
    Kind("short jobs", "short", 60, COUNT, lambda table: table.count().mechanism(epsilon=0.0001)),
)


def main() -> None:
    server = Server(on_disk=True)
    places: dict[str, Callable[[], str]] = {
        "SQLite": lambda: "sqlite:///books.db", "PostgreSQL": lambda: new_schema(server),
    }  # fmt: skip
    rows = [jobs(kind, database, url) for kind in KINDS for database, url in places.items()]
    server.remove()
    report("service", rows + balances())


def prepared(folder: Path, url: str) -> Running:
    for name, size in (("visits", 200_000), ("short", 100_000)):
        rows = f"SELECT i % 10000 AS person, i % 50 AS cost FROM range({size}) t(i)"
        duckdb.sql(f"COPY ({rows}) TO '{folder}/{name}.parquet' (FORMAT parquet)")
    running = Running(folder, url, server="answer_every = 0.5\nqueue = 1000000\njobs_at_once = 16", more=DATA)
    ledger = xp.Ledger.create(running.url, "visits", 10**6, neighbours="add-remove", unit="person (column person)")
    ledger.create_account("alice", 10**6)
    running.add_tokens(("v-alice", "analyst", "visits/alice"))
    return running


# ---- jobs


def jobs(kind: Kind, database: str, url: Callable[[], str]) -> Row:
    ours, peers = [], []
    for turn in range(TURNS):
        with tempfile.TemporaryDirectory() as folder:
            running = prepared(Path(folder), url())
            ours.append(served(running, kind, turn))
            peers.append(at_home(running, kind))
    ratios = [one / other for one, other in zip(ours, peers, strict=True)]
    name = f"{kind.name} from 16 connections, {database}, against 16 threads"
    return at_least(name, median(ours), median(peers), "1/s", median(ratios), 0.7)


def served(running: Running, kind: Kind, turn: int) -> float:
    running.start()

    def work(number: int) -> None:
        with running.client("v-alice") as client:
            for count in range(kind.each):
                submit(client, f"{turn}-{number}-{count}", kind.sent, data=kind.data).raise_for_status()

    since = time.monotonic()
    crowd(work)
    with opened(running.url, read_only=True) as engine:
        while engine.rows("SELECT count(*) FROM expost_entry WHERE state = 'settled'")[0][0] < CALLERS * kind.each:
            time.sleep(0.02)
    took = time.monotonic() - since
    running.kill()
    return CALLERS * kind.each / took


def at_home(running: Running, kind: Kind) -> float:
    path = running.folder / f"{kind.data}.parquet"
    table = xp.read(path, unit=xp.Unit("person", rows=10), neighbours="add-remove")
    account = xp.Ledger.load(running.url, "visits").account("alice")

    def work(number: int) -> None:
        for count in range(kind.each):
            account.run(kind.asked(table), key=f"home {number} {count}", label="total")

    since = time.monotonic()
    crowd(work)
    return CALLERS * kind.each / (time.monotonic() - since)


def crowd(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# ---- balances


def balances() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        running = prepared(Path(folder), "sqlite:///books.db").start()
        turns = balance_turns(running)
        running.stop()
    alone, constants, heard, around = (median(each) for each in zip(*turns, strict=True))
    of_constant = median(mine / other for mine, other, _, _ in turns)
    of_alone = median(with_them / without for _, _, with_them, without in turns)
    return [
        at_least("balances, against a constant reply", alone, constants, "1/s", of_constant, 0.5),
        at_least("balances with 100 listeners, against none", heard, around, "1/s", of_alone, 0.95),
    ]


def balance_turns(running: Running) -> list[tuple[float, float, float, float]]:
    """Alone; the constant reply; with listeners; and without them, before and after."""
    own, secret = f"{running.address}/v1/account", running.secrets["alice"]
    turns = []
    with talking(CONSTANT) as constant:
        peer = f"http://127.0.0.1:{said(constant)}/constant"
        for _ in range(TURNS):
            constants, alone = rate(peer, ""), rate(own, secret)
            with talking(LISTENERS, running.address, f"Bearer {secret}") as listeners:
                assert said(listeners) == "100"
                heard = rate(own, secret)
            turns.append((alone, constants, heard, (alone + rate(own, secret)) / 2))
    return turns


def rate(url: str, secret: str) -> float:
    """Replies per second to sixteen connections. The client is plain sockets: what is measured is the server."""
    parts = urlsplit(url)
    token = f"Authorization: Bearer {secret}\r\n" if secret else ""
    request = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{token}\r\n".encode()

    async def one(stop: float) -> int:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        count = 0
        while time.monotonic() < stop:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 "), head
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
            count += 1
        writer.close()
        return count

    async def work() -> float:
        since = time.monotonic()
        counts = await asyncio.gather(*(one(since + SECONDS) for _ in range(CALLERS)))
        return sum(counts) / (time.monotonic() - since)

    return asyncio.run(work())


@contextmanager
def talking(script: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


if __name__ == "__main__":
    main()
