"""Propose-test-release: answer with little noise where the data is stable, and say nothing where it is not.

A *proposal* says what would be released and how far the data is from data on which that release would not be
safe: a whole number that one person moves by at most one, 0 meaning "not safe here". A *test* adds exact
discrete Laplace noise to that distance. If the test passes, the release is published, else ⊥ (``WITHHELD``), which
is cheaper. Write a :class:`Proposal`; the classes here make mechanisms of it and know what they cost:

* :class:`ProposeTestRelease`: one proposal.
* :class:`FirstStable`: several, tried in order until one passes.
* :class:`Chain`: each leg's proposal is made from what the leg before released; ⊥ in gives ⊥ out.
* :class:`TestedRelease`: the generalised form, any private test before any release that is sometimes safe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, Generic, NamedTuple

from expost.checks import check_fields, requested_epsilon
from expost.cost import Number, exact
from expost.errors import InvalidValue
from expost.estimates import frame_by_key, frame_of
from expost.frame import Frame
from expost.guarantee import Guarantee, Neighbours, Part
from expost.mechanism import WITHHELD, Mechanism, Out, Withheld
from expost.mechanisms.fixed_cost import RELEASED
from expost.mechanisms.stability.test import REFUSED, StabilityTest
from expost.noise import NoiseSource
from expost.text import text_of


class Proposal(ABC, Generic[Out]):
    """What would be released, where that is safe, and at what price. Contains no data.

    Every subclass guarantees: for neighbouring data, :meth:`distance` moves by at most one; and where it is above 0,
    the law R of :meth:`release` satisfies R(x) ≤ e^price·R(x′) + ``slack`` for *every* neighbour x′.
    """

    neighbours: Neighbours | None = "substitute"
    slack: Number = 0
    """The δ of the release where it is safe."""

    @property
    @abstractmethod
    def price(self) -> Number:
        """The ε of the release where it is safe; 0 if it is then the same on all neighbours."""

    @abstractmethod
    def distance(self, data: Any, cap: int) -> int:
        """min(cap, changes until the release is not safe): a whole number of sensitivity one, 0 if not safe here."""

    @abstractmethod
    def release(self, data: Any, noise: NoiseSource) -> Out:
        """The value to publish. Called on any data that passed the test, so it never raises."""

    def check(self, data: Any) -> None:  # a proposal with a public fact to check overrides it
        """Refuse what is publicly wrong with the data."""


@dataclass(frozen=True, kw_only=True, repr=False)
class ProposeTestRelease(Mechanism[Any, Out | Withheld]):
    """Propose-test-release: one proposal behind a noisy test. ⊥ costs the test's ε, a value also the release's price.

    Parameters
    ----------
    proposal
        What would be released, and how far the data is from data on which that is not safe.
    test_epsilon
        The ε of the test.
    delta
        A bound on the probability that the test passes where it must not.
    name
        For keys: what it is, if it holds objects or functions that no module has under their names.

    Proof: thm-ptr
    """

    proposal: Proposal[Out]
    test_epsilon: Number
    delta: Number
    name: str | None = None

    def __post_init__(self) -> None:
        _check_fields(self)
        _ = self.guarantee

    @cached_property
    def test(self) -> StabilityTest:
        """The noisy test."""
        return StabilityTest(exact(self.test_epsilon, "test_epsilon"), exact(self.delta, "δ"))

    @cached_property
    def guarantee(self) -> Guarantee:
        """E(⊥) = ε, E(value) = ε + price; δ is the test's or the release's, whichever is larger."""
        price = exact(self.proposal.price, "price")
        table: dict[Part, Number] = {RELEASED: self.test.epsilon + price, REFUSED: self.test.epsilon}
        delta = max(self.test.delta, exact(self.proposal.slack, "slack"))
        return Guarantee(table, delta, neighbours=self.proposal.neighbours)

    def check(self, data: Any) -> None:
        """What the proposal refuses."""
        self.proposal.check(data)

    def sample(self, data: Any, noise: NoiseSource) -> Out | Withheld:
        """The release, or ⊥."""
        distance = min(self.proposal.distance(data, self.test.cap), self.test.cap)
        return self.proposal.release(data, noise) if self.test.passes(distance, noise) else WITHHELD

    def part_of(self, output: Out | Withheld) -> Part:
        """Whether something was released."""
        return REFUSED if output is WITHHELD else RELEASED


class StableAnswer(NamedTuple):
    """What a :class:`FirstStable` publishes: which leg answered, counted from 1, and its release."""

    leg: int
    value: Any


@dataclass(frozen=True, kw_only=True, repr=False)
class FirstStable(Mechanism[Any, StableAnswer | Withheld]):
    """Proposals tried in order, each behind its own test, until one passes.

    Parameters
    ----------
    proposals
        The proposals ("legs"), for the same neighbours.
    test_epsilon
        The ε of each test.
    delta
        The δ of all tests together: each of k legs gets a k-th, because data may be unstable for all of them
        (prop-lemma-10).
    name
        For keys: what it is, if it holds objects or functions that no module has under their names.

    Publishes which leg answered, and its release. A leg that does not answer costs its test only: leg i costs i tests
    and its own price, and ⊥ costs all tests.

    Proof: thm-first-stable
    """

    proposals: tuple[Proposal, ...]
    test_epsilon: Number
    delta: Number
    name: str | None = None

    def __post_init__(self) -> None:
        _check_fields(self)
        if not self.proposals:
            raise InvalidValue("FirstStable tries at least one proposal, got none")
        relations = sorted({str(proposal.neighbours) for proposal in self.proposals})
        if len(relations) > 1:
            raise InvalidValue(f"all proposals are about the same neighbours, got {' and '.join(relations)}")
        _ = self.guarantee

    @cached_property
    def test(self) -> StabilityTest:
        """The test of each leg, with its share of δ."""
        return StabilityTest(exact(self.test_epsilon, "test_epsilon"), exact(self.delta, "δ") / len(self.proposals))

    @cached_property
    def guarantee(self) -> Guarantee:
        """E(leg i) = i·ε + price of i, E(⊥) = legs·ε."""
        tests, legs = self.test.epsilon, len(self.proposals)
        table: dict[Part, Number] = {
            leg: leg * tests + exact(proposal.price, "price") for leg, proposal in enumerate(self.proposals, 1)
        }
        table[REFUSED] = legs * tests
        slack = sum((exact(proposal.slack, "slack") for proposal in self.proposals), Fraction(0))
        return Guarantee(table, exact(self.delta, "δ") + slack, neighbours=self.proposals[0].neighbours)

    def check(self, data: Any) -> None:
        """What any of the proposals refuses."""
        for proposal in self.proposals:
            proposal.check(data)

    def sample(self, data: Any, noise: NoiseSource) -> StableAnswer | Withheld:
        """The first leg that passes, and its release; or ⊥."""
        for leg, proposal in enumerate(self.proposals, 1):
            distance = min(proposal.distance(data, self.test.cap), self.test.cap)
            if self.test.passes(distance, noise):
                return StableAnswer(leg, proposal.release(data, noise))
        return WITHHELD

    def part_of(self, output: StableAnswer | Withheld) -> Part:
        """Which leg answered."""
        return REFUSED if output is WITHHELD else int(output[0])

    def describe(self, output: StableAnswer | Withheld) -> str:
        """What came out, and of which leg."""
        return "withheld" if output is WITHHELD else f"{output[1]!r} (attempt {output[0]} of {len(self.proposals)})"

    def frame_of(self, answer: StableAnswer) -> Frame:
        """The rows of the release."""
        return frame_of(answer.value, self)


@dataclass(frozen=True, kw_only=True, repr=False)
class Chain(Mechanism[Any, tuple[Any, ...]]):
    """Several propose-test-releases: each proposal is made from what was released before. ⊥ ends it.

    Parameters
    ----------
    legs
        Functions from the tuple of released values to a :class:`Proposal`.
    prices
        What the release of each leg costs at most.
    test_epsilon
        The ε of each test.
    delta
        The δ of all tests together.
    neighbours
        The relation of all proposals.
    name
        For keys: what it is, if it holds objects or functions that no module has under their names.

    Publishes the tuple of values up to the first ⊥. Part i means that the first i legs answered: each of them costs a
    test and its price, and the ⊥ of the next one a test.

    Proof: thm-chain
    """

    legs: tuple[Callable[[tuple[Any, ...]], Proposal], ...]
    prices: tuple[Number, ...]
    test_epsilon: Number
    delta: Number
    neighbours: Neighbours | None = "substitute"
    name: str | None = None

    def __post_init__(self) -> None:
        _check_fields(self)
        if not self.legs or len(self.legs) != len(self.prices):
            raise InvalidValue(f"a chain has legs and a price for each, got {len(self.legs)} and {len(self.prices)}")
        _ = self.guarantee

    @cached_property
    def test(self) -> StabilityTest:
        """The test of each leg, with its share of δ."""
        return StabilityTest(exact(self.test_epsilon, "test_epsilon"), exact(self.delta, "δ") / len(self.legs))

    @cached_property
    def guarantee(self) -> Guarantee:
        """E(i) = i·ε + the first i prices, and ε for the ⊥ that stopped it, if one did."""
        tests, last = self.test.epsilon, len(self.legs)
        spent = list(accumulate((exact(price, "price") for price in self.prices), initial=Fraction(0)))
        table: dict[Part, Number] = {i: min(i + 1, last) * tests + spent[i] for i in range(last + 1)}
        return Guarantee(table, exact(self.delta, "δ"), neighbours=self.neighbours)

    def check(self, data: Any) -> None:
        """What the first leg refuses, and a first leg that does not fit the chain."""
        first = self.legs[0](())
        self._refuse_dearer(first, self.prices[0])
        first.check(data)

    def sample(self, data: Any, noise: NoiseSource) -> tuple[Any, ...]:
        """The values up to the first ⊥."""
        values: tuple[Any, ...] = ()
        for leg, price in zip(self.legs, self.prices, strict=True):
            proposal = leg(values)
            self._refuse_dearer(proposal, price)
            distance = min(proposal.distance(data, self.test.cap), self.test.cap)
            if not self.test.passes(distance, noise):
                break
            values = (*values, proposal.release(data, noise))
        return values

    def _refuse_dearer(self, proposal: Proposal, price: Number) -> None:
        """Speaks of published values only, as the proposal is made of nothing else."""
        if proposal.neighbours != self.neighbours:
            raise InvalidValue(
                f"a leg proposed {text_of(proposal)}, which is about {proposal.neighbours!r} neighbours; "
                f"the chain is about {self.neighbours!r}"
            )
        if exact(proposal.price, "price") > exact(price, "price") or exact(proposal.slack, "slack"):
            raise InvalidValue(f"a leg proposed {text_of(proposal)}, which costs more than the {price} of its leg")

    def part_of(self, output: tuple[Any, ...]) -> Part:
        """How many legs answered."""
        return len(output)

    def frame_of(self, answer: Any) -> Frame:
        """The rows of each leg."""
        return frame_by_key("leg", dict(enumerate(answer, 1)), self)


def _check_fields(mechanism: Any) -> None:
    check_fields(mechanism, "delta", test_epsilon=requested_epsilon)
