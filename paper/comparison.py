"""One thing that the paper says, against what is computed here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

Verdict: TypeAlias = Literal["agrees", "sharper", "settled", "differs"]
VERDICTS: dict[Verdict, str] = {
    "agrees": "the same, to the digits shown",
    "sharper": "what the paper says holds, and something better does too",
    "settled": "the paper leaves it open",
    "differs": "what the paper says is not so",
}


class Comparison(NamedTuple):
    """A figure's point, a table's cell or a sentence, in the paper and as computed.

    The source of the paper has no numbers behind its figures: there, ``paper`` is what the formulas of its text give.
    """

    place: str
    what: str
    paper: str
    computed: str
    verdict: Verdict
    why: str = ""
    """Why they differ; never empty where they do."""


def close(place: str, what: str, paper: float, computed: float, *, otherwise: Verdict, why: str) -> Comparison:
    """Two numbers: they agree if no more than one in a thousand apart, else there is a reason."""
    agree = abs(paper - computed) <= 1e-3 * abs(paper)
    return Comparison(
        place, what, f"{paper:.4g}", f"{computed:.4g}", "agrees" if agree else otherwise, "" if agree else why
    )


def noted(comparisons: Iterable[Comparison]) -> tuple[list[tuple[Comparison, int | None]], list[str]]:
    """Each comparison with the number of its note, and the notes: one that several share is told once."""
    rows, notes = [], list[str]()
    for comparison in comparisons:
        if comparison.why and comparison.why not in notes:
            notes.append(comparison.why)
        rows.append((comparison, notes.index(comparison.why) + 1 if comparison.why else None))
    return rows, notes


def markdown(comparisons: Iterable[Comparison]) -> str:
    """The table, and the notes under it."""
    rows, notes = noted(comparisons)
    lines = ["| where | what | paper | computed | | note |", "|---|---|---:|---:|---|---:|"]
    for row, note in rows:
        cells = [row.place, row.what, row.paper, row.computed, row.verdict, "" if note is None else str(note)]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    lines += ["", *(f"{number}. {text}" for number, text in enumerate(notes, 1))]
    return "\n".join(lines) + "\n"
