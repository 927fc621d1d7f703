"""A study may say about how many rows will count: plans reckon with it, and nothing else."""

from pathlib import Path

import pytest

from expost.study import plan_study, read_study, run_study
from studies import question, write_study

ASKED = (
    question("whole", "mean", column="age", bounds=[0, 100], epsilon=1),
    question("each", "mean", column="age", bounds=[0, 100], epsilon=1, by="city", by_keys=["Rome", "Oslo"]),
    question("beyond", "lost", column="age", bounds=[0, 20], epsilon=1),
)


def study_of(folder: Path, expected: int | None) -> Path:
    path = write_study(folder, *ASKED, epsilon=9)
    text = path.read_text().replace('neighbours = "substitute"', 'neighbours = "add-remove"')
    said = "" if expected is None else f"expected = {expected}\n"
    path.write_text(text.replace("[data]\n", f"[data]\n{said}"))
    return path


def test_plans_reckon_with_it(tmp_path: Path) -> None:
    usual = [line.expected for line in plan_study(read_study(study_of(tmp_path, None))).lines]
    many = [line.expected for line in plan_study(read_study(study_of(tmp_path, 8_000))).lines]
    assert [text.partition("if ")[2] for text in usual] == ["1,000 values count"] * 3
    assert [text.partition("if ")[2] for text in many] == [
        f"{number} values count" for number in ("8,000", "4,000", "8,000")
    ]
    few, more = ([float(text.split()[0]) for text in texts] for texts in (usual, many))
    assert [before / after for before, after in zip(few, more, strict=True)] == pytest.approx([8, 4, 8], rel=0.05)


def test_what_is_stored_does_not_depend_on_it(tmp_path: Path) -> None:
    first = run_study(read_study(study_of(tmp_path, None)))
    again = run_study(read_study(study_of(tmp_path, 50_000)))
    assert [outcome.answer for outcome in again.outcomes] == [outcome.answer for outcome in first.outcomes]
    assert again.ledger.remaining == first.ledger.remaining
