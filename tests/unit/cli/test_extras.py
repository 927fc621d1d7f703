"""Every entry point names the extra that it lacks."""

import subprocess
import sys
from pathlib import Path

import pytest

from studies import COUNT, write_study

WITHOUT = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
exec(sys.argv[2])
"""
COMMAND = "sys.argv[1:] = sys.argv[3:]; from expost.cli import main; main()"


def without(missing: str, code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", WITHOUT, missing, code, *arguments], capture_output=True, text=True)
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("missing", "arguments", "said"),
    [
        ("duckdb", ["init", "people.csv", "-o", "new.toml"], "error: studies need duckdb: pip install 'expost[data]'"),
        ("duckdb", ["plan", "study.toml"], "error: tables need duckdb: pip install 'expost[data]'"),
        ("duckdb", ["run", "study.toml", "--rehearse"], "error: tables need duckdb: pip install 'expost[data]'"),
        (
            "psycopg",
            ["ledger", "show", "postgresql://h/d", "x"],
            "error: PostgreSQL ledgers need psycopg: pip install 'expost[postgres]'",
        ),
        ("rich", ["plan", "study.toml"], "the command line needs rich: pip install 'expost[cli]'"),
        ("typer", ["--version"], "the command line needs typer: pip install 'expost[cli]'"),
    ],
)
def test_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, arguments: list[str], said: str
) -> None:
    write_study(tmp_path, COUNT)
    monkeypatch.chdir(tmp_path)
    assert without(missing, COMMAND, *arguments) == said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import expost; expost.read('x.csv', unit='row', neighbours='substitute')", "tables need duckdb"),
        ("from expost.learn import PublicScaler", "estimators need scikit-learn: pip install 'expost[learn]'"),
    ],
)
def test_python(code: str, said: str) -> None:
    assert said in without("duckdb,sklearn", code)
