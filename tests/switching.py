"""Runs what `docs/coming-from.md` shows of another library, in that library's environment.

``python tests/switching.py with_opendp.py .venvs/opendp/bin/python``; `make switching` does it for all of them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coming-from.md"
WARDS = ("A", "B", "C", "ICU")


def files() -> dict[str, str]:
    """The page's files, by their names."""
    found = re.findall(r"```\{code-block\} python\n:caption: (\S+)\n\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return dict(found)


def run(name: str, python: str) -> str:
    """What a file prints, in a folder with the visits."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "src" / "expost" / "examples" / "visits.parquet", folder)
        Path(folder, name).write_text(files()[name], encoding="utf-8")
        done = subprocess.run(
            [str(Path(python).absolute()), name], cwd=folder, text=True, capture_output=True, timeout=900, check=False
        )
    assert done.returncode == 0, done.stderr
    missing = [ward for ward in WARDS if not re.search(rf"\b{ward}\b", done.stdout)]
    assert not missing, f"{name} says nothing of {missing}:\n{done.stdout}"
    return done.stdout


if __name__ == "__main__":
    print(run(*sys.argv[1:]))
