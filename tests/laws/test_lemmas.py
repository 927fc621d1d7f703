"""The lemmas that make guarantees out of guarantees, on random finite mechanisms, exactly."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost import Guarantee, bracket
from expost.guarantee import Part, costliest
from expost.verify import FiniteMechanism, check, hockey_stick, least_delta_at
from tables import OUTPUTS, epsilons, guarantee_of, laws, mechanisms, ratios

pytestmark = pytest.mark.slow


@given(mechanisms(), ratios)
def test_odp_to_dp(mechanism: FiniteMechanism, allowed: dict[Part, Fraction]) -> None:
    worst = max(allowed.values())
    assert least_delta_at(mechanism, dict.fromkeys(allowed, worst)) <= least_delta_at(mechanism, allowed)


@given(mechanisms(), st.fractions(min_value=1, max_value=5, max_denominator=4))
def test_dp_to_odp_for_any_partition(mechanism: FiniteMechanism, ratio: Fraction) -> None:
    coarse = FiniteMechanism(mechanism.laws, mechanism.neighbours, lambda output: "all")
    assert least_delta_at(coarse, {"all": ratio}) == least_delta_at(mechanism, {"low": ratio, "high": ratio})


@given(mechanisms(), ratios)
def test_subsets_add_up(mechanism: FiniteMechanism, allowed: dict[Part, Fraction]) -> None:
    total = Fraction(0)
    for part, ratio in allowed.items():
        on_part = Fraction(0)
        for x, y in mechanism.ordered_pairs():
            p = {output: mass for output, mass in mechanism.laws[x].items() if mechanism.part_of(output) == part}
            on_part = max(on_part, hockey_stick(p, mechanism.laws[y], lambda _, ratio=ratio: ratio)[0])  # type: ignore[misc]
        total += on_part
    assert least_delta_at(mechanism, allowed) <= total


@given(mechanisms(), epsilons, st.lists(laws("xyz"), min_size=4, max_size=4))
def test_post_processing(mechanism: FiniteMechanism, table: dict[Part, str], kernel: list[dict[str, Fraction]]) -> None:
    """A random map of outputs; each new part costs the most of those that can become it."""
    before = guarantee_of(mechanism, table)
    images: dict[Part, set[Part]] = {part: set() for part in table}
    for output, law in zip(OUTPUTS, kernel, strict=True):
        images[mechanism.part_of(output)] |= {new for new, mass in law.items() if mass}
    after = FiniteMechanism(
        {
            database: {
                new: sum(mass * kernel[OUTPUTS.index(output)][new] for output, mass in law.items()) for new in "xyz"
            }
            for database, law in mechanism.laws.items()
        },
        mechanism.neighbours,
    )
    processed = before.post_process(images)
    reachable = FiniteMechanism(
        {
            database: {new: mass for new, mass in law.items() if new in processed}
            for database, law in after.laws.items()
        },
        after.neighbours,
    )
    assert check(reachable, processed)


@given(mechanisms(), epsilons, mechanisms(), epsilons)
def test_parallel(first: FiniteMechanism, one: dict[Part, str], second: FiniteMechanism, two: dict[Part, str]) -> None:
    """Neighbours differ in one block; both blocks' outputs are published."""
    blocks = [guarantee_of(first, one), guarantee_of(second, two)]
    both = FiniteMechanism(
        {
            (x, y): {(a, b): first.laws[x][a] * second.laws[y][b] for a, b in product(first.laws[x], second.laws[y])}
            for x, y in product((0, 1), repeat=2)
        },
        [((0, y), (1, y)) for y in (0, 1)] + [((x, 0), (x, 1)) for x in (0, 1)],
        lambda pair: costliest(blocks, [first.part_of(pair[0]), second.part_of(pair[1])]),
    )
    assert check(both, Guarantee.parallel(blocks, split="record"))


def test_two_largest_blocks_do_not_cover_substitution() -> None:
    """Blocks chosen by value, guarantees about add-remove: an exchange inside one block costs twice its E.

    Adding up the two costliest blocks would guarantee ε; the exact cost is 2ε.
    """
    e = Fraction(3)  # e^ε of one addition or removal
    clamped_laplace = {  # the sum of a block plus discrete Laplace noise, clamped to −1, 0, 1
        -1: {-1: "3/4", 0: "1/6", 1: "1/12"},
        0: {-1: "1/4", 0: "1/2", 1: "1/4"},
        1: {-1: "1/12", 0: "1/6", 1: "3/4"},
    }
    # The block sums values of ±1; exchanging −1 for +1 moves the sum by two, adding a record by one.
    adding = FiniteMechanism(clamped_laplace, [(-1, 0), (0, 1)], lambda output: "out")
    exchanging = FiniteMechanism(clamped_laplace, [(-1, 1)], lambda output: "out")
    assert least_delta_at(adding, {"out": e}) == 0
    assert least_delta_at(exchanging, {"out": e}) > 0
    assert least_delta_at(exchanging, {"out": e**2}) == 0


@given(mechanisms(databases=3), epsilons)
def test_groups(mechanism: FiniteMechanism, table: dict[Part, str]) -> None:
    """Databases 0 — 1 — 2: what holds for each step holds twice over for both."""
    step = guarantee_of(mechanism, table)
    ends = FiniteMechanism(mechanism.laws, [(0, 2)], mechanism.part_of)
    worst = bracket.exp(step.worst_case.exact_epsilon).upper
    if step.worst_case.exact_delta * (1 + worst) <= 1:
        assert check(ends, step.group(2))
