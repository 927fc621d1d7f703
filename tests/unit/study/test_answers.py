"""Nothing that was paid for is lost: what was published can be listed and exported, and changes are pointed out."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from commands import CliRunner
from expost import WITHHELD, Laplace, Ledger, LedgerCorrupt
from expost.cli.main import app
from expost.mechanisms.stability.quantile_range import Bin
from expost.study import plan_study, read_study, run_study
from expost.study.answers import NOT_KEPT, as_rows, plain, published
from expost.study.sources import stored_ledger
from studies import CANARY, COUNT, question, write_study

MEAN = question("average", "mean", column="cost", bounds=[0, 200], epsilon=0.5)
LARGE = question(
    "large", "large", column="city", keys=["Rome", "Oslo"], threshold=100, at_most=2, epsilon=0.5
)  # fmt: skip


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def test_edits_of_a_question_are_kept(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT, MEAN, LARGE)
    first = run_study(read_study(path))
    path.write_text(path.read_text().replace("age >= 60", "age >= 70"))
    second = run_study(read_study(path))
    study = read_study(path)
    rows = as_rows(published(stored_ledger(study), study))
    found = [(row["question"], row["current"]) for row in rows]
    names = [("average", True), ("large", True), ("large: values", True)]
    assert found == [("old", False), *names, ("old", True)]
    answers = [outcome.answer for outcome in (first.outcomes[0], second.outcomes[0])]
    assert [rows[0]["value"], rows[4]["value"]] == [answer.value for answer in answers if answer is not None]
    assert [row["epsilon"] for row in rows[:2]] == ["0.5", "0.5"]
    assert stored_ledger(study).spent == second.ledger.spent, "listing is free"


def test_they_are_exported(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT, MEAN)
    shown("run", str(path))
    listed = json.loads(shown("answers", str(path), "--json"))
    by_address = json.loads(shown("answers", f"sqlite:///{tmp_path}/books.db", "people", "--json"))
    assert [row | {"current": None} for row in listed] == by_address
    file = tmp_path / "answers.csv"
    assert "2 answers in" in shown("answers", str(path), "--csv", str(file))
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    assert [json.loads(row["value"]) for row in rows] == [row["value"] for row in listed]
    table = shown("answers", str(path))
    assert "average" in table
    assert CANARY not in table


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["answers", "sqlite:///x.db"], "after an address comes the ledger's name"),
        (["answers", "study.toml", "people"], "a study names its ledger and account itself"),
        (["answers", "study.toml"], "there is no ledger 'people' here"),
        (["answers", "study.toml", "--csv", "people.csv"], "exists already"),
    ],
)
def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str) -> None:
    write_study(tmp_path, COUNT)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_another_version_of_the_data_is_pointed_out(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT, MEAN.replace("0.5", "0.25"))
    shown("run", str(path))
    path.write_text(path.read_text().replace("[privacy]", 'version = "2026 b"\n\n[privacy]'))
    said = "is asked again: the ledger has its answer about version '1', and [data] says '2026 b'"
    assert [line.why for line in plan_study(read_study(path)).lines] == [said, said]
    output = shown("run", str(path))
    assert f"beware: 'old' {said}" in output
    assert "beware" not in shown("run", str(path)), "now it has answers about this version"
    rows = as_rows(published(stored_ledger(read_study(path)), read_study(path)))
    assert [(row["version"], row["current"]) for row in rows] == [("1", False)] * 2 + [("2026 b", True)] * 2


def test_a_ledger_that_is_gone_or_replaced_is_pointed_out(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT)
    shown("run", str(path))
    assert "beware" not in shown("plan", str(path))
    for file in tmp_path.glob("books.db*"):
        file.unlink()
    assert "beware: ledger 'people', from which the last run was paid, is gone" in shown("plan", str(path))
    unit = "visitor (one row each)"
    Ledger.create(f"sqlite:///{tmp_path}/books.db", "people", 4, 1e-5, neighbours="substitute", unit=unit)
    assert "was replaced: it has not the line that the record noted" in shown("plan", str(path))


def test_plain_values() -> None:
    assert plain({1: (np.float64(2), WITHHELD)}) == {"1": [2.0, "withheld"]}
    assert plain(np.arange(3)) == [0, 1, 2]
    assert plain(Bin(1, 2.0, 4.0)) == {"leg": 1, "lower": 2.0, "upper": 4.0}
    assert plain(1j) == "1j"


def test_an_output_that_was_dropped_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(epsilon=1)
    ledger.run(Laplace(epsilon=1, sensitivity=1), on=3, key="mine")

    def dropped(key: str) -> None:
        raise LedgerCorrupt("dropped")

    monkeypatch.setattr(ledger, "output", dropped)
    assert [(row.question, row.value) for row in published(ledger)] == [("mine", NOT_KEPT)]
