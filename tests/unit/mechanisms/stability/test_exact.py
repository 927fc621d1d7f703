"""The guarantees of propose-test-release, exactly, on all small data sets; and guarantees that do not hold."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost import bracket
from expost.mechanisms.stability.generalized import PrivateTest
from expost.mechanisms.stability.location import MeanOfRanks
from expost.mechanisms.stability.quantile_range import BinOfRange, LogarithmOfRange, Scale
from expost.mechanisms.stability.test import StabilityTest
from expost.mechanisms.stability.votes import WinningCell
from expost.verify import FiniteMechanism, law, least_delta_at
from ptr_model import BOTTOM, Law, databases, first_stable, laplace, leg_or_bottom, pairs, passing, tabulated

pytestmark = pytest.mark.slow


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
SMALL = [((0, 1, 2, 3), 4), ((0, 1, 5, 20), 5), ((0, 1, 2), 7), ((0, 1, 3, 9), 3), ((0, 1, 5), 1)]


def bins(base: str = "2") -> tuple[BinOfRange, BinOfRange]:
    first, second = (
        BinOfRange(low=Fraction(1, 4), high=Fraction(3, 4), scale=Scale(Fraction(base), shift), missing=0.0)
        for shift in (Fraction(0), HALF)
    )
    return first, second


# ---- the test


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "3", "20"])
@pytest.mark.parametrize("delta", ["0.4", "1e-3", "1e-6", "1e-18"])
def test_the_threshold_is_the_least_that_keeps_the_tail(epsilon: str, delta: str) -> None:
    test = StabilityTest(Fraction(epsilon), Fraction(delta))
    fall = bracket.exp(-test.epsilon, 80)
    assert passing(fall.upper, 0, test.threshold) <= test.delta
    if test.threshold:
        assert passing(fall.lower, 0, test.threshold - 1) > test.delta
    assert 1 - passing(fall.upper, test.cap, test.threshold) < test.delta


def test_the_test_is_the_one_on_paper() -> None:
    test = StabilityTest(Fraction(1), Fraction(1, 10))
    for distance in range(4):
        truth = passing(bracket.exp(Fraction(-1)).upper, distance, test.threshold)
        ours = law(partial(test.passes, distance), missing=Fraction(1, 50))
        assert ours[True] <= truth + Fraction(1, 10**30) <= ours[True] + Fraction(1, 50) + Fraction(1, 10**30)


# ---- the range between quartiles


@pytest.mark.parametrize("fall", [HALF, THIRD])
@pytest.mark.parametrize("base", ["2", "4", "1.2"])
@pytest.mark.parametrize(("domain", "size"), SMALL)
def test_bins_cost_one_two_two(domain: tuple[int, ...], size: int, base: str, fall: Fraction) -> None:
    threshold = 2
    model = tabulated(bins(base), databases(domain, size), fall, threshold)
    each = passing(fall, 0, threshold)
    prices = {1: 1 / fall, 2: fall**-2, BOTTOM: fall**-2}
    assert least_delta_at(model, prices) <= 1 - (1 - each) ** 2


def test_legs_need_half_of_delta_each() -> None:
    """The paper's Lemma 10 claims δ for legs with δ each. It takes 1 − (1 − δ)², exactly, at any ε at all."""
    threshold, fall = 2, HALF
    x, y = (0, 0, 1), (0, 0, 10)
    each = passing(fall, 0, threshold)
    model = tabulated(bins(), [x, y], fall, threshold)
    for price in (8, 10**9):
        needed = least_delta_at(model, {1: price, 2: price, BOTTOM: price})
        assert needed == 1 - (1 - each) ** 2 > each


def test_the_real_thresholds_at_the_counterexample() -> None:
    """With the threshold of legs that do not halve δ the guarantee is refuted; with the mechanism's own it holds."""
    names, fall = [(0, 0, 1), (0, 0, 10)], bracket.exp(Fraction(-1), 60).upper
    real = xp.mechanisms.StableInterquartileRange(epsilon=2, delta="0.27")
    careless = StabilityTest(Fraction(1), Fraction("0.27"))
    prices = {1: fall**-3, 2: fall**-3, BOTTOM: fall**-2}
    assert least_delta_at(tabulated(bins(), names, fall, real.legs.test.threshold), prices) <= Fraction("0.27")
    assert least_delta_at(tabulated(bins(), names, fall, careless.threshold), prices) > Fraction("0.45")


