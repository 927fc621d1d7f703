"""What quantiles do with data: types, bounds, grids, missing values, tallies; and how far off they are."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost import mechanisms as mech
from expost.errors import InvalidValue
from expost.mechanisms.quantiles.candidates import Lattice
from expost.mechanisms.quantiles.ordered import arrange
from published import published

NOISE = xp.SeededNoise(7)
SURE: dict[str, Any] = {"epsilon": 1000, "neighbours": "substitute"}  # so much that the choice is the best one


@pytest.mark.parametrize("kind", ["i1", "u1", "i4", "i8", "u8"])
def test_whole_numbers_stay_whole(kind: str) -> None:
    value = mech.MedianOfRecords(bounds=(0, 100), **SURE).sample(np.array([3, 5, 90], kind), NOISE)
    assert value == 5
    assert type(value) is int


def test_truth_values_are_0_and_1() -> None:
    assert mech.QuantileOfRecords(quantile=1, bounds=(0, 1), **SURE).sample(np.array([False, True]), NOISE) == 1


def test_a_coarser_grid_of_whole_numbers() -> None:
    assert mech.MedianOfRecords(bounds=(0, 100), grid=5, **SURE).sample(np.array([3, 12, 13, 90]), NOISE) == 10


@pytest.mark.parametrize("step", [Fraction(1, 100), "0.01", 0.01])
def test_an_atom_of_the_data_is_hit_exactly(step: Any) -> None:
    data = np.array([0.07] * 5 + [0.29] * 90 + [0.58] * 5)
    value = mech.MedianOfRecords(bounds=(0, 1), grid=step, **SURE).sample(data, NOISE)
    assert value == 0.29
    assert type(value) is float


def test_atoms_are_hit_with_moderate_epsilon_wherever_they_begin() -> None:
    """A fifth of the records below, most at one value: rules that look at intervals between records miss it."""
    data = np.array([1] * 20 + [2] * 60 + [3] * 20)
    mechanism = mech.QuantileOfRecords(quantile=0.3, bounds=(0, 100), epsilon=4, neighbours="substitute")
    assert {mechanism.sample(data, NOISE) for _ in range(50)} == {2}


@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
@pytest.mark.parametrize("levels", [[0.5], [0, 1], [0.1, 0.5, 0.9]])
def test_with_much_epsilon_quantiles_are_the_true_ones(relation: Any, levels: list[float]) -> None:
    data = np.random.default_rng(0).integers(0, 50, size=31)
    found = mech.QuantilesOfRecords(quantiles=levels, bounds=(0, 49), epsilon=500, neighbours=relation).sample(
        data, NOISE
    )
    assert found == tuple(np.quantile(data, levels, method="inverted_cdf").tolist())


def test_missing_values_and_infinities() -> None:
    data = np.array([np.nan, np.nan, np.nan, np.inf, -np.inf])
    assert mech.MedianOfRecords(bounds=(0, 9), missing=4, grid=1, **SURE).sample(data, NOISE) == 4.0
    assert mech.QuantileOfRecords(quantile=1, bounds=(0, 9), missing=4, grid=1, **SURE).sample(data, NOISE) == 9.0
    assert mech.QuantileOfRecords(quantile=0, bounds=(0, 9), missing=4, grid=1, **SURE).sample(data, NOISE) == 0.0


def test_types_that_lie_outside_the_bounds() -> None:
    assert mech.MedianOfRecords(bounds=(300, 400), **SURE).sample(np.array([5, 7], np.uint8), NOISE) == 300
    assert mech.MedianOfRecords(bounds=(-9, -5), **SURE).sample(np.array([5, 7], np.uint64), NOISE) == -5


@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
@pytest.mark.parametrize("levels", [[0.5], [0.25, 0.75]])
def test_no_data_has_an_answer_within_bounds(relation: Any, levels: list[float]) -> None:
    mechanism = mech.QuantilesOfRecords(quantiles=levels, bounds=(0, 3), epsilon=1, neighbours=relation)
    found = [published(mechanism.sample(np.array([], np.int64), NOISE)) for _ in range(100)]
    assert {value for output in found for value in output} == {0, 1, 2, 3}


def test_a_single_candidate() -> None:
    assert mech.MedianOfRecords(bounds=(5, 5), epsilon=1, neighbours="substitute").sample(np.array([1, 2]), NOISE) == 5
    assert mech.MedianOfRecords(bounds=(5, 5), epsilon=1, neighbours="substitute").error_bound(0.95) == 0


def test_extreme_bounds() -> None:
    mechanism = mech.MedianOfRecords(bounds=(-(2**53), 2**53), epsilon=20, neighbours="substitute")
    assert mechanism.sample(np.arange(2000), NOISE) == pytest.approx(1000, abs=60)
    with pytest.raises(InvalidValue, match="coarser grid"):
        mech.MedianOfRecords(bounds=(0, 2**54), grid=1, epsilon=1, neighbours="substitute")


def test_a_tally_is_the_records_that_it_counts() -> None:
    data = np.random.default_rng(1).integers(0, 20, size=500)
    values, counts = np.unique(data, return_counts=True)
    lattice = Lattice.of((2, 15), None, floats=False)
    one = arrange(data, lattice, 0.0)
    for order in (np.arange(len(values)), np.random.default_rng(2).permutation(len(values))):
        other = arrange(mech.Tally(values[order], counts[order]), lattice, 0.0)
        ranks = list(range(-2, 503))
        assert one.points(ranks) == other.points(ranks)
        assert [one.below(y) for y in range(lattice.size)] == [other.below(y) for y in range(lattice.size)]
        assert one.size == other.size == 500


def test_counts_below_zero_count_as_none() -> None:
    tally = mech.Tally(np.array([1, 2, 3]), np.array([-5, 10, 2**62]))
    assert mech.MedianOfRecords(bounds=(0, 9), **SURE).sample(tally, NOISE) == 3


BAD: list[tuple[dict[str, Any], str]] = [
    ({"quantile": 2}, "between 0 and 1"),
    ({"bounds": (3, 1)}, "the lowest first"),
    ({"grid": 0}, "from 1e-300"),
    ({"grid": Fraction(1, 10**330), "bounds": (0, 5e-324)}, "from 1e-300"),  # 0 as a float: 0/0 is no candidate
    ({"grid": 7, "bounds": (1, 6)}, "finer grid"),
    ({"neighbours": None}, "'add-remove' or 'substitute'"),
    ({"epsilon": 0}, "at least 1e-12"),
]


@pytest.mark.parametrize(("wrong", "rule"), BAD)
def test_parameters_are_refused_with_the_rule(wrong: dict[str, Any], rule: str) -> None:
    good: dict[str, Any] = {"quantile": 0.5, "epsilon": 1, "bounds": (0, 9), "neighbours": "substitute"}
    with pytest.raises(InvalidValue, match=rule):
        mech.QuantileOfRecords(**{**good, **wrong})


@pytest.mark.parametrize("quantiles", [[], 0.5, [0.5, 0.5], [0.9, 0.1]])
def test_quantiles_ascend(quantiles: Any) -> None:
    with pytest.raises(InvalidValue):
        mech.QuantilesOfRecords(quantiles=quantiles, epsilon=1, bounds=(0, 9), neighbours="substitute")


@pytest.mark.parametrize(
    "data",
    [
        5,
        np.zeros((2, 2)),
        {1, 2},
        mech.Tally(np.arange(3), np.zeros(3)),
        mech.Tally(np.arange(3), np.arange(2)),
    ],
)
def test_shapes_are_refused_before_any_charge(data: Any) -> None:
    ledger = xp.Ledger(epsilon=1)
    with pytest.raises(InvalidValue):
        ledger.run(mech.MedianOfRecords(epsilon=1, bounds=(0, 9), neighbours="substitute"), on=data)
    assert ledger.remaining.epsilon == 1


@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
def test_error_bounds_hold(relation: Any) -> None:
    data = np.sort(np.random.default_rng(3).integers(0, 10**6, size=400))
    mechanism = mech.QuantilesOfRecords(quantiles=[0.25, 0.75], bounds=(0, 10**6), epsilon=2, neighbours=relation)
    off = int(mechanism.error_bound(0.9, floats=False))
    inside = 0
    for _ in range(60):
        low, high = published(mechanism.sample(data, NOISE))
        inside += all(data[r - 1 - off] <= y <= data[r - 1 + off] for r, y in ((100, low), (300, high)))
        a, b = mechanism.interval((low, high), 0.5, 0.9, n=400)
        assert a <= data[199] <= b
    assert inside >= 54


def test_for_accuracy_finds_the_least_epsilon() -> None:
    mechanism = mech.MedianOfRecords.for_accuracy(20, 0.95, bounds=(0, 120), neighbours="substitute", floats=False)
    assert mechanism.error_bound(0.95, floats=False) == 20
    less = mech.MedianOfRecords(epsilon=0.99 * float(mechanism.epsilon), bounds=(0, 120), neighbours="substitute")
    assert less.error_bound(0.95, floats=False) > 20


def test_add_remove_needs_half_the_noise_for_a_median() -> None:
    bounds = [
        mech.MedianOfRecords(epsilon=1, bounds=(0, 1000), neighbours=relation).error_bound(0.95, floats=False)
        for relation in ("substitute", "add-remove")
    ]
    assert bounds[0] == pytest.approx(2 * bounds[1], abs=1)


def test_one_record_more_is_one_more_however_many_there_are() -> None:
    """Counts are cut off at a constant: the number of distinct values, which is private, moves nothing."""
    lattice = Lattice.of((0, 9), 1, floats=False)
    few, many = np.array([2**61, 2**61]), np.array([2**61, 2**61, 1])
    sizes = [arrange(mech.Tally(np.arange(len(counts)), counts), lattice, 0.0).size for counts in (few, many)]
    assert sizes[1] - sizes[0] == 1


def test_ranks_beyond_all_records() -> None:
    lattice = Lattice.of((0, 9), 1, floats=False)
    assert arrange(np.array([3, 4]), lattice, 0.0).points([-(10**30), 1, 10**30]) == [0, 3, 9]


def test_intervals_cover_what_rounding_moved() -> None:
    quantiles = mech.QuantilesOfRecords(
        quantiles=(0.1, 0.5, 0.9), epsilon=8, bounds=(0, 100), grid=10, neighbours="substitute"
    )
    low, high = quantiles.interval((40.0, 40.0, 40.0), 0.5, 0.95, n=1000)
    assert low <= 35 < 45 <= high
