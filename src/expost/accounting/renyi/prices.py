"""`Prices`: what each part costs on one meter, in whole units, and how prices combine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from math import ceil

from expost.cost import EPSILON_UNITS
from expost.errors import InvalidValue, UnknownPart
from expost.guarantee import Guarantee, Part
from expost.mentions import brief


@dataclass(frozen=True)
class Prices:
    """A price for each part, in units of 10⁻¹², and optionally one for every label that is not listed.

    ``delta`` is the δ, in units of 10⁻¹⁸, without which the prices do not hold; 0 if they hold by themselves.

    >>> Prices({"hit": 250, "miss": 10}).worst
    250

    Proof: def-renyi-prices
    """

    table: Mapping[Part, int] = field(default_factory=dict)
    otherwise: int | None = None
    delta: int = 0

    def __post_init__(self) -> None:
        if not self.table and self.otherwise is None:
            raise InvalidValue("prices need at least one part: list parts, or give otherwise=")

    @classmethod
    def uniform(cls, price: Fraction, delta: int = 0) -> Prices:
        """The same price whatever comes out, rounded up."""
        return cls(otherwise=units_above(price), delta=delta)

    @classmethod
    def of_guarantee(cls, guarantee: Guarantee) -> Prices:
        """E itself: what parts cost in the basic sum."""
        table = {part: guarantee.cost_of(part).epsilon_units for part in guarantee.parts}
        otherwise = None if guarantee.otherwise is None else guarantee.otherwise.epsilon_units
        return cls(table, otherwise, guarantee.worst_case.delta_units)

    @classmethod
    def parallel(cls, blocks: Sequence[Prices]) -> Prices:
        """Mechanisms on disjoint blocks, one of which a person touches: part ``(block, part)`` of the costliest.

        Proof: lem-renyi-parallel
        """
        if not blocks:
            raise InvalidValue("parallel composition needs the prices of at least one block")
        table: dict[Part, int] = {
            (j, part): price for j, block in enumerate(blocks) for part, price in block.table.items()
        }
        open_ended = any(block.otherwise is not None for block in blocks)
        worst = max(block.worst for block in blocks)
        return cls(table, worst if open_ended else None, max(block.delta for block in blocks))

    @classmethod
    def stopped(cls, steps: Iterable[Fraction], stops: Iterable[int]) -> Prices:
        """Steps one after the other, with these prices, that may stop: stopping after k costs the first k of them.

        Proof: lem-renyi-stopping
        """
        sums = list(accumulate(steps, initial=Fraction(0)))
        return cls({stop: units_above(sums[stop]) for stop in stops})

    def post_process(self, images: Mapping[Part, Part | Set[Part]]) -> Prices:
        """After relabelling: a new part costs the most of the listed parts that can become it.

        Proof: lem-renyi-post-processing
        """
        if self.otherwise is not None or images.keys() != self.table.keys():
            raise InvalidValue(f"post-processing maps every part of a finite table, got {brief(list(images))}")
        table: dict[Part, int] = {}
        for part, price in self.table.items():
            image = images[part]
            for label in image if isinstance(image, Set) else (image,):
                table[label] = max(table.get(label, 0), price)
        return Prices(table, delta=self.delta)

    @property
    def worst(self) -> int:
        """The largest price: what is reserved."""
        return max([*self.table.values(), *([] if self.otherwise is None else [self.otherwise])])

    def of(self, part: Part) -> int:
        """The price of a part."""
        price = self.table.get(part, self.otherwise)
        if price is None:
            raise UnknownPart(part, self)
        return price


def units_above(price: Fraction) -> int:
    """A price in units of 10⁻¹², rounded up."""
    return max(ceil(price * EPSILON_UNITS), 0)
