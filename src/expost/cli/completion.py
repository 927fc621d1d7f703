"""What shells offer where a file is typed: files of the right kind, and folders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def _files(*endings: str) -> Callable[[str], list[str]]:
    """Completes paths that have one of these endings, and folders on the way to them."""

    def complete(incomplete: str) -> list[str]:
        typed, _, begun = incomplete.rpartition("/")
        folder = Path(f"{typed}/" if incomplete.startswith("/") or typed else ".").expanduser()
        before = f"{typed}/" if "/" in incomplete else ""
        try:
            found = sorted(each for each in folder.iterdir() if each.name.startswith(begun))
        except OSError:
            return []
        shown = (each for each in found if begun.startswith(".") or not each.name.startswith("."))
        return [
            f"{before}{each.name}" + "/" * each.is_dir()
            for each in shown
            if each.is_dir() or each.name.lower().endswith(endings)
        ]

    return complete


study_files = _files(".toml")
"""Studies."""
reported_files = _files(".toml", ".run.json")
"""Studies, and records of their runs."""
data_files = _files(".csv", ".csv.gz", ".tsv", ".txt", ".parquet", ".pq", ".duckdb", ".db")
"""What ``read`` takes."""
page_files = _files(".html")
"""Reports."""
