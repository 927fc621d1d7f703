"""Answers that noise drowns: told before they are paid for, as far as it is public, and instead of a tick after."""

import json
from pathlib import Path
from typing import Any

import pytest

from commands import CliRunner
from expost.cli.main import app
from expost.study import plan_study, read_study, record_of, report_html, run_study
from expost.study.kinds.kind import DROWNED, SAYS_NOTHING, Accuracy, Answer, NoBar, is_drowned
from studies import PEOPLE, question, write_study

TINY = 0.0005
ASKED: dict[str, dict[str, Any]] = {
    "median": {"column": "age", "bounds": [0, 100]},
    "mean": {"column": "cost", "bounds": [0, 1_000_000]},
    "count": {"where": "age >= 60"},
    "histogram": {"column": "age", "bins": 4, "bounds": [0, 80]},
    "sum": {"column": "age", "bounds": [0, 100]},
}
SIZED = f"\nsize = {PEOPLE}\n"


def study(tmp_path: Path, kind: str, epsilon: float, *, sized: bool = True, **changes: Any) -> Path:
    path = write_study(tmp_path, question("asked", kind, **{**ASKED[kind], "epsilon": epsilon, **changes}))
    if sized:
        path.write_text(path.read_text().replace('neighbours = "substitute"', 'neighbours = "substitute"' + SIZED, 1))
    return path


def answer_of(path: Path) -> Answer:
    (outcome,) = run_study(read_study(path)).outcomes
    assert outcome.answer is not None
    return outcome.answer


@pytest.mark.parametrize("kind", ["median", "mean", "count", "histogram"])
def test_a_plan_says_that_an_answer_would_say_nothing(tmp_path: Path, kind: str) -> None:
    (line,) = plan_study(read_study(study(tmp_path, kind, TINY))).lines
    assert SAYS_NOTHING in line.why
    assert line.fit == "fits"
    (better,) = plan_study(read_study(study(tmp_path, kind, 3))).lines  # a mean of ± 600 in bounds of a million, too
    assert better.why == ""


@pytest.mark.parametrize("kind", ["median", "mean", "count", "histogram"])
def test_a_plan_says_no_more_than_is_public(tmp_path: Path, kind: str) -> None:
    """Of an unknown number of values. When they are counted, the answer says it."""
    path = study(tmp_path, kind, TINY, sized=False)
    (line,) = plan_study(read_study(path)).lines
    assert line.why == ""
    assert answer_of(path).drowned


@pytest.mark.parametrize("kind", ["median", "mean", "count", "histogram"])
def test_an_answer_that_is_noise_gets_no_tick(tmp_path: Path, kind: str) -> None:
    """Before: ✓, and an error many times as large as all there is."""
    path = study(tmp_path, kind, TINY)
    printed = CliRunner().invoke(app, ["run", str(path)]).output
    assert "≈ asked" in printed
    assert "✓" not in printed
    assert f"beware: {DROWNED}" in printed
    record = record_of(run_study(read_study(path)))
    assert (record["questions"][0]["drowned"], record["questions"][0]["state"]) == (True, "answered")
    assert f"Beware: {DROWNED}" in report_html(record)
    planned = json.loads(CliRunner().invoke(app, ["plan", str(study(tmp_path, kind, TINY / 2)), "--json"]).output)
    assert SAYS_NOTHING in planned["questions"][0]["why"]


@pytest.mark.parametrize("kind", sorted(ASKED))
def test_a_good_answer_is_ticked(tmp_path: Path, kind: str) -> None:
    path = study(tmp_path, kind, 3, **({"bounds": [0, 200]} if kind == "mean" else {}))
    assert not answer_of(path).drowned
    assert "✓ asked" in CliRunner().invoke(app, ["run", str(path)]).output


def test_amounts_are_compared_with_their_noise() -> None:
    """Of amounts, noise as large as the largest leaves nothing; a number that may be negative is compared to bounds."""
    no = NoBar("…")
    assert is_drowned(Answer("", 12, 12.0), no, amount=True)
    assert not is_drowned(Answer("", 13, 12.0), no, amount=True)
    assert not is_drowned(Answer("", 1, 12.0), no, amount=False)
    assert not is_drowned(Answer("", 1), no, amount=True)
    assert not is_drowned(Answer("", 0, 0.0), no, amount=True)
    assert is_drowned(Answer("", {}, 9.0, bars={"a": 3, "b": -9}), no, amount=True)
    assert not is_drowned(Answer("", {}, 9.0, bars={"a": 3, "b": 10}), no, amount=True)
    assert not is_drowned(Answer("", {}, 9.0), no, amount=True)
    assert [Accuracy(error, within=10).drowned for error in (4.9, 5)] == [False, True]
    assert not Accuracy(5, within=10, nominal=True).drowned
    assert is_drowned(Answer("", 3, 5.0), Accuracy(1, within=10, nominal=True), amount=False), "by its own error"
    assert not is_drowned(Answer("", 3, 4.0), Accuracy(9, within=10), amount=False)
    assert not Accuracy(5).drowned


def test_a_mean_that_may_be_negative_is_near_zero_for_good(tmp_path: Path) -> None:
    path = study(tmp_path, "mean", 3, column="age - 39.5", bounds=[-100, 100])
    found = answer_of(path)
    assert abs(found.value) < 1
    assert not found.drowned
