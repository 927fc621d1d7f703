"""Tables: as wide as the terminal, or as wide as they are where another program reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from expost.cli.console import console, out
from expost.mentions import printable

_WIDEST = 100_000  # characters of a line that no person reads


def print_table(headings: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> None:
    """Print rows under headings; the columns in ``right`` are flush right. Nothing in a cell is markup, or ends it."""
    numbers = set(right)
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for i, heading in enumerate(headings):
        grid.add_column(heading, justify="right" if i in numbers else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(printable(cell)) for cell in row))
    if out.is_terminal:
        out.print(grid)
    else:
        whole = out.measure(grid, options=out.options.update(max_width=_WIDEST)).maximum
        console(width=whole).print(grid)


def print_json(value: Any) -> None:
    """Print one JSON document."""
    typer.echo(_json(value))


def tell(as_json: bool, facts: Any, text: str) -> None:
    """Print facts for other programs, or text for people."""
    if as_json:
        print_json(facts)
    else:
        out.print(text, soft_wrap=True)


def print_json_rows(rows: Iterable[Any], facts: dict[str, Any] | None = None) -> None:
    """Print one JSON document as its rows come: a list, or facts that end with ``rows``. Memory does not grow."""
    margin, end = ("  ", "]") if facts is None else ("    ", "  ]\n}")
    typer.echo("[" if facts is None else _json(facts)[:-2] + ',\n  "rows": [', nl=False)
    between = "\n"
    for row in rows:
        typer.echo(between + margin + _json(row).replace("\n", f"\n{margin}"), nl=False)
        between = ",\n"
    typer.echo(end.lstrip() if between == "\n" else f"\n{end}")


def _json(value: Any) -> str:
    """JSON to read: what can be seen stands there as it is, all else as an escape of JSON."""
    return seen(json.dumps(value, indent=2, ensure_ascii=False))


def seen(text: str) -> str:
    """The same JSON, without characters that a terminal would obey."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text)
