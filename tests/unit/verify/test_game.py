from fractions import Fraction

import pytest

from expost import Cost, Guarantee, InvalidValue
from expost.accounting import OdpFilter
from expost.verify import Move, play, tightest, worst_delta, worst_delta_at, worst_ratio
from toys import leaky_response, response


def test_one_round_is_the_mechanism_itself() -> None:
    mechanism = leaky_response(2, Fraction(1, 8))
    move = Move.of(mechanism, Guarantee({"answer": 1}, delta="0.125"))
    rule = OdpFilter(Cost(1, delta="0.125"))
    assert worst_delta_at([move], rule, 1, Fraction(2)) == Fraction(1, 8)
    assert worst_delta_at([move], rule, 5, Fraction(2)) == Fraction(1, 8)  # δ is spent after one round


def test_nothing_affordable_gains_nothing() -> None:
    move = Move.of(response(3), tightest(response(3)))
    assert worst_delta_at([move], OdpFilter(Cost(1)), 4, Fraction(1)) == 0
    assert worst_ratio([move], OdpFilter(Cost(1)), 4) == 1


def test_two_rounds_by_hand() -> None:
    """Two randomised responses of ratio 3 at ratio 1: the better of every adaptive plan is total variation."""
    move = Move.of(response(3), tightest(response(3)))
    rule = OdpFilter(Cost(10))
    assert worst_delta_at([move], rule, 2, Fraction(1)) == Fraction(9, 16) - Fraction(1, 16)
    assert worst_ratio([move], rule, 2) == 9


def test_a_bracket_holds_the_value() -> None:
    move = Move.of(response(3), tightest(response(3)))
    found = worst_delta([move], OdpFilter(Cost(10)), 2, Cost(1))
    assert found.width < Fraction(1, 10**30)
    assert worst_delta_at([move], OdpFilter(Cost(10)), 2, Fraction(3)) < found.lower
    assert found.upper < worst_delta_at([move], OdpFilter(Cost(10)), 2, Fraction(2))


def test_an_output_that_is_impossible_on_the_neighbour() -> None:
    move = Move.of(leaky_response(1, Fraction(1, 4)), Guarantee({"answer": 0}, delta="0.25"))
    assert worst_ratio([move], OdpFilter(Cost(1, delta=1)), 1) is None
    assert play([move], Cost(0, delta="0.5"), 4)


def test_a_game_has_rounds() -> None:
    move = Move.of(response(3), tightest(response(3)))
    assert worst_delta_at([move], OdpFilter(Cost(10)), 0, Fraction(1)) == 0
    with pytest.raises(InvalidValue, match="0 or more, got -1"):
        worst_ratio([move], OdpFilter(Cost(10)), -1)


def test_too_cheap_a_guarantee_loses_the_game() -> None:
    cheap = Guarantee.uniform(log := tightest(response(3)).worst_case.exact_epsilon - Fraction(1, 10**6))
    limit = Cost(2 * log)
    assert play([Move.of(response(3), cheap)], limit, 2).holds is False
