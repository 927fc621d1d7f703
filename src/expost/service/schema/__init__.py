"""Migrations of the service's own tables, beside the ledger's: run in order when they are needed, and recorded."""

from __future__ import annotations

from importlib.resources import files

from expost.canonical import sha256
from expost.errors import InvalidValue
from expost.ledger.engine import Rows

_DONE = "expost_service"
_KNOWN = {
    "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'table' AND name IN ('expost_token', 'expost_service')",
    "postgres": "SELECT name FROM (VALUES ('expost_token'), ('expost_service')) AS known (name) "
    "WHERE to_regclass(name) IS NOT NULL",
}
"""Which of two tables are there. Tokens without a record of migrations are not ours to change."""


def service_migrations(backend: str) -> list[tuple[str, str]]:
    """Name and text of every migration, in order. What was released is never changed: a change is another file."""
    found = [each for each in files(__package__).joinpath(backend).iterdir() if each.name.endswith(".sql")]
    return sorted((each.name.removesuffix(".sql"), each.read_text(encoding="utf-8")) for each in found)


def make_tables(run: Rows, backend: str, known: list[tuple[str, str]] | None = None) -> None:
    """Run the migrations that were not run yet, ``known`` or this version's, in the caller's transaction: all, or none.

    Raises ``InvalidValue``, and changes nothing, if the tables were made by other migrations.
    """
    found = {name for (name,) in run(_KNOWN[backend])}
    if not found:
        run(f"CREATE TABLE {_DONE} (name TEXT NOT NULL, digest TEXT NOT NULL)")
    done = [tuple(row) for row in run(f"SELECT name, digest FROM {_DONE} ORDER BY name")] if _DONE in found else []
    known = service_migrations(backend) if known is None else known
    if found and (not done or done != [(name, sha256(text)) for name, text in known[: len(done)]]):
        raise _other(done, known)
    for name, text in known[len(done) :]:
        for statement in map(str.strip, text.split(";")):
            if statement:
                run(statement)
        run(f"INSERT INTO {_DONE} (name, digest) VALUES (?, ?)", name, sha256(text))


def _other(done: list[tuple[str, ...]], known: list[tuple[str, str]]) -> InvalidValue:
    newer = len(done) > len(known) and [name for name, _ in done[: len(known)]] == [name for name, _ in known]
    whose = f"a newer expost (migration {done[-1][0]!r})" if newer else "another version of expost"
    return InvalidValue(
        f"the service's tables in this database were made by {whose}, and nothing was changed. The ledgers are as they "
        "were: serve with that version until all jobs are answered; or move the ledgers to a new database (expost "
        "ledger move), which has neither tokens nor jobs, and make tokens there"
    )
