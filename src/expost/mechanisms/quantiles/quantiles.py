"""Quantiles, one or several at once, and what is computed from them: pure ε, and no sensitivity to declare."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from typing import Any

from numpy.typing import NDArray

from expost import bracket
from expost.checks import as_bounds, as_confidence, as_flag, as_probability, as_whole, check_fields, optional
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.estimate import Estimate
from expost.estimates import Estimates
from expost.guarantee import Neighbours, as_neighbours
from expost.mechanism import WITHHELD, Out, Withheld
from expost.mechanisms.accuracy import Calibrated
from expost.mechanisms.fixed_cost import FixedCost
from expost.mechanisms.numbers import OfArrays
from expost.mechanisms.quantiles.between import CHOICES, Between, between, windows_between
from expost.mechanisms.quantiles.candidates import Candidates, candidates
from expost.mechanisms.quantiles.ordered import Tally, arrange, has_floats, records_in
from expost.mechanisms.quantiles.windows import Candidate, Target, Windows
from expost.noise import NoiseSource

TOO_FEW = "withheld: there are too few values, without bounds"
"""What is told of quantiles that were withheld."""


class Ranked(OfArrays, FixedCost[NDArray[Any] | Tally, Out], Calibrated[NDArray[Any] | Tally, Out]):
    """What mechanisms about ranks share: candidates on a grid, chosen by how many ranks they are off.

    Subclasses say which quantiles, and what is published of them.
    """

    _about = ("floats",)
    _remedy = "take a coarser grid or narrower bounds"

    epsilon: Number
    bounds: Any
    neighbours: Neighbours
    grid: Number | None
    missing: Number

    def __post_init__(self) -> None:
        check_fields(self, "epsilon", "missing", bounds=optional(as_bounds))
        if as_neighbours(self.neighbours) is None:
            raise InvalidValue(
                "neighbours is 'add-remove' or 'substitute' (is the number of records private, or public?), got None"
            )
        _ = self._lattice(floats=True), self.levels

    @property
    @abstractmethod
    def levels(self) -> tuple[Fraction, ...]:
        """The quantiles that are chosen, each from 0 to 1."""

    def check(self, data: Any) -> None:
        """A one-dimensional array of numbers, or a tally of them; without bounds, enough if their number is public."""
        floats = has_floats(data, type(self).__name__)
        self._lattice(floats=floats)
        if self.bounds is None and self.neighbours == "substitute":
            require_between(self.levels, records_in(data), int(self.error_bound("0.95", floats=floats)))

    def error_bound(self, confidence: Number, *, floats: bool = True) -> float:
        """How many ranks the values chosen are off at most, all at once, with this confidence.

        Ranks are those among the records as they are rounded to the grid: a grid that is coarser than the data puts
        records together. ``floats`` says whether the data has floats, for which the grid is finer if none is given.

        Proof: lem-quantile-error
        """
        lattice = self._lattice(floats=floats)
        score = worst_score(lattice.size, self._choices, self._rate, 1 - as_confidence(confidence))
        return max(ceil(_unit(level, self.neighbours) * score) for level in self.levels)

    @property
    def _choices(self) -> int:
        """How many values are chosen jointly."""
        return len(self.levels)

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """A number without an error, unless an interval was asked for: how far ranks are apart depends on the data."""
        if isinstance(output, Between):
            return output.estimate
        return Estimate.unknown(output, self._ranks_text(isinstance(output, float)))

    def _ranks_text(self, floats: bool) -> str:
        """What is known instead of an error."""
        ranks, rounded = int(self.error_bound("0.95", floats=floats)), self._lattice(floats=floats).rule(floats=floats)
        together = "" if len(self.levels) == 1 else ", all at once"
        return f"it is known in ranks only, off by at most {ranks:,}{rounded} at 95 %{together}"

    def _chosen(self, data: Any, noise: NoiseSource) -> tuple[float, ...] | Withheld:
        """The values chosen, in order; nothing if one of them is no number."""
        lattice = self._lattice(floats=has_floats(data, type(self).__name__))
        arranged = arrange(data, lattice, float(self.missing))
        targets = tuple(target(level, arranged.size, self.neighbours) for level in self.levels)
        if len(targets) == 1:
            targets = (targets[0].settled(arranged),)
        chosen: Candidate = Windows(arranged, targets, self._rate, paired=self._paired).sample(noise)
        return numbers_chosen(lattice, chosen)

    @property
    def _paired(self) -> bool:
        return self.neighbours == "substitute" and len(self.levels) > 1

    @property
    def _rate(self) -> Fraction:
        return exact(self.epsilon, "ε") / 2

    def _lattice(self, *, floats: bool) -> Candidates:
        return candidates(self.bounds, self.grid, floats=floats)


@dataclass(frozen=True, kw_only=True)
class QuantileOfRecords(Ranked[Any]):
    """A quantile of the data, with pure ε: the record of rank ⌈quantile·n⌉, or a value near it in rank.

    The value is chosen among the multiples of ``grid`` within ``bounds`` by permute-and-flip, the less likely the more
    records would have to change before it is the quantile. A value that many records share is hit exactly. Without
    bounds it is chosen among all numbers with 24 significant bits, which costs a few ranks and no more ε; where there
    are too few records for that, the value is ``WITHHELD``, or refused before anything is paid if their number is
    public.

    The data is a one-dimensional array with one value per person, or a :class:`Tally`. Whole numbers stay whole.

    Parameters
    ----------
    quantile
        From 0, the smallest record, to 1, the largest.
    epsilon
        The whole budget. Every answer costs all of it.
    bounds
        The lowest and the highest answer. Records outside count as the nearer one. None for numbers of any size: where
        bounds are not known, or wider than ten thousand grids.
    neighbours
        ``"substitute"``: one record is exchanged and their number is public. ``"add-remove"``: one record more or
        less; the number is private, and the median needs half the noise.
    grid
        The distance between neighbouring answers, any number above 0. By default 1 for whole numbers, and for floats a
        power of two that divides the bounds in a million cells. Give what the data was measured to.
    missing
        What NaN counts as.
    interval
        Whether to choose two more values for the same ε, that the true quantile lies between with 95 % confidence. The
        three are off by about three times as many ranks (lem-quantile-between). The output is then a :class:`Between`.

    >>> upper = QuantileOfRecords(quantile=0.9, epsilon=1, bounds=(0, 120), neighbours="substitute")
    >>> upper.error_bound(0.95, floats=False)
    15

    Proof: thm-quantiles
    """

    quantile: Number
    epsilon: Number
    bounds: Any = None
    neighbours: Neighbours
    grid: Number | None = None
    missing: Number = 0
    interval: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "interval", as_flag(self.interval, "interval"))

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The one quantile."""
        return (as_probability(self.quantile, "quantile"),)

    @property
    def _choices(self) -> int:
        return CHOICES if self.interval else 1

    def sample(self, data: Any, noise: NoiseSource) -> Any:
        """The value chosen, and the ends of its interval if these were asked for."""
        if self.interval:
            return self._between(data, noise)
        chosen = self._chosen(data, noise)
        return chosen if isinstance(chosen, Withheld) else chosen[0]

    def _between(self, data: Any, noise: NoiseSource) -> Between | Withheld:
        """Proof: lem-quantile-between."""
        floats = has_floats(data, type(self).__name__)
        lattice, off = self._lattice(floats=floats), int(self.error_bound("0.95", floats=floats))
        arranged = arrange(data, lattice, float(self.missing))
        at = target(self.levels[0], arranged.size, self.neighbours)
        paired = self.neighbours == "substitute"
        law = windows_between(arranged, at, off, self._rate, paired=paired)
        return between(lattice, law.sample(noise), floats=floats, within=self.bounds)

    @property
    def what(self) -> str:
        """What it is."""
        return "quantile"

    def describe(self, output: Any) -> str:
        """The value, and how many ranks it may be off."""
        if output is WITHHELD:
            return TOO_FEW
        if isinstance(output, Between):
            return f"{output.value:.6g}, between {output.low:.6g} and {output.high:.6g} at 95 %"
        floats = isinstance(output, float)
        ranks, rounded = self.error_bound("0.95", floats=floats), self._lattice(floats=floats).rule(floats=floats)
        return f"{output:.6g}, off by at most {ranks} rank{'s' * (ranks != 1)}{rounded} at 95 %"


