"""Quantile mechanisms against brute force: scores, windows, the law of every draw, and guarantees with controls."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from expost import Guarantee
from expost.guarantee import Neighbours
from expost.mechanisms import InterquartileRange, MedianOfRecords, QuantileOfRecords, QuantilesOfRecords
from expost.mechanisms.quantiles.candidates import Lattice
from expost.mechanisms.quantiles.ordered import arrange
from expost.mechanisms.quantiles.quantiles import target
from expost.mechanisms.quantiles.windows import Windows
from expost.verify import FiniteMechanism, check, law
from quantile_model import changes, data_sets, neighbours, permute_and_flip, tuples

pytestmark = pytest.mark.slow
VALUES = range(4)
LATTICE = Lattice(Fraction(1), 0, 3, whole=True)
RELATIONS: list[Neighbours] = ["substitute", "add-remove"]
LEVELS = [Fraction(0), Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), Fraction(1)]


def windows(data: tuple[int, ...], levels: tuple[Fraction, ...], relation: Neighbours, rate: Fraction) -> Windows:
    arranged = arrange(np.array(data, np.int64), LATTICE, 0.0)
    targets = tuple(target(level, len(data), relation) for level in levels)
    return Windows(arranged, targets, rate, paired=relation == "substitute" and len(levels) > 1)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_score_counts_the_records_to_exchange_until_a_value_is_the_quantile(level: Fraction, size: int) -> None:
    for data in data_sets(VALUES, size):
        found = {v: windows(data, (level,), "substitute", Fraction(1)).score((v,)) for v in VALUES}
        assert found == changes(data, VALUES, level, "substitute"), data


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_records_to_add_and_remove_are_at_least_the_score(level: Fraction, size: int) -> None:
    """By at most one, for a record with the value itself; and the score is 0 at the quantile only."""
    for data in data_sets(VALUES, size):
        found = {v: windows(data, (level,), "add-remove", Fraction(1)).score((v,)) for v in VALUES}
        least = changes(data, VALUES, level, "add-remove")
        assert all(found[v] <= least[v] <= found[v] + 1 for v in VALUES), (data, found, least)
        assert [v for v in VALUES if not found[v]] == [v for v in VALUES if not least[v]]


def deep_scores(data: tuple[int, ...], level: Fraction, relation: Neighbours) -> list[int]:
    """Those of all candidates with the depth of the quantile, as they are compared: the quantile's is −depth."""
    if not data:
        return [1] * 3
    goal = target(level, len(data), relation).settled(arrange(np.array(data, np.int64), LATTICE, 0.0))
    mine = Windows(arrange(np.array(data, np.int64), LATTICE, 0.0), (goal,), Fraction(1), paired=False)
    return [mine.score((candidate,)) - goal.depth for candidate in range(3)]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("level", LEVELS)
def test_one_person_moves_every_score_with_its_depth_by_at_most_one(relation: Neighbours, level: Fraction) -> None:
    found = {data: deep_scores(data, level, relation) for size in range(7) for data in data_sets(range(3), size)}
    if Fraction(1, 4) <= level < 1:
        assert min(map(min, found.values())) < 0  # some quantiles are deep
    for data in found:
        for other in set(neighbours(data, range(3), relation)) & found.keys():
            assert max(abs(a - b) for a, b in zip(found[data], found[other], strict=True)) <= 1, (data, other)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_law_of_a_deep_quantile(relation: Neighbours) -> None:
    """The code's own draws."""
    data, missing = (0, 1, 1, 1, 1, 1, 2), Fraction(1, 12)
    mechanism = MedianOfRecords(epsilon=1, bounds=(0, 2), neighbours=relation)
    found = law(lambda source: mechanism.sample(np.array(data, np.int64), source), missing=missing)
    scores = deep_scores(data, Fraction(1, 2), relation)
    best = min(scores)
    truth = permute_and_flip([Fraction(score - best, 2) for score in scores])
    assert best < 0
    for value in range(3):
        assert found.get(value, Fraction(0)) <= truth[value] + Fraction(1, 10**12)
        assert truth[value] <= found.get(value, Fraction(0)) + missing


