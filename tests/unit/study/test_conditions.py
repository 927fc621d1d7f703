"""Which questions are asked: as far as the budget goes, and only if an earlier answer says so."""

import json
from pathlib import Path

import pytest

from commands import CliRunner
from expost import BudgetExceeded, Cost
from expost.cli.main import app
from expost.errors import InvalidStudy
from expost.study import plan_study, read_study, run_study
from studies import (
    ABOVE,
    AFTER,
    COUNT,
    EVERYTHING,
    question,
    write_study,
)

pytestmark = pytest.mark.slow


def test_the_budget_may_end_a_run(tmp_path: Path) -> None:
    study = write_study(
        tmp_path, ABOVE.format(threshold=10, amount="epsilon = 2"), COUNT, AFTER.format(epsilon=2, condition="busy.any")
    )
    result = CliRunner().invoke(app, ["run", str(study), "--report", str(tmp_path / "page.html")])
    assert result.exit_code == 3
    record = json.loads((tmp_path / "study.run.json").read_text())
    assert [question["state"] for question in record["questions"]] == ["answered", "answered", "not possible"]
    assert "largest affordable ε" in record["stopped"]
    assert "Stopped" in (tmp_path / "page.html").read_text()


def test_later_questions_use_what_came_back(tmp_path: Path) -> None:
    rest = COUNT.replace("epsilon = 0.5", 'epsilon = "rest"')
    study = read_study(write_study(tmp_path, ABOVE.format(threshold=9000, amount="epsilon = 2"), rest))
    result = run_study(study)
    assert result.outcomes[1].receipts[0].reserved > Cost(3)
    assert result.ledger.remaining.epsilon == 0
    assert (result.asked, result.classic) == (2, 1)


@pytest.mark.parametrize(
    ("threshold", "condition", "state"),
    [
        (9000, "busy.any", "skipped"),
        (9000, "busy.none", "answered"),
        (10, "busy.any", "answered"),
    ],
)
def test_only_if_an_outcome(tmp_path: Path, threshold: int, condition: str, state: str) -> None:
    after = AFTER.format(epsilon=0.5, condition=condition)
    result = run_study(
        read_study(write_study(tmp_path, ABOVE.format(threshold=threshold, amount="epsilon = 2"), after))
    )
    assert result.outcomes[1].state == state
    assert bool(result.outcomes[1].receipts) == (state == "answered")


@pytest.mark.parametrize(("condition", "state"), [("old > 1000", "answered"), ("old < 1000", "skipped")])
def test_only_if_a_number(tmp_path: Path, condition: str, state: str) -> None:
    result = run_study(read_study(write_study(tmp_path, COUNT, AFTER.format(epsilon=0.5, condition=condition))))
    assert result.outcomes[1].state == state


def test_repeated_down_to_a_floor(tmp_path: Path) -> None:
    hopeless = """
[derive]
odd = "age % 2"

[[question]]
name = "model"
kind = "logistic_regression"
missing = 0
features = ["age"]
target = "odd"
norm = 80
threshold = 0
test_share = 0.5
epsilon = 1
repeat = { until = "released", floor = 2, at_most = 9 }
"""
    result = run_study(read_study(write_study(tmp_path, hopeless)))
    outcome = result.outcomes[0]
    assert outcome.state == "withheld"
    assert [receipt.charged for receipt in outcome.receipts] == [Cost(0.5)] * 5  # from 4 to 1.5, the first below 2
    assert result.ledger.remaining.epsilon == 1.5
    assert (result.asked, result.answered, result.classic) == (1, 0, 0)


def test_a_scale_that_was_withheld(tmp_path: Path) -> None:
    spread = question("spread", "stable_interquartile_range", column="age", missing=0, epsilon=0.01, delta=1e-9)
    median = question("m", "stable_median", column="age", missing=0, scale="spread", epsilon=1, delta=1e-6)
    result = run_study(read_study(write_study(tmp_path, spread, median)))
    assert [outcome.state for outcome in result.outcomes] == ["withheld", "skipped"]
    assert "fallback" in result.outcomes[1].why
    assert not result.outcomes[1].receipts


def test_plans_are_what_happens(tmp_path: Path) -> None:
    study = read_study(write_study(tmp_path, EVERYTHING, epsilon=400))
    plan = plan_study(study)
    result = run_study(study)
    for line, outcome in zip(plan.lines, result.outcomes, strict=True):
        charged = sum((receipt.charged for receipt in outcome.receipts), Cost(0))
        assert line.worst is not None
        assert line.best is not None
        assert line.best <= charged <= line.worst, line.question.name
    assert plan.worst <= result.ledger.remaining
    assert {line.fit for line in plan_study(study).lines} == {"stored"}


def test_only_what_may_fit_is_run(tmp_path: Path) -> None:
    study = read_study(write_study(tmp_path, COUNT.replace("0.5", "9")))
    with pytest.raises(InvalidStudy, match="cannot fit"):
        run_study(study)
    assert not (tmp_path / "books.db").exists()


def test_over_budget_is_the_ledgers_word(tmp_path: Path) -> None:
    result = run_study(
        read_study(
            write_study(
                tmp_path,
                ABOVE.format(threshold=10, amount="epsilon = 2"),
                COUNT,
                AFTER.format(epsilon=2, condition="busy.any"),
            )
        )
    )
    assert isinstance(result.error, BudgetExceeded)
    assert result.error.requested == Cost(2)
