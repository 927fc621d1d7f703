"""`expost paper`: the paper's figures and tables, computed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from expost.cli.console import err, guarded, out
from expost.cli.tables import document, table


@guarded
def paper(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where plots, data and the comparison go.")] = Path(
        "paper"
    ),
    runs: Annotated[int, typer.Option(help="How often Figure 1 is simulated for each number of large entries.")] = 200,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead, for other programs.")] = False,
) -> None:
    """Recompute the paper, and say what differs and why.

    Every figure and table, and the numbers in the text, as JSON, PNG and SVG; comparison.md has the table. Takes
    about a minute, and needs expost[plots,accounting].

    Example: expost paper results
    """
    from expost.paper.compare import recompute
    from expost.paper.comparison import VERDICTS, noted

    with err.status("…") as status:
        comparisons = recompute(folder, runs=runs, progress=lambda what: status.update(f"{what} …"))
    if as_json:
        document([comparison._asdict() for comparison in comparisons])
        return
    rows, notes = noted(comparisons)
    table(
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