@pytest.mark.parametrize(
    ("part", "distances"), [(1, [(4, 3), (4, 4)]), (2, [(5, 6), (4, 3)]), (BOTTOM, [(5, 6), (5, 6)])]
)
def test_each_price_of_two_legs_is_needed(part: Any, distances: list[tuple[int, int]]) -> None:
    """Negative control: distances on two neighbours for which taking ε off a part is found out by more than δ."""
    fall, threshold = HALF, 4
    laws = {
        side: first_stable([(leg[side], {"bin": Fraction(1)}) for leg in distances], fall, threshold) for side in (0, 1)
    }
    model = FiniteMechanism(laws, [(0, 1)], leg_or_bottom)
    allowed = 1 - (1 - passing(fall, 0, threshold)) ** 2
    prices = {1: Fraction(2), 2: Fraction(4), BOTTOM: Fraction(4)}
    assert least_delta_at(model, prices) == 0
    assert least_delta_at(model, {**prices, part: prices[part] / 2}) > allowed


def test_a_distance_off_by_one_is_found_out() -> None:
    """Negative control: releasing bins at A instead of A − 1 needs e^ε times the δ."""
    fall, threshold = HALF, 3
    names = [(0, 0, 1), (0, 0, 10)]
    legs = {
        x: [(p.distance(np.array(x), 9) + 1, {p.release(np.array(x), None): Fraction(1)}) for p in bins()]
        for x in names
    }
    model = FiniteMechanism({x: first_stable(legs[x], fall, threshold) for x in names}, pairs(names), leg_or_bottom)
    each = passing(fall, 0, threshold)
    assert least_delta_at(model, {1: 2, 2: 4, BOTTOM: 4}) > 1 - (1 - each) ** 2


