"""`connect`: a service's tables and ledger. Asked with the same Python as local tables and ledgers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from expost.cost import Cost
from expost.data import PrivateTable
from expost.data.unit import stated_unit
from expost.errors import LedgerUnavailable, MissingDependency
from expost.guarantee import Guarantee
from expost.ledger import Quote
from expost.mechanism import Mechanism
from expost.service.blank import blank_table
from expost.service.client.calls import WAIT, CallSteps, HttpCall, error_of_problem, job_steps, quote_of, run_steps

try:
    import httpx
except ModuleNotFoundError as missing:  # pragma: no cover - the development environment has it
    raise MissingDependency("clients", str(missing.name), "client") from None

_TRIES = 6
_PASSING = (429, 502, 503, 504)


def connect(url: str, token: str, *, transport: httpx.BaseTransport | None = None) -> Connection:
    """A connection to a service: ``connect("https://host", token)``.

    ``connection.tables["visits"]`` is a table without rows, to make questions with; ``connection.ledger.run(question)``
    asks them where the data is.
    """
    client = httpx.Client(base_url=url, headers=_headers(token), timeout=WAIT + 30, transport=transport)
    try:
        return Connection(client)
    except BaseException:
        client.close()
        raise


async def connect_async(url: str, token: str, *, transport: httpx.AsyncBaseTransport | None = None) -> AsyncConnection:
    """The same, for asyncio: ``await connection.ledger.run(question)``."""
    client = httpx.AsyncClient(base_url=url, headers=_headers(token), timeout=WAIT + 30, transport=transport)
    connection = AsyncConnection(client)
    try:
        await connection.open()
    except BaseException:
        await client.aclose()
        raise
    return connection


class _Connected:
    """What both kinds of connections know: the account, and its tables."""

    account: str
    tables: dict[str, PrivateTable]

    def take(self, balance: Mapping[str, Any], data: list[Mapping[str, Any]]) -> None:
        """What the service answered at first."""
        self.account = balance["account"]
        self.tables = {each["name"]: _table(each) for each in data}

    def steps_of(self, mechanism: Any) -> int:
        """How many steps the mechanism's table had before anything was done with it."""
        table = getattr(getattr(mechanism, "question", None), "table", None)
        own = self.tables.get(table.engine.name) if isinstance(table, PrivateTable) else None
        return 0 if own is None else len(own.steps)


class Connection(_Connected):
    """A service, from one account. :func:`connect` makes it.

    Attributes
    ----------
    account
        The name of the account that pays.
    tables
        Its tables, by name.
    ledger
        Its ledger, which runs questions to these tables.
    """

    ledger: RemoteLedger

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.take(self.do(_one(HttpCall("GET", "/v1/account"))), self.do(_one(HttpCall("GET", "/v1/data"))))
        self.ledger = RemoteLedger(self)

    def do(self, steps: CallSteps) -> Any:
        """Send what steps yield, until they are done."""
        reply: Any = None
        try:
            while True:
                reply = self._send(steps.send(reply))
        except StopIteration as done:
            return done.value

    def ask(
        self, data: str, questions: list[Any] | None = None, *, toml: str | None = None, key: str | None = None
    ) -> Any:
        """Ask several questions, as a study does, and wait; the job with its result, in plain JSON."""
        return self.do(job_steps(data, _body(questions, toml), key))

    def plan(self, data: str, questions: list[Any] | None = None, *, toml: str | None = None) -> Any:
        """What questions would cost, in plain JSON. Free."""
        return self.do(_one(HttpCall("POST", f"/v1/data/{data}/plan", _body(questions, toml))))

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, call: HttpCall) -> Any:
        for attempt in range(_TRIES):
            try:
                reply = self._client.request(call.method, call.path, json=call.json, params=dict(call.params),
                                             headers=dict(call.headers))  # fmt: skip
            except httpx.TransportError:
                reply = None
            if reply is not None and reply.status_code not in _PASSING:
                return _read(reply, call, self)
            time.sleep(_pause(attempt))
        raise _away(reply, self)


class AsyncConnection(_Connected):
    """A service, from one account, for asyncio. :func:`connect_async` makes it.

    Attributes
    ----------
    account
        The name of the account that pays.
    tables
        Its tables, by name.
    ledger
        Its ledger, which runs questions to these tables.
    """

    ledger: AsyncRemoteLedger

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def open(self) -> None:
        """Read the account and its tables from the service."""
        self.take(await self.do(_one(HttpCall("GET", "/v1/account"))), await self.do(_one(HttpCall("GET", "/v1/data"))))
        self.ledger = AsyncRemoteLedger(self)

    async def do(self, steps: CallSteps) -> Any:
        """Send what steps yield, until they are done."""
        reply: Any = None
        try:
            while True:
                reply = await self._send(steps.send(reply))
        except StopIteration as done:
            return done.value

    async def ask(
        self, data: str, questions: list[Any] | None = None, *, toml: str | None = None, key: str | None = None
    ) -> Any:
        """Ask several questions, as a study does, and wait; the job with its result, in plain JSON."""
        return await self.do(job_steps(data, _body(questions, toml), key))

    async def plan(self, data: str, questions: list[Any] | None = None, *, toml: str | None = None) -> Any:
        """What questions would cost, in plain JSON. Free."""
        return await self.do(_one(HttpCall("POST", f"/v1/data/{data}/plan", _body(questions, toml))))

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _send(self, call: HttpCall) -> Any:
        for attempt in range(_TRIES):
            try:
                reply = await self._client.request(call.method, call.path, json=call.json, params=dict(call.params),
                                                   headers=dict(call.headers))  # fmt: skip
            except httpx.TransportError:
                reply = None
            if reply is not None and reply.status_code not in _PASSING:
                return _read(reply, call, self)
            await asyncio.sleep(_pause(attempt))
        raise _away(reply, self)


