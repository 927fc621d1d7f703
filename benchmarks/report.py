"""What the benchmarks share: a row, a table, a file of results. Run alone, it writes the tables into the docs."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PEERS = ROOT / "benchmarks" / "peers"


@dataclass(frozen=True)
class Row:
    """One comparison. ``ratio`` says how we compare with the peer; ``holds`` whether it reaches the goal."""

    name: str
    ours: float
    peer: float
    unit: str
    ratio: float
    goal: str
    holds: bool


def at_least(name: str, ours: float, peer: float, unit: str, ratio: float, goal: float) -> Row:
    """A ratio that should be large."""
    return Row(name, ours, peer, unit, ratio, f"≥ {goal:g}", ratio >= goal)


def at_most(name: str, ours: float, peer: float, unit: str, ratio: float, goal: float) -> Row:
    """A ratio that should be small."""
    return Row(name, ours, peer, unit, ratio, f"≤ {goal:g}", ratio <= goal)


def peer(environment: str, script: str, *arguments: object) -> Any:
    """Run a peer's script in the virtual environment that the Makefile built for it; it prints JSON."""
    python = ROOT / ".venvs" / environment / "bin" / "python"
    command = [str(python), str(PEERS / script), *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def written(value: float, digits: int) -> str:
    """A number with that many significant digits, and commas from a thousand on."""
    return f"{float(f'{value:.{digits}g}'):,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| what | ours | peer | unit | ratio | goal | |", "|---|---:|---:|---|---:|---:|---|"]
    lines += [
        f"| {row.name} | {written(row.ours, 4)} | {written(row.peer, 4)} | {row.unit} | {written(row.ratio, 3)} | "
        f"{row.goal} | {'holds' if row.holds else '**does not hold**'} |"
        for row in rows
    ]
    return "\n".join(lines)


def report(subject: str, rows: Sequence[Row]) -> None:
    """Print the table and keep it in benchmarks/results."""
    print(f"\n{subject}\n\n{table(rows)}\n")
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = [asdict(row) for row in rows]
    (RESULTS / f"{subject}.json").write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")


def rows_of(subject: str) -> list[Row]:
    """The last result of a subject."""
    return [Row(**row) for row in json.loads((RESULTS / f"{subject}.json").read_text())]


def filled(readme: str) -> str:
    """The README with the first row of each subject, and what misses its goal, between `<!-- benchmarks:… -->`."""
    everything = [row for results in sorted(RESULTS.glob("*.json")) for row in rows_of(results.stem)]
    reached = sum(row.holds for row in everything)

    def fill(mark: re.Match[str]) -> str:
        subjects = mark[1].split(",")
        first = [rows_of(subject)[0] for subject in subjects]
        missed = [row for subject in subjects for row in rows_of(subject) if not row.holds and row not in first]
        said = f"{reached} of {len(everything)} comparisons reach their goals. The first of each subject"
        said += ", and those here that do not:" if missed else ":"
        return f"<!-- benchmarks:{mark[1]} -->\n{said}\n\n{table(first + missed)}\n<!-- /benchmarks -->"

    return re.sub(r"<!-- benchmarks:([\w,]+) -->.*?<!-- /benchmarks -->", fill, readme, flags=re.DOTALL)


def write_page() -> None:
    """Put the last result of every subject into docs/benchmarks.md, with date and machine."""
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    page = [
        "# Benchmarks",
        "",
        "Ratios of ours to a peer on the same work in one run; `make bench` repeats them all, "
        "`make bench ONLY=ledger` one subject.",
        "",
        f"Last written on {datetime.now(UTC):%Y-%m-%d}, on {machine}.",
    ]
    for results in sorted(RESULTS.glob("*.json")):
        page += ["", f"## {results.stem}", "", table(rows_of(results.stem))]
    (ROOT / "docs" / "benchmarks.md").write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    write_page()
    readme = ROOT / "README.md"
    readme.write_text(filled(readme.read_text()))
    sys.stdout.write("docs/benchmarks.md, README.md\n")
