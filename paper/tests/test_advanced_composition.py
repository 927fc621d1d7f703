"""The appendix' conjecture: k coins of which k' said nothing cost no more than k − k' answers, even under
advanced composition. Checked exactly, with the optimal composition of randomised responses as the rule.

Found (docs/theory.md, prop-coin-conjecture and ex-adaptive-filter): true for coins of one ε; false as soon
as the ε of the next coin may be chosen after seeing the last answer.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from expost.verify import worst_delta_at
from paper.coins import LARGE, SMALL, OptimalFilter, coin, optimal_delta


@pytest.mark.parametrize("answers", [1, 2, 3])
@pytest.mark.parametrize("ratio", [Fraction(3, 2), Fraction(2), Fraction(4)])
@pytest.mark.parametrize("response", [Fraction(2), Fraction(3)])
def test_coins_of_one_epsilon_obey_the_conjecture(response: Fraction, ratio: Fraction, answers: int) -> None:
    delta = optimal_delta((response,) * answers, ratio)
    rule = OptimalFilter(ratio, delta, ((SMALL, response),))
    reached = [worst_delta_at([coin(response, SMALL)], rule, rounds, ratio) for rounds in range(1, answers + 5)]
    assert max(reached) <= delta
    assert reached == sorted(reached)
    if delta:
        certain = worst_delta_at([coin(response, SMALL, heads=Fraction(1))], rule, answers, ratio)
        assert certain == delta  # and without tails it is reached


def test_choosing_epsilon_after_the_answer_breaks_it() -> None:
    """Ratios 2 and 3, e^ε = 3/2, δ = 3/8: three adaptive rounds reach 89/216. Tails only slow it down."""
    ratio, delta = Fraction(3, 2), Fraction(3, 8)
    rule = OptimalFilter(ratio, delta, ((SMALL, Fraction(2)), (LARGE, Fraction(3))))
    answers = [coin(Fraction(2), SMALL, heads=Fraction(1)), coin(Fraction(3), LARGE, heads=Fraction(1))]
    assert worst_delta_at(answers, rule, 3, ratio) == Fraction(89, 216) > delta
    coins = [coin(Fraction(2), SMALL), coin(Fraction(3), LARGE)]
    assert worst_delta_at(coins, rule, 8, ratio) > delta
    for alone in (answers[:1], answers[1:]):
        assert worst_delta_at(alone, rule, 6, ratio) <= delta
