"""Private tuning: its law and guarantee exactly on small cases, wrong prices, the number of runs, real candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.mechanisms.tuning.runs import mean_runs, number_of_runs
from expost.mechanisms.tuning.tuning import Tuned
from expost.verify import FiniteMechanism, check, least_delta_at

Outcome = tuple[int, int]
"""The candidate and the score."""
Rank = Callable[[Outcome], Any]
STOP = Fraction(1, 50)


def by_score(outcome: Outcome) -> Any:
    return outcome[1]


def cheaper_first(outcome: Outcome) -> Any:
    """Candidate 0 is the cheap one, and a score of 1 is good enough."""
    candidate, score = outcome
    return (True, -candidate) if score >= 1 else (False, score)


def below(run: Mapping[Outcome, Fraction], rank: Rank, outcome: Outcome) -> tuple[Fraction, Fraction]:
    """The probability of a worse run, and of one that is no better."""
    worse = sum((p for other, p in run.items() if rank(other) < rank(outcome)), Fraction(0))
    no_better = sum((p for other, p in run.items() if rank(other) <= rank(outcome)), Fraction(0))
    return worse, no_better


def geometric_law(run: Mapping[Outcome, Fraction], rank: Rank, stop: Fraction = STOP) -> dict[Outcome, Fraction]:
    """The law of what is published with factor 3, in rationals: Pr[K = k] = stop·(1 − stop)^(k − 1)."""

    def generating(s: Fraction) -> Fraction:
        return stop * s / (1 - (1 - stop) * s)

    found = {}
    for outcome, p in run.items():
        worse, no_better = below(run, rank, outcome)
        found[outcome] = p * (generating(no_better) - generating(worse)) / (no_better - worse)
    return found


def response(yes: Fraction) -> dict[Outcome, Fraction]:
    """One candidate whose score is 1 with this probability, else 0."""
    return {(0, 0): 1 - yes, (0, 1): yes}


def two(cheap: Fraction, dear: Fraction) -> dict[Outcome, Fraction]:
    """Two candidates, each drawn half of the time."""
    return {(i, score): p / 2 for i, yes in enumerate((cheap, dear)) for (_, score), p in response(yes).items()}


def of_candidate(outcome: Outcome) -> Any:
    return outcome[0]


def test_the_law_is_that_of_all_sequences_of_runs() -> None:
    """For two and three runs, by listing them all."""
    run = {(0, 0): Fraction(1, 6), (1, 0): Fraction(1, 3), (0, 1): Fraction(1, 12), (1, 2): Fraction(5, 12)}
    for runs in (2, 3):
        listed: Counter[Outcome] = Counter()
        for sequence in product(run, repeat=runs):
            chance = Fraction(1)
            for outcome in sequence:
                chance *= run[outcome]
            listed[max(sequence, key=by_score)] += chance  # type: ignore[assignment]
        for outcome, p in run.items():
            worse, no_better = below(run, by_score, outcome)
            assert listed[outcome] == p * (no_better**runs - worse**runs) / (no_better - worse)


def test_the_guarantee_by_verify() -> None:
    """Runs of e^ε = 3 and 9 on a small set of neighbours: exactly, with factor 3."""
    third, ninth = Fraction(1, 4), Fraction(1, 10)
    sides = {"x": two(third, ninth), "y": two(1 - third, 1 - ninth), "z": two(third, 1 - ninth)}
    pairs = [("x", "y"), ("x", "z"), ("y", "z")]
    met = FiniteMechanism({x: geometric_law(run, cheaper_first) for x, run in sides.items()}, pairs, lambda o: o)
    assert least_delta_at(met, {(0, 1): 3**3, (1, 1): 9**3, (0, 0): 3 * 9**2, (1, 0): 9**3}) == 0
    best = FiniteMechanism({x: geometric_law(run, by_score) for x, run in sides.items()}, pairs, of_candidate)
    assert least_delta_at(best, {0: 3 * 9**2, 1: 9**3}) == 0
    prices = {0: log(3) + 2 * log(9) + 1e-9, 1: 3 * log(9) + 1e-9}
    assert check(best, xp.Guarantee(prices))  # type: ignore[arg-type]


def three(middle: Fraction, high: Fraction) -> dict[Outcome, Fraction]:
    """One candidate with three scores."""
    return {(0, 0): 1 - middle - high, (0, 1): middle, (0, 2): high}


RARE, FEW = Fraction(1, 10**4), Fraction(1, 100)
OPPOSED = {"x": three(3 * RARE, FEW), "y": three(RARE, 3 * FEW)}
"""Runs with e^ε = 3 in which the middle becomes rarer, and what is better more frequent."""


def test_tuning_is_not_charged_as_one_run() -> None:
    """Nor as two, where the number of runs is geometric: three are nearly reached."""
    one = FiniteMechanism(OPPOSED, [("x", "y")], of_candidate)
    laws = {x: geometric_law(run, by_score, Fraction(1, 10**5)) for x, run in OPPOSED.items()}
    tuned = FiniteMechanism(laws, [("x", "y")], of_candidate)
    for runs, holds in ((1, False), (2, False), (3, True)):
        assert bool(check(tuned, xp.Guarantee({0: runs * Fraction(log(3) + 1e-9)}))) == holds
    assert check(one, xp.Guarantee({0: Fraction(log(3) + 1e-9)}))


def test_the_number_of_runs_must_stay_private() -> None:
    """Where it is published beside the outcome, not even three runs pay for it."""
    x, y, stop = response(Fraction(1, 4)), response(Fraction(3, 4)), Fraction(1, 10)

    def shown(run: Mapping[Outcome, Fraction]) -> dict[Any, Fraction]:
        found: dict[Any, Fraction] = {"more": (1 - stop) ** 6}
        for runs in range(1, 7):
            chance, none = stop * (1 - stop) ** (runs - 1), run[0, 0] ** runs
            found |= {(runs, 0): chance * none, (runs, 1): chance * (1 - none)}
        return found

    seen = FiniteMechanism({"x": shown(x), "y": shown(y)}, [("x", "y")], lambda output: "any")
    assert not check(seen, xp.Guarantee({"any": 3 * Fraction(log(3) + 1e-9)}))
    hidden = FiniteMechanism({"x": geometric_law(x, by_score, stop), "y": geometric_law(y, by_score, stop)},
                             [("x", "y")], of_candidate)  # fmt: skip
    assert check(hidden, xp.Guarantee({0: 3 * Fraction(log(3) + 1e-9)}))


def test_two_runs_are_nearly_reached_by_default() -> None:
    x, y = ([(i, score, float(p)) for (i, score), p in OPPOSED[side].items()] for side in "xy")
    ratio = 3 * slope(x, 1, 0, 1e-5) / slope(y, 1, 0, 1e-5)
    assert 8.8 < ratio < 9


def test_a_cheap_winner_of_best_scores_pays_for_dear_rivals() -> None:
    """Three times its own ε would be too little."""
    sides = {"x": two(Fraction(1, 2), Fraction(1, 100)), "y": two(Fraction(1, 2), Fraction(1, 2))}
    plain = FiniteMechanism({x: geometric_law(r, lambda o: (o[1], o[0])) for x, r in sides.items()}, [("x", "y")],
                            of_candidate)  # fmt: skip
    assert least_delta_at(plain, {0: 1, 1: 50**3}) > 0


@given(
    st.lists(st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=100), min_size=2, max_size=4),
    st.integers(2, 9),
    st.sampled_from([-0.9, -0.5, 0.0, 0.5, 1.0]),
    st.sampled_from([0.5, 0.01, 1e-6]),
)
def test_every_factor_keeps_its_price(scores: list[Fraction], ratio: int, power: float, stop: float) -> None:
    """The ratio of the laws of what is published, for every outcome of runs whose ratios are at most that."""
    yes = [float(p) for p in scores]
    other = [min(p * ratio, 1 - (1 - p) / ratio) for p in yes]
    laws = [[(i, score, each / len(of)) for i, p in enumerate(of) for score, each in ((0, 1 - p), (1, p))]
            for of in (yes, other)]  # fmt: skip
    published = [[p * slope(run, score, power, stop) for _, score, p in run] for run in laws]
    for p, q in zip(*published, strict=True):
        assert max(p / q, q / p) <= ratio ** (2 + power) * (1 + 1e-6)


def slope(run: list[tuple[int, int, float]], score: int, power: float, stop: float) -> float:
    """The mean of (1 − c·s)^−(1 + power) between the probabilities of worse and of no better, by the midpoint rule."""
    worse = sum(p for _, s, p in run if s < score)
    ties = sum(p for _, s, p in run if s == score)
    places = worse + ties * (np.arange(20_000) + 0.5) / 20_000
    return float(np.mean((1 - (1 - stop) * places) ** -(1 + power)))


@pytest.mark.parametrize("factor", [Fraction(3, 2), Fraction(2), Fraction(5, 2), Fraction(3)])
def test_the_number_of_runs(factor: Fraction) -> None:
    """Its law by the ratios of neighbouring numbers, and its mean."""
    stop, power, count = Fraction(1, 10), factor - 2, 4_000
    weights = [0.9]
    for j in range(1, 2_000):
        weights.append(weights[-1] * 0.9 * (j + float(power)) / (j + 1))
    law = np.array(weights) / sum(weights)
    noise = xp.SeededNoise(7)
    found = np.array([number_of_runs(noise, stop, factor) for _ in range(count)])
    for k in (1, 2, 3, 6):
        assert np.mean(found == k) == pytest.approx(law[k - 1], abs=4.5 * (law[k - 1] / count) ** 0.5)
    mean = law @ np.arange(1, 2_001)
    assert float(mean_runs(stop, factor)) == pytest.approx(mean)
    assert factor < 3 or 10 <= mean_runs(stop, factor) < 10 + Fraction(1, 10**30)
    assert found.mean() == pytest.approx(mean, abs=5 * found.std() / count**0.5)


@dataclass(frozen=True, kw_only=True)
class Guess(xp.Mechanism[Any, int]):
    """A candidate whose output is a bit of noise around a number."""

    epsilon: float
    around: int = 0
    delta: float = 0

    @property
    def guarantee(self) -> xp.Guarantee:
        return xp.Guarantee.uniform(self.epsilon, self.delta, neighbours="substitute")

    def sample(self, data: Any, noise: xp.noise.NoiseSource) -> int:
        return self.around + noise.below(2)

    def part_of(self, output: int) -> str:
        return "released"


@dataclass(frozen=True)
class Itself(xp.mechanisms.Score):
    """The output is its own score."""

    @property
    def sensitivity(self) -> int:
        return 1

    def total(self, output: int, held_out: Any) -> int:
        return output


RECORDS = np.zeros((40, 2))


def test_less_epsilon_is_better_among_what_is_good_enough() -> None:
    candidates = (Guess(epsilon=1, around=900), Guess(epsilon=4, around=1000), Guess(epsilon=2, around=0))
    tuning = xp.Tuning(candidates=candidates, score=Itself(), held_out=0.5, good_enough=500, factor=3, runs=1000)
    release = xp.Ledger(epsilon=12, noise=xp.SeededNoise(0)).run(tuning, on=RECORDS)
    assert (release.value.candidate, release.value.met, release.part) == (0, True, ("good enough", 0))
    assert release.charged == xp.Cost(3)
    plain = xp.Tuning(candidates=candidates, score=Itself(), held_out=0.5, factor=3, runs=1000)
    release = xp.Ledger(epsilon=12, noise=xp.SeededNoise(0)).run(plain, on=RECORDS)
    assert (release.value.candidate, release.value.met, release.part) == (1, False, 1)
    assert release.charged == xp.Cost(12)


def test_prices_are_factors_and_deltas_count_runs() -> None:
    pair = (Guess(epsilon=1, delta=1e-6), Guess(epsilon=0.25, delta=3e-6))
    tuning = xp.Tuning(candidates=pair, score=Itself(), held_out=0.5, good_enough=1, factor="1.5", runs=50)
    assert [tuning.guarantee.epsilon_of(part) for part in (0, 1, ("good enough", 0), ("good enough", 1))] == [
        1.5, 0.75, 1.5, 0.375,
    ]  # fmt: skip
    assert tuning.guarantee.delta == pytest.approx(2e-6 * tuning.mean_runs)
    assert tuning.guarantee.neighbours == "substitute"


def test_classifiers_and_regressions() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(2000, 2))
    labels = (features[:, 0] > 0).astype(float)
    models = [xp.mechanisms.ObjectivePerturbation(epsilon=2, norm=3, regularizer=r) for r in (1e-3, 1e3)]
    tuning = xp.Tuning(candidates=models, score=xp.mechanisms.CorrectPredictions(), held_out=0.3, runs=10)
    found = xp.Ledger(epsilon=4, noise=xp.SeededNoise(2)).run(tuning, on=np.column_stack([features, labels]))
    assert isinstance(found.value, Tuned)
    assert found.value.score > 0.8
    assert str(found).startswith("Tuning: candidate 0 of 2, score 0.9")
    fits = [xp.mechanisms.RegressionOfRecords(epsilon=e, bounds=[(-3, 3)] * 2, target_bounds=(-9, 9)) for e in (0.5, 1)]
    score = xp.mechanisms.MeanAbsoluteError(bounds=(-9, 9))
    target = 2 * features[:, 0] + 1
    fitted = xp.Ledger(epsilon=2, noise=xp.SeededNoise(2)).run(
        xp.Tuning(candidates=fits, score=score, held_out=0.3, good_enough=-1, runs=10),
        on=np.column_stack([features, target]),
    )
    assert fitted.value.met
    assert -1 <= fitted.value.score < 0.1
    assert fitted.charged.epsilon in (1.0, 2.0)


@pytest.mark.parametrize("values", [np.nan, np.inf, -np.inf, 1e308, 7.0])
def test_scores_move_by_their_sensitivity_and_never_raise(values: float) -> None:
    records = np.random.default_rng(0).normal(size=(20, 3))
    other = records.copy()
    other[4] = values
    model = xp.mechanisms.LinearModel(((0.5, -0.25, 0.1),), 1.0, True)
    fit = xp.mechanisms.RegressionOfRecords(epsilon=1, bounds=[(0, 1)] * 2, target_bounds=(0, 1)).sample(
        records, xp.SeededNoise(1)
    )
    for score, output in (
        (xp.mechanisms.CorrectPredictions(), model),
        (xp.mechanisms.MeanAbsoluteError(bounds=(-1, 1)), fit),
    ):
        assert abs(score.total(output, records) - score.total(output, other)) <= score.sensitivity
    assert xp.mechanisms.MeanAbsoluteError(bounds=(-1, 1)).total(lambda rows: rows[:, 0], records[:, [0, 0]]) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"candidates": []}, "at least one"),
        ({"candidates": [1]}, "candidates are mechanisms, got int"),
        ({"candidates": [xp.mechanisms.StableMedian(epsilon=1, delta="1e-6", proposed=1)]}, "may withhold"),
        ({"candidates": [Guess(epsilon=0)]}, "costs no ε"),
        ({"candidates": [Guess(epsilon=1, delta=0.5)]}, "δ would be"),
        ({"candidates": [xp.Laplace(epsilon=1, sensitivity=1, neighbours="add-remove")]}, "public number of records"),
        (
            {"candidates": [xp.Laplace(epsilon=1, sensitivity=1, neighbours="add-remove")], "held_out": None},
            "public number of records",
        ),
        ({"score": max}, "score is a Score"),
        ({"factor": 1}, "above 1 and at most 3, got 1"),
        ({"runs": 1}, "runs"),
        ({"held_out": 2}, "held_out"),
        ({"good_enough": float("nan")}, "good_enough"),
    ],
)
def test_what_is_publicly_wrong_is_refused(changes: dict[str, Any], message: str) -> None:
    given = {"candidates": [Guess(epsilon=1)], "score": Itself(), "held_out": 0.5} | changes
    with pytest.raises((xp.InvalidValue, xp.errors.NeighbourMismatch), match=message):
        xp.Tuning(**given)


def test_data_is_checked_before_any_charge() -> None:
    ledger = xp.Ledger(epsilon=9)
    tuning = xp.Tuning(
        candidates=[xp.mechanisms.OutputPerturbation(epsilon=1, norm=1)], score=xp.mechanisms.CorrectPredictions()
    )
    for data in (RECORDS, (RECORDS, np.zeros(3)), (np.zeros(3), RECORDS)):
        with pytest.raises(xp.InvalidValue):
            ledger.run(tuning, on=data)
    assert ledger.spent == xp.Cost(0)
    assert ledger.run(tuning, on=(RECORDS, RECORDS)).charged == xp.Cost(2)
