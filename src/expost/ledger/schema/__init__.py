"""The tables, as named and ordered migrations: what was run is written down, and checked at every load."""

from __future__ import annotations

from importlib.resources import files

from expost.canonical import sha256
from expost.errors import InvalidValue


class NoTables(InvalidValue):
    """A database without ledgers."""


MARK = "expost_schema"
"""The table of what was run."""
DONE = f"SELECT name, digest FROM {MARK} ORDER BY number"
"""What was run, in order."""


def migrations(backend: str) -> list[tuple[str, str]]:
    """Name and text of every migration, in order."""
    folder = files(__package__).joinpath(backend)
    found = sorted((item for item in folder.iterdir() if item.name.endswith(".sql")), key=lambda item: item.name)
    return [(item.name.removesuffix(".sql"), item.read_text(encoding="utf-8")) for item in found]


def missing(backend: str, done: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What is still to be run, given the names and hashes of what was; refuses tables that it does not know."""
    known = migrations(backend)
    refuse_unknown(backend, done)
    if len(done) > len(known):
        raise InvalidValue(f"this database was written by a newer expost (migration {done[-1][0]!r}): upgrade expost")
    return known[len(done) :]


def refuse_unknown(backend: str, done: list[tuple[str, str]]) -> None:
    """Refuse tables made by other migrations than those of the same names here."""
    for (ours, text), (name, digest) in zip(migrations(backend), done, strict=False):
        if (ours, sha256(text)) != (name, digest):
            raise InvalidValue(
                f"the tables of this database were not made by this expost (its migration {name!r} differs from ours), "
                f"and nothing was changed. If an expost before the first release made them: {_EARLIER[backend]}. "
                "Otherwise somebody changed them: spend nothing from it until you know who"
            )


_EARLIER = {
    "sqlite": "build the ledger anew in another file, from this one, and use this one no more: "
    "expost ledger import NEW-URL NAME THIS-FILE --by … --reason …",
    "postgres": "write an export with that expost, and build the ledger anew in another database, and use this one no "
    "more: expost ledger import NEW-URL NAME EXPORT --by … --reason …",
}
