"""Answers say what their bounds take away, once that was asked."""

from pathlib import Path

from expost.study import plan_study, read_study, run_study
from studies import question, write_study

BOUNDS = {"column": "age", "bounds": [0, 20], "epsilon": 20}
LOST = question("beyond", "lost", **BOUNDS)
MEAN = question("average", "mean", **BOUNDS)
SPREAD = question("spread", "variance", **BOUNDS)
OTHER = question("wide", "mean", column="age", bounds=[0, 100], epsilon=20)


def test_answers_quote_what_is_known_to_be_lost(tmp_path: Path) -> None:
    path = write_study(tmp_path, LOST + MEAN + SPREAD + OTHER, epsilon=90)
    first, average, spread, wide = run_study(read_study(path)).outcomes
    assert first.answer is not None
    assert "% above 20" in first.answer.text
    notices = [outcome.answer.notice for outcome in (average, spread, wide) if outcome.answer is not None]
    assert notices[0].endswith("% of the values were moved to the bounds: this is probably too low")
    assert notices[1].endswith("% of the values were moved to the bounds: this is probably too low")
    assert notices[2] == ""
    again = run_study(read_study(path)).outcomes[1]  # from the ledger
    assert again.answer is not None
    assert again.answer.notice == notices[0]


def test_a_plan_offers_to_ask_what_is_lost(tmp_path: Path) -> None:
    without, asked = (read_study(write_study(tmp_path, text, epsilon=90)) for text in (MEAN + OTHER, LOST + MEAN))
    offered = [note for note in plan_study(without).about_errors if "lost" in note]
    assert offered == ['average, wide: kind = "lost", asked before, says how many values are clipped']
    late = read_study(write_study(tmp_path, MEAN + LOST, epsilon=90))
    assert [note for note in plan_study(late).about_errors if note.startswith("average: ")]
    assert not [note for note in plan_study(asked).about_errors if "lost" in note]
