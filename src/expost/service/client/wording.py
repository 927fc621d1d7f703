"""Mechanisms on a table as questions of a study, and back: only what comes back as the same mechanism is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from expost.cost import Cost
from expost.data import PrivateTable
from expost.data.lookups import LookupStep
from expost.data.searched import Searched
from expost.data.winsorized import WinsorizedMean
from expost.errors import ExpostError, InvalidValue
from expost.mechanism import Mechanism
from expost.mechanisms import Gaussian
from expost.questions import NumericStatistic, Statistics
from expost.study.kinds import KINDS
from expost.study.kinds.kind import Asked
from expost.study.parse import StudyReader

_NOT_ONE = "this is not a question that a service answers: ask a table of the connection, with a kind that it allows"
_Given = dict[str, Any]


@dataclass(frozen=True)
class Worded:
    """A mechanism as a service is asked for it."""

    data: str
    body: _Given


def worded(mechanism: Any, known: int, label: str | None) -> Worded:
    """The question of a mechanism on a table that has ``known`` steps of its own. Raises ``InvalidValue``."""
    question = getattr(mechanism, "question", None)
    table = getattr(question, "table", None)
    if not isinstance(mechanism, Mechanism) or not isinstance(table, PrivateTable):
        raise InvalidValue(_NOT_ONE)
    steps = table.steps[known:]
    if any(isinstance(step, LookupStep) for step in steps):
        raise InvalidValue("a service looks nothing up in other tables: leave join() out, and use the columns it has")
    derive = {step.column: step.expression.text for step in steps if step.column is not None}
    filters = [step.expression.text for step in steps if step.column is None]
    where = " AND ".join(f"({each})" for each in filters) if len(filters) > 1 else "".join(filters)
    plain = replace(table, steps=table.steps[:known], columns=table.columns[: len(table.columns) - len(derive)])
    plain = plain.derive(**derive)
    moved = _moved(mechanism, plain.where(where) if where else plain)
    cost = _asked_for(mechanism)
    amounts = _amounts(mechanism, cost)
    for given in _candidates(mechanism):
        asked = {"name": "question", **given, **amounts, **({"where": where} if where else {})}
        if _same(asked, plain, moved, cost):
            asked |= {} if label is None else {"label": label}
            return Worded(table.engine.name, {"questions": [asked], **({"derive": derive} if derive else {})})
    raise InvalidValue(_NOT_ONE)


def _asked_for(mechanism: Any) -> Cost:
    """The ε and δ that were asked for."""
    if hasattr(mechanism, "epsilon"):
        return Cost.within(mechanism.epsilon, getattr(mechanism, "delta", 0))
    worst: Cost = mechanism.guarantee.worst_case
    return worst


def _amounts(mechanism: Any, cost: Cost) -> _Given:
    noise = getattr(mechanism, "noise", None)
    given: _Given = {"epsilon": cost.epsilon}
    if cost.delta_units:
        given["delta"] = cost.delta
    if isinstance(noise, Gaussian):
        given["noise"] = "gaussian"
    return given


def _candidates(mechanism: Any) -> Iterator[_Given]:
    """What a mechanism may be, as a question: the first that comes back the same is it."""
    for name, kind in KINDS.items():
        for settings in kind.settings(mechanism):
            yield {"kind": name, **settings, **_by(mechanism.question)}


def _by(question: Any) -> _Given:
    """What tells groups apart, if it is a statistic of all groups in one charge."""
    if not isinstance(question, Statistics) or question.is_whole:
        return {}
    keys = [list(key) if len(question.values) > 1 else key[0] for key in question.keys]
    given: _Given = {"by": [value.text for value in question.values], "by_total": question.total}
    return given | ({"by_keys": keys} if keys else {})


def _same(given: _Given, table: PrivateTable, mechanism: Mechanism, cost: Cost) -> bool:
    """Whether the study's own reader and kind make this very mechanism of a question."""
    reader = StudyReader("", Path("question"), {})
    question = reader.question(given, (), {})
    if question is None or reader.problems:
        return False
    size = table.size if table.neighbours == "substitute" else 0
    try:
        made = KINDS[question.kind].mechanism(Asked(question, table, cost.epsilon, cost.exact_delta, size))
    except ExpostError:
        return False
    return type(made) is type(mechanism) and made == mechanism and made.guarantee == mechanism.guarantee


def _moved(mechanism: Any, table: PrivateTable) -> Any:
    """The same mechanism on a table of the same rows."""
    moved: dict[str, Any] = {"table": table}
    if isinstance(mechanism.question, NumericStatistic):
        asked = replace(mechanism.question.asked, table=table)
        return replace(mechanism, question=NumericStatistic(asked))
    if isinstance(mechanism.question, WinsorizedMean):
        moved["ranks"] = replace(mechanism.question.ranks, table=table)
    if isinstance(mechanism.question, Searched):
        moved["medians"] = tuple(replace(each, table=table) for each in mechanism.question.medians)
    return replace(mechanism, question=replace(mechanism.question, **moved))
