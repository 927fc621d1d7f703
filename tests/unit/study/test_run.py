"""Studies run end to end: answers near the truth, receipts that add up, nothing sampled twice, nothing told."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from commands import CliRunner
from expost import BudgetExceeded, Cost, InvalidStudy, Ledger, SeededNoise
from expost.cli.main import app
from expost.data.duckdb import DuckDB
from expost.service.dashboard.forms import question_of
from expost.study import plan_study, read_study, record_of, run_study
from expost.study.kinds import KINDS
from expost.study.model import Question
from expost.study.report import report_html
from expost.study.run import Outcome, Result
from golden import check as golden
from studies import ABOVE, CANARY, COUNT, EVERYTHING, PEOPLE, question, write_study


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Every kind of question, with so much ε that noise is small."""
    study = read_study(write_study(tmp_path_factory.mktemp("all"), EVERYTHING, epsilon=400, url="memory:"))
    result = run_study(study, noise=SeededNoise(1))
    assert result.error is None
    return {outcome.question.name: outcome for outcome in result.outcomes}


def value(outcomes: dict[str, Outcome], name: str) -> Any:
    answer = outcomes[name].answer
    assert answer is not None, outcomes[name]
    return answer.value


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
    assert value(everything, "which") == ["Rome", "Oslo"]
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


def of_people(path: Path, neighbours: str) -> Path:
    told = path.read_text().replace('unit = "row"\nwho = "visitor"', 'unit = "person"\nrows = 2')
    path.write_text(told.replace('neighbours = "substitute"', f'neighbours = "{neighbours}"'))
    return path


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


@pytest.mark.parametrize("unit", ["row", "person"])
def test_questions_by_group(tmp_path: Path, unit: str) -> None:
    by: dict[str, Any] = {"by": "city", "by_keys": ["Rome", "Oslo"], "epsilon": 60}
    asked = (
        question("counts", "count", **by),
        question("means", "mean", column="age", bounds=[0, 100], where="age < 40", **by),
        question("medians", "median", column="age", bounds=[0, 100], **by),
        question("spreads", "variance", column="age", bounds=[0, 100], **by),
    )
    path = write_study(tmp_path, *asked, epsilon=400, url="memory:")
    path = of_people(path, "substitute") if unit == "person" else path
    assert [line.fit for line in plan_study(read_study(path)).lines] == ["fits"] * 4
    result = run_study(read_study(path), noise=SeededNoise(1))
    found = {outcome.question.name: outcome for outcome in result.outcomes}
    assert value(found, "counts") == pytest.approx({"Rome": 2000, "Oslo": 2000}, abs=20)
    assert value(found, "means") == pytest.approx({"Rome": 19.5, "Oslo": 19.5}, abs=1)
    assert value(found, "medians") == pytest.approx({"Rome": 39, "Oslo": 39}, abs=2)
    assert value(found, "spreads") == pytest.approx({"Rome": 533, "Oslo": 533}, rel=0.1)
    assert found["means"].how["for each"] == "city: Rome, Oslo"
    assert result.ledger.spent == Cost(240)


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


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"kind": "count", "by": "city"}, "'delta' is missing"),
        ({"kind": "count", "by_keys": ["Rome"]}, "state it, or leave 'by_keys' out"),
        ({"kind": "count", "by_total": True}, "state it, or leave 'by_total' out"),
        ({"kind": "correlation", "by": "city", "columns": ["age", "cost"], "bounds": [[0, 9], [0, 9]]}, "in 'by_keys'"),
        ({"kind": "count", "by": ["city", "age"], "by_keys": ["Rome"]}, "a value for each of 2 columns"),
        ({"kind": "count", "by": ["city", "age"], "by_keys": [["Rome", "old"]]}, "age"),
        ({"kind": "count", "by": "city", "by_keys": [["Rome"], 1.5]}, "a list of lists"),
        ({"kind": "count", "by": ["city", "city"], "by_keys": [["Rome", "Rome"]]}, "different columns"),
    ],
)
def test_groups_need_what_tells_them_apart_and_which_there_are(tmp_path: Path, said: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidStudy, match=what):
        run_study(read_study(write_study(tmp_path, question("c", **{"epsilon": 1, **said}))))


