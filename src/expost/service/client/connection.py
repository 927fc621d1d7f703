"""`connect`: a service's tables and ledger. Asked with the same Python as local tables and ledgers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, Self, TypeAlias

import httpx

from expost.cost import Cost, Number
from expost.data import PrivateTable
from expost.data.unit import stated_unit
from expost.errors import InvalidValue, LedgerUnavailable
from expost.guarantee import Guarantee
from expost.ledger import Quote
from expost.ledger.asking import refuse_both
from expost.mechanism import Mechanism, Out, Release
from expost.question import NoiseName, Question
from expost.service.blank import blank_table
from expost.service.client.calls import WAIT, CallSteps, HttpCall, error_of_problem, job_steps, quote_steps, run_steps
from expost.service.client.reaching import checked_address, checked_token, not_a_service, why_away

_TRIES = 6
_LONGEST_PAUSE = 10.0
_Planned: TypeAlias = Question | Mechanism | Guarantee
_PASSING = (429, 502, 503, 504)


def connect(
    url: str, token: str, *, in_the_clear: bool = False, transport: httpx.BaseTransport | None = None
) -> Connection:
    """A connection to a service: ``connect("https://host", token)``.

    ``connection.data["visits"]`` is a table without rows, to make questions with, and
    ``connection.run(question, epsilon=0.1)`` asks them where the data is. Beyond this machine ``http://`` needs
    ``in_the_clear=True``: anybody on the way could read the token.
    """
    address = checked_address(url, in_the_clear=in_the_clear)
    client = httpx.Client(base_url=address, headers=_headers(token), timeout=WAIT + 30, transport=transport)
    try:
        return Connection(client)
    except BaseException:
        client.close()
        raise


async def connect_async(
    url: str, token: str, *, in_the_clear: bool = False, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncConnection:
    """The same, for asyncio: ``await connection.run(question, epsilon=0.1)``."""
    address = checked_address(url, in_the_clear=in_the_clear)
    client = httpx.AsyncClient(base_url=address, headers=_headers(token), timeout=WAIT + 30, transport=transport)
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
    data: dict[str, PrivateTable]
    address: str
    is_open = False
    """Whether the service was reached before: then what fails may pass."""

    def take(self, balance: Mapping[str, Any], data: list[Mapping[str, Any]]) -> None:
        """What the service answered at first."""
        self.account = balance["account"]
        self.data = {each["name"]: _table(each) for each in data}

    def running(self, what: Any, said: Mapping[str, Any], key: str | None, label: str | None) -> CallSteps:
        """What is said to run a question or a mechanism."""
        return run_steps(self.account, what, said, self.steps_of, key, label, service=self.address)

    def steps_of(self, mechanism: Any) -> int:
        """How many steps the mechanism's table had before anything was done with it.

        Raises ``InvalidValue`` for a table that is none of these: the service reads of a table but its name and what
        was done to it, and would answer about rows, a unit and a relation of its own.
        """
        table = getattr(getattr(mechanism, "question", None), "table", None)
        if not isinstance(table, PrivateTable):
            return 0
        for own in self.data.values():
            begun = replace(table, columns=own.columns, steps=table.steps[: len(own.steps)])
            if begun == own:
                return len(own.steps)
        there = ", ".join(f"connection.data[{name!r}]" for name in self.data) or "there is none"
        raise InvalidValue(f"{table.name} is no table of this connection: ask one that is ({there})")


class Connection(_Connected):
    """A service, from one account. :func:`connect` makes it.

    Attributes
    ----------
    account
        The name of the account that pays.
    data
        Its tables, by name.
    ledger
        Its ledger, which runs questions to these tables.
    """

    ledger: RemoteLedger

    def __init__(self, client: httpx.Client) -> None:
        self._client, self.address = client, str(client.base_url)
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

    def run(
        self,
        what: Question[Out] | Mechanism[Any, Out],
        *,
        epsilon: Number | Cost | None = None,
        within: Number | str | None = None,
        delta: Number = 0,
        noise: NoiseName | None = None,
        key: str | None = None,
        label: str | None = None,
        again: bool = False,
    ) -> Release[Out]:
        """As ``connection.ledger.run``."""
        return self.ledger.run(
            what, epsilon=epsilon, within=within, delta=delta, noise=noise, key=key, label=label, again=again
        )

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
        sending = _Sending(call, self)
        for attempt in range(_TRIES):
            try:
                reply = self._client.request(call.method, call.path, json=call.json, params=dict(call.params),
                                             headers=dict(call.headers))  # fmt: skip
            except httpx.TransportError as error:
                sending.lost(error, self._client.base_url)
            else:
                if sending.got(reply):
                    return sending.read(reply)
            time.sleep(sending.pause(attempt))
        raise sending.problem


class AsyncConnection(_Connected):
    """A service, from one account, for asyncio. :func:`connect_async` makes it.

    Attributes
    ----------
    account
        The name of the account that pays.
    data
        Its tables, by name.
    ledger
        Its ledger, which runs questions to these tables.
    """

    ledger: AsyncRemoteLedger

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client, self.address = client, str(client.base_url)

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

    async def run(
        self,
        what: Question[Out] | Mechanism[Any, Out],
        *,
        epsilon: Number | Cost | None = None,
        within: Number | str | None = None,
        delta: Number = 0,
        noise: NoiseName | None = None,
        key: str | None = None,
        label: str | None = None,
        again: bool = False,
    ) -> Release[Out]:
        """As ``connection.ledger.run``."""
        return await self.ledger.run(
            what, epsilon=epsilon, within=within, delta=delta, noise=noise, key=key, label=label, again=again
        )

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
        sending = _Sending(call, self)
        for attempt in range(_TRIES):
            try:
                reply = await self._client.request(call.method, call.path, json=call.json, params=dict(call.params),
                                                   headers=dict(call.headers))  # fmt: skip
            except httpx.TransportError as error:
                sending.lost(error, self._client.base_url)
            else:
                if sending.got(reply):
                    return sending.read(reply)
            await asyncio.sleep(sending.pause(attempt))
        raise sending.problem


class RemoteLedger:
    """An account behind a service: runs, quotes and reads as a local ledger does.

    Balances are of the last answer time.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(
        self,
        what: Question[Out] | Mechanism[Any, Out],
        *,
        epsilon: Number | Cost | None = None,
        within: Number | str | None = None,
        delta: Number = 0,
        noise: NoiseName | None = None,
        key: str | None = None,
        label: str | None = None,
        again: bool = False,
    ) -> Release[Out]:
        """Ask a question of one of the connection's tables: its release. The same key gives the same release.

        The same call as :meth:`Ledger.run <expost.Ledger.run>`. A service knows by keys alone what was asked before:
        without one every call buys an answer, and ``again=True`` says what is so anyway.
        """
        refuse_both(key, again)
        connection, said = self._connection, _said(epsilon, within, delta, noise)
        steps = connection.running(what, said, key, label)
        found: Release[Out] = connection.do(steps)
        return found

    def quote(
        self,
        planned: _Planned | Iterable[_Planned],
        *,
        epsilon: Number | Cost | None = None,
        within: Number | str | None = None,
        delta: Number = 0,
        noise: NoiseName | None = None,
    ) -> Quote:
        """What questions or mechanisms would cost at worst and at best."""
        steps = quote_steps(planned, _said(epsilon, within, delta, noise))
        found: Quote = self._connection.do(steps)
        return found

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

    async def run(
        self,
        what: Question[Out] | Mechanism[Any, Out],
        *,
        epsilon: Number | Cost | None = None,
        within: Number | str | None = None,
        delta: Number = 0,
        noise: NoiseName | None = None,
        key: str | None = None,
        label: str | None = None,
        again: bool = False,
    ) -> Release[Out]:
        """Ask a question of one of the connection's tables: its release. The same key gives the same release.

        The same call as :meth:`Ledger.run <expost.Ledger.run>`. A service knows by keys alone what was asked before:
        without one every call buys an answer, and ``again=True`` says what is so anyway.
        """
        refuse_both(key, again)
        connection, said = self._connection, _said(epsilon, within, delta, noise)
        steps = connection.running(what, said, key, label)
        found: Release[Out] = await connection.do(steps)
        return found

    async def quote(
        self,
        planned: _Planned | Iterable[_Planned],
        *,
        epsilon: Number | Cost | None = None,
        within: Number | str | None = None,
        delta: Number = 0,
        noise: NoiseName | None = None,
    ) -> Quote:
        """What questions or mechanisms would cost at worst and at best."""
        steps = quote_steps(planned, _said(epsilon, within, delta, noise))
        found: Quote = await self._connection.do(steps)
        return found

    async def balance(self) -> dict[str, Cost]:
        """Limit, spent, reserved and remaining, as of the last answer time."""
        found = await self._connection.do(_one(HttpCall("GET", "/v1/account")))
        return {what: Cost.from_json(found[what]) for what in ("limit", "spent", "reserved", "remaining")}

    async def statement(self, *, by: Literal["entry", "day"] = "entry") -> str:
        """A table for people."""
        text = await self._connection.do(_one(HttpCall("GET", "/v1/statement", params={"by": by}, text=True)))
        return str(text).rstrip("\n")


