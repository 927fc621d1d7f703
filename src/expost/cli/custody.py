"""`expost ledger …`: what custodians do rarely. Open entries, watching, copies, the clock, retention."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from expost.cli.balances import entry_facts, entry_row, show_balance
from expost.cli.console import Json, Yes, argument, confirm, option, out, writing
from expost.cli.ledger import Name, Url, Who, Why, app, head_facts, head_of, head_text, ledger_at, note_of, store_at
from expost.cli.tables import print_json, print_table, tell
from expost.errors import InvalidValue

if TYPE_CHECKING:
    from expost.ledger import Head
    from expost.ledger.durable import DurableStore
    from expost.ledger.trail import TrailLine

# ---- open entries


@app.add("open")
def open_entries(url: Url, name: Name, as_json: Json = False) -> None:
    """List open entries, and the processes that reserved them.

    Example: expost ledger open sqlite:///clinic.db patients
    """
    from expost.ledger.texts import described_owner

    found = store_at(url, name, read_only=True).open_entries()
    if as_json:
        print_json([entry_facts(one.entry) | {"owner": one.owner, "lease_until": one.lease_until} for one in found])
        return
    rows = ((*entry_row(one.entry)[:4], described_owner(one.owner), _until(one.lease_until)) for one in found)
    print_table(("#", "when (UTC)", "account", "what", "reserved by", "until (UTC)"), rows, right=(0,))


@app.add()
def forfeit(
    url: Url,
    name: Name,
    entry: Annotated[int, argument("ID", "The entry's number.")],
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Charge the worst case of an open entry, now.

    For work that will never end, such as that of a machine which is gone. If that machine comes
    back, its output is refused.

    Example: expost ledger forfeit sqlite:///clinic.db patients 17
    """
    confirm(f"Charge the worst case of entry {entry}?", yes)
    ended = ledger_at(url, name, None, read_only=False).reservation(entry).forfeit()
    text = f"entry {ended.id} of {ended.account}: forfeited, charged {ended.charged}"
    tell(as_json, entry_facts(ended), text)


@app.add()
def watch(
    url: Url,
    name: Name,
    file: Annotated[Path, argument("FILE", "Where heads are noted.")],
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two checks.")] = 60,
    once: Annotated[bool, typer.Option("--once", help="Check once, and end.")] = False,
    prometheus: Annotated[bool, typer.Option("--prometheus", help="Print gauges as Prometheus reads them.")] = False,
) -> None:
    """Verify what is new, and note the head elsewhere, again and again.

    Keep the file where nobody who can write the ledger can write. Exit code 4 as soon as something does not follow from
    the last head in it: a rewritten trail, an old backup. Prints one line of JSON per check, or gauges.

    Example: expost ledger watch sqlite:///clinic.db patients /elsewhere/patients.heads
    """
    import time

    store = store_at(url, name, read_only=True)
    while True:
        head = store.verify(known := _noted(file), since=known is not None)
        facts = _watched(store, head)
        if known != head:
            with writing(file), file.open("a") as heads:
                heads.write(f"{head}\n")
        typer.echo(_gauges(facts) if prometheus else json.dumps(facts))
        if once:
            return
        time.sleep(every)


def _watched(store: DurableStore, head: Head) -> dict[str, Any]:
    """What is told of a ledger that was just verified."""
    import time

    from expost.ledger.metered import balance_shown

    name, now, entries = store.address.name, time.time(), store.open_entries()
    costs = balance_shown(store.meters, store.balances((name,)))
    return head_facts(name, head) | {
        "open": len(entries),
        "oldest_open": int(now - min((one.entry.reserved_at for one in entries), default=now)),
        "size": store.size,
        "verified_at": int(now),
        **{what: costs[what].to_json() for what in ("limit", "spent", "reserved")},
    }


_GAUGES = {
    "line": ("lines", "The last line of the audit trail."),
    "open": ("open_entries", "Entries that have not ended."),
    "oldest_open": ("oldest_open_seconds", "Since when the oldest open entry is reserved, by its full hour."),
    "size": ("size_bytes", "What the database takes on its disk."),
    "verified_at": ("verified_timestamp_seconds", "When the ledger was verified last."),
}


def _gauges(facts: dict[str, Any]) -> str:
    """Facts as Prometheus reads them."""
    name = json.dumps(facts["name"], ensure_ascii=False)
    lines: list[str] = []
    for fact, (gauge, meaning) in _GAUGES.items():
        lines += [f"# HELP expost_ledger_{gauge} {meaning}", f"# TYPE expost_ledger_{gauge} gauge"]
        lines += [f"expost_ledger_{gauge}{{ledger={name}}} {facts[fact]}"]
    for what in ("limit", "spent", "reserved"):
        lines += [f"# HELP expost_ledger_epsilon_{what} The ε of it.", f"# TYPE expost_ledger_epsilon_{what} gauge"]
        lines += [f"expost_ledger_epsilon_{what}{{ledger={name}}} {facts[what]['epsilon']}"]
    return "\n".join(lines)


def _noted(file: Path) -> Head | None:
    lines = file.read_text().split() if file.exists() else []
    return head_of(lines[-1]) if lines else None


# ---- copies


@app.add()
def backup(
    url: Url,
    file: Annotated[Path, argument("FILE", "A new SQLite file.")],
    as_json: Json = False,
) -> None:
    """Copy all ledgers of a database into a file, and verify them there.

    A backup is for audits, for reading old entries, and for restoring after a loss.

    Example: expost ledger backup sqlite:///clinic.db /backups/monday.db
    """
    from expost.ledger import transfer

    _copied(transfer.back_up(url, str(file.absolute())), as_json)


