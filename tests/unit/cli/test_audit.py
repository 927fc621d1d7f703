"""`expost audit`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.progress import Progress

from commands import CliRunner
from expost.cli.audit import _progress
from expost.cli.main import app

pytestmark = pytest.mark.slow
RUN = CliRunner()
FEW = ("--samples", "2000", "--processes", "1")
WRONG = """
from expost import Guarantee

guarantee = Guarantee.uniform("0.1")
pairs = [(0, 1)]


def mechanism(data, noise):
    return data if noise.below(4) else 1 - data
"""


def test_a_mechanism_of_the_library() -> None:
    found = RUN.invoke(app, ["audit", "Coin", *FEW])
    assert found.exit_code == 0
    assert "Coin: not refuted, 2000 samples a side, confidence 0.99" in found.stdout
    assert "answered" in found.stdout


def test_an_order_of_rényi_prices() -> None:
    found = RUN.invoke(app, ["audit", "Laplace", *FEW, "--order", "8"])
    assert found.exit_code == 0
    assert "Rényi moment" in found.stdout
    refused = RUN.invoke(app, ["audit", "StableMedian", *FEW, "--order", "8"])
    assert refused.exit_code == 2
    assert "audit the guarantee instead" in refused.stderr


def test_a_wrong_function_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WRONG)
    found = RUN.invoke(app, ["audit", str(tmp_path / "mine.py"), *FEW, "--json", "--plot", str(tmp_path / "one.png")])
    assert found.exit_code == 1
    (told,) = json.loads(found.stdout)
    assert told["refuted"]
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "say what to audit"),
        (["Lapalce"], "no mechanism 'Lapalce'"),
        (["nowhere.py"], "no file 'nowhere.py'"),
        (["Coin", "--confidence", "2"], "between 0 and 1"),
    ],
)
def test_what_cannot_be_audited(given: list[str], message: str) -> None:
    found = RUN.invoke(app, ["audit", *given])
    assert found.exit_code == 2
    assert message in found.stderr


def test_a_file_that_defines_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("")
    found = RUN.invoke(app, ["audit", str(tmp_path / "empty.py")])
    assert found.exit_code == 2
    assert "defines no mechanism and no pairs" in found.stderr


def test_progress_of_many_mechanisms_is_one_line() -> None:
    """There are more of them than a terminal has lines."""
    shown = Progress(disable=True)
    for name in ("Laplace", "Coin"):
        _progress(shown, name)(0.5)
    assert [(task.description, task.completed) for task in shown.tasks] == [("Coin", 0.5)]