PAIRS = [(Fraction(1, 4), Fraction(3, 4)), (Fraction(0), Fraction(1, 2)), (Fraction(1, 3), Fraction(1, 2), Fraction(1))]


def scores(data: tuple[int, ...], levels: tuple[Fraction, ...], relation: Neighbours) -> list[int]:
    """Of all candidates; without any data all are 1 instead of 0, which is the same to the mechanism."""
    mine = windows(data, levels, relation, Fraction(1))
    return [mine.score(candidate) + (not data) for candidate in tuples(3, len(levels))]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("levels", [*[(level,) for level in LEVELS], *PAIRS])
def test_one_person_moves_every_score_by_at_most_one(relation: Neighbours, levels: tuple[Fraction, ...]) -> None:
    everything = [data for size in range(5) for data in data_sets(range(3), size)]
    found = {data: scores(data, levels, relation) for data in everything}
    for data in everything:
        for other in set(neighbours(data, range(3), relation)) & found.keys():
            assert max(abs(a - b) for a, b in zip(found[data], found[other], strict=True)) <= 1, (data, other)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("data", [(), (2,), (1, 2, 2), (0, 0, 3, 3), (0, 1, 1, 1, 3)])
@pytest.mark.parametrize("levels", [(Fraction(1, 2),), (Fraction(1, 4), Fraction(3, 4))])
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 3)])
def test_a_proposal_has_weight_e_to_the_minus_score(
    relation: Neighbours, data: tuple[int, ...], levels: tuple[Fraction, ...], rate: Fraction
) -> None:
    """The code's own draws: every candidate's probability is its weight over one total, rejections included."""
    mine = windows(data, levels, relation, rate)
    cells, sums = mine._cells()
    missing = Fraction(1, 200)
    total = Fraction(sums[-1], 1 << (mine._bits * (2 if mine._paired else 1)))
    found = law(lambda source: mine._propose(source, cells, sums), missing=missing)
    for candidate in tuples(4, len(levels)):
        weight = permute_and_flip([rate * mine.score(candidate), Fraction(0)])[0] * 2  # = 2p(1 − 1/2) = p
        assert found.get(candidate, 0) <= weight / total + Fraction(1, 10**12)
        assert weight / total <= found.get(candidate, Fraction(0)) + missing


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("data", [(), (1, 2, 2), (3, 3, 3, 0)])
def test_the_law_of_every_draw_is_that_of_permute_and_flip(relation: Neighbours, data: tuple[int, ...]) -> None:
    mechanism = MedianOfRecords(epsilon=2, bounds=(0, 3), neighbours=relation)
    missing = Fraction(1, 12)
    found = law(lambda source: mechanism.sample(np.array(data, np.int64), source), missing=missing)
    scores = changes(tuple(sorted(data)), VALUES, Fraction(1, 2), relation) if data else dict.fromkeys(VALUES, 0)
    arranged = arrange(np.array(data, np.int64), LATTICE, 0.0)
    depth = target(Fraction(1, 2), len(data), relation).settled(arranged).depth
    scores = {value: score + depth if score else 0 for value, score in scores.items()}
    for value, truth in zip(VALUES, permute_and_flip([Fraction(scores[v]) for v in VALUES]), strict=True):
        assert found.get(value, Fraction(0)) <= truth + Fraction(1, 10**12)
        assert truth <= found.get(value, Fraction(0)) + missing