TWO: dict[str, Any] = {"by": ["city", "age < 40"], "by_total": True, "epsilon": 60}
"""Groups by two columns."""
KEYS = [[city, young] for city in ("Rome", "Oslo") for young in (True, False)]


@pytest.mark.parametrize("unit", ["row", "person"])
def test_groups_by_several_columns_have_one_epsilon(tmp_path: Path, unit: str) -> None:
    """One person has two rows in all groups together, so the noise is for two rows, however many groups there are."""
    within: dict[str, Any] = {"column": "age", "bounds": [0, 100]}
    asked = (
        question("counts", "count", by_keys=KEYS, **TWO),
        question("means", "mean", by_keys=KEYS, **within, **TWO),
        question("quarters", "quantiles", quantiles=[0.25, 0.75], by_keys=KEYS, **within, **TWO),
        question("middle half", "interquartile_range", by_keys=KEYS, **within, **TWO).replace("middle half", "half"),
        question("lines", "covariance", columns=["age", "cost"], bounds=[[0, 80], [0, 200]], by_keys=KEYS, **{
            key: said for key, said in TWO.items() if key != "by_total"}),
        question("found", "count", count="units", delta=1e-6, **TWO),
    )  # fmt: skip
    path = of_people(write_study(tmp_path, *asked, epsilon=400, url="memory:"), "add-remove")
    if unit == "row":
        path.write_text(path.read_text().replace('unit = "person"\nrows = 2', 'unit = "row"'))
    study = read_study(path)
    lines = plan_study(study).lines
    assert [line.fit for line in lines] == ["fits"] * 6
    assert lines[1].expected.endswith("each, if 1,000 values count")
    result = run_study(study, noise=SeededNoise(1))
    found = {outcome.question.name: outcome for outcome in result.outcomes}
    cells = ["Rome, True", "Rome, False", "Oslo, True", "Oslo, False"]
    assert value(found, "counts") == pytest.approx({**dict.fromkeys(cells, 1000), "total": 4000}, abs=20)
    young = {cell: 19.5 if "True" in cell else 59.5 for cell in cells}
    assert value(found, "means") == pytest.approx({**young, "total": 39.5}, abs=1)
    assert value(found, "quarters")["Oslo, False"] == pytest.approx({"0.25": 49, "0.75": 69}, abs=2)
    assert value(found, "half") == pytest.approx(dict.fromkeys(cells, 20), abs=3)
    assert value(found, "lines")["Rome, True"] == pytest.approx(266, rel=0.2)
    assert len(value(found, "found")) == 6  # three cities
    assert found["counts"].how["for each"] == "city: Rome, Oslo; age < 40: True, False"
    assert result.ledger.spent == Cost(360, "1e-6")
    one = question("counts", "count", by="city", by_keys=["Rome"], epsilon=60)
    alone = of_people(write_study(tmp_path, one, epsilon=400, url="memory:"), "add-remove")
    if unit == "person":
        assert plan_study(read_study(alone)).lines[0].expected == lines[0].expected
    assert json.loads(json.dumps(record_of(result)))["answered"] == 6
    assert "Oslo, False" in report_html(record_of(result))


def test_groups_that_would_be_called_the_same_are_quoted(tmp_path: Path) -> None:
    by: dict[str, Any] = {"by": ["city", "word"], "by_keys": [["a, b", "c"], ["a", "b, c"]], "epsilon": 1}
    path = write_study(tmp_path, question("n", "count", **by), url="memory:")
    (outcome,) = run_study(read_study(path)).outcomes
    assert outcome.answer is not None
    assert list(outcome.answer.value) == ["'a, b', 'c'", "'a', 'b, c'"]


