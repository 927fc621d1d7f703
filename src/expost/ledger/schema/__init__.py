"""The tables, as named and ordered migrations: what was run is written down, and checked at every load."""

from __future__ import annotations

from importlib.resources import files

from expost.canonical import sha256
from expost.errors import InvalidValue


class NoTables(InvalidValue):
    """A database without ledgers."""


MARK = "expost_schema"
"""The table of what was run."""


def migrations(backend: str) -> list[tuple[str, str]]:
    """Name and text of every migration, in order."""
    folder = files(__package__).joinpath(backend)
    found = sorted((item for item in folder.iterdir() if item.name.endswith(".sql")), key=lambda item: item.name)
    return [(item.name.removesuffix(".sql"), item.read_text(encoding="utf-8")) for item in found]


def missing(backend: str, done: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What is still to be run, given the names and hashes of what was; refuses tables that it does not know."""
    known = migrations(backend)
    for position, (name, digest) in enumerate(done):
        if position >= len(known):
            raise InvalidValue(f"this database was written by a newer expost (migration {name!r}): upgrade expost")
        if known[position][0] != name or sha256(known[position][1]) != digest:
            raise InvalidValue(
                f"migration {name!r} of this database is not the one that expost knows as {known[position][0]!r}: "
                "its tables cannot be trusted"
            )
    return known[len(done) :]