@pytest.mark.parametrize(("domain", "size"), SMALL[:4])
def test_the_paper_s_release_costs_two_three_two(domain: tuple[int, ...], size: int) -> None:
    """Noise on the bin's logarithm, in half bins: 2ε for leg one, 3ε for leg two or without the leg; ⊥ 2ε."""
    fall, threshold = Fraction(1, 4), 2
    step = HALF  # e^−(ε/2): two steps in a bin

    def noisy(proposal: Any, x: tuple[int, ...]) -> Law:
        width = x[-(-3 * size // 4) - 1] - x[-(-size // 4) - 1]
        if not width:
            return {"zero": Fraction(1)}
        j = proposal.scale.index(Fraction(width))
        upper_half = Fraction(width) ** 2 >= proposal.scale.edge(j) * proposal.scale.edge(j + 1)
        return laplace(2 * j + upper_half, step, range(-4, 16))

    names = databases(domain, size)
    model = tabulated(bins(), names, fall, threshold, noisy)
    allowed = 1 - (1 - passing(fall, 0, threshold)) ** 2
    assert least_delta_at(model, {1: fall**-2, 2: fall**-3, BOTTOM: fall**-2}) <= allowed
    hidden = {x: _without_leg(law_) for x, law_ in model.laws.items()}
    one = FiniteMechanism(hidden, model.neighbours, lambda o: BOTTOM if o == BOTTOM else "value")
    assert least_delta_at(one, {"value": fall**-3, BOTTOM: fall**-2}) <= allowed


def _without_leg(law_: Any) -> Law:
    merged: Law = {}
    for output, mass in law_.items():
        key = output if output == BOTTOM else output[1]
        merged[key] = merged.get(key, Fraction(0)) + mass
    return merged


def test_the_three_cases_as_a_table_of_costs() -> None:
    """ε, δ for each leg: differential privacy, the paper's two analyses, and ours."""
    one = xp.mechanisms.StableNoisyInterquartileRange(epsilon=3, delta=2e-6).guarantee
    ours = xp.mechanisms.StableInterquartileRange(epsilon=2, delta=2e-6).guarantee
    leg = xp.mechanisms.ProposeTestRelease(
        proposal=xp.mechanisms.StableNoisyInterquartileRange(epsilon=3, delta=1e-6).proposals(Fraction(1))[0],
        test_epsilon=1,
        delta=1e-6,
    ).guarantee
    table = {
        "one mechanism": [one.epsilon_of("released"), one.epsilon_of("released"), one.epsilon_of("withheld")],
        "two mechanisms": [
            leg.epsilon_of("released"),
            leg.epsilon_of("withheld") + leg.epsilon_of("released"),
            2 * leg.epsilon_of("withheld"),
        ],
        "ours": [ours.epsilon_of(1), ours.epsilon_of(2), ours.epsilon_of("withheld")],
    }
    assert table == {"one mechanism": [3, 3, 2], "two mechanisms": [2, 3, 2], "ours": [1, 2, 2]}
    assert one.delta == ours.delta == 2 * leg.delta


# ---- location


@pytest.mark.parametrize(
    "window", [{"quantile": HALF}, {"quantile": Fraction(1)}, {"trim": Fraction(1, 4)}, {"trim": THIRD}]
)
@pytest.mark.parametrize(("domain", "size"), [((0, 1, 2, 3), 4), ((0, 1, 4), 5), ((0, 2, 3), 6), ((0, 3), 1)])
def test_location(window: dict[str, Fraction], domain: tuple[int, ...], size: int) -> None:
    fall, threshold, proposed = THIRD, 1, 1
    proposal = MeanOfRanks(
        proposed=Fraction(proposed),
        epsilon=Fraction(1),
        bounds=(float(min(domain)), float(max(domain))),
        missing=0.0,
        **window,
    )
    first, last = proposal.ranks(size)
    width = last - first + 1

    def noisy(_: Any, x: tuple[int, ...]) -> Law:  # the mean in steps of 1/width, so that it is whole
        return laplace(sum(x[first - 1 : last]), HALF, range(min(domain) * width, max(domain) * width + 1))

    model = tabulated([proposal], databases(domain, size), fall, threshold, noisy)
    price = HALF ** -(proposed * width) / fall
    allowed = passing(fall, 0, threshold)
    assert least_delta_at(model, {1: price, BOTTOM: 1 / fall}) <= allowed


def test_location_without_a_test_is_found_out() -> None:
    """Negative control: a threshold one too low."""
    fall, names = HALF, databases((0, 40), 5)
    proposal = MeanOfRanks(proposed=Fraction(1), epsilon=Fraction(1), bounds=(0.0, 40.0), missing=0.0, quantile=HALF)
    model = tabulated([proposal], names, fall, 2, lambda _, x: laplace(x[2], HALF, range(41)))
    assert least_delta_at(model, {1: 4, BOTTOM: 2}) > Fraction(99, 100) * passing(fall, 0, 2)
    assert least_delta_at(model, {1: 4, BOTTOM: 2}) > passing(fall, 0, 3)


# ---- votes


@pytest.mark.parametrize(("cells", "blocks"), [(2, 7), (3, 6)])
def test_votes_on_two_grids(cells: int, blocks: int) -> None:
    """Fits are half cells apart, so that the two grids see different votes."""
    fall, threshold = HALF, 1
    names = databases(range(2 * cells), blocks)
    proposals = [WinningCell(cell=(1.0,), shift=Fraction(leg, 2)) for leg in range(2)]

    def legs(x: tuple[int, ...]) -> list[tuple[int, Law]]:
        fits = np.array(x, dtype=float)[:, None] / 2 + 0.25
        return [(p.distance(fits, 9), {p.release(fits, None): Fraction(1)}) for p in proposals]

    laws = {x: first_stable(legs(x), fall, threshold) for x in names}
    model = FiniteMechanism(laws, pairs(names), leg_or_bottom)
    each = passing(fall, 0, threshold)
    assert least_delta_at(model, {1: 2, 2: 4, BOTTOM: 4}) <= 1 - (1 - each) ** 2


# ---- chains and the generalised form


def bit(ones: Fraction) -> Law:
    return {1: ones, 0: 1 - ones}


def chain(distance: int, ones: Fraction, fall: Fraction, threshold: int, publish_all: bool) -> Law:
    """Two legs, each passing by this distance and adding a bit; ⊥ in gives ⊥ out."""
    p = passing(fall, distance, threshold)
    out: Law = {(): 1 - p, BOTTOM: Fraction(0)}
    for b, mass in bit(ones).items():
        out[(b,)] = p * mass * (1 - p)
        for c, other in bit(ones).items():
            out[b, c] = p * mass * p * other
    if publish_all:
        return {o: mass for o, mass in out.items() if o != BOTTOM}
    last = {o: mass for o, mass in out.items() if o != BOTTOM and len(o) == 2}
    return {**last, BOTTOM: 1 - sum(last.values())}


def test_values_passed_on_are_not_free() -> None:
    """In a chain a leg that answered costs 2ε, not ε; 4ε for two is attained even if only the last is published."""
    fall, threshold = HALF, 5
    laws = {
        "x": chain(threshold, 1 / (1 + fall), fall, threshold, False),
        "y": chain(threshold - 1, fall / (1 + fall), fall, threshold, False),
    }
    model = FiniteMechanism(laws, [("x", "y")], lambda o: BOTTOM if o == BOTTOM else "value")
    excess = (1 - fall) * fall**2 / (1 + fall) ** 4
    assert least_delta_at(model, {"value": fall**-3, BOTTOM: 4}) >= excess > 2 * passing(fall, 0, threshold)
    assert least_delta_at(model, {"value": fall**-4, BOTTOM: 4}) == 0


def test_chains_cost_what_they_say() -> None:
    fall, threshold = HALF, 3
    distances = [0, 1, 2, 3, 4]
    for d, e in product(distances, repeat=2):
        if abs(d - e) <= 1:
            ones = [1 / (1 + fall), fall / (1 + fall)]
            laws = {i: chain(k, ones[i], fall, threshold, True) for i, k in enumerate((d, e))}
            model = FiniteMechanism(laws, [(0, 1)], len)
            assert least_delta_at(model, {0: 2, 1: 8, 2: 16}) == 0
    mechanism = xp.mechanisms.Chain(
        legs=(lambda values: Toy(1), lambda values: Toy(2)), prices=(1, 1), test_epsilon=1, delta=1e-6
    )
    assert [mechanism.guarantee.epsilon_of(i) for i in range(3)] == [1, 3, 4]


@dataclass(frozen=True)
class Toy(xp.mechanisms.Proposal):
    """Reads its distance off the data and releases a number."""

    number: int
    price = 1

    def distance(self, data: Any, cap: int) -> int:
        return min(cap, int(data))

    def release(self, data: Any, noise: xp.noise.NoiseSource) -> int:
        return self.number


def test_chains_stop_at_the_first_bottom_and_pass_values_on() -> None:
    far, near = 10**6, 0
    legs = (lambda values: Toy(1), lambda values: Toy(values[0] + 1))
    mechanism = xp.mechanisms.Chain(legs=legs, prices=(1, 1), test_epsilon=1, delta=1e-9)
    assert mechanism.sample(far, xp.SeededNoise(1)) == (1, 2)
    assert mechanism.sample(near, xp.SeededNoise(1)) == ()
    assert (mechanism.part_of((1, 2)), mechanism.part_of(())) == (2, 0)
    cheap = xp.mechanisms.Chain(legs=legs, prices=(1, "0.5"), test_epsilon=1, delta=1e-9)
    with pytest.raises(xp.InvalidValue, match="costs more than"):
        cheap.sample(far, xp.SeededNoise(1))
    with pytest.raises(xp.InvalidValue, match="price for each"):
        xp.mechanisms.Chain(legs=legs, prices=(1,), test_epsilon=1, delta=1e-9)


def test_a_mechanism_of_one_s_own() -> None:
    """From a proposal alone: the guarantee, the test, the ledger."""
    mechanism = xp.mechanisms.ProposeTestRelease(proposal=Toy(7), test_epsilon="0.5", delta=1e-6)
    assert mechanism.guarantee == xp.Guarantee({"released": "1.5", "withheld": "0.5"}, 1e-6, neighbours="substitute")
    ledger = xp.Ledger(epsilon=2, delta=1e-5, noise=xp.SeededNoise(3))
    assert ledger.run(mechanism, on=10**6).value == 7
    assert ledger.spent == xp.Cost("1.5", 1e-6)
    cheap = xp.mechanisms.ProposeTestRelease(proposal=Free(), test_epsilon="0.25", delta=1e-6)
    assert ledger.run(cheap, on=0).withheld
    assert ledger.spent == xp.Cost("1.75", 2e-6)
    several = xp.mechanisms.FirstStable(proposals=(Free(), Toy(7)), test_epsilon=1, delta=1e-6)
    assert several.guarantee == xp.Guarantee({1: 1, 2: 3, "withheld": 2}, 1e-6, neighbours="substitute")
    assert several.sample(10**6, xp.SeededNoise(1)) == (1, "free")
    assert several.describe((1, "free")) == "'free' (attempt 1 of 2)"
    with pytest.raises(xp.InvalidValue, match="at least one"):
        xp.mechanisms.FirstStable(proposals=(), test_epsilon=1, delta=1e-6)


@dataclass(frozen=True)
class Free(Toy):
    """A release that costs nothing where it is safe."""

    number: int = 0
    price = 0

    def release(self, data: Any, noise: xp.noise.NoiseSource) -> str:  # type: ignore[override]
        return "free"


@dataclass(frozen=True)
class LeakyTest(PrivateTest):
    epsilon: Any
    delta: Any
    mistake: Any

    def passes(self, data: Any, noise: xp.noise.NoiseSource) -> bool:
        return bool(data)


def test_the_generalised_form() -> None:
    """max(δ, δ′) + δ̂, attained by a test that errs on one side and a release that leaks."""
    mechanism = xp.mechanisms.TestedRelease(
        test=LeakyTest("0.5", "0.01", "0.02"), release=lambda d, n: d, release_epsilon=1, release_delta="0.03"
    )
    assert mechanism.guarantee == xp.Guarantee({"released": "1.5", "withheld": "0.5"}, "0.04", neighbours="substitute")
    assert mechanism.sample(3, xp.SeededNoise(0)) == 3
    assert mechanism.part_of(mechanism.sample(0, xp.SeededNoise(0))) == "withheld"
    tilt, leak, extra = Fraction(2), Fraction(1, 10), Fraction(1, 20)  # e^ε of test and release, δ of release, δ̂
    q = Fraction(1, 5)
    p = tilt * q + extra  # the test passes more often on x, by e^ε and δ̂
    on_x: Law = {"leak": leak, 1: (1 - leak) * Fraction(2, 3), 0: (1 - leak) * Fraction(1, 3)}
    on_y: Law = {1: Fraction(1, 3), 0: Fraction(2, 3)}
    laws = {
        "x": {**{v: p * m for v, m in on_x.items()}, BOTTOM: 1 - p},
        "y": {**{v: q * m for v, m in on_y.items()}, BOTTOM: 1 - q},
    }
    model = FiniteMechanism(laws, [("x", "y")], lambda o: BOTTOM if o == BOTTOM else "value")
    assert 0 < least_delta_at(model, {"value": tilt * 2, BOTTOM: tilt}) <= leak + extra


def test_real_code_has_the_law_of_the_model() -> None:
    """The very code that runs, every draw made: what the model says, but for the mass left out."""
    missing = Fraction(1, 5)
    mechanism = xp.mechanisms.StableInterquartileRange(epsilon=2, delta="0.2")
    legs, threshold = bins(), mechanism.legs.test.threshold
    fall = bracket.exp(Fraction(-1), 60).upper
    for x in ((0, 0, 1), (0, 1, 1, 1, 1)):
        ours = law(partial(mechanism.sample, np.array(x)), missing=missing)
        paper = tabulated(legs, [x], fall, threshold).laws[x]
        for output, mass in ours.items():
            key = BOTTOM if output is xp.WITHHELD else (output[0], tuple(output[1:]))
            assert mass <= paper[key] + Fraction(1, 10**30)


def test_noise_on_the_logarithm_stays_in_its_bin_without_noise() -> None:
    """H is clipped to its bin, which is what bounds its sensitivity."""
    proposal = LogarithmOfRange(
        low=Fraction(1, 4),
        high=Fraction(3, 4),
        scale=Scale(Fraction(2), Fraction(0)),
        missing=0.0,
        epsilon=Fraction(10**6),
    )
    for width in (1.0, 1.5, np.nextafter(2.0, 0), 2.0, 1e-300, 1e300):
        value = proposal.release(np.array([0.0, 0.0, width, width]), xp.SeededNoise(0))
        assert width / 1.002 <= value <= width * 1.0001
    assert proposal.release(np.zeros(4), xp.SeededNoise(0)) == 0.0


def test_a_chain_refuses_a_first_leg_about_other_neighbours_for_free() -> None:
    @dataclass(frozen=True)
    class Elsewhere(xp.mechanisms.Proposal):
        price = 0
        neighbours = "add-remove"

        def distance(self, data: Any, cap: int) -> int:
            return cap

        def release(self, data: Any, noise: xp.noise.NoiseSource) -> int:
            return 1

    ledger = xp.Ledger(epsilon=5, delta=1e-3)
    chain = xp.mechanisms.Chain(legs=(lambda values: Elsewhere(),), prices=(0,), test_epsilon=1, delta=1e-6)
    with pytest.raises(xp.InvalidValue, match="'add-remove' neighbours"):
        ledger.run(chain, on=np.zeros(5))
    assert not ledger.spent
