"""A rehearsal asks rows that were made up: it reads no value, and charges nothing."""

import json
from pathlib import Path

import pytest

from commands import CliRunner
from expost.cli.main import app
from expost.data.duckdb.engine import DuckDB
from expost.study import plan_study, read_study, run_study
from expost.study.kinds import KINDS
from studies import CANARY, COUNT, EVERYTHING, question, write_study

pytestmark = pytest.mark.slow
MEAN = question("average", "mean", column="cost", bounds=[500, 900], epsilon=1)


def test_every_kind_can_be_rehearsed(tmp_path: Path) -> None:
    """And whatever the data is: the file has a first line only."""
    path = write_study(tmp_path, EVERYTHING, epsilon=400)
    (tmp_path / "people.csv").write_text("person,age,city,cost,word\n")
    result = run_study(read_study(path), rehearse=True)
    assert result.error is None
    assert set(KINDS) - {outcome.question.kind for outcome in result.outcomes} <= {"tuned_classifier"}  # takes long
    assert {outcome.state for outcome in result.outcomes} <= {"answered", "withheld", "skipped"}
    assert [each.name for each in tmp_path.iterdir() if each.suffix == ".db"] == []
    expected = {line.question.name: line.expected for line in plan_study(read_study(path)).lines}
    for outcome in result.outcomes:
        if outcome.state == "answered" and outcome.answer is not None and "none above" not in outcome.answer.text:
            has = "±" in outcome.answer.text or "off by at most" in outcome.answer.text
            assert has != ("no error bar" in outcome.how), outcome.question.name
            assert has or expected[outcome.question.name] != "with the answer", outcome.question.name


def test_rows_lie_within_the_bounds_and_not_where_the_data_is(tmp_path: Path) -> None:
    result = run_study(read_study(write_study(tmp_path, MEAN)), rehearse=True)
    answer = result.outcomes[0].answer
    assert answer is not None
    assert 600 < answer.value < 800  # the data's mean is 79.5


@pytest.mark.parametrize("account", ["", 'account = "nobody"\n'])
def test_it_is_marked_and_leaves_nothing(tmp_path: Path, account: str) -> None:
    path = write_study(tmp_path, COUNT, MEAN)
    path.write_text(path.read_text().replace('name = "people"\n', f'name = "people"\n{account}', 1))
    before = sorted(tmp_path.iterdir())
    shown = CliRunner().invoke(app, ["run", str(path), "--rehearse"])
    assert shown.exit_code == 0
    assert "This is a rehearsal." in shown.output
    assert "people (rehearsal): limit" in shown.output
    assert sorted(tmp_path.iterdir()) == before
    kept, page = tmp_path / "practice.json", tmp_path / "practice.html"
    again = CliRunner().invoke(app, ["run", str(path), "--rehearse", "--record", str(kept), "--report", str(page)])
    assert again.exit_code == 0
    assert json.loads(kept.read_text())["title"] == "Rehearsal: People"
    text = page.read_text()
    assert 'role="note">This is a rehearsal.' in text
    assert "for as long as the ledger lasts" in text  # of a real run, not of this one
    assert "There is nothing to check" in text
    assert "audit trail ends at" not in text
    assert ", public" not in text


def test_units_with_several_rows(tmp_path: Path) -> None:
    path = write_study(tmp_path, question("who", "count", count="units", where="age >= 0", epsilon=8), epsilon=8)
    path.write_text(
        path.read_text().replace('unit = "row"', 'unit = "person"\nrows = 5\nsize = 300').replace("who =", "#")
    )
    answer = run_study(read_study(path), rehearse=True).outcomes[0].answer
    assert answer is not None
    assert answer.value == pytest.approx(300, abs=5)


def test_no_row_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    fetch = DuckDB.fetch

    def watched(self: DuckDB, query: str) -> list[tuple[object, ...]]:
        asked.append(query)
        return fetch(self, query)

    monkeypatch.setattr(DuckDB, "fetch", watched)
    run_study(read_study(write_study(tmp_path, COUNT, MEAN)), rehearse=True)
    assert asked
    assert not any("people.csv" in query or CANARY in query for query in asked)


def test_columns_of_every_kind(tmp_path: Path) -> None:
    path = write_study(
        tmp_path,
        question("late", "count", where="born > DATE '2010-01-01'", epsilon=1),
        question("seen", "count", where="hour(seen) > 10", epsilon=1),
        question("well", "count", where="well", epsilon=1),
        question("floors", "histogram", column="floor", keys=[7, 9], epsilon=1),
    )
    (tmp_path / "people.csv").write_text("person,born,seen,well,floor\n")
    schema = 'schema = { born = "date", seen = "timestamp", well = "boolean", floor = "integer" }'
    lines = [schema if line.startswith("schema") else line for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines))
    outcomes = run_study(read_study(path), rehearse=True).outcomes
    answers = [outcome.answer.value for outcome in outcomes if outcome.answer is not None]
    assert all(100 < found < 900 for found in (*answers[:3], answers[3]["7"], answers[3]["9"]))
