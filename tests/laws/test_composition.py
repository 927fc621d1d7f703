"""Algorithm 1 played exactly, over every adaptive adversary."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from expost import Cost, Guarantee
from expost.accounting import OdpFilter
from expost.guarantee import Part
from expost.verify import (
    FiniteMechanism,
    Move,
    check,
    hockey_stick,
    least_delta_at,
    log_up,
    play,
    tightest,
    worst_delta_at,
    worst_ratio,
)
from tables import epsilons, guarantee_of, laws, mechanisms, ratios
from toys import leaky_response, response

pytestmark = pytest.mark.slow


@st.composite
def games(draw: st.DrawFn) -> tuple[list[tuple[FiniteMechanism, Guarantee]], Cost]:
    """Two mechanisms with true guarantees, and a limit that buys a few rounds of them."""
    pairs = []
    for _ in range(2):
        mechanism = draw(mechanisms(outputs="abc"))
        pairs.append((mechanism, guarantee_of(mechanism, draw(epsilons))))
    rounds = draw(st.lists(st.sampled_from([guarantee for _, guarantee in pairs]), min_size=1, max_size=3))
    refund = draw(st.sampled_from(["0", "0.25", "0.5"]))
    epsilon = sum(guarantee.worst_case.exact_epsilon for guarantee in rounds) - Fraction(refund)
    delta = sum(guarantee.worst_case.exact_delta for guarantee in rounds)
    assume(epsilon >= 0)
    return pairs, Cost(epsilon, min(delta, Fraction(1)))


@given(games())
def test_no_adversary_passes_the_limit(game: tuple[list[tuple[FiniteMechanism, Guarantee]], Cost]) -> None:
    pairs, limit = game
    assert all(check(mechanism, guarantee) for mechanism, guarantee in pairs)
    assert play([Move.of(mechanism, guarantee) for mechanism, guarantee in pairs], limit, rounds=3)


@given(
    mechanisms(outputs="abc"),
    ratios,
    st.fractions(min_value=1, max_value=5, max_denominator=4),
    st.lists(st.tuples(laws("xy"), laws("xy")), min_size=3, max_size=3),
)
def test_the_induction_step(
    first: FiniteMechanism,
    allowed: dict[Part, Fraction],
    spare: Fraction,
    later: list[tuple[dict[str, Fraction], dict[str, Fraction]]],
) -> None:
    """The paper's Lemma 20: a mechanism, then for each of its outputs a pair of laws within what remains."""
    total = max(allowed.values()) * spare
    p, q = first.laws[0], first.laws[1]
    delta, _ = hockey_stick(p, q, lambda output: allowed[first.part_of(output)])
    after = Fraction(0)
    for output, (p2, q2) in zip("abc", later, strict=True):
        remaining = total / allowed[first.part_of(output)]
        after = max(after, hockey_stick(p2, q2, lambda _, remaining=remaining: remaining)[0])  # type: ignore[misc]
    joint = [
        {(o, then): law[o] * pair[side][then] for o, pair in zip("abc", later, strict=True) for then in "xy"}
        for side, law in enumerate((p, q))
    ]
    reached, _ = hockey_stick(joint[0], joint[1], lambda _: total)
    assert reached <= delta + (1 - delta) * after <= delta + after


# ---- tightness: randomised response, with and without a leak


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
@pytest.mark.parametrize("ratio", [Fraction(2), Fraction(7, 3)])
def test_pure_composition_is_tight_on_randomised_response(ratio: Fraction, rounds: int) -> None:
    each = tightest(response(ratio))
    limit = each.worst_case * rounds
    move = Move.of(response(ratio), each)
    assert play([move], limit, rounds + 2)
    assert worst_ratio([move], OdpFilter(limit), rounds + 2) == ratio**rounds
    assert limit.epsilon_units - log_up(ratio**rounds).epsilon_units <= rounds  # of 10⁻¹²


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_approximate_composition_is_tight_up_to_overlap_on_leaky_response(rounds: int) -> None:
    """The adversary reaches 1 − (1 − δ)^k at Σε: all of Σδ but what two leaks share."""
    ratio, delta = Fraction(2), Fraction(1, 8)
    move = Move.of(leaky_response(ratio, delta), Guarantee({"answer": log_up(ratio).exact_epsilon}, delta))
    limit = move.worst * rounds
    assert play([move], limit, rounds + 1)
    assert worst_delta_at([move], OdpFilter(limit), rounds + 1, ratio**rounds) == 1 - (1 - delta) ** rounds


def test_refunds_are_used_in_full() -> None:
    """A coin that answers nothing costs nothing; the adversary plays on until its ε is gone, and reaches it."""
    ratio = Fraction(2)
    quiet = response(ratio)
    laws_ = {x: {**{o: p / 2 for o, p in law.items()}, "nothing": Fraction(1, 2)} for x, law in quiet.laws.items()}
    coin = FiniteMechanism(laws_, [(0, 1)])
    move = Move.of(coin, tightest(coin))
    limit = move.worst * 2
    reached = [worst_delta_at([move], OdpFilter(limit), rounds, Fraction(3)) for rounds in (2, 4, 6)]
    assert reached[0] < reached[1] < reached[2]
    assert worst_ratio([move], OdpFilter(limit), 6) == ratio**2
    assert play([move], limit, 6)


# ---- negative controls


def test_a_delta_that_depends_on_the_part_breaks_it() -> None:
    """Reveal the database with probability ¼, else publish nothing; charge δ only when it was revealed.

    The limit is δ = ¼ and so is the guarantee on the part "revealed"; two rounds reach 7/16.
    """
    quarter = Fraction(1, 4)
    reveal = FiniteMechanism(
        {x: {"nothing": 1 - quarter, f"it is {x}": quarter} for x in (0, 1)},
        [(0, 1)],
        lambda output: "nothing" if output == "nothing" else "revealed",
    )
    assert least_delta_at(reveal, {"nothing": 1, "revealed": 1}) == quarter
    limit = Cost(0, quarter)
    honest = Move.of(reveal, Guarantee({"nothing": 0, "revealed": 0}, quarter))
    wrong = Move(reveal, limit, lambda part: limit if part == "revealed" else Cost(0))
    for rounds in range(1, 5):
        rule = OdpFilter(limit)
        assert worst_delta_at([honest], rule, rounds, Fraction(1)) == quarter
        assert worst_delta_at([wrong], rule, rounds, Fraction(1)) == 1 - (1 - quarter) ** rounds
    assert play([honest], limit, 2)
    assert not play([wrong], limit, 2)


def test_charging_the_best_case_breaks_it() -> None:
    move = Move(response(3), log_up(Fraction(3)), lambda part: Cost(0))
    assert not play([move], log_up(Fraction(3)), 2)


def test_charging_before_asking_whether_it_fits_breaks_it() -> None:
    """Admitting by the best case instead of the worst lets one mechanism overshoot."""
    big = response(9)
    move = Move(big, Cost(0), tightest(big).cost_of)
    assert not play([move], log_up(Fraction(3)), 1)
