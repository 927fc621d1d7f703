"""Events of Google's dp-accounting as losses. The library is imported when one is given."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, sqrt
from typing import Any

import numpy as np

from expost.accounting.law import Blur, LossLaw
from expost.accounting.losses import CUT, ApproximateDP, GaussianNoise, LaplaceNoise, Loss
from expost.bracket import log
from expost.checks import as_whole
from expost.cost import Cost, Number, exact
from expost.errors import InvalidValue, MissingDependency
from expost.guarantee import Neighbours


def losses_of(event: Any, neighbours: Neighbours = "add-remove") -> list[Loss]:
    """The losses of a ``DpEvent``, one for each step, for sensitivity 1 as is that library's custom.

    That is the sensitivity for a record that is added or removed; a record that is exchanged moves a value by 2.

    >>> import dp_accounting
    >>> losses_of(dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(2.0), 2))
    [GaussianNoise(noise_multiplier=2.0, sampling_rate=1), GaussianNoise(noise_multiplier=2.0, sampling_rate=1)]

    What has no law here (mixtures, other sampling) takes that library's, from above only.
    """
    try:
        import dp_accounting as dp
    except ModuleNotFoundError:
        raise MissingDependency("events", "dp-accounting", "accounting") from None
    if isinstance(event, dp.NoOpDpEvent):
        return []
    if isinstance(event, dp.GaussianDpEvent):
        return [GaussianNoise(_multiplier(event.noise_multiplier, neighbours))]
    if isinstance(event, dp.LaplaceDpEvent):
        return [LaplaceNoise(_multiplier(event.noise_multiplier, neighbours))]
    if isinstance(event, dp.RandomizedResponseDpEvent):
        return [ApproximateDP(response_epsilon(event))]
    if _is_sampled_normal_noise(event) and neighbours == "add-remove":
        rate = _exactly(event.sampling_probability, "sampling_probability")
        return [GaussianNoise(_multiplier(event.event.noise_multiplier, neighbours), rate)] if rate else []
    if isinstance(event, dp.SelfComposedDpEvent):
        return losses_of(event.event, neighbours) * as_whole(event.count, "count", 0)
    if isinstance(event, dp.ComposedDpEvent):
        return [loss for part in event.events for loss in losses_of(part, neighbours)]
    if isinstance(event, dp.DpEvent):
        return [EventLoss(event, neighbours)]
    raise InvalidValue(f"losses_of takes a DpEvent of dp-accounting, got {event!r}")


def response_epsilon(event: Any) -> Fraction:
    """ε of a ``RandomizedResponseDpEvent``, which lies with a probability, to any of its buckets alike. Rounded up."""
    lying = Fraction(_exactly(event.noise_parameter, "noise_parameter"))
    if not 0 < lying <= 1:
        raise InvalidValue(f"a noise_parameter is above 0 and at most 1, got {event.noise_parameter!r}")
    buckets = as_whole(event.num_buckets, "num_buckets")
    return Cost(log(1 + buckets * (1 - lying) / lying).upper).exact_epsilon if buckets > 1 else Fraction(0)


def _is_sampled_normal_noise(event: Any) -> bool:
    import dp_accounting as dp

    return isinstance(event, dp.PoissonSampledDpEvent) and isinstance(event.event, dp.GaussianDpEvent)


def _multiplier(noise: Any, neighbours: Neighbours) -> Number:
    found = _exactly(noise, "noise_multiplier")
    return found if neighbours == "add-remove" else exact(found, "noise_multiplier") / 2


def _exactly(value: Any, name: str) -> Any:
    """A float as it is: its text, by which numbers are read otherwise, may be larger."""
    meant = exact(value, name)
    return value if not isinstance(value, float) or Fraction(value) == meant else Fraction(value)


@dataclass(frozen=True)
class EventLoss(Loss):
    """The loss of an event by dp-accounting's own privacy-loss distribution: as rigorous above as that, 0 below."""

    event: Any
    neighbours: Neighbours = "add-remove"

    def __post_init__(self) -> None:
        if not self._accountant().supports(self.event):
            raise InvalidValue(f"dp-accounting has no privacy-loss distribution for {self.event!r}")

    @property
    def symmetric(self) -> bool:
        """False: it is not known to be."""
        return False

    def spread(self) -> float:
        """The standard deviation of its finite losses."""
        law = self.law(2.0**-8)
        mean = float((law.mass * law.values).sum())
        return sqrt(max(float((law.mass * law.values**2).sum()) - mean**2, 1e-12))

    def law(self, grid: float, reverse: bool = False, cut: float = CUT) -> LossLaw:
        """The pessimistic estimate on this grid."""
        found = self._accountant(value_discretization_interval=grid).compose(self.event)._pld
        law = (found._pmf_add if reverse else found._pmf_remove).to_dense_pmf()
        masses, infinity = np.asarray(law._probs, np.float64), float(law._infinity_mass)
        return LossLaw(grid, int(law._lower_loss), masses, infinity, 1e-12, blur=Blur(smear=inf))

    def _accountant(self, **settings: Any) -> Any:
        from dp_accounting import NeighboringRelation
        from dp_accounting.pld import PLDAccountant

        relations = {"add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE, "substitute": NeighboringRelation.REPLACE_ONE}
        return PLDAccountant(neighboring_relation=relations[self.neighbours], **settings)
