"""A guarantee about rows is none about people: somebody with k rows has k times the ε, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from expost import Guarantee
from expost.verify import FiniteMechanism, least_delta

ODDS = 3
"""e^ε of one row."""


def answers(rows: tuple[bool, ...]) -> dict[str, Fraction]:
    """Of each place, whether there is a row, with odds."""
    right, wrong = Fraction(ODDS, ODDS + 1), Fraction(1, ODDS + 1)
    law = {}
    for said in product((True, False), repeat=len(rows)):
        chance = Fraction(1)
        for truth, each in zip(rows, said, strict=True):
            chance *= right if truth == each else wrong
        law["".join("10"[not each] for each in said)] = chance
    return law


def changed(one: tuple[bool, ...], other: tuple[bool, ...]) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_person_with_several_rows_needs_a_guarantee_of_their_own(rows: int) -> None:
    databases = list(product((True, False), repeat=rows))
    laws = {each: answers(each) for each in databases}
    by_row = [(one, other) for one in databases for other in databases if changed(one, other) == 1]
    by_person = [((True,) * rows, (False,) * rows), ((False,) * rows, (True,) * rows)]
    about_rows = Guarantee.uniform("1.0986122886682", neighbours="add-remove", unit="row")  # ln 3, rounded up
    kept = FiniteMechanism(laws, by_row, lambda output: "any")
    assert least_delta(kept, about_rows).upper == 0
    claimed = FiniteMechanism(laws, by_person, lambda output: "any")
    assert (least_delta(claimed, about_rows).lower > 0) == (rows > 1)
    assert least_delta(claimed, about_rows.group(rows)).upper == 0
    if rows > 1:  # and no less will do
        less = Guarantee.uniform(about_rows.worst_case.exact_epsilon * rows - Fraction(1, 10**6))
        assert least_delta(claimed, less).lower > 0
