"""Propose-test-release in general: any private test before any release that is sometimes safe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from expost.checks import check_fields, requested_epsilon
from expost.cost import Number, exact
from expost.guarantee import Guarantee, Neighbours, Part
from expost.mechanism import WITHHELD, Mechanism, Out, Withheld
from expost.mechanisms.fixed_cost import RELEASED
from expost.mechanisms.stability.test import REFUSED
from expost.noise import NoiseSource


class PrivateTest(ABC):
    """An (``epsilon``, ``delta``)-private test that passes with probability ≤ ``mistake`` where it must not."""

    epsilon: Number
    delta: Number
    mistake: Number

    @abstractmethod
    def passes(self, data: Any, noise: NoiseSource) -> bool:
        """Whether to release."""


@dataclass(frozen=True, kw_only=True, repr=False)
class TestedRelease(Mechanism[Any, Out | Withheld]):
    """Generalised propose-test-release: a release that is only sometimes safe, behind a private test of whether it is.

    Parameters
    ----------
    test
        The private test.
    release
        ``release(data, noise)``, with coins of its own. It must satisfy R(x) ≤ e^ε·R(x′) + δ for *every* neighbour x′
        of an x for which the test is not mistaken to pass.
    release_epsilon
        That ε.
    release_delta
        That δ.
    neighbours
        The relation of the guarantee.
    name
        For keys: what it is, if it holds objects or functions that no module has under their names.

    ⊥ costs the test's ε, a value also that of the release.

    Proof: thm-generalised-ptr
    """

    __test__ = False  # not one of pytest's

    test: PrivateTest
    release: Callable[[Any, NoiseSource], Out]
    release_epsilon: Number
    release_delta: Number = 0
    neighbours: Neighbours | None = "substitute"
    name: str | None = None

    def __post_init__(self) -> None:
        check_fields(self, release_epsilon=requested_epsilon)
        _ = self.guarantee

    @cached_property
    def guarantee(self) -> Guarantee:
        """E(⊥) = ε of the test, E(value) = that and the release's; δ = max(release's, mistake) + test's δ."""
        asked, safe = exact(self.test.epsilon, "ε of the test"), exact(self.release_epsilon, "release_epsilon")
        delta = max(exact(self.release_delta, "release_delta"), exact(self.test.mistake, "mistake")) + exact(
            self.test.delta, "δ of the test"
        )
        return Guarantee({RELEASED: asked + safe, REFUSED: asked}, delta, neighbours=self.neighbours)

    def sample(self, data: Any, noise: NoiseSource) -> Out | Withheld:
        """The release, or ⊥."""
        return self.release(data, noise) if self.test.passes(data, noise) else WITHHELD

    def part_of(self, output: Out | Withheld) -> Part:
        """Whether something was released."""
        return REFUSED if output is WITHHELD else RELEASED
