"""Every distance equals brute force on all small data sets, and one person moves it by at most one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import numpy as np
import pytest

from expost.mechanisms.stability.location import MeanOfRanks
from expost.mechanisms.stability.order import arranged, rank
from expost.mechanisms.stability.quantile_range import BinOfRange, Scale, Spread, spread
from expost.mechanisms.stability.votes import lead

pytestmark = pytest.mark.slow
Records = tuple[int, ...]  # sorted, for every distance is symmetric


def data_sets(size: int, domain: Sequence[int]) -> list[Records]:
    return list(combinations_with_replacement(sorted(domain), size))


def neighbours(records: Records, domain: Sequence[int]) -> Iterator[Records]:
    for place, value in product(range(len(records)), domain):
        if value != records[place]:
            yield tuple(sorted((*records[:place], value, *records[place + 1 :])))


def changes_until(sets: list[Records], domain: Sequence[int], bad: Callable[[Records], bool]) -> dict[Records, int]:
    """The least number of records to change until ``bad``, by breadth-first search over all data sets."""
    distance = {records: 0 for records in sets if bad(records)}
    frontier = list(distance)
    while frontier:
        reached = []
        for records in frontier:
            for other in neighbours(records, domain):
                if other not in distance:
                    distance[other] = distance[records] + 1
                    reached.append(other)
        frontier = reached
    return distance


def assert_sensitivity_one(distance: dict[Records, int], domain: Sequence[int]) -> None:
    for records, here in distance.items():
        assert all(abs(here - distance[other]) <= 1 for other in neighbours(records, domain))


DOMAINS = [
    (range(4), 6),
    (range(6), 4),
    ((0, 1, 5, 6, 13), 6),
    ((-3, 0, 2), 8),
    (range(3), 1),
    (range(5), 2),
    (range(4), 3),
]


@pytest.mark.parametrize(("domain", "size"), DOMAINS)
@pytest.mark.parametrize("quantiles", [("1/4", "3/4"), ("0.1", "0.9"), ("1/2", "1")])
@pytest.mark.parametrize("bin_", [(0, 1), (1, 2), (2, 5), (3, 4), (4, 10**9)])
def test_leaving_a_bin(domain: Sequence[int], size: int, quantiles: tuple[str, str], bin_: tuple[int, int]) -> None:
    """A₀ − 1, for data in the bin [least, past): the least number of changes that leave it, less one."""
    low, high = map(Fraction, quantiles)
    least, past = bin_
    first, last = rank(low, size), rank(high, size)
    sets = data_sets(size, domain)
    truth = changes_until(sets, domain, lambda s: not least <= s[last - 1] - s[first - 1] < past)
    ours = {}
    for records in sets:
        if least <= records[last - 1] - records[first - 1] < past:
            seen = within(spread(np.array(records), 0.0, low, high, size), min(domain), max(domain))
            ours[records] = size if seen.constant else seen.distance(least, past, size)
            assert ours[records] == min(size, truth.get(records, size + 1) - 1), records
            for cap in range(size):
                near = within(spread(np.array(records), 0.0, low, high, cap), min(domain), max(domain))
                if not near.constant:
                    assert near.distance(least, past, cap) == min(cap, ours[records])
    distance = {records: ours.get(records, 0) for records in sets}
    assert_sensitivity_one(distance, domain)


def within(seen: Spread, least: int, most: int) -> Spread:
    """The same with the ends of a small domain: past the first and last record stand −2^63 and 2^63 − 1."""
    ends = {-(2**63): least, 2**63 - 1: most}
    below, above = ([ends.get(x, x) for x in side] for side in (seen.below, seen.above))
    return Spread(seen.unit, seen.from_low, seen.to_high, below, above, seen.constant)


@pytest.mark.parametrize(("domain", "size"), DOMAINS)
@pytest.mark.parametrize("window", ["1/4", "1/2", "1", "trim 0", "trim 1/4", "trim 1/3"])
@pytest.mark.parametrize("proposed", ["1/3", "1", "2"])
def test_local_sensitivity_of_a_mean_of_ranks(domain: Sequence[int], size: int, window: str, proposed: str) -> None:
    """The least number of changes until one more may move the statistic by more than was proposed."""
    trimmed = window.startswith("trim")
    proposal = MeanOfRanks(
        proposed=Fraction(proposed),
        epsilon=Fraction(1),
        bounds=(float(min(domain)), float(max(domain))),
        missing=0.0,
        quantile=None if trimmed else Fraction(window),
        trim=Fraction(window.split()[1]) if trimmed else Fraction(0),
    )
    first, last = proposal.ranks(size)
    sets = data_sets(size, domain)
    mean = {s: Fraction(sum(s[first - 1 : last]), last - first + 1) for s in sets}
    local = {s: max(abs(mean[s] - mean[t]) for t in neighbours(s, domain)) for s in sets}
    truth = changes_until(sets, domain, lambda s: local[s] > Fraction(proposed))
    ours = {s: proposal.distance(np.array(s, dtype=float), size) for s in sets}
    assert ours == {s: min(size, truth.get(s, size)) for s in sets}
    assert_sensitivity_one(ours, domain)
    for cap in range(size):
        assert all(proposal.distance(np.array(s), cap) == min(cap, ours[s]) for s in sets)


@pytest.mark.parametrize(("cells", "blocks"), [(2, 7), (3, 7), (4, 5)])
def test_votes(cells: int, blocks: int) -> None:
    """One vote moves the lead by at most one, and where the lead is above 0 it cannot change the winner."""
    domain = range(cells)
    for votes in data_sets(blocks, domain):
        winner, distance = lead(Counter((v,) for v in votes))
        for other in neighbours(votes, domain):
            winner_there, distance_there = lead(Counter((v,) for v in other))
            assert abs(distance - distance_there) <= 1
            assert distance == 0 or winner == winner_there


def test_a_lead_of_one_step_more_is_not_safe() -> None:
    """Negative control: ⌊(top − second)/2⌋ is above 0 for votes (0, 1, 3), which become (0, 2, 2)."""
    votes, after = Counter({(0,): 1, (1,): 3}), Counter({(0,): 2, (1,): 2})
    assert (3 - 1) // 2 == 1
    assert lead(votes) == ((1,), 0)
    assert lead(after)[0] != lead(votes)[0]


def test_edges_are_in_order_and_bins_hold_their_numbers() -> None:
    for base, shift in product(("2", "1.06", "10", "1.001"), ("0", "1/2")):
        scale = Scale(Fraction(base), Fraction(shift))
        edges = [scale.edge(j) for j in range(-50, 50)]
        assert all(a < b for a, b in pairwise(edges))
        for value in (*edges[::9], Fraction(1), Fraction(22, 7), Fraction(5, 10**300), Fraction(2**1020)):
            j = scale.index(value)
            assert scale.edge(j) <= value < scale.edge(j + 1)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 1000])
def test_arranging_puts_the_spans_where_sorting_would(size: int) -> None:
    rng = np.random.default_rng(size)
    for values in (rng.normal(size=size), rng.integers(0, 4, size), np.full(size, np.nan)):
        for spans in ([(-3, 2), (size - 1, size + 5)], [(size // 2, size // 2 + 3)], [(2, 1)], [(1, size)]):
            there, ordered = arranged(values, 0.5, spans), np.sort(np.nan_to_num(values, nan=0.5))
            for first, last in spans:
                place = slice(max(first, 1) - 1, max(last, 0))
                assert np.array_equal(there[place], ordered[place])
            assert np.array_equal(np.sort(there), ordered)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.uint64, np.int8, np.bool_])
def test_several_short_spans_of_long_data(kind: Any) -> None:
    """Spans apart from one another, of one record and more: what one selection placed, the next must not move."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        size = int(rng.integers(100, 400))
        values = rng.permutation(size).astype(kind)
        starts = rng.integers(1, size, 3)
        spans = [(int(start), int(start + rng.integers(0, 6))) for start in starts]
        there, ordered = arranged(values, 0.0, spans), np.sort(values)
        for first, last in spans:
            assert np.array_equal(there[first - 1 : last], ordered[first - 1 : last])


