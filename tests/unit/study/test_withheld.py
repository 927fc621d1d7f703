"""Questions without bounds about too few values: withheld, and shown as that; or refused before any charge."""

import json
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from commands import CliRunner
from expost.cli.main import app
from expost.study import plan_study, read_study, run_study
from studies import question, write_study

FEW = {"where": "age < 1", "epsilon": 1}
"""75 rows; how many is private."""
MOMENTS = (
    question("paid", "mean", column="cost", **FEW),
    question("spread", "variance", column="cost", **FEW),
    question("both", "covariance", columns=["age", "cost"], **FEW),
    question("alike", "correlation", columns=["age", "cost"], **FEW),
)
RANKS = (
    question("middle", "median", column="cost", **FEW),
    question("ninth", "quantile", column="cost", quantile=0.9, **FEW),
    question("several", "quantiles", column="cost", quantiles=[0.4, 0.6], **FEW),
    question("quarters", "interquartile_range", column="cost", **FEW),
)
CLAMPED = question("clamped", "winsorized_mean", column="cost", trim=0.1, **FEW)


def outcomes_of(folder: Path, *questions: str) -> Any:
    return run_study(read_study(write_study(folder, *questions, epsilon=10))).outcomes


@pytest.mark.parametrize("kind", ["mean", "variance", "median"])
def test_a_plan_refuses_what_the_stated_number_of_units_is_too_small_for(tmp_path: Path, kind: str) -> None:
    """Empty values do not count: however many there are, the others are at most as many as the rows."""
    path = write_study(tmp_path, question("few", kind, column="cost", epsilon="0.01"), epsilon=10)
    path.write_text(path.read_text().replace("[limit]", "size = 6000\n\n[limit]").replace('"0.01"', "0.01"))
    with pytest.raises(xp.errors.InvalidStudy, match="6,000 records are too few"):
        plan_study(read_study(path))


def test_moments_are_withheld_for_the_price_of_the_search(tmp_path: Path) -> None:
    for outcome in outcomes_of(tmp_path, *MOMENTS):
        assert outcome.state == "withheld"
        assert outcome.answer.value is None
        assert "±" not in outcome.answer.text
        assert [receipt.charged for receipt in outcome.receipts] == [xp.Cost("1/2")]
        assert [receipt.refunded for receipt in outcome.receipts] == [xp.Cost("1/2")]


def test_ranks_are_withheld_and_a_mean_between_them_costs_their_share(tmp_path: Path) -> None:
    *ranks, clamped = outcomes_of(tmp_path, *RANKS, CLAMPED)
    assert {outcome.state for outcome in ranks} <= {"withheld", "answered"}
    assert sum(outcome.state == "withheld" for outcome in ranks) >= 2  # of each, some one in ten are numbers
    assert all(outcome.receipts[0].refunded == xp.Cost(0) for outcome in ranks)
    if clamped.state == "withheld":
        assert clamped.receipts[0].charged == xp.Cost("1/2")


def test_groups_that_are_too_small_have_no_answer_of_their_own(tmp_path: Path) -> None:
    (outcome,) = outcomes_of(
        tmp_path, question("each", "median", column="cost", by="city", by_keys=["Rome", "Nowhere"], epsilon=2)
    )
    assert outcome.answer.value["Rome"] is not None
    assert outcome.answer.value["Nowhere"] is None or abs(outcome.answer.value["Nowhere"]) < 4e38
    assert outcome.state == "answered"


def test_the_command_says_that_it_is_withheld(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_study(tmp_path, MOMENTS[0], epsilon=10)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["run", str(path), "--record", "r.json", "--report", "r.html"])
    assert result.exit_code == 0
    assert "withheld: no range of the values was clear" in " ".join(result.output.split())
    record = json.loads((tmp_path / "r.json").read_text())
    assert (record["answered"], record["withheld"]) == (0, 1)
    assert "withheld" in (tmp_path / "r.html").read_text()
    answers = CliRunner().invoke(app, ["answers", str(path), "--json"])
    assert (json.loads(answers.output)[0]["value"], json.loads(answers.output)[0]["note"]) == (None, "withheld")
    again = CliRunner().invoke(app, ["run", str(path)])
    assert again.exit_code == 0  # stored, and free


@pytest.mark.parametrize(
    "asked",
    [
        question("q", "mean", column="cost", missing=0, epsilon=0.01),
        question("q", "correlation", columns=["age", "cost"], missing=0, epsilon=0.01),
        question("q", "median", column="cost", missing=0, epsilon=0.01),
        question("q", "winsorized_mean", column="cost", trim=0.1, missing=0, epsilon=0.01),
    ],
)
def test_a_public_number_that_is_too_small_is_refused_before_any_charge(tmp_path: Path, asked: str) -> None:
    """By `plan`, if the study states the number; by `run` in any case."""
    path = write_study(tmp_path, asked)
    plan_study(read_study(path))  # nobody looked at the data yet
    with pytest.raises(xp.errors.InvalidStudy, match="6,000 records are too few"):
        run_study(read_study(path))
    path.write_text(path.read_text().replace('unit = "row"', 'unit = "row"\nsize = 6000'))
    with pytest.raises(xp.errors.InvalidStudy, match="6,000 records are too few"):
        plan_study(read_study(path))
    assert not (tmp_path / "books.db").exists()
