"""Mechanisms and callables that carry what looks like data, for tests of what the books show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import expost as xp
from expost import Guarantee
from expost.fingerprint import DATA
from expost.guarantee import Part

GUARANTEE = Guarantee({"large": 0.75, "small": 0.25})
SECRET = 987654321


@dataclass(frozen=True)
class Alike(xp.Mechanism):
    """Measurements of another library that print alike and differ in what is inside."""

    scale: int
    stated: Guarantee = GUARANTEE
    compute: Callable[..., Any] | None = None
    name: str | None = None

    def __repr__(self) -> str:
        return "Measurement(f64, Laplace)"

    @property
    def guarantee(self) -> Guarantee:
        return self.stated

    def sample(self, data: Any, noise: xp.noise.NoiseSource) -> Any:
        return f"scale {self.scale}"

    def part_of(self, output: Any) -> Part:
        return "small"


class Opaque(xp.Mechanism):
    """Says nothing about itself."""

    def __init__(self, scale: int, name: str | None = None) -> None:
        self.scale, self.name = scale, name

    def __repr__(self) -> str:
        return "Opaque"

    guarantee = GUARANTEE

    def sample(self, data: Any, noise: xp.noise.NoiseSource) -> Any:
        return self.scale

    def part_of(self, output: Any) -> Part:
        return "small"


class Trainer:
    def __init__(self) -> None:
        self.incomes = [SECRET, SECRET]

    def __repr__(self) -> str:
        return f"Trainer({self.incomes})"

    def step(self, data: Any, outputs: Any) -> Any:
        return 0


@dataclass(frozen=True)
class Called:
    """An object that is called, and prints what it has."""

    incomes: tuple[int, ...] = (SECRET,)

    def __call__(self, data: Any, outputs: Any) -> Any:
        return 0


def module_step(data: Any, outputs: Any) -> Any:
    return 0


@dataclass(frozen=True)
class Asked(Alike):
    rows: Any = field(default=None, metadata=DATA)
