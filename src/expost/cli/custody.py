"""`expost ledger …`: what custodians do rarely. Open entries, watching, copies, the clock, retention."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expost.cli.balances import entry_facts, entry_row, show_balance
from expost.cli.console import Json, guarded, out
from expost.cli.ledger import Name, Url, Who, Why, app, head_of, ledger_at
from expost.cli.tables import print_json, print_table
from expost.errors import InvalidValue

if TYPE_CHECKING:
    from expost.ledger import Head

# ---- open entries


@app.command("open")
@guarded
def open_entries(url: Url, name: Name, as_json: Json = False) -> None:
    """List entries that have not ended, and who holds them.

    Example: expost ledger open sqlite:///clinic.db patients
    """
    from expost.ledger.address import open_store
    from expost.ledger.texts import described_owner

    found = open_store(url, name, read_only=True).open_entries()
    if as_json:
        print_json([entry_facts(one.entry) | {"owner": one.owner, "lease_until": one.lease_until} for one in found])
        return
    rows = ((*entry_row(one.entry)[:4], described_owner(one.owner), _until(one.lease_until)) for one in found)
    print_table(("#", "when (UTC)", "account", "what", "held by", "until (UTC)"), rows, right=(0,))


@app.command()
@guarded
def forfeit(
    url: Url,
    name: Name,
    entry: Annotated[int, typer.Argument(metavar="ID", help="The entry's number.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Charge the worst case of an open entry, now.

    For work that will never end, such as that of a machine which is gone. Should it live after all, its output is
    refused.

    Example: expost ledger forfeit sqlite:///clinic.db patients 17
    """
    if not yes:
        typer.confirm(f"Charge the worst case of entry {entry}?", abort=True, err=True)
    ended = ledger_at(url, name, None, read_only=False).reservation(entry).forfeit()
    if as_json:
        print_json(entry_facts(ended))
    else:
        out.print(f"entry {ended.id} of {ended.account}: forfeited, charged {ended.charged}", soft_wrap=True)


@app.command()
@guarded
def watch(
    url: Url,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where heads are noted.", show_default=False)],
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 60,
    once: Annotated[bool, typer.Option("--once", help="Look once, and end.")] = False,
) -> None:
    """Verify what is new, and note the head elsewhere, again and again.

    Keep the file where nobody who can write the ledger can write. Exit code 4 as soon as something does not follow from
    the last head in it: a rewritten trail, an old backup. One JSON line for each look: metrics for other programs.

    Example: expost ledger watch sqlite:///clinic.db patients /elsewhere/patients.heads
    """
    import time

    from expost.ledger.address import open_store

    store = open_store(url, name, read_only=True)
    while True:
        head = store.verify(known := _noted(file), since=known is not None)
        balance = store.balances((name,))[-1]
        facts = {"name": name, "line": head.sequence, "hash": head.hash, "open": len(store.open_entries())}
        if known != head:
            _note_head(file, head)
        costs = {"limit": balance.limit, "spent": balance.spent, "reserved": balance.reserved}
        print_json(facts | {what: cost.to_json() for what, cost in costs.items()})
        if once:
            return
        time.sleep(every)


def _noted(file: Path) -> Head | None:
    lines = file.read_text().split() if file.exists() else []
    return head_of(lines[-1]) if lines else None


def _note_head(file: Path, head: Head) -> None:
    try:
        with file.open("a") as heads:
            heads.write(f"{head}\n")
    except OSError as error:
        raise InvalidValue(f"{file} cannot be written: {error.strerror}") from None


# ---- copies


