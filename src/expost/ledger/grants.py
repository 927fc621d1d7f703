"""What roles of a PostgreSQL server are granted, as SQL: for readers, spenders and governors of ledgers."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from expost.errors import InvalidValue
from expost.ledger.schema import MARK

Grantee: TypeAlias = Literal["reader", "spender", "governor"]
TABLES = (
    MARK, "expost_ledger", "expost_books", "expost_account", "expost_guarantee", "expost_owner", "expost_entry",
    "expost_event",
)  # fmt: skip
_ROUTINES: dict[Grantee, tuple[str, ...]] = {
    "reader": (),
    "spender": ("FUNCTION expost_spend", "FUNCTION expost_leave", "PROCEDURE expost_commit"),
    "governor": ("FUNCTION expost_govern",),
}
_ABOVE: dict[Grantee, tuple[Grantee, ...]] = {
    "reader": ("reader",),
    "spender": ("reader", "spender"),
    "governor": ("reader", "spender", "governor"),
}
_IDLE = "60s"  # a transaction that somebody leaves open by hand holds a ledger's lock


def grants(kind: Grantee, role: str, schema: str = "public") -> str:
    """The statements that the owner of the tables runs for a role.

    >>> print(grants("reader", "alice"))
    -- alice: reader of the ledgers in the schema public
    GRANT USAGE ON SCHEMA public TO alice;
    GRANT SELECT ON public.expost_schema TO alice;
    GRANT SELECT ON public.expost_ledger TO alice;
    GRANT SELECT ON public.expost_books TO alice;
    GRANT SELECT ON public.expost_account TO alice;
    GRANT SELECT ON public.expost_guarantee TO alice;
    GRANT SELECT ON public.expost_owner TO alice;
    GRANT SELECT ON public.expost_entry TO alice;
    GRANT SELECT ON public.expost_event TO alice;
    ALTER ROLE alice SET idle_in_transaction_session_timeout = '60s';
    <BLANKLINE>
    """
    who, where = _quoted(role), _quoted(schema)
    lines = [f"-- {who}: {kind} of the ledgers in the schema {where}", f"GRANT USAGE ON SCHEMA {where} TO {who};"]
    lines += [f"GRANT SELECT ON {where}.{table} TO {who};" for table in TABLES]
    for each in _ABOVE[kind]:
        for routine in _ROUTINES[each]:
            what, _, name = routine.partition(" ")
            lines.append(f"GRANT EXECUTE ON {what} {where}.{name} TO {who};")
    lines.append(f"ALTER ROLE {who} SET idle_in_transaction_session_timeout = '{_IDLE}';")
    return "\n".join(lines) + "\n"


def _quoted(name: str) -> str:
    """A name of PostgreSQL, in quotes if it needs them."""
    if not name or "\0" in name or "\n" in name or len(name.encode()) > 63:
        raise InvalidValue(f"a role or schema of PostgreSQL is a name of at most 63 bytes on one line, got {name!r}")
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'
