"""Every kind of question is answered near the truth and within its bounds, and says how."""

from pathlib import Path
from typing import Any

import pytest

from expost import SeededNoise
from expost.errors import InvalidStudy
from expost.study import plan_study, read_study, run_study
from expost.study.kinds import KINDS
from expost.study.run import Outcome
from golden import check as golden
from studies import CITIES, EVERYTHING, MIDDLE, PEOPLE, of_people, question, value, write_study

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Every kind of question, with so much ε that noise is small."""
    study = read_study(write_study(tmp_path_factory.mktemp("all"), EVERYTHING, epsilon=400, url="memory:"))
    result = run_study(study, noise=SeededNoise(1))
    assert result.error is None
    return {outcome.question.name: outcome for outcome in result.outcomes}


def test_every_kind_is_asked(everything: dict[str, Outcome]) -> None:
    assert set(KINDS) - {outcome.question.kind for outcome in everything.values()} == {"tuned_classifier"}  # takes long
    assert {outcome.state for outcome in everything.values()} == {"answered"}


def test_answers_are_near_the_truth(everything: dict[str, Outcome]) -> None:
    assert value(everything, "old") == pytest.approx(PEOPLE / 4, abs=10)
    assert value(everything, "total") == pytest.approx(PEOPLE * 39.5, rel=1e-3)
    assert value(everything, "average") == pytest.approx(139.5, abs=1)
    assert value(everything, "bands")["20 to 39"] == pytest.approx(PEOPLE / 4, abs=10)
    assert set(value(everything, "cities")) == {"Rome", "Oslo", "Bern"}
    assert set(value(everything, "most")) == {"Rome", "Oslo", "Bern"}
    assert value(everything, "which") == {"Rome": "above", "Oslo": "above", "Paris": "below"}
    assert value(everything, "large") == pytest.approx({"Rome": 2000, "Oslo": 2000}, abs=10)
    assert value(everything, "spread")[0] <= 40 <= value(everything, "spread")[1]
    assert value(everything, "median") == pytest.approx(39, abs=3)
    assert value(everything, "ninth") == pytest.approx(71, abs=5)
    assert value(everything, "trimmed") == pytest.approx(39.5, abs=1)
    assert value(everything, "quartiles") == pytest.approx(40, abs=1)
    assert value(everything, "middle") == pytest.approx(39, abs=1)
    assert value(everything, "tenth") == pytest.approx(7, abs=1)
    assert value(everything, "squares")["age"] == pytest.approx(2, abs=0.1)
    assert value(everything, "line")["age"] == pytest.approx(2, abs=0.35)
    assert value(everything, "sextiles") == pytest.approx({"0.2": 15, "0.8": 63}, abs=1)
    assert value(everything, "variance") == pytest.approx((80**2 - 1) / 12, rel=0.05)
    assert value(everything, "per_year") == pytest.approx(2, rel=0.01)
    assert value(everything, "covariance") == pytest.approx((80**2 - 1) / 6, rel=0.1)
    assert value(everything, "correlation") == pytest.approx(1, abs=0.1)
    assert value(everything, "clamped") == pytest.approx(79.5, abs=2)
    assert value(everything, "without") == pytest.approx(79.5, abs=2)
    assert value(everything, "model")["ratio"] > 0
    assert value(everything, "training")["ratio"] > 1


def test_error_bars_hold_the_truth(everything: dict[str, Outcome]) -> None:
    truths = {"old": PEOPLE / 4, "total": PEOPLE * 39.5, "average": 139.5, "variance": (80**2 - 1) / 12}
    for name, truth in truths.items():
        answer = everything[name].answer
        assert answer is not None
        assert answer.error is not None
        assert answer.error > 0
        assert abs(answer.value - truth) <= answer.error


def test_every_answer_says_how_it_was_made(everything: dict[str, Outcome]) -> None:
    golden("how-made", "".join(f"{name}\n{facts(outcome)}" for name, outcome in everything.items()))


def facts(outcome: Outcome) -> str:
    """What is below an answer, but for what it cost, which depends on the answer."""
    said = {name: text for name, text in outcome.how.items() if name != "charged"}
    assert outcome.how.keys() - said.keys() == {"charged"}
    return "".join(f"  {name}: {text}\n" for name, text in said.items())


def test_rows_and_groups_of_a_person_are_stated(tmp_path: Path) -> None:
    asked = question("ages", "histogram", column="age", bins=2, bounds=[0, 2], count="units", epsilon=1)
    path = write_study(tmp_path, asked)
    path.write_text(path.read_text().replace('unit = "row"\nwho = "visitor"', 'unit = "person"\nrows = 9\ngroups = 2'))
    outcome = run_study(read_study(path)).outcomes[0]
    assert outcome.how["of each person"] == "at most 9 rows count, in at most 2 cells"
    assert outcome.how["charged"] == "ε 1"
    assert outcome.answer is not None
    assert list(outcome.answer.value) == ["0", "1", "other"]


def test_an_answer_on_its_bound_says_so(tmp_path: Path) -> None:
    asked = [question(f"m{high}", "median", column="age", bounds=[0, high], epsilon=2) for high in (10, 80)]
    outcomes = run_study(read_study(write_study(tmp_path, *asked, url="memory:")), noise=SeededNoise(1)).outcomes
    answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
    assert [answer.value for answer in answers] == [10, pytest.approx(39, abs=2)]
    assert [answer.notice.partition(":")[0] for answer in answers] == ["this is a bound", ""]


@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_statistics_of_people_with_several_rows_and_of_filtered_rows(tmp_path: Path, neighbours: str) -> None:
    own: dict[str, Any] = {"where": "age < 60", "epsilon": 60}
    both: dict[str, Any] = {"columns": ["age", "cost"], "bounds": [[0, 100], [0, 200]], **own}
    asked = (
        question("quarters", "quantiles", column="age", quantiles=[0.25, 0.75], bounds=[0, 100], **own),
        question("variance", "variance", column="age", bounds=[0, 100], **own),
        question("covariance", "covariance", **both),
        question("correlation", "correlation", **both),
        question("clamped", "winsorized_mean", column="cost", trim=0.05, bounds=[0, 10_000], **own),
        question(
            "line", "regression", features=["age"], target="cost", bounds=[0, 80], target_bounds=[0, 200], **own
        ),
    )  # fmt: skip
    path = of_people(write_study(tmp_path, *asked, epsilon=400, url="memory:"), neighbours)
    result = run_study(read_study(path), noise=SeededNoise(1))
    found = {outcome.question.name: outcome for outcome in result.outcomes}
    assert value(found, "quarters") == pytest.approx({"0.25": 14, "0.75": 44}, abs=2)
    assert value(found, "variance") == pytest.approx((60**2 - 1) / 12, rel=0.1)
    assert value(found, "covariance") == pytest.approx((60**2 - 1) / 6, rel=0.1)
    assert value(found, "correlation") == pytest.approx(1, abs=0.1)
    assert value(found, "clamped") == pytest.approx(59.5, abs=2)
    assert value(found, "line")["age"] == pytest.approx(2, abs=0.2)


def test_quantiles_need_no_bounds(tmp_path: Path) -> None:
    asked = (
        question("middle", "median", column="age", epsilon=1),
        question("fifths", "quantiles", column="1000 * cost", quantiles=[0.2, 0.8], epsilon=2),
    )
    outcomes = run_study(read_study(write_study(tmp_path, *asked, url="memory:")), noise=SeededNoise(1)).outcomes
    found = {outcome.question.name: outcome for outcome in outcomes}
    assert value(found, "middle") == pytest.approx(39, abs=2)
    assert value(found, "fifths") == pytest.approx({"0.2": 30_500, "0.8": 126_500}, rel=0.1)
    assert "bounds" not in found["middle"].how


def test_a_covariance_is_of_two_columns(tmp_path: Path) -> None:
    asked = question("c", "covariance", columns=["age"], bounds=[[0, 100]], epsilon=1)
    with pytest.raises(InvalidStudy, match="of two columns, got 1"):
        run_study(read_study(write_study(tmp_path, asked)))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (question("m", "median", column="age", bounds=[0, 80], grid=0, epsilon=1), "'grid' is a number above 0"),
        (question("m", "median", column="age", bounds=[0, 80], grid=-1, epsilon=1), "'grid' is a number above 0"),
        (question("l", "large", **CITIES, find_share=1, epsilon=1), "'find_share' is a number above 0 and below 1"),
    ],
)
def test_what_a_number_must_be(tmp_path: Path, asked: str, message: str) -> None:
    with pytest.raises(InvalidStudy, match=rf"study\.toml:\d+: .*{message}"):
        read_study(write_study(tmp_path, asked))


def test_an_answer_lies_within_its_bounds(tmp_path: Path) -> None:
    median = MIDDLE.replace('"s"', "8").format(9).replace("epsilon = 1\n", "epsilon = 4\nbounds = [39.0, 39.01]\n")
    result = run_study(read_study(write_study(tmp_path, median + "slack = 400\n", url="memory:")), noise=SeededNoise(3))
    answer = result.outcomes[0].answer
    assert answer is not None
    assert answer.value in (39.0, 39.01)


def test_an_answer_is_never_farther_off_than_its_bounds_allow(tmp_path: Path) -> None:
    median = MIDDLE.replace('"s"', "800").format(9) + "bounds = [0, 80]\n"
    result = run_study(read_study(write_study(tmp_path, median, url="memory:")), noise=SeededNoise(2))
    answer = result.outcomes[0].answer
    assert answer is not None
    assert answer.error == 80


def test_each_feature_may_have_bounds_of_its_own(tmp_path: Path) -> None:
    own: dict[str, Any] = {"target": "cost", "target_bounds": [0, 200], "epsilon": 60}
    asked = question("line", "regression", features=["age", "age * age"], bounds=[[0, 80], [0, 6400]], **own)
    study = read_study(write_study(tmp_path, asked, epsilon=400, url="memory:"))
    (outcome,) = run_study(study, noise=SeededNoise(1)).outcomes
    assert outcome.how["bounds"].startswith("0 to 80 and 0 to 6,400, target 0 to 200; ")
    (rehearsed,) = run_study(study, rehearse=True).outcomes
    assert rehearsed.state == "answered"


def test_a_ratio_of_groups(tmp_path: Path) -> None:
    own: dict[str, Any] = {"bounds": [[0, 200], [0, 100]], "by": "city", "by_keys": ["Rome", "Oslo"], "epsilon": 60}
    path = write_study(tmp_path, question("r", "ratio", columns=["cost", "age"], **own), epsilon=400, url="memory:")
    assert plan_study(read_study(path)).lines[0].expected == "with the answer"
    (outcome,) = run_study(read_study(path), noise=SeededNoise(1)).outcomes
    assert outcome.answer is not None
    assert outcome.answer.value == pytest.approx({"Rome": 2, "Oslo": 2}, rel=0.01)
    assert outcome.answer.text.count("±") == 3  # and one that says of what


def test_a_ratio_whose_divisor_may_be_zero_says_so(tmp_path: Path) -> None:
    asked = question("r", "ratio", columns=["cost", "age"], bounds=[[0, 200], [0, 100]], where="age > 79", epsilon=0.1)
    (outcome,) = run_study(read_study(write_study(tmp_path, asked, url="memory:")), noise=SeededNoise(1)).outcomes
    assert outcome.answer is not None
    assert "nobody knows how far off it is" in outcome.answer.text
    assert outcome.answer.error is None
