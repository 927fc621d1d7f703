"""`expost answers`: what was published, from the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from expost.cli.completion import study_files
from expost.cli.console import Account, Json, argument, option, out, write
from expost.cli.tables import print_json, print_table
from expost.errors import AlreadyExists, InvalidValue

if TYPE_CHECKING:
    from expost.ledger import Ledger
    from expost.study.answers import PublishedAnswer
    from expost.study.model import Study


def list_answers(
    source: Annotated[str, argument("STUDY|URL", "A study file, or a ledger's address.", autocompletion=study_files)],
    name: Annotated[str | None, argument("NAME", "The ledger's name, after an address.")] = None,
    account: Account = None,
    csv: Annotated[Path | None, option("Write them as CSV.", "--csv", metavar="FILE")] = None,
    as_json: Json = False,
) -> None:
    """List what was published: every stored answer, free.

    Answers of questions that were edited or removed since are listed, too. Nothing is asked and nothing is charged.
    --csv and --json have a line for each number, with its error and its interval at 95 %.

    Example: expost answers visits.toml --csv visits-answers.csv
    """
    from expost.study.answers import as_csv, as_rows, published

    if csv is not None and csv.exists():
        raise AlreadyExists("file", str(csv))
    ledger, study = _source(source, name, account)
    found = published(ledger, study)
    if csv is not None:
        write(csv, as_csv(found))
    if as_json:
        print_json(as_rows(found))
    elif csv is not None:
        out.print(f"{len(found)} answers in {csv}", soft_wrap=True)
    else:
        print_table(("#", "question", "version", "answer", "charged", ""), map(_row, found), right=(0,))


def _source(source: str, name: str | None, account: str | None) -> tuple[Ledger, Study | None]:
    """The ledger or account, and the study if that was given."""
    from expost.cli.ledger import ledger_at
    from expost.study import read_study
    from expost.study.sources import stored_ledger

    if "://" in source:
        if name is None:
            raise InvalidValue("after an address comes the ledger's name: expost answers URL NAME")
        return ledger_at(source, name, account), None
    if name is not None or account is not None:
        raise InvalidValue("a study names its ledger and account itself: leave out NAME and --account")
    study = read_study(source)
    return stored_ledger(study), study


def _row(answer: PublishedAnswer) -> tuple[str, ...]:
    note = "not what the study asks now" if answer.current is False else ""
    return str(answer.entry), answer.question, answer.version, answer.text, str(answer.charged), note
