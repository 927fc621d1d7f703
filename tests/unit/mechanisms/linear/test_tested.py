"""Mechanisms behind a test: prices, exact checks on finite toys with controls that fail, rules and refusals."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import tanh
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.guarantee import Guarantee, Part
from expost.mechanism import Mechanism
from expost.mechanisms.linear.perturbation import weight_distance
from expost.mechanisms.linear.tested import ModelTest, Tested, held_out_size
from expost.mechanisms.linear.tested_logistic import (
    ErrorTest,
    TestedLogisticRegression,
    error_of,
    error_sensitivity,
    total_error,
)
from expost.noise import NoiseSource, bernoulli
from expost.verify import FiniteMechanism, check, log_up, tabulate
from toys import Responses

NINE = Fraction(9, 10)


@dataclass(frozen=True)
class Bit(Mechanism):
    """Randomised response: the truth nine times out of ten. A test's toy."""

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.uniform(log_up(Fraction(9)).exact_epsilon, neighbours="substitute")

    def sample(self, data: Any, noise: NoiseSource) -> int:
        return int(data) if bernoulli(noise, NINE) else 1 - int(data)

    def part_of(self, output: Any) -> Part:
        return "released"


@dataclass(frozen=True)
class Agrees(ModelTest):
    """Passes with probability ``sure`` if the output is the held-out bit, else with the rest."""

    sure: Fraction
    epsilon: Any
    reveals: Any = None

    def passes(self, output: Any, held_out: Any, noise: NoiseSource) -> bool:
        return bernoulli(noise, self.sure if output == held_out else 1 - self.sure)


PAIRS = {(x, y): (x, y) for x in (0, 1) for y in (0, 1)}
NEIGHBOURS = [((x, y), (1 - x, y)) for x in (0, 1) for y in (0, 1)] + [((x, 0), (x, 1)) for x in (0, 1)]
SURE = Fraction(3, 5)
HALF_SEEN = Fraction(9 * 3 + 2, 9 * 2 + 3)  # odds of the verdict alone: 0.58 to 0.42


def behind(test: ModelTest) -> tuple[Tested, FiniteMechanism]:
    mechanism = Tested(mechanism=Bit(), test=test)
    return mechanism, tabulate(mechanism, PAIRS, NEIGHBOURS)


def test_the_guarantee_holds_exactly_and_a_smaller_one_does_not() -> None:
    asked = log_up(SURE / (1 - SURE)).exact_epsilon
    honest = Agrees(sure=SURE, epsilon=asked, reveals=log_up(HALF_SEEN).exact_epsilon)
    mechanism, table = behind(honest)
    assert check(table, mechanism.guarantee)
    assert mechanism.guarantee.epsilon_of("withheld") == pytest.approx(float(asked))
    assert mechanism.guarantee.worst_case.epsilon == pytest.approx(np.log(9))
    nine, seen = log_up(Fraction(9)).exact_epsilon, log_up(HALF_SEEN).exact_epsilon
    assert check(
        table, Guarantee({"released": nine, "withheld": seen})
    )  # the held-out bit is blurred by the response too
    assert not check(table, Guarantee({"released": nine, "withheld": seen * Fraction(99, 100)}))
    assert not check(table, Guarantee({"released": nine * Fraction(99, 100), "withheld": asked}))


def test_a_verdict_on_what_was_said_costs_all_of_it() -> None:
    """The counterexample: the test sees no data at all, and ⊥ still tells what the output was."""
    mechanism, table = behind(Agrees(sure=Fraction(1), epsilon=10))
    assert mechanism.guarantee.epsilon_of("withheld") == 10
    blind = {database: law for database, law in table.laws.items() if database[1] == 1}  # held out stays as it is
    alone = FiniteMechanism(blind, [((0, 1), (1, 1))], mechanism.part_of)
    ninefold = log_up(Fraction(9)).exact_epsilon
    assert check(alone, Guarantee({"released": ninefold, "withheld": ninefold}))
    assert not check(alone, Guarantee({"released": ninefold, "withheld": ninefold * Fraction(99, 100)}))


def test_without_lambda_nothing_comes_back() -> None:
    asked = log_up(SURE / (1 - SURE)).exact_epsilon
    mechanism, _ = behind(Agrees(sure=SURE, epsilon=asked))
    assert mechanism.guarantee.cost_of("withheld") == mechanism.guarantee.worst_case
    dear = Tested(mechanism=Bit(), test=Agrees(sure=SURE, epsilon=asked, reveals=100))
    assert dear.guarantee == mechanism.guarantee