def test_forms_read_groups() -> None:
    typed = {"name": "n", "epsilon": "1", "by": "city; bin(age, 0, 18)", "by_keys": "Rome, 0; Oslo, 18"}
    asked = question_of("count", {**typed, "by_total": "true"})
    assert asked["by"] == ["city", "bin(age, 0, 18)"]
    assert asked["by_keys"] == [["Rome", 0], ["Oslo", 18]]
    assert asked["by_total"] is True
    one = question_of("count", {**typed, "by": "bin(age, 0, 18)", "by_keys": "0, 18"})
    assert (one["by"], one["by_keys"]) == ("bin(age, 0, 18)", [0, 18])


def test_a_covariance_is_of_two_columns(tmp_path: Path) -> None:
    asked = question("c", "covariance", columns=["age"], bounds=[[0, 100]], epsilon=1)
    with pytest.raises(InvalidStudy, match="of two columns, got 1"):
        run_study(read_study(write_study(tmp_path, asked)))


def test_receipts_add_up(tmp_path: Path) -> None:
    result = run_study(read_study(write_study(tmp_path, EVERYTHING, epsilon=400)))
    charged = sum((receipt.charged for outcome in result.outcomes for receipt in outcome.receipts), Cost(0))
    assert charged == result.ledger.spent
    assert len({receipt.entry for outcome in result.outcomes for receipt in outcome.receipts}) == 26
    record = json.loads(json.dumps(record_of(result)))
    assert record["answered"] == 25


class Interrupted(Exception):
    """Stands for a crash between questions."""


def test_a_second_run_samples_nothing_twice(tmp_path: Path) -> None:
    path = write_study(tmp_path, EVERYTHING, epsilon=400)

    def crash(question: Question, outcome: Outcome | None) -> None:
        if question.name == "spread" and outcome is None:
            raise Interrupted

    with pytest.raises(Interrupted):
        run_study(read_study(path), progress=crash)
    ledger = Ledger.load(f"sqlite:///{tmp_path}/books.db", "people")
    before, spent = len(list(ledger.entries())), ledger.spent
    assert before == 9
    second = run_study(read_study(path))
    stored = [receipt.stored for outcome in second.outcomes for receipt in outcome.receipts]
    assert stored == [True] * 9 + [False] * 17
    assert spent <= second.ledger.spent
    third = run_study(read_study(path))
    assert third.ledger.spent == second.ledger.spent
    assert [outcome.answer and outcome.answer.value for outcome in third.outcomes] == [
        outcome.answer and outcome.answer.value for outcome in second.outcomes
    ]
    assert third.classic == second.classic


def test_a_changed_question_is_another_question(tmp_path: Path) -> None:
    run_study(read_study(write_study(tmp_path, COUNT)))
    changed = run_study(read_study(write_study(tmp_path, COUNT.replace("60", "61"))))
    assert [receipt.stored for receipt in changed.outcomes[0].receipts] == [False]
    assert changed.ledger.spent == Cost(1)


AFTER = """
[[question]]
name = "after"
kind = "count"
where = "age < 20"
epsilon = {epsilon}
only_if = "{condition}"
"""


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


def test_planning_reads_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("a value was read")

    monkeypatch.setattr(DuckDB, "fetch", refuse)
    monkeypatch.setattr(DuckDB, "arrays", refuse)
    plan = plan_study(read_study(write_study(tmp_path, EVERYTHING, epsilon=400)))
    assert plan.fits
    assert not (tmp_path / "books.db").exists()


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


def test_units_with_several_rows(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT, COUNT.replace('"old"', '"people"') + 'count = "units"\n')
    path.write_text(
        path.read_text().replace('unit = "row"', 'unit = "person"\nrows = 2').replace("substitute", "add-remove")
    )
    result = run_study(read_study(path))
    assert [outcome.state for outcome in result.outcomes] == ["answered"] * 2
    assert result.size is None


