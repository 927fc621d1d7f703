"""Plans: the worst is never passed, the best never undercut, and what is said of stored answers is so."""

import re
from pathlib import Path
from typing import Any

import pytest

from expost import Cost, InvalidValue, Ledger
from expost.errors import InvalidStudy
from expost.study import epsilon_for, parse_study, plan_study, read_study, run_study
from expost.study.kinds.kind import Accuracy
from expost.study.model import Study
from studies import ABOVE, COUNT, question, write_study


def count(name: str, amount: str) -> str:
    return COUNT.replace('"old"', f'"{name}"').replace("epsilon = 0.5", amount)


def study_of(folder: Path, *questions: str) -> Study:
    return read_study(write_study(folder, *questions))


def test_a_conditional_question_may_take_what_a_later_one_needs(tmp_path: Path) -> None:
    above = ABOVE.format(threshold=70, amount="epsilon = 2")
    maybe = count("maybe", 'epsilon = 2.5\nonly_if = "busy.any"')
    plan = plan_study(study_of(tmp_path, above, maybe, count("last", "epsilon = 1.5")))
    assert [line.fit for line in plan.lines] == ["fits", "may fit", "may fit"]
    assert plan.worst == Cost(0)


def test_a_question_that_would_never_fit_takes_nothing(tmp_path: Path) -> None:
    never = count("never", 'epsilon = 9\nonly_if = "old < 5"')
    plan = plan_study(study_of(tmp_path, COUNT, never, count("last", "epsilon = 1")))
    assert [line.fit for line in plan.lines] == ["fits", "may fit", "fits"]


@pytest.mark.parametrize(("amount", "worst"), [("share_of_remaining = 0.5", 4 * (1 - 0.5**5)), ("epsilon = 1", 3)])
def test_repetitions_are_in_the_worst_case(tmp_path: Path, amount: str, worst: float) -> None:
    repeated = amount + '\nrepeat = { until = "none", floor = 2e-1, at_most = 5 }'
    repeated = repeated.replace("2e-1", "2") if amount.startswith("epsilon") else repeated
    plan = plan_study(study_of(tmp_path, ABOVE.format(threshold=70, amount=repeated)))
    assert plan.lines[0].worst == Cost(worst)
    assert plan.worst.epsilon == 4 - worst


def test_an_account_has_no_more_than_its_ledger(tmp_path: Path) -> None:
    unit = "visitor (one row each)"
    url = f"sqlite:///{tmp_path}/books.db"
    ledger = Ledger.create(url, "people", epsilon=1, delta=1e-5, neighbours="substitute", unit=unit)
    ledger.create_account("alice", Cost(4, 1e-5))
    path = write_study(tmp_path, count("large", "epsilon = 2"))
    path.write_text(path.read_text().replace('name = "people"', 'name = "people"\naccount = "alice"', 1))
    plan = plan_study(read_study(path))
    assert plan.before == Cost(1, 1e-5)
    assert not plan.fits


def test_what_is_said_of_stored_answers(tmp_path: Path) -> None:
    study = study_of(tmp_path, COUNT)
    run_study(study)
    assert plan_study(study).lines[0].why == "the ledger has the answer, if there are still 6,000 units"
    path = study.file
    path.write_text(path.read_text().replace('"substitute"', '"substitute"\nsize = 6000'))
    assert plan_study(read_study(path)).lines[0].why == "the ledger has the answer"
    path.write_text(path.read_text().replace("6000", "6001"))
    assert [line.fit for line in plan_study(read_study(path)).lines] == ["fits"]


