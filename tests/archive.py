"""What an archive, or a standby that is behind, has of a PostgreSQL database of ledgers; it can take its place."""

from __future__ import annotations

import psycopg

_TABLES = ("expost_ledger", "expost_account", "expost_guarantee", "expost_owner", "expost_entry", "expost_event")
_INSERT = "INSERT INTO {0} SELECT * FROM old_{0}"
_INSERTS = {
    "expost_ledger": "INSERT INTO {0} OVERRIDING SYSTEM VALUE SELECT * FROM old_{0}",
    "expost_account": "INSERT INTO {0} OVERRIDING SYSTEM VALUE SELECT * FROM old_{0}",
    "expost_guarantee": "INSERT INTO {0} SELECT ledger, digest, json FROM old_{0}",
}


class Archive:
    """The tables as they are now."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._run(*(f"CREATE TABLE old_{table} AS SELECT * FROM {table}" for table in _TABLES))

    def restore(self) -> None:
        """Put them back: whatever came later is lost."""
        self._run(
            "SET session_replication_role = replica",
            *(f"DELETE FROM {table}" for table in _TABLES),
            *(_INSERTS.get(table, _INSERT).format(table) for table in _TABLES),
        )

    def _run(self, *statements: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as server:
            for statement in statements:
                server.execute(statement)
