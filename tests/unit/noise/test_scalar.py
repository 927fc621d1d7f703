"""Scalar samplers ask for uniform integers only; small laws are computed exactly by trying all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from expost import noise
from expost.errors import InvalidValue
from expost.noise import NoiseSource, SeededNoise


class Enumerated(NoiseSource):
    """Answers ``below`` from a prefix; the first question past it is recorded and ends the run."""

    private = False

    class Asked(Exception):
        def __init__(self, bound: int) -> None:
            self.bound = bound

    def __init__(self, prefix: tuple[int, ...]) -> None:
        self._prefix = list(prefix)

    def bytes(self, count: int) -> bytes:
        raise AssertionError("scalar samplers must ask for integers, not bytes")

    def below(self, bound: int) -> int:
        if not self._prefix:
            raise Enumerated.Asked(bound)
        return self._prefix.pop(0)


def law_of(sampler: Callable[[NoiseSource], Any], least: Fraction) -> tuple[dict[Any, Fraction], Fraction]:
    """The probability of every outcome, following all draws of probability above ``least``; and the rest."""
    law: dict[Any, Fraction] = defaultdict(Fraction)
    rest = Fraction(0)
    paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while paths:
        prefix, weight = paths.pop()
        try:
            law[sampler(Enumerated(prefix))] += weight
        except Enumerated.Asked as asked:
            if weight < least:
                rest += weight
            else:
                paths += [((*prefix, i), weight / asked.bound) for i in range(asked.bound)]
    return law, rest


@pytest.mark.parametrize("ratio", [Fraction(1, 2), Fraction(2, 3)])
def test_categorical_is_exact(ratio: Fraction) -> None:
    exponents = [0, 2, 1, 0]
    law, rest = law_of(lambda source: noise.categorical(source, exponents, ratio), Fraction(0))
    total = sum(ratio**k for k in exponents)
    assert rest == 0
    assert law == {i: ratio**k / total for i, k in enumerate(exponents)}


def test_bernoulli_is_exact() -> None:
    law, rest = law_of(lambda source: noise.bernoulli(source, Fraction(3, 7)), Fraction(0))
    assert (law, rest) == ({True: Fraction(3, 7), False: Fraction(4, 7)}, Fraction(0))


def test_the_exponential_coin_is_exact_up_to_paths_not_followed() -> None:
    law, rest = law_of(lambda source: noise.bernoulli_exp(source, Fraction(1, 2)), Fraction(1, 10**5))
    assert float(law[True]) <= 0.6065306597 <= float(law[True] + rest)
    assert rest < Fraction(1, 100)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(1), Fraction(40)])
def test_normal_samplers_use_integers_only(variance: Fraction) -> None:
    class Integers(NoiseSource):
        private = False

        def __init__(self) -> None:
            self._seeded = SeededNoise(4)

        def bytes(self, count: int) -> bytes:
            raise AssertionError("asked for bytes")

        def below(self, bound: int) -> int:
            return self._seeded.below(bound)

    source = Integers()
    numbers = [
        sampler(source, variance) for sampler in (noise.discrete_gaussian, noise.rounded_gaussian) for _ in range(50)
    ]
    assert max(map(abs, numbers)) < 10 * float(variance) ** 0.5 + 2


def test_values_that_are_refused() -> None:
    source = SeededNoise(0)
    refused: list[Callable[[], object]] = [
        lambda: noise.bernoulli(source, Fraction(2)),
        lambda: noise.bernoulli_exp(source, Fraction(-1)),
        lambda: noise.geometric(source, Fraction(0)),
        lambda: noise.discrete_gaussian(source, Fraction(0)),
        lambda: noise.rounded_gaussian(source, Fraction(0)),
        lambda: noise.categorical(source, [], Fraction(1, 2)),
        lambda: noise.categorical(source, [1], Fraction(2)),
        lambda: noise.categorical(source, [-1], Fraction(1, 2)),
    ]
    for call in refused:
        with pytest.raises(InvalidValue, match="got"):
            call()
