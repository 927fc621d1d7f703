"""Every proof that the noise and the elementary mechanisms name is written down."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ["src/expost/noise", "src/expost/mechanisms", "src/expost/accounting/gaussian.py"]
THEORY = "".join(path.read_text() for path in sorted((ROOT / "docs").glob("theory*.md")))
FILES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) or [ROOT / room]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_proofs_that_are_named_exist(path: Path) -> None:
    for label in re.findall(r"Proof: ([\w-]+)", path.read_text()):
        assert f":label: {label}\n" in THEORY, f"{path.name} names {label}"


def test_statements_and_proofs_come_in_pairs() -> None:
    text = (ROOT / "docs" / "theory-noise.md").read_text()
    blocks = re.findall(r"```\{prf:(\w+)\}", text)
    assert blocks[1::2] == ["proof"] * (len(blocks) // 2)
    assert "proof" not in blocks[::2]
    labels = re.findall(r":label: ([\w-]+)", text)
    assert len(set(labels)) == len(labels)
    for label in re.findall(r"\{prf:ref\}`([\w-]+)`", text):
        assert f":label: {label}\n" in THEORY
