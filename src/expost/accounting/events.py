"""Events of Google's dp-accounting as losses. The library is imported when one is given."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log1p, sqrt
from typing import Any

import numpy as np

from expost.accounting.law import Blur, LossLaw
from expost.accounting.losses import CUT, ApproximateDP, GaussianNoise, LaplaceNoise, Loss
from expost.errors import InvalidValue, MissingDependency


def losses_of(event: Any) -> list[Loss]:
    """The losses of a ``DpEvent``, one for each step, for sensitivity 1 as is that library's custom.

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
        return [GaussianNoise(event.noise_multiplier)]
    if isinstance(event, dp.LaplaceDpEvent):
        return [LaplaceNoise(event.noise_multiplier)]
    if isinstance(event, dp.RandomizedResponseDpEvent):
        lying = event.noise_parameter
        return [ApproximateDP(log1p(event.num_buckets * (1 - lying) / lying) * (1 + 1e-15))]
    if isinstance(event, dp.PoissonSampledDpEvent) and isinstance(event.event, dp.GaussianDpEvent):
        return [GaussianNoise(event.event.noise_multiplier, event.sampling_probability)]
    if isinstance(event, dp.SelfComposedDpEvent):
        return losses_of(event.event) * int(event.count)
    if isinstance(event, dp.ComposedDpEvent):
        return [loss for part in event.events for loss in losses_of(part)]
    if isinstance(event, dp.DpEvent):
        return [EventLoss(event)]
    raise InvalidValue(f"losses_of takes a DpEvent of dp-accounting, got {event!r}")


@dataclass(frozen=True)
class EventLoss(Loss):
    """The loss of an event by dp-accounting's own privacy-loss distribution: as rigorous above as that, 0 below."""

    event: Any

    def __post_init__(self) -> None:
        from dp_accounting.pld import PLDAccountant

        if not PLDAccountant().supports(self.event):
            raise InvalidValue(f"dp-accounting has no privacy-loss distribution for {self.event!r}")

    @property
    def symmetric(self) -> bool:
        """Not known."""
        return False

    def spread(self) -> float:
        """The standard deviation of its finite losses."""
        law = self.law(2.0**-8)
        mean = float((law.mass * law.values).sum())
        return sqrt(max(float((law.mass * law.values**2).sum()) - mean**2, 1e-12))

    def law(self, grid: float, reverse: bool = False, cut: float = CUT) -> LossLaw:
        """The pessimistic estimate on this grid."""
        from dp_accounting.pld import PLDAccountant

        accountant = PLDAccountant(value_discretization_interval=grid)
        found = accountant.compose(self.event)._pld
        law = (found._pmf_add if reverse else found._pmf_remove).to_dense_pmf()
        masses, infinity = np.asarray(law._probs, np.float64), float(law._infinity_mass)
        return LossLaw(grid, int(law._lower_loss), masses, infinity, 1e-12, blur=Blur(smear=inf))
