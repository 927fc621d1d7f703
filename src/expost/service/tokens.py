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
from expost.ledger.engine import Rows
from expost.service.database import ServiceTables

Role = Literal["custodian", "analyst", "auditor", "engine"]
ROLES: tuple[Role, ...] = get_args(Role)
_DAY = 86_400
_LONGEST_DAYS = 3650
_SESSION = 12 * 3600
_COLUMNS = "t.id, t.digest, t.role, t.account, t.name, t.made_at, t.expires_at, t.revoked"


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
        }


def make_token(database: ServiceTables, role: str, account: str, *, name: str, days: float) -> tuple[AccessToken, str]:
    """A new token, and its secret, which is shown now and never again. The account must exist: callers look."""
    if role not in ROLES:
        raise InvalidValue(f"a role is one of {', '.join(ROLES)}, got {role!r}")
    if not 0 < days <= _LONGEST_DAYS:
        raise InvalidValue(f"a token lives for more than 0 and at most {_LONGEST_DAYS} days, got {days:g}")
    if not name or len(name) > 200 or "\0" in name:
        raise InvalidValue("a token's name says whose it is, in at most 200 characters")
    now = int(time.time())
    token = AccessToken(secrets.token_hex(8), role, account, name, now, now + max(1, int(days * _DAY)), False)
    secret = f"xp_{token.id}_{secrets.token_urlsafe(32)}"
    database.write(lambda run: run(
        "INSERT INTO expost_token (id, digest, role, account, name, made_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        token.id, digest_of_secret(secret), role, account, name, token.made_at, token.expires_at,
    ))  # fmt: skip
    return token, secret


def revoke_token(database: ServiceTables, token: str, below: Iterable[str] | None = None) -> None:
    """End a token, and what was signed in with it; only one of these accounts or below them, if they are given."""
    found = [each for each in list_tokens(database, below) if each.id == token]
    if not found:
        raise UnknownEntry(f"there is no token {token!r}")

    def work(run: Rows) -> None:
        run("UPDATE expost_token SET revoked = 1 WHERE id = ?", token)
        run("DELETE FROM expost_session WHERE token = ?", token)

    database.write(work)


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


def form_token(session: str) -> str:
    """What forms of a session carry, so that no other site can send them."""
    return hashlib.sha256(f"form {session}".encode()).hexdigest()


def digest_of_secret(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Any) -> AccessToken:
    found, _, role, account, name, made, expires, revoked = row
    return AccessToken(found, role, account, name, made, expires, bool(revoked))


def _is_below(account: str, tops: tuple[str, ...]) -> bool:
    return any(account == top or account.startswith(f"{top}/") for top in tops)