def test_accounts(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = Ledger.create(
        url, "people", epsilon=10, delta=1e-3, neighbours="substitute", unit="visitor (one row each)"
    )
    path = write_study(tmp_path, COUNT)
    ledger.create_account("alice", Cost(4, 1e-5))
    path.write_text(path.read_text().replace('name = "people"', 'name = "people"\naccount = "alice"', 1))
    result = run_study(read_study(path))
    assert (result.ledger.limit, ledger.spent) == (Cost(4, 1e-5), Cost(0.5))
    assert result.ledger.name == "people/alice"


def test_no_value_in_any_message(tmp_path: Path) -> None:
    wrong = ("word > 1", f"word = {CANARY}", "CAST(word AS INTEGER) > 1", "word + 1 > 2")
    for place, condition in enumerate(wrong):
        folder = tmp_path / str(place)
        folder.mkdir()
        study = write_study(folder, COUNT.replace("age >= 60", condition.replace(CANARY, "zanzibar")))
        result = CliRunner().invoke(app, ["run", str(study)])
        assert CANARY not in result.output
        assert "Traceback" not in result.output


def test_lost_answers_are_not_sampled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_study(tmp_path, COUNT, AFTER.format(epsilon=0.5, condition="old > 0"))

    def broken(*args: object) -> None:
        raise RuntimeError(f"the disk said {CANARY}")

    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "fetch", broken)
        patch.setattr("expost.study.run.public_size", lambda study, table: PEOPLE)
        result = CliRunner().invoke(app, ["run", str(path)])
        assert result.exit_code == 1
        assert CANARY not in result.output
        assert "Traceback" not in result.output
    again = run_study(read_study(path))
    assert [outcome.state for outcome in again.outcomes] == ["lost", "skipped"]
    assert again.ledger.spent == Cost(0.5)
    assert CliRunner().invoke(app, ["run", str(path)]).exit_code == 1, "not everything was answered"


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


def summary(result: Result) -> list[Any]:
    return [(each.state, each.answer and each.answer.value, len(each.receipts)) for each in result.outcomes]


def test_a_repeated_question_ends_as_it_did(tmp_path: Path) -> None:
    repeated = ABOVE.format(threshold=9000, amount="epsilon = 0.5") + (
        'repeat = { until = "any", floor = 2, at_most = 3 }\n'
    )
    path = write_study(tmp_path, repeated, COUNT.replace("0.5", "2.5"))
    first = run_study(read_study(path))
    assert len(first.outcomes[0].receipts) == 3
    assert first.ledger.remaining < Cost(2, 1), "now less than the floor is left"
    assert summary(run_study(read_study(path))) == summary(first)


def test_a_study_with_a_skipped_question_runs_again(tmp_path: Path) -> None:
    rest = COUNT.replace('"old"', '"last"').replace("0.5", '"rest"')
    path = write_study(tmp_path, COUNT, AFTER.format(epsilon=0.5, condition="old < 5"), rest)
    first = run_study(read_study(path))
    assert [outcome.state for outcome in first.outcomes] == ["answered", "skipped", "answered"]
    assert [line.fit for line in plan_study(read_study(path)).lines] == ["stored", "may fit", "stored"]
    assert summary(run_study(read_study(path))) == summary(first)


def test_a_study_with_a_scale_that_was_withheld_runs_again(tmp_path: Path) -> None:
    spread = question("s", "stable_interquartile_range", column="age", missing=0, epsilon=0.01, delta=1e-9)
    median = question("m", "stable_median", column="age", missing=0, scale="s", epsilon=1, delta=1e-6)
    path = write_study(tmp_path, spread, median, COUNT.replace("0.5", '"rest"'))
    first = run_study(read_study(path))
    assert [outcome.state for outcome in first.outcomes] == ["withheld", "skipped", "answered"]
    assert summary(run_study(read_study(path))) == summary(first)


def test_two_accounts_ask_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    unit = read_study(write_study(tmp_path, COUNT)).privacy.ledger_unit
    ledger = Ledger.create(url, "people", epsilon=10, delta=1e-3, neighbours="substitute", unit=unit)
    for account in ("alice", "bob"):
        ledger.create_account(account, Cost(4, 1e-5))
        path = write_study(tmp_path, COUNT)
        path.write_text(path.read_text().replace('name = "people"', f'name = "people"\naccount = "{account}"', 1))
        result = run_study(read_study(path))
        assert result.error is None
        assert [receipt.stored for receipt in result.outcomes[0].receipts] == [False]
    assert ledger.spent == Cost(1)


