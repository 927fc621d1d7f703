"""What bounds and the cap on rows take away from other answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from expost.data.lost import LostShare, LostShares, NoisyLost
from expost.frame import number_text
from expost.questions import LostValues
from expost.study.grammar import Key
from expost.study.kinds import keys
from expost.study.kinds.kind import Accuracy, Answer, Asked, QuestionKind
from expost.study.model import Question

_BOUNDS = Key("bounds", "pair", "the lowest and the highest value that counts in other questions", required=True)
_WORTH_SAYING = 0.05
"""A share from which on readers are warned."""
CLIPPED = ("sum", "mean", "variance")
"""The kinds whose answers change with every value that is moved to a bound."""
COUNTING = ("count", "histogram")
"""The kinds that count rows, so that those which the cap leaves out are missing."""


def _answer(asked: Asked, mechanism: NoisyLost, found: LostShares) -> Answer:
    low, high = map(number_text, asked["bounds"])
    text = f"{found.below} of the values lie below {low}, {found.above} above {high}"
    if found.units is not None:
        unit = mechanism.question.table.unit
        some = f"{unit.rows} row{'s' * (unit.rows != 1)}"
        text += f"; of the units ({unit.column}) with such a value, {found.units} have more than the {some} that count"
    value = {name: share._asdict() for name, share in found._asdict().items() if share is not None}
    errors = [share.error for share in found if share is not None]
    return Answer(text, value, max(errors), released=found, drowned=2 * min(errors) >= 1)


def _accuracy(asked: Asked, mechanism: NoisyLost) -> Accuracy:
    """If as many values count as there are units, or as are expected where that is private, or not looked at."""
    known = asked.sized and asked.size
    values = known or asked.likely()
    about = "percentage points" if known else f"percentage points, if {values:,} values count"
    return Accuracy(100 * mechanism.expected_error(values, values), about, within=100, nominal=not known)


def same_values(one: Question, other: Question) -> bool:
    """Whether two questions are about the same values, with the same bounds."""
    return all(one.values.get(key) == other.values.get(key) for key in ("column", "bounds", "where", "missing"))


def unasked_losses(questions: Sequence[Question]) -> list[str]:
    """The names of questions whose answers bounds change, where none before them asks by how much."""
    unasked: list[str] = []
    for place, one in enumerate(questions):
        earlier = (other for other in questions[:place] if other.kind == LOSSES[0].name)
        if one.kind in CLIPPED and "bounds" in one.values and not any(same_values(one, other) for other in earlier):
            unasked.append(one.name)
    return unasked


def known_loss(asked: Asked, known: Iterable[tuple[Question, Any]]) -> str:
    """What was published about the values that an answer is made of, in words; empty if nothing that matters was."""
    found = [(one, found) for one, found in known if isinstance(found, LostShares)]
    if asked.question.kind in CLIPPED:
        same = [shares for one, shares in found if same_values(one, asked.question)]
        return "; ".join(_said(same[-1], asked)) if same else ""
    if asked.question.kind not in COUNTING or asked.get("count") == "units":
        return ""
    rows = [(one, shares.units) for one, shares in found if one.values.get("where") == asked.get("where")]
    return "; ".join(_capped(share, f" that have {one.values['column']}") for one, share in rows[-1:])


def _said(found: LostShares, asked: Asked) -> Iterator[str]:
    if found.below.low + found.above.low >= _WORTH_SAYING:
        moved = min(found.below.value + found.above.value, 1.0)
        yield f"about {100 * moved:.0f} % of the values were moved to the bounds{_direction(found, asked.question)}"
    if text := _capped(found.units):
        yield text


def _capped(units: LostShare | None, which: str = "") -> str:
    """How many units have more rows than count; nothing if they are few, or not known."""
    if units is None or units.low < _WORTH_SAYING:
        return ""
    return f"about {100 * units.value:.0f} % of the units{which} have more rows than count"


def _direction(found: LostShares, question: Question) -> str:
    """Which way the bounds move an answer: a variance becomes smaller; others follow the bound that values go to."""
    if question.kind == "variance":
        return ": this is probably too low"
    if found.above.low > found.below.high:
        return ": this is probably too low"
    return ": this is probably too high" if found.below.low > found.above.high else ""


LOSSES = (
    QuestionKind(
        "lost", "How many values lie outside of bounds, and how many units have more rows than count.",
        (keys.COLUMN, _BOUNDS, keys.DROPPED, keys.WHERE), LostValues, _answer, accuracy=_accuracy,
        noise="Laplace, on the numbers of values and of units", covers="noise, in 95 of 100 cases",
        example='column = "cost"\nbounds = [0, 1000]',
    ),
)  # fmt: skip
