"""The least ε for an accuracy."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Self

from expost.cost import EPSILON_UNITS, Number, exact
from expost.errors import InvalidValue
from expost.mechanism import In, Mechanism, Out


class Calibrated(Mechanism[In, Out]):
    """A mechanism that knows how far off it is: the more ε, the less."""

    _buys: ClassVar[str] = "epsilon"
    """The parameter that buys accuracy."""
    _about: ClassVar[tuple[str, ...]] = ("n", "floats")
    """What an error bound is about, besides the mechanism."""
    _most: ClassVar[int] = 2**63 - 1
    """The most of it, in units of 10⁻¹²."""
    _remedy: ClassVar[str] = "take a finer grid or ask for less"

    @abstractmethod
    def error_bound(self, confidence: Number, *args: Any, **about: Any) -> float:
        """How far off the result is at most, with this confidence. ``n`` is how many values it is about."""

    @classmethod
    def for_accuracy(cls, within: Number, confidence: Number, **parameters: Any) -> Self:
        """The one with the least ε (or ρ) whose ``error_bound`` is at most ``within``.

        ``parameters`` are those of the mechanism without the ε, and those of ``error_bound``.

        >>> from expost.mechanisms import Laplace
        >>> Laplace.for_accuracy(10, 0.95, sensitivity=1).epsilon
        0.284348512423
        """
        wanted = exact(within, "within")
        about = {name: parameters.pop(name) for name in cls._about if name in parameters}

        def bought(units: int) -> dict[str, Any]:
            return {**parameters, cls._buys: Fraction(units, EPSILON_UNITS)}

        def suffices(units: int) -> bool:
            return exact(cls(**bought(units)).error_bound(confidence, **about), "error bound") <= wanted

        low, high = 0, 1
        while not suffices(high):
            if high == cls._most:
                raise InvalidValue(f"nothing buys ± {within} at {confidence}: {cls._remedy}")
            low, high = high, min(2 * high, cls._most)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if suffices(middle) else (middle, high)
        return cls(**bought(high))
