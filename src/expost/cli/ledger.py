"""`expost ledger …`: for custodians. Makes, reads, governs and audits durable ledgers; it spends nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from expost.cli.balances import balance_facts, entry_facts, entry_row, show_balance
from expost.cli.console import Json, guarded, out
from expost.cli.tables import print_json, print_json_rows, print_table
from expost.errors import InvalidValue

if TYPE_CHECKING:
    from expost.ledger import Entry, Head, Ledger

app = typer.Typer(
    name="ledger",
    help="Keep durable ledgers, in SQLite or PostgreSQL.\n\n"
    "Addresses are sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/database.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Neighbours(StrEnum):
    """What two data sets differ in."""

    ADD_REMOVE = "add-remove"
    SUBSTITUTE = "substitute"


class State(StrEnum):
    """The states of an entry."""

    RESERVED = "reserved"
    SETTLED = "settled"
    FORFEITED = "forfeited"
    VOIDED = "voided"


class AddingUp(StrEnum):
    """How charges add up."""

    SIMPLE = "simple"
    RENYI = "renyi"


class By(StrEnum):
    """What a row of a statement is."""

    ENTRY = "entry"
    DAY = "day"


_UNIT = 'Who one record is about. Studies say "patient (column patient)" or "visit (one row each)".'
Url = Annotated[
    str, typer.Argument(metavar="URL", help="The database, such as sqlite:///study.db.", show_default=False)
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The ledger's name.", show_default=False)]
Account = Annotated[
    str | None, typer.Option(metavar="PATH", help="An account below it, such as clinic/alice.", show_default=False)
]
Epsilon = Annotated[str, typer.Option(metavar="NUMBER", help="The limit's ε.", show_default=False)]
Delta = Annotated[str, typer.Option(metavar="NUMBER", help="The limit's δ.")]
Who = Annotated[str, typer.Option("--by", metavar="TEXT", help="Who decided it.", show_default=False)]
Why = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why. It is written to the audit trail.", show_default=False)
]


# ---- making


@app.command()
@guarded
def create(
    url: Url,
    name: Name,
    epsilon: Epsilon,
    unit: Annotated[str, typer.Option(metavar="TEXT", help=_UNIT, show_default=False)],
    neighbours: Annotated[Neighbours, typer.Option(help="What its claims are about.", show_default=False)],
    delta: Delta = "0",
    accounting: Annotated[
        AddingUp, typer.Option(help="How charges add up: ε alone, or on several meters (needs a δ).")
    ] = AddingUp.SIMPLE,
    as_json: Json = False,
) -> None:
    """Make a ledger.

    An SQLite file is made if there is none. How charges add up stays as it is: expost plan says which fits more.

    Example: expost ledger create sqlite:///clinic.db patients --epsilon 3 --unit patient --neighbours add-remove
    """
    from expost.ledger import Ledger

    made = Ledger.create(
        url, name, _number(epsilon), _number(delta),
        neighbours=neighbours.value, unit=unit, accounting=accounting.value,
    )  # fmt: skip
    show_balance(made, as_json)


@app.command("add-account")
@guarded
def add_account(
    url: Url,
    name: Name,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The account, such as clinic/alice.", show_default=False)],
    epsilon: Epsilon,
    delta: Delta = "0",
    as_json: Json = False,
) -> None:
    """Open an account below a ledger.

    Every charge to it counts in the accounts and the ledger above. Limits may add up to more than theirs.

    Example: expost ledger add-account sqlite:///clinic.db patients alice --epsilon 1
    """
    above, _, last = path.rpartition("/")
    show_balance(
        ledger_at(url, name, above or None, read_only=False).create_account(last, _number(epsilon), _number(delta)),
        as_json,
    )


# ---- reading


@app.command()
@guarded
def show(
    url: Url,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The ledger's name; all without.", show_default=False)
    ] = None,
    account: Account = None,
    as_json: Json = False,
) -> None:
    """Show the limit, and what was spent and remains.

    Example: expost ledger show sqlite:///clinic.db patients
    """
    from expost.ledger import ledgers

    if name is None and account is not None:
        raise InvalidValue("an account is below a ledger: give the ledger's NAME, too")
    if name is not None:
        show_balance(ledger_at(url, name, account), as_json)
        return
    found = [ledger_at(url, summary.name, None) for summary in ledgers(url)]
    if as_json:
        print_json([balance_facts(ledger) for ledger in found])
    for ledger in found if not as_json else ():
        show_balance(ledger, as_json)


@app.command()
@guarded
def accounts(url: Url, name: Name, as_json: Json = False) -> None:
    """List a ledger's accounts with their balances.

    Example: expost ledger accounts sqlite:///clinic.db patients
    """
    found = list(_below(ledger_at(url, name, None)))
    if as_json:
        print_json([balance_facts(ledger) for ledger in found])
        return
    rows = (
        (ledger.name, *map(str, (ledger.limit, ledger.spent, ledger.reserved, ledger.remaining)), _closed(ledger))
        for ledger in found
    )
    print_table(("account", "limit", "spent", "reserved", "remaining", ""), rows)


@app.command()
@guarded
def entries(
    url: Url,
    name: Name,
    account: Account = None,
    state: Annotated[State | None, typer.Option(help="Only those of this state.", show_default=False)] = None,
    last: Annotated[int | None, typer.Option(min=1, help="Only the last ones.", show_default=False)] = None,
    as_json: Json = False,
) -> None:
    """List entries: who, what for, which part, what it cost.

    What was published is not shown.

    Example: expost ledger entries sqlite:///clinic.db patients --state forfeited
    """
    ledger = ledger_at(url, name, account)
    found: Iterable[Entry] = ledger.entries(last=last if state is None else None)
    if state is not None:
        found = (entry for entry in found if entry.state == state)
        found = found if last is None else deque(found, last)
    if as_json:
        print_json_rows(map(entry_facts, found))
        return
    rows = (entry_row(entry) for entry in found)
    print_table(
        ("#", "when (UTC)", "account", "what", "state", "part", "reserved", "charged", "refunded"), rows, right=(0,)
    )


@app.command()
@guarded
def statement(
    url: Url,
    name: Name,
    account: Account = None,
    by: Annotated[By, typer.Option(help="A row for each entry, or for each account and day.")] = By.ENTRY,
    as_json: Json = False,
) -> None:
    """Print a statement: reserved, charged, refunded.

    Example: expost ledger statement sqlite:///clinic.db patients --by day
    """
    from expost.ledger.statement import day_rows, entry_rows, totals_of

    ledger = ledger_at(url, name, account)
    if as_json:
        totals = totals_of(ledger)
        rows = iter((day_rows if by is By.DAY else entry_rows)(totals.entries, priced=len(ledger.meters) > 1))
        headings = next(rows)
        print_json_rows((dict(zip(headings, row, strict=True)) for row in rows), balance_facts(ledger, totals))
    else:
        for line in ledger.statement_lines(by=by.value):
            out.print(line, soft_wrap=True)


# ---- looking after it


@app.command()
@guarded
def recover(url: Url, name: Name, as_json: Json = False) -> None:
    """Charge the worst case of what ended processes left.

    Every process that opens a ledger to spend does so first. Commands that read change nothing.

    Example: expost ledger recover sqlite:///clinic.db patients
    """
    from expost.ledger.address import open_store

    count = open_store(url, name).recover()
    if as_json:
        print_json({"name": name, "forfeited": count})
    elif count:
        out.print(f"{count} left behind: forfeited, and charged the worst case")
    else:
        out.print("nothing was left behind")


@app.command()
@guarded
def verify(
    url: Url,
    name: Name,
    known: Annotated[
        str | None,
        typer.Option(metavar="LINE:HASH", help="A head noted earlier: is it still there?", show_default=False),
    ] = None,
    since: Annotated[bool, typer.Option("--since", help="Verify only what came after that head.")] = False,
    as_json: Json = False,
) -> None:
    """Recompute the audit trail and all it adds up to.

    Changes nothing. Exit code 4 if something differs. Prints the trail's head: note it elsewhere. Given back later, it
    shows that nothing before was rewritten and that no old backup was restored.

    Example: expost ledger verify sqlite:///clinic.db patients --known 7:9f86d081884c7d65…
    """
    from expost.ledger.address import open_store

    earlier = None if known is None else head_of(known)
    if since and earlier is None:
        raise InvalidValue("--since starts at a head noted earlier: give --known LINE:HASH, too")
    head = open_store(url, name, read_only=True).verify(earlier, since=since)
    if as_json:
        print_json({"name": name, "line": head.sequence, "hash": head.hash})
        return
    out.print(f"{name}: {head.sequence} lines, and everything adds up", soft_wrap=True)
    out.print(f"head {head.sequence}:{head.hash}", soft_wrap=True)


@app.command()
@guarded
def export(
    url: Url,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write; must not exist.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Write the audit trail as JSON lines.

    Each has its hash, so that anyone can check them without expost.

    Example: expost ledger export sqlite:///clinic.db patients trail.jsonl
    """
    if file.exists():
        raise InvalidValue(f"{file} exists already: export to another file")
    ledger = ledger_at(url, name, None)
    try:
        head = ledger.export(file)
    except OSError as error:
        raise InvalidValue(f"{file} cannot be written: {error.strerror}") from None
    if as_json:
        print_json({"name": name, "file": str(file), "line": head.sequence, "hash": head.hash})
    else:
        out.print(f"{head.sequence} lines in {file}\nhead {head.sequence}:{head.hash}", soft_wrap=True)


