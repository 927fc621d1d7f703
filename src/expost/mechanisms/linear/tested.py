"""A mechanism behind a private test: what fails the test is not released, and costs only what the refusal reveals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from expost.checks import as_share
from expost.cost import Number, exact
from expost.errors import InvalidValue, NeighbourMismatch
from expost.estimates import without_errors
from expost.frame import Frame
from expost.guarantee import Guarantee, Part
from expost.mechanism import WITHHELD, Mechanism, Out, Withheld
from expost.mechanisms.numbers import shape_of
from expost.mechanisms.stability.test import REFUSED
from expost.noise import NoiseSource

PASSED = "it was published because a test of it was passed, which errors do not take into account"
"""Why the numbers of a tested output have no errors."""


class ModelTest(ABC):
    """A private test of another mechanism's output on data held out from it. Contains no data.

    Every subclass guarantees: for *every fixed* output, the verdict is (``epsilon``, ``delta``)-private for the
    held-out data, under the tested mechanism's relation. ``reveals``, if it is declared, is λ: the verdict *alone*, of
    an output that stays unseen, is (λ, ``reveals_delta``)-private for the data that the mechanism was run on, whatever
    the held-out data. That is a fact about the test and the mechanism together, and needs a proof. None guarantees
    nothing, and neither does a test for which :meth:`reveals_of` the mechanism at hand is None.
    """

    epsilon: Number
    delta: Number = 0
    reveals: Number | None = None
    reveals_delta: Number = 0

    @abstractmethod
    def passes(self, output: Any, held_out: Any, noise: NoiseSource) -> bool:
        """Whether to release. Private values never make it raise."""

    def reveals_of(self, mechanism: Mechanism) -> Number | None:
        """λ for outputs of this mechanism. By default the one declared, which is for the caller to be right about."""
        return self.reveals

    def check(self, held_out: Any) -> None:  # noqa: B027 - a test with a public fact to check overrides it
        """Refuse what is publicly wrong with the held-out data."""

    def check_pair(self, mechanism: Mechanism, train: Any, held_out: Any) -> None:  # noqa: B027
        """Refuse data of which the test is publicly not made: sizes, shapes. Each half has been checked by itself."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Tested(Mechanism[Any, Out | Withheld]):
    """A mechanism on some of the data, whose output is published only if it passes a private test on the rest; else ⊥.

    Parameters
    ----------
    mechanism
        What makes the output. It must not withhold by itself.
    test
        The private test of the output.
    held_out
        The share of rows, rounded up, that is held out for the test at random (for substitution, because it depends on
        n). None if the data is a pair of disjoint sets of records: for the mechanism, and for the test.
    name
        For keys: what it is, if it holds objects or functions that no module has under their names.

    The price of an output is its own or the test's, whichever is more. ⊥ costs the test's ε, or what the verdict
    reveals of the mechanism's data: at most λ, if the test declares it, and the mechanism's whole ε, if not.

    Proof: thm-tested
    """

    __test__ = False  # not one of pytest's

    mechanism: Mechanism[Any, Out]
    test: ModelTest
    held_out: Number | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism) or not isinstance(self.test, ModelTest):
            raise InvalidValue(
                "Tested takes a mechanism and a ModelTest such as ErrorTest, got "
                f"{type(self.mechanism).__name__} and {type(self.test).__name__}"
            )
        if type(self.mechanism).sample is Mechanism.sample:
            raise InvalidValue(f"{type(self.mechanism).__name__} is interactive: only what runs in one go is tested")
        if REFUSED in self.mechanism.guarantee.parts:
            raise InvalidValue(f"{type(self.mechanism).__name__} withholds by itself: test one that always answers")
        if self.held_out is not None:
            as_share(self.held_out, "held_out")
        if self.held_out is not None and self.mechanism.guarantee.neighbours == "add-remove":
            raise NeighbourMismatch("add-remove", "substitute", "a split by share of a public number of records")
        _ = self.guarantee

    @cached_property
    def guarantee(self) -> Guarantee:
        """E(output) = max(its own, ε of the test), E(⊥) = max(ε of the test, min(worst of the mechanism, λ))."""
        inner, asked = self.mechanism.guarantee, exact(self.test.epsilon, "ε of the test")
        worst, delta = inner.worst_case.exact_epsilon, inner.worst_case.exact_delta
        shown = worst
        declared = self.test.reveals_of(self.mechanism)
        if declared is not None and exact(declared, "λ") < worst:
            shown = exact(declared, "λ")
            delta += exact(self.test.reveals_delta, "δ of λ")
        table: dict[Part, Number] = {part: max(inner.cost_of(part).exact_epsilon, asked) for part in inner.parts}
        table[REFUSED] = max(asked, shown)
        delta = max(delta, exact(self.test.delta, "δ of the test"))
        otherwise = None if inner.otherwise is None else max(inner.otherwise.exact_epsilon, asked)
        relation = inner.neighbours if self.held_out is None else "substitute"
        return Guarantee(table, delta, otherwise=otherwise, neighbours=relation, unit=inner.unit)

    def check(self, data: Any) -> None:
        """What the mechanism and the test refuse, of data that can be split."""
        train, held_out = halves(data, self.held_out)
        self.mechanism.check(train)
        self.test.check(held_out)
        self.test.check_pair(self.mechanism, train, held_out)

    def sample(self, data: Any, noise: NoiseSource) -> Out | Withheld:
        """The mechanism's output, or ⊥."""
        train, held_out = halves(data, self.held_out, noise)
        output = self.mechanism.sample(train, noise)
        if output is WITHHELD:
            raise InvalidValue(f"{type(self.mechanism).__name__} withheld by itself: test one that always answers")
        return output if self.test.passes(output, held_out, noise) else WITHHELD

    def part_of(self, output: Out | Withheld) -> Part:
        """The output's own part, or that of ⊥, which no output may share."""
        if output is WITHHELD:
            return REFUSED
        part = self.mechanism.part_of(output)
        if part == REFUSED:
            raise InvalidValue(f"{type(self.mechanism).__name__} has a part {REFUSED!r}, as ⊥ has: rename it")
        return part

    @property
    def what(self) -> str:
        """What the mechanism's numbers are."""
        return self.mechanism.what

    def answer_of(self, output: Any, origin: Hashable) -> Any:
        """What the mechanism makes of it, without errors: those of outputs that pass a test may be others."""
        return without_errors(self.mechanism.answer_of(output, origin), PASSED)

    def frame_of(self, answer: Any) -> Frame:
        """The mechanism's rows."""
        return self.mechanism.frame_of(answer)

    def describe(self, output: Out | Withheld) -> str:
        """What the mechanism says of its output, if there is one."""
        return "withheld" if output is WITHHELD else self.mechanism.describe(output)


def held_out_size(size: int, share: Fraction) -> int:
    """How many of ``size`` records are held out: the share, rounded up, and neither none nor all.

    >>> held_out_size(10, Fraction(1, 4))
    3
    """
    if size < 2:
        raise InvalidValue(f"a split needs at least two records, got {size}")
    return min(ceil(share * size), size - 1)


def halves(data: Any, held_out: Number | None, noise: NoiseSource | None = None) -> tuple[Any, Any]:
    """The records for a mechanism, and those that a share holds out, at random or as they come; or the pair given."""
    if held_out is None:
        return _pair(data)
    rows, size = np.asarray(data), _count(data)
    order = np.arange(size) if noise is None else np.argsort(noise.words(size), kind="stable")
    count = held_out_size(size, exact(held_out, "held_out"))
    return rows[order[count:]], rows[order[:count]]


def _count(data: Any) -> int:
    dimensions = shape_of(data).dimensions
    if not dimensions:
        raise InvalidValue("only an array of records can be split; else give a pair (for the mechanism, for the test)")
    return dimensions[0]


def _pair(data: Any) -> tuple[Any, Any]:
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise InvalidValue("the data is a pair (for the mechanism, for the test), or give a share held_out=")
    return data[0], data[1]
