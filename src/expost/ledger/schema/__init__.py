"""Migrations that create the tables: those that were run are recorded, and checked at every load."""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable

from expost.canonical import sha256
from expost.errors import InvalidValue

MARK = "expost_schema"
"""The table of migrations that were run."""
DONE = f"SELECT name, digest FROM {MARK} ORDER BY number"
"""A query for the migrations that were run, in order."""


def migrations(backend: str) -> list[tuple[str, str]]:
    """Name and text of every migration, in order. Each is a folder of files that are read one after the other."""
    folders = sorted((each for each in files(__package__).joinpath(backend).iterdir() if each.is_dir()), key=_name)
    return [(each.name, "".join(file.read_text(encoding="utf-8") for file in _texts_in(each))) for each in folders]


def _texts_in(folder: Traversable) -> list[Traversable]:
    """Its SQL files in order. Whatever else is there, such as what an editor keeps, is not read."""
    return sorted((item for item in folder.iterdir() if item.name.endswith(".sql")), key=_name)


def _name(item: Traversable) -> str:
    return item.name


def missing(backend: str, done: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The migrations still to be run, given the names and hashes of those that were. Raises for unknown ones."""
    known = migrations(backend)
    refuse_unknown(backend, done)
    if len(done) > len(known):
        raise InvalidValue(f"this database was written by a newer expost (migration {done[-1][0]!r}): upgrade expost")
    return known[len(done) :]


def refuse_unknown(backend: str, done: list[tuple[str, str]]) -> None:
    """Raise for tables made by migrations that differ from those of the same names here."""
    for (ours, text), (name, digest) in zip(migrations(backend), done, strict=False):
        if (ours, sha256(text)) != (name, digest):
            raise InvalidValue(
                f"the tables of this database were not made by this expost (their migration {name!r} differs from its "
                "own), and nothing was changed. If a development version made them, go on with that version, or begin "
                "a new ledger with at most what remains of this one's limit; otherwise somebody changed them: spend "
                "nothing from it until you know who"
            )
