"""Questions that state an accuracy instead of an ε, and models that are tuned."""

from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.frame import with_error
from expost.study import epsilon_for, plan_study, read_study, run_study
from studies import PEOPLE, TUNED, question, write_study


def study_of(folder: Path, *questions: str) -> Any:
    return read_study(write_study(folder, *questions))


def count(**keys: object) -> str:
    return question("old", "count", where="age >= 60", **keys)


def test_an_accuracy_in_numbers_takes_the_epsilon_that_it_needs(tmp_path: Path) -> None:
    study = study_of(tmp_path, count(accuracy=50), question("more", "count", where="age < 5", epsilon=1))
    line = plan_study(study).lines[0]
    assert line.worst == line.best
    assert (line.fit, str(line.accuracy)) == ("fits", "± 50")
    outcome = run_study(study).outcomes[0]
    assert outcome.receipts[0].charged == line.worst
    assert outcome.receipts[0].charged.epsilon < 0.13
    assert outcome.answer is not None
    assert outcome.answer.error == 50


def test_a_share_reserves_what_remains_and_pays_for_what_it_took(tmp_path: Path) -> None:
    study = study_of(tmp_path, count(accuracy="5 %"), question("more", "count", where="age < 5", epsilon=1))
    first, second = plan_study(study).lines
    assert first.worst is not None
    assert first.best is not None
    assert (first.worst.epsilon, second.fit) == (4, "may fit")
    assert first.expected == "5 % of the answer if the stated ε allows it"
    assert (first.error_json()["error"], first.error_json()["error_is_a_share"]) == (0.05, True)
    with pytest.raises(xp.InvalidValue, match="states its accuracy itself"):
        epsilon_for(study, "old", 5)
    assert 0 < first.best.epsilon < 0.001
    result = run_study(study)
    outcome = result.outcomes[0]
    assert outcome.answer is not None
    assert outcome.answer.error is not None
    assert outcome.answer.frame is not None
    (row,) = outcome.answer.frame.rows
    assert outcome.answer.error == row[-1], "one error, wherever it is said"
    assert outcome.answer.text == with_error(row[-4], row[-1])
    assert outcome.receipts[0].reserved.epsilon == 4
    assert outcome.receipts[0].charged.epsilon < 0.2
    assert result.answered == 2
    assert "reduced step by step" in outcome.how["noise"]
    again = run_study(study)
    assert again.outcomes[0].receipts[0].stored
    assert again.outcomes[0].answer == outcome.answer


def test_a_share_of_a_sum_with_an_epsilon_at_most(tmp_path: Path) -> None:
    near = question("paid", "sum", column="cost", bounds=[0, 1000], accuracy="10 %", epsilon=1)
    never = question("few", "count", where="age > 200", accuracy="1 %", share=0.25)
    study = study_of(tmp_path, near, never)
    assert [line.worst for line in plan_study(study).lines] == [xp.Cost(1), xp.Cost(1)]
    paid, few = run_study(study).outcomes
    assert paid.answer is not None
    assert few.answer is not None
    assert "of the truth" not in paid.answer.text
    assert paid.receipts[0].charged.epsilon < 1
    assert "1 % would take more ε than was reserved" in few.answer.text
    assert few.receipts[0].charged == xp.Cost(1)


def test_a_question_without_an_error_bar_yet_says_why(tmp_path: Path) -> None:
    line: dict[str, Any] = {"features": ["age"], "target": "cost", "bounds": [0, 100], "target_bounds": [0, 1000]}
    spread = question("spread", "regression", **line, epsilon=1)
    clamped = question("clamped", "winsorized_mean", column="cost", trim=0.05, bounds=[0, 10_000], epsilon=1)
    study = study_of(tmp_path, spread, clamped, count(epsilon=1))
    planned = plan_study(study)
    assert [line.expected for line in planned.lines] == ["with the answer", "with the answer", "3"]
    covers, *whys = planned.about_errors
    assert covers == "± covers noise, not what clipping to bounds or leaving out rows changes"
    assert [": ".join(why.split(": ")[:2]) for why in whys] == [
        "spread: the error bar comes with the answer",
        "clamped: the error bar comes with the answer",
    ]
    with pytest.raises(xp.InvalidValue, match="question 'spread': the error bar comes with the answer: how far"):
        epsilon_for(study, "spread", 5)
    first, second, _ = run_study(study).outcomes
    assert first.answer is not None
    assert second.answer is not None
    assert (first.answer.error, first.answer.text.count("±"), "no error bar" in first.how) == (None, 2, False)
    assert 0 < (second.answer.error or 0) < 20
    assert second.how["± covers"].startswith("noise on the mean")


