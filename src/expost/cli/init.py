"""`expost init`: a first study. At a terminal it asks for what was not said; elsewhere it takes what it proposes."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from math import isinf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from expost.cli.completion import data_files, study_files
from expost.cli.console import argument, err, option, out, write
from expost.errors import AlreadyExists, InvalidValue
from expost.guarantee import Neighbours

if TYPE_CHECKING:
    from expost.study.start import Choices, KnownBounds, Looked

_Answer = TypeVar("_Answer")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_MOST_ASKED = 8
"""Columns whose bounds are asked for."""


def init(
    data: Annotated[str, argument("DATA", "A CSV, Parquet or .duckdb file.", autocompletion=data_files)],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Where to write the study.", autocompletion=study_files),
    ] = Path("study.toml"),
    unit: Annotated[
        str | None,
        option("The column that says whose rows they are; row if each is somebody else's.", metavar="COLUMN"),
    ] = None,
    rows: Annotated[int | None, option("The most rows of one unit that count.", metavar="NUMBER")] = None,
    neighbours: Annotated[
        Neighbours | None,
        option("Whether how many there are is private (add-remove), or public (substitute)."),
    ] = None,
    epsilon: Annotated[str | None, option("The limit's ε.", metavar="NUMBER")] = None,
    bounds: Annotated[
        list[str] | None, option("Bounds of a column that are known without this data.", metavar="COLUMN=LOW,HIGH")
    ] = None,
    table: Annotated[str | None, typer.Option(help="The table of a .duckdb file.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="The character between the fields of a CSV file.")] = None,
    decimal: Annotated[str | None, typer.Option(help="The decimal sign of a CSV file's numbers.")] = None,
    encoding: Annotated[str | None, typer.Option(help="How a CSV file is written, such as latin-1.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing study.")] = False,
) -> None:
    """Write a commented study for a data file, from the names and types of its columns.

    At a terminal it asks whose rows they are, and what else is not said here. Elsewhere it takes what it proposes.
    A CSV file states no types: they are guessed from its values, written into the study, and public from then on.
    Bounds of columns are not guessed: give them here, or fill them in.

    Example: expost init visits.csv -o visits.toml --unit patient --rows 5 --bounds age=0,110
    """
    from expost.study.start import Choices, Looked, is_unicode
    from expost.study.template import BEWARE, study_text

    if output.exists() and not force:
        there = AlreadyExists("file", str(output))
        there.add_note("--force overwrites it")
        raise there
    known = dict(map(_bounds, bounds or []))
    looked = Looked.at(data, table=table, delimiter=delimiter, decimal=decimal, encoding=encoding)
    said: dict[str, Any] = {
        "unit": unit, "rows": rows, "neighbours": neighbours, "epsilon": epsilon, "bounds": known or None,
    }  # fmt: skip
    made = Choices.of(looked, **said)
    if sys.stdin.isatty() and sys.stderr.isatty():  # never asks a script, which would wait for ever
        made = _asked(looked, said)
    text = study_text(made, output)
    write(output, text)
    _tell(made)
    if looked.types:
        out.print(
            f"The types in [data.schema] were guessed from the values of {data}. They are public from now on: check "
            "them.",
            soft_wrap=True,
        )
    for line in text.splitlines():
        if line.startswith(BEWARE):
            err.print(line.removeprefix("# "), soft_wrap=True)
    if encoding is None and not is_unicode(data):
        err.print(
            f"Beware: not all of {data} is UTF-8, and bytes that are not are read as question marks. Name its "
            "encoding: expost init --encoding latin-1, for example.",
            soft_wrap=True,
        )
    typed = shlex.quote(str(output))
    out.print(f"{output} is written. Check names and numbers, then: expost plan {typed}", soft_wrap=True)


def _tell(made: Choices) -> None:
    """What was chosen, and why."""
    for name, why in made.told():
        out.print(f"{'ε' if name == 'epsilon' else name:<10}  {why}", soft_wrap=True)


# ---- asking at a terminal


def _asked(looked: Looked, said: dict[str, Any]) -> Choices:
    """The choices, asked for one by one unless they were made on the command line."""
    from expost.study.start import Choices, most_rows_of, proposed_neighbours, stated_epsilon, unit_column

    answers = dict(said)
    if said["unit"] is None:
        columns = ", ".join(looked.schema)
        err.print(f"The columns are {columns}.", soft_wrap=True)
        answers["unit"] = _ask(
            "Whose rows are they? A column, or row if each is somebody else's",
            looked.somebody or "row",
            lambda typed: unit_column(typed, looked) or "row",
        )
    column = unit_column(answers["unit"], looked)
    if column is not None and said["rows"] is None:
        answers["rows"] = _ask(
            f"At most how many rows of one {column} count? Noise grows with it", str(most_rows_of(None, column)),
            lambda typed: most_rows_of(_whole(typed), column),
        )  # fmt: skip
    if said["neighbours"] is None:
        many = "how many rows there are" if column is None else f"how many different values of {column} there are"
        answers["neighbours"] = _ask(
            f"Is {many} private (add-remove), or public (substitute)?", proposed_neighbours(column), _neighbours
        )
    if said["epsilon"] is None:
        answers["epsilon"] = _ask("ε, for the whole life of the ledger", "1.0", stated_epsilon)
    if said["bounds"] is None:
        answers["bounds"] = _asked_bounds(looked.amounts(column))
    return Choices.of(looked, **answers)


def _asked_bounds(columns: list[str]) -> KnownBounds:
    """Bounds of columns, as far as somebody knows them."""
    if columns:
        err.print(
            "Which values do you expect, from what is known without this data? As in 0,110; nothing if that is not "
            "known.",
            soft_wrap=True,
        )
    typed = {column: _ask(f"Bounds of {column}", "", _pair) for column in columns[:_MOST_ASKED]}
    return {column: pair for column, pair in typed.items() if pair is not None}


def _ask(question: str, proposed: str, read: Callable[[str], _Answer]) -> _Answer:
    """Ask until the answer can be read."""

    def checked(typed: str) -> _Answer:
        try:
            return read(typed.strip())
        except InvalidValue as error:
            raise typer.BadParameter(str(error)) from None

    found: _Answer = typer.prompt(
        question, default=proposed, show_default=bool(proposed), err=True, value_proc=checked, prompt_suffix=" "
    )
    return found


def _whole(typed: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", typed):
        raise InvalidValue(f"a whole number is wanted, such as 10, got {typed!r}")
    return int(typed)


def _neighbours(typed: str) -> Neighbours:
    answers: dict[str, Neighbours] = {"add-remove": "add-remove", "private": "add-remove"}
    answers |= {"substitute": "substitute", "public": "substitute"}
    if typed.lower() not in answers:
        raise InvalidValue(f"answer add-remove or substitute, got {typed!r}")
    return answers[typed.lower()]


def _pair(typed: str) -> tuple[float, float] | None:
    """Two numbers, the lowest first; None if nothing was typed."""
    if not typed:
        return None
    apart = re.fullmatch(rf"({_NUMBER})\s*(?:,|;|-|–|to|\s)\s*({_NUMBER})", typed)
    found = None if apart is None else _low_and_high([*apart.groups()])
    if found is None:
        raise InvalidValue(f"bounds are two numbers, the lowest first, such as 0,110, got {typed!r}")
    return found


def _bounds(given: str) -> tuple[str, tuple[float, float]]:
    """A column and its bounds, as an option: the column may contain any character."""
    column, _, pair = given.rpartition("=")
    found = _low_and_high(pair.split(","))
    if not column or found is None:
        raise InvalidValue(f"--bounds is a column and two numbers, the lowest first, such as age=0,110, got {given!r}")
    return column, found


def _low_and_high(typed: list[str]) -> tuple[float, float] | None:
    """Two finite numbers, the lowest first; whole ones without a point."""
    try:
        low, high = map(float, typed)
    except ValueError:
        low = high = nan
    if not low < high or isinf(low) or isinf(high):
        return None
    return (int(low) if low.is_integer() else low), (int(high) if high.is_integer() else high)
