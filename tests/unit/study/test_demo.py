"""The demonstration: real people, every kind of question, more of them than classic accounting would allow."""

import runpy
from pathlib import Path

import pytest

from expost.cost import Cost
from expost.study import parse_study, plan_study, run_study
from expost.study.kinds import KINDS

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.mark.filterwarnings("default")  # statsmodels' own
def test_the_study_of_the_demonstration(tmp_path: Path) -> None:
    runpy.run_path(str(EXAMPLES / "randhie.py"))["main"](tmp_path)
    text = (EXAMPLES / "randhie.toml").read_text().replace("../build/demo/", "")
    study = parse_study(text, tmp_path / "randhie.toml")
    shown = {question.kind for question in study.questions}
    said_by_others = {
        "lost",
        "stable_median",
        "stable_quantile",
        "stable_regression",
        "top",
        "covariance",
        "ratio",
        "tuned_classifier",
    }
    assert set(KINDS) - shown == said_by_others
    assert plan_study(study).fits
    result = run_study(study)
    assert result.error is None
    assert result.size == 20_190
    assert {outcome.state for outcome in result.outcomes} <= {"answered", "withheld", "skipped"}
    answers = {outcome.question.name: outcome.answer for outcome in result.outcomes}
    typical, ill = answers["typical"], answers["ill"]
    assert typical is not None
    assert ill is not None
    assert abs(typical.value - 10.6) < 1
    assert abs(ill.value - 20.6) < 2
    assert result.classic < result.asked
    assert result.ledger.spent <= Cost(4, 1e-5)
    assert result.ledger.verify().sequence >= 2 * result.asked
