"""Histograms, keys that are discovered, and the cells that are large."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log
from typing import Any

from expost.checks import as_share
from expost.cost import Cost
from expost.data import Above, Discovered, Histogram, Noisy
from expost.mechanism import Mechanism, Release
from expost.study.grammar import Key
from expost.study.kinds.kind import COLUMN, CONFIDENCE, COUNTED, WHERE, Answer, Asked, Kind, number_text
from expost.study.kinds.numbers import NOISE, noisy

_CELLS = (
    COLUMN,
    Key("keys", "keys", "the values that are counted"),
    Key("bins", "bins", "a number of bins between bounds, or a list of edges"),
    Key("bounds", "pair", "the lowest and the highest edge, for a number of bins"),
    COUNTED,
    WHERE,
)
_REST = Key("other", "text", "what all other values are called; by default 'other'")
_THRESHOLD = Key("threshold", "whole", "above which a cell is large", required=True)
_AT_MOST = Key("at_most", "whole", "the most large cells that are looked for", required=True)
_FIND = Key("find_share", "number", "the share of ε for finding them; the rest is for their values. 0.5 if left out")


def cells(asked: Asked, *, rest: bool) -> Histogram:
    """The histogram that was asked for."""
    bounds = asked.get("bounds")
    return asked.rows.histogram(
        asked["column"],
        keys=asked.get("keys"),
        bins=asked.get("bins"),
        bounds=None if bounds is None else tuple(bounds),
        other=asked.get("other", "other") if rest else None,
        of=asked.get("count", "rows"),
    )


def _histogram(asked: Asked) -> Mechanism:
    return noisy(asked, cells(asked, rest=True))


def _discover(asked: Asked) -> Mechanism:
    question = asked.rows.discover(asked["column"], of=asked.get("count", "units"))
    return question.laplace(epsilon=asked.epsilon, delta=asked.delta)


def _above(asked: Asked) -> Mechanism:
    return cells(asked, rest=False).above(asked["threshold"], at_most=asked["at_most"], epsilon=asked.epsilon)


def _find(asked: Asked) -> Mechanism:
    share = as_share(asked.get("find_share", 0.5), "find_share")
    epsilon = Cost.within(Fraction(str(asked.epsilon)) * share).epsilon
    return cells(asked, rest=False).above(asked["threshold"], at_most=asked["at_most"], epsilon=epsilon)


def _values(asked: Asked, found: Release) -> Mechanism | None:
    """The values of what was found, with all that finding left. Proof: thm-release-large."""
    labels = [label for label, large in found.value.items() if large]
    if not labels:
        return None
    left = Cost.within(Fraction(str(asked.epsilon))) - Cost.of_units(found.charged.epsilon_units)
    return cells(asked, rest=False).only(labels).laplace(epsilon=left.epsilon)


def _counts(asked: Asked, mechanism: Noisy, value: dict[Any, int]) -> Answer:
    return _bars(value, float(mechanism.error_bound(CONFIDENCE)), ())


def _discovered(asked: Asked, mechanism: Discovered, value: dict[Any, int]) -> Answer:
    outcome = "any" if value else "none"
    if not value:
        return Answer(f"no key has {mechanism.threshold} or more", {}, outcomes=(outcome,), released=value)
    error = ceil(log(len(value) / (1 - CONFIDENCE)) / mechanism.rate)
    return _bars(value, float(error), (outcome,))


def _bars(value: dict[Any, int], error: float, outcomes: tuple[str, ...]) -> Answer:
    named = {str(label): count for label, count in value.items()}
    listed = ", ".join(f"{label}: {number_text(count)}" for label, count in list(named.items())[:8])
    more = f", … ({len(named)} in all)" if len(named) > 8 else ""
    text = f"{listed}{more}; each ± {number_text(error)}"
    return Answer(text, named, error, outcomes, bars=named, released=value)


def _none(mechanism: Above) -> dict[Any, bool]:
    """Nothing found: all that was asked, and none above."""
    return dict.fromkeys(mechanism.question.labels, False)


def _which(asked: Asked, mechanism: Above, value: dict[Any, bool]) -> Answer:
    found = [str(label) for label, large in value.items() if large]
    threshold = number_text(asked["threshold"])
    text = f"above {threshold}: {', '.join(found)}" if found else f"none above {threshold}"
    return Answer(text, found, outcomes=("any" if found else "none",), released=value)


def _large(asked: Asked, mechanism: Any, value: dict[Any, Any]) -> Answer:
    if isinstance(mechanism, Above):
        return _which(asked, mechanism, value)
    return _bars(value, float(mechanism.error_bound(CONFIDENCE)), ("any",))


HISTOGRAM = Kind(
    "histogram", "How many rows, or units, have each of the stated values, or lie in each bin.",
    (*_CELLS, _REST, NOISE), _histogram, _counts, example='column = "age"\nbins = 10\nbounds = [0, 100]',
)  # fmt: skip
DISCOVER = Kind(
    "discover", "Which values there are, and how many have them: those that enough have.", (COLUMN, COUNTED, WHERE),
    _discover, _discovered, delta=True, outcomes=("any", "none"), example='column = "diagnosis"',
)  # fmt: skip
ABOVE = Kind(
    "above", "Which cells of a histogram are above a threshold (sparse vector): pays for those that are.",
    (*_CELLS, _THRESHOLD, _AT_MOST), _above, _which, cheapest=_none, outcomes=("any", "none"),
    example='column = "diagnosis"\nkeys = ["flu", "cold"]\nthreshold = 500\nat_most = 2',
)  # fmt: skip
LARGE = Kind(
    "large", "The cells above a threshold with their counts: finds them, then spends what is left on their values.",
    (*_CELLS, _THRESHOLD, _AT_MOST, _FIND), _find, _large, then=_values, cheapest=_none, outcomes=("any", "none"),
    example='column = "diagnosis"\nkeys = ["flu", "cold"]\nthreshold = 500\nat_most = 2',
)  # fmt: skip
