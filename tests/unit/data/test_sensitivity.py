"""The formulas against every contribution that a unit can make, and every pair of them."""

from itertools import product

import pytest

from expost.data import sensitivity
from expost.data.sensitivity import Sensitivity

NEIGHBOURS = ("add-remove", "substitute")


def furthest(contributions: set[tuple[int, ...]], neighbours: str) -> Sensitivity:
    """By trying everything."""
    if neighbours == "add-remove":
        moves = contributions
    else:
        moves = {tuple(a - b for a, b in zip(v, w, strict=True)) for v in contributions for w in contributions}
    return Sensitivity(
        max(sum(map(abs, move)) for move in moves),
        max(sum(x * x for x in move) for move in moves),
        max(max(map(abs, move)) for move in moves),
    )


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("fewest", [0, 1])
@pytest.mark.parametrize("cells", [1, 2, 3, 4])
def test_histograms(neighbours: str, fewest: int, cells: int) -> None:
    for rows in (1, 2, 3):
        for groups in range(1, rows + 1):
            vectors = {
                v
                for v in product(range(rows + 1), repeat=cells)
                if fewest <= sum(v) <= rows and sum(x > 0 for x in v) <= groups
            }
            assert sensitivity.of_rows(fewest, rows, cells, neighbours) == furthest(vectors, neighbours)
            marks = {v for v in product((0, 1), repeat=cells) if fewest <= sum(v) <= groups}
            assert sensitivity.of_units(fewest, groups, cells, neighbours) == furthest(marks, neighbours)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_sums(neighbours: str) -> None:
    for fewest, rows, low, high in product((0, 1), (1, 2, 3), (-2, 0, 1), (-1, 0, 2)):
        if low > high:
            continue
        sums = {
            (sum(values),)
            for number in range(fewest, rows + 1)
            for values in product(range(low, high + 1), repeat=number)
        }
        ends = sensitivity.of_sum(fewest, rows, low, high)
        assert sensitivity.of_number(*ends, neighbours) == furthest(sums, neighbours)


def test_a_root_that_is_not_whole_rounds_up() -> None:
    assert Sensitivity(3, 9, 3).l2 == 3
    root = Sensitivity(4, 8, 2).l2
    assert 8 <= root * root < 8 + 1e-15