def test_a_question_that_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_of(tmp_path, COUNT)
    with monkeypatch.context() as patch:
        patch.setattr("expost.data.questions.Noisy.sample", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_study(study)
    line = plan_study(study).lines[0]
    assert (line.fit, line.worst) == ("lost", Cost(0))
    assert line.why.startswith("lost: it was interrupted while it was sampled, so its worst case was charged")
    assert f"lost: {run_study(study).outcomes[0].why}" == line.why


def test_a_repeated_question_that_may_be_asked_more_often(tmp_path: Path) -> None:
    repeated = 'epsilon = 1\nrepeat = { until = "any", floor = 0.2, at_most = 3 }'
    study = study_of(tmp_path, ABOVE.format(threshold=9000, amount=repeated))
    spent = run_study(study).ledger.spent
    assert (plan_study(study).lines[0].fit, plan_study(study).lines[0].worst) == ("stored", Cost(0))
    assert "asked again" not in plan_study(study).lines[0].why
    longer = study_of(tmp_path, ABOVE.format(threshold=9000, amount=repeated.replace("at_most = 3", "at_most = 4")))
    line = plan_study(longer).lines[0]
    assert (line.fit, line.worst, line.best) == ("stored", Cost(1), Cost(0))
    assert "asked 3 times" in line.why
    assert "asked again if that did not end as 'any'" in line.why
    outcome = run_study(longer).outcomes[0]
    assert [receipt.stored for receipt in outcome.receipts] == [True, True, True, False]
    assert outcome.receipts[3].charged + spent == Ledger.load(f"sqlite:///{tmp_path}/books.db", "people").spent


def test_a_question_that_was_interrupted_half_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells were found, and their values not yet asked for: these are still to be paid."""
    study = study_of(
        tmp_path, question("found", "large", column="city", keys=["Rome"], threshold=9, at_most=2, share=0.5)
    )
    run = Ledger._run

    def interrupted(self: Ledger, mechanism: Any, on: Any, request: Any) -> Any:
        if request.label.endswith(": values"):
            raise KeyboardInterrupt
        return run(self, mechanism, on, request)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_study(study)
    ledger = Ledger.load(study.ledger_url, "people")
    spent = ledger.spent
    line = plan_study(study).lines[0]
    assert line.fit == "stored"
    assert line.worst is not None
    assert line.worst + spent == Cost(2)
    run_study(study)
    assert ledger.spent == Cost(2)
    assert plan_study(study).lines[0].worst == Cost(0)


ACCURATE = (
    question("old", "count", where="age >= 60", epsilon=0.2),
    question("total", "sum", column="age", bounds=[0, 80], epsilon=0.2),
    question("bands", "histogram", column="age", bins=4, bounds=[0, 80], epsilon=0.2),
    question("average", "mean", column="age", bounds=[0, 80], missing=0, epsilon=0.2),
    question("normal", "count", where="age >= 60", noise="gaussian", epsilon=0.2, delta=1e-6),
)


def test_a_plan_has_the_accuracy_that_answers_then_have(tmp_path: Path) -> None:
    study = study_of(tmp_path, *ACCURATE)
    study = parse_study(study.text.replace("[limit]", "size = 6000\n\n[limit]"), study.file)
    planned = {line.question.name: line.accuracy for line in plan_study(study).lines}
    for outcome in run_study(study).outcomes:
        accuracy, answer = planned[outcome.question.name], outcome.answer
        assert isinstance(accuracy, Accuracy)
        assert answer is not None
        assert accuracy.error == answer.error, outcome.question.name
    assert all(line.accuracy is None for line in plan_study(study).lines), "they are stored now"


@pytest.mark.parametrize(
    ("name", "error"), [("old", 12), ("total", 900), ("bands", 30), ("average", 0.2), ("normal", 9)]
)
def test_the_epsilon_for_an_accuracy_is_the_least(tmp_path: Path, name: str, error: float) -> None:
    study = study_of(tmp_path, *ACCURATE)
    epsilon, accuracy = epsilon_for(study, name, error)
    assert accuracy.error <= error
    for share, enough in ((1, True), (0.9, False)):
        text = study.text.replace("epsilon = 0.2", f"epsilon = {epsilon * share}")
        plan = plan_study(parse_study(text.replace("epsilon = 4\n", "epsilon = 400\n"), study.file))
        found = {line.question.name: line.accuracy for line in plan.lines}[name]
        assert isinstance(found, Accuracy)
        assert (found.error <= error) is enough


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("olf", 5, "there is no question 'olf': did you mean 'old'?"),
        ("busy", 5, "no error bar: names are chosen, and no number is released"),
        ("average", 1e-5, "no ε buys ± 1e-05: it is ± "),
    ],
)
def test_an_accuracy_that_nothing_buys(tmp_path: Path, name: str, error: float, said: str) -> None:
    above = ABOVE.format(threshold=70, amount="epsilon = 2")
    with pytest.raises(InvalidValue, match=re.escape(said)):
        epsilon_for(study_of(tmp_path, *ACCURATE, above), name, error)


@pytest.mark.parametrize("kind", ["sum", "mean", "variance"])
def test_noise_that_cannot_be_sampled_is_refused_before_it_is_asked(tmp_path: Path, kind: str) -> None:
    """Its grid has more steps than samplers take: nothing is known of the data that would change that."""
    study = study_of(tmp_path, question("fine", kind, column="cost", bounds=[0, 1000], epsilon=1e-9))
    with pytest.raises(InvalidStudy, match="rate must be at least"):
        plan_study(study)
    with pytest.raises(InvalidStudy, match="rate must be at least"):
        run_study(study)
