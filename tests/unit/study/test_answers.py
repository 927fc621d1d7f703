"""Nothing that was paid for is lost: what was published can be listed and exported, and changes are pointed out."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from commands import CliRunner
from expost import Laplace, Ledger
from expost.cli.main import app
from expost.errors import LedgerCorrupt
from expost.frame import Frame
from expost.reporting.record import NOT_KEPT
from expost.reporting.rows import number_lines, words_of
from expost.study import plan_study, read_study, run_study
from expost.study.answers import as_rows, published
from expost.study.sources import stored_ledger
from studies import CANARY, COUNT, question, write_study

pytestmark = pytest.mark.slow
NUMBER = ("value", "low", "high", "error")
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
    listed = published(stored_ledger(study), study)
    names = [("average", True), ("large", True), ("large: values", True)]
    assert [(one.question, one.current) for one in listed] == [("old", False), *names, ("old", True)]
    answers = [outcome.answer for outcome in (first.outcomes[0], second.outcomes[0])]
    assert [one.text for one in (listed[0], listed[4])] == [answer.text for answer in answers if answer is not None]
    assert [one.frame for one in (listed[0], listed[4])] == [answer.frame for answer in answers if answer is not None]
    rows = [row for row in as_rows(listed) if row["question"] == "old"]
    assert [(row["value"], row["error"], row["epsilon"]) for row in rows] == [
        (answer.value, answer.error, "0.5") for answer in answers if answer is not None
    ]
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
    assert [[row[name] for name in NUMBER] for row in rows] == [
        ["" if row[name] is None else str(row[name]) for name in NUMBER] for row in listed
    ]
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
    listed = published(stored_ledger(read_study(path)), read_study(path))
    assert [(one.version, one.current) for one in listed] == [("1", False)] * 2 + [("2026 b", True)] * 2


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


def test_a_number_has_a_line_of_its_own_with_its_error(tmp_path: Path) -> None:
    """Before, a CSV file had JSON in a cell, and no ±."""
    ledger = Ledger.create(f"sqlite:///{tmp_path}/books.db", "people", 9, neighbours="substitute", unit="person")
    release = ledger.run(Laplace(epsilon=1, sensitivity=1), on=np.array([100, 200]), key="mine", label="two")
    file = tmp_path / "answers.csv"
    address = f"sqlite:///{tmp_path}/books.db"
    shown("answers", address, "people", "--csv", str(file))
    with file.open() as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == [
        "entry", "when", "account", "question", "label", "version", "current", "what", "key", "value", "low", "high",
        "error", "note", "epsilon", "delta", "rho",
    ]  # fmt: skip
    assert [float(row["value"]) for row in rows] == release.output.tolist()
    assert [row["key"] for row in rows] == ["0", "1"]
    assert [float(row["error"]) for row in rows] == [release.value.error] * 2
    listed = json.loads(shown("answers", address, "people", "--json"))
    assert [row["keys"] for row in listed] == [{"place": 0}, {"place": 1}]
    one, other = release.output.tolist()
    assert f"0: {one}, 1: {other}; each ± {release.value.error} at 95 %" in shown("answers", address, "people")


def test_frames_in_words_and_lines() -> None:
    names = ("what", "city", "year", "value", "low", "high", "error")
    frame = Frame(names, (("mean cost", "Rome", 2024, 3.02, 2.97, 3.07, 0.05), ("mean cost", "a, b", 2025, None, None,
                  None, None)))  # fmt: skip
    assert words_of(frame) == 'Rome, 2024: 3.020 ± 0.050; "a, b", 2025: withheld; each at 95 %'
    assert [line.note for line in number_lines(frame)] == ["", "withheld"]
    assert number_lines(frame)[0].keys == {"city": "Rome", "year": 2024}
    assert words_of(
        Frame(("what", "value", "low", "high", "error"), (("value", 3.5, None, None, None),), notes=("so",))
    ) == ("3.5 (no error: so)")
    pages = tuple(("value", i, f"/p/{i}", None, None, None) for i in range(10))
    assert words_of(Frame(("what", "place", "value", "low", "high", "error"), pages)).endswith("/p/7, /p/8, /p/9")
    assert words_of(Frame(("what", "value", "low", "high", "error"), ())) == "none"
    mask = Frame(("page", "above"), (("a", "above"), ("b", "below"), ("c", "above"), ("d", "not compared")))
    assert words_of(mask) == "above: a, c; not compared: d; below: b"
    assert [(line.what, line.keys, line.value) for line in number_lines(mask)][:1] == [
        ("above", {"page": "a"}, "above")
    ]


def test_frames_are_the_same_after_json() -> None:
    rows = (("v", "a", np.int64(3), 1.5, float("inf"), None), ("v", None, 0.1 + 0.2, 0.3, 0.4, 0.1))
    frame = Frame(("what", "key", "value", "low", "high", "error"), rows, True, ("why",))
    again = Frame.from_json(json.loads(json.dumps(frame.to_json(), allow_nan=False)))
    assert again == frame
    assert again["value"] == [3, 0.1 + 0.2]


def test_an_output_that_was_dropped_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(epsilon=1)
    ledger.run(Laplace(epsilon=1, sensitivity=1), on=3, key="mine")

    def dropped(key: str) -> None:
        raise LedgerCorrupt("dropped")

    monkeypatch.setattr(ledger, "frame", dropped)
    assert [(row.question, row.text) for row in published(ledger)] == [("mine", NOT_KEPT)]
    assert [(row["value"], row["note"]) for row in as_rows(published(ledger))] == [(None, NOT_KEPT)]


def test_a_sum_that_may_have_been_cut_off_has_no_error(tmp_path: Path) -> None:
    """Narrow bounds very far from 0 make a fine grid, of which 2^60 steps are few of these values."""
    asked = question("far", "sum", column="age + 0.5", bounds=[4e11, 4e11 + 1], missing=4e11, epsilon=200)
    result = run_study(read_study(write_study(tmp_path, asked, epsilon=400)))
    (answer,) = (outcome.answer for outcome in result.outcomes)
    assert answer is not None
    assert answer.error is None
    assert "no error: sums are cut off" in answer.text
