"""Studies whose process is killed, and studies that run at the same time, on either database."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from expost import Cost, Ledger
from expost.study import read_study, run_study
from expost.study.model import Question
from expost.study.run import Outcome, Result
from faulty import child
from studies import COUNT, question, write_study

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
FOUND = question("found", "large", column="city", keys=["Rome", "Oslo"], threshold=1000, at_most=3, epsilon=1)
HALF = COUNT.replace('"old"', '"half"').replace("epsilon = 0.5", "share_of_remaining = 0.5")
REST = COUNT.replace('"old"', '"last"').replace("0.5", '"rest"')


def die(*args: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed(path: Path, before: str, *, sampling: bool = False) -> None:
    """Run a study in a process of its own, which is killed before a question, or while the next is sampled."""

    def progress(question: Question, outcome: Outcome | None) -> None:
        if question.name == before and outcome is None and not sampling:
            die()
        if question.name == before and outcome is None:
            from expost.data.questions import Noisy

            Noisy.sample = die  # type: ignore[assignment]

    status = os.waitpid(child(lambda: run_study(read_study(path), progress=progress)), 0)[1]
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def stored(result: Result) -> list[bool]:
    return [receipt.stored for outcome in result.outcomes for receipt in outcome.receipts]


@pytest.mark.parametrize("before", ["old", "found", "half", "last"])
def test_killed_between_questions(new_url: Callable[[], str], tmp_path: Path, before: str) -> None:
    path = write_study(tmp_path, COUNT, FOUND, HALF, REST, url=new_url())
    killed(path, before)
    ledger = Ledger.load(read_study(path).ledger_url, "people")
    there, spent = len(list(ledger.entries())), ledger.spent
    result = run_study(read_study(path))
    assert result.error is None
    assert stored(result) == [True] * there + [False] * (5 - there)
    assert [outcome.state for outcome in result.outcomes] == ["answered"] * 4
    assert spent <= result.ledger.spent == Cost(4)
    again = run_study(read_study(path))
    assert stored(again) == [True] * 5
    assert [each.answer for each in again.outcomes] == [each.answer for each in result.outcomes]
    assert again.ledger.spent == Cost(4)


def test_killed_while_sampling(new_url: Callable[[], str], tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT, HALF, REST, url=new_url())
    killed(path, "half", sampling=True)
    result = run_study(read_study(path))
    assert [outcome.state for outcome in result.outcomes] == ["answered", "lost", "answered"]
    assert [receipt.charged for outcome in result.outcomes for receipt in outcome.receipts] == [
        Cost(0.5), Cost(1.75), Cost(1.75),
    ]  # fmt: skip
    assert stored(run_study(read_study(path))) == [True] * 3


def test_killed_between_finding_and_counting(new_url: Callable[[], str], tmp_path: Path) -> None:
    path = write_study(tmp_path, FOUND, url=new_url())
    killed(path, "found", sampling=True)
    ledger = Ledger.load(read_study(path).ledger_url, "people")
    assert [entry.state for entry in ledger.entries()] == ["settled", "forfeited"]
    assert ledger.spent == Cost(1)
    assert [outcome.state for outcome in run_study(read_study(path)).outcomes] == ["lost"]
    assert ledger.spent == Cost(1)


def test_two_runs_at_once(new_url: Callable[[], str], tmp_path: Path) -> None:
    """Whoever comes second takes what the first published, or is told that it is being asked; nothing is paid twice."""
    path = write_study(tmp_path, COUNT, FOUND, HALF, REST, url=new_url())
    Ledger.create(
        read_study(path).ledger_url, "people", 4, "1e-5", neighbours="substitute", unit="visitor (one row each)"
    )

    def run() -> None:
        error = run_study(read_study(path)).error
        os._exit(0 if error is None else 1 if "run again" in str(error) else 2)

    pids = [child(run) for _ in range(4)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert set(codes) <= {0, 1}
    assert 0 in codes
    result = run_study(read_study(path))
    assert stored(result) == [True] * 5
    assert result.ledger.spent == Cost(4)
    assert len(list(result.ledger.entries())) == 5
