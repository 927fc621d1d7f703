"""Linear regression by votes: fit on disjoint blocks, and release the cell that most fits agree on.

Records are dealt to blocks by their index, so one person changes one block and one vote. The coefficients of each
block are snapped to a cell of a grid. If one cell leads by enough votes that a person cannot change the winner, its
centre needs no noise. In case the fits straddle an edge there are further grids, shifted by a fraction of a cell.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_bounds, as_flag, as_whole, check_fields, equal_share, finite
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.frame import Frame
from expost.mechanism import WITHHELD, Withheld
from expost.mechanisms.linear.rows import model_frame
from expost.mechanisms.numbers import OfArrays, shape_of, without_nan
from expost.mechanisms.stability.release import FirstStable, Proposal
from expost.mechanisms.wrapper import Wrapper
from expost.noise import NoiseSource

Cell: TypeAlias = tuple[int, ...]

_FARTHEST = 2.0**52  # cells are numbered within this many on either side of zero
_IN_CELL = "coefficients are the middle of a cell that most fits are in, and have no noise"
_MOST_GRIDS = 100  # each has a test and a price of its own


class Coefficients(NamedTuple):
    """What is published: the leg that answered, and the centre of its winning cell, the intercept last."""

    leg: int
    values: tuple[float, ...]


def lead(votes: Counter[Cell]) -> tuple[Cell, int]:
    """The winner, and how many votes may change so that one more cannot change the winner: ⌊(top − second − 1)/2⌋₊.

    Of equals the least cell wins.

    Proof: lem-votes
    """
    ranked = sorted(votes.items(), key=lambda row: (-row[1], row[0]))
    second = ranked[1][1] if len(ranked) > 1 else 0
    return ranked[0][0], max((ranked[0][1] - second - 1) // 2, 0)


@dataclass(frozen=True, kw_only=True)
class WinningCell(Proposal[tuple[float, ...]]):
    """Releases the cell with most votes, on a grid shifted by a fraction of a cell. The data are the blocks' fits.

    Proof: lem-votes
    """

    cell: tuple[float, ...]
    shift: Fraction
    price = Fraction(0)

    def distance(self, data: Any, cap: int) -> int:
        """Votes that may change so that one more cannot change the winner."""
        return min(cap, lead(self._votes(data))[1])

    def release(self, data: Any, noise: NoiseSource) -> tuple[float, ...]:
        """The centre of the winning cell."""
        winner = np.array(lead(self._votes(data))[0], dtype=np.float64)
        return tuple(((winner + (0.5 + float(self.shift))) * np.array(self.cell)).tolist())

    def _votes(self, fits: NDArray[np.float64]) -> Counter[Cell]:
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = np.floor(fits / np.array(self.cell) - float(self.shift))
        numbers = np.clip(np.nan_to_num(numbers, nan=0.0), -_FARTHEST, _FARTHEST).astype(np.int64)
        return Counter(map(tuple, numbers.tolist()))


@dataclass(frozen=True, kw_only=True)
class StableRegression(OfArrays, Wrapper[NDArray[Any], Coefficients | Withheld]):
    """Linear regression by votes: the centre of a cell that most blocks agree on, or ⊥ if too few do.

    Parameters
    ----------
    cell
        The width of a cell: one for all coefficients, or one each (the intercept's last, if there is one).
    blocks
        The number of blocks that are fitted; record i is in block i mod ``blocks``.
    bounds
        The range that features are clamped to.
    target_bounds
        The range that the target is clamped to.
    epsilon
        The whole budget, in equal shares for the grids. If the i-th grid answers, i shares are charged.
    delta
        The δ of every output.
    grids
        The number of grids, up to 100, each shifted by a fraction of a cell.
    intercept
        Whether to fit a constant.
    missing
        What NaN counts as.

    The data is a two-dimensional array, one row per person: the features, and in the last column the target. Each block
    is fitted by least squares.

    >>> StableRegression(cell=0.5, blocks=60, bounds=(0, 1), target_bounds=(0, 1), epsilon=1, delta=1e-6).guarantee
    Guarantee({1: 0.5, 2: 1, 'withheld': 1}, delta=1e-6, neighbours='substitute')

    Proof: thm-regression
    """

    cell: Any
    blocks: int
    bounds: Any
    target_bounds: Any
    epsilon: Number
    delta: Number
    grids: int = 2
    intercept: bool = True
    missing: Number = 0

    def __post_init__(self) -> None:
        check_fields(self, blocks=as_whole, grids=partial(as_whole, most=_MOST_GRIDS))
        check_fields(self, bounds=as_bounds, target_bounds=as_bounds)
        check_fields(self, "missing", "delta", intercept=as_flag, cell=_widths)
        _ = self.guarantee

    @cached_property
    def inner(self) -> FirstStable:
        """The grids behind their tests, as many widths of cells as are known."""
        return self._legs(1 if isinstance(self.cell, float) else len(self.cell))

    def _legs(self, coefficients: int) -> FirstStable:
        cell = (self.cell,) * coefficients if isinstance(self.cell, float) else self.cell
        proposals = tuple(WinningCell(cell=cell, shift=Fraction(leg, self.grids)) for leg in range(self.grids))
        return FirstStable(proposals=proposals, test_epsilon=equal_share(self.epsilon, self.grids), delta=self.delta)

    def check(self, data: Any) -> None:
        """Rows and columns of numbers, at least a row for each block and a width for each coefficient."""
        dimensions = shape_of(data).dimensions
        if dimensions is None or len(dimensions) != 2 or dimensions[1] < 1:
            raise InvalidValue(f"regression is about a two-dimensional array, the target last, got shape {dimensions}")
        if dimensions[0] < self.blocks:
            raise InvalidValue(f"{dimensions[0]} records cannot fill {self.blocks} blocks: take fewer blocks")
        coefficients = dimensions[1] - 1 + self.intercept
        if not coefficients:
            raise InvalidValue("there is nothing to fit: give at least one feature, or an intercept")
        if not isinstance(self.cell, float) and len(self.cell) != coefficients:
            raise InvalidValue(
                f"there are {coefficients} coefficients and {len(self.cell)} widths of cells: give one each"
            )

    def sample(self, data: NDArray[Any], noise: NoiseSource) -> Coefficients | Withheld:
        """The centre of the winning cell, or ⊥."""
        fits = self._fits(without_nan(np.asarray(data, np.float64), float(self.missing)))
        answer = self._legs(fits.shape[1]).sample(fits, noise)
        return answer if isinstance(answer, Withheld) else Coefficients(answer.leg, answer.value)

    def _fits(self, data: NDArray[np.float64]) -> NDArray[np.float64]:
        """The coefficients of each block, each from its own records only."""
        features = np.clip(data[:, :-1], *self.bounds)
        if self.intercept:
            features = np.column_stack([features, np.ones(len(features))])
        target = np.clip(data[:, -1], *self.target_bounds)
        return np.array([_fit(features[b :: self.blocks], target[b :: self.blocks]) for b in range(self.blocks)])

    def frame_of(self, answer: Coefficients) -> Frame:
        """A row for the intercept, if there is one, and for the coefficient of each feature."""
        slopes = answer.values[: len(answer.values) - self.intercept]
        rows: list[tuple[str, tuple[int | None], float]] = [
            ("intercept", (None,), last) for last in answer.values[len(slopes) :]
        ]
        rows += [("coefficient", (feature,), slope) for feature, slope in enumerate(slopes)]
        return model_frame(("feature",), rows, _IN_CELL)

    def describe(self, output: Coefficients | Withheld) -> str:
        """The coefficients."""
        if output is WITHHELD:
            return "withheld"
        return f"{', '.join(f'{value:.4g}' for value in output[1])} (attempt {output[0]} of {self.grids})"


def _fit(features: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares, of least norm where it is not unique; zero where the numbers defeat the algorithm."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(np.linalg.lstsq(features, target, rcond=None)[0], np.float64)
    except np.linalg.LinAlgError:
        return np.zeros(features.shape[1])


def _widths(cell: Any, name: str) -> Any:
    """One width for all coefficients, or a tuple of one each."""
    one_each = isinstance(cell, tuple | list | np.ndarray)
    widths = tuple(finite(width, name) for width in (cell if one_each else (cell,)))
    if not widths or any(exact(width, name) <= 0 for width in widths):
        raise InvalidValue(f"the width of a cell is above 0, got {cell!r}")
    return widths if one_each else widths[0]
