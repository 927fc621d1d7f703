"""Paper against computed: complete, and every difference has its reason."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import golden
from expost import InvalidValue
from paper import claims, compare, figure1, stopping_gain
from paper.__main__ import app
from paper.comparison import VERDICTS, Comparison, close, markdown, noted

ENVIRONMENT = {"COLUMNS": "100", "TERM": "dumb"}


def test_the_whole_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it once, with few simulations and only the stops that are compared."""
    monkeypatch.setattr(stopping_gain, "RESPONSE_STOPS", (1, 10, 100))
    monkeypatch.setattr(stopping_gain, "TRAINING_STOPS", (20,))
    said: list[str] = []
    found = compare.recompute(tmp_path, runs=2, progress=said.append)
    assert said[0].startswith("Figure 1")
    every_difference_is_explained(found)
    these_differ_and_no_others(found)
    what_is_called_sharper_is(found)
    everything_is_written(tmp_path, found)
    shown_on_the_command_line(found, monkeypatch)


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


def shown_on_the_command_line(found: list[Comparison], monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def stored(folder: Path, *, runs: int, progress: object) -> list[Comparison]:
        asked.append(f"{folder} {runs}")
        return found

    monkeypatch.setattr(compare, "recompute", stored)
    text = CliRunner().invoke(app, ["results", "--runs", "7"], env=ENVIRONMENT)
    assert (text.exit_code, asked) == (0, ["results 7"])
    golden.check("paper", text.stdout)
    told = CliRunner().invoke(app, ["results", "--json"], env=ENVIRONMENT)
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
    monkeypatch.setattr(compare, "find_spec", lambda module: None)
    with pytest.raises(InvalidValue, match="make paper"):
        compare.recompute(tmp_path)
    refused = CliRunner().invoke(app, [str(tmp_path / "file")], env=ENVIRONMENT)
    assert (refused.exit_code, "needs matplotlib" in refused.stderr) == (2, True)


def test_stopping_is_compared_where_it_was_computed() -> None:
    kinds = [f"{where} {name}" for where in ("first stop", "full length") for name in ("Lemma 11", "Rényi")]
    found = {kind: [1.0, 2.0] for kind in kinds} | {"training stops": [1, 20], "response stops": [1, 10, 100]}
    found |= {"response Lemma 11": [1.0, 5.0, 50.0], "response optimum": [1.0, 1.0, 1.0]}
    assert [row.verdict for row in claims.stopping(found)] == ["agrees", "settled", "settled", "agrees", "agrees"]
