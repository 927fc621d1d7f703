"""What a sparse vector publishes in one go: what was answered, and how many values there were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from operator import index
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from expost.comparison import Comparison
from expost.errors import InvalidValue
from expost.frame import AsFrame, Frame

Flags = NDArray[np.bool_]
_LEVELS = (Comparison.BELOW, Comparison.ABOVE, Comparison.FAR_ABOVE)
_MOST_PLACES = 8

_LEVEL_OF = {Comparison.BELOW: 0, Comparison.ABOVE: 1, Comparison.FAR_ABOVE: 2}


@dataclass(frozen=True, eq=False, repr=False)
class AboveMask(AsFrame):
    """For each value whether it is above its threshold, below, or was not compared: one :class:`Comparison` each.

    Parameters
    ----------
    answers
        The answers, in order, as long as values were compared: True and False; of an adaptive sparse vector 2, 1 and 0;
        with ``gap`` by how much a value was above, and NaN for below.
    size
        The number of values. Those after the last answer were not compared.

    numpy reads it as the mask of what is above: ``counts[mask]``, ``np.flatnonzero(mask)``. It has no opposite and
    takes part in no arithmetic: what is not above is below, or was never compared. ``mask.above``, ``mask.below`` and
    ``mask.not_compared`` are arrays of truth values.
    """

    answers: NDArray[Any]
    size: int

    @classmethod
    def of(cls, comparisons: Iterable[Comparison]) -> Self:
        """The mask that has these entries. Those that were not compared come last."""
        every = list(comparisons)
        answers = [_LEVEL_OF[each] for each in every if each is not Comparison.NOT_COMPARED]
        if Comparison.NOT_COMPARED in every[: len(answers)]:
            raise InvalidValue("a value was compared after one that was not: what is not compared comes last")
        levels = np.array(answers, np.int8)
        return cls(levels if Comparison.FAR_ABOVE in every else levels.astype(np.bool_), len(every))

    # ---- masks

    @property
    def found(self) -> Flags:
        """Which answers were positive."""
        return ~np.isnan(self.answers) if self.answers.dtype.kind == "f" else self.answers.astype(np.bool_)

    @property
    def above(self) -> Flags:
        """Which values were found above."""
        return self._spread(self.found, False)

    @property
    def far_above(self) -> Flags:
        """Which values an adaptive sparse vector found far above."""
        return self._spread((self.answers == 2) & (self.answers.dtype.kind == "i"), False)

    @property
    def below(self) -> Flags:
        """Which values were found below."""
        return self._spread(~self.found, False)

    @property
    def not_compared(self) -> Flags:
        """Which values were not compared."""
        return self._spread(np.zeros(len(self.answers), np.bool_), True)

    @property
    def gaps(self) -> NDArray[np.float64]:
        """By how much each value was above; NaN where it was not found above."""
        if self.answers.dtype.kind != "f":
            raise InvalidValue("by how much values are above was not published: run it with gap=True")
        return self._spread(self.answers, np.nan)

    def _spread(self, of_answers: NDArray[Any], rest: Any) -> NDArray[Any]:
        """An entry for each value: those of the answers, and this for the rest."""
        return np.pad(of_answers, (0, self.size - len(self.answers)), constant_values=rest)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.above, dtype)

    # ---- what it must not be taken for

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> NoReturn:
        self.__invert__()

    def __invert__(self) -> NoReturn:
        raise InvalidValue(
            "what is not above may be below, or not compared: use .above, .below or .not_compared of this mask, which "
            "are arrays"
        )

    def __bool__(self) -> NoReturn:
        raise InvalidValue("a mask is neither true nor false: ask whether mask.above.any()")

    # ---- entries

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Comparison]:
        levels = self.found if self.answers.dtype.kind == "f" else self.answers
        yield from (_LEVELS[level] for level in levels.tolist())
        yield from repeat(Comparison.NOT_COMPARED, self.size - len(self.answers))

    def __getitem__(self, place: int) -> Comparison:
        at = range(self.size)[index(place)]
        if at >= len(self.answers):
            return Comparison.NOT_COMPARED
        return next(iter(AboveMask(self.answers[at : at + 1], 1)))

    @property
    def frame(self) -> Frame:
        """A row for each value: its index, and above, below or not compared; and the gap, if that was published."""
        rows = enumerate(map(str, self))
        if self.answers.dtype.kind != "f":
            return Frame(("index", "above"), tuple(rows))
        gaps = (None if np.isnan(gap) else gap for gap in self.gaps.tolist())
        return Frame(("index", "above", "gap"), tuple((*row, gap) for row, gap in zip(rows, gaps, strict=True)))

    # ---- as a record

    @property
    def _content(self) -> tuple[int, str, bytes]:
        return self.size, self.answers.dtype.str, self.answers.tobytes()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, bool):  # mask == False, meant entry by entry
            self.__invert__()
        return self._content == other._content if isinstance(other, AboveMask) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content)

    def __repr__(self) -> str:
        places = np.flatnonzero(self.found)
        listed = ", ".join(map(str, places[:_MOST_PLACES].tolist())) + ", …" * (len(places) > _MOST_PLACES)
        asked, rest = len(self.answers), self.size - len(self.answers)
        left = f", {rest:,} not compared (from {asked} on)" if rest else ""
        return (
            f"<{self.size:,} values: {len(places):,} above{f' ({listed})' if listed else ''}, "
            f"{asked - len(places):,} below{left}>"
        )


def answers_of(output: Any) -> NDArray[Any]:
    """The answers of an output: of a mask, or of an interaction, where None means "below"."""
    if isinstance(output, AboveMask):
        return output.answers
    answers = np.asarray(output)
    return answers if answers.dtype.kind in "bi" else answers.astype(np.float64)


def stopped_text(output: Any) -> str:
    """How a description says that the last positive allowed came before the last value."""
    if not isinstance(output, AboveMask) or len(output.answers) == output.size:
        return ""
    rest = output.size - len(output.answers)
    return f"; stopped after {int(output.found.sum())} (at_most), {rest:,} not compared"
