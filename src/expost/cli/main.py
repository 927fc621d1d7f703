"""The commands, gathered."""

from __future__ import annotations

import typer

from expost.cli import ledger
from expost.cli.console import CODES
from expost.cli.paper import paper

app = typer.Typer(
    name="expost",
    help=f"Private answers that pay only for what they leaked.\n\n{CODES}",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.add_typer(ledger.app)
app.command()(paper)
