"""Paper against computed: complete, and every difference has its reason."""

import json
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import golden
from expost import InvalidValue
from paper import claims, compare, figure1
from paper.__main__ import app, show
from paper.comparison import VERDICTS, Comparison, close, markdown, noted

ENVIRONMENT = {"COLUMNS": "100", "TERM": "dumb"}


def test_the_whole_paper(tmp_path: Path) -> None:
    """All of it once, with few simulations and only the stops that are compared."""
    said: list[str] = []
    found = compare.recompute(tmp_path, runs=2, stops=((20,), (1, 10, 100)), progress=said.append)
    assert said[0].startswith("Figure 1")
    every_difference_is_explained(found)
    these_differ_and_no_others(found)
    what_is_called_sharper_is(found)
    everything_is_written(tmp_path, found)
    shown_on_the_command_line(found)


def every_difference_is_explained(found: list[Comparison]) -> None:
    assert {row.place for row in found} >= {"Figure 1", "Figure 2", "Table 1", "Introduction", "Lemma 10", "Appendix A"}
    for row in found:
        assert row.verdict in VERDICTS
        assert row.why or row.verdict == "agrees", row
        assert row.why != claims.BUG, row
        assert (row.paper == row.computed) <= (row.verdict == "agrees"), row


def these_differ_and_no_others(found: list[Comparison]) -> None:
    wrong = [(row.place, row.paper, row.computed) for row in found if row.verdict == "differs"]
    cells = zip((17, 20, 24, 27, 31, 35, 38, 42), (16, 19, 23, 26, 30, 34, 37, 41), strict=True)
    assert wrong == [
        ("Lemma 10", "0.1", "0.19"),
        *(("Table 1", str(printed), str(computed)) for printed, computed in cells),
        ("Appendix A", "0.5: no gain", "0.5 − 2.5e-08"),
        ("Appendix A", "≤ 0.3750", "0.4120"),
    ]


def what_is_called_sharper_is(found: list[Comparison]) -> None:
    rows = [row for row in found if row.verdict == "sharper"]
    assert len(rows) >= 10
    for row in rows:
        assert float(row.computed.removesuffix(" ε")) < float(row.paper.removesuffix(" ε"))


def everything_is_written(folder: Path, found: list[Comparison]) -> None:
    for name in compare.exhibits(1):
        assert json.loads((folder / f"{name}.json").read_text())
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text()
    assert [Comparison(**row) for row in json.loads((folder / "comparison.json").read_text())] == found
    assert (folder / "comparison.md").read_text() == markdown(found)


def shown_on_the_command_line(found: list[Comparison]) -> None:
    stored = typer.Typer()

    @stored.command()
    def again(as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
        show(found, Path("results"), as_json=as_json)

    text = CliRunner().invoke(stored, env=ENVIRONMENT)
    golden.check("paper", text.stdout)
    told = CliRunner().invoke(stored, ["--json"], env=ENVIRONMENT)
    assert [Comparison(**row) for row in json.loads(told.stdout)] == found


def test_help_is_reviewed() -> None:
    shown = CliRunner().invoke(app, ["--help"], env=ENVIRONMENT, prog_name="python -m paper")
    golden.check("paper-help", shown.stdout)


def test_numbers_in_the_notes() -> None:
    """What the notes say in words is what is computed."""
    expected = figure1.found_law(1, "two-sided") @ range(figure1.AT_MOST + 1) - 1
    assert f"{expected:.2f}" in claims.NO_NUMBERS
    svt = figure1.finder("two-sided")
    variance = 2 / svt.halves[0].epsilon ** 2 + 2 * (2 * figure1.AT_MOST / svt.halves[1].epsilon) ** 2
    assert round(99 * variance / (2 * figure1.THRESHOLD**2)) == 3
    differ = [row for row in claims.figure_2() if row.verdict == "sharper" and row.what.endswith("Λ = 1")]
    assert [row.what.split()[1] for row in differ] == ["5", "27"]


def test_two_numbers() -> None:
    assert close("", "", 1.0, 1.0005, otherwise="differs", why="so").verdict == "agrees"
    assert close("", "", 1.0, 1.01, otherwise="differs", why="so") == ("", "", "1", "1.01", "differs", "so")
    shared = [Comparison("", "", "", "", "differs", "a"), Comparison("", "", "", "", "agrees")]
    assert noted([*shared, shared[0]])[1] == ["a"]


def test_bad_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidValue, match="cannot be a folder"):
        compare.recompute(tmp_path / "file")
    with pytest.raises(InvalidValue, match="at least 1"):
        compare.recompute(tmp_path, runs=0)
    for arguments in ([str(tmp_path / "file")], [str(tmp_path), "--runs", "0"]):
        refused = CliRunner().invoke(app, arguments, env=ENVIRONMENT)
        assert refused.exit_code == 2
        assert "cannot be a folder" in refused.stderr or "at least 1" in refused.stderr
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InvalidValue, match="make paper"):
        compare.recompute(tmp_path)
    refused = CliRunner().invoke(app, [str(tmp_path / "file")], env=ENVIRONMENT)
    assert (refused.exit_code, "needs matplotlib" in refused.stderr) == (2, True)


def test_stopping_is_compared_where_it_was_computed() -> None:
    kinds = [f"{where} {name}" for where in ("first stop", "full length") for name in ("Lemma 11", "Rényi")]
    found = {kind: [1.0, 2.0] for kind in kinds} | {"training stops": [1, 20], "response stops": [1, 10, 100]}
    found |= {"response Lemma 11": [1.0, 5.0, 50.0], "response optimum": [1.0, 1.0, 1.0]}
    assert [row.verdict for row in claims.stopping(found)] == ["agrees", "settled", "settled", "agrees", "agrees"]
