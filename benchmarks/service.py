"""Jobs of a service against the same question in one process; balances against a constant reply of the framework.

Sixteen connections submit jobs and do not wait for answer times; what counts is the time until all of them are settled
in the ledger. The peer runs the same question as often, from sixteen threads of one process, with keys, on the same
database. The question is a sum over a table of two hundred thousand rows of ten thousand people.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import duckdb
import httpx

import expost as xp
from report import ROOT, Row, at_least, report

sys.path.insert(0, str(ROOT / "tests"))
from servers import Server, new_schema
from serving import Running, submit

CALLERS, EACH, SECONDS, TURNS = 16, 15, 3.0, 3
SUM = {"name": "total", "kind": "sum", "column": "cost", "bounds": [0, 50], "epsilon": 0.0001}
DATA = """
[data.visits]
path = "visits.parquet"
ledger = "visits"

[data.visits.privacy]
unit = "person"
rows = 10
neighbours = "add-remove"
"""
CONSTANT = """
import sys, socket, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/constant")
async def constant():
    return {"account": "people/alice", "limit": {"epsilon": "1000", "delta": "1e-5"}}
sock = socket.socket(); sock.bind(("127.0.0.1", 0)); print(sock.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[sock])
"""


def main() -> None:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        rows += jobs("SQLite", Path(folder), lambda: f"sqlite:///{folder}/{secrets.token_hex(4)}.db")
    server = Server(on_disk=True)
    with tempfile.TemporaryDirectory() as folder:
        rows += jobs("PostgreSQL", Path(folder), lambda: new_schema(server))
    server.remove()
    with tempfile.TemporaryDirectory() as folder:
        rows += balances(Path(folder))
    report("service", rows)


def prepared(folder: Path, url: str) -> Running:
    target = folder / "visits.parquet"
    if not target.exists():
        duckdb.sql(f"COPY (SELECT i % 10000 AS person, i % 50 AS cost FROM range(200000) t(i)) TO '{target}'")
    running = Running(folder, url, server="answer_every = 0.5\nqueue = 1000000\njobs_at_once = 16", more=DATA)
    ledger = xp.Ledger.create(running.url, "visits", 10**6, neighbours="add-remove", unit="person (column person)")
    ledger.create_account("alice", 10**6)
    running.add_tokens(("v-alice", "analyst", "visits/alice"))
    return running


def jobs(database: str, folder: Path, url: Callable[[], str]) -> list[Row]:
    ours, peers = [], []
    for turn in range(TURNS):
        running = prepared(folder, url())
        ours.append(served(running, turn))
        peers.append(at_home(running))
    ratios = [one / other for one, other in zip(ours, peers, strict=True)]
    name = f"jobs from 16 connections, {database}, against 16 threads"
    return [at_least(name, median(ours), median(peers), "1/s", median(ratios), 0.7)]


def served(running: Running, turn: int) -> float:
    running.start()

    def work(number: int) -> None:
        with running.client("v-alice") as client:
            for count in range(EACH):
                submit(client, f"{turn}-{number}-{count}", SUM, data="visits").raise_for_status()

    since = time.monotonic()
    crowd(work)
    while settled(running) < CALLERS * EACH:
        time.sleep(0.05)
    took = time.monotonic() - since
    running.kill()
    return CALLERS * EACH / took


def settled(running: Running) -> int:
    ledger = xp.Ledger.load(running.url, "visits", read_only=True)
    return sum(entry.state == "settled" for entry in ledger.entries())


def at_home(running: Running) -> float:
    table = xp.read(running.folder / "visits.parquet", unit=xp.Unit("person", rows=10), neighbours="add-remove")
    account = xp.Ledger.load(running.url, "visits").account("alice")

    def work(number: int) -> None:
        for count in range(EACH):
            question = table.sum("cost", bounds=(0, 50)).laplace(epsilon=0.0001)
            account.run(question, key=f"home {number} {count}", label="total")

    since = time.monotonic()
    crowd(work)
    return CALLERS * EACH / (time.monotonic() - since)


def crowd(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def balances(folder: Path) -> list[Row]:
    running = prepared(folder, f"sqlite:///{folder}/books.db").start()
    command = [sys.executable, "-c", CONSTANT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as constant:
        assert constant.stdout is not None
        peer = f"http://127.0.0.1:{constant.stdout.readline().strip()}/constant"
        own, secret = f"{running.address}/v1/account", running.secrets["alice"]
        turns = [(rate(own, secret), rate(peer, ""), listened(running, own, secret)) for _ in range(TURNS)]
        constant.terminate()
    running.stop()
    alone, constants, heard = (median(each) for each in zip(*turns, strict=True))
    listening = median(with_them / without for without, _, with_them in turns)
    return [
        at_least(
            "balances, against a constant reply", alone, constants, "1/s", median(a / c for a, c, _ in turns), 0.5
        ),
        at_least("balances with 100 listeners, against none", heard, alone, "1/s", listening, 0.95),
    ]


def rate(url: str, secret: str) -> float:
    """Replies per second to sixteen connections of one client."""

    async def work() -> float:
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        limits = httpx.Limits(max_connections=CALLERS)
        async with httpx.AsyncClient(headers=headers, limits=limits) as client:
            stop, count = time.monotonic() + SECONDS, 0

            async def one() -> None:
                nonlocal count
                while time.monotonic() < stop:
                    (await client.get(url)).raise_for_status()
                    count += 1

            since = time.monotonic()
            await asyncio.gather(*(one() for _ in range(CALLERS)))
            return count / (time.monotonic() - since)

    return asyncio.run(work())


def listened(running: Running, url: str, secret: str) -> float:
    """The same, while a hundred others listen to live events."""
    script = (
        "import asyncio, httpx, sys\n"
        "async def one(client):\n"
        "    async with client.stream('GET', '/v1/events') as reply:\n"
        "        async for _ in reply.aiter_text(): pass\n"
        "async def main():\n"
        "    async with httpx.AsyncClient(base_url=sys.argv[1], headers={'authorization': sys.argv[2]}, timeout=None,\n"
        "            limits=httpx.Limits(max_connections=200)) as client:\n"
        "        await asyncio.gather(*(one(client) for _ in range(100)))\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, running.address, f"Bearer {secret}"]) as listeners:
        time.sleep(2.5)
        found = rate(url, secret)
        listeners.kill()
    return found


if __name__ == "__main__":
    main()
