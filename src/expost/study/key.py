"""What a ledger holds of a study: which of its questions were asked, how that ended, what they may still need."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from expost.cost import Cost, exact
from expost.ledger import Entry, Ledger
from expost.study.kinds import KINDS
from expost.study.model import Question, Study

LOST = "it was cut short while it was sampled, so its worst case was charged; under a new name it can be asked again"
VALUES = ": values"
"""The second step of a question that has two."""
_KEY = re.compile(r"(.* #\d+ [0-9a-f]{16})(?: n=(\d+))?")  # and what a run adds


@dataclass(frozen=True)
class Stored:
    """What the ledger holds about a question."""

    attempts: int
    last: Entry
    units: str
    """Their number, which a run would have to find unchanged; empty if that is known, or private."""
    unfinished: Cost
    """What a second step costs that has not been asked, because a run ended before."""

    @property
    def why(self) -> str:
        """It in words."""
        if self.last.state == "forfeited":
            return f"lost: {LOST}"
        if self.last.state == "reserved":
            return "is being asked right now"
        times = f"was asked {self.attempts} times: " if self.attempts > 1 else ""
        held = "the ledger has half of the answer" if self.unfinished.epsilon_units else "the ledger has the answer"
        return f"{times}{held}" + (f", if there are still {self.units} units" if self.units else "")


def asked_then(question: Question, entry: Entry) -> Cost:
    """What a question asked for when it was asked, as its reservation tells."""
    share = exact(question.values.get("find_share", 0.5), "") if KINDS[question.kind].then else Fraction(1)
    return Cost.within(entry.reserved.exact_epsilon / share, entry.reserved.exact_delta)


def stored_questions(study: Study, ledger: Ledger, size: int | None) -> dict[str, Stored]:
    """What the ledger holds, by names of questions; about so many units, or any number if that is None."""
    entries: dict[str, tuple[Entry, str]] = {}
    for entry in ledger.entries():
        parts = _KEY.match(entry.key or "")
        if parts and (size is None or parts[2] in (None, str(size))):
            units = f"{int(parts[2]):,}" if size is None and parts[2] else ""
            entries[parts[1]] = entry, units
    found = {}
    for question in study.questions:
        times = range(1, (question.repeat.at_most if question.repeat else 1) + 1)
        made = [attempt for attempt in times if study.key(question, attempt) in entries]
        if made:
            first, units = entries[study.key(question, made[-1])]
            second, _ = entries.get(study.key(question, made[-1], VALUES), (None, ""))
            unfinished = _second_step(question, first, ledger) if second is None else Cost(0)
            found[question.name] = Stored(len(made), second or first, units, unfinished)
    return found


def _second_step(question: Question, first: Entry, ledger: Ledger) -> Cost:
    """What is left of its ε for values of what was found, if something was."""
    if KINDS[question.kind].then is None or first.state != "settled" or first.charged is None or first.key is None:
        return Cost(0)
    found = any(ledger.output(first.key).values())
    return Cost.of_units(asked_then(question, first).epsilon_units - first.charged.epsilon_units) if found else Cost(0)
