"""What is made of the outputs of questions to tables: estimates, which hold neither the table nor its address."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from expost import bracket
from expost.estimate import Drawn, Ends, Estimate
from expost.estimates import Estimates, key_columns
from expost.frame import AsFrame, Frame
from expost.mechanism import Withheld
from expost.noise.grid import FARTHEST
from expost.noise.sums import LaplaceSteps, Term

WHOLE_UP_TO = FARTHEST - FARTHEST // 4
"""Sums are cut off at ±2^60 steps; a noisy one below this is of one that was not, as noise is below 2^58."""
WHY_CUT_OFF = (
    "sums are cut off at 2^60 steps of the grid, and this one may have been: take a larger grid, or subtract a number "
    "near its values first"
)


def may_be_cut_off(numbers: Iterable[float]) -> bool:
    """Whether any of these noisy numbers, in steps, is so large that the sum without noise may have been cut off.

    Proof: lem-cut-off-sums
    """
    return any(abs(number) >= WHOLE_UP_TO for number in numbers)


@dataclass(frozen=True)
class DrawnCells:
    """Numbers that each have a draw of their own: an estimate for each place, made when it is looked up.

    Parameters
    ----------
    numbers
        The published numbers.
    origin
        Which output they are of.
    bound, law
        As of :class:`~expost.estimate.Drawn`, the same for all.
    how
        How they were made.
    step
        One step of the grid that they were added up on.
    """

    numbers: Sequence[Any]
    origin: Hashable
    bound: Callable[[Fraction], float] | None = None
    law: Callable[[], Term] | None = None
    how: Any = None
    step: float = 1

    def __call__(self, place: int) -> Estimate:
        """The number in that place."""
        if may_be_cut_off([self.numbers[place] / self.step]):
            return Estimate.unknown(self.numbers[place], WHY_CUT_OFF, self.how)
        return Estimate.of(self.numbers[place], Drawn((self.origin, place), self.bound, self.law), how=self.how)


@dataclass(frozen=True)
class Reached:
    """Counts that are published because they reached a threshold with their noise: an estimate for each place.

    Noise below the count is as likely as ever or less, but noise above it may be why it is there: of counts near the
    threshold nothing is known from below, except that somebody has them.

    Proof: lem-reached-counts
    """

    numbers: Sequence[int]
    rate: Fraction
    threshold: int

    def __call__(self, place: int) -> Estimate:
        """The count in that place."""
        return Estimate.between(self.numbers[place], _ReachedEnds(self.numbers[place], self.rate, self.threshold))


@dataclass(frozen=True)
class _ReachedEnds:
    count: int
    rate: Fraction
    threshold: int

    def __call__(self, miss: Fraction) -> Ends:
        """Each end is passed with at most half of the probability."""
        farthest = max(ceil(bracket.log(2 / miss).upper / self.rate) - 1, 0)
        low = self.count - farthest
        return (low if low > self.threshold else 1), self.count + LaplaceSteps(self.rate).reach(miss)


def as_published(output: Any, origin: Hashable, why: str = "") -> Any:
    """A statistic with the error at 95 % that is published beside it, if there is one; or ``WITHHELD``."""
    if isinstance(output, Withheld):
        return output
    return Estimate.within(output.value, output.noise, origin, how=output, why=why)


def joined(names: Sequence[str], answers: Mapping[Any, Any], what: str) -> Any:
    """The answers about several groups: numbers by key, or by key and by their own keys; all others as a dictionary."""
    known = [answer for answer in answers.values() if not isinstance(answer, Withheld)]
    if all(isinstance(answer, Estimate) for answer in known):
        return Estimates.by_key(names, list(answers), what, list(answers.values()).__getitem__)
    if all(isinstance(answer, Estimates) for answer in known):
        return _flattened(names, answers, what)
    if all(isinstance(answer, AsFrame) for answer in known):
        return AnswersByGroup(names, answers, what)
    return answers


def _flattened(names: Sequence[str], answers: Mapping[Any, Any], what: str) -> Estimates:
    """Numbers by the key of their group and their own. A group that was withheld has one row."""
    own = next(answer.names for answer in answers.values() if isinstance(answer, Estimates))
    rows: list[tuple[tuple[Any, ...], str, Any]] = []
    for key, answer in answers.items():
        group = key if len(names) > 1 else (key,)
        if isinstance(answer, Withheld):
            rows.append(((*group, *((None,) * len(own))), what, answer))
            continue
        keyed = enumerate(zip(answer.keys_of, answer.what, strict=True))
        rows += [((*group, *inner), each, answer.at(place)) for place, (inner, each) in keyed]
    keys, whats, numbers = zip(*rows, strict=True)
    return Estimates(key_columns([*names, *own]), keys, whats, numbers.__getitem__)


class AnswersByGroup(dict[Any, Any], AsFrame):
    """Answers about groups that are not numbers, such as models. Those that have rows are a frame together."""

    def __init__(self, names: Sequence[str], answers: Mapping[Any, Any], what: str) -> None:
        super().__init__(answers)
        self.names, self.what = tuple(names), what

    @property
    def frame(self) -> Frame:
        """The rows of each answer, with the key of its group in front of their own."""
        frames = {key: each.frame for key, each in self.items() if isinstance(each, AsFrame)}
        own = next(iter(frames.values())).names
        rows = tuple(
            (row[0], *(key if len(self.names) > 1 else (key,)), *row[1:])
            for key, frame in frames.items()
            for row in frame.rows
        )
        notes = tuple(dict.fromkeys(note for frame in frames.values() for note in frame.notes))
        return Frame((own[0], *key_columns(self.names, own), *own[1:]), rows, notes=notes)