@dataclass(frozen=True, kw_only=True)
class MedianOfRecords(QuantileOfRecords):
    """The median of the data with pure ε, of an even number of records the lower one.

    It is :class:`QuantileOfRecords` at one half.

    Parameters
    ----------
    epsilon, bounds, neighbours, grid, missing, interval
        As for :class:`QuantileOfRecords`.
    quantile
        One half. Leave it out.

    >>> MedianOfRecords(epsilon=1, bounds=(0, 120), neighbours="add-remove").error_bound(0.95, floats=False)
    8

    Proof: thm-quantiles
    """

    quantile: Number = Fraction(1, 2)

    @property
    def what(self) -> str:
        """What it is."""
        return "median" if self.levels == (Fraction(1, 2),) else super().what


@dataclass(frozen=True, kw_only=True)
class QuantilesOfRecords(Ranked[Any]):
    """Several quantiles at once, with pure ε for all of them together: values in order.

    They are chosen jointly: all are off in the same direction or little, so that two or nine of them are about as
    accurate as one with a half or a quarter of ε.

    Parameters
    ----------
    quantiles
        Several numbers from 0 to 1, in ascending order.
    epsilon, bounds, neighbours, grid, missing
        As for :class:`QuantileOfRecords`.

    >>> deciles = QuantilesOfRecords(quantiles=(0.1, 0.5, 0.9), epsilon=1, bounds=(0, 99), neighbours="substitute")
    >>> deciles.error_bound(0.95, floats=False)
    33
    >>> deciles.interval((20, 48, 80), 0.5, 0.95, n=1000)
    (20, 80)

    Proof: thm-quantiles
    """

    quantiles: Any
    epsilon: Number
    bounds: Any = None
    neighbours: Neighbours
    grid: Number | None = None
    missing: Number = 0

    def __post_init__(self) -> None:
        if not isinstance(self.quantiles, tuple | list) or not self.quantiles:
            raise InvalidValue(f"quantiles are several numbers from 0 to 1, got {self.quantiles!r}")
        object.__setattr__(self, "quantiles", tuple(self.quantiles))
        super().__post_init__()

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The quantiles."""
        levels = tuple(as_probability(quantile, "each of quantiles") for quantile in self.quantiles)
        if any(first >= second for first, second in pairwise(levels)):
            raise InvalidValue(f"quantiles are in ascending order, got {self.quantiles!r}")
        return levels

    def sample(self, data: Any, noise: NoiseSource) -> tuple[float, ...] | Withheld:
        """The values chosen."""
        return self._chosen(data, noise)

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """The values by their quantiles, without errors in their unit."""
        why = self._ranks_text(any(isinstance(value, float) for value in output))
        values = [Estimate.unknown(value, why) for value in output]
        return Estimates.by_key(("quantile",), list(map(float, self.levels)), self.what, values.__getitem__)

    def interval(self, output: Any, quantile: Number, confidence: Number, *, n: int) -> tuple[float, float]:
        """Where the true quantile lies with this confidence, from the values released: between two of them, or a bound.

        ``n`` is the number of records. ``confidence`` holds for any number of such intervals of one release at once.

        Proof: lem-quantile-error
        """
        released = output.values() if isinstance(output, Mapping) else output
        output = tuple(each.value if isinstance(each, Estimate) else each for each in released)
        floats = any(isinstance(value, float) for value in output)
        off = int(self.error_bound(confidence, floats=floats))
        size = as_whole(n, "n (the number of records)")
        rank = place(as_probability(quantile, "quantile"), size)
        lattice = self._lattice(floats=floats)
        least, most = low, high = lattice.ends
        for level, value in zip(self.levels, output, strict=True):
            if ceil(place(level, size)) + off <= ceil(rank):
                low = max(low, value)
            if ceil(place(level, size)) - off >= ceil(rank):
                high = min(high, value)
        low, high = lattice.around(low, floats=floats)[0], lattice.around(high, floats=floats)[1]
        least, most = (least, most) if self.bounds is None else self.bounds
        return max(low, least), min(high, most)


@dataclass(frozen=True, kw_only=True)
class InterquartileRange(Ranked[float | Withheld]):
    """The range between the quartiles with pure ε: both are chosen jointly, and their distance is published.

    Parameters
    ----------
    epsilon, bounds, neighbours, grid, missing
        As for :class:`QuantileOfRecords`.

    >>> InterquartileRange(epsilon=1, bounds=(0, 120), neighbours="substitute").guarantee.worst_case
    Cost(1)

    Proof: thm-quantiles
    """

    epsilon: Number
    bounds: Any = None
    neighbours: Neighbours
    grid: Number | None = None
    missing: Number = 0

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The quartiles."""
        return Fraction(1, 4), Fraction(3, 4)

    @property
    def what(self) -> str:
        """What it is."""
        return "interquartile range"

    def sample(self, data: Any, noise: NoiseSource) -> float | Withheld:
        """The distance of the quartiles chosen."""
        chosen = self._chosen(data, noise)
        return chosen if isinstance(chosen, Withheld) else chosen[1] - chosen[0]