def test_neighbours_at_full_distance_release_the_same_bin() -> None:
    """In whatever order the records come; seed 573 once gave two bins."""
    proposal = BinOfRange(low=Fraction(1, 4), high=Fraction(3, 4), scale=Scale(Fraction(2), Fraction(0)), missing=0.0)
    for seed in range(560, 580):
        data = np.random.default_rng(seed).normal(size=1000) * 4.2
        neighbour = data.copy()
        neighbour[0] = 0.0
        bins = {proposal.release(one, None) for one in (data, neighbour, np.sort(data))}
        if proposal.distance(data, 58) == 58:
            assert len(bins) == 1


def test_floats_are_told_apart_exactly() -> None:
    """From the least float to the largest, and one float below an edge."""
    scale = Scale(Fraction(2), Fraction(0))
    proposal = BinOfRange(low=Fraction(1, 4), high=Fraction(3, 4), scale=scale, missing=0.0)
    tiny = np.array([0.0, 0.0, 5e-324, 5e-324])
    assert proposal.release(tiny, None) == (5e-324, 1e-323)
    huge = np.array([-np.inf, -np.inf, np.inf, np.inf])
    assert proposal.release(huge, None)[1] == np.finfo(float).max
    just_below = np.array([0.0, 0.0, np.nextafter(1.0, 0.0), 1.0])
    assert proposal.release(just_below, None) == (0.5, 1.0)
