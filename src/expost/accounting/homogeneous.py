"""Equal (ε, δ) steps: the optimal composition of Kairouz, Oh and Viswanath, to fifty decimal places."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from expost import bracket
from expost.bracket import Bracket
from expost.cost import Number, exact
from expost.errors import InvalidValue

_BITS = 320
_ONE = 1 << _BITS
_DIGITS = 110
_OFF = Fraction(1, 1 << 170)  # more than fixed point and cut tails can be off by, for up to 2²⁰ steps
MOST_EQUAL_STEPS = 2**20


@dataclass(frozen=True)
class Homogeneous:
    """Equal (ε, δ) steps, adaptively chosen: the least δ at any ε, and the least ε at any δ.

    Parameters
    ----------
    step_epsilon, step_delta
        What each step guarantees.
    steps
        Their number, at most 2²⁰.

    Proof: thm-optimal-stopping
    """

    step_epsilon: Fraction
    step_delta: Fraction
    steps: int

    def __post_init__(self) -> None:
        if self.step_epsilon < 0 or not 0 <= self.step_delta <= 1 or not 1 <= self.steps <= MOST_EQUAL_STEPS:
            raise InvalidValue(f"a composition needs ε ≥ 0, 0 ≤ δ ≤ 1 and 1 to 2^20 steps, got {self}")

    def delta(self, epsilon: Number) -> Bracket[Fraction]:
        """Bounds on the least δ at this ε, at most 10⁻⁵⁰ apart."""
        at = exact(epsilon, "ε")
        if at < 0:
            raise InvalidValue(f"ε must not be negative, got {epsilon!r}")
        kept, (here, there) = self._kept, self._sums(at)
        middle = 1 - kept * (1 - (here - there))
        if here == 0:
            return Bracket(middle, min(middle + (_OFF if self.steps > 1000 else 0), Fraction(1)))
        return Bracket(max(middle - _OFF, Fraction(0)), min(middle + _OFF, Fraction(1)))

    def epsilon(self, delta: Number) -> Bracket[Fraction]:
        """Bounds on the least ε at this δ. At no ε is δ less than 1 − (1 − δ₀)^steps, which is refused."""
        at = exact(delta, "δ")
        if at < 1 - self._kept:
            raise InvalidValue(
                f"these steps lose δ {float(1 - self._kept):.6g} at every ε, got {delta!r}: give a larger δ"
            )
        return Bracket(self._inverse(at + _OFF, upper=False), self._inverse(at - _OFF, upper=True))

    @property
    def certain(self) -> Fraction:
        """The δ that is lost whatever ε is."""
        return 1 - self._kept

    @cached_property
    def _kept(self) -> Fraction:
        """(1 − δ₀)^steps; in fixed point, rounded down, where the power would be long."""
        base = 1 - self.step_delta
        if self.steps <= 1000 or base == 1:
            return base**self.steps
        result, square, exponent = _ONE, int(base * _ONE), self.steps
        while exponent:
            result = result * square >> _BITS if exponent & 1 else result
            square = square * square >> _BITS
            exponent >>= 1
        return Fraction(result, _ONE)

    @cached_property
    def _weights(self) -> tuple[int, list[int]]:
        """The first number of lies, and the probabilities of it and those that follow; cut off where negligible."""
        odds = bracket.exp(-self.step_epsilon, _DIGITS).lower  # of a lie
        ratio, inverse = int(odds * _ONE), int(_ONE / odds)
        mode = min(self.steps, int((self.steps + 1) * odds / (1 + odds)))
        right: list[int] = [_ONE]
        left: list[int] = []
        for lies in range(mode, self.steps):
            right.append(right[-1] * (self.steps - lies) * ratio // ((lies + 1) << _BITS))
            if right[-1] >> 100 == 0:
                break
        for lies in range(mode, 0, -1):
            left.append((left[-1] if left else _ONE) * lies * inverse // ((self.steps - lies + 1) << _BITS))
            if left[-1] >> 100 == 0:
                break
        weights = left[::-1] + right
        whole = sum(weights)
        return mode - len(left), [(weight << _BITS) // whole for weight in weights]

    def _loss(self, lies: int) -> Fraction:
        return (self.steps - 2 * lies) * self.step_epsilon

    def _sums(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        """Σ Pr[loss] and Σ Pr[loss]·e^{ε − loss} over losses above ε, within 2⁻¹⁹⁰."""
        if self.step_epsilon == 0 or epsilon >= self._loss(0):
            return Fraction(0), Fraction(0)
        first, weights = self._weights
        most = min(-(-(self._loss(0) - epsilon) // (2 * self.step_epsilon)) - 1, first + len(weights) - 1)
        factor = int(bracket.exp(-2 * self.step_epsilon, _DIGITS).lower * _ONE)
        decay = int(bracket.exp(max(epsilon - self._loss(most), -Fraction(1000)), _DIGITS).lower * _ONE)
        here = there = 0
        for weight in reversed(weights[: max(most - first + 1, 0)]):
            here += weight
            there += weight * decay >> _BITS
            decay = decay * factor >> _BITS
        return Fraction(here, _ONE), Fraction(there, _ONE)

    def _inverse(self, delta: Fraction, upper: bool) -> Fraction:
        """The ε at which δ is this: the segment between two losses, then one logarithm."""
        wanted = 1 - (1 - delta) / self._kept
        if self.step_epsilon == 0 or wanted <= 0:
            return max(self._loss(0), Fraction(0))
        low, high = 0, self.steps // 2 + 1  # numbers of lies: the least whose loss has a δ of at least this
        while low < high:
            middle = (low + high) // 2
            here, there = self._sums(max(self._loss(middle), Fraction(0)))
            low, high = (low, middle) if here - there >= wanted else (middle + 1, high)
        base = max(self._loss(low), Fraction(0))
        here, there = self._sums(base)
        if here <= wanted:
            return base
        if there == 0:  # e^{−2ε} is below fixed point: somewhere before the next loss
            return self._loss(low - 1) if upper and low > 0 else base
        root = bracket.log((here - wanted) / there, _DIGITS)
        return max(Fraction(0), base + (root.upper if upper else root.lower))
