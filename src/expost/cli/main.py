"""The commands, gathered."""

from __future__ import annotations

from typing import Annotated

import typer

from expost._version import __version__
from expost.cli import custody, example, jobs, ledger, service, study
from expost.cli.answers import list_answers
from expost.cli.audit import audit
from expost.cli.console import CODES, Commands, out
from expost.cli.init import init

app = Commands(
    "expost",
    "Private answers that are charged only for what they leaked.\n\n"
    f"Example: expost init visits.csv -o visits.toml, then plan it and run it.\n\n{CODES}",
)
app.add()(example.example)
app.add()(init)
app.add()(study.plan)
app.add()(study.run)
app.add()(study.report)
app.add("answers")(list_answers)
app.add()(audit)
app.add()(service.serve)
assert custody  # adds commands to the ledger's
app.add_typer(ledger.app)
app.add_typer(service.tokens)
app.add_typer(jobs.jobs)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"expost {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of all commands."""
