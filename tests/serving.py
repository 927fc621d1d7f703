"""A service for tests: a folder with data, a ledger and tokens, and a process that serves it on a free port."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Self

import httpx

from expost import Ledger
from expost.service.database import ServiceTables
from expost.service.governance import issue_token
from studies import write_people
from warm import fork_service

SERVER = """\
[server]
listen = "127.0.0.1:0"
{server}

[ledger]
url = "{url}"

[data.people]
path = "people.csv"
ledger = "people"
synthetic = true
{data}

[data.people.schema]
person = "integer"
age = "integer"
city = "text"
cost = "number"
word = "text"

[data.people.privacy]
unit = "row"
who = "visitor"
neighbours = "substitute"

[data.people.bounds]
age = [0, 100]
"""
REVIEWED = """
[data.guarded]
path = "people.csv"
ledger = "people"
review = true
kinds = ["count", "sum"]
schema = { person = "integer", age = "integer", city = "text", cost = "number", word = "text" }

[data.guarded.privacy]
unit = "row"
who = "visitor"
neighbours = "substitute"

[data.theirs]
path = "people.csv"
ledger = "others"
schema = { person = "integer", age = "integer", city = "text", cost = "number", word = "text" }

[data.theirs.privacy]
unit = "row"
who = "visitor"
neighbours = "substitute"
"""
"""More data sets: one with reviews, and one of another ledger."""
METERED = """
[data.metered]
path = "people.csv"
ledger = "metered"
synthetic = true
schema = { person = "integer", age = "integer", city = "text", cost = "number", word = "text" }

[data.metered.privacy]
unit = "row"
who = "visitor"
neighbours = "substitute"
"""
"""A data set of a ledger that has several meters, which tests make."""
UNIT = "visitor (one row each)"
HTML = {"accept": "text/html"}
COUNT = {"name": "old", "kind": "count", "where": "age >= 60", "epsilon": 0.01}
_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Trusts no certificate, and is not made anew for each client: to read those of all authorities takes 20 ms."""
WHO = (
    ("custodian", "custodian", "people"),
    ("auditor", "auditor", "people"),
    ("alice", "analyst", "people/alice"),
    ("bob", "analyst", "people/bob"),
    ("engine", "engine", "people/bob"),
    ("stranger", "custodian", "others"),
)
"""Tokens: their names, roles and accounts."""


