"""Errors of PostgreSQL as errors of the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from expost.errors import Busy, LedgerCorrupt, LedgerUnavailable, MissingDependency, RequestRejected, SnapshotLost

if TYPE_CHECKING:
    import psycopg


_LOGIN = "check user and password (PGPASSWORD, ~/.pgpass) and the server's pg_hba.conf"
_TABLES = (
    "the tables are not those of this expost, or not in the search path: correct it in the address, or make a ledger"
)


def is_passing(error: psycopg.Error) -> bool:
    """Whether an error is transient: a lost connection, a restart, a lock, a conflict."""
    import psycopg

    code = error.sqlstate
    if code is None:
        return isinstance(error, psycopg.OperationalError)
    return code[:2] in ("08", "40", "53", "57") or code == "55P03"


def meaning(error: psycopg.Error) -> LedgerUnavailable | LedgerCorrupt:
    """An error of the database as an error of the ledger."""
    code = error.sqlstate or ""
    line = _line(error)
    if code == "EX002":
        return LedgerCorrupt(str(error.diag.message_primary).removeprefix("expost: "))
    if code == "EX001":
        return RequestRejected(str(error.diag.message_primary).removeprefix("expost: ") + "; nothing was recorded")
    if code == "42501":
        return RequestRejected(
            f"the database denied the request: {error.diag.message_primary}; let its owner grant this user USAGE on "
            "the schema, SELECT on the tables expost_* and EXECUTE on expost_spend and expost_commit, and to "
            "administrators of ledgers EXECUTE on expost_govern (whoever creates the first ledger owns the tables, and "
            "needs CREATE on the schema); nothing was recorded"
        )
    if code in ("57014", "55P03", "40P01"):
        return Busy(f"the database is busy: {line}; what was reserved stays reserved: try again")
    remedy = _remedy(error)
    if not is_passing(error):
        return RequestRejected(f"the database rejected the request: {line}; nothing was recorded{remedy}")
    return LedgerUnavailable(f"the database does not answer: {line}; what was reserved stays reserved{remedy}")


_REMEDIES = {
    "25006": "this server only reads, as a standby does: give the address of the primary",
    "26000": "a pooler takes other sessions for each request: let pgbouncer use pool_mode = session",
    "28000": _LOGIN,
    "28P01": _LOGIN,
    "3D000": "make the database, or correct its name in the address",
    "42883": _TABLES,
    "42P01": _TABLES,
    "53100": "make room on the server's disk",
    "53300": "raise max_connections, or put pgbouncer with pool_mode = session in between",
    "57P03": "wait until the server has started",
}
"""What to do about errors of the server, by their codes."""


def _remedy(error: psycopg.Error) -> str:
    """What to do about it. A connection that was refused has no code, only the server's words."""
    found = _REMEDIES.get(error.sqlstate or "")
    if found is None and error.sqlstate is None:
        words = {"Connection refused": "start the server, or correct host and port in the address",
                 "password": _LOGIN, "authentication": _LOGIN, "too many": _REMEDIES["53300"],
                 "does not exist": "check database and user in the address"}  # fmt: skip
        found = next((remedy for word, remedy in words.items() if word in str(error)), None)
    return "" if found is None else f". To mend it: {found}"


def _line(error: psycopg.Error) -> str:
    """The message of an error on one line, without repetitions: a connection that is retried repeats it."""
    return " ".join(dict.fromkeys(line.strip() for line in str(error).splitlines() if line.strip()))


@contextmanager
def lost_snapshot() -> Iterator[None]:
    """Raise ``SnapshotLost`` for a lost connection: inside a snapshot it cannot be replaced."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        if not is_passing(error):
            raise meaning(error) from error
        raise SnapshotLost(
            f"the connection was lost while the ledger was being read: {_line(error)}; try again"
        ) from error


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of the database as errors of the ledger, except violated constraints."""
    try:
        import psycopg
    except ImportError:
        raise MissingDependency("PostgreSQL ledgers", "psycopg", "postgres") from None
    try:
        yield
    except psycopg.IntegrityError:
        raise
    except psycopg.Error as error:
        raise meaning(error) from error
