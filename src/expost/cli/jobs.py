"""`expost job …`: what waits and what became of it, for the custodian at the machine. The service may run or not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expost.cli.console import Commands, Json, argument, option, out
from expost.cli.service import File, account_of, open_service
from expost.cli.tables import print_json, print_table, tell
from expost.errors import UnknownEntry
from expost.mentions import printable

if TYPE_CHECKING:
    from expost.cost import Cost
    from expost.service.jobs import ServiceJob

jobs = Commands("job", "List, show and cancel jobs of a service.")
_WORDS = {
    "accepted_at": "accepted", "starts_at": "starts", "due_at": "answer time", "answered_at": "answered",
    "held": "set aside",
}  # fmt: skip
_Id = Annotated[str, argument("ID", "The job's id, as `expost job list` shows it.")]


@jobs.add("list")
def every_job(
    file: File,
    account: Annotated[str | None, option("Only of an account, with those below it.", metavar="PATH")] = None,
    waiting: Annotated[bool, typer.Option("--waiting", help="Only those that are not answered yet.")] = False,
    last: Annotated[int, typer.Option(help="How many at most, the newest first.", min=1, max=10_000)] = 50,
    as_json: Json = False,
) -> None:
    """List jobs: who asked, when they start and are answered, and how they ended.

    Example: expost job list server.toml --waiting
    """
    from expost.service.jobs import Jobs

    config, database = open_service(file)
    found = Jobs.of(config, database).last(last, account, waiting=waiting)
    database.close()
    if as_json:
        print_json([_plain(_line(job)) for job in found])
        return
    rows = (
        (line["id"], line["account"], line["data"], line["outcome"] or line["state"], str(line["held"] or ""),
         _short(line["accepted_at"]), _short(line["answered_at"] or line["due_at"]))
        for line in map(_line, found)
    )  # fmt: skip
    print_table(("id", "account", "data", "", "set aside", "accepted", "answered"), rows)


@jobs.add("show")
def one_job(file: File, job: _Id, as_json: Json = False) -> None:
    """Show a job: what is asked, what is set aside for it, and what it was charged. No answers.

    Example: expost job show server.toml 0f1e2d3c4b5a69788796a5b4c3d2e1f0
    """
    from expost.service.jobs import Jobs

    config, database = open_service(file)
    found = Jobs.of(config, database).find(job)
    database.close()
    if found is None:
        raise UnknownEntry(f"there is no job {job!r}: `expost job list` shows them")
    facts = _line(found) | {"asked": json.loads(found.body), "charged": _charged(found), "why": _why(found)}
    if as_json:
        print_json(_plain(facts))
        return
    for name, value in facts.items():
        if value not in (None, "", []) and name != "asked":
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            out.print(f"{_WORDS.get(name, name)}: {printable(str(shown))}", soft_wrap=True, markup=False)
    typer.echo(json.dumps(facts["asked"], indent=2))


@jobs.add("cancel")
def cancel_one(
    file: File,
    job: _Id,
    reason: Annotated[str, option("Why: whoever asked reads it, and the audit trail has it.", metavar="TEXT")],
    as_json: Json = False,
) -> None:
    """Cancel a job that has not started, or waits for a review. Nothing is charged.

    A job that has started ends at its answer time: what was sampled cannot be taken back.

    Example: expost job cancel server.toml 0f1e2d3c4b5a69788796a5b4c3d2e1f0 --reason "asked by mistake"
    """
    from expost.service.governance import call_off
    from expost.service.jobs import Jobs

    config, database = open_service(file)
    before = Jobs.of(config, database).find(job)
    gone = call_off(Jobs.of(config, database), lambda path: account_of(config, path, served=False), job, reason)
    database.close()
    held = None if before is None else _held(before)
    free = "" if held is None else f", and {held} that was set aside is free from the next answer time"
    tell(as_json, _plain(_line(gone) | {"charged": _charged(gone)}), f"cancelled {job}: nothing was charged{free}")


def _line(job: ServiceJob) -> dict[str, Any]:
    """A job as its owner sees it in a list, and what is set aside for it: nothing of how far it is."""
    from expost.service.api.shapes import job_line

    return job_line(job) | {"held": None if job.delivered_at is not None else _held(job)}


def _plain(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts for other programs."""
    from expost.cost import Cost

    return {name: value.to_json() if isinstance(value, Cost) else value for name, value in facts.items()}


def _short(moment: str | None) -> str:
    return "" if moment is None else f"{moment[:19].replace('T', ' ')} UTC"


def _held(job: ServiceJob) -> Cost | None:
    from expost.service.jobs import Held

    return None if job.held is None else Held.of_text(job.held).charge.cost


def _charged(job: ServiceJob) -> Cost | None:
    from expost.service.results import charged_in

    return None if job.delivered_at is None or job.result is None else charged_in(job.result)


def _why(job: ServiceJob) -> str | None:
    """Why it was not answered, if it was not."""
    problem = None if job.delivered_at is None or job.result is None else json.loads(job.result)["problem"]
    return None if problem is None else str(problem["detail"])