def test_a_discretised_logistic_toy_exactly() -> None:
    """Weights −3, …, 3 with two-sided geometric noise, an error in whole steps, a noisy threshold: all rational.

    The unseen weight moves the error by at most one step, a held-out record by at most two; the noise is for two. A
    quarter of the noise breaks the guarantee.
    """
    half = Fraction(1, 2)

    def geometric(ratio: Fraction, k: int) -> Fraction:
        return (1 - ratio) / (1 + ratio) * ratio ** abs(k)

    def above(ratio: Fraction, k: int) -> Fraction:
        """Pr[noise > k]."""
        tail = ratio ** (abs(k) + (k >= 0)) / (1 + ratio)
        return tail if k >= 0 else 1 - tail

    def law(train: int, held_out: int, ratio: Fraction) -> dict[Any, Fraction]:
        laws: dict[Any, Fraction] = {"withheld": Fraction(0)}
        for weight in range(-3, 4):
            here = geometric(half, weight - train)
            if abs(weight) == 3:  # clamped: all that lies beyond
                here = above(half, 2 - train) if weight == 3 else above(half, 2 + train)
            error = abs(
                min(max(weight, -1), 1) - 2 * held_out + 1
            )  # moves by ≤ 1 with the weight, by ≤ 2 with the record
            fails = above(ratio, 1 - error)
            laws[weight] = here * (1 - fails)
            laws["withheld"] += here * fails
        return laws

    def guarantee_holds(ratio: Fraction, asked: Fraction) -> bool:
        databases = {(x, y): law(x, y, ratio) for x in (0, 1) for y in (0, 1)}
        table = FiniteMechanism(databases, NEIGHBOURS, lambda out: out if out == "withheld" else "released")
        assert all(sum(rows.values()) == 1 for rows in table.laws.values())
        price = log_up(asked).exact_epsilon
        return bool(
            check(table, Guarantee({"released": max(log_up(Fraction(2)).exact_epsilon, price), "withheld": price}))
        )

    assert guarantee_holds(Fraction(4, 5), Fraction(25, 16))
    assert not guarantee_holds(Fraction(4, 5) ** 4, Fraction(25, 16))


# ---- the error of a logistic model

DISTANCES = st.floats(0, 20)


@given(DISTANCES, st.floats(-1, 1), st.floats(-30, 30), st.sampled_from([-1, 1]))
def test_the_error_moves_no_farther_than_is_stated(distance: float, share: float, margin: float, label: int) -> None:
    """The first half: weights move by D and the margin by at most that."""
    moved = abs(abs(tanh(margin / 2) - label) - abs(tanh((margin + share * distance) / 2) - label))
    assert moved <= float(error_sensitivity(Fraction(distance))) + 1e-15


@pytest.mark.parametrize("distance", [0.01, 0.3, 2, 10, 300])
def test_the_bound_on_the_error_is_tight(distance: float) -> None:
    bound = float(error_sensitivity(Fraction(distance)))
    attained = abs(tanh(distance / 4) - 1) - abs(tanh(-distance / 4) - 1)
    assert bound == pytest.approx(-attained, rel=1e-12)
    assert bound <= 2


def model(weight: float) -> xp.mechanisms.LinearModel:
    return xp.mechanisms.LinearModel(((weight,),), 1.0, False)


def test_a_held_out_record_moves_the_sum_by_two_at_most() -> None:
    """The second half, attained: a sure model, and a record on either side."""
    right, wrong = np.array([[1.0, 1]]), np.array([[1.0, 0]])
    sure = model(2.0**14)
    assert total_error(sure, wrong, 2) - total_error(sure, right, 2) == 2 * 2**40
    assert error_of(model(0), right) == 1
    test = ErrorTest(epsilon=1, threshold=1, classes=2, distance=Fraction(1, 10**6), columns=1)
    assert test.sensitivity(3) == 2 * 2**40
    assert test.sensitivity(10**8) > 2 * 2**40
    several = ErrorTest(epsilon=1, threshold=1, classes=3, distance=Fraction(1, 10**6), columns=1)
    assert several.sensitivity(3) == 6 * 2**40


