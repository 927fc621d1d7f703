"""`expost serve` and `expost token …`: for custodians who let others ask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from expost.cli.console import Commands, Json, argument, option, out
from expost.cli.tables import print_json, print_table, tell
from expost.errors import InvalidValue, MissingDependency

if TYPE_CHECKING:
    from expost.ledger import Ledger
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
    from expost.service.governance import issue_token

    config, database = open_service(file)
    made, secret = issue_token(database, account_of(config, account), role, account, name=name, days=days)
    database.close()
    tell(as_json, made.facts() | {"secret": secret}, secret)


@tokens.add("list")
def list_all(file: File, as_json: Json = False) -> None:
    """List tokens, without their secrets.

    Example: expost token list server.toml
    """
    from datetime import UTC, datetime

    from expost.service.tokens import list_tokens

    _, database = open_service(file)
    found = list_tokens(database)
    database.close()
    if as_json:
        print_json([each.facts() for each in found])
        return
    rows = (
        (each.id, each.role, each.account, each.name, each.maker or "",
         f"{datetime.fromtimestamp(each.expires_at, UTC):%Y-%m-%d}", "" if each.valid else "ended")
        for each in found
    )  # fmt: skip
    print_table(("id", "role", "account", "name", "made with", "until", ""), rows)


@tokens.add()
def revoke(file: File, token: Annotated[str, argument("ID", "The token's id.")]) -> None:
    """Revoke a token, and all that were made with it. A running service refuses them within a second.

    Example: expost token revoke server.toml 1f0c2d3e4a5b6c7d
    """
    from expost.service.governance import MACHINE, revoke_all

    config, database = open_service(file)
    gone = revoke_all(database, token, MACHINE, lambda path: account_of(config, path, served=False))
    database.close()
    out.print(f"revoked {token}")
    for each in gone:
        if each.id != token:
            out.print(f"revoked {each.id}, which was made with it")


def open_service(file: Path) -> tuple[ServerConfig, ServiceTables]:
    """What a server's file says, and the service's tables. Whether it runs does not matter."""
    from expost.service.config import read_config
    from expost.service.database import ServiceTables

    config = read_config(file)
    return config, ServiceTables(config.url)


def account_of(config: ServerConfig, path: str, *, served: bool = True) -> Ledger:
    """An account that exists, of a ledger that is served; a line about its token is written there."""
    from expost.ledger import Ledger

    ledger, *below = path.split("/")
    if served and ledger not in config.ledgers:
        raise InvalidValue(f"no data set is charged to ledger {ledger!r}: there are {', '.join(config.ledgers)}")
    found = Ledger.load(config.url, ledger, recover=False)
    for name in below:
        found = found.account(name)
    return found