class RemoteLedger:
    """An account behind a service: runs, quotes and reads as a local ledger does.

    Balances are of the last answer time.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, mechanism: Mechanism, *, key: str | None = None, label: str | None = None) -> Any:
        """Ask a question of one of the connection's tables: its release. The same key gives the same release."""
        connection = self._connection
        return connection.do(run_steps(connection.account, mechanism, connection.steps_of(mechanism), key, label))

    def quote(self, planned: Iterable[Mechanism | Guarantee]) -> Quote:
        """What mechanisms would cost at worst and at best."""
        return quote_of(planned, self.remaining)

    @property
    def name(self) -> str:
        """The account's name."""
        return self._connection.account

    @property
    def limit(self) -> Cost:
        """The most that may ever be spent here."""
        return self._amount("limit")

    @property
    def spent(self) -> Cost:
        """What was charged, here and below."""
        return self._amount("spent")

    @property
    def reserved(self) -> Cost:
        """The worst case of everything that is still open, here and below."""
        return self._amount("reserved")

    @property
    def remaining(self) -> Cost:
        """What can still be asked for: the least of what remains here and at every level above."""
        return self._amount("remaining")

    def entries(self, *, last: int = 100) -> Any:
        """The last entries, in plain JSON."""
        return self._connection.do(_one(HttpCall("GET", "/v1/entries", params={"last": last})))

    def statement(self, *, by: Literal["entry", "day"] = "entry") -> str:
        """A table for people."""
        return str(self._connection.do(_one(HttpCall("GET", "/v1/statement", params={"by": by}, text=True)))).rstrip(
            "\n"
        )

    def _amount(self, what: str) -> Cost:
        return Cost.from_json(self._connection.do(_one(HttpCall("GET", "/v1/account")))[what])

    def __repr__(self) -> str:
        return f"<ledger {self.name!r} behind a service>"


class AsyncRemoteLedger:
    """An account behind a service, for asyncio: what asks the service is awaited."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def run(self, mechanism: Mechanism, *, key: str | None = None, label: str | None = None) -> Any:
        """Ask a question of one of the connection's tables: its release. The same key gives the same release."""
        connection = self._connection
        return await connection.do(run_steps(connection.account, mechanism, connection.steps_of(mechanism), key, label))

    async def quote(self, planned: Iterable[Mechanism | Guarantee]) -> Quote:
        """What mechanisms would cost at worst and at best."""
        return quote_of(planned, (await self.balance())["remaining"])

    async def balance(self) -> dict[str, Cost]:
        """Limit, spent, reserved and remaining, as of the last answer time."""
        found = await self._connection.do(_one(HttpCall("GET", "/v1/account")))
        return {what: Cost.from_json(found[what]) for what in ("limit", "spent", "reserved", "remaining")}

    async def statement(self, *, by: Literal["entry", "day"] = "entry") -> str:
        """A table for people."""
        text = await self._connection.do(_one(HttpCall("GET", "/v1/statement", params={"by": by}, text=True)))
        return str(text).rstrip("\n")


def _one(call: HttpCall) -> CallSteps:
    return (yield call)


def _headers(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _body(questions: list[Any] | None, toml: str | None) -> dict[str, Any]:
    return {"questions": questions} if toml is None else {"toml": toml}


def _pause(attempt: int) -> float:
    return float(0.1 * 2**attempt)


def _read(reply: httpx.Response, call: HttpCall, connected: _Connected) -> Any:
    if reply.is_success:
        return reply.text if call.text else reply.json()
    raise error_of_problem(_problem(reply), getattr(connected, "account", "the account"))


def _away(reply: httpx.Response | None, connected: _Connected) -> Exception:
    if reply is None:
        return LedgerUnavailable("the service cannot be reached; the same key asks again, and is charged once")
    return error_of_problem(_problem(reply), getattr(connected, "account", "the account"))


def _problem(reply: httpx.Response) -> dict[str, Any]:
    try:
        found = reply.json()
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"status": reply.status_code, "detail": "the service refuses this"}


def _table(facts: Mapping[str, Any]) -> PrivateTable:
    derive = facts["derive"]
    plain = {name: kind for name, kind in facts["schema"].items() if name not in derive}
    unit = stated_unit(facts["unit"], facts["rows"], facts["groups"], facts["who"])
    table = blank_table(facts["name"], plain, unit=unit, neighbours=facts["neighbours"], size=facts["size"])
    return table.derive(**derive)
