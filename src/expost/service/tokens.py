"""Tokens: 256 random bits for one role, one account and some time. Shown once; a hash of them is kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from expost.errors import InvalidValue, UnknownEntry
from expost.ledger.arguments import as_new_name
from expost.ledger.engine import Rows
from expost.service.database import ServiceTables

Role = Literal["custodian", "analyst", "auditor", "engine"]
ROLES: tuple[Role, ...] = get_args(Role)
_DAY = 86_400
_LONGEST_DAYS = 3650
_USUAL_DAYS = 90
_SESSION = 12 * 3600
_COLUMNS = "t.id, t.digest, t.role, t.account, t.name, t.made_at, t.expires_at, t.revoked, t.maker"

_MADE_WITH = (
    "WITH RECURSIVE made (id) AS (SELECT CAST(? AS TEXT) UNION SELECT below.id FROM expost_token below "
    "JOIN made ON below.maker = made.id)"
)
"""A token, and all that were made with it, or with one of these."""
_MAKERS = (
    "WITH RECURSIVE makers (id) AS (SELECT CAST(? AS TEXT) UNION SELECT made.maker FROM expost_token made "
    "JOIN makers ON made.id = makers.id WHERE made.maker IS NOT NULL)"
)
"""A token, and those that it comes from."""


@dataclass(frozen=True)
class AccessToken:
    """Who asks: a role and an account, by its path. ``id`` is public, and names the token."""

    id: str
    role: Role
    account: str
    name: str
    made_at: int
    expires_at: int
    revoked: bool
    maker: str | None = None
    """The token that it was made with; None if it was made at the machine."""

    @property
    def signature(self) -> str:
        """How acts are signed in the audit trail. It begins with the id: names are anybody's choice."""
        return f"token {self.id} ({self.name})"

    @property
    def path(self) -> tuple[str, ...]:
        """The account's path, the ledger's name first."""
        return tuple(self.account.split("/"))

    @property
    def valid(self) -> bool:
        """Whether it is neither revoked nor expired."""
        return not self.revoked and time.time() < self.expires_at

    def covers(self, account: str) -> bool:
        """Whether an account is its own, or below it."""
        return account == self.account or account.startswith(f"{self.account}/")

    def facts(self) -> dict[str, Any]:
        """What may be shown of it."""
        return {
            "id": self.id,
            "role": self.role,
            "account": self.account,
            "name": self.name,
            "made_at": self.made_at,
            "expires_at": self.expires_at,
            "revoked": self.revoked,
            "maker": self.maker,
        }


def new_token(
    role: str, account: str, *, name: str, days: float | None = None, maker: AccessToken | None = None
) -> tuple[AccessToken, str]:
    """A token that is not stored yet, and its secret. It ends with its maker at the latest, and after 90 days unless
    ``days`` says otherwise. The account must exist: callers look.
    """
    if role not in ROLES:
        raise InvalidValue(f"a role is one of {', '.join(ROLES)}, got {role!r}")
    if days is not None and not 0 < days <= _LONGEST_DAYS:
        raise InvalidValue(f"a token lives for more than 0 and at most {_LONGEST_DAYS} days, got {days:g}")
    if not name or len(name) > 200:
        raise InvalidValue("a token's name says whose it is, in at most 200 characters")
    as_new_name(name, "a token")
    now = int(time.time())
    until = now + max(1, int((_USUAL_DAYS if days is None else days) * _DAY))
    if maker is not None and until > maker.expires_at:
        if days is not None:
            left = (maker.expires_at - now) / _DAY
            raise InvalidValue(f"a token ends with the one that it is made with, in {left:.2f} days; got {days:g}")
        until = maker.expires_at
    made_with = None if maker is None else maker.id
    token = AccessToken(secrets.token_hex(8), role, account, name, now, until, False, made_with)
    return token, f"xp_{token.id}_{secrets.token_urlsafe(32)}"


def store_token(database: ServiceTables, token: AccessToken, secret: str) -> None:
    """Keep a new token; of its secret only a hash. Raises if its maker was revoked meanwhile."""

    def work(run: Rows) -> bool:
        if token.maker is not None and not run("SELECT 1 FROM expost_token WHERE id = ? AND revoked = 0", token.maker):
            return False
        run(
            "INSERT INTO expost_token (id, digest, role, account, name, made_at, expires_at, maker) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)", token.id, digest_of_secret(secret), token.role, token.account,
            token.name, token.made_at, token.expires_at, token.maker,
        )  # fmt: skip
        return True

    if not database.write(work):
        raise InvalidValue("the token that this one would be made with was revoked")


