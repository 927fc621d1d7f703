"""The addresses of durable ledgers: ``sqlite:///path`` or ``postgresql://…``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import RLock
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from expost.cost import Cost
from expost.errors import (
    ExpostError,
    InvalidValue,
    LedgerCorrupt,
    NoLedgers,
)
from expost.forks import around_forks
from expost.guarantee import Neighbours
from expost.ledger.durable import Address, DurableStore
from expost.ledger.engine import UNREADABLE, Engine, Settings, alone
from expost.ledger.gate import GATE
from expost.ledger.lost import LOST_SERVERS
from expost.ledger.metered import balance_shown
from expost.ledger.operations import Create
from expost.ledger.rows import BALANCE, NONSENSE, balance_of_row, meters_of_text
from expost.ledger.texts import LONGEST, check_text, masked
from expost.ledger.writer import Writer

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")
_DEFAULT = Settings()
_SHARED: WeakValueDictionary[tuple[Any, ...], Writer] = WeakValueDictionary()
"""Ledgers at one address share its connections."""
_OPENING: dict[tuple[Any, ...], RLock] = {}
"""A lock for each address, held while it is opened; a forked copy of this process has others."""
around_forks(child=_OPENING.clear)


class Summary(NamedTuple):
    """A durable ledger in brief.

    Attributes
    ----------
    name
        Its name.
    limit, spent, reserved, remaining
        Its balance.
    neighbours
        Which databases differ by one unit.
    unit
        Who one record is about.
    closed
        Whether it was closed.
    """

    name: str
    limit: Cost
    spent: Cost
    reserved: Cost
    remaining: Cost
    neighbours: Neighbours
    unit: str
    closed: bool


def ledgers(url: str) -> tuple[Summary, ...]:
    """The ledgers in a database, with their limits and what remains. Changes nothing."""
    try:
        with opened(url, read_only=True) as engine:
            rows = engine.rows(
                f"SELECT l.name, l.neighbours, l.unit, l.accounting, {BALANCE} FROM expost_ledger l "
                "JOIN expost_account a ON a.ledger = l.id AND a.parent IS NULL ORDER BY l.name"
            )
    except NoLedgers:
        if url.startswith(_SQLITE):
            raise  # a file without ledgers is somebody else's
        return ()
    return tuple(_summary(*row) for row in rows)


def _summary(name: str, neighbours: Neighbours, unit: str, accounting: str | None, *amounts: int) -> Summary:
    balance = balance_of_row(amounts)
    costs = balance_shown(meters_of_text(accounting), (balance,))
    return Summary(name, **costs, neighbours=neighbours, unit=unit, closed=balance.closed)


def create_ledger(url: str, operation: Create, settings: Settings | None = None) -> None:
    """Create a ledger in a database, and the database if there is none."""
    check_text(operation.name, "a ledger's name", LONGEST)
    check_text(operation.unit or "", "a unit")
    with opened(url, settings, create=True) as engine:
        engine.create(operation)


def open_store(url: str, name: str, settings: Settings | None = None, *, read_only: bool = False) -> DurableStore:
    """The books of one ledger."""
    place = absolute(url), settings or _DEFAULT, read_only
    with _noting(place[0]):
        writer = alone(_OPENING.setdefault(place, RLock()), _shared, place)
        with _readable():
            return DurableStore(writer, Address(place[0], name))


def _shared(place: tuple[str, Settings, bool]) -> Writer:
    """The writer of an address; opened by one thread, for which others wait that want the same one."""
    LOST_SERVERS.refuse(place[0])
    writer = _SHARED.get(place)
    if writer is None:
        with _noting(place[0]):  # before others have their turn
            writer = _SHARED[place] = _opened(place[0], place[1], create=False, read_only=place[2])
    return writer


def _opened(url: str, settings: Settings | None, *, create: bool, read_only: bool) -> Writer:
    """A database, known to forks from the first moment on where that matters."""
    with GATE.held() if url.startswith(_SQLITE) else nullcontext():
        return Writer(open_engine(url, settings, create=create, read_only=read_only))


def _noting(url: str) -> AbstractContextManager[None]:
    """Note if it is a server and does not answer; a file that is locked may be free a moment later."""
    return LOST_SERVERS.noting(url) if url.startswith(_POSTGRES) else nullcontext()


def open_engine(url: str, settings: Settings | None = None, *, create: bool = False, read_only: bool = False) -> Engine:
    """The database at an address. Its tables are created, unless it is opened read-only."""
    url, settings = absolute(url), settings or _DEFAULT
    with _readable():
        if url.startswith(_SQLITE):
            from expost.ledger.sqlite.engine import SqliteEngine

            return SqliteEngine(url.removeprefix(_SQLITE), settings, create=create, read_only=read_only)
        from expost.ledger.postgres.engine import PostgresEngine

        return PostgresEngine(url, settings, read_only=read_only)


@contextmanager
def opened(
    url: str, settings: Settings | None = None, *, create: bool = False, read_only: bool = False
) -> Iterator[Engine]:
    """A database that is closed afterwards."""
    url = absolute(url)
    LOST_SERVERS.refuse(url)
    with _noting(url):
        writer = _opened(url, settings, create=create, read_only=read_only)  # forks close what it has open
    try:
        with _readable():
            yield writer.engine
    finally:
        writer.engine.close()


@contextmanager
def _readable() -> Iterator[None]:
    """Raise ``LedgerCorrupt`` for whatever exception reading a damaged database raises."""
    try:
        yield
    except ExpostError:
        raise
    except NONSENSE as error:
        raise LedgerCorrupt(f"the database is damaged: opening it raised {type(error).__name__}") from error


def absolute(url: str) -> str:
    """The address in canonical form: absolute, without symbolic links."""
    if isinstance(url, str) and url.startswith(_POSTGRES):
        place = url.partition("://")[2].partition("?")[0]
        if place.count("@") > 1 or "@" in place.partition("/")[2]:  # a part of the password would be taken for a host
            raise InvalidValue(UNREADABLE)
        return url
    path = url.removeprefix(_SQLITE) if isinstance(url, str) and url.startswith(_SQLITE) else ""
    if not path or path == ":memory:" or "\0" in path:
        raise InvalidValue(
            "a durable ledger needs an address such as 'sqlite:///study.db' or 'postgresql://host/database', "
            f"got {masked(url)!r}"
        )
    if os.path.isdir(path):
        raise InvalidValue(f"{path} is a folder, and a ledger is a file: name one in it, as in 'sqlite:///study.db'")
    return _SQLITE + os.path.realpath(path)
