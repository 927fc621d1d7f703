"""Mechanisms on a table as questions of a study, and back: only what comes back as the same mechanism is sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from expost.cost import Cost
from expost.data import PrivateTable
from expost.data.discovery import Discovered, Discovery, MostFrequent
from expost.data.histograms import Above, Histogram
from expost.data.moments import Moments
from expost.data.quantiles import Ranks
from expost.data.questions import Count
from expost.data.searched import Searched
from expost.data.sums import Mean, Sum
from expost.data.winsorized import WinsorizedMean
from expost.errors import ExpostError, InvalidValue
from expost.mechanism import Mechanism
from expost.mechanisms import Gaussian
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
    derive = {step.column: step.expression for step in table.steps[known:] if step.column is not None}
    filters = [step.expression for step in table.steps[known:] if step.column is None]
    where = " AND ".join(f"({each})" for each in filters) if len(filters) > 1 else "".join(filters)
    plain = replace(table, steps=table.steps[:known], columns=table.columns[: len(table.columns) - len(derive)])
    plain = plain.derive(**derive)
    moved = _moved(mechanism, plain.where(where) if where else plain)
    cost = _asked_for(mechanism)
    amounts = _amounts(mechanism, cost)
    for given in _candidates(mechanism, question):
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


def _candidates(mechanism: Any, question: Any) -> Iterator[_Given]:
    """What a mechanism may be, as a question: the first that comes back the same is it."""
    if isinstance(question, Count):
        yield {"kind": "count", "count": question.of}
    elif isinstance(question, Sum | Mean):
        value = question.value
        yield {"kind": "sum" if isinstance(question, Sum) else "mean", "column": value.text, "bounds": [*value.bounds],
               **_missing(value.missing)}  # fmt: skip
    elif isinstance(question, Histogram):
        yield from _cells(mechanism, question)
    elif isinstance(question, Discovery):
        yield from _discovered(mechanism, question)
    elif isinstance(question, Ranks):
        yield from _ranks(question)
    elif isinstance(question, WinsorizedMean):
        yield {"kind": "winsorized_mean", "trim": float(question.ranks.levels[0]), **_valued(question.ranks)}
    elif isinstance(question, Moments):
        yield from _moments(question)
    elif isinstance(question, Searched):
        of: _Given = {"columns": [*question.texts]} if len(question.texts) > 1 else {"column": question.texts[0]}
        yield {"kind": question.statistic, **of, **_missing(question.missing)}


def _missing(missing: float | None) -> _Given:
    return {} if missing is None else {"missing": missing}


def _cells(mechanism: Any, question: Histogram) -> Iterator[_Given]:
    above = isinstance(mechanism, Above)
    given: _Given = {"kind": "above" if above else "histogram", "column": question.text, "count": question.of}
    if isinstance(mechanism, Above):
        given |= {"threshold": int(float(mechanism.noise.threshold)), "at_most": mechanism.noise.at_most}
    elif question.other is not None:
        given["other"] = question.other
    labels = question.labels if question.other is None else question.labels[:-1]
    if not question.edges:
        yield {**given, "keys": list(labels)}
        return
    if len(question.edges) == 3:
        low, high, number = question.edges
        yield {**given, "bins": int(number), "bounds": [low, high]}
    yield {**given, "bins": list(question.edges)}


def _discovered(mechanism: Any, question: Discovery) -> Iterator[_Given]:
    if isinstance(mechanism, Discovered):
        yield {"kind": "discover", "column": question.text, "count": question.of}
    elif isinstance(mechanism, MostFrequent):
        yield {"kind": "top", "column": question.text, "at_most": mechanism.k}


def _valued(question: Ranks) -> _Given:
    value: Any = question.value
    given: _Given = {"column": value.text, **_missing(value.missing)}
    return given | ({"bounds": [*value.bounds]} if hasattr(value, "bounds") else {})


def _ranks(question: Ranks) -> Iterator[_Given]:
    levels, value = question.levels, _valued(question)
    grids: list[_Given] = [{}]
    grid = getattr(question.value, "grid", None)
    if grid is not None:
        grids.append({"grid": float(grid.step)})
    for grid_given in grids:
        if levels == (Fraction(1, 2),):
            yield {"kind": "median", **value, **grid_given}
        if len(levels) == 1:
            yield {"kind": "quantile", "quantile": float(levels[0]), **value, **grid_given}
        yield {"kind": "quantiles", "quantiles": [float(each) for each in levels], **value, **grid_given}


def _moments(question: Moments) -> Iterator[_Given]:
    missing = _missing(question.missing)
    if question.statistic == "variance":
        yield {"kind": "variance", "column": question.texts[0], "bounds": [*question.bounds[0]], **missing}
    elif question.statistic == "regression":
        yield {"kind": "regression", "features": [*question.texts[:-1]], "target": question.texts[-1],
               "bounds": [*question.bounds[0]], "target_bounds": [*question.bounds[-1]], **missing}  # fmt: skip
    else:
        bounds = [[*each] for each in question.bounds]
        yield {"kind": question.statistic, "columns": [*question.texts], "bounds": bounds, **missing}


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
    question = replace(mechanism.question, table=table)
    if isinstance(question, WinsorizedMean):
        question = replace(question, ranks=replace(question.ranks, table=table))
    return replace(mechanism, question=question)