def revoke_token(database: ServiceTables, token: str) -> list[AccessToken]:
    """End a token and all that were made with it, and what was signed in with them; those that ended now."""

    def work(run: Rows) -> list[Any] | None:
        if not run("SELECT 1 FROM expost_token WHERE id = ?", token):
            return None
        found = run(f"{_MADE_WITH} SELECT {_COLUMNS} FROM expost_token t JOIN made ON made.id = t.id "
                    "WHERE t.revoked = 0 ORDER BY t.made_at, t.id", token)  # fmt: skip
        for row in found:
            run("UPDATE expost_token SET revoked = 1 WHERE id = ?", row[0])
            run("DELETE FROM expost_session WHERE token = ?", row[0])
        return found

    gone = database.write(work)
    if gone is None:
        raise UnknownEntry(f"there is no token {token!r}")
    return [_token(row) for row in gone]


def makers_of(database: ServiceTables, token: str) -> frozenset[AccessToken]:
    """A token, the one that it was made with, the one that this was made with, and so on."""
    rows = database.rows(f"{_MAKERS} SELECT {_COLUMNS} FROM expost_token t JOIN makers ON makers.id = t.id", token)
    return frozenset(map(_token, rows))


def list_tokens(database: ServiceTables, below: Iterable[str] | None = None) -> list[AccessToken]:
    """All tokens, or those of these accounts and below them."""
    found = [_token(row) for row in database.rows(f"SELECT {_COLUMNS} FROM expost_token t ORDER BY t.made_at, t.id")]
    tops = None if below is None else tuple(below)
    return [each for each in found if tops is None or _is_below(each.account, tops)]


def find_token(database: ServiceTables, secret: str) -> AccessToken | None:
    """The token of a secret; None if there is none, or it has ended."""
    parts = secret.split("_", 2) if len(secret) < 200 and secret.isascii() else []
    if len(parts) != 3 or parts[0] != "xp":
        return None
    rows = database.rows(f"SELECT {_COLUMNS} FROM expost_token t WHERE t.id = ?", parts[1])
    kept = rows[0][1] if rows else "0" * 64
    same = hmac.compare_digest(kept, digest_of_secret(secret))
    token = _token(rows[0]) if rows and same else None
    return token if token is not None and token.valid else None


# ---- signed in with a browser


def sign_in(database: ServiceTables, token: AccessToken) -> str:
    """A session of a token; its secret, for a cookie."""
    secret, now = secrets.token_urlsafe(32), int(time.time())
    expires = min(token.expires_at, now + _SESSION)

    def work(run: Rows) -> None:
        run("DELETE FROM expost_session WHERE expires_at < ?", now)
        run("INSERT INTO expost_session (digest, token, expires_at) VALUES (?, ?, ?)", digest_of_secret(secret),
            token.id, expires)  # fmt: skip

    database.write(work)
    return secret


def sign_out(database: ServiceTables, secret: str) -> None:
    """End a session."""
    database.write(lambda run: run("DELETE FROM expost_session WHERE digest = ?", digest_of_secret(secret)))


def find_session(database: ServiceTables, secret: str) -> AccessToken | None:
    """The token that somebody signed in with."""
    rows = database.rows(
        f"SELECT {_COLUMNS} FROM expost_session s JOIN expost_token t ON t.id = s.token WHERE s.digest = ? "
        "AND s.expires_at > ?", digest_of_secret(secret), int(time.time()),
    )  # fmt: skip
    token = _token(rows[0]) if rows else None
    return token if token is not None and token.valid else None


def open_sessions(database: ServiceTables) -> frozenset[str]:
    """The hashes of all sessions that have not ended."""
    rows = database.rows("SELECT digest FROM expost_session WHERE expires_at > ?", int(time.time()))
    return frozenset(digest for (digest,) in rows)


def form_token(session: str) -> str:
    """What forms of a session carry, so that no other site can send them."""
    return hashlib.sha256(f"form {session}".encode()).hexdigest()


def digest_of_secret(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Any) -> AccessToken:
    found, _, role, account, name, made, expires, revoked, maker = row
    return AccessToken(found, role, account, name, made, expires, bool(revoked), maker)


def _is_below(account: str, tops: tuple[str, ...]) -> bool:
    return any(account == top or account.startswith(f"{top}/") for top in tops)
