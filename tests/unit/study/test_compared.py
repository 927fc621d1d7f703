"""What was not compared is said to be that: in answers, at the prompt, in lists of answers, records and reports."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from commands import CliRunner
from expost.cli.main import app
from expost.study import read_study, record_of, report_html, run_study
from expost.study.kinds.kind import Answer
from studies import question, write_study

BANDS: dict[str, Any] = {"column": "age", "bins": 4, "bounds": [0, 80], "threshold": -(10**6), "epsilon": 1}
STOPPED = "stopped after 2 (at_most): what was not compared may be above -1,000,000, too"


def asked(tmp_path: Path, kind: str, **changes: Any) -> tuple[Path, Answer, dict[str, Any]]:
    path = write_study(tmp_path, question("busy", kind, **{**BANDS, "at_most": 2, **changes}))
    result = run_study(read_study(path))
    (outcome,) = result.outcomes
    assert outcome.answer is not None
    return path, outcome.answer, record_of(result)


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def test_above(tmp_path: Path) -> None:
    _, answer, record = asked(tmp_path, "above")
    assert answer.text == "above -1,000,000: 0 to 19, 20 to 39; not compared: 40 to 59, 60 to 79"
    assert answer.value == {
        "0 to 19": "above", "20 to 39": "above", "40 to 59": "not compared", "60 to 79": "not compared",
    }  # fmt: skip
    assert answer.notice == STOPPED
    assert record["questions"][0]["value"] == answer.value
    page = report_html(record)
    assert "not compared: 40 to 59, 60 to 79" in page
    assert f"Beware: {STOPPED}." in page


def test_large(tmp_path: Path) -> None:
    """Counts of what was found, and which cells nothing is known of: before, they were left out like small ones."""
    path, answer, record = asked(tmp_path, "large")
    assert list(answer.value) == ["0 to 19", "20 to 39"]
    assert answer.text.endswith("; not compared: 40 to 59, 60 to 79")
    assert answer.notice == STOPPED
    assert f"Beware: {STOPPED}." in report_html(record)
    (again,) = run_study(read_study(path)).outcomes  # from the ledger
    assert again.answer == answer


@pytest.mark.parametrize("kind", ["above", "large"])
def test_nothing_is_said_where_all_were_compared(tmp_path: Path, kind: str) -> None:
    _, answer, _ = asked(tmp_path, kind, at_most=4)
    assert "not compared" not in f"{answer.text} {answer.value}"
    assert answer.notice == ""
    _, nothing, _ = asked(tmp_path, kind, threshold=10**6, epsilon=0.5)
    assert nothing.text == "none above 1,000,000"
    assert nothing.value == dict.fromkeys(["0 to 19", "20 to 39", "40 to 59", "60 to 79"], "below")
    assert nothing.outcomes == ("none",)


def test_of_many_cells_all_are_named(tmp_path: Path) -> None:
    _, answer, _ = asked(tmp_path, "above", bins=80, at_most=1)
    assert answer.text.endswith("76, 77, 78, 79")
    assert len(answer.value) == 80


def test_at_the_prompt(tmp_path: Path) -> None:
    path = write_study(tmp_path, question("busy", "above", **BANDS, at_most=2))
    printed = shown("run", str(path))
    assert "✓ busy  above -1,000,000: 0 to 19, 20 to 39; not compared: 40 to 59, 60 to 79" in printed
    assert f"beware: {STOPPED}" in printed
    words = ["above", "above", "not compared", "not compared"]
    listed = json.loads(shown("answers", str(path), "--json"))
    assert [row["value"] for row in listed] == words
    assert listed[0]["keys"] == {"age": "[0, 20)"}
    shown("answers", str(path), "--csv", str(tmp_path / "answers.csv"))
    with (tmp_path / "answers.csv").open() as lines:
        assert [row["value"] for row in csv.DictReader(lines)] == words
    assert "above: [0, 20), [20, 40); not compared: [40, 60), [60, 80)" in shown("answers", str(path))
    assert list(json.loads(shown("run", str(path), "--json"))["questions"][0]["value"].values()) == words
