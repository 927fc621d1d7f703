"""Quantiles with intervals: the law of their three choices against brute force, coverage, and a control."""

from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest

import expost as xp
from expost.guarantee import Neighbours
from expost.mechanisms.quantiles.between import Between, Padded, windows_between
from expost.mechanisms.quantiles.candidates import Lattice
from expost.mechanisms.quantiles.ordered import arrange
from expost.mechanisms.quantiles.quantiles import target
from expost.mechanisms.quantiles.windows import Target, Windows
from expost.noise import SeededNoise
from quantile_model import data_sets, neighbours

VALUES = range(3)
LATTICE = Lattice(Fraction(1), 0, 2, whole=True)
TRIPLES = list(product(VALUES, repeat=3))
RELATIONS: list[Neighbours] = ["substitute", "add-remove"]
LEVELS = [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1)]


def law_of(data: tuple[int, ...], level: Fraction, off: int, relation: Neighbours) -> Windows:
    arranged = arrange(np.array(data, np.int64), LATTICE, 0.0)
    at = target(level, len(data), relation)
    return windows_between(arranged, at, off, Fraction(1), paired=relation == "substitute")


@pytest.mark.parametrize("off", [0, 1, 3])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("level", LEVELS)
def test_one_person_moves_every_score_by_at_most_one(level: Fraction, relation: Neighbours, off: int) -> None:
    """From no record on; and some triple always has the score 0, so that these are the coins of permute-and-flip."""
    found = {
        data: [law_of(data, level, off, relation).score(each) for each in TRIPLES]
        for size in range(5)
        for data in data_sets(VALUES, size)
    }
    assert all(min(scores) == 0 for scores in found.values())
    for data in found:
        for other in set(neighbours(data, VALUES, relation)) & found.keys():
            assert max(abs(a - b) for a, b in zip(found[data], found[other], strict=True)) <= 1, (data, other)


def in_window(law: Windows, triple: tuple[int, ...], slack: int) -> bool:
    return all(low <= each <= high for each, (low, high) in zip(triple, law._window(slack, slack), strict=True))


@pytest.mark.parametrize("level", LEVELS)
def test_windows_have_the_triples_of_their_score_and_no_others(level: Fraction) -> None:
    for size in range(4):
        for data in data_sets(VALUES, size):
            law = law_of(data, level, 2, "add-remove")
            for triple, slack in product(TRIPLES, range(6)):
                assert in_window(law, triple, slack) == (law.score(triple) <= slack), (data, triple, slack)


def test_places_before_the_first_record_would_have_another_law() -> None:
    """The control: without public records around the data, windows hold triples that should be less likely."""
    arranged = arrange(np.array([1], np.int64), LATTICE, 0.0)
    at = target(Fraction(1, 2), 1, "add-remove")
    bare = Windows(arranged, tuple(Target(at.place + s, at.unit) for s in (-2, 0, 2)), Fraction(1), paired=False)
    assert any(
        in_window(bare, triple, slack) != (bare.score(triple) <= slack) for triple, slack in product(TRIPLES, range(6))
    )


def test_padded_records() -> None:
    padded = Padded(arrange(np.array([1, 1, 2], np.int64), LATTICE, 0.0), 2)
    assert padded.size == 7
    assert padded.points([0, 1, 2, 3, 4, 5, 6, 7, 8]) == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert [padded.below(each) for each in range(4)] == [0, 2, 4, 7]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bounds", [(0, 250), None])
def test_the_true_quantile_is_in_the_interval(relation: Neighbours, bounds: tuple[int, int] | None) -> None:
    data, source = np.random.default_rng(1).normal(170, 10, 1500), SeededNoise(3)
    mechanism = xp.mechanisms.QuantileOfRecords(
        quantile=0.3, epsilon=1, bounds=bounds, neighbours=relation, interval=True
    )
    truth = np.sort(data)[449]
    found = [mechanism.sample(data, source) for _ in range(120)]
    assert all(isinstance(each, Between) and each.low <= each.value <= each.high for each in found)
    assert sum(each.low <= truth <= each.high for each in found if isinstance(each, Between)) >= 114
    assert np.median([each.high - each.low for each in found if isinstance(each, Between)]) < 20
    assert mechanism.guarantee.worst_case == xp.Cost(1)


def test_ends_beyond_all_records_say_nothing() -> None:
    """The outer places may lie beyond all records: with bounds the end is the bound, without it is infinite."""
    data, source = np.arange(2000.0), SeededNoise(4)
    within = xp.mechanisms.QuantileOfRecords(
        quantile=0.99, epsilon=1, bounds=(0, 5000), neighbours="add-remove", interval=True
    )
    assert max(within.sample(data, source).high for _ in range(20)) == 5000
    free = xp.mechanisms.QuantileOfRecords(quantile=0.97, epsilon=1, neighbours="add-remove", interval=True)
    found = [free.sample(data, source) for _ in range(20)]
    assert any(isinstance(each, Between) and each.high == inf for each in found)


def test_whole_numbers_stay_whole() -> None:
    ages = np.random.default_rng(2).integers(0, 100, 4000)
    found = xp.mechanisms.MedianOfRecords(epsilon=1, bounds=(0, 110), neighbours="substitute", interval=True).sample(
        ages, SeededNoise(1)
    )
    assert isinstance(found, Between)
    assert [type(each) for each in found] == [int, int, int]
    assert found.low <= np.median(ages) <= found.high


def test_records_beyond_all_candidates_are_in_the_interval() -> None:
    """Numbers of single precision end at 3.4e38, and that end was given for records of 1e300."""
    median = xp.mechanisms.MedianOfRecords(epsilon=5, neighbours="substitute", interval=True)
    for record, side in ((1e300, 2), (-1e300, 1)):
        found = median.sample(np.full(2000, record), SeededNoise(1))
        assert abs(found[side]) == inf
        assert found.low <= record <= found.high
