"""Noise reduction with Gaussian noise: for ledgers that count Rényi prices."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from expost import bracket
from expost.accounting.renyi import Prices, zcdp
from expost.accounting.renyi.prices import units_above
from expost.cost import Number, exact
from expost.guarantee import Guarantee
from expost.mechanisms.gaussian import Concentrated, RoundedNormal, l2_on_grid
from expost.mechanisms.numbers import Shape, root_above
from expost.mechanisms.reduction.levels import Leveled
from expost.mechanisms.reduction.rules import RelativeError, StoppingRule
from expost.noise import NoiseSource
from expost.noise.grid import Grid
from expost.noise.path import normal_paths


@dataclass(frozen=True, kw_only=True)
class GaussianReduction(Leveled, RoundedNormal, Concentrated):
    """Noise reduction with Gaussian noise ("Brownian mechanism"): for vectors, and for ledgers that count Rényi prices.

    The answers are roundings of one path: data plus a Brownian motion that runs backwards. All answers together reveal
    no more than the last one. At every Rényi order α a level costs αρ of that level.

    Parameters
    ----------
    rho
        The ρ of the last level. Its noise has variance sensitivity²/2ρ.
    delta
        The δ at which the ε of each level is stated, above 0. A ledger with Rényi accounting does not charge it if it
        counts ρ.
    sensitivity
        A bound on the L2 distance of the data on neighbouring databases.
    grid, missing, neighbours
        As for :class:`~expost.Gaussian`.
    levels, ratio, until
        As for :class:`~expost.NoiseReduction`: each level has ``ratio`` times the ρ of the one before.

    The data is a number, or an array of at most 1,000. The value and the part are those of
    :class:`~expost.NoiseReduction`. With one sum of ε, the first level still costs about half of the last.

    >>> path = GaussianReduction(rho="0.08", delta=1e-6, sensitivity=1, levels=4, ratio=2)
    >>> [round(path.guarantee.epsilon_of(level), 3) for level in (1, 2, 3, 4)]
    [1.193, 1.334, 1.617, 2.183]
    >>> [path.renyi_prices(2).of(level) / 10**12 for level in (1, 2, 3, 4)]
    [0.02, 0.04, 0.08, 0.16]

    Proof: thm-gaussian-reduction
    """

    _values = 1_000

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_levels(self.rhos, "ρ")

    @cached_property
    def rhos(self) -> tuple[Fraction, ...]:
        """The ρ of each level."""
        return self._amounts(self.rho)

    @cached_property
    def guarantee(self) -> Guarantee:
        """ρ + 2bρ + a for each level: a line that the loss crosses with probability δ at most. b suits the last level.

        Proof: thm-gaussian-reduction
        """
        log = bracket.log(1 / exact(self.delta, "δ")).upper
        slope = root_above(log / self.rhos[-1]) / 2
        start = log / (2 * slope)
        table = {level: rho + 2 * slope * rho + start for level, rho in enumerate(self.rhos, 1)}
        return Guarantee(table, self.delta, neighbours=self.neighbours)  # type: ignore[arg-type]

    def renyi_prices(self, order: Number) -> Prices:
        """αρ of the level, without any δ.

        Proof: thm-gaussian-reduction
        """
        return Prices({level: units_above(zcdp(order, rho)) for level, rho in enumerate(self.rhos, 1)})

    def gaussian_prices(self) -> Prices:
        """2ρ of the level: the squared mean of the steps up to there.

        Proof: thm-gaussian-reduction
        """
        return Prices({level: units_above(2 * rho) for level, rho in enumerate(self.rhos, 1)})

    def _calibrate(self, shape: Shape) -> tuple[Grid, Fraction]:
        rho = self.rhos[-1]
        grid, sensitivity = l2_on_grid(self, shape, 1 / (1 + rho))
        return grid, sensitivity**2 / (2 * rho)

    def _parameters(self, shape: Shape) -> list[Fraction]:
        _, last = self._calibrate(shape)
        return [last * self.rhos[-1] / rho for rho in self.rhos]

    def _noises(self, noise: NoiseSource, shape: Shape) -> list[list[int]]:
        return normal_paths(noise, self._parameters(shape), shape.size)

    def _miss(self, rule: StoppingRule, shape: Shape) -> Fraction:
        """What a rule knows about Laplace noise only is not used.

        Proof: lem-error-at-stop
        """
        of_rule = StoppingRule.miss_per_level if isinstance(rule, RelativeError) else type(rule).miss_per_level
        return of_rule(rule, tuple(self._parameters(shape)), self._rounding(shape), shape.size)