def _said(
    epsilon: Number | Cost | None, within: Number | str | None, delta: Number, noise: NoiseName | None
) -> dict[str, Any]:
    """What a question may cost, or how accurate it must be."""
    return {"epsilon": epsilon, "within": within, "delta": delta, "noise": noise}


def _one(call: HttpCall) -> CallSteps:
    return (yield call)


def _headers(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {checked_token(token)}"}


def _body(questions: list[Any] | None, toml: str | None) -> dict[str, Any]:
    return {"questions": questions} if toml is None else {"toml": toml}


class _Sending:
    """One call, which may be sent several times: what became of it."""

    def __init__(self, call: HttpCall, connected: _Connected) -> None:
        self._call, self._connected = call, connected
        self._may_have_arrived, self._wait = False, 0.0
        self.problem: Exception = LedgerUnavailable("nothing was sent")

    def lost(self, error: httpx.TransportError, url: httpx.URL) -> None:
        """There was no reply. Raises if the service was never reached: then the address is wrong, not the network."""
        self._may_have_arrived |= not isinstance(error, httpx.ConnectError)
        self.problem, wrong = why_away(error, url)
        if wrong and not self._connected.is_open:
            raise self.problem from None

    def got(self, reply: httpx.Response) -> bool:
        """Whether that is the reply; False if it may pass."""
        if reply.status_code in _PASSING:
            asked = reply.headers.get("retry-after", "")
            self._wait = min(float(asked), _LONGEST_PAUSE) if asked.isdecimal() else 0.0
            self._may_have_arrived |= reply.status_code in (502, 504)
            self.problem = self._refused(reply)
        return reply.status_code not in _PASSING

    def pause(self, attempt: int) -> float:
        """Seconds to wait before it is sent again: as long as the service asked for, in bounds."""
        return max(0.1 * float(2**attempt), self._wait)

    def read(self, reply: httpx.Response) -> Any:
        """What was sent back. Raises what the service refused."""
        if not reply.is_success:
            raise self._refused(reply)
        if self._call.text:
            return reply.text
        found = _json_of(reply)
        if found is None:
            raise not_a_service(reply)
        self._connected.is_open = True
        known = reply.headers.get("idempotent-replayed") == "true" and not self._may_have_arrived
        return (found, known) if self._call.submits else found

    def _refused(self, reply: httpx.Response) -> Exception:
        found = _json_of(reply)
        if not isinstance(found, dict) or "status" not in found:
            return not_a_service(reply)
        account = getattr(self._connected, "account", "the account")
        return error_of_problem(found, account, self._call.headers.get("Idempotency-Key"))


def _json_of(reply: httpx.Response) -> Any:
    try:
        return reply.json()
    except ValueError:
        return None


def _table(facts: Mapping[str, Any]) -> PrivateTable:
    derive = facts["derive"]
    plain = {name: kind for name, kind in facts["schema"].items() if name not in derive}
    unit = stated_unit(facts["unit"], facts["rows"], facts["groups"], facts["who"])
    table = blank_table(facts["name"], plain, unit=unit, neighbours=facts["neighbours"], size=facts["size"])
    return table.derive(**derive)
