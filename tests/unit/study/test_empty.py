"""Empty tables and empty values are answered and charged like any others."""

from pathlib import Path

import pytest

from expost import Cost
from expost.errors import InvalidStudy
from expost.study import read_study, run_study
from studies import COUNT, PEOPLE, question, write_study

pytestmark = pytest.mark.slow


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
