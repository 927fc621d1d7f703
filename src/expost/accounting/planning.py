"""The ε to guarantee at each stop of a mechanism that may stop early, for one δ in all."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, log

from expost.accounting.composition import ProgressCallback, Step, as_loss, counted
from expost.accounting.losses import Loss
from expost.accounting.recursion import Recursion
from expost.accounting.resolution import READ_ABOVE, Sketch
from expost.accounting.stopping import check_stops, stopping_grid
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Neighbours

_TRIES = 24  # of a plan; three are usual
_CLOSE = 0.996  # of δ: a plan that uses this share is good enough
_PLANNED = 5e-4  # relative: what the grid may add to the E's of a plan


def plan(
    steps: Sequence[Step],
    stops: Sequence[int],
    delta: Number,
    *,
    weights: Sequence[Number] | None = None,
    grid: float | None = None,
    neighbours: Neighbours | None = None,
    progress: ProgressCallback | None = None,
) -> Guarantee:
    """The ε to guarantee at each stop for one δ in all: a guarantee whose parts are the stops.

    Parameters
    ----------
    steps
        Losses, or pairs (ε, δ). One direction of neighbours is taken for all steps: see :class:`Loss`.
    stops
        The numbers of steps after which the mechanism may stop; the last is all of them.
    delta
        The δ of the whole.
    weights
        Larger weights make their stops cheaper, and the others dearer. By default all are equal.
    grid
        The step of the grid of losses. By default one that fits δ.
    neighbours
        The relation of the guarantee.
    progress
        Receives a line of text for each stage.

    The ε of a stop is that of the fixed-length composition at δ·s·weight, with the largest s that the optimum allows.

    >>> from expost.accounting.losses import GaussianNoise
    >>> training = plan([GaussianNoise(10)] * 20, [10, 20], 1e-5)
    >>> [round(training.epsilon_of(stop), 2) for stop in (10, 20)], training.delta
    ([1.25, 1.83], 1e-05)

    Proof: thm-optimal-stopping
    """
    shares = [exact(weight, "a weight") for weight in weights] if weights is not None else [Fraction(1)] * len(stops)
    check_stops(steps, stops, shares)
    limit = Cost.within(0, delta).exact_delta
    if min(shares) <= 0 or not 0 < limit < 1:
        raise InvalidValue(f"a plan needs 0 < δ < 1 and positive weights, got {delta!r} and {weights!r}")
    losses = [as_loss(each) for each in steps]
    return _Planning(losses, stops, shares, limit, grid, progress).guarantee(neighbours)


class _Planning:
    """The search for the largest share of δ that every fixed-length composition may have."""

    def __init__(
        self,
        losses: Sequence[Loss],
        stops: Sequence[int],
        shares: Sequence[Fraction],
        limit: Fraction,
        grid: float | None,
        progress: ProgressCallback | None,
    ) -> None:
        self._stops, self._limit, self._tell = stops, limit, progress or (lambda _: None)
        self._weights = [float(share / max(shares)) for share in shares]
        self._tell(f"composing {len(losses)} steps")
        self._recursion = Recursion(losses, stops, grid or grid_for_delta(losses, float(limit)))

    def guarantee(self, neighbours: Neighbours | None) -> Guarantee:
        """The E's that were found."""
        return Guarantee(dict(zip(self._stops, self._found(), strict=True)), self._limit, neighbours=neighbours)

    def _shape(self, scale: float) -> list[Fraction]:
        target = float(self._limit) * (1 - 1e-12) * scale
        found = self._recursion.prefix_epsilons([target * weight for weight in self._weights])
        if max(found) == inf:
            raise InvalidValue(
                f"these steps lose more than δ {float(self._limit):g} at every ε: take less δ per step, or fewer steps"
            )
        return [Cost(epsilon).exact_epsilon for epsilon in found]

    def _value(self, scale: float, directions: Sequence[bool] | None = None) -> dict[bool, float]:
        self._tell(f"planning {len(self._stops)} stops: {scale:.4f} of δ for each")
        return self._recursion.above(self._shape(scale), directions)

    def _fits(self, value: float) -> bool:
        return Fraction(value) <= self._limit

    def _found(self) -> list[Fraction]:
        """δ is about proportional to the share, so that a few steps are enough. One direction leads, both must fit."""
        values = self._value(1.0)
        leading = max(values, key=values.__getitem__)
        if self._fits(values[leading]):
            return self._shape(1.0)
        tried = [(1.0, values[leading])]
        low, high = 0.0, 1.0
        for _ in range(_TRIES):
            scale = self._guess(tried, low, high)
            value = self._value(scale, [leading])[leading]
            tried.append((scale, value))
            low, high = (scale, high) if self._fits(value) else (low, scale)
            if low == scale and (value > _CLOSE * float(self._limit) or high < 1.002 * low):
                break
        others = [reverse for reverse in values if reverse != leading]
        while low and others and not self._fits(max(self._value(low, others).values())):
            low = low * 0.98 if low > 0.5 / len(self._stops) else 0.0
        if not low:
            raise InvalidValue(
                f"rounding errors are larger than δ {float(self._limit):g} for these {self._stops[-1]} steps: "
                "give a larger δ, or fewer steps"
            )
        return self._shape(low)

    def _guess(self, tried: Sequence[tuple[float, float]], low: float, high: float) -> float:
        """Where δ would be used up, if it were a power of the share; between what fits and what does not."""
        scale, value = tried[-1]
        power = 1.0
        if len(tried) > 1 and tried[-2][1] != value:
            power = log(tried[-2][1] / value) / log(tried[-2][0] / scale)
        guess = scale * ((1 + _CLOSE) / 2 * float(self._limit) / value) ** (1 / min(max(power, 0.25), 4.0))
        return guess if low < guess < high else (low + high) / 2


def grid_for_delta(losses: Sequence[Loss], delta: float) -> float:
    """A grid on which ε at this δ, read after all steps, is too large by no more than a plan may be."""
    counts = counted(losses)
    sketch = Sketch.of(counts, False, 1e-19)
    design = sketch.at_delta(delta)
    width = _PLANNED * max(design.epsilon, sketch.deviation())
    return stopping_grid(counts, sketch, width, design.slope, READ_ABOVE)
