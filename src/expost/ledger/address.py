"""Where durable ledgers are: ``sqlite:///path`` or ``postgresql://…``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from expost.cost import Cost
from expost.errors import InvalidValue
from expost.guarantee import Neighbours
from expost.ledger.durable import LONGEST, Address, DurableStore, balance_of, check_text, create, masked
from expost.ledger.engine import UNREADABLE, Engine
from expost.ledger.writer import OPENING

_SQLITE, _POSTGRES = "sqlite:///", ("postgresql://", "postgres://")


class Summary(NamedTuple):
    """A durable ledger at a glance."""

    name: str
    limit: Cost
    spent: Cost
    reserved: Cost
    remaining: Cost
    neighbours: Neighbours
    unit: str
    closed: bool


def ledgers(url: str) -> tuple[Summary, ...]:
    """The ledgers in a database, with their limits and what remains. Loads none of them."""
    with _opened(url, create=False) as engine:
        rows = engine.rows(
            "SELECT l.name, l.neighbours, l.unit, a.epsilon_limit, a.delta_limit, a.epsilon_spent, a.delta_spent, "
            "a.epsilon_reserved, a.delta_reserved, a.closed FROM expost_ledger l JOIN expost_account a "
            "ON a.ledger = l.id AND a.parent IS NULL ORDER BY l.name"
        )
    return tuple(_summary(*row) for row in rows)


def create_ledger(url: str, name: str, limit: Cost, neighbours: Neighbours, unit: str) -> None:
    """A new ledger in a database, which is made if there is none."""
    check_text(name, "a ledger's name", LONGEST)
    check_text(unit, "a unit")
    with _opened(url, create=True) as engine:
        create(engine, name, limit, neighbours, unit)


def open_store(url: str, name: str) -> DurableStore:
    """The books of one ledger."""
    with OPENING:
        engine = open_engine(url, create=False)
        try:
            return DurableStore(engine, Address(absolute(url), name))
        except BaseException:
            engine.close()
            raise


def open_engine(url: str, *, create: bool) -> Engine:
    """The database at an address; its tables are brought up to date."""
    url = absolute(url)
    if url.startswith(_SQLITE):
        from expost.ledger.sqlite import SqliteEngine

        return SqliteEngine(url.removeprefix(_SQLITE), create=create)
    from expost.ledger.postgres import PostgresEngine

    return PostgresEngine(url)


@contextmanager
def _opened(url: str, *, create: bool) -> Iterator[Engine]:
    with OPENING:
        engine = open_engine(url, create=create)
        try:
            yield engine
        finally:
            engine.close()


def absolute(url: str) -> str:
    """The same address from every folder."""
    if isinstance(url, str) and url.startswith(_POSTGRES):
        place = url.partition("://")[2].partition("?")[0]
        if place.count("@") > 1 or "@" in place.partition("/")[2]:  # else a part of the password is taken for a host
            raise InvalidValue(UNREADABLE)
        return url
    path = url.removeprefix(_SQLITE) if isinstance(url, str) and url.startswith(_SQLITE) else ""
    if not path or path == ":memory:" or "\0" in path:
        raise InvalidValue(
            "a ledger lasts at an address such as 'sqlite:///study.db' or 'postgresql://host/database', "
            f"got {masked(url)!r}; Ledger(epsilon=…) lives in memory"
        )
    return _SQLITE + os.path.abspath(path)


def _summary(name: str, neighbours: Neighbours, unit: str, *amounts: int) -> Summary:
    balance = balance_of(amounts)
    limit, spent, reserved, closed = balance
    return Summary(name, limit, spent, reserved, balance.remaining, neighbours, unit, closed)
