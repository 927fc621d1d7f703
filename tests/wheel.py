"""The wheel as a user gets it: built, put into empty environments, used from other folders; every tutorial is followed.

``python tests/wheel.py [folder]`` builds it there (``dist`` by default) and fails if something is missing, or too much,
or if a tutorial does not do what it shows in an environment that has what its own ``pip install`` brings, and no more.
"""

import re
import shlex
import subprocess
import sys
import tempfile
import venv
import zipfile
from contextlib import chdir
from pathlib import Path

from printed import is_one
from transcripts import replay

ROOT = Path(__file__).resolve().parents[1]
TOUR = """
import sys
import expost as xp

ledger = xp.Ledger(epsilon=1, unit="person", neighbours="substitute")
release = ledger.run(xp.mechanisms.RandomizedResponse(choices=2, epsilon=0.5), on=1)
assert ledger.remaining.epsilon < 1, ledger
assert release.value in (0, 1), release

durable = xp.Ledger.create("sqlite:///tour.db", "tour", epsilon=1, unit="person", neighbours="substitute")
durable.run(xp.mechanisms.RandomizedResponse(choices=2, epsilon=0.25), on=0)
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
    for needed in ("expost/py.typed", "expost/__init__.py", "expost/examples/visits.parquet"):
        assert needed in names, f"{needed} is missing in {wheel.name}"
    assert any(name.endswith(".sql") for name in names), "the ledgers' migrations are missing"
    assert any(name.endswith("licenses/LICENSE") for name in names), "the licence is missing"
    strange = [name for name in names if not name.startswith(("expost/", "expost-"))]
    assert not strange, f"{wheel.name} holds more than the package: {strange}"


def installed(wheel: Path, folder: Path, extras: str = "") -> Path:
    """The Python of a new environment that has the wheel, and what the extras bring."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    quiet = ["--quiet", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([python, "-m", "pip", "install", *quiet, f"{wheel.resolve()}{extras}"], check=True)
    return python


def tour(wheel: Path) -> None:
    """Use it where there is nothing else, from a folder without the source."""
    with tempfile.TemporaryDirectory() as folder:
        python = installed(wheel, Path(folder) / "env")
        subprocess.run([python, "-I", "-W", "error", "-c", TOUR], check=True, cwd=folder)
        without = subprocess.run([python.with_name("expost")], cwd=folder, capture_output=True, text=True)
        assert without.returncode != 0
        assert "expost[cli]" in without.stderr, without.stderr


EXAMPLES = """
import doctest, sys
flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
failed, tried = doctest.testfile(sys.argv[1], module_relative=False, optionflags=flags, encoding="utf-8")
sys.exit(failed or not tried)
"""


def tutorials(wheel: Path) -> None:
    """Follow every tutorial, from its own ``pip install`` on."""
    pages: dict[str, list[Path]] = {}
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        (line,) = re.findall(r"^pip install '?expost(\[[a-z,]+\])?", page.read_text(encoding="utf-8"), re.MULTILINE)
        pages.setdefault(line, []).append(page)
    for extras, those in pages.items():
        with tempfile.TemporaryDirectory() as folder:
            python = installed(wheel, Path(folder) / "env", extras)
            for page in those:
                follow(page, python, Path(folder) / page.stem)


def follow(page: Path, python: Path, folder: Path) -> None:
    """Do what a page shows, in a folder of its own."""
    folder.mkdir()

    def run(command: str) -> str:
        program, *arguments = shlex.split(command)
        assert program in ("python", "expost"), command
        said = subprocess.run(
            [python.with_name(program), *arguments], cwd=folder, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={"PATH": str(python.parent), "LANG": "C.UTF-8"}, check=False,
        )  # fmt: skip
        return said.stdout

    with chdir(folder):
        commands = replay(page, folder, run)
    if commands:
        assert list(folder.glob("*.html")), f"{page.name} ends without a report"
    if is_one(page):
        subprocess.run([python, "-I", ROOT / "tests" / "printed.py", page], check=True, cwd=folder)
    elif not commands:
        subprocess.run([python, "-I", "-c", EXAMPLES, page], check=True, cwd=folder)
    print(f"followed {page.name}, with {commands or 'its'} {'commands' if commands else 'examples'}")


if __name__ == "__main__":
    made = build(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist"))
    contents(made)
    tour(made)
    tutorials(made)
