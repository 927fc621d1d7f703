"""What was answered once is not sampled again, and nothing else is taken for it."""

from pathlib import Path
from typing import Any

import pytest

from commands import CliRunner
from expost import Cost, Ledger
from expost.cli.main import app
from expost.data.duckdb import DuckDB
from expost.errors import InvalidStudy
from expost.study import plan_study, read_study, run_study
from expost.study.model import Question
from expost.study.run import Outcome, Result
from studies import ABOVE, AFTER, CANARY, COUNT, EVERYTHING, MIDDLE, SPREAD, question, write_study

pytestmark = pytest.mark.slow


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
    assert before == 10
    second = run_study(read_study(path))
    stored = [receipt.stored for outcome in second.outcomes for receipt in outcome.receipts]
    assert stored == [True] * 10 + [False] * 18
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


def test_lost_answers_are_not_sampled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_study(tmp_path, COUNT, AFTER.format(epsilon=0.5, condition="old > 0"))

    fetch = DuckDB.fetch

    def broken(engine: DuckDB, query: str) -> Any:
        if "age" not in query:  # the public number of rows
            return fetch(engine, query)
        raise RuntimeError(f"the disk said {CANARY}")

    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "fetch", broken)
        result = CliRunner().invoke(app, ["run", str(path)])
        assert result.exit_code == 1
        assert CANARY not in result.output
        assert "Traceback" not in result.output
    again = run_study(read_study(path))
    assert [outcome.state for outcome in again.outcomes] == ["lost", "skipped"]
    assert again.ledger.spent == Cost(0.5)
    assert CliRunner().invoke(app, ["run", str(path)]).exit_code == 1, "not everything was answered"


def summary(result: Result) -> list[Any]:
    return [(each.state, each.answer and each.answer.value, len(each.receipts)) for each in result.outcomes]


def test_a_repeated_question_ends_as_it_did(tmp_path: Path) -> None:
    repeated = ABOVE.format(threshold=9000, amount="epsilon = 0.5") + (
        'repeat = { until = "any", floor = 2, at_most = 3 }\n'
    )
    path = write_study(tmp_path, repeated, COUNT.replace("0.5", "2.5"))
    first = run_study(read_study(path))
    assert len(first.outcomes[0].receipts) == 3
    assert first.ledger.remaining < Cost(2, 1), "now less than the floor remains"
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
    assert run_study(read_study(path)).ledger.unit == "person"
    path.write_text(by_row.replace('"visitor"', '"Person"'))
    with pytest.raises(InvalidStudy, match=r"study.toml:9: \[privacy\] 'who' is 'Person', a column"):
        plan_study(read_study(path))
    path.write_text(by_row)
    with pytest.raises(
        InvalidStudy, match=r"unit: ledger .* says 'person'.*Another ledger has a limit of its own"
    ) as found:
        run_study(read_study(path))
    assert "'who'" not in str(found.value)


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
