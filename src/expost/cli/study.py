"""`expost plan`, `run` and `report`."""

from __future__ import annotations

import sys
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from expost.cli.completion import page_files, reported_files, study_files
from expost.cli.console import FAILED, INVALID, Json, argument, err, fail, option, out, short, write, writing
from expost.cli.tables import print_json, seen
from expost.errors import InvalidValue
from expost.mentions import printable

if TYPE_CHECKING:
    from expost.study import Outcome, Plan, Result
    from expost.study.model import Question, Study
    from expost.study.run import Receipt

StudyFile = Annotated[Path, argument("STUDY", "A study file (TOML).", autocompletion=study_files)]


def _wanted(given: str) -> tuple[str, float]:
    """A question and a wanted ±, as typed."""
    name, _, number = given.rpartition("=")
    try:
        error = float(number)
    except ValueError:
        error = nan
    if not name or not 0 < error < inf:
        raise InvalidValue(f"--for-accuracy is a question and a wanted ±, such as old=20, got {given!r}")
    return name, error


def plan(
    study: StudyFile,
    for_accuracy: Annotated[
        list[str] | None, option("Show the ε that a wanted ± needs.", metavar="QUESTION=ERROR")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a study's costs, its accuracy, and what would not fit.

    Reads the names of columns and their stated types, but no value, and charges nothing. ± is what noise moves an
    answer by at most, in 95 of 100 cases.

    Example: expost plan visits.toml --for-accuracy old=20
    """
    from expost.study import epsilon_for, plan_study, read_study

    asked = read_study(study)
    _warn_of_ledger(asked)
    _warn_of_encoding(asked)
    wanted = dict(map(_wanted, for_accuracy or []))
    planned = plan_study(asked)
    found = {name: epsilon_for(asked, name, error) for name, error in wanted.items()}
    if as_json:
        needed = {name: {"epsilon": epsilon, "error": accuracy.error} for name, (epsilon, accuracy) in found.items()}
        print_json({**_plan_json(planned), **({"for_accuracy": needed} if found else {})})
    else:
        _show_plan(planned)
    for name, (epsilon, accuracy) in found.items() if not as_json else ():
        out.print(f"{name}: epsilon = {epsilon:g} is enough for {accuracy}", soft_wrap=True)
    if not planned.fits:
        raise typer.Exit(INVALID)


def run(
    study: StudyFile,
    as_json: Json = False,
    record: Annotated[Path | None, option("Where to write the record; by default beside the study.")] = None,
    report: Annotated[Path | None, option("Also write the report, an HTML page.", autocompletion=page_files)] = None,
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="Ask made-up rows instead: free, and no value is read.")
    ] = False,
) -> None:
    """Ask a study's questions: answers with error bars, and a receipt.

    Running it again samples nothing twice: stored answers come from the ledger, free. A rehearsal makes rows up from
    the schema and the bounds, charges nothing, and keeps no record unless --record says where.

    Example: expost run visits.toml --report visits.html
    """
    from expost.study import read_study, record_of, report_html, run_study, write_record
    from expost.study.record import record_path, record_text
    from expost.study.report import REHEARSED

    asked = read_study(study)
    kept_at = record if record or rehearse else record_path(study)
    for path in (kept_at, report):
        if path is not None:
            _check_writable(path)
    if not rehearse:
        _warn_of_ledger(asked)
        _warn_of_versions(asked)
        _warn_of_encoding(asked)
    if rehearse:
        err.print(Text(REHEARSED, style="bold yellow"), soft_wrap=True)
    elif asked.ledger.url == "memory:":
        err.print(
            "memory: keeps no ledger. Every run spends a budget of its own, and nothing adds them up: for trials only."
        )
    said: dict[str, str] = {}
    with err.status(Text(printable(f"reading {study}"))) as status:

        def progress(question: Question, outcome: Outcome | None) -> None:
            if outcome is None:
                status.update(Text(printable(f"asking {question.name}: {question.label}")))
            elif not as_json:
                status.stop()  # the spinner and answers may share a terminal
                said[outcome.question.name] = _notice(outcome)
                out.print(_line(outcome), soft_wrap=True)
                if outcome.how:
                    out.print(_how(outcome))
                status.start()

        result = run_study(asked, progress=progress, rehearse=rehearse)
    kept = record_of(result)
    if as_json:
        sys.stdout.write(seen(record_text(kept)))
    else:
        for outcome in result.outcomes:
            if _notice(outcome) != said.get(outcome.question.name, ""):  # what later answers tell of it
                out.print(Text(f"beware, {outcome.question.name}: {_notice(outcome)}", style="yellow"), soft_wrap=True)
        _show_result(result)
    if kept_at is not None:
        write_record(kept, kept_at)
    if report is not None:
        write(report, report_html(kept))
        if not as_json:
            out.print(f"report: {report}", soft_wrap=True)
    if result.error is not None:
        raise typer.Exit(fail(result.error))
    if any(outcome.state in ("lost", "not possible") for outcome in result.outcomes):
        raise typer.Exit(FAILED)


def report(
    study: Annotated[Path, argument("STUDY", "A study that was run, or its record.", autocompletion=reported_files)],
    output: Annotated[Path | None, option("Where to write it; by default beside the record.", "--output", "-o")] = None,
) -> None:
    """Write the report of the last run, one HTML page.

    It has answers, plots, the receipt and the guarantee, in one file without links to others.

    Example: expost report visits.toml -o visits.html
    """
    from expost.study import read_record, report_html
    from expost.study.parse import refuse_data
    from expost.study.record import record_path

    if study.suffix != ".json":
        refuse_data(study)
    source = study if study.suffix == ".json" else record_path(study)
    path = output or source.with_name(source.name.removesuffix(".run.json").removesuffix(".json") + ".html")
    write(path, report_html(read_record(source)))
    out.print(f"{path}", soft_wrap=True)


# ---- how things look

_MARKS = {"answered": ("✓", "green"), "withheld": ("○", "yellow"), "skipped": ("–", "yellow")}
_DROWNED = ("≈", "yellow")


def _warn_of_ledger(study: Study) -> None:
    """Warn if the record of the last run names a ledger that is gone, or cannot be read: that stops nothing."""
    from expost.study import read_record
    from expost.study.record import noted_ledger, record_path
    from expost.study.sources import ledger_is_gone

    path = record_path(study.file)
    if not path.exists():
        return
    try:
        noted = noted_ledger(read_record(path))
    except InvalidValue:
        gone = f"{path} is not the record of a run, and is ignored; expost run writes it anew"
    else:
        gone = "" if noted is None else ledger_is_gone(study, *noted)
    if gone:
        err.print(Text(f"beware: {gone}", style="yellow"), soft_wrap=True)


def _warn_of_versions(study: Study) -> None:
    """Warn if answers are stored about another version of the data."""
    from expost.study.key import other_versions
    from expost.study.plan import other_version
    from expost.study.sources import find_ledger

    ledger = find_ledger(study)
    for name, versions in ({} if ledger is None else other_versions(study, ledger)).items():
        err.print(Text(f"beware: {name!r} {other_version(study, versions)}", style="yellow"), soft_wrap=True)


def _warn_of_encoding(study: Study) -> None:
    """Warn if a study asks for letters beyond ASCII, and does not say how its CSV file is written.

    Looks at the study alone: whether the file has a byte that is not UTF-8 is a fact about somebody in it.
    """
    from expost.study.sources import unsaid_encoding

    unsaid = unsaid_encoding(study)
    if unsaid:
        err.print(Text(f"beware: {unsaid}", style="yellow"), soft_wrap=True)


def _check_writable(path: Path) -> None:
    """Before anything is charged. Only trying tells: permissions do not know of read-only disks."""
    if not path.absolute().parent.is_dir():
        raise InvalidValue(f"{path.name} cannot be written: there is no folder {path.parent}")
    is_new = not path.exists()
    with writing(path):
        path.open("a").close()
    if is_new:
        path.unlink()


def _show_plan(planned: Plan) -> None:
    table = Table("question", "kind", "at worst", "at best", "± at 95 %", "", box=None, pad_edge=False)
    for line in planned.lines:
        costs = ["nothing remains" if cost is None else short(cost, up=True) for cost in (line.worst, line.best)]
        condition = f"if {line.question.only_if.text}" if line.question.only_if else ""
        table.add_row(line.question.name, line.question.kind, *costs, Text(line.expected), Text(line.why or condition))
    out.print(Text(planned.study.title, style="bold"))
    out.print(table)
    for note in planned.about_errors:
        out.print(Text(note), soft_wrap=True)
    out.print(
        f"\n{planned.study.spends_from}: limit {planned.study.limit} · remaining now {planned.before} · remaining "
        f"afterwards: {short(planned.worst, up=False)} at worst, {short(planned.best, up=False)} at best",
        soft_wrap=True,
    )
    if planned.which_fits_more:
        out.print(planned.which_fits_more, soft_wrap=True)


def _plan_json(planned: Plan) -> dict[str, Any]:
    return {
        "title": planned.study.title,
        "ledger": planned.study.spends_from,
        "limit": str(planned.study.limit),
        "remaining": str(planned.before),
        "questions": [
            {
                "name": line.question.name,
                "kind": line.question.kind,
                "worst": None if line.worst is None else str(line.worst),
                "best": None if line.best is None else str(line.best),
                **line.error_json(),
                "fit": line.fit,
                "why": line.why,
            }
            for line in planned.lines
        ],
        "fits": planned.fits,
        "takes": {accounting: share._asdict() for accounting, share in planned.takes.items()},
    }


def _line(outcome: Outcome) -> Text:
    """One question as it ended."""
    answer = outcome.answer
    drowned = answer is not None and answer.drowned
    mark, style = _DROWNED if drowned else _MARKS.get(outcome.state, ("✗", "red"))
    line = answer.text if answer is not None else f"{outcome.state}: {outcome.why}"
    notice = f"\n    beware: {_notice(outcome)}" if _notice(outcome) else ""
    return Text.assemble((f"{mark} ", style), (outcome.question.name, "bold"), f"  {line}", (notice, "yellow"))


def _notice(outcome: Outcome) -> str:
    return "" if outcome.answer is None else outcome.answer.notice


def _how(outcome: Outcome) -> Padding:
    """How its answer was made, below it."""
    line = " · ".join(f"{name}: {text}" for name, text in outcome.how.items())
    return Padding(Text(line, style="dim"), (0, 0, 0, 4))


def _costs(receipt: Receipt) -> tuple[str, ...]:
    """What was reserved, charged and refunded. Noise that has no ε shows its ρ."""
    used = () if receipt.release is None else receipt.release.entry.used
    if used and used[0].is_noise:
        return tuple(map(str, used))
    return short(receipt.reserved, up=True), short(receipt.charged, up=True), short(receipt.refunded, up=False)


def _counts(result: Result) -> str:
    """How many questions have answers; and what refunds bought, if they bought something."""
    from expost.study.report import WORST_CASE

    asked, listed = result.asked, len(result.outcomes)
    parts = {"answered": result.answered, "withheld": asked - result.answered, "without an answer": listed - asked}
    shown = ", ".join(f"{number} {what}" for what, number in parts.items() if number or what == "answered")
    spared = f"\n{WORST_CASE.format(fits=result.classic, asked=asked)}" if result.classic < asked else ""
    return f"{listed} question{'s' * (listed != 1)}: {shown}.{spared}"


def _show_result(result: Result) -> None:
    from expost.ledger.statement import PRICE_HEADING

    prices = [PRICE_HEADING] if len(result.ledger.meters) > 1 else []
    table = Table("#", "question", "reserved", "charged", "refunded", *prices, box=None, pad_edge=False)
    for outcome in result.outcomes:
        for place, receipt in enumerate(outcome.receipts):
            again = f" ({place + 1})" if place else ""
            kept = ", lost" if outcome.state == "lost" else ", stored" if receipt.stored else ""
            what = Text(outcome.question.name + again + kept)
            costs = _costs(receipt)
            price = "" if receipt.amounts is None else f"{receipt.amounts.renyi / 1e12:.4g}"
            table.add_row(str(receipt.entry), what, *costs, *[price for _ in prices])
    ledger = result.ledger
    name = f"{ledger.name} (rehearsal)" if result.rehearsal else ledger.name
    out.print()
    out.print(table)
    out.print(
        f"\n{name}: limit {ledger.limit} · spent {short(ledger.spent, up=True)} · "
        f"remaining {short(ledger.remaining, up=False)}\n"
        f"{_counts(result)}",
        soft_wrap=True,
    )