class Running:
    """A service in a folder. It runs until it is stopped, at the latest with the fixture that started it."""

    def __init__(
        self, folder: Path, url: str = "sqlite:///books.db", *, epsilon: float = 1000, server: str = "", data: str = "",
        more: str = "",
    ) -> None:  # fmt: skip
        self.folder, self.log = folder, folder / "log"
        if not (folder / "people.csv").exists():
            write_people(folder)
        self.url = f"sqlite:///{folder}/books.db" if url.startswith("sqlite") else url
        self.file = folder / "server.toml"
        server = f"answer_every = 0.1\nqueue = 5000\n{server}" if "answer_every" not in server else server
        for key, value in (
            ("margin", "0"),
            ("pace", "0.2" if "lose" in server else "0"),
            ("late", '"wait"'),
            ("questions", "100000"),
        ):
            server += f"\n{key} = {value}" if key not in server else ""
        self.file.write_text(SERVER.format(server=server, url=self.url, data=data) + more)
        self._process: subprocess.Popen[str] | None = None
        self.address = ""
        self.secrets: dict[str, str] = {}
        self._make(epsilon)

    @classmethod
    def beside(cls, other: Running, file: Path) -> Self:
        """A second process for the same data, ledger and tokens."""
        found = object.__new__(cls)
        found.folder, found.log, found.url, found.file = other.folder, other.folder / "log2", other.url, file
        found._process, found.address, found.secrets = None, "", other.secrets
        return found

    def _make(self, epsilon: float) -> None:
        for name in ("people", "others"):
            ledger = Ledger.create(self.url, name, epsilon, 1e-5, neighbours="substitute", unit=UNIT)
            if name == "people":
                ledger.create_account("alice", epsilon, 1e-5)
                ledger.create_account("bob", epsilon, 1e-5)
        self.add_tokens(*WHO)

    def add_tokens(self, *who: tuple[str, str, str]) -> None:
        """More tokens: names, roles and accounts."""
        database = ServiceTables(self.url)
        for name, role, account in who:
            ledger, *below = account.split("/")
            found = Ledger.load(self.url, ledger, recover=False)
            for each in below:
                found = found.account(each)
            self.secrets[name] = issue_token(database, found, role, account, name=name, days=2)[1]
        database.close()

    def start(self, file: Path | None = None) -> Self:
        """Start it, and wait until it listens."""
        said = self._launched(file or self.file)
        if not said.startswith("serving "):
            self.kill()
            raise AssertionError(self.log.read_text()[-3000:])
        self.address = said.split()[1]
        return self

    def _launched(self, file: Path) -> str:
        """The first line that the new process prints."""
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "expost", "serve", str(file)],
                stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, "COLUMNS": "200"},
            )  # fmt: skip
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    @property
    def pid(self) -> int:
        """The process's number."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """As good as a power cut, for this process."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Gracefully; the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how: int) -> int:
        if self._process is None:
            return 0
        self._process.send_signal(how)
        code = self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return code

    def client(self, who: str | None = None) -> httpx.Client:
        """A client with somebody's token."""
        headers = {} if who is None else {"authorization": f"Bearer {self.secrets[who]}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=60, verify=_NOBODY)

    def ledger(self) -> Ledger:
        """The ledger itself, as the custodian has it."""
        return Ledger.load(self.url, "people", recover=False)


class Forked(Running):
    """The same in a process that need not import anything: for tests that start many."""

    _fork: ForkServerProcess | None = None
    patch: Callable[[], None] | None = None
    """Called in the process before it serves."""

    def _launched(self, file: Path) -> str:
        self._fork, said = fork_service(str(file), str(self.log), self.patch)
        with open(said.fileno(), closefd=False) as lines, said:
            return lines.readline()

    @property
    def pid(self) -> int:
        """The process's number."""
        assert self._fork is not None
        assert self._fork.pid is not None
        return self._fork.pid

    def _end(self, how: int) -> int:
        if self._fork is None:
            return 0
        os.kill(self.pid, how)
        self._fork.join(60)
        code, self._fork = self._fork.exitcode, None
        assert code is not None, "it did not stop"
        return code


def submit(
    client: httpx.Client, key: str, *questions: Mapping[str, Any], data: str = "people", **body: Any
) -> httpx.Response:
    """Submit a job."""
    given = {"questions": [dict(each) for each in questions], **body} if questions else body
    return client.post(f"/v1/data/{data}/jobs", json=given, headers={"idempotency-key": key})


def answer(client: httpx.Client, job: str) -> dict[str, Any]:
    """Wait for a job's answer."""
    for _ in range(10):
        found: dict[str, Any] = client.get(f"/v1/jobs/{job}", params={"wait": 30}).json()
        if found["state"] == "done":
            return found
    raise AssertionError(json.dumps(found))


@contextmanager
def signed_in(running: Running, who: str) -> Iterator[tuple[httpx.Client, str]]:
    """A browser's client, which sends its cookie on loopback; and what its forms carry."""
    with httpx.Client(base_url=running.address, headers=HTML, timeout=30) as client:
        reply = client.post("/sign-in", data={"token": running.secrets[who]})
        assert (reply.status_code, reply.headers["location"]) == (303, "/")
        cookie = reply.headers["set-cookie"]
        assert all(each in cookie for each in ("__Host-expost=", "HttpOnly", "Secure", "SameSite=strict", "Path=/"))
        client.headers["cookie"] = cookie.partition(";")[0]
        form = re.search(r'name="form" value="(\w+)"', client.get("/").text)
        assert form is not None
        yield client, form[1]
