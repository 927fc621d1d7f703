"""`expost ledger …`: for custodians. Makes, reads, governs and audits durable ledgers; it spends nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from expost.cli.balances import accounts_of, balance_facts, entry_facts, entry_row, show_balance
from expost.cli.console import Account, Commands, Json, Yes, argument, confirm, option, out, writing
from expost.cli.tables import print_json, print_json_rows, print_table, tell
from expost.errors import AlreadyExists, InvalidValue
from expost.guarantee import Neighbours

if TYPE_CHECKING:
    from expost.ledger import Head, Ledger
    from expost.ledger.durable import DurableStore
    from expost.ledger.entry import Note

app = Commands(
    "ledger",
    "Keep durable ledgers, in SQLite or PostgreSQL.\n\n"
    "Addresses are sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/database.",
)


_UNIT = (
    'Whose privacy is protected, "patient": tables of other units are refused. In full, it is "patient (column pid)" '
    'or "visit (one row each)".'
)
Url = Annotated[str, argument("URL", "The database, such as sqlite:///study.db.")]
Name = Annotated[str, argument("NAME", "The ledger's name.")]
Epsilon = Annotated[str, option("The limit's ε.", metavar="NUMBER")]
Delta = Annotated[str, typer.Option(metavar="NUMBER", help="The limit's δ.")]
Who = Annotated[str, option("Who decided it.", "--by", metavar="TEXT")]
Why = Annotated[str, option("Why. It is written to the audit trail.", "--reason", metavar="TEXT")]


# ---- making


@app.add()
def create(
    url: Url,
    name: Name,
    epsilon: Epsilon,
    unit: Annotated[str, option(_UNIT, metavar="TEXT")],
    neighbours: Annotated[
        Neighbours, option("Whether neighbours differ by one record more or less, or by one exchanged record.")
    ],
    delta: Delta = "0",
    accounting: Annotated[
        Literal["basic", "renyi"], typer.Option(help="How charges add up: ε alone, or on several meters (needs a δ).")
    ] = "basic",
    as_json: Json = False,
) -> None:
    """Make a ledger.

    An SQLite file is made if there is none. The accounting cannot be changed later; expost plan shows
    which one admits more.

    Example: expost ledger create sqlite:///clinic.db patients --epsilon 3 --unit patient --neighbours add-remove
    """
    from expost.ledger import Ledger

    made = Ledger.create(
        url, name, _number(epsilon), _number(delta), neighbours=neighbours, unit=unit, accounting=accounting
    )
    show_balance(made, as_json)


@app.add("create-account")
def create_account(
    url: Url,
    name: Name,
    path: Annotated[str, argument("PATH", "The account, such as clinic/alice.")],
    epsilon: Epsilon,
    delta: Delta = "0",
    as_json: Json = False,
) -> None:
    """Create an account below a ledger.

    Every charge to it counts in the accounts and the ledger above. Limits may add up to more than theirs.

    Example: expost ledger create-account sqlite:///clinic.db patients alice --epsilon 1
    """
    above, _, last = path.rpartition("/")
    ledger = ledger_at(url, name, above or None, read_only=False)
    show_balance(ledger.create_account(last, _number(epsilon), _number(delta)), as_json)


# ---- reading


@app.add()
def show(
    url: Url,
    name: Annotated[str | None, argument("NAME", "The ledger's name; without it, all ledgers.")] = None,
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
        return
    for ledger in found:
        show_balance(ledger, as_json)


@app.add()
def accounts(url: Url, name: Name, as_json: Json = False) -> None:
    """List a ledger's accounts with their balances.

    Example: expost ledger accounts sqlite:///clinic.db patients
    """
    found = list(accounts_of(store_at(url, name, read_only=True)))
    if as_json:
        print_json([facts for *_, facts in found])
        return
    rows = ((account, *map(str, costs.values()), "closed" * closed) for account, closed, costs, _ in found)
    print_table(("account", "limit", "spent", "reserved", "remaining", ""), rows)


@app.add()
def entries(
    url: Url,
    name: Name,
    account: Account = None,
    state: Annotated[
        Literal["reserved", "settled", "forfeited", "voided"] | None, option("Only entries in this state.")
    ] = None,
    last: Annotated[int | None, option("Only this many of the newest entries.", min=1)] = None,
    as_json: Json = False,
) -> None:
    """List entries: who, what for, what came out, what it cost.

    What was published is not shown.

    Example: expost ledger entries sqlite:///clinic.db patients --state forfeited
    """
    ledger = ledger_at(url, name, account)
    found = ledger.entries(last=last, state=state)
    if as_json:
        print_json_rows(map(entry_facts, found))
        return
    rows = (entry_row(entry) for entry in found)
    print_table(
        ("#", "when (UTC)", "account", "what", "state", "came out", "reserved", "charged", "refunded"), rows, right=(0,)
    )


@app.add()
def statement(
    url: Url,
    name: Name,
    account: Account = None,
    by: Annotated[
        Literal["entry", "day"], typer.Option(help="A row for each entry, or for each account and day.")
    ] = "entry",
    as_json: Json = False,
) -> None:
    """Print a statement: reserved, charged, refunded.

    Example: expost ledger statement sqlite:///clinic.db patients --by day
    """
    from expost.ledger.statement import day_rows, entry_rows, totals_of

    ledger = ledger_at(url, name, account)
    if as_json:
        totals = totals_of(ledger)
        rows = iter((day_rows if by == "day" else entry_rows)(totals.entries, priced=len(ledger.meters) > 1))
        headings = next(rows)
        print_json_rows((dict(zip(headings, row, strict=True)) for row in rows), balance_facts(ledger, totals))
    else:
        for line in ledger.statement_lines(by=by):
            out.print(line, soft_wrap=True)


# ---- looking after it


@app.add()
def recover(url: Url, name: Name, as_json: Json = False) -> None:
    """Charge the worst case of entries whose processes have ended.

    Every process that opens a ledger to spend does so first. Commands that read change nothing.

    Example: expost ledger recover sqlite:///clinic.db patients
    """

    count = store_at(url, name).recover()
    left = f"{count} left behind: forfeited, and charged the worst case" if count else "nothing was left behind"
    tell(as_json, {"name": name, "forfeited": count}, left)


@app.add()
def verify(
    url: Url,
    name: Name,
    known: Annotated[
        str | None, option("A head noted earlier, which the trail must still contain.", metavar="LINE:HASH")
    ] = None,
    since: Annotated[bool, typer.Option("--since", help="Verify only what came after that head.")] = False,
    as_json: Json = False,
) -> None:
    """Recompute the audit trail, and all balances from it.

    Changes nothing. Exit code 4 if something differs. Prints the trail's head: note it elsewhere. Passed as --known
    later, it shows that nothing before was rewritten and that no old backup was restored.

    Example: expost ledger verify sqlite:///clinic.db patients --known 7:9f86d081884c7d65…
    """

    earlier = None if known is None else head_of(known)
    if since and earlier is None:
        raise InvalidValue("--since starts at a head noted earlier: give --known LINE:HASH, too")
    head = store_at(url, name, read_only=True).verify(earlier, since=since)
    tell(as_json, head_facts(name, head), head_text(name, head))


@app.add()
def export(
    url: Url,
    name: Name,
    file: Annotated[Path, argument("FILE", "Where to write; must not exist.")],
    as_json: Json = False,
) -> None:
    """Write the audit trail as JSON lines.

    Each line has its hash, so that anyone can check them without expost.

    Example: expost ledger export sqlite:///clinic.db patients trail.jsonl
    """
    if file.exists():
        raise AlreadyExists("file", str(file))
    ledger = ledger_at(url, name, None)
    with writing(file):
        head = ledger.export(file)
    facts = {"name": name, "file": str(file), **head_facts(name, head)}
    tell(as_json, facts, f"{head.sequence} lines in {file}\nhead {head}")


# ---- the owner's business


@app.add("raise")
def raise_limit(
    url: Url,
    name: Name,
    by: Who,
    reason: Why,
    epsilon: Annotated[str | None, option("The new ε.", metavar="NUMBER")] = None,
    delta: Annotated[str | None, option("The new δ.", metavar="NUMBER")] = None,
    account: Account = None,
    as_json: Json = False,
) -> None:
    """Raise a limit. Limits cannot be lowered.

    With Rényi accounting, the basic sum and Rényi prices then hold more; the meter of Gaussian noise stays as it was.

    Example: expost ledger raise sqlite:///clinic.db patients --epsilon 4 --by "ethics board" --reason wave2
    """
    if epsilon is None and delta is None:
        raise InvalidValue("say what the limit should be: give --epsilon or --delta")
    ledger = ledger_at(url, name, account, read_only=False)
    ledger.raise_limit(
        None if epsilon is None else _number(epsilon), None if delta is None else _number(delta), by=by, reason=reason
    )
    show_balance(ledger, as_json)


@app.add()
def close(
    url: Url,
    name: Name,
    by: Who,
    reason: Why,
    account: Account = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Close for good: nothing more can be reserved.

    All accounts below are closed, too. Everything stays readable.

    Example: expost ledger close sqlite:///clinic.db patients --by "data office" --reason "project ended"
    """
    ledger = ledger_at(url, name, account, read_only=False)
    confirm(f"Close {ledger.name!r} for ever?", yes)
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


def store_at(url: str, name: str, *, read_only: bool = False) -> DurableStore:
    """The books that a command is about, as they are: nothing is recovered."""
    from expost.ledger.address import open_store

    return open_store(url, name, read_only=read_only)


def note_of(by: str, reason: str) -> Note:
    """Who decided, and why."""
    from expost.ledger.entry import Note

    return Note(by, reason)


def _number(text: str) -> str:
    """A limit is a number; whether it is a possible one, the ledger says."""
    from expost.cost import exact

    exact(text, "a limit")
    return text


def head_of(text: str) -> Head:
    """A head as verify prints it."""
    from expost.ledger import Head

    return Head.read(text)


def head_facts(name: str, head: Head) -> dict[str, Any]:
    """The head of a ledger's audit trail, for other programs."""
    return {"name": name, "line": head.sequence, "hash": head.hash}


def head_text(name: str, head: Head) -> str:
    """The same for people, who note it."""
    return f"{name}: {head.sequence} lines, and everything adds up\nhead {head}"
