from fractions import Fraction
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost import Guarantee, bracket
from expost.guarantee import Part
from expost.verify import (
    FiniteMechanism,
    Move,
    check,
    least_delta,
    least_delta_at,
    least_ratios,
    log_up,
    play,
    tightest,
)
from tables import mechanisms, ratios
from toys import leaky_response, response


@given(mechanisms(), ratios)
def test_the_least_delta_is_that_of_the_definition(mechanism: FiniteMechanism, allowed: dict[Part, Fraction]) -> None:
    """Definition def-odp quantifies over all sets of outputs; try them all."""
    worst = Fraction(0)
    for x, y in mechanism.ordered_pairs():
        p, q = mechanism.laws[x], mechanism.laws[y]
        for event in chain.from_iterable(combinations("abcd", size) for size in range(5)):
            bound = sum(allowed[mechanism.part_of(output)] * q[output] for output in event)
            worst = max(worst, sum((p[output] for output in event), Fraction(0)) - bound)
    assert least_delta_at(mechanism, allowed) == worst


def test_the_bracket_is_tight_and_right() -> None:
    found = least_delta(response(3), Guarantee.uniform(1))
    e = bracket.exp(Fraction(1))
    assert found.lower <= Fraction(3, 4) - e.lower / 4
    assert found.upper >= Fraction(3, 4) - e.upper / 4
    assert found.width < Fraction(1, 10**35)


def test_a_guarantee_that_holds_and_one_that_does_not() -> None:
    enough = log_up(Fraction(3))
    assert check(response(3), Guarantee.uniform(enough.exact_epsilon))
    less = Guarantee.uniform(enough.exact_epsilon - Fraction(1, 10**12))
    verdict = check(response(3), less)
    assert not verdict
    assert verdict.holds is False
    assert verdict.witness is not None
    assert verdict.witness.event == {"no"}
    assert verdict.witness.databases == (0, 1)
    assert verdict.witness.probability == Fraction(3, 4)
    assert verdict.witness.probability > verdict.witness.allowed
    assert "on 0] = 0.75 >" in str(verdict.witness)


def test_the_witness_of_a_delta() -> None:
    verdict = check(leaky_response(2, Fraction(1, 10)), Guarantee({"answer": 1}, delta="0.05"))
    assert verdict.witness is not None
    assert verdict.witness.event == {"it is 0"}
    assert check(leaky_response(2, Fraction(1, 10)), Guarantee({"answer": 1}, delta="0.1"))


def test_equality_is_decided_exactly() -> None:
    """At E = 0 the least δ is rational and may equal the guarantee's; elsewhere it never does."""
    assert least_delta_at(response(3), {"no": 1, "yes": 1}) == Fraction(1, 2)
    assert check(response(3), Guarantee.uniform(0, 0.5))
    assert not check(response(3), Guarantee.uniform(0, "0.499999999999999999"))


def test_close_calls_take_more_digits() -> None:
    """A δ that differs from the least one only in its last unit, with e^E irrational."""
    least = least_delta(response(3), Guarantee.uniform(1)).upper
    above = Fraction(int(least * 10**18) + 1, 10**18)
    assert check(response(3), Guarantee.uniform(1, above))
    assert not check(response(3), Guarantee.uniform(1, above - Fraction(1, 10**18)))


def test_least_ratios() -> None:
    mechanism = FiniteMechanism({0: {"a": "1/2", "b": "1/2"}, 1: {"a": "1/4", "b": "1/2", "c": "1/4"}}, [(0, 1)])
    assert least_ratios(mechanism) == {"a": 2, "b": 1, "c": None}
    with pytest.raises(xp.InvalidValue, match="part 'c' has no finite ε"):
        tightest(mechanism)
    guarantee = tightest(response(3), neighbours="substitute")
    assert guarantee.worst_case == log_up(Fraction(3))
    assert guarantee.neighbours == "substitute"


@given(st.fractions(min_value=1, max_value=10**6, max_denominator=10**9))
def test_log_up_is_enough_and_not_too_much(ratio: Fraction) -> None:
    cost = log_up(ratio)
    assert bracket.exp(cost.exact_epsilon).upper >= ratio
    if cost.epsilon_units > 1:
        assert bracket.exp(cost.exact_epsilon - Fraction(2, 10**12)).lower < ratio


def test_truncated_laws_give_brackets() -> None:
    almost = FiniteMechanism(
        {0: {"a": "0.7", "b": "0.2"}, 1: {"a": "0.3", "b": "0.6"}}, [(0, 1)], lambda output: "only"
    )
    found = least_delta(almost, Guarantee({"only": 0}))
    assert found.lower == Fraction(3, 10)
    assert found.upper == Fraction(1, 2)
    assert check(almost, Guarantee({"only": 0}, delta=0.6)).holds is True
    assert check(almost, Guarantee({"only": 0}, delta=0.4)).holds is None
    assert check(almost, Guarantee({"only": 0}, delta=0.2)).holds is False
    for exact_only in (
        lambda: least_delta_at(almost, {"only": 1}),
        lambda: least_ratios(almost),
        lambda: tightest(almost),
    ):
        with pytest.raises(xp.InvalidValue, match="sum to one"):
            exact_only()
    with pytest.raises(xp.InvalidValue, match="sum to one"):
        play([Move.of(almost, Guarantee({"only": 0}))], xp.Cost(0), 1)
    witness = check(almost, Guarantee({"only": 0}, delta=0.2)).witness
    assert witness is not None
    assert witness.allowed == Fraction("0.2") + Fraction("0.3") + Fraction("0.1")  # δ, Q, and what Q may hide


def test_neighbours_may_come_from_anywhere() -> None:
    """An iterator is read once, not exhausted by the first look."""
    mechanism = FiniteMechanism({0: {"a": 1}, 1: {"b": 1}}, iter([(0, 1)]), lambda output: "p")
    assert check(mechanism, Guarantee({"p": 0})).holds is False


def test_what_is_no_mechanism() -> None:
    for law in ({"a": "0.7", "b": "0.4"}, {"a": "-0.1", "b": "1.1"}):
        with pytest.raises(xp.InvalidValue, match="is not a law"):
            FiniteMechanism({0: law}, [])
    for neighbours in ([(0, 1)], [0], [(0, 0, 0)]):
        with pytest.raises(xp.InvalidValue, match="pairs of databases that have a law"):
            FiniteMechanism({0: {"a": Fraction(1)}}, neighbours)
    with pytest.raises(xp.errors.UnknownPart):
        check(response(2), Guarantee({"no": 1}))
