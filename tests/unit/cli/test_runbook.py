"""The runbook is executed: every command, in a shell, with what breaks before it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import expost as xp
from archive import Archive
from transcripts import replay

pytestmark = pytest.mark.slow
PAGE = Path(__file__).resolve().parents[3] / "docs" / "runbook.md"
GUARANTEE = xp.Guarantee({"small": 0.25, "large": 0.5})


class Operator:
    """Types what the page says. A full disk and a standby that takes over are made here."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder, self._url = folder, url
        program = 'from expost.cli.main import app; app(prog_name="expost")'
        self._shell = (
            f'expost() {{ {sys.executable} -B -c \'{program}\' "$@"; }}; python() {{ {sys.executable} "$@"; }}; '
        )
        books = xp.Ledger.create(url, "patients", epsilon=3, neighbours="add-remove", unit="patient")
        books.reserve(GUARANTEE).settle("small")
        self._archive = Archive(url)
        books.reserve(GUARANTEE).settle("large")
        books._store._engine.close()  # type: ignore[attr-defined]
        (folder / "filling").touch()

    def run(self, command: str) -> str:
        if command == "pg_ctl promote":
            self._archive.restore()
            return ""
        full = "ulimit -f 0; " * (" bob " in command and "filling" not in command)
        done = subprocess.run(
            ["bash", "-c", self._shell + full + command],
            cwd=self._folder, env={**os.environ, "BOOKS": self._url, "COLUMNS": "100", "TERM": "dumb"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, check=False,
        )  # fmt: skip
        said = done.stdout.replace(f"{self._folder}/", "").replace(os.environ["XDG_STATE_HOME"], "~/.local/state")
        return re.sub(r"\d{4}-\d\d-\d\d \d\d:00", "2027-03-01 09:00", said)


def test_the_runbook(tmp_path: Path, postgres_url: Callable[[], str]) -> None:
    assert replay(PAGE, tmp_path, Operator(tmp_path, postgres_url()).run) >= 30
