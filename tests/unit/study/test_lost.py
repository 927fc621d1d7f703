"""Answers say what their bounds take away, once that was asked."""

from pathlib import Path

from commands import CliRunner
from expost.cli.main import app
from expost.study import plan_study, read_study, run_study
from expost.study.kinds.kind import SAYS_NOTHING
from studies import PEOPLE, question, write_study

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


CAPPED = 'unit = "person"\nrows = 1\n'


def capped(folder: Path, *questions: str, **options: float) -> Path:
    """The same rows, two of each person, of which one counts."""
    path = write_study(folder, *questions, **options)  # type: ignore[arg-type]
    path.write_text(path.read_text().replace('unit = "row"\n', CAPPED))
    return path


def test_counts_quote_the_units_over_the_cap(tmp_path: Path) -> None:
    """Before: only sums and means of the same column, within the same bounds."""
    where = "age >= 0"
    loss = question("beyond", "lost", **BOUNDS, where=where)
    path = capped(
        tmp_path,
        loss,
        question("old", "count", where=where, epsilon=1),
        question("bands", "histogram", column="age", bins=4, bounds=[0, 80], where=where, epsilon=1),
        question("others", "count", where="age > 1", epsilon=1),
        question("people", "count", count="units", where=where, epsilon=1),
        epsilon=90,
    )
    _, *found = run_study(read_study(path)).outcomes
    notices = [outcome.answer.notice for outcome in found if outcome.answer is not None]
    quoted = "about 100 % of the units that have age have more rows than count"
    assert notices == [quoted, quoted, "", ""]


def test_an_answer_that_was_asked_before_quotes_what_is_lost_too(tmp_path: Path) -> None:
    path = write_study(tmp_path, MEAN, LOST, epsilon=90)
    first, _ = run_study(read_study(path)).outcomes
    assert first.answer is not None
    assert first.answer.notice.endswith("of the values were moved to the bounds: this is probably too low")
    assert run_study(read_study(path)).outcomes[0].answer == first.answer  # from the ledger
    late = write_study(tmp_path, MEAN, LOST, epsilon=90, url="sqlite:///late.db")
    printed = CliRunner().invoke(app, ["run", str(late)]).output
    assert "beware, average: about" in printed


def test_what_is_lost_is_nominal_while_nobody_looked_at_the_size(tmp_path: Path) -> None:
    """Before: ± 3 points of 10,000 values, which stood for a number that was not known."""
    little = question("beyond", "lost", column="age", bounds=[0, 20], epsilon=0.0001)
    path = write_study(tmp_path, little)
    (line,) = plan_study(read_study(path)).lines
    assert "percentage points, if 1,000 values count" in line.expected
    assert line.why == ""
    (outcome,) = run_study(read_study(path)).outcomes
    assert outcome.answer is not None
    assert outcome.answer.drowned  # ± 100 points
    sized = write_study(tmp_path, little, url="sqlite:///sized.db")
    sized.write_text(sized.read_text().replace("[limit]", f"size = {PEOPLE}\n\n[limit]"))
    (line,) = plan_study(read_study(sized)).lines
    assert SAYS_NOTHING in line.why


def test_a_plan_offers_to_ask_what_is_lost(tmp_path: Path) -> None:
    without, asked = (read_study(write_study(tmp_path, text, epsilon=90)) for text in (MEAN + OTHER, LOST + MEAN))
    offered = [note for note in plan_study(without).about_errors if "lost" in note]
    assert offered == ['average, wide: kind = "lost", asked before, says how many values are clipped']
    late = read_study(write_study(tmp_path, MEAN + LOST, epsilon=90))
    assert [note for note in plan_study(late).about_errors if note.startswith("average: ")]
    assert not [note for note in plan_study(asked).about_errors if "lost" in note]
