"""A mechanism on a table as a question of a study: by the record of its question, and what was done to the table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from expost.cost import Cost, exact
from expost.data import Grouped, NoisyUntil, PrivateTable
from expost.data.lookups import LookupStep
from expost.errors import InvalidValue
from expost.mechanism import Mechanism
from expost.mechanisms import Gaussian, RelativeError
from expost.questions import QuestionRecord, Statistics
from expost.study.kinds import KINDS, stated_as

_NOT_ONE = "this is not a question that a service answers: ask a table of the connection, with a kind that it allows"
_Given = dict[str, Any]


@dataclass(frozen=True)
class Worded:
    """A mechanism as a service is asked for it."""

    data: str
    body: _Given


def worded(mechanism: Any, known: int, label: str | None) -> Worded:
    """The question of a mechanism on a table that has ``known`` steps of its own. Raises ``InvalidValue``."""
    table = getattr(getattr(mechanism, "question", None), "table", None)
    if not isinstance(mechanism, Mechanism) or not isinstance(table, PrivateTable):
        raise InvalidValue(_NOT_ONE)
    derive, where = _rows(table, known)
    stated = stated_as(_record(mechanism))
    asked = {"name": "question", **stated, **_by(mechanism), **_amounts(mechanism)}
    _check(mechanism, asked, table)
    asked |= {"where": where} if where else {}
    asked |= {} if label is None else {"label": label}
    return Worded(table.engine.name, {"questions": [asked], **({"derive": derive} if derive else {})})


def _rows(table: PrivateTable, known: int) -> tuple[dict[str, str], str]:
    """The columns that were derived, and the condition of the rows that are left."""
    steps = table.steps[known:]
    if any(isinstance(step, LookupStep) for step in steps):
        raise InvalidValue("a service looks nothing up in other tables: leave join() out, and use the columns it has")
    derive = {step.column: step.expression.text for step in steps if step.column is not None}
    filters = [step.expression.text for step in steps if step.column is None]
    return derive, " AND ".join(f"({each})" for each in filters) if len(filters) > 1 else "".join(filters)


def _record(mechanism: Any) -> QuestionRecord[Any]:
    """What is asked."""
    if isinstance(mechanism, Grouped):
        raise InvalidValue("a service is asked one question: ask it about each group, or for a statistic of all groups")
    record: QuestionRecord[Any] | None = mechanism.record
    if record is not None:
        return record
    asked = mechanism.question
    if isinstance(asked, Statistics) and len(asked.statistics) != 1:
        raise InvalidValue(f"a service is asked one statistic at a time, got {len(asked.statistics)}: ask for each")
    raise InvalidValue(_NOT_ONE)


def _by(mechanism: Any) -> _Given:
    """What tells groups apart, of a statistic of all groups in one charge."""
    asked = mechanism.question
    if not isinstance(asked, Statistics) or asked.is_whole:
        return {}
    keys = [list(key) if len(asked.values) > 1 else key[0] for key in asked.keys]
    given: _Given = {"by": [value.text for value in asked.values]}
    return given | ({"by_keys": keys} if keys else {}) | ({"by_total": True} if asked.total else {})


def _amounts(mechanism: Any) -> _Given:
    """The ε, and what else was said of it: δ, noise, an accuracy."""
    worst: Cost = mechanism.guarantee.worst_case
    asked_for = Cost.within(mechanism.epsilon, getattr(mechanism, "delta", 0)) if _has_own(mechanism) else worst
    given: _Given = {"epsilon": asked_for.epsilon}
    if asked_for.delta_units:
        given["delta"] = asked_for.delta
    if isinstance(getattr(mechanism, "noise", None), Gaussian) or getattr(mechanism, "made_with", "") == "gaussian":
        given["noise"] = "gaussian"
    if isinstance(mechanism, NoisyUntil) and isinstance(mechanism.noise.until, RelativeError):
        given["accuracy"] = f"{float(100 * exact(mechanism.noise.until.within, 'within')):.12g} %"
    return given


def _has_own(mechanism: Any) -> bool:
    """Whether it was asked with an ε, of which its guarantee may be less."""
    return hasattr(mechanism, "epsilon")


def _check(mechanism: Any, asked: _Given, table: PrivateTable) -> None:
    """Raise unless these words make this mechanism: one that was made by hand may have other noise."""
    read = KINDS[asked["kind"]].record_of(json.loads(json.dumps(asked)))
    terms = {name: asked[name] for name in ("epsilon", "delta", "noise") if name in asked}
    question: Any = table
    if "by" in asked:
        keys = [tuple(key) if isinstance(key, list) else key for key in asked.get("by_keys", ())]
        groups = table.by(*asked["by"], keys=keys or None)
        statistic = groups.asked(read)  # type: ignore[arg-type]
        question = groups.agg(total=asked.get("by_total", False), **{statistic.name: statistic})
    else:
        question = table.asked(read)
    if question.mechanism(**terms, within=asked.get("accuracy")) != mechanism:
        raise InvalidValue(
            f"a service makes another mechanism of a {asked['kind']}: ask for it by its question, with epsilon=, "
            "delta=, noise= or within=, and leave names of its statistics to the service"
        )