def test_retraining_moves_the_sum_less_than_the_noise_is_for() -> None:
    """With the same noise in the weights, as the proof has it; and, at its worst here, by a third of it."""
    rng = np.random.default_rng(3)
    mechanism = TestedLogisticRegression(
        epsilon=1000, test_share=0.001, threshold=1, norm=1, regularizer=1, intercept=False, features=(0,)
    )
    test, trainer = mechanism.tested(60, 1).test, mechanism.tested(60, 1).mechanism
    assert isinstance(test, ErrorTest)
    size, held_out = 60 - held_out_size(60, Fraction(3, 10)), np.ones((200, 2))
    most = 0
    for seed in range(30):
        here = np.column_stack([rng.uniform(-1, 1, size), rng.integers(0, 2, size)])
        here[0] = [1, 1]
        there = here.copy()
        there[0] = [1, 0] if seed % 2 else [3 * rng.normal(), rng.integers(0, 2)]
        totals = [total_error(trainer.sample(data, xp.SeededNoise(seed)), held_out, 2) for data in (here, there)]
        most = max(most, abs(totals[0] - totals[1]))
    assert test.sensitivity(200) / 3 < most <= test.sensitivity(200)


# ---- the mechanism


def records(size: int = 2000, noise: float = 0.0) -> Any:
    rng = np.random.default_rng(7)
    features = rng.normal(size=(size, 3))
    return np.column_stack([features, features @ [2.0, -1, 0.5] + noise * rng.normal(size=size) > 0])


USUAL: dict[str, Any] = {"epsilon": 4, "test_share": 0.125, "norm": 2}


def test_good_models_come_out_and_bad_ones_cost_the_test() -> None:
    ledger = xp.Ledger(epsilon=5, noise=xp.SeededNoise(1))
    bad = ledger.run(TestedLogisticRegression(**USUAL, threshold=0.1), on=records(noise=50))
    assert bad.withheld
    assert str(bad) == "TestedLogisticRegression: withheld · reserved ε 4, charged 0.5, refunded 3.5"
    good = ledger.run(TestedLogisticRegression(**USUAL, threshold=0.95), on=records())
    assert good.charged == xp.Cost(4)
    assert isinstance(good.value, xp.mechanisms.LinearModel)
    assert np.mean(good.value.predict(records()[:, :-1]) == records()[:, -1]) > 0.8
    assert ledger.spent == xp.Cost(4.5)


def test_several_classes_share_the_budget() -> None:
    data = records(3000)
    data[:, -1] += data[:, 0] > 1
    mechanism = TestedLogisticRegression(**{**USUAL, "epsilon": 30}, threshold=0.9, classes=3)
    assert mechanism.model(100).setting(100, 3).epsilon == 10
    found = mechanism.sample(data, xp.SeededNoise(1))
    assert isinstance(found, xp.mechanisms.LinearModel)
    assert len(found.weights) == 3
    assert np.mean(found.predict(data[:, :-1]) == data[:, -1]) > 0.6
    assert error_of(found, data, classes=3) < 0.9


def test_prices_do_not_depend_on_how_many_records_there_are() -> None:
    mechanism = TestedLogisticRegression(**USUAL, threshold=0.5)
    for size in (2, 17, 10**5):
        guarantee = mechanism.tested(size, 3).guarantee
        assert {part: guarantee.cost_of(part) for part in ("released", "withheld")} == {
            part: mechanism.guarantee.cost_of(part) for part in ("released", "withheld")
        }
    alike = TestedLogisticRegression(epsilon=0.5, test_share=1, norm=2, threshold=1)
    assert alike.guarantee == Guarantee({"released": 0.5, "withheld": 0.5}, neighbours="substitute")


def test_more_records_mean_less_noise_in_the_test() -> None:
    mechanism = TestedLogisticRegression(**USUAL, threshold=0.5, regularizer=1)
    noise = [mechanism.error_bound(0.95, n=size, features=3) for size in (100, 1000, 10_000)]
    assert noise[0] / noise[1] == pytest.approx(10, rel=0.01)
    assert noise[2] == pytest.approx(2 / 3000 / 0.5 * np.log(10), rel=0.01)
    with pytest.raises(xp.InvalidValue, match="confidence"):
        mechanism.error_bound(1, n=10, features=3)


def test_the_default_regulariser_keeps_the_test_able_to_tell() -> None:
    """From the training records comes noise of at most 0.1 on the error; from the held-out ones what they must have."""
    for size, epsilon in ((3000, 0.5), (10**5, 0.1), (500, 2)):
        mechanism = TestedLogisticRegression(epsilon=30, test_share=epsilon / 30, norm=2, threshold=0.5)
        held_out = 2 / (0.3 * size) / epsilon * np.log(10)
        assert mechanism.error_bound(0.95, n=size, features=3) <= 1.05 * max(0.1, held_out)


