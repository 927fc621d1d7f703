"""The house: a kind has one home, and a mechanism is built once."""

import ast
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from expost.study import read_study, run_study
from expost.study.kinds import KINDS
from expost.study.kinds.kind import QuestionKind
from studies import COUNT, question, write_study

pytestmark = pytest.mark.slow
SOURCE = Path(__file__).resolve().parents[3] / "src" / "expost"
MANY = "".join(
    (
        COUNT,
        question("cities", "discover", column="city", epsilon=1, delta=1e-6),
        question("found", "large", column="city", keys=["Rome", "Oslo"], threshold=1000, at_most=3, share=0.1),
        question("spread", "stable_interquartile_range", column="age", missing=0, epsilon=1, delta=1e-6),
        question("middle", "stable_median", column="age", missing=0, scale="spread", slack=40, epsilon=3, delta=1e-6),
        question("mean", "mean", column="age", bounds=[0, 80], missing=0, share_of_remaining=0.5),
    )
)


def texts(path: Path) -> set[str]:
    return {
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_what_a_kind_is_is_written_in_its_family_only() -> None:
    """Outside of ``kinds/`` only the template names kinds, to propose questions, and the service's settings one."""
    for package in ("study", "cli", "service"):
        for path in (SOURCE / package).rglob("*.py"):
            if path.parent.name != "kinds" and path.name not in ("template.py", "config.py"):
                assert texts(path) & KINDS.keys() <= {"lost"}, path  # also the state of an answer that was lost
    homes = Counter(name for path in (SOURCE / "study" / "kinds").glob("*.py") for name in defined(path))
    assert homes == dict.fromkeys(KINDS, 1)


def defined(path: Path) -> list[str]:
    """The names of the kinds that a file defines."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call) and node.args]
    makers = [call for call in calls if getattr(call.func, "id", "") in ("QuestionKind", "_of_ranks")]
    return [call.args[0].value for call in makers if isinstance(call.args[0], ast.Constant)]  # type: ignore[misc]


def callers(frame: FrameType) -> set[CodeType]:
    """What called a function, and what called that."""
    above = frame.f_back
    return set() if above is None else {above.f_code} | callers(above)


def test_a_run_builds_each_mechanism_once(tmp_path: Path) -> None:
    built: Counter[tuple[Any, ...]] = Counter()
    maker = QuestionKind.mechanism.__code__

    def returned(frame: FrameType, event: str, made: Any) -> None:
        """A kind has made a mechanism, and not for another kind that it is part of."""
        if event == "return" and made is not None and frame.f_code is maker and maker not in callers(frame):
            built[frame.f_locals["asked"].question.name, made.fingerprint] += 1

    study = read_study(write_study(tmp_path, MANY, epsilon=9))
    sys.setprofile(returned)
    try:
        result = run_study(study)
    finally:
        sys.setprofile(None)
    assert [outcome.state for outcome in result.outcomes] == ["answered"] * 6
    assert set(built.values()) == {1}
    times = Counter(name for name, _ in built)
    assert times.pop("middle") == 2, "once for a nominal scale, once for the one that was released"
    assert times.pop("mean") == 2, "once with the most that could remain, once with what does"
    assert set(times.values()) == {1}
