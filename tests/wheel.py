"""The wheel as a user gets it: built, put into an empty environment, used from another folder.

``python tests/wheel.py [folder]`` builds it there (``dist`` by default) and fails if something is missing, or too much.
"""

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOUR = """
import sys
import expost as xp

ledger = xp.Ledger(epsilon=1, unit="person", neighbours="substitute")
release = ledger.run(xp.RandomizedResponse(choices=2, epsilon=0.5), on=1)
assert ledger.remaining.epsilon < 1, ledger
assert release.value in (0, 1), release

durable = xp.Ledger.create("sqlite:///tour.db", "tour", epsilon=1, unit="person", neighbours="substitute")
durable.run(xp.RandomizedResponse(choices=2, epsilon=0.25), on=0)
assert xp.Ledger.load("sqlite:///tour.db", "tour").remaining == durable.remaining, durable
heavy = {"duckdb", "sklearn", "psycopg", "typer", "rich"} & sys.modules.keys()
assert not heavy, heavy
print("toured expost", xp.__version__)
"""


def build(folder: Path) -> Path:
    """The wheel, built from the source tree."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT], check=True
    )
    return max(folder.glob("expost-*.whl"), key=lambda path: path.stat().st_mtime)


def contents(wheel: Path) -> None:
    """The package, its types, its migrations, its licence; no tests, no paper."""
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("expost/py.typed", "expost/__init__.py"):
        assert needed in names, f"{needed} is missing in {wheel.name}"
    assert any(name.endswith(".sql") for name in names), "the ledgers' migrations are missing"
    assert any(name.endswith("licenses/LICENSE") for name in names), "the licence is missing"
    strange = [name for name in names if not name.startswith(("expost/", "expost-"))]
    assert not strange, f"{wheel.name} holds more than the package: {strange}"


def tour(wheel: Path) -> None:
    """Use it where there is nothing else, from a folder without the source."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder) / "env", with_pip=True)
        python = Path(folder) / "env" / "bin" / "python"
        quiet = ["--quiet", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt")]
        subprocess.run([python, "-m", "pip", "install", *quiet, wheel], check=True)
        subprocess.run([python, "-I", "-W", "error", "-c", TOUR], check=True, cwd=folder)
        without = subprocess.run([python.with_name("expost")], cwd=folder, capture_output=True, text=True)
        assert without.returncode != 0
        assert "expost[cli]" in without.stderr, without.stderr


if __name__ == "__main__":
    made = build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist"))
    contents(made)
    tour(made)
