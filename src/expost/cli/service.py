"""`expost serve` and `expost token …`: for custodians who let others ask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from expost.cli.console import Commands, Json, argument, option, out
from expost.cli.tables import print_json, print_table, tell
from expost.errors import InvalidValue, MissingDependency

if TYPE_CHECKING:
    from expost.service.config import ServerConfig
    from expost.service.database import ServiceTables

tokens = Commands("token", "Make, list and revoke tokens of a service.")
File = Annotated[Path, argument("SERVER", "The server's file, server.toml.")]


def serve(file: File) -> None:
    """Serve data sets to analysts with tokens.

    Checks everything before it opens the port. SIGTERM ends it gracefully.

    Example: expost serve server.toml
    """
    try:
        from expost.service.server import run_server
    except ModuleNotFoundError as error:
        raise MissingDependency("services", str(error.name), "service") from None
    run_server(file)


@tokens.add()
def add(
    file: File,
    role: Annotated[Literal["custodian", "analyst", "auditor", "engine"], option("What the token may do.")],
    account: Annotated[str, option("The ledger, or an account of it: patients/alice.", metavar="PATH")],
    name: Annotated[str, option("Who uses it.", metavar="TEXT")],
    days: Annotated[float, typer.Option(help="Days until it expires.")] = 90,
    as_json: Json = False,
) -> None:
    """Make a token. Its secret is shown only once.

    Example: expost token add server.toml --role analyst --account patients/alice --name Alice
    """
    from expost.service.tokens import make_token

    config, database = _opened(file)
    _check_account(config, account)
    made, secret = make_token(database, role, account, name=name, days=days)
    database.close()
    tell(as_json, made.facts() | {"secret": secret}, secret)


@tokens.add("list")
def list_all(file: File, as_json: Json = False) -> None:
    """List tokens, without their secrets.

    Example: expost token list server.toml
    """
    from datetime import UTC, datetime

    from expost.service.tokens import list_tokens

    _, database = _opened(file)
    found = list_tokens(database)
    database.close()
    if as_json:
        print_json([each.facts() for each in found])
        return
    rows = (
        (each.id, each.role, each.account, each.name, f"{datetime.fromtimestamp(each.expires_at, UTC):%Y-%m-%d}",
         "" if each.valid else "ended")
        for each in found
    )  # fmt: skip
    print_table(("id", "role", "account", "name", "until", ""), rows)


@tokens.add()
def revoke(file: File, token: Annotated[str, argument("ID", "The token's id.")]) -> None:
    """Revoke a token. A running service refuses it within a second.

    Example: expost token revoke server.toml 1f0c2d3e4a5b6c7d
    """
    from expost.service.tokens import revoke_token

    _, database = _opened(file)
    revoke_token(database, token)
    database.close()
    out.print(f"revoked {token}")


def _opened(file: Path) -> tuple[ServerConfig, ServiceTables]:
    from expost.service.config import read_config
    from expost.service.database import ServiceTables

    config = read_config(file)
    return config, ServiceTables(config.url)


def _check_account(config: ServerConfig, path: str) -> None:
    """A token is for an account that exists, of a ledger that is served."""
    from expost.ledger import Ledger

    ledger, *below = path.split("/")
    if ledger not in config.ledgers:
        raise InvalidValue(f"no data set is charged to ledger {ledger!r}: there are {', '.join(config.ledgers)}")
    found = Ledger.load(config.url, ledger, read_only=True)
    for name in below:
        found = found.account(name)