def numbers_chosen(lattice: Candidates, chosen: Candidate) -> tuple[float, ...] | Withheld:
    """The numbers that candidates are, in order; nothing if one of them is no number.

    Proof: lem-nothing-beyond
    """
    return tuple(map(lattice.value, sorted(chosen))) if all(map(lattice.answers, chosen)) else WITHHELD


def require_between(levels: tuple[Fraction, ...], size: int, off: int) -> None:
    """Refuse a public number of records with which a quantile may be beyond all of them, off by that many ranks."""
    for level in levels:
        rank = ceil(place(level, size))
        if not off < rank <= size - off:
            raise InvalidValue(
                f"{size:,} records are too few for the quantile {float(level):g} without bounds: it may be off by "
                f"{off:,} ranks at 95 %, and beyond all of them. Give bounds, or more ε"
            )


def worst_score(candidates: int, choices: int, rate: Fraction, miss: Fraction) -> int:
    """The score that values chosen jointly exceed with probability at most ``miss``.

    Proof: lem-quantile-error
    """
    wrong = candidates**choices - 1
    return max(ceil(bracket.log(wrong / miss).upper / rate) - 1, 0) if wrong else 0


def place(level: Fraction, size: int) -> Fraction:
    """Where a quantile is in the order of the records: its rank is the next whole number."""
    return level * size if level else Fraction(1)


def target(level: Fraction, size: int, neighbours: Neighbours) -> Target:
    """A quantile among n records."""
    return Target(place(level, size), _unit(level, neighbours))


def _unit(level: Fraction, neighbours: Neighbours) -> Fraction:
    """How far one person moves the number of records below a value, less the quantile's place.

    Proof: lem-quantile-score
    """
    return Fraction(1) if neighbours == "substitute" or not level else max(level, 1 - level)