@app.command()
@guarded
def backup(
    url: Url,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new SQLite file.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Copy all ledgers of a database into a file, and verify them there.

    A backup is for reading what was, for audits, and for restoring after a loss.

    Example: expost ledger backup sqlite:///clinic.db /backups/monday.db
    """
    from expost.ledger import transfer

    heads = transfer.back_up(url, str(file.absolute()))
    _copied([(name, head) for name, head in heads], as_json)


@app.command()
@guarded
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A backup.", show_default=False)],
    url: Url,
    name: Name,
    known: Annotated[str, typer.Option(metavar="LINE:HASH", help="The last head that was noted.", show_default=False)],
    by: Who,
    reason: Why,
    as_json: Json = False,
) -> None:
    """Put a ledger of a backup into a database that has none of that name.

    Only if nothing after the backup is known to be lost: its trail must run through the last head that was noted.

    Example: expost ledger restore monday.db sqlite:///clinic.db patients --known 7:9f86… --by me --reason "disk died"
    """
    from expost.ledger import transfer
    from expost.ledger.address import open_store
    from expost.ledger.entry import Note

    source = f"sqlite:///{file.absolute()}"
    open_store(source, name, read_only=True).verify(head_of(known))
    _copied([(name, transfer.copy_ledger(source, name, url, Note(by, reason)))], as_json)


@app.command("import")
@guarded
def import_ledger(
    url: Url,
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="An export, or an SQLite file of an expost before its first release.",
            show_default=False,
        ),
    ],
    by: Who,
    reason: Why,
    as_json: Json = False,
) -> None:
    """Build a ledger from an export, with its trail as it is.

    An export holds no outputs: the keys of what was published are kept, and never sampled again.

    Example: expost ledger import sqlite:///new.db patients trail.jsonl --by "data office" --reason "new server"
    """
    from expost.ledger import transfer
    from expost.ledger.entry import Note

    if not file.exists():
        raise InvalidValue(f"there is no file {file}: give an export, or an SQLite file")
    with file.open("rb") as start:
        database = start.read(15) == b"SQLite format 3"
    note = Note(by, reason)
    if database:
        head = transfer.import_early(str(file), name, url, note)
    else:
        head = transfer.import_export(str(file), url, note)
    _copied([(name, head)], as_json)


@app.command()
@guarded
def move(
    url: Url,
    name: Name,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The other database.", show_default=False)],
    by: Who,
    reason: Why,
    as_json: Json = False,
) -> None:
    """Move a ledger to another database, with its trail and outputs, and close it where it was.

    Example: expost ledger move sqlite:///clinic.db patients postgresql://host/db --by me --reason "more machines"
    """
    from expost.ledger import transfer
    from expost.ledger.entry import Note

    head = transfer.move_ledger(url, name, target, Note(by, reason))
    _copied([(name, head)], as_json)


def _copied(heads: list[tuple[str, Head]], as_json: bool) -> None:
    if as_json:
        print_json([{"name": name, "line": head.sequence, "hash": head.hash} for name, head in heads])
    for name, head in heads if not as_json else ():
        out.print(f"{name}: {head.sequence} lines, and everything adds up\nhead {head}", soft_wrap=True)


# ---- the clock, and retention


@app.command()
@guarded
def clock(url: Url, name: Name, by: Who, reason: Why, as_json: Json = False) -> None:
    """Confirm the clock, or repair the clock of the books.

    From the next line on the trail goes by what the clock shows now, however far that is from the last line.

    Example: expost ledger clock sqlite:///clinic.db patients --by me --reason "the clock was ten years ahead"
    """
    from expost.ledger.address import open_store
    from expost.ledger.entry import Note

    open_store(url, name).set_clock(Note(by, reason))
    show_balance(ledger_at(url, name, None), as_json)


@app.command("drop-outputs")
@guarded
def drop_outputs(
    url: Url,
    name: Name,
    upto: Annotated[int, typer.Option(min=1, help="The last entry whose output is dropped.", show_default=False)],
    by: Who,
    reason: Why,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Drop the outputs kept for entries up to a number.

    Entries, parts, charges and the trail stay, and keys stay used: what was published cannot be delivered again.

    Example: expost ledger drop-outputs sqlite:///clinic.db patients --upto 900 --by me --reason "kept two years"
    """
    from expost.ledger.address import open_store
    from expost.ledger.entry import Note

    if not yes:
        typer.confirm(f"Drop outputs of {name!r} up to entry {upto} for ever?", abort=True, err=True)
    open_store(url, name).drop_outputs(upto, Note(by, reason))
    show_balance(ledger_at(url, name, None), as_json)


def _until(seconds: float | None) -> str:
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
