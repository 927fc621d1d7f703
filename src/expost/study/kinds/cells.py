"""Histograms, keys that are discovered, and the cells that are large."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil, log
from typing import Any

from expost.comparison import Comparison
from expost.cost import Cost, exact
from expost.data import Above, BalancedCounts, CellsAbove, Discovered, Noisy
from expost.data.histograms import MOST_KEYS, Histogram
from expost.frame import number_text, with_error
from expost.mechanism import Mechanism, Release
from expost.questions import CountedCells, Discover, LargeCells, Top
from expost.reporting.rows import ALL, EACH
from expost.study.grammar import Key
from expost.study.kinds import keys
from expost.study.kinds.kind import (
    CONFIDENCE,
    Accuracy,
    Answer,
    Asked,
    NoBar,
    QuestionKind,
    always,
    listed,
)
from expost.study.model import Question

_CELLS = (
    keys.COLUMN,
    Key("keys", "keys", "the values that are counted"),
    Key("bins", "bins", "a number of bins between bounds, or a list of edges"),
    Key("bounds", "pair", "the lowest and the highest edge, for a number of bins"),
    keys.COUNTED,
    keys.WHERE,
)
_LARGE = (
    *_CELLS,
    Key("threshold", "whole", "above which a cell is large", required=True),
    Key("at_most", "whole", "the most large cells looked for; what comes after them is not compared", required=True),
)


_BIN = re.compile(r"\[(-?\d+), (-?\d+)\)")
_BY_ITSELF = "each at 95 %"
_SPARSE = "on the threshold and on the counts compared with it (sparse vector)"


def _number_of_cells(values: Mapping[str, Any]) -> int:
    bins = values.get("bins", 0)
    return 1 + (bins if isinstance(bins, int) else 0) + listed(values, "keys", "bins")


def _with_delta(asked: Asked, question: Any) -> Mechanism:
    return asked.made(question, delta=asked.delta)


def _first_step(asked: Asked, question: CellsAbove) -> Mechanism:
    return asked.made(question, epsilon=asked.part(_find_share(asked.question)))


def _find_share(question: Question) -> Fraction:
    return exact(question.values.get("find_share", 0.5), "find_share")


def _values(asked: Asked, found: Release) -> Mechanism | None:
    """The values of what was found, with the ε that finding did not use. Proof: thm-release-large."""
    labels = [label for label, compared in found.output.items() if compared is Comparison.ABOVE]
    if not labels:
        return None
    remaining = Cost.within(Fraction(str(asked.epsilon))) - Cost.of_units(found.charged.epsilon_units)
    compared: Any = found.mechanism
    return asked.made(compared.question.only(labels), epsilon=remaining.epsilon)


def _none(mechanism: Above) -> dict[Any, Comparison]:
    """Nothing found: all cells were compared, and none is above."""
    return dict.fromkeys(mechanism.question.labels, Comparison.BELOW)


def _counts(asked: Asked, mechanism: Noisy | BalancedCounts, value: dict[Any, int]) -> Answer:
    error, question = float(mechanism.error_bound(CONFIDENCE)), mechanism.question
    assert isinstance(question, Histogram)
    return replace(_bars(asked, value, error, ()), notice=question.mostly_other(value, error))


def _for_all(asked: Asked, mechanism: Noisy[Any]) -> Accuracy:
    return Accuracy(float(mechanism.error_bound(CONFIDENCE)), "for all at once", within=asked.most_values)


def _shown_from(asked: Asked, mechanism: Discovered) -> Accuracy:
    error = ceil(log(1 / (1 - CONFIDENCE)) / mechanism.rate)
    return Accuracy(float(error), f"each; finds values that {mechanism.threshold:,} or more units have")


def _discovered(asked: Asked, mechanism: Discovered, value: dict[Any, int]) -> Answer:
    """Each count with the error that holds although it had to reach the threshold; near it, that is larger."""
    if not value:
        return Answer(f"no value has {mechanism.threshold:,} or more", {}, outcomes=("none",), released=value)
    found = mechanism.answer_of(value, None)
    named = {str(key): found[key] for key in value}
    errors = {count.error for count in named.values()}
    if len(errors) == 1:
        return _bars(asked, value, errors.pop(), ("any",), EACH)
    text = "; ".join(f"{label}: {with_error(count.value, count.error)}" for label, count in named.items())
    return Answer(
        f"{text}; {_BY_ITSELF}", dict(zip(named, value.values(), strict=True)), None, ("any",), _BY_ITSELF,
        tuple(named), released=value,
    )  # fmt: skip


def _most(asked: Asked, mechanism: Mechanism, value: tuple[Any, ...]) -> Answer:
    named = [str(label) for label in value]
    text = ", ".join(named) or "none is frequent enough"
    return Answer(text, named, outcomes=("any" if named else "none",), released=value)


def _above(asked: Asked, mechanism: Above, value: dict[Any, Comparison]) -> Answer:
    named = dict(zip(_labels(asked, value), value.values(), strict=True))
    found = [label for label, compared in named.items() if compared is Comparison.ABOVE]
    threshold = number_text(asked["threshold"])
    text = f"above {threshold}: {', '.join(found)}" if found else f"none above {threshold}"
    answer = Answer(text, {label: str(compared) for label, compared in named.items()},
                    outcomes=("any" if found else "none",), released=value)  # fmt: skip
    return _unless_all_compared(asked, answer, value)


def _large(asked: Asked, mechanism: Any, value: dict[Any, Any]) -> Answer:
    """The counts of what was found; or, if that is nothing, that all was compared and is not above."""
    if isinstance(mechanism, Above):
        return _above(asked, mechanism, value)
    assert asked.first is not None
    counts = _bars(asked, value, float(mechanism.error_bound(CONFIDENCE)), ("any",))
    return _unless_all_compared(asked, counts, asked.first.output)


def _unless_all_compared(asked: Asked, answer: Answer, compared: dict[Any, Comparison]) -> Answer:
    """The answer, which also says of which cells nothing is known because the last one allowed came before them."""
    left = _labels(asked, (label for label, each in compared.items() if each is Comparison.NOT_COMPARED))
    if not left:
        return answer
    found = sum(each is Comparison.ABOVE for each in compared.values())
    threshold = number_text(asked["threshold"])
    notice = f"stopped after {found} (at_most): what was not compared may be above {threshold}, too"
    unknown = f"not compared: {', '.join(left)}"
    beside = None if answer.beside is None else f"{answer.beside}; {unknown}"
    return replace(answer, text=f"{answer.text}; {unknown}", beside=beside, notice=notice)


def _labels(asked: Asked, cells: Iterable[Any]) -> list[str]:
    """What cells are called: of whole numbers, a bin is a number, or the first to the last."""
    if "bins" not in asked.question.values:
        return [str(cell) for cell in cells]
    whole = asked.table.expression(asked["column"], ("integer", "number"), "a bin").kind == "integer"
    return [_bin_label(str(cell)) if whole else str(cell) for cell in cells]


def _bin_label(cell: str) -> str:
    edges = _BIN.fullmatch(cell)
    if edges is None:
        return cell
    first, last = int(edges[1]), int(edges[2]) - 1
    return f"{first}" if first == last else f"{first} to {last}"


def _bars(asked: Asked, value: dict[Any, int], error: float, outcomes: tuple[str, ...], holds_for: str = ALL) -> Answer:
    named = dict(zip(_labels(asked, value), value.values(), strict=True))
    counts = ", ".join(f"{label}: {number_text(count)}" for label, count in named.items())
    every = holds_for.format(number_text(error))
    text = f"{counts}; {every}"
    return Answer(text, named, error, outcomes, beside=every, labels=tuple(named), released=value)


def _names(asked: Asked, mechanism: Any) -> NoBar:
    return NoBar("names are chosen, and no number is released")


CELLS = (
    QuestionKind(
        "histogram", "How many rows, or units, have each of the stated values, or lie in each bin.",
        (*_CELLS, Key("other", "text", "what all other values are called; 'other' by default"), keys.NOISE),
        CountedCells, _counts, noised=Asked.noised, accuracy=_for_all, cells=True, from_zero=True, amount=always,
        numbers=_number_of_cells,
        example='column = "age"\nbins = 10\nbounds = [0, 100]',
    ),
    QuestionKind(
        "discover", "Which values occur, and how many rows or units have them: values that enough units have.",
        (keys.COLUMN, keys.COUNTED, keys.WHERE), Discover, _discovered, noised=_with_delta, accuracy=_shown_from,
        delta=True, cells=True,
        from_zero=True, amount=always, numbers=lambda values: MOST_KEYS,
        noise="Laplace, on counts; a value that few have is not shown", outcomes=("any", "none"),
        example='column = "diagnosis"',
    ),
    QuestionKind(
        "top", "The values that most units have, most frequent first, without counts: charged by how many are found.",
        (keys.COLUMN, Key("at_most", "whole", "the most values that are looked for", required=True), keys.WHERE), Top,
        _most, noised=_with_delta, cells=True, noise="on the order (top-k)", delta=True, outcomes=("any", "none"),
        accuracy=_names, numbers=lambda values: int(values["at_most"]),
        example='column = "diagnosis"\nat_most = 3',
    ),
    QuestionKind(
        "above", "Which cells of a histogram are above a threshold (sparse vector): charged for those that are.",
        _LARGE, LargeCells, _above, cells=True, noise=_SPARSE, cheapest=_none, outcomes=("any", "none"),
        accuracy=_names, numbers=_number_of_cells,
        example='column = "diagnosis"\nkeys = ["flu", "cold"]\nthreshold = 500\nat_most = 2',
    ),
    QuestionKind(
        "large", "The cells above a threshold with their counts: finds them, then spends its remaining ε on counts.",
        (*_LARGE, Key("find_share", "part", "the share of ε for finding them; the rest is for their counts. 0.5 by "
                      "default")),
        LargeCells, _large, noised=_first_step, cells=True, from_zero=True, amount=always, noise=_SPARSE, then=_values,
        first_share=_find_share,
        cheapest=_none, outcomes=("any", "none"), numbers=_number_of_cells,
        accuracy=lambda asked, mechanism: NoBar("it depends on the ε that finding cells leaves", later=True),
        example='column = "diagnosis"\nkeys = ["flu", "cold"]\nthreshold = 500\nat_most = 2',
    ),
)  # fmt: skip