SPREAD = question("s", "stable_interquartile_range", column="{}", missing=0, epsilon=1, delta=1e-6)
MIDDLE = (
    '[[question]]\nname = "m"\nkind = "stable_median"\ncolumn = "age"\nmissing = 0\nscale = "s"\nfallback = {}\n'
    "epsilon = 1\ndelta = 1e-6\n"
)


def test_an_answer_is_of_the_mechanism_that_gave_it(tmp_path: Path) -> None:
    first = run_study(read_study(write_study(tmp_path, SPREAD.format("age"), MIDDLE.format(9), epsilon=9)))
    other = run_study(read_study(write_study(tmp_path, SPREAD.format("cost"), MIDDLE.format(9), epsilon=9)))
    assert [receipt.stored for receipt in other.outcomes[1].receipts] == [False], "it leans on another spread"
    again = run_study(read_study(write_study(tmp_path, SPREAD.format("age"), MIDDLE.format(9), epsilon=9)))
    assert summary(again) == summary(first)
    assert again.ledger.spent == other.ledger.spent


def test_another_number_of_units_is_other_data(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT.replace("0.5", "1.5"))
    run_study(read_study(path))
    with (tmp_path / "people.csv").open("a") as people:
        people.write("9999,70,Rome,1.5,x\n")
    assert [receipt.stored for receipt in run_study(read_study(path)).outcomes[0].receipts] == [False]
    with (tmp_path / "people.csv").open("a") as people:
        people.write("9999,70,Rome,1.5,x\n")
    with pytest.raises(InvalidStudy, match="cannot fit"):
        run_study(read_study(path))


