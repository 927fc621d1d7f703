"""What a ledger keeps of a release: its output, and the rows in which people read it."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sized
from dataclasses import dataclass
from typing import Any

from expost.errors import InvalidValue
from expost.estimates import frame_of
from expost.frame import Frame
from expost.mechanism import WITHHELD, Mechanism

MOST_KEPT = 20_000
"""Of the rows that are kept: with more of them writing takes longer than sampling. Tables publish half as many."""


@dataclass(frozen=True)
class Kept:
    """What is stored under a key.

    The output is what the mechanism reads; how far noise moved its numbers only the mechanism knows, and the books have
    no mechanism, only its fingerprint. So the rows that a release showed are kept beside it: they are read back the
    same although the question was edited, or is asked no more.

    Parameters
    ----------
    output
        What was published, as ``mechanism.part_of`` reads it.
    frame
        The same as people read it, in cells of plain JSON; None if it is too long to be kept twice.
    terms
        On which terms a question was asked, so that its mechanism can be made again; None if it has no identity.
    """

    output: Any
    frame: Frame | None = None
    terms: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, mechanism: Mechanism, output: Any, origin: Hashable, terms: Mapping[str, Any] | None = None) -> Kept:
        """What is kept of an output."""
        if _length(output) > MOST_KEPT:
            return cls(output, None, terms)
        value = output if output is WITHHELD else mechanism.answer_of(output, origin)
        frame = frame_of(value, mechanism)
        return cls(output, Frame.from_json(frame.to_json()) if len(frame) <= MOST_KEPT else None, terms)

    @property
    def rows(self) -> Frame:
        """The rows that were shown; of what has none the output alone, whose errors are not known."""
        return frame_of(self.output, _Unknown) if self.frame is None else self.frame

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        return Kept(copy.deepcopy(self.output, memo), self.frame, self.terms)


class _Unknown:
    """In place of a mechanism that nobody has any more."""

    what = "value"


def as_kept(stored: Any) -> Kept:
    """What a store gives back. Raises ``InvalidValue`` for an output of another format."""
    if not isinstance(stored, Kept):
        raise InvalidValue(
            f"what is stored under a key is an output with its rows, and this is of type {type(stored).__qualname__}: "
            "a development version of expost wrote it; read it with that version, or pass a new key for a new request"
        )
    return stored


def _length(output: Any) -> int:
    size = getattr(output, "size", None)
    return size if isinstance(size, int) else len(output) if isinstance(output, Sized) else 1
