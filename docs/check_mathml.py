"""Formulas of the documentation: signs are signs, long ones can be broken before relations, and nothing is lost."""

import runpy
from pathlib import Path
from xml.etree.ElementTree import tostring

import pytest

written = runpy.run_path(str(Path(__file__).parent / "mathml.py"))


@pytest.mark.parametrize(
    ("latex", "lines"),
    [
        (r"E(a) \le \delta", ["E(a)", "≤δ"]),
        (r"\sum_o (P(o) = 1) \ge x = 2", ["∑o(P(o)=1)", "≥x", "=2"]),
        (r"\max_j \{E_j\}", ["maxj{Ej}"]),
        (r"= 1", ["=1"]),
    ],
)
def test_lines_of_formulas(latex: str, lines: list[str]) -> None:
    formula = written["_translated"](latex, "inline")
    assert ["".join(piece.itertext()) for piece in written["lines_of"](formula)] == lines
    assert "&amp;" not in tostring(formula, "unicode")
