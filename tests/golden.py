"""Texts that people read, kept as reviewed files. `EXPOST_GOLDEN=update pytest …` writes them anew: read the diff."""

from __future__ import annotations

import os
import re
from pathlib import Path

FOLDER = Path(__file__).with_name("golden")


def check(name: str, text: str) -> None:
    """The text is what ``tests/golden/<name>.txt`` says, but for spaces at the ends of lines."""
    path = FOLDER / f"{name}.txt"
    plain = re.sub(r"[ \t]+$", "", re.sub(r"\x1b\[[0-9;]*m", "", text), flags=re.MULTILINE).strip("\n") + "\n"
    if os.environ.get("EXPOST_GOLDEN") == "update":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(plain)
    assert path.exists(), f"no {path.name} yet: run with EXPOST_GOLDEN=update and read it"
    assert plain == path.read_text(), f"{path.name} reads otherwise: if that is meant, run with EXPOST_GOLDEN=update"
