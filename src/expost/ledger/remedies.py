"""What messages of ledgers advise: in Python, and as a command."""

from __future__ import annotations

from expost.errors import InvalidValue, NoLedgers, UnknownEntry
from expost.ledger.entry import Path
from expost.mentions import Action

CLOSE = Action("close()", "expost ledger close")
CREATE = Action("Ledger.create()", "expost ledger create")
CREATE_ACCOUNT = Action("create_account()", "expost ledger create-account")
VERIFY = Action("verify()", "expost ledger verify")
ADOPT = Action("adopt_heads()", "expost ledger adopt")
FORFEIT = Action("forfeit()", "expost ledger forfeit")


def no_file(path: str) -> InvalidValue:
    """There is no file at the address of a ledger."""
    return InvalidValue(f"there is no ledger file {path!r}: check the path, or begin a new budget there with ", CREATE)


def no_ledgers(path: str) -> NoLedgers:
    """There is a database, but not one of ledgers."""
    return NoLedgers(f"the database {path!r} has no ledgers: check the path, or begin a new budget there with ", CREATE)


def unknown_account(path: Path, known: str = "") -> UnknownEntry:
    """The last account of a path is not there; ``known`` are those that are."""
    there = f" (it has {known})" if known else ""
    above = "/".join(path[:-1])
    what = f"{above!r} has no account {path[-1]!r}{there}"
    return UnknownEntry(f"{what}: check its name, or create it with ", CREATE_ACCOUNT)
