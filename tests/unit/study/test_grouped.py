"""Questions by group: one answer for each, from one ε."""

import json
from pathlib import Path
from typing import Any

import pytest

from expost import Cost, SeededNoise
from expost.errors import InvalidStudy
from expost.service.dashboard.forms import question_of
from expost.study import plan_study, read_study, record_of, run_study
from expost.study.report import report_html
from studies import (
    of_people,
    question,
    value,
    write_study,
)

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"kind": "count", "by": "city"}, "'delta' is missing"),
        ({"kind": "count", "by_keys": ["Rome"]}, "state it, or leave 'by_keys' out"),
        ({"kind": "count", "by_total": True}, "state it, or leave 'by_total' out"),
        ({"kind": "correlation", "by": "city", "columns": ["age", "cost"], "by_keys": ["Rome"]}, "state 'bounds'"),
        ({"kind": "winsorized_mean", "by": "city", "column": "cost", "trim": 0.1}, "in 'by_keys'"),
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


def test_forms_read_a_pair_for_all_features_or_for_each() -> None:
    assert question_of("regression", {"bounds": "0, 100"})["bounds"] == [0, 100]
    assert question_of("regression", {"bounds": "0, 100; 0, 9"})["bounds"] == [[0, 100], [0, 9]]


MANY = list(range(1500))
TUNED: dict[str, Any] = {"features": ["age"], "target": "age < 40", "norm": 1, "missing": 0, "epsilon": 1}
COMBINED = f'by_keys = {{ age = {MANY}, "age + 1" = {MANY}, "age + 2" = {MANY} }}\n'
BINNED: dict[str, Any] = {"column": "age", "bins": 10**6, "bounds": [0, 100], "epsilon": 1}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (question("n", "count", by=["age", "age + 1", "age + 2"], epsilon=1) + COMBINED, "= 3375000000"),
        (question("n", "tuned_classifier", regularizers=MANY[1:], shares=[1 / (1 + i) for i in MANY], **TUNED), "224"),
        (question("n", "training", steps=10_000, every=1, delta=1e-6, **TUNED), "stop at up to 100 places, got 10000"),
        (question("n", "histogram", **BINNED), "from 1 to 100000"),
        (question("n", "stable_regression", features=["age"], target="cost", bounds=[0, 80], target_bounds=[0, 200],
                  cell=1, blocks=5, grids=10**9, missing=0, epsilon=1, delta=1e-6), "grids is a whole number"),
    ],
)  # fmt: skip
def test_a_small_plan_makes_no_large_product(tmp_path: Path, asked: str, said: str) -> None:
    path = write_study(tmp_path, asked, url="memory:")
    with pytest.raises(InvalidStudy, match=said):
        plan_study(read_study(path))
