"""Noise reduction: its guarantee exactly, its stopping rules, its error at the stop, and its interaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import exp
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.mechanisms.reduction.levels import Reduced
from expost.mechanisms.reduction.rules import StoppingRule
from expost.noise.chain import stay
from expost.noise.sums import LaplaceSteps
from expost.verify import FiniteMechanism, check, log_up

pytestmark = pytest.mark.slow
NOISE = xp.SeededNoise(11)


def reduction(**changes: Any) -> xp.NoiseReduction:
    return xp.NoiseReduction(**{"epsilon": 1, "sensitivity": 1, "until": xp.RelativeError(within="0.1"), **changes})


# ---- the guarantee


def laplace(base: Fraction, k: int) -> Fraction:
    return (1 - base) / (1 + base) * base ** abs(k)


@pytest.mark.parametrize(("wide", "narrow"), [(Fraction(1, 2), Fraction(1, 4)), (Fraction(9, 10), Fraction(1, 10))])
def test_in_rationals_two_answers_reveal_what_the_second_does(wide: Fraction, narrow: Fraction) -> None:
    """With e^−rate rational, on a square of answers: the ratio is that of the last. Independent noise reveals more."""
    same = narrow * (1 - wide) ** 2 / (wide * (1 - narrow) ** 2)

    def chained(data: int, first: int, second: int) -> Fraction:
        jump = (1 - same) * laplace(wide, first - second)
        return laplace(narrow, second - data) * (jump + (same if first == second else 0))

    def apart(data: int, first: int, second: int) -> Fraction:
        return laplace(wide, first - data) * laplace(narrow, second - data)

    def worst(model: Callable[[int, int, int], Fraction]) -> Fraction:
        answers = list(product(range(-4, 6), repeat=2))
        return max(model(a, *pair) / model(b, *pair) for a, b in ((0, 1), (1, 0)) for pair in answers)

    assert worst(chained) == 1 / narrow
    assert worst(apart) == 1 / narrow / wide


def stopped(data: int, chained: bool) -> dict[Any, Fraction]:
    """Outcomes of two levels, e^−rate ½ and ¼, that stop at a first answer of 2 or more in size; tails are summed."""
    wide, narrow = Fraction(1, 2), Fraction(1, 4)
    same = narrow * (1 - wide) ** 2 / (wide * (1 - narrow) ** 2) if chained else Fraction(0)
    found: dict[Any, Fraction] = {
        side: wide ** (2 - side * data) / (1 + wide) for side in (1, -1)
    }  # what is 2 or more, or −2 or less

    def both(first: int, second: int) -> Fraction:
        jump = laplace(wide, first - (second if chained else data))
        return laplace(narrow, second - data) * ((1 - same) * jump + (same if first == second else 0))

    for first in (-1, 0, 1):
        found |= {(first, second): both(first, second) for second in range(-3, 5)}
        fall = narrow * wide if chained else narrow  # from one second answer to the next, beyond these
        found |= {(first, end): both(first, beyond) / (1 - fall) for end, beyond in (("more", 5), ("less", -4))}
    return found


def test_the_guarantee_by_verify_at_a_stop_that_reads_the_first_answer() -> None:
    """Of a chain it holds, exactly; of independent noises that are charged as if they were one, it does not."""
    prices = xp.Guarantee({1: log_up(Fraction(2)).exact_epsilon, 2: log_up(Fraction(4)).exact_epsilon})

    def verdict(chained: bool) -> bool:
        laws = {data: stopped(data, chained) for data in (0, 1)}
        assert all(sum(law.values()) == 1 for law in laws.values())
        return bool(
            check(FiniteMechanism(laws, [(0, 1)], lambda output: 2 if isinstance(output, tuple) else 1), prices)
        )

    assert verdict(chained=True)
    assert not verdict(chained=False)


def test_levels_cost_what_they_say() -> None:
    prices = [reduction(levels=4, ratio=2).guarantee.epsilon_of(level) for level in (1, 2, 3, 4)]
    assert prices == [0.125, 0.25, 0.5, 1]
    assert reduction().renyi_prices(8).of(24) >= reduction().renyi_prices(8).of(1)


# ---- stopping rules


ERROR = Fraction(5)


@pytest.mark.parametrize(
    ("rule", "values", "met"),
    [
        (xp.RelativeError(within="0.1"), [55], True),  # the truth is at least 50
        (xp.RelativeError(within="0.1"), [-55, 60], True),
        (xp.RelativeError(within="0.1"), [54], False),
        (xp.RelativeError(within="0.1"), [1000, 54], False),
        (xp.mechanisms.AbsoluteError(within=5), [0], True),
        (xp.mechanisms.AbsoluteError(within="4.99"), [10**6], False),
        (xp.mechanisms.Decided(threshold=100), [94, 106], True),
        (xp.mechanisms.Decided(threshold=100), [95], False),
    ],
)
def test_rules(rule: StoppingRule, values: Sequence[int], met: bool) -> None:
    assert rule.met([Fraction(value) for value in values], ERROR) == met


@pytest.mark.slow
def test_what_was_asked_for_holds_at_the_stop() -> None:
    """In 500 runs at 90 %: no more are off than a binomial law explains; with a tenth of the error, many are."""
    rule = xp.RelativeError(within="0.1", confidence="0.9")
    mechanism = reduction(until=rule)
    runs = [mechanism.sample(400, NOISE) for _ in range(500)]
    assert all(run.met for run in runs)
    assert sum(abs(run.value - 400) > 40 for run in runs) <= 75
    assert sum(abs(run.value - 400) > 4 for run in runs) > 75


def wrong(rates: list[Fraction], within: Fraction, each: Fraction, truth: int) -> float:
    """The probability that a relative error is missed at the stop, from the joint law of three levels."""
    reach = 60
    numbers = np.arange(-reach, reach + 1)
    bases = [exp(-float(rate)) for rate in rates]
    laws = [(1 - base) / (1 + base) * base ** np.abs(np.arange(-2 * reach, 2 * reach + 1)) for base in bases]
    joint = laws[2][reach : 3 * reach + 1]
    for level in (1, 0):
        same = stay(rates[level], rates[level + 1], 64)[0] / 2**64
        apart = (numbers[:, None] - numbers[None, :]) + 2 * reach
        step = (1 - same) * laws[level][apart] + same * np.eye(len(numbers))
        joint = step.reshape(len(numbers), len(numbers), *[1] * level_axes(level)) * joint[None, ...]
    answers = np.abs(truth + numbers)
    widths = [LaplaceSteps(rate).reach(each) for rate in rates]
    stops = [width * (1 + within) <= within * answers for width in widths]
    off = np.abs(numbers) > within * truth
    first, second, third = (np.array(each, bool) for each in stops)
    bad = (first & off)[:, None, None] | (~first[:, None, None] & (second & off)[None, :, None])
    bad = bad | (~first[:, None, None] & ~second[None, :, None] & (third & off)[None, None, :])
    return float((joint * bad).sum())


def level_axes(level: int) -> int:
    """How many later levels the joint law has behind the next one."""
    return 1 - level


@pytest.mark.slow
def test_relative_errors_are_missed_as_rarely_as_said() -> None:
    """For all truths, with the joint law of three levels; with all of the miss for each level, some miss it."""
    rates, within, miss = [Fraction(1, 5), Fraction(1, 4), Fraction(5, 16)], Fraction(1, 2), Fraction(1, 10)
    rule = xp.RelativeError(within=within, confidence=1 - miss)
    each = rule.miss_per_level(tuple(rates), Fraction(0), 1)
    assert miss / 3 < each < miss
    assert max(wrong(rates, within, each, truth) for truth in range(1, 60)) <= miss
    assert max(wrong(rates, within, 3 * miss, truth) for truth in range(1, 60)) > miss


def test_a_rule_that_is_never_met_pays_everything() -> None:
    assert reduction().sample(0, NOISE)[1:] == (24, False)


def test_a_fixed_level_needs_no_more_than_its_own_error() -> None:
    """The level at which an absolute error is small enough is known beforehand."""
    mechanism = reduction(until=xp.mechanisms.AbsoluteError(within=20))
    level = mechanism.sample(10**6, NOISE).level
    assert mechanism.error_bound("0.95", level=level) <= 20 < mechanism.error_bound("0.95", level=level - 1)
    assert mechanism.error_bound("0.95", level=level, at_stop=True) > 20


# ---- through a ledger


def test_the_rest_is_refunded() -> None:
    ledger = xp.Ledger(epsilon=1)
    release = ledger.run(reduction(), on=10_000)
    assert release.output.met
    assert release.charged.epsilon == release.mechanism.guarantee.epsilon_of(release.output.level) < 0.05
    assert str(release).startswith("NoiseReduction: ")


def test_answers_one_at_a_time() -> None:
    ledger = xp.Ledger(epsilon=1)
    with ledger.open(reduction(until=None, levels=5), on=np.array([3.5, np.nan])) as answers:
        assert answers.level == 0
        first, second = answers.refine(), answers.refine()
        assert first.shape == second.shape == (2,)
        assert answers.error_bound("0.95") > 0
    assert answers.release.part == 2
    assert ledger.spent.epsilon == reduction(levels=5).guarantee.epsilon_of(2)


def test_the_last_level_is_the_end() -> None:
    with xp.Ledger(epsilon=1).open(reduction(levels=2), on=7) as answers:
        answers.refine()
        answers.refine()
        with pytest.raises(xp.errors.InteractionClosed):
            answers.refine()


def test_nothing_asked_costs_nothing() -> None:
    ledger = xp.Ledger(epsilon=1)
    with ledger.open(reduction(), on=7):
        pass
    assert ledger.remaining.epsilon == 1


@pytest.mark.parametrize(
    "data", [7, -0.0, float("inf"), float("nan"), 10**400, np.uint64(2**64 - 1), np.zeros((2, 3)), np.zeros(0, int)]
)
def test_kinds_of_data(data: Any) -> None:
    value = xp.Ledger(epsilon=1).run(reduction(levels=2), on=data).value
    assert np.shape(value) == np.shape(data)
    assert np.isfinite(value).all()


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"levels": 0}, "levels"),
        ({"ratio": 1}, "above 1"),
        ({"levels": 200}, "fewer levels"),
        ({"levels": 201}, "levels"),
        ({"sensitivity": 0}, "sensitivity"),
    ],
)
def test_parameters_are_refused(wrong: dict[str, Any], rule: str) -> None:
    with pytest.raises(xp.InvalidValue, match=rule):
        reduction(**wrong)


@pytest.mark.parametrize("wrong", ["x", xp.RelativeError, 7])
def test_what_is_no_rule_is_refused(wrong: Any) -> None:
    with pytest.raises(xp.InvalidValue, match="until is a rule"):
        reduction(until=wrong)


@pytest.mark.parametrize("changes", [{"epsilon": 10, "levels": 3}, {"epsilon": 20, "levels": 1}])
def test_no_noise_to_speak_of(changes: dict[str, Any]) -> None:
    """Where every level is exact, the first one will do."""
    ledger = xp.Ledger(epsilon=20, noise=xp.SeededNoise(0))
    assert ledger.run(reduction(**changes), on=1000).output == (1000, 1, True)


def test_a_rule_that_fails_does_so_before_any_charge() -> None:
    class Bare(StoppingRule):
        """No confidence."""

        def met(self, values: Any, error: Fraction) -> bool:
            return True

    ledger = xp.Ledger(epsilon=1)
    with pytest.raises(AttributeError, match="confidence"):
        ledger.run(reduction(until=Bare()), on=7)
    assert ledger.remaining.epsilon == 1


def test_what_is_clamped_meets_no_rule() -> None:
    assert not reduction(until=xp.mechanisms.AbsoluteError(within=100)).sample(1e16, NOISE).met
    assert not reduction(until=xp.mechanisms.AbsoluteError(within=100)).sample(2**61, NOISE).met


def test_the_least_epsilon_for_an_accuracy() -> None:
    bought = xp.NoiseReduction.for_accuracy(10, 0.95, sensitivity=1, levels=4)
    assert bought.epsilon == xp.Laplace.for_accuracy(10, 0.95, sensitivity=1).epsilon
    assert bought.levels == 4


@pytest.mark.parametrize(
    ("rule", "data"), [(None, 7), (xp.mechanisms.Decided(threshold=1), np.zeros(10_001)), (None, "text")]
)
def test_refused_before_any_charge(rule: Any, data: Any) -> None:
    ledger = xp.Ledger(epsilon=1)
    with pytest.raises(xp.InvalidValue):
        ledger.run(reduction(until=rule), on=data)
    assert ledger.remaining.epsilon == 1


@pytest.mark.parametrize("wrong", [{"within": 0}, {"within": 10**400}, {"within": 1, "confidence": 1}])
@pytest.mark.parametrize("rule", [xp.RelativeError, xp.mechanisms.AbsoluteError])
def test_rules_are_refused(rule: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(xp.InvalidValue):
        rule(**wrong)


def test_an_answer_is_a_record() -> None:
    assert Reduced(3, 1, True).level == 1
