from fractions import Fraction

import pytest

from expost import Guarantee, InvalidValue
from expost.verify import FiniteInteraction, check_interaction, log_up
from expost.verify.interaction import History, interaction_delta

THREE = log_up(Fraction(3)).exact_epsilon


def responses(database: object, history: History) -> Fraction:
    """Each question is a bit's name; the answer is randomised response with ratio 3."""
    result = Fraction(1)
    for _, answer in history:
        result *= Fraction(3, 4) if answer == database else Fraction(1, 4)
    return result


def interaction(**changes: object) -> FiniteInteraction:
    parts: dict[str, object] = {
        "questions": lambda history: ["q"] if len(history) < 3 else [],
        "answers": lambda history, question: [0, 1],
        "probability": responses,
        "part_of": len,
        "neighbours": [(0, 1)],
    }
    return FiniteInteraction(**{**parts, **changes})


def test_pay_per_answer() -> None:
    assert check_interaction(interaction(), Guarantee({k: k * THREE for k in range(4)}))


def test_one_unit_too_cheap_is_found_at_any_depth() -> None:
    for depth in range(1, 4):
        cheap = Guarantee({k: max(Fraction(0), k * THREE - (k == depth) * Fraction(1, 10**11)) for k in range(4)})
        verdict = check_interaction(interaction(), cheap)
        assert verdict.holds is False
        assert verdict.witness is not None
        assert {len(transcript) for transcript in verdict.witness.event} == {depth}
        assert verdict.witness.probability > verdict.witness.allowed


def test_an_adversary_that_may_stop_anywhere_gets_more() -> None:
    """Where early parts are cheap, stopping when ahead beats any fixed number of questions."""
    guarantee = Guarantee({0: 0, 1: 0.25, 2: 0.75, 3: 1.5})
    anywhere = interaction_delta(interaction(), guarantee).lower
    at_the_end = interaction_delta(interaction(may_stop=lambda history: False), guarantee).upper
    assert anywhere > at_the_end > 0


def test_hidden_state_is_allowed() -> None:
    """A coin flipped at the start decides whether it answers truthfully at all; nobody sees the coin."""

    def probability(database: object, history: History) -> Fraction:
        blind = Fraction(1, 2) ** len(history)
        return blind / 2 + responses(database, history) / 2

    guarantee = Guarantee({k: k * THREE for k in range(4)})
    assert check_interaction(interaction(probability=probability), guarantee)
    assert interaction_delta(interaction(probability=probability), Guarantee.uniform(0)).upper < Fraction(1, 2)


def test_probabilities_must_add_up_along_the_tree() -> None:
    def clairvoyant(database: object, history: History) -> Fraction:
        return Fraction(1, 3) if history else Fraction(1)

    with pytest.raises(InvalidValue, match="must share the probability"):
        check_interaction(interaction(probability=clairvoyant), Guarantee.uniform(1))
    with pytest.raises(InvalidValue, match="the empty history has probability 1"):
        check_interaction(interaction(probability=lambda database, history: Fraction(0)), Guarantee.uniform(1))