# ---- the owner's business


@app.command("raise")
@guarded
def raise_limit(
    url: Url,
    name: Name,
    by: Who,
    reason: Why,
    epsilon: Annotated[str | None, typer.Option(metavar="NUMBER", help="The new ε.", show_default=False)] = None,
    delta: Annotated[str | None, typer.Option(metavar="NUMBER", help="The new δ.", show_default=False)] = None,
    account: Account = None,
    as_json: Json = False,
) -> None:
    """Raise a limit. It never goes down.

    Example: expost ledger raise sqlite:///clinic.db patients --epsilon 4 --by "ethics board" --reason wave2
    """
    if epsilon is None and delta is None:
        raise InvalidValue("say what the limit should be: give --epsilon or --delta")
    ledger = ledger_at(url, name, account, read_only=False)
    ledger.raise_limit(
        None if epsilon is None else _number(epsilon), None if delta is None else _number(delta), by=by, reason=reason
    )
    show_balance(ledger, as_json)


@app.command()
@guarded
def close(
    url: Url,
    name: Name,
    by: Who,
    reason: Why,
    account: Account = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Close for ever: nothing more is reserved.

    Holds for all accounts below, too. Everything stays readable.

    Example: expost ledger close sqlite:///clinic.db patients --by "data office" --reason "project ended"
    """
    ledger = ledger_at(url, name, account, read_only=False)
    if not yes:
        typer.confirm(f"Close {ledger.name!r} for ever?", abort=True, err=True)
    ledger.close(by=by, reason=reason)
    show_balance(ledger, as_json)


# ---- inside


def ledger_at(url: str, name: str, account: str | None, *, read_only: bool = True) -> Ledger:
    """The ledger or account that a command is about."""
    from expost.ledger import Ledger

    ledger = Ledger.load(url, name, read_only=read_only)
    for below in account.split("/") if account else ():
        ledger = ledger.account(below)
    return ledger


def _below(ledger: Ledger) -> Iterator[Ledger]:
    yield ledger
    for account in ledger.accounts:
        yield from _below(account)


def _number(text: str) -> str:
    """A limit is a number; whether it is a possible one, the ledger says."""
    from expost.cost import exact

    exact(text, "a limit")
    return text


def head_of(text: str) -> Head:
    """A head as verify prints it."""
    from expost.ledger import Head

    line, _, digest = text.partition(":")
    if not line.isdecimal() or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise InvalidValue(f"a head is LINE:HASH, as verify prints it, got {text!r}")
    return Head(int(line), digest)


def _closed(ledger: Ledger) -> str:
    return "closed" if ledger.closed else ""