def test_private_values_cause_no_error() -> None:
    data = records(20)
    data[0] = [np.nan, np.inf, -np.inf, np.nan]
    data[1, -1] = 17
    assert TestedLogisticRegression(**USUAL, threshold=2).sample(data, xp.noise.SystemNoise()) is not None


def test_public_mistakes_do() -> None:
    with pytest.raises(xp.InvalidValue, match="threshold"):
        TestedLogisticRegression(**USUAL, threshold=3)
    with pytest.raises(xp.InvalidValue, match="held_out"):
        TestedLogisticRegression(**USUAL, threshold=1, held_out=1)
    for share in (0, "1.1"):
        with pytest.raises(xp.InvalidValue, match="test_share"):
            TestedLogisticRegression(**{**USUAL, "test_share": share}, threshold=1)
    with pytest.raises(xp.InvalidValue, match="norm"):
        TestedLogisticRegression(**{**USUAL, "norm": -1}, threshold=1)
    ledger = xp.Ledger(epsilon=5)
    with pytest.raises(xp.InvalidValue, match="two records"):
        ledger.run(TestedLogisticRegression(**USUAL, threshold=1), on=records(1))
    with pytest.raises(xp.InvalidValue, match="two-dimensional"):
        ledger.run(TestedLogisticRegression(**USUAL, threshold=1), on=np.zeros(5))
    assert ledger.spent == xp.Cost(0)


def behind_errors(model: Any, distance: Fraction) -> Tested:
    return Tested(mechanism=model, test=ErrorTest(epsilon=0.1, threshold=1, classes=2, distance=distance, columns=4))


def test_only_what_the_proof_is_about_comes_back() -> None:
    """The noise of an objective acts through the data, so there is no λ; a distance too small is refused, unpaid."""
    aimed = behind_errors(xp.mechanisms.ObjectivePerturbation(epsilon=5, norm=1), Fraction(0))
    assert aimed.guarantee.cost_of("withheld") == xp.Cost(5)
    model = xp.mechanisms.OutputPerturbation(epsilon=5, norm=1)
    distance = weight_distance(model.setting(40, 3))
    ledger, halves = xp.Ledger(epsilon=6), (records(40), records(10))
    with pytest.raises(xp.InvalidValue, match="farther"):
        ledger.run(behind_errors(model, distance * Fraction(99, 100)), on=halves)
    assert ledger.spent == xp.Cost(0)
    exactly = behind_errors(model, distance)
    assert exactly.guarantee.cost_of("withheld") == xp.Cost(0.1)
    ledger.run(exactly, on=halves)
    assert ledger.spent > xp.Cost(0)


@pytest.mark.parametrize(
    "held_out",
    [np.zeros((5, 7)), np.zeros((0, 4)), np.zeros(4), np.zeros((5, 4), object), [[1.0, 2, 3, 4]], None],
    ids=["columns", "empty", "one row", "objects", "list", "nothing"],
)
def test_mistakes_in_what_is_held_out_are_free(held_out: Any) -> None:
    model = xp.mechanisms.OutputPerturbation(epsilon=5, norm=1)
    ledger = xp.Ledger(epsilon=6)
    with pytest.raises(xp.InvalidValue):
        ledger.run(behind_errors(model, Fraction(1000)), on=(records(40), held_out))
    assert ledger.spent == xp.Cost(0)


def test_a_test_is_of_the_model_that_it_was_made_for() -> None:
    for model in (xp.mechanisms.OutputPerturbation(epsilon=5, norm=1, classes=3), xp.Laplace(epsilon=5, sensitivity=1)):
        ledger = xp.Ledger(epsilon=6)
        with pytest.raises(xp.InvalidValue, match="model"):
            ledger.run(behind_errors(model, Fraction(1000)), on=(records(40), records(10)))
        assert ledger.spent == xp.Cost(0)


def test_numbers_beyond_floats_are_silent() -> None:
    data = records(40)
    data[:, :-1] *= 1e-320
    data[0] = [1e308, -1e308, np.inf, 1]
    with np.errstate(all="raise"):
        found = TestedLogisticRegression(**USUAL, threshold=2).sample(data, xp.noise.SystemNoise())
        assert found is xp.WITHHELD or error_of(found, data) <= 2


# ---- the combinator's own rules


@dataclass(frozen=True)
class Always(ModelTest):
    epsilon: Any = 1
    delta: Any = 0
    reveals: Any = None
    reveals_delta: Any = 0

    def passes(self, output: Any, held_out: Any, noise: NoiseSource) -> bool:
        return True