def table(
    levels: tuple[Fraction, ...], relation: Neighbours, rate: Fraction, sizes: tuple[int, ...]
) -> FiniteMechanism:
    """The exact laws on all small data sets, from the scores of the code."""
    laws: dict[Any, dict[Any, Fraction]] = {}
    for data in (data for size in sizes for data in data_sets(range(3), size)):
        mine = windows(data, levels, relation, rate)
        candidates = list(product(range(3), repeat=len(levels)))
        chosen = permute_and_flip([rate * mine.score(candidate) for candidate in candidates], 30)
        laws[data] = {}
        for candidate, probability in zip(candidates, chosen, strict=True):
            output = tuple(sorted(candidate))
            laws[data][output] = laws[data].get(output, Fraction(0)) + probability
        laws[data] = {output: p / sum(laws[data].values()) for output, p in laws[data].items()}
    pairs = [(x, y) for x in laws for y in set(neighbours(x, range(3), relation)) if y in laws and y != x]
    return FiniteMechanism(laws, pairs, lambda output: "released")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("levels", "relation", "sizes"),
    [
        ((Fraction(1, 2),), "substitute", (3,)),
        ((Fraction(1, 2),), "add-remove", (0, 1, 2, 3)),
        ((Fraction(9, 10),), "add-remove", (0, 1, 2, 3)),
        ((Fraction(1, 4), Fraction(3, 4)), "substitute", (4,)),
        ((Fraction(1, 4), Fraction(3, 4)), "add-remove", (0, 1, 2, 3)),
    ],
)
def test_the_guarantee_holds_and_with_too_little_noise_it_does_not(
    levels: tuple[Fraction, ...], relation: Neighbours, sizes: tuple[int, ...]
) -> None:
    slack = Fraction(1, 10**20)  # the laws are rounded to thirty digits
    assert check(table(levels, relation, Fraction(1, 2), sizes), Guarantee.uniform(1, slack))
    assert not check(table(levels, relation, Fraction(1), sizes), Guarantee.uniform(1, slack))
    assert not check(table(levels, relation, Fraction(3, 5), sizes), Guarantee.uniform(1, slack))


def deep_table(level: Fraction, relation: Neighbours, rate: Fraction, sizes: tuple[int, ...]) -> FiniteMechanism:
    """The exact laws of one quantile as it is published: with the depth that it has."""
    laws: dict[Any, dict[Any, Fraction]] = {}
    for data in (data for size in sizes for data in data_sets(range(3), size)):
        scores = deep_scores(data, level, relation)
        chosen = permute_and_flip([rate * (score - min(scores)) for score in scores], 30)
        laws[data] = {value: probability / sum(chosen) for value, probability in enumerate(chosen)}
    pairs = [(x, y) for x in laws for y in set(neighbours(x, range(3), relation)) if y in laws and y != x]
    return FiniteMechanism(laws, pairs, lambda output: "released")


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("level", [Fraction(1, 2), Fraction(9, 10), Fraction(0)])
def test_the_guarantee_of_a_deep_quantile(relation: Neighbours, level: Fraction) -> None:
    sizes = (5, 6) if relation == "substitute" else tuple(range(7))
    slack = Fraction(1, 10**20)
    assert check(deep_table(level, relation, Fraction(1, 2), sizes), Guarantee.uniform(1, slack))
    assert not check(deep_table(level, relation, Fraction(3, 4), sizes), Guarantee.uniform(1, slack))


def test_all_outputs_cost_epsilon() -> None:
    rest: dict[str, Any] = {"epsilon": 1, "bounds": (0, 3), "neighbours": "substitute"}
    for mechanism in (
        MedianOfRecords(**rest),
        QuantileOfRecords(quantile=1, **rest),
        QuantilesOfRecords(quantiles=[0, 1], **rest),
        InterquartileRange(**rest),
    ):
        output = mechanism.sample(np.array([1, 2, 3]), _noise())
        assert mechanism.guarantee.cost_of(mechanism.part_of(output)) == mechanism.guarantee.worst_case


def _noise() -> Any:
    from expost.noise import SystemNoise

    return SystemNoise()
