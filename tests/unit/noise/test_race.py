"""Permute-and-flip as a race, and the coins it is made of: exact laws."""

from fractions import Fraction
from itertools import accumulate

import pytest

from expost import bracket
from expost.noise import SeededNoise
from expost.noise.fixed import Bounds, exp_minus
from expost.noise.race import bernoulli_within, first_heads, weighted
from expost.noise.source import NoiseSource
from expost.verify import law
from quantile_model import permute_and_flip


def test_a_coin_of_certified_probability() -> None:
    found = law(lambda source: bernoulli_within(source, lambda bits: exp_minus(Fraction(1), bits)))
    truth = bracket.exp(Fraction(-1))
    assert found[True] <= truth.upper
    assert truth.lower <= 1 - found[False]
    assert 1 - sum(found.values()) <= Fraction(1, 2**60)


def test_loose_bounds_only_take_longer() -> None:
    """Bounds that close in slowly: a third, first known to within a quarter, then to the bit."""

    def third(bits: int) -> Bounds:
        return (2**62, 2**63) if bits == 64 else (2**bits // 3, 2**bits // 3 + 1)

    found = law(lambda source: bernoulli_within(source, third), missing=Fraction(1, 2**100))
    assert abs(found[True] - Fraction(1, 3)) < Fraction(1, 2**99)


@pytest.mark.parametrize("exact", [0, 1])
def test_certain_coins(exact: int) -> None:
    assert bernoulli_within(SeededNoise(1), lambda bits: (exact << bits, exact << bits)) == bool(exact)


@pytest.mark.parametrize("weights", [[5], [1, 2], [3, 0, 4, 1], [2**80, 1, 2**80]])
def test_whole_weights(weights: list[int]) -> None:
    found = law(lambda source: weighted(source, list(accumulate(weights))), missing=Fraction(0))
    assert found == {i: Fraction(weight, sum(weights)) for i, weight in enumerate(weights) if weight}


CASES = [
    ([0], 0),
    ([0, 0, 0], 0),
    ([0, 1], 0),
    ([0, 1, 2], 1),
    ([3, 0, 1, 1], 0),
]
UNITS = 10**30


@pytest.mark.parametrize(("exponents", "spare"), CASES)
def test_the_race_is_permute_and_flip(exponents: list[int], spare: int) -> None:
    """Proposals are drawn at once, with the probabilities of heads to thirty digits, and sometimes in vain."""
    missing = Fraction(1, 20)
    heads = [round(bracket.exp(Fraction(-x)).lower * UNITS) for x in exponents]
    sums = list(accumulate([*heads, spare * UNITS]))

    def run(source: NoiseSource) -> int:
        def propose() -> int | None:
            drawn = weighted(source, sums)
            return drawn if drawn < len(exponents) else None

        return first_heads(source, Fraction(sums[-1], UNITS), propose, lambda i: Fraction(exponents[i]))

    found = law(run, missing=missing)
    for i, truth in enumerate(permute_and_flip([Fraction(x) for x in exponents])):
        assert found[i] <= truth + Fraction(1, 10**25)
        assert truth <= found[i] + missing


def test_the_race_is_not_the_exponential_mechanism() -> None:
    """Without the look at earlier tails the law would be another, outside what the test above allows."""
    exponents = [Fraction(0), Fraction(1, 2)]
    heads = [bracket.exp(-x).upper if x else Fraction(1) for x in exponents]
    assert abs(heads[0] / sum(heads) - permute_and_flip(exponents)[0]) > Fraction(1, 15)