def test_deltas() -> None:
    noisy = xp.Gaussian(epsilon=2, delta=1e-6, sensitivity=1)
    with_lambda = Tested(mechanism=noisy, test=Always(0.5, 1e-7, 0.25, 1e-8))
    assert with_lambda.guarantee == Guarantee({"withheld": 0.5}, "1.01e-6", otherwise=2)
    without = Tested(mechanism=noisy, test=Always(0.5, 1e-5))
    assert without.guarantee == Guarantee({"withheld": 2}, 1e-5, otherwise=2)


def test_parts_of_the_mechanism_keep_their_prices() -> None:
    inner = xp.SparseVector(threshold=5, at_most=2, epsilon=1, sensitivity=1)
    mechanism = Tested(mechanism=inner, test=Always(0.3, reveals=0.1))
    assert mechanism.guarantee.cost_of("withheld") == xp.Cost(0.3)
    prices = {part: inner.guarantee.cost_of(part).epsilon for part in inner.guarantee.parts}
    assert len(set(prices.values())) > 2
    assert {part: mechanism.guarantee.cost_of(part).epsilon for part in prices} == {
        part: max(price, 0.3) for part, price in prices.items()
    }


def test_a_split_is_of_fixed_sizes_and_loses_nobody() -> None:
    seen = []

    @dataclass(frozen=True)
    class Remembers(ModelTest):
        epsilon: Any = 1

        def passes(self, output: Any, held_out: Any, noise: NoiseSource) -> bool:
            seen.append(held_out.tolist())
            return False

    mechanism = Tested(mechanism=xp.Laplace(epsilon=1, sensitivity=1), test=Remembers(), held_out=0.25)
    data = np.arange(10)
    for seed in range(40):
        assert mechanism.sample(data, xp.SeededNoise(seed)) is xp.WITHHELD
    assert {len(rows) for rows in seen} == {3}
    assert {row for rows in seen for row in rows} == set(range(10))
    assert mechanism.guarantee.neighbours == "substitute"
    assert held_out_size(2, Fraction(99, 100)) == 1


def test_refusals() -> None:
    counts = xp.Laplace(epsilon=1, sensitivity=1, neighbours="add-remove")
    with pytest.raises(xp.errors.NeighbourMismatch):
        Tested(mechanism=counts, test=Always(), held_out=0.5)
    with pytest.raises(xp.InvalidValue, match="withholds by itself"):
        Tested(mechanism=xp.mechanisms.StableInterquartileRange(epsilon=1, delta=1e-6), test=Always())
    with pytest.raises(xp.InvalidValue, match="interactive"):
        Tested(mechanism=Responses(Fraction(2), 3), test=Always())
    with pytest.raises(xp.InvalidValue, match="takes a mechanism"):
        Tested(mechanism=counts, test=object())
    pair = Tested(mechanism=counts, test=Always())
    with pytest.raises(xp.InvalidValue, match="pair"):
        pair.check(np.zeros(3))
    share = Tested(mechanism=xp.Laplace(epsilon=1, sensitivity=1), test=Always(), held_out=0.5)
    with pytest.raises(xp.InvalidValue, match="split"):
        share.check(3)
    assert pair.describe(pair.sample((np.arange(3), None), xp.SeededNoise(1))).startswith("3 values")


def test_an_output_that_is_called_withheld_is_charged_in_full() -> None:
    """⊥ may be cheap; an output whose part happens to have its name is not."""

    @dataclass(frozen=True)
    class Survey(Bit):
        def part_of(self, output: Any) -> Part:
            return "withheld"

    ledger = xp.Ledger(epsilon=3)
    with pytest.raises(xp.InvalidValue, match="rename"):
        ledger.run(Tested(mechanism=Survey(), test=Always(0.1, reveals=0.1)), on=(0, 0))
    assert ledger.spent == Bit().guarantee.worst_case


def test_a_mechanism_that_withholds_unannounced_is_charged_in_full() -> None:
    @dataclass(frozen=True)
    class Shy(Bit):
        def sample(self, data: Any, noise: NoiseSource) -> Any:
            return xp.WITHHELD

    ledger = xp.Ledger(epsilon=3)
    with pytest.raises(xp.InvalidValue, match="withheld by itself"):
        ledger.run(Tested(mechanism=Shy(), test=Always(0.1, reveals=0.1)), on=(0, 0))
    assert ledger.spent == Bit().guarantee.worst_case