def test_too_few_values_for_a_trim_are_told_before_and_after(tmp_path: Path) -> None:
    """6,000 rows at ε 0.05: both quantiles may lie beyond all of them."""
    loose: dict[str, Any] = {"column": "cost", "trim": 0.05, "bounds": [0, 1_000_000], "missing": 0, "epsilon": 0.05}
    path = write_study(
        tmp_path, question("cut", "trimmed_mean", **loose), question("moved", "winsorized_mean", **loose)
    )
    path.write_text(path.read_text().replace("[limit]", f"size = {PEOPLE}\n\n[limit]"))
    study = read_study(path)
    for line in plan_study(study).lines:
        assert "6,000 values are too few for this trim and ε" in str(line.accuracy)
    for outcome in run_study(study).outcomes:
        assert outcome.answer is not None
        assert outcome.answer.error is None
        assert "no error is known" in outcome.answer.text
        assert "±" not in outcome.answer.text


def test_an_accuracy_that_is_not_affordable_does_not_fit(tmp_path: Path) -> None:
    plan = plan_study(study_of(tmp_path, question("much", "count", where="age > 9", epsilon=3.99), count(accuracy=50)))
    assert [line.fit for line in plan.lines] == ["fits", "cannot fit"]
    with pytest.raises(xp.errors.InvalidStudy, match=r"takes ε .*, more than the ε 4 that it may use"):
        plan_study(study_of(tmp_path, question("paid", "sum", column="cost", bounds=[0, 1000], accuracy=1)))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"accuracy": "2"}, "'accuracy' is a number above 0, or a share of the truth"),
        ({"accuracy": "100 %"}, "'accuracy' is a number above 0"),
        ({"accuracy": -1}, "'accuracy' is a number above 0"),
        ({}, "has no ε: give one of epsilon, share, share_of_remaining, or an accuracy"),
        ({"accuracy": 5, "epsilon": 1, "share": 0.5}, "has epsilon and share"),
        ({"accuracy": 5, "noise": "gaussian", "delta": 1e-6}, "reached with Laplace noise"),
        ({"accuracy": 5, "by": "city", "by_keys": ["Rome"]}, "not of several groups"),
    ],
)
def test_mistakes(tmp_path: Path, keys: dict[str, object], message: str) -> None:
    with pytest.raises(xp.errors.InvalidStudy, match=message):
        plan_study(study_of(tmp_path, count(**keys)))


def test_a_tuned_classifier(tmp_path: Path) -> None:
    study = study_of(tmp_path, TUNED)
    line = plan_study(study).lines[0]
    assert (line.worst, line.best) == (xp.Cost(2), xp.Cost(0.2))
    outcome = run_study(study).outcomes[0]
    assert outcome.answer is not None
    assert outcome.answer.outcomes[0] in ("enough", "best")
    assert "regularizer" in outcome.answer.text
    assert "score" in outcome.answer.text
    assert outcome.receipts[0].charged.epsilon in (0.2, 1.1, 2.0)


def test_bounds_may_be_left_out_and_what_finding_a_range_did_not_use_is_refunded(tmp_path: Path) -> None:
    """Half of ε is for noise; what a search costs of the other half depends on the data."""
    mean = question("paid", "mean", column="cost", epsilon=1)
    pair = question("alike", "correlation", columns=["age", "cost"], missing=0, epsilon=2)
    spread = question("spread", "variance", column="age", where="age > 20", epsilon=5)  # with 1, 7 of 60 find no range
    study = read_study(write_study(tmp_path, mean, pair, spread, epsilon=8))
    planned = plan_study(study)
    assert [line.worst for line in planned.lines] == [xp.Cost(1), xp.Cost(2), xp.Cost(5)]
    assert [line.best for line in planned.lines] == [xp.Cost("0.5"), xp.Cost(1), xp.Cost("2.5")]  # if withheld
    assert [line.expected for line in planned.lines] == ["with the answer", "none", "none"]
    outcomes = run_study(study).outcomes
    for outcome in outcomes:
        assert outcome.answer is not None
        assert "of values moved into" in outcome.answer.text
        release = outcome.receipts[0].release
        assert release is not None
        assert release.part == release.output.level
        assert release.charged == release.mechanism.guarantee.cost_of(release.part)
        assert "bounds" not in outcome.how
        assert outcome.how["noise"].startswith("Laplace, on counts that find a range")
    assert "±" in (outcomes[0].answer.text if outcomes[0].answer else "")


@pytest.mark.parametrize("kind", ["mean", "variance"])
def test_groups_need_bounds(tmp_path: Path, kind: str) -> None:
    by_city = question("each", kind, column="cost", by="city", by_keys=["Rome", "Oslo"], epsilon=1)
    with pytest.raises(xp.errors.InvalidStudy, match="within bounds: state 'bounds', or leave 'by' out"):
        plan_study(study_of(tmp_path, by_city))
