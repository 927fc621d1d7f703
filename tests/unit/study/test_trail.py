"""Whoever reads the audit trail sees what was asked, and nothing of the answers but parts and charges."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from expost import Ledger
from expost.study import read_study, run_study
from expost.study.run import Result
from studies import CITIES, MUCH, MUCH_AND_DELTA, question, write_people, write_study

SPREAD = question("s", "stable_interquartile_range", column="cost", missing=0, **MUCH_AND_DELTA)
MIDDLE = question("m", "stable_median", column="cost", missing=0, scale="s", slack=40, **MUCH_AND_DELTA)
LARGE = question("big", "large", **CITIES, **MUCH)


def ran(
    folder: Path, changed: Callable[[str], str], url: str = "sqlite:///books.db"
) -> tuple[Result, list[dict[str, Any]]]:
    """A study of other people, in a new ledger, and what its trail says was asked."""
    people = write_people(folder)
    people.write_text(changed(people.read_text()))
    study = read_study(write_study(folder, SPREAD, MIDDLE, LARGE, epsilon=400, url=url))
    result = run_study(study)
    assert [outcome.state for outcome in result.outcomes] == ["answered"] * 3
    return result, [line.body for line in result.ledger.audit_trail() if line.kind == "reserve"]


def others(people: str) -> str:
    """Ten times the cost, and other cities that are large."""
    return people.replace("Rome", "Paris").replace(".5,", "0.5,")


def test_the_trail_of_other_answers_is_the_same(tmp_path: Path) -> None:
    one, asked = ran(tmp_path, lambda people: people)
    other, then = ran(tmp_path, others, "sqlite:///others.db")
    values = [[outcome.answer and outcome.answer.value for outcome in each.outcomes] for each in (one, other)]
    assert all(first != second for first, second in zip(*values, strict=True)), "the answers differ"
    assert [len(outcome.receipts) for outcome in one.outcomes] == [1, 1, 2]
    assert asked == then, "a key, a subject or a fingerprint is made from an answer"


def test_a_scale_of_nothing_looks_like_any_other(tmp_path: Path) -> None:
    """The fallback takes its place, and the trail does not say so."""
    middle = MIDDLE + "fallback = 9\n"
    asked = []
    for url, cost in (("sqlite:///books.db", None), ("sqlite:///others.db", "7")):
        people = write_people(tmp_path)
        rows = [row.split(",") for row in people.read_text().splitlines()]
        same = [",".join((*row[:3], cost or row[3], row[4])) for row in rows[1:]]
        people.write_text("\n".join([",".join(rows[0]), *same]) + "\n")
        result = run_study(read_study(write_study(tmp_path, SPREAD, middle, epsilon=400, url=url)))
        answer = result.outcomes[0].answer
        assert answer is not None
        assert (answer.text == "0") is (cost is not None)
        asked.append([line.body for line in result.ledger.audit_trail() if line.kind == "reserve"])
    assert asked[0] == asked[1]


def test_what_follows_an_answer_is_of_that_answer(tmp_path: Path) -> None:
    first, _ = ran(tmp_path, lambda people: people)
    again = run_study(first.study)
    assert all(receipt.stored for outcome in again.outcomes for receipt in outcome.receipts)
    # what the median leans on is another question, so the median is, too
    path = write_study(tmp_path, SPREAD + "grid = 3\n", MIDDLE, LARGE, epsilon=400)
    other = run_study(read_study(path))
    assert [[receipt.stored for receipt in outcome.receipts] for outcome in other.outcomes] == [
        [False], [False], [True, True]
    ]  # fmt: skip
    keys = [entry.key or "" for entry in Ledger.load(f"sqlite:///{tmp_path}/books.db", "people").entries()]
    assert len({key.split(" after=")[1] for key in keys if key.startswith("m ")}) == 2
