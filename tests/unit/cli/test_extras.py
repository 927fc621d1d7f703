"""Every entry point names the extra that it lacks."""

import subprocess
import sys
from pathlib import Path

import pytest

from studies import COUNT, write_study

pytestmark = pytest.mark.slow
WITHOUT = """
import sys
for name in sys.argv[1].split(","):
    sys.modules[name] = None
exec(sys.argv[2])
"""
COMMANDS = """
from expost.cli import main
for command in sys.argv[3:]:
    sys.argv[1:] = command.split()
    try:
        main()
    except SystemExit as ended:
        print(ended.code if isinstance(ended.code, str) else "", file=sys.stderr)
        assert ended.code
    print("----", file=sys.stderr)
sys.exit(1)
"""
DATA = "need duckdb: pip install 'expost[data]'"


def without(missing: str, code: str, *arguments: str) -> list[str]:
    """The last lines that each part says."""
    done = subprocess.run([sys.executable, "-c", WITHOUT, missing, code, *arguments], capture_output=True, text=True)
    assert done.returncode == 1
    return [part.strip().splitlines()[-1] for part in done.stderr.removesuffix("----\n").split("----\n")]


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (
            "duckdb",
            {
                "init people.csv -o new.toml": f"error: studies {DATA}",
                "plan study.toml": f"error: tables {DATA}",
                "run study.toml --rehearse": f"error: tables {DATA}",
            },
        ),
        (
            "psycopg",
            {
                "ledger show postgresql://h/d x": (
                    "error: PostgreSQL ledgers need psycopg: pip install 'expost[postgres]'"
                )
            },
        ),
        ("matplotlib", {"audit Coin --plot x.png": "error: plots need matplotlib: pip install 'expost[plots]'"}),
        ("rich", {"plan study.toml": "the command line needs rich: pip install 'expost[cli]'"}),
        ("typer", {"--version": "the command line needs typer: pip install 'expost[cli]'"}),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, said: dict[str, str]) -> None:
    """Each says what it lacks; those that lack the same in one process, for its imports take a second."""
    write_study(tmp_path, COUNT)
    monkeypatch.chdir(tmp_path)
    assert without(missing, COMMANDS, *said) == list(said.values())


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import expost; expost.read('x.csv', unit='row', neighbours='substitute')", "tables need duckdb"),
        ("import expost; expost.Frame(('a',), ()).to_polars()", "frames need polars: pip install polars"),
        ("import expost; expost.Frame(('a',), ()).to_arrow()", "need pyarrow: pip install 'expost[frames]'"),
        ("from expost.learn import PublicScaler", "estimators need scikit-learn: pip install 'expost[learn]'"),
    ],
)
def test_python(code: str, said: str) -> None:
    assert said in without("duckdb,polars,pyarrow,sklearn", code)[-1]
