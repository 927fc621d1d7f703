"""The search for a range: prices exactly, what one record moves by brute force, guarantees with controls, refunds."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.errors import InvalidValue
from expost.guarantee import Part
from expost.mechanism import WITHHELD, Withheld
from expost.mechanisms.moments.geometric_cells import (
    DISTANCES,
    LARGEST_RECORD,
    geometric_counts,
    records,
    threshold,
    unsure,
    visible_range,
)
from expost.mechanisms.moments.private_range import LEVELS, FoundRange, RangeSearch
from expost.verify import FiniteMechanism, check
from expost.verify.audit import audit
from published import published
from soak import SOAK

NOISE = xp.SeededNoise(3)
HOSTILE = (-np.inf, -1.7e308, -3.4e38, -1.0, -5e-324, 0.0, 1e-45, 1.0, np.nextafter(1, 2), 3.4e38, np.inf, np.nan)
CENTRES = (-LARGEST_RECORD, -1.0, 0.0, 1.4e-45, 1.0, 3.0, LARGEST_RECORD)


def counted(data: Any, centre: float) -> Any:
    return geometric_counts(records(np.array(data, float), None, 0.0), np.ones(1, np.int64), centre)


@pytest.mark.parametrize("centre", CENTRES)
def test_one_record_moves_one_count_and_an_exchange_two(centre: float) -> None:
    """Each on its own, and counts add up. An exchange does reach two, so that less noise would not do."""
    alone = {value: counted([value], centre) for value in HOSTILE}
    worst = 0
    for mine, theirs in product(HOSTILE, repeat=2):
        assert alone[mine].sum() == 1
        assert alone[mine].min() >= 0
        assert np.array_equal(counted([mine, theirs], centre), alone[mine] + alone[theirs])
        worst = max(worst, int(np.abs(alone[mine] - alone[theirs]).sum()))
    assert worst == 2


@given(st.floats(-1e38, 1e38), st.floats(-1e38, 1e38))
def test_a_cell_is_the_least_power_of_two_above_the_distance(value: float, centre: float) -> None:
    side, cell = (int(place[0]) for place in np.nonzero(counted([value], centre)))
    distance = abs(Fraction(value - centre))
    assert side == (value >= centre)
    assert (cell == 0) == (distance == 0)
    if cell:
        assert distance < Fraction(2) ** (cell - 127)
        assert cell == 1 or distance >= Fraction(2) ** (cell - 128)


@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
@pytest.mark.parametrize(("columns", "moved"), [(1, 1), (2, 1), (3, 6)])
@pytest.mark.parametrize("epsilon", ["0.3", "1", "7.000000000129"])
def test_attempts_up_to_a_level_cost_its_price(relation: Any, columns: int, moved: int, epsilon: str) -> None:
    """Exactly: choices of centres have 2·k·rate, and noise the rate times what one unit moves counts by, in L1."""
    if relation == "substitute":
        moved = 1  # one unit exchanges one record, or else it adds and removes
    search = RangeSearch(epsilon, relation, columns, moved)
    assert search.prices[-1] == Fraction(epsilon)
    assert all(2 * one <= other for one, other in zip(search.prices, search.prices[1:], strict=False))
    for first in range(1, LEVELS + 1):
        spent = paid = Fraction(0)
        for level in range(first, LEVELS + 1):
            centre, counts = search._rates(search.prices[level - 1] - spent)
            spent = search.prices[level - 1]
            paid += columns * (2 * moved * centre + (2 if relation == "substitute" else moved) * counts)
            assert paid == spent == search.guarantee().cost_of(level).exact_epsilon


def stopping(steps: list[Fraction], honest: bool) -> FiniteMechanism:
    """Attempts that tell a bit with growing odds and end at a true one: the exact law of the last and its place."""
    laws: dict[Any, dict[Any, Fraction]] = {}
    for bit in (0, 1):
        law: dict[Any, Fraction] = {}
        going = Fraction(1)
        for place, odds in enumerate(steps, 1):
            truth = odds / (1 + odds) if bit else 1 / (1 + odds)
            law[place, True] = going * truth
            going *= 1 - truth
        law[len(steps), False] = going
        laws[bit] = law
    return FiniteMechanism(laws, [(0, 1), (1, 0)], lambda output: output[0] if honest else 1)


def test_stopping_at_what_was_published_costs_the_attempts_up_to_there() -> None:
    """The law of a path, in rationals; what stops first is not the price of all."""
    odds = [Fraction(3, 2), Fraction(2), Fraction(3)]
    prices = {1: np.log(1.5) + 1e-9, 2: np.log(3) + 1e-9, 3: np.log(9) + 1e-9}
    assert check(stopping(odds, honest=True), xp.Guarantee(prices)).holds
    assert check(stopping(odds, honest=False), xp.Guarantee(prices)).holds is False


def clear_data(size: int) -> Any:
    return np.random.default_rng(0).normal(20_260, 4, size)


@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
def test_what_was_not_used_is_refunded(relation: Any) -> None:
    ledger = xp.Ledger(epsilon=1, noise=xp.SeededNoise(1))
    release = ledger.run(xp.mechanisms.PrivateRange(epsilon=1, neighbours=relation), on=clear_data(100_000))
    found = published(release.value)
    assert release.part == found.level < LEVELS
    assert release.charged.exact_epsilon == Fraction(1, 2 ** (LEVELS - found.level))
    assert ledger.remaining.exact_epsilon == 1 - release.charged.exact_epsilon
    assert 20_200 < found.low < 20_255 < 20_265 < found.high < 20_320


def test_few_records_use_all_of_it() -> None:
    search = RangeSearch(1, "substitute")
    assert [search.first(size) for size in (0, 1, 100, 1_000, 10_000, 10**6, 10**9)] == [8, 8, 8, 8, 6, 3, 1]
    assert RangeSearch(1, "add-remove").first(10**9) == 1  # a private number decides on nothing


def test_spread_out_records_take_more_than_their_number_calls_for() -> None:
    """As many records whose sizes are all over the exponents: no cell is clear at the level for their number."""
    mechanism = xp.mechanisms.PrivateRange(epsilon=8, neighbours="substitute")
    size = 20_000
    rng = np.random.default_rng(1)
    spread = rng.choice([-1, 1], size) * np.exp2(rng.uniform(-40, 40, size))
    first = mechanism.search.first(size)
    assert {published(mechanism.sample(clear_data(size), NOISE)).level for _ in range(5)} == {first}
    assert min(published(mechanism.sample(spread, NOISE)).level for _ in range(5)) > first
    everywhere = rng.choice([-1, 1], size) * np.exp2(rng.uniform(-120, 120, size))
    assert xp.mechanisms.PrivateRange(epsilon=1, neighbours="substitute").sample(everywhere, NOISE) is WITHHELD


@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
@pytest.mark.parametrize("data", [np.full(5_000, 3.0), np.random.default_rng(0).normal(size=40), np.array([1e30, 5.0])])
def test_what_is_not_clear_is_withheld_for_the_price_of_all_levels(relation: Any, data: Any) -> None:
    """A single value, which has no range; and too few records: no point, and no nonsense."""
    mechanism = xp.mechanisms.PrivateRange(epsilon=1, neighbours=relation)
    source = xp.SeededNoise(8)
    for _ in range(20):
        found = mechanism.sample(data, source)
        assert found is WITHHELD
        assert mechanism.part_of(found) == "withheld"
    assert mechanism.guarantee.epsilon_of("withheld") == 1
    assert mechanism.describe(WITHHELD) == "withheld: no range was clear"


def test_a_range_is_never_a_point_nor_beside_the_data() -> None:
    """Across sizes and ε: what is published is more than a point, and holds most records."""
    source, rng = xp.SeededNoise(9), np.random.default_rng(2)
    shown = 0
    for size, epsilon in product((30, 100, 300, 1_000, 3_000), (0.3, 1, 4)):
        for data in (rng.normal(170, 10, size), rng.poisson(1, size).astype(float), rng.lognormal(8, 1, size)):
            for relation in ("substitute", "add-remove"):
                mechanism = xp.mechanisms.PrivateRange(epsilon=epsilon, neighbours=relation)  # type: ignore[arg-type]
                for _ in range(3 if SOAK else 1):
                    found = mechanism.sample(data, source)
                    if not isinstance(found, Withheld):
                        shown += 1
                        assert found.low < found.high
                        assert np.mean((data >= found.low) & (data <= found.high)) >= 0.6
    assert shown > (60 if SOAK else 20)


def test_a_public_number_of_records_that_is_too_small_is_refused() -> None:
    """With the least number they can be found if they lie close, and with one fewer never."""
    mechanism = xp.mechanisms.PrivateRange(epsilon=1, neighbours="substitute")
    least = mechanism.search.least_size
    mechanism.check(np.zeros(least))
    for data in (np.zeros(least - 1), xp.mechanisms.Tally(np.zeros(1), np.array([least - 1]))):
        with pytest.raises(InvalidValue, match=f"{least - 1} records are too few .* at least {least}"):
            mechanism.check(data)
    xp.mechanisms.PrivateRange(epsilon=1, neighbours="add-remove").check(np.zeros(0))
    half = xp.mechanisms.PrivateRange(epsilon="1/2", neighbours="substitute").search.least_size
    assert half == pytest.approx(2 * least, abs=8)


def test_the_range_reads_noisy_counts() -> None:
    noisy = np.zeros((2, DISTANCES), np.int64)
    noisy[0, 130], noisy[1, 128], noisy[1, 131] = 900, 1000, 900
    found = visible_range(noisy, 5.0, 1.0, 2900)
    assert found.interval == (5.0 - 2.0**4, 5.0 + 2.0**5)
    off = unsure(1.0, 7)  # cells 126 to 132
    assert (found.records, found.fewer, found.total) == (2800 - off, 900 - off, 2900)
    assert found.shows_most
    assert not visible_range(noisy, 5.0, 1.0, 3800).shows_most  # less than three quarters
    assert visible_range(noisy, 5.0, 1.0).total > 2800  # a private number: what noise may have taken is added
    noisy[1, 131] = threshold(1.0, 3) - 1  # three cells from the fullest
    assert visible_range(noisy, 5.0, 1.0).interval.high == 5.0 + 2.0**2
    nothing = visible_range(np.zeros((2, DISTANCES), np.int64), 5.0, 1.0, 10)
    assert (nothing.interval, nothing.records, nothing.shows_most) == ((5.0, 5.0), 0, False)


def test_records_equal_to_the_centre_count_on_both_sides() -> None:
    noisy = np.zeros((2, DISTANCES), np.int64)
    noisy[1, 0], noisy[1, 130] = 2000, 600
    found = visible_range(noisy, 5.0, 1.0, 2600)
    assert (found.interval, found.fewer) == ((5.0, 5.0 + 2.0**4), 2000 - unsure(1.0))
    assert found.shows_most
    noisy[1, 130] = 12  # noise may reach that somewhere, and the centre says nothing of where others are
    assert visible_range(noisy, 5.0, 1.0, 2012).interval == (5.0, 5.0)
    noisy[1, 0], noisy[1, 130] = 0, 2600
    assert not visible_range(noisy, 5.0, 1.0, 2600).shows_most  # all on one side: the centre is not in their middle


@pytest.mark.parametrize("relation", ["substitute", "add-remove"])
@pytest.mark.parametrize("data", [HOSTILE, (), (5.0,), (0.0,) * 30, (1e308, -1e308) * 20, (5e-324,) * 3])
def test_no_record_causes_an_error(relation: Any, data: Any) -> None:
    mechanism = xp.mechanisms.PrivateRange(epsilon=1000, neighbours=relation)
    values = np.array(data, float)
    found = mechanism.sample(values, NOISE)
    if not isinstance(found, Withheld):
        assert -LARGEST_RECORD <= found.low < found.high <= LARGEST_RECORD
    assert mechanism.sample(xp.mechanisms.Tally(values, np.full(len(data), -3, np.int64)), NOISE) is WITHHELD


def test_a_tally_counts_as_its_records() -> None:
    mechanism = xp.mechanisms.PrivateRange(epsilon=1, neighbours="substitute")
    data = np.repeat([1.0, 2.0, 9.0], 20_000)
    tally = xp.mechanisms.Tally(np.array([1.0, 2.0, 9.0]), np.full(3, 20_000))
    assert mechanism.sample(tally, xp.SeededNoise(5)) == mechanism.sample(data, xp.SeededNoise(5))


def test_what_is_told_of_a_range() -> None:
    assert (
        xp.mechanisms.PrivateRange(epsilon=1, neighbours="substitute").describe(FoundRange(1.0, 2.5, 3))
        == "1 … 2.5 (attempt 3 of 8)"
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 1, "neighbours": None}, "neighbours is"),
        ({"epsilon": "1e-11", "neighbours": "substitute"}, "split in 128"),
        ({"epsilon": 1, "neighbours": "substitute", "missing": "x"}, "missing"),
    ],
)
def test_what_is_refused(parameters: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        xp.mechanisms.PrivateRange(**parameters)


def test_data_of_another_shape_is_refused() -> None:
    with pytest.raises(InvalidValue, match="one-dimensional"):
        xp.mechanisms.PrivateRange(epsilon=1, neighbours="substitute").check(np.zeros((2, 2)))


@pytest.mark.slow
def test_an_audit_finds_nothing_but_a_price_that_is_too_low() -> None:
    """On data where one record decides whether a cell is likely to be shown."""
    mechanism = xp.mechanisms.PrivateRange(epsilon=16, neighbours="substitute")
    pairs = [(np.repeat([0.0, 8.0], [100, 5]), np.repeat([0.0, 8.0], [101, 4]))]
    assert not audit(mechanism, pairs, samples=400).refuted
    prices: dict[Part, Fraction] = {level: price / 16 for level, price in enumerate(mechanism.search.prices, 1)}
    cheap = xp.Guarantee({**prices, "withheld": mechanism.search.prices[-1] / 16})
    assert audit(mechanism, pairs, guarantee=cheap, part_of=mechanism.part_of, samples=400).refuted
