"""Small mechanisms that several tests use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expost import Guarantee, Interaction, Mechanism
from expost.guarantee import Part
from expost.noise import NoiseSource, bernoulli
from expost.verify import FiniteMechanism, log_up


def response(ratio: Fraction | int, *, part: Part | None = None) -> FiniteMechanism:
    """Randomised response with likelihood ratio ``ratio``; its outputs are its parts unless one is given."""
    truth = Fraction(ratio) / (1 + Fraction(ratio))
    laws = {0: {"no": truth, "yes": 1 - truth}, 1: {"no": 1 - truth, "yes": truth}}
    return FiniteMechanism(laws, [(0, 1)], (lambda output: output) if part is None else (lambda output: part))


def leaky_response(ratio: Fraction | int, delta: Fraction) -> FiniteMechanism:
    """Reveals the database with probability δ, else answers by randomised response."""
    quiet = response(ratio)
    laws = {
        database: {**{output: (1 - delta) * p for output, p in law.items()}, f"it is {database}": delta}
        for database, law in quiet.laws.items()
    }
    return FiniteMechanism(laws, [(0, 1)], lambda output: "answer")


@dataclass(frozen=True)
class Responses(Mechanism):
    """Interactive randomised response: at most this number of bits, each at its own price. A test's toy."""

    ratio: Fraction
    at_most: int

    @property
    def guarantee(self) -> Guarantee:
        each = log_up(self.ratio).exact_epsilon
        return Guarantee({count: count * each for count in range(self.at_most + 1)})

    def part_of(self, output: Any) -> Part:
        return len(output)

    def start(self, data: Any, noise: NoiseSource) -> Asking:
        return Asking(self, noise)


class Asking(Interaction):
    def __init__(self, mechanism: Responses, noise: NoiseSource) -> None:
        super().__init__(mechanism)
        self._truth = mechanism.ratio / (1 + mechanism.ratio)
        self._at_most = mechanism.at_most
        self._noise = noise

    def __call__(self, bit: bool | Callable[[], bool]) -> bool:
        return self._answer(lambda: (bit() if callable(bit) else bit) == bernoulli(self._noise, self._truth))

    def finished(self) -> bool:
        return len(self.transcript) == self._at_most


@dataclass(frozen=True)
class Fixed(Mechanism):
    """Publishes a given output, with a given guarantee. A test's toy: it guarantees nothing by itself."""

    stated: Guarantee
    output: Any
    part: Any = "out"

    @property
    def guarantee(self) -> Guarantee:
        return self.stated

    def sample(self, data: Any, noise: NoiseSource) -> Any:
        return data() if callable(data) else self.output

    def part_of(self, output: Any) -> Part:
        if isinstance(self.part, Exception):
            raise self.part
        return self.part  # type: ignore[no-any-return]
