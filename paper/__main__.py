"""`python -m paper`: the paper's figures and tables, computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from expost.cli.console import err, guarded, out
from expost.cli.tables import print_json, print_table
from paper import compare
from paper.comparison import VERDICTS, Comparison, noted

app = typer.Typer(name="paper", rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
@guarded
def main(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where plots, data and the comparison go.")] = Path(
        "build/paper"
    ),
    runs: Annotated[int, typer.Option(help="How often Figure 1 is simulated for each number of large entries.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead, for other programs.")] = False,
) -> None:
    """Recompute the paper, and say what differs and why.

    Every figure and table, and the numbers in the text, as JSON, PNG and SVG; comparison.md has the table. Takes
    about a minute.

    Example: python -m paper results
    """
    with err.status("…") as status:
        comparisons = compare.recompute(folder, runs=runs, progress=lambda what: status.update(f"{what} …"))
    show(comparisons, folder, as_json=as_json)


def show(comparisons: list[Comparison], folder: Path, *, as_json: bool) -> None:
    """Print what differs from the paper, and why."""
    if as_json:
        print_json([comparison._asdict() for comparison in comparisons])
        return
    rows, notes = noted(comparisons)
    print_table(
        ("where", "what", "paper", "computed", "", "note"),
        ((row.place, row.what, row.paper, row.computed, row.verdict, str(note or "")) for row, note in rows),
        right=(2, 3, 5),
    )
    counts = [(verdict, sum(row.verdict == verdict for row in comparisons)) for verdict in VERDICTS]
    out.print()
    for verdict, count in counts:
        out.print(f"{count:3} {verdict}: {VERDICTS[verdict]}", soft_wrap=True)
    out.print()
    for number, note in enumerate(notes, 1):
        out.print(f"{number:2}. {note}", soft_wrap=not out.is_terminal)
    out.print(f"\nPlots, data and this table: {folder}", soft_wrap=True)


if __name__ == "__main__":
    app(prog_name="python -m paper")
