"""Every variant of sparse vector, every part, every adaptive way of asking: exactly. And the textbook mistakes."""

from fractions import Fraction

import pytest

from expost.verify.interaction import History, best_strategy
from svt_model import BELOW, REACH, AdaptiveModel, Model, Noise, interaction

pytestmark = pytest.mark.slow


THIRD, HALF = Fraction(1, 3), Fraction(1, 2)
GENERAL = [(0, 1), (1, 0), (0, 0)]  # a value moves up, down or not at all; all of them may be mixed
UP, DOWN = [(1, 0), (0, 0)], [(0, 1), (0, 0)]  # monotone: one database has all values at least as large


def worst(model: Model | AdaptiveModel, questions: list[tuple[int, int]], rounds: int) -> Fraction:
    tree = model.interaction(questions, rounds)
    return max(best_strategy(tree, pair, model.ratio)[0] for pair in tree.ordered_pairs())


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize(("alpha", "a"), [(THIRD, HALF), (HALF, THIRD)])
def test_general_questions(one_sided: bool, gap: bool, alpha: Fraction, a: Fraction) -> None:
    model = Model(alpha, a, at_most=2, one_sided=one_sided, gap=gap)
    assert worst(model, GENERAL, 2 if gap else 3) <= model.slack < Fraction(1, 10**5)


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("one_sided", [False, True])
@pytest.mark.parametrize("questions", [UP, DOWN])
def test_monotone_questions(questions: list[tuple[int, int]], one_sided: bool, gap: bool) -> None:
    model = Model(THIRD, HALF, at_most=2, monotone=True, one_sided=one_sided, gap=gap)
    assert worst(model, questions, 2 if gap else 4) <= model.slack


def test_monotone_prices_do_not_hold_for_general_questions() -> None:
    """Counts under substitution move both ways; half the noise is then too little."""
    for one_sided in (False, True):
        model = Model(THIRD, HALF, at_most=2, monotone=True, one_sided=one_sided)
        assert worst(model, GENERAL, 3) > Fraction(1, 100)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("one_sided", [False, True])
def test_adaptive(one_sided: bool, monotone: bool) -> None:
    model = AdaptiveModel(THIRD, HALF, at_most=2, margin=1, monotone=monotone, one_sided=one_sided)
    for questions in (UP, DOWN) if monotone else (GENERAL,):
        assert worst(model, questions, 3) <= model.slack


def test_each_share_is_needed() -> None:
    """A guarantee that is one share cheaper throughout is found out by some question, close to the threshold or far."""
    for one_sided in (False, True):
        model = Model(THIRD, HALF, at_most=1, one_sided=one_sided)
        questions = [(k, k + 1) for k in (-6, 0, 5)] + [(k + 1, k) for k in (-6, 0, 5)]
        tree = model.interaction(questions, 3)

        def cheaper(part: tuple[int, int], model: Model = model) -> Fraction:
            return model.ratio((part[0], max(part[1] - 1, 0)))

        assert max(best_strategy(tree, pair, cheaper)[0] for pair in tree.ordered_pairs()) > model.slack  # type: ignore[arg-type]


# ---- the textbook's wrong variants, each at the price of the right one


def refuted(probability: object, model: Model, questions: list[tuple[int, int]] = GENERAL, rounds: int = 3) -> Fraction:
    tree = interaction(probability, questions, rounds, [BELOW, True], model.part_of, model.finished)
    return max(best_strategy(tree, pair, model.ratio)[0] for pair in tree.ordered_pairs())


MODEL = Model(THIRD, HALF, at_most=2)
ALPHA, A = Noise(THIRD, one_sided=False), Noise(HALF, one_sided=False)


def test_without_noise_on_the_values() -> None:
    def probability(side: int, history: History) -> Fraction:
        total = Fraction(0)
        for z in range(-REACH, REACH + 1):
            agrees = all((question[side] >= z) == (answer != BELOW) for question, answer in history)
            total += ALPHA.mass(z) * agrees
        return total

    assert refuted(probability, MODEL) > Fraction(1, 100)


def test_without_noise_on_the_threshold() -> None:
    def probability(side: int, history: History) -> Fraction:
        total = Fraction(1)
        for question, answer in history:
            above = A.reaches(-question[side])
            total *= 1 - above if answer == BELOW else above
        return total

    assert refuted(probability, MODEL, rounds=5) > Fraction(1, 1000)


def test_without_the_factor_c_in_the_noise() -> None:
    """Noise for one positive, the price of two: each positive is charged half of what it costs."""
    wrong = Model(THIRD, HALF**2, at_most=2)
    assert refuted(wrong.probability, MODEL) > Fraction(1, 100)


def test_refreshing_the_threshold_without_paying_for_it() -> None:
    """A fresh ρ for every question, at the price of one ρ: nothing holds the negatives together."""

    def probability(side: int, history: History) -> Fraction:
        total = Fraction(1)
        for one in history:
            total *= MODEL.probability(side, (one,)) / MODEL.probability(side, ())
        return total

    many_negatives = Model(THIRD, HALF, at_most=1)
    tree = interaction(probability, DOWN[:1], 6, [BELOW, True], lambda history: part(history), many_negatives.finished)

    def part(history: History) -> tuple[int, int]:
        return 1, 2 * sum(answer != BELOW for _, answer in history)

    assert max(best_strategy(tree, pair, MODEL.ratio)[0] for pair in tree.ordered_pairs()) > Fraction(1, 1000)


def test_counting_no_positives() -> None:
    """No cut-off: any number of positives at the price of one."""
    endless = Model(THIRD, HALF, at_most=9)

    def part_of(history: History) -> tuple[int, int]:
        return 1, 2 * min(1, sum(answer != BELOW for _, answer in history))

    questions = [(-3, -4), (3, 4)]  # a positive far below the bar says much, and so does a negative far above
    tree = interaction(endless.probability, questions, 4, [BELOW, True], part_of, endless.finished)
    assert max(best_strategy(tree, pair, MODEL.ratio)[0] for pair in tree.ordered_pairs()) > 100 * endless.slack


def test_publishing_the_noisy_value_that_was_compared() -> None:
    """q + ν for a positive instead of the gap: together with the negatives it shows where the threshold is."""
    values = range(-1, 4)

    def probability(side: int, history: History) -> Fraction:
        total = Fraction(0)
        for z in range(-REACH, REACH + 1):
            product = ALPHA.mass(z)
            for question, answer in history:
                if answer == BELOW:
                    product *= 1 - A.reaches(z - question[side])
                elif answer == "else":
                    told = sum((A.mass(v - question[side]) for v in values if v >= z), Fraction(0))
                    product *= A.reaches(z - question[side]) - told
                else:
                    product *= A.mass(answer - question[side]) * (answer >= z)
            total += product
        return total

    answers = [BELOW, "else", *values]
    model = Model(THIRD, HALF, at_most=1, gap=True)

    def ratio_at(part: object) -> Fraction:
        return model.ratio(part)  # type: ignore[arg-type]

    def finished(history: History) -> bool:
        return any(answer != BELOW for _, answer in history)

    def part_of(history: History) -> object:
        return model.mechanism_part(int(finished(history)), len(history))

    tree = interaction(probability, [(0, 1), (1, 0)], 4, answers, part_of, finished)
    assert max(best_strategy(tree, pair, ratio_at)[0] for pair in tree.ordered_pairs()) > Fraction(1, 10**4)
