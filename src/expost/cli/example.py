"""`expost example`: made-up data as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from expost.cli.console import argument, option, out, write, writing
from expost.errors import AlreadyExists, InvalidValue, MissingDependency
from expost.mentions import printable


def example(
    name: Annotated[str, argument("NAME", "Which data: visits.")],
    output: Annotated[
        Path | None, option("Where to write it, as .csv or .parquet; by default NAME.csv.", "--output", "-o")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write made-up data to try things on.

    Nobody is in it. The data named visits has 20,000 visits of 8,000 patients to a hospital, messy as real data is.

    Example: expost example visits -o visits.csv
    """
    from expost.examples import example as path_of

    source = path_of(name)
    path = output or Path(f"{name}.csv")
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InvalidValue(f"examples are written as .csv or .parquet, got {path}: choose another name")
    if path.exists() and not force:
        there = AlreadyExists("file", str(path))
        there.add_note("--force overwrites it")
        raise there
    if path.suffix.lower() == ".csv":
        write(path, _as_csv(source))
    else:
        with writing(path):
            path.write_bytes(source.read_bytes())
    out.print(f"{printable(str(path))} is written. Next: expost init {printable(str(path))}", soft_wrap=True)


def _as_csv(source: Path) -> str:
    """The rows of a Parquet file as CSV; what is missing is empty."""
    import csv
    import io

    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise MissingDependency("examples in CSV", str(error.name), "data") from None
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    with duckdb.connect() as connection:
        rows = connection.read_parquet(str(source))
        writer.writerow(rows.columns)
        writer.writerows(rows.fetchall())
    return text.getvalue()
