"""A mechanism around another one."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from expost.accounting.renyi import Prices
from expost.cost import Number
from expost.guarantee import Guarantee, Part
from expost.mechanism import In, Mechanism, Out


class Wrapper(Mechanism[In, Out]):
    """A mechanism that guarantees, refuses and charges what ``inner`` does.

    Subclasses say how data reaches it, and what its outputs look like; every output has the part of the inner one.
    """

    @property
    @abstractmethod
    def inner(self) -> Mechanism:
        """The mechanism that does the work."""

    @property
    def guarantee(self) -> Guarantee:
        """That of the inner mechanism."""
        return self.inner.guarantee

    def renyi_prices(self, order: Number) -> Prices:
        """Those of the inner mechanism."""
        return self.inner.renyi_prices(order)

    def gaussian_prices(self) -> Prices | None:
        """Those of the inner mechanism."""
        return self.inner.gaussian_prices()

    def concentrated_prices(self) -> Prices | None:
        """Those of the inner mechanism."""
        return self.inner.concentrated_prices()

    def check(self, data: Any) -> None:
        """Refuse what the inner mechanism refuses."""
        self.inner.check(data)

    def part_of(self, output: Out) -> Part:
        """The part of the inner mechanism's output."""
        return self.inner.part_of(output)
