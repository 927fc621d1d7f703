"""Answers that noise drowns: told before they are paid for, as far as it is public, and instead of a tick after."""

import json
from pathlib import Path
from typing import Any

import pytest

from commands import CliRunner
from expost import SeededNoise
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
    asked = question("asked", kind, **{**ASKED[kind], "epsilon": epsilon, **changes})
    path = write_study(tmp_path, asked, url="memory:")
    if sized:
        path.write_text(path.read_text().replace('neighbours = "substitute"', 'neighbours = "substitute"' + SIZED, 1))
    return path


def answer_of(path: Path) -> Answer:
    """The same each time: an answer of noise alone is beyond its error once in twenty times."""
    (outcome,) = run_study(read_study(path), noise=SeededNoise(1)).outcomes
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
    assert is_drowned(Answer("", {"a": 3, "b": -9}, 9.0), no, amount=True)
    assert not is_drowned(Answer("", {"a": 3, "b": 10}, 9.0), no, amount=True)
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


BY = {"by": "city", "by_keys": ["Rome", "Nowhere"]}


def test_a_group_that_says_nothing_says_so(tmp_path: Path) -> None:
    """Before: ✓, whatever the noise of a group was."""
    asked = (
        question("counts", "count", epsilon=0.2, **BY),
        question("means", "mean", column="age", bounds=[0, 100], epsilon=0.4, **BY),
        question("spreads", "variance", column="age", bounds=[0, 100], epsilon=0.5, **BY),
    )
    result = run_study(read_study(write_study(tmp_path, *asked, url="memory:")), noise=SeededNoise(3))
    for outcome in result.outcomes:
        assert outcome.answer is not None
        rome, nowhere, each = outcome.answer.text.split("; ")
        assert each == "each ± at 95 %"
        assert DROWNED in nowhere
        assert DROWNED not in rome
        assert not outcome.answer.drowned
        assert outcome.answer.beside == f"each ± at 95 %; {DROWNED}: Nowhere"


def test_groups_that_all_say_nothing_get_no_tick(tmp_path: Path) -> None:
    path = write_study(tmp_path, question("means", "mean", column="age", bounds=[0, 100], epsilon=TINY, **BY))
    printed = CliRunner().invoke(app, ["run", str(path)]).output
    assert "≈ means" in printed
    assert f"beware: {DROWNED}" in printed


def test_ranks_of_a_private_number_cannot_be_judged(tmp_path: Path) -> None:
    """Before: ✓, "off by at most 70,112 ranks" of nobody knows how many."""
    path = study(tmp_path, "median", TINY, sized=False)
    path.write_text(path.read_text().replace('"substitute"', '"add-remove"', 1))
    assert "cannot be judged, their number is private" in answer_of(path).text
    path = study(tmp_path, "median", 2, sized=False)
    path.write_text(path.read_text().replace('"substitute"', '"add-remove"', 1).replace("books.db", "other.db"))
    assert "judged" not in answer_of(path).text


def test_ranks_of_groups_are_compared_with_all_values(tmp_path: Path) -> None:
    """Before: ✓ off by at most 34,961 ranks, of at most 4,444 rows."""
    path = study(tmp_path, "median", TINY, **BY)
    (line,) = plan_study(read_study(path)).lines
    assert SAYS_NOTHING in line.why
    found = answer_of(path)
    assert found.drowned
    assert f"ranks of at most {PEOPLE:,}" in found.text
    assert "cannot be judged" not in found.text


def test_means_of_groups_as_wide_as_their_bounds_are_told_in_the_plan(tmp_path: Path) -> None:
    (sized,) = plan_study(read_study(study(tmp_path, "mean", TINY / 100, bounds=[0, 10], **BY))).lines
    assert SAYS_NOTHING in sized.why
    (typical,) = plan_study(read_study(study(tmp_path, "mean", TINY, sized=False, bounds=[0, 10], **BY))).lines
    assert typical.expected == "10 each, if 1,000 values count, which would say nothing"
    (good,) = plan_study(read_study(study(tmp_path, "mean", 3, bounds=[0, 10], **BY))).lines
    assert "nothing" not in good.expected + good.why


@pytest.mark.parametrize(("low", "drowned"), [(-1, True), (0, True), (-1000, False)])
def test_a_sum_of_amounts_may_have_a_bound_just_below_zero(tmp_path: Path, low: int, drowned: bool) -> None:
    path = study(tmp_path, "sum", 0.01, column="age", bounds=[low, 1000], where="age < 1")
    assert answer_of(path).drowned is drowned


def test_variances_of_groups_are_amounts(tmp_path: Path) -> None:
    asked = question("spreads", "variance", column="cost", bounds=[0, 10_000], epsilon=0.1, **BY)
    (outcome,) = run_study(read_study(write_study(tmp_path, asked, url="memory:")), noise=SeededNoise(3)).outcomes
    assert outcome.answer is not None
    for text, value in zip(outcome.answer.text.split("; ")[:-1], outcome.answer.value.values(), strict=True):
        error = float(text.split(" ± ")[1].split(" ")[0].replace(",", ""))
        assert (DROWNED in text) == (error >= abs(value) or 2 * error >= 25_000_000)
