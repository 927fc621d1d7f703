"""Moments of columns without bounds: what is known of them before, and how their answers read."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from expost.data.searched import FoundMoment
from expost.errors import InvalidValue
from expost.frame import number_text, with_error
from expost.mechanism import Withheld
from expost.mechanisms.moments.geometric_cells import Interval
from expost.study.grammar import Key
from expost.study.kinds.kind import Answer, Asked, NoBar

_FOUND = (
    "Without them a range is found first, for as much of ε as that takes; what it does not use is refunded. If none is "
    "clear the answer is withheld, for the ε of the search alone"
)
OPTIONAL_BOUNDS = Key("bounds", "pair", f"values are moved into these bounds. {_FOUND}")
OPTIONAL_PAIRS = Key("bounds", "pairs", f"the bounds of each of the two columns. {_FOUND}")
FOUND_LATER = NoBar("it depends on the range that is found in the data", later=True)


NO_ANSWER = Answer(
    "withheld: no range of the values was clear at this ε; state 'bounds', or more ε", None, outcomes=("withheld",)
)
"""Of a moment without bounds."""


def found_answer(found: FoundMoment | Withheld) -> Answer:
    """The statistic and the ranges that values were moved into."""
    if isinstance(found, Withheld):
        return NO_ANSWER
    value = number_text(found.value) if found.noise is None else with_error(found.value, found.noise)
    clamped = moved_into(found.ranges, found.outside, found.beyond)
    return Answer(f"{value}, {clamped}", found.value, found.noise, released=found)


def moved_into(ranges: Sequence[Interval], outside: float | None, beyond: float | None) -> str:
    """Which values a number is of: those outside of ranges that were found are in it as if they lay at their ends."""
    between = " and ".join(f"{number_text(low)} to {number_text(high)}" for low, high in ranges)
    if outside is None:
        return f"of values moved into {between}"
    share = f"of values moved into {between}; at most {ceil(1000 * outside) / 10:g} % lie outside"
    if beyond is None:
        return f"{share}, and nobody knows how far"
    (low, high), *_ = ranges
    return f"{share}, and ± counts them as if within {number_text(low - beyond)} to {number_text(high + beyond)}"


NO_GROUP_BOUNDS = "groups are asked all at once, within bounds: state 'bounds', or leave 'by' out"


def group_bounds(asked: Asked) -> tuple[float, float]:
    """The bounds of a question that is asked about all groups at once."""
    if "bounds" not in asked.question.values:
        raise InvalidValue(NO_GROUP_BOUNDS)
    low, high = asked["bounds"]
    return low, high