def test_the_same_name_in_another_folder_is_other_data(tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        result = run_study(read_study(write_study(folder, COUNT, url="sqlite:///../books.db")))
        assert [receipt.stored for receipt in result.outcomes[0].receipts] == [False]


def test_a_row_is_not_a_person(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT)
    by_row = path.read_text().replace("substitute", "add-remove")
    by_person = by_row.replace('unit = "row"', 'unit = "person"\nrows = 2').replace('who = "visitor"\n', "")
    path.write_text(by_person)
    assert run_study(read_study(path)).ledger.unit == "person (column person)"
    path.write_text(by_row.replace('"visitor"', '"Person"'))
    with pytest.raises(InvalidStudy, match=r"study.toml:9: \[privacy\] 'who' is 'Person', a column"):
        plan_study(read_study(path))
    path.write_text(by_row)
    with pytest.raises(
        InvalidStudy, match=r"another unit: .person .column person..*Another ledger has a limit of its own"
    ) as found:
        run_study(read_study(path))
    assert "'who'" not in str(found.value)


def test_what_cannot_be_asked_is_no_matter_of_budget(tmp_path: Path) -> None:
    tiny = '[derive]\ntiny = "age * 1e-300"\n' + SPREAD.format("tiny") + MIDDLE.format(9) + COUNT
    result = run_study(read_study(write_study(tmp_path, tiny)))
    assert [outcome.state for outcome in result.outcomes] == ["answered", "not possible", "answered"]
    assert "short of" not in result.outcomes[1].why
    assert result.error is None


def test_no_units_are_found_before_any_charge(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT, MIDDLE.replace('"s"', "8").format(9))
    (tmp_path / "people.csv").write_text("person,age,city,cost,word\n")
    with pytest.raises(InvalidStudy, match=r"study.toml:4: \[data\] the data has no visitor"):
        run_study(read_study(path))
    assert not (tmp_path / "books.db").exists()


def test_data_that_is_a_folder(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT)
    (tmp_path / "people.csv").unlink()
    (tmp_path / "people.csv").mkdir()
    with pytest.raises(InvalidStudy, match="is a folder, and expost reads only folders of Parquet files"):
        plan_study(read_study(path))


@pytest.mark.parametrize("option", ["--record", "--report"])
def test_where_nothing_can_be_written_nothing_is_charged(tmp_path: Path, option: str) -> None:
    path = write_study(tmp_path, COUNT)
    (tmp_path / "place").mkdir()
    result = CliRunner().invoke(app, ["run", str(path), option, str(tmp_path / "place")])
    assert result.exit_code == 2
    assert "cannot be written" in result.output
    assert not (tmp_path / "books.db").exists()


def test_a_run_in_memory_says_so(tmp_path: Path) -> None:
    path, page = write_study(tmp_path, COUNT, url="memory:"), tmp_path / "page.html"
    result = CliRunner().invoke(app, ["run", str(path), "--report", str(page)])
    assert "keeps no ledger" in result.stderr
    assert "old" in result.stdout.splitlines()[0], "answers are for other programs, too"
    assert "for this run alone" in page.read_text()
    assert "whole life" not in page.read_text()


def test_an_answer_lies_within_its_bounds(tmp_path: Path) -> None:
    median = MIDDLE.replace('"s"', "8").format(9).replace("epsilon = 1\n", "epsilon = 4\nbounds = [39.0, 39.01]\n")
    result = run_study(read_study(write_study(tmp_path, median + "slack = 400\n", url="memory:")), noise=SeededNoise(3))
    answer = result.outcomes[0].answer
    assert answer is not None
    assert answer.value in (39.0, 39.01)


def stored(path: Path) -> list[bool]:
    return [receipt.stored for outcome in run_study(read_study(path)).outcomes for receipt in outcome.receipts]


def test_a_study_that_moves_with_its_data_and_ledger_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    path = write_study(tmp_path / "here", COUNT)
    assert stored(path) == [False]
    (tmp_path / "here").rename(tmp_path / "there")
    assert stored(tmp_path / "there" / "study.toml") == [True]
    (tmp_path / "there" / "people.csv").rename(tmp_path / "people.csv")
    moved = tmp_path / "there" / "study.toml"
    moved.write_text(moved.read_text().replace('"people.csv"', '"../people.csv"'))
    assert stored(moved) == [False], "a file elsewhere is other data"


def test_columns_that_a_question_does_not_use_are_no_part_of_it(tmp_path: Path) -> None:
    derive = '[derive]\nhalf = "age / 2"\nfourth = "HALF / 2"\n'
    question = COUNT.replace("age >= 60", "Fourth >= 15")
    assert stored(write_study(tmp_path, derive, question)) == [False]
    other = 'other = "cost + 1"\n'
    path = write_study(tmp_path, derive + other, question, COUNT.replace('"old"', '"b"').replace("age", "other"))
    assert stored(path) == [True, False]
    path.write_text(path.read_text().replace('word = "text"', 'word = "integer"'))
    assert stored(path) == [True, True]
    path.write_text(path.read_text().replace('cost = "number"', 'cost = "integer"'))
    assert stored(path) == [True, False]
    path.write_text(path.read_text().replace('half = "age / 2"', 'half = "age / 3"'))
    assert stored(path) == [False, True]


def test_types_are_wrong_where_they_stand(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT)
    inline = path.read_text()
    path.write_text(inline.replace('"integer", city', '"intege", city'))
    with pytest.raises(InvalidStudy, match=r"study.toml:5: \[data\] column 'age' cannot be of type 'intege'"):
        plan_study(read_study(path))
    path.write_text(inline.replace('"integer", city', '"intege", city').replace('unit = "row"', 'unit = "e"\nrows = 1'))
    with pytest.raises(InvalidStudy, match=r"study.toml:5: \[data\] column 'age'"):
        plan_study(read_study(path))
    table = 'path = "people.csv"\n[data.schema]\n"person" = "integer"\n"aeg" = "integer"\n'
    path.write_text(re.sub(r'path = "people.csv"\nschema.*\n', table, inline))
    with pytest.raises(InvalidStudy, match=r"study.toml:7: \[data\] .*has no column 'aeg'"):
        plan_study(read_study(path))


def test_an_answer_is_never_farther_off_than_its_bounds_allow(tmp_path: Path) -> None:
    median = MIDDLE.replace('"s"', "800").format(9) + "bounds = [0, 80]\n"
    result = run_study(read_study(write_study(tmp_path, median, url="memory:")), noise=SeededNoise(2))
    answer = result.outcomes[0].answer
    assert answer is not None
    assert answer.error == 80


def test_no_folder_for_the_ledger(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT, url="sqlite:///nowhere/books.db")
    for command in ("plan", "run"):
        result = CliRunner().invoke(app, [command, str(path)])
        assert result.exit_code == 2
        assert "study.toml:17: [ledger] there is no folder" in result.output


def test_a_ledger_to_be_made_is_said_in_full(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT)
    path.write_text(path.read_text().replace('name = "people"', 'name = "people"\naccount = "alice"', 1))
    with pytest.raises(InvalidStudy) as error:
        plan_study(read_study(path))
    command = str(error.value).partition("expost ")[2]
    assert CliRunner().invoke(app, [*shlex.split(command)]).exit_code == 0
    with pytest.raises(InvalidStudy) as error:
        plan_study(read_study(path))
    command = str(error.value).partition("with expost ")[2]
    assert CliRunner().invoke(app, [*shlex.split(command)]).exit_code == 0
    assert run_study(read_study(path)).error is None


@pytest.mark.parametrize("account", ["alice-extra", "alicf", "team/bop", "team", "taem/bob", "alice/x"])
def test_a_study_creates_no_account(tmp_path: Path, account: str) -> None:
    """A typo, or an account of one's own, would be a limit of its own."""
    unit = "visitor (one row each)"
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = Ledger.create(url, "people", epsilon=10, delta=1e-3, neighbours="substitute", unit=unit)
    ledger.create_account("alice", Cost(4, 1e-5))
    ledger.create_account("team", Cost(5, 1e-4)).create_account("bob", Cost(4, 1e-5))
    path = write_study(tmp_path, COUNT)
    text = path.read_text()
    for command in (plan_study, run_study):
        path.write_text(text.replace('name = "people"', f'name = "people"\naccount = "{account}"', 1))
        with pytest.raises(InvalidStudy, match=r"study.toml:19: \[ledger\] .*(has no account|has a limit)"):
            command(read_study(path))
    assert [each.name for each in ledger.accounts] == ["people/alice", "people/team"]
    assert not list(ledger.entries())
    path.write_text(text.replace('name = "people"', 'name = "people"\naccount = "team/bob"', 1))
    assert run_study(read_study(path)).ledger.name == "people/team/bob"
    assert ledger.account("team").spent == Cost(0.5)


@pytest.mark.parametrize(("unit", "theirs", "fits"), [
    ('unit = "person"\nrows = 2', "person", True),
    ('unit = "person"\nrows = 2', "visitor", False),
    ('unit = "person"\nrows = 2', "persons", True),
    ('unit = "person"\nrows = 2', "Person ID", True),
    ('unit = "row"', "row", True),
    ('unit = "row"', "visitor", False),
    ('unit = "row"', "person", False),
])  # fmt: skip
def test_a_ledger_made_with_a_plain_unit(tmp_path: Path, unit: str, theirs: str, fits: bool) -> None:
    url = f"sqlite:///{tmp_path}/books.db"
    Ledger.create(url, "people", epsilon=4, delta=1e-5, neighbours="substitute", unit=theirs)
    path = write_study(tmp_path, COUNT)
    path.write_text(path.read_text().replace('unit = "row"', unit, 1))
    if fits:
        assert plan_study(read_study(path)).fits
    else:
        with pytest.raises(InvalidStudy, match=r"expost ledger create .* --unit 'visitor .* --neighbours substitute"):
            plan_study(read_study(path))


def test_an_empty_table_is_answered_and_charged_like_any_other(tmp_path: Path) -> None:
    """Under add-remove it is private that there is nobody."""
    asked = (
        COUNT,
        question("total", "sum", column="age", bounds=[0, 80], epsilon=0.5),
        question("mean", "mean", column="age", bounds=[10, 80], epsilon=0.5),
        question("bands", "histogram", column="age", bins=4, bounds=[0, 80], epsilon=0.5),
        question("cities", "discover", column="city", epsilon=0.5, delta=1e-6),
        question("middle", "median", column="age", bounds=[15, 45], epsilon=0.5),
    )
    path = write_study(tmp_path, *asked)
    path.write_text(path.read_text().replace("substitute", "add-remove"))
    full = (tmp_path / "people.csv").read_text()
    (tmp_path / "people.csv").write_text(full.splitlines()[0] + "\n")
    result = run_study(read_study(path))
    assert [outcome.state for outcome in result.outcomes] == ["answered"] * 6
    assert result.ledger.spent == Cost(3, 1e-6)
    mean, median = (result.outcomes[place].answer for place in (2, 5))
    assert mean is not None
    assert median is not None
    assert 10 <= mean.value <= 80
    assert 15 <= median.value <= 45


@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
def test_a_filtered_median_leaves_empty_values_out(tmp_path: Path, neighbours: str) -> None:
    """What a filter leaves out, and what is empty, does not count: it is not 0."""
    asked = (
        question("all", "median", column="age", bounds=[0, 80], epsilon=4),
        question("old", "median", column="age", bounds=[0, 80], where="age >= 60", epsilon=4),
        question("null", "median", column="late", bounds=[0, 80], epsilon=4),
        question("spread", "interquartile_range", column="age", bounds=[0, 80], where="age >= 60", epsilon=4),
    )
    derived = '\n[derive]\nlate = "CASE WHEN age >= 60 THEN age END"\n'
    path = write_study(tmp_path, derived, *asked, epsilon=16)
    path.write_text(path.read_text().replace("substitute", neighbours))
    found = {outcome.question.name: outcome.answer for outcome in run_study(read_study(path)).outcomes}
    values = {name: answer.value for name, answer in found.items() if answer is not None}
    assert values == pytest.approx({"all": 39, "old": 69, "null": 69, "spread": 10}, abs=2)


def test_a_stated_size_is_checked_before_any_charge(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT)
    path.write_text(path.read_text().replace('"substitute"', f'"substitute"\nsize = {PEOPLE}'))
    (tmp_path / "people.csv").write_text("person,age,city,cost,word\n")
    with pytest.raises(InvalidStudy, match=r"study.toml:11: \[privacy\] .* has 0 units, but size = 6000 was declared"):
        run_study(read_study(path))
    assert not (tmp_path / "books.db").exists()


def test_spread_and_dependence_leave_empty_values_out(tmp_path: Path) -> None:
    """Before, an empty value counted as 0 unless something else was said: a variance of 33 came out as 914 ± 0.02."""
    asked = (
        question("spread", "variance", column="late", bounds=[0, 100], epsilon=20),
        question("line", "regression", features=["late"], target="cost", bounds=[0, 80], target_bounds=[0, 200],
                 epsilon=20),
    )  # fmt: skip
    derived = '\n[derive]\nlate = "CASE WHEN age >= 60 THEN age END"\n'
    result = run_study(read_study(write_study(tmp_path, derived, *asked, epsilon=40)))
    spread, line = (outcome.answer for outcome in result.outcomes)
    assert spread is not None
    assert line is not None
    assert abs(spread.value - 33.25) < 15
    assert abs(line.value["late"] - 2) < 0.5


def test_who_cannot_leave_values_out_says_what_empty_ones_count_as(tmp_path: Path) -> None:
    path = write_study(tmp_path, question("m", "stable_median", column="age", scale=40, epsilon=1, delta=1e-6))
    with pytest.raises(InvalidStudy, match="state 'missing': what an empty value counts as"):
        read_study(path)