@app.add()
def restore(
    file: Annotated[Path, argument("FILE", "A backup.")],
    url: Url,
    name: Name,
    known: Annotated[str, option("The last head that was noted.", metavar="LINE:HASH")],
    by: Who,
    reason: Why,
    as_json: Json = False,
) -> None:
    """Put a ledger of a backup into a database that has none of that name.

    Only if nothing after the backup is known to be lost: its trail must run through the last head that was noted.

    Example: expost ledger restore monday.db sqlite:///clinic.db patients --known 7:9f86… --by me --reason "disk died"
    """
    from expost.ledger import transfer

    source = f"sqlite:///{file.absolute()}"
    store_at(source, name, read_only=True).verify(head_of(known))
    _copied([(name, transfer.copy_ledger(source, name, url, note_of(by, reason)))], as_json)


@app.add("import")
def import_ledger(
    url: Url,
    name: Name,
    file: Annotated[Path, argument("FILE", "An export.")],
    by: Who,
    reason: Why,
    known: Annotated[
        str | None, option("The last head that was noted, which the export must contain.", metavar="LINE:HASH")
    ] = None,
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="Import it without its end: --reason says why, in the trail.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Build a ledger from an export, with its trail as it is.

    The export must be complete: it has its closing line, or ends with the head given as --known. An
    export holds no outputs: the keys of what was published are kept, and never sampled again.

    Example: expost ledger import sqlite:///new.db patients trail.jsonl --by "data office" --reason "new server"
    """
    from expost.ledger import transfer

    if not file.exists():
        raise InvalidValue(f"there is no file {file}: make an export with `expost ledger export`")
    note, earlier = note_of(by, reason), None if known is None else head_of(known)
    _check_name(next(iter(transfer.Export(str(file))), None), name)
    head = transfer.import_export(str(file), url, note, known=earlier, is_incomplete=incomplete)
    _copied([(name, head)], as_json)


def _check_name(first: TrailLine | None, name: str) -> None:
    """A ledger keeps its name. What else is wrong with an export, importing it says."""
    known = None if first is None else first.body.get("name")
    if isinstance(known, str) and known != name:
        raise InvalidValue(f"this is an export of ledger {known!r}, which keeps its name, got {name!r}: give {known!r}")


@app.add()
def move(
    url: Url,
    name: Name,
    target: Annotated[str, argument("TARGET", "The other database.")],
    by: Who,
    reason: Why,
    as_json: Json = False,
) -> None:
    """Move a ledger to another database, with its trail and outputs, and close it where it was.

    At every moment at most one of the two can be spent from. If it is interrupted, the same command finishes it.

    Example: expost ledger move sqlite:///clinic.db patients postgresql://host/db --by me --reason "more machines"
    """
    from expost.ledger import transfer

    head = transfer.move_ledger(url, name, target, note_of(by, reason))
    _copied([(name, head)], as_json)


def _copied(heads: list[tuple[str, Head]], as_json: bool) -> None:
    if as_json:
        print_json([head_facts(name, head) for name, head in heads])
    for name, head in heads if not as_json else ():
        out.print(head_text(name, head), soft_wrap=True)


@app.add()
def adopt(
    url: Url,
    name: Name,
    by: Who,
    reason: Why,
    known: Annotated[
        str | None, option("The last head that was noted elsewhere, which the trail must contain.", metavar="LINE:HASH")
    ] = None,
    as_json: Json = False,
) -> None:
    """Note a head anew, where the noted one was lost.

    Only if these books are known to be the last ones, and no old backup: it says so in the trail. Nothing
    can be reserved before. Lines that are known to be lost are not adopted.

    Example: expost ledger adopt sqlite:///clinic.db patients --known 7:9f86… --by me --reason "copied without heads"
    """
    from expost.ledger import transfer

    earlier = None if known is None else head_of(known)
    _copied([(name, transfer.adopt_heads(url, name, note_of(by, reason), earlier))], as_json)


# ---- rights


@app.add("grants")
def print_grants(
    kind: Annotated[Literal["reader", "spender", "governor"], argument("KIND", "What the role may do.")],
    role: Annotated[str, argument("ROLE", "A role of the PostgreSQL server.")],
    schema: Annotated[str, typer.Option(metavar="NAME", help="The schema of the tables.")] = "public",
) -> None:
    """Print the SQL that lets a role read, spend or govern.

    For the owner of the tables, who is whoever made the first ledger: | psql "$BOOKS". Readers show, verify
    and export; spenders also reserve and settle; governors also make ledgers and decide.

    Example: expost ledger grants spender alice
    """
    from expost.ledger.grants import grants

    typer.echo(grants(kind, role, schema), nl=False)


# ---- the clock, and retention


@app.add()
def clock(url: Url, name: Name, by: Who, reason: Why, as_json: Json = False) -> None:
    """Confirm this machine's clock.

    New lines take their time from it, however far it is from the last line's.

    Example: expost ledger clock sqlite:///clinic.db patients --by me --reason "the clock was ten years ahead"
    """

    store_at(url, name).set_clock(note_of(by, reason))
    show_balance(ledger_at(url, name, None), as_json)


@app.add("drop-outputs")
def drop_outputs(
    url: Url,
    name: Name,
    upto: Annotated[int, option("The last entry whose output is dropped.", min=1)],
    by: Who,
    reason: Why,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Drop the outputs kept for entries up to a number.

    Entries, parts, charges and the trail stay, and keys stay used: what was published cannot be delivered again.

    Example: expost ledger drop-outputs sqlite:///clinic.db patients --upto 900 --by me --reason "kept two years"
    """

    confirm(f"Drop outputs of {name!r} up to entry {upto} for ever?", yes)
    store_at(url, name).drop_outputs(upto, note_of(by, reason))
    show_balance(ledger_at(url, name, None), as_json)


def _until(seconds: float | None) -> str:
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"
