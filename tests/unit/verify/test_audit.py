"""Refuting guarantees by samples: bounds, features, events, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from math import comb, inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost import Guarantee, InvalidValue, mechanisms
from expost.accounting.renyi import Prices
from expost.mechanism import Mechanism
from expost.mechanisms import Coin, Laplace, RandomizedResponse
from expost.noise import NoiseSource, SeededNoise
from expost.verify.audit import audit, bounds, catalogue, neighbours
from expost.verify.audit.bets import Bet, Hits, best_bet, delta_won
from expost.verify.audit.events import Distinguisher, Side, delta_shown, epsilon_shown
from expost.verify.audit.features import Encoder, atoms, output_key
from expost.verify.audit.samples import Progress, SampledOutputs
from expost.verify.audit.scores import Classifier, Frequencies
from expost.verify.audit.timed import within
from soak import some

pytestmark = pytest.mark.slow
RESPONSE = RandomizedResponse(epsilon=1, choices=2)


def tail(samples: int, hits: int, p: Fraction) -> Fraction:
    """Pr[Bin(samples, p) ≥ hits], exactly."""
    return sum((comb(samples, k) * p**k * (1 - p) ** (samples - k) for k in range(hits, samples + 1)), Fraction(0))


@given(st.integers(1, 60), st.data(), st.sampled_from([0.3, 0.05, 1e-4]))
def test_bounds_are_those_of_the_exact_binomial_law(samples: int, data: Any, error: float) -> None:
    hits = data.draw(st.integers(0, samples))
    low, high = bounds.at_least(hits, samples, error), bounds.at_most(hits, samples, error)
    assert 0 <= low <= hits / samples <= high <= 1
    if hits:
        assert tail(samples, hits, Fraction(low)) <= Fraction(error)
        assert tail(samples, hits, Fraction(min(1.0, low * 1.0001 + 1e-9))) > Fraction(error) * Fraction("0.999")
    if hits < samples:
        assert 1 - tail(samples, hits + 1, Fraction(high)) <= Fraction(error)


def test_bounds_of_many_samples() -> None:
    assert bounds.at_least(500_000, 10**6, 1e-4) == pytest.approx(0.49814, abs=1e-5)
    assert bounds.at_most(0, 10**6, 0.01) == pytest.approx(4.605e-6, rel=1e-3)
    assert bounds.beta_share(2, 3, 0.0) == 0
    assert bounds.beta_share(2, 3, 1.0) == 1
    assert bounds.beta_share(5, 10**7, 0.9) == 1


# ---- features and scores


def test_things_in_an_output() -> None:
    assert list(atoms({"b": [1, (2.5, None)], "a": np.array([[7]])})) == [7, 1, 2.5, None]
    assert output_key([1]) == "[1]"
    assert output_key(1) != output_key(True)
    assert output_key(np.array([1.0])) == output_key(np.array([1.0]))


@pytest.mark.parametrize(
    "outputs",
    [[1, 2.5, float("nan"), float("inf")], ["yes", None, 3, (1, 2)], [(1,), (1, 2, 3)], [np.zeros(30)] * 3, [(), ()]],
)
def test_every_output_has_a_row(outputs: list[Any]) -> None:
    rows = Encoder(outputs).rows(outputs)
    assert len(rows) == len(outputs)
    assert np.isfinite(rows).all()


def test_different_texts_have_different_rows() -> None:
    outputs = ["yes", "no", "never seen"]
    rows = Encoder(outputs[:2]).rows(outputs)
    assert len({tuple(row) for row in rows}) == 3


def test_scores_speak_for_the_side_that_an_output_is_likelier_on() -> None:
    noise = np.random.default_rng(1)
    first, second = noise.normal(size=3000).tolist(), noise.normal(loc=2, size=3000).tolist()
    low, high = Classifier(first, second)([-1.0, 3.0])
    assert low > 1 > -1 > high
    told = Frequencies(["a", "a", "b"], ["b", "b"])(["a", "b", "c"])
    assert told.tolist() == pytest.approx([1.609, -0.511, 0], abs=1e-3)


# ---- events


def side(parts: list[int]) -> Side:
    return Side((np.ones(len(parts)),), np.array(parts))


def test_a_part_that_was_seen_on_one_side_only() -> None:
    event = Distinguisher(0, 0.0, 0.0, np.array([True, False]))
    shown = epsilon_shown(event, side([0] * 900 + [1] * 100), side([1] * 1000), np.zeros(2), 0.0, 0.01)
    assert shown == pytest.approx(np.log(bounds.at_least(900, 1000, 0.005) / bounds.at_most(0, 1000, 0.005)))


def test_nothing_is_shown_by_no_hits() -> None:
    event = Distinguisher(0, inf, 0.0, np.array([True]))
    assert epsilon_shown(event, side([0] * 10), side([0] * 10), np.zeros(1), 0.0, 0.01) == -inf


def test_delta_is_summed_by_layers_and_many_are_rounded_up() -> None:
    parts = list(range(100)) * 10
    event = Distinguisher(0, 0.0, 0.0, np.ones(100, bool))
    epsilons = np.linspace(0, 1, 100)
    assert delta_shown(event, side(parts), side(parts), epsilons, 0.01) < 1 - np.exp(epsilons).mean()
    everything_else = Distinguisher(0, 0.0, 0.0, np.arange(100) == 99)
    assert delta_shown(everything_else, side(parts), side([0] * 1000), epsilons, 0.01) < 0.01


# ---- bets


def mean_won(bet: Bet, p: float, layers: list[tuple[float, float]], delta: float) -> float:
    """The mean of what a stake of 1 becomes, over all counts of three and three samples; layers are (ε, Q)."""
    largest, size = max(epsilon for epsilon, _ in layers), 3
    law = [*layers, (-inf, 1 - sum(q for _, q in layers))]
    total = 0.0
    for first in range(size + 1):
        chance = comb(size, first) * p**first * (1 - p) ** (size - first)
        for drawn in product(law, repeat=size):
            shares = np.exp(np.array([epsilon - largest for epsilon, _ in drawn if epsilon > -inf]))
            weight = float(np.prod([q for _, q in drawn]))
            total += chance * weight * np.exp(bet.won(Hits(first, shares, (size, size), largest), delta))
    return total


@pytest.mark.parametrize("delta", [0.0, 0.2])
@pytest.mark.parametrize("bet", [Bet(0.5, 0.5), Bet(3.0, 0.9), Bet(0.2, 0.0), Bet(0.0, 0.3), Bet(20.0, 0.99)])
def test_a_bet_is_fair_or_worse_if_the_guarantee_holds(bet: Bet, delta: float) -> None:
    """Exactly, for parts of two prices and the most that the first law is allowed; more than that, and it can win."""
    for low, high in product((0.0, 0.05, 0.2, 0.45), repeat=2):
        layers = [(0.3, low), (1.0, high)]
        allowed = min(sum(np.exp(epsilon) * q for epsilon, q in layers) + delta, 1.0)
        assert mean_won(bet, allowed, layers, delta) <= 1
    if bet.gain and bet.loss and delta == 0:
        assert mean_won(bet, 0.9, [(1.0, 0.01)], delta) > 1


def test_the_best_bet_sees_what_two_bounds_do_not() -> None:
    hits = Hits(240, np.ones(60), (300, 300), 1.0)
    assert delta_won(best_bet(hits, 0.0), hits, 0.005) > 0.02
    assert bounds.at_least(240, 300, 0.0025) - np.e * bounds.at_most(60, 300, 0.0025) < 0
    honest = Hits(200, np.ones(100), (300, 300), 1.0)
    assert best_bet(honest, 0.0) == Bet(0.0, 0.0)
    assert delta_won(Bet(1.0, 0.5), honest, 0.005) == 0


# ---- audits


def test_the_same_seed_gives_the_same_result_on_any_number_of_processes() -> None:
    one = audit(RESPONSE, [(0, 1)], samples=3000, seed=7)
    assert one == audit(RESPONSE, [(0, 1)], samples=3000, seed=7, processes=2)
    assert one != audit(RESPONSE, [(0, 1)], samples=3000, seed=8)


def test_half_a_guarantee_is_refuted_in_words_and_as_json() -> None:
    told: list[float] = []
    found = audit(RESPONSE, [(0, 1)], guarantee=Guarantee.uniform("0.5"), samples=4000, progress=told.append)
    assert found.refuted
    assert told[-1] == 1
    assert "REFUTED" in str(found)
    assert "δ of at least" in str(found)
    assert json.loads(json.dumps(found.to_json()))["refuted"] is True


def test_parts_are_judged_each() -> None:
    found = audit(Coin(epsilon=2, sensitivity=1), [(0, 1)], samples=4000)
    assert not found.refuted
    assert {row.part: row.guaranteed for row in found.parts} == {"answered": 2, "nothing": 0}
    wrong = audit(
        Coin(epsilon=2, sensitivity=1), [(0, 1)], samples=4000, part_of=Coin(epsilon=2, sensitivity=1).part_of,
        guarantee=Guarantee({"answered": "0.9", "nothing": 0}),
    )  # fmt: skip
    assert [row.part for row in wrong.parts if row.refuted] == ["answered"]


def test_an_audit_sized_by_time() -> None:
    told: list[float] = []
    assert audit(RESPONSE, [(0, 1)], seconds=0.05, progress=told.append).samples >= 2000
    assert told == sorted(told)
    assert told[-1] == 1
    with pytest.raises(InvalidValue, match="seconds are above 0"):
        audit(RESPONSE, [(0, 1)], seconds=0)


@given(st.floats(1e-6, 0.1), st.floats(1e-6, 0.1), st.floats(1, 1.1))
def test_a_stated_time_is_for_drawing_and_testing(draw: float, test: float, power: float) -> None:
    """Whatever a chunk costs to draw and to test, also if tests grow faster than their samples: here, on its clock."""
    seconds = 60.0
    now = [0.0]

    def more(found: SampledOutputs, chunks: int, told: Progress | None) -> SampledOutputs:
        before = len(found[0, 0]) if found else 0
        now[0] += draw * (chunks - before)
        return {(0, 0): [None] * chunks}

    def tested(found: SampledOutputs) -> int:
        now[0] += test * len(found[0, 0]) ** power
        return len(found[0, 0])

    chunks = within(seconds, more, tested, clock=lambda: now[0])
    assert now[0] <= seconds
    assert chunks * draw + test * chunks**power > seconds / 6  # and it is used


EMPTY: list[Any] = [(), [], {}, None]
FULL: list[Any] = [(1.0,), ("a",), [1, 2], {"a": 1}, "a", 2.5]


@pytest.mark.parametrize(("empty", "full"), some([*product(EMPTY, FULL)], 5))
def test_a_side_that_always_returns_nothing(empty: Any, full: Any) -> None:
    """The pair that decides a δ: nothing on one database, and rarely something on the other."""

    def rarely(data: int, noise: NoiseSource) -> Any:
        return full if data and noise.chance(1, 16) else empty

    for pair in ((0, 1), (1, 0)):
        assert not audit(rarely, [pair], guarantee=Guarantee.uniform(1, 0.07), samples=4000).refuted
        assert audit(rarely, [pair], guarantee=Guarantee.uniform(1, 0.02), samples=4000).refuted
        assert audit(lambda data, _: full if data else empty, [pair], guarantee=Guarantee.uniform(1)).refuted


def test_a_label_of_one_person_alone() -> None:
    top = mechanisms.TopK(k=1, epsilon=1, delta="0.05")
    assert not audit(top, [({}, {"a": 1})], samples=4000).refuted
    less = Guarantee({0: 1, 1: 1}, "0.005", neighbours="add-remove")
    assert audit(top, [({}, {"a": 1})], guarantee=less, part_of=top.part_of, samples=4000).refuted


def test_renyi_prices_of_a_mechanism() -> None:
    found = audit(Laplace(epsilon=1, sensitivity=1), [(0, 1)], samples=3000, order=4)
    assert found.moment is not None
    assert not found.refuted
    assert "Rényi" in str(found)


def test_a_search_puts_the_pair_first_that_tells_most() -> None:
    mechanism = Laplace(epsilon=1, sensitivity=4)
    assert neighbours.search(mechanism, lambda source: (0, source.randint(0, 4)), tries=5)[0] == (0, 4)


@pytest.mark.parametrize("name", catalogue.names())
def test_every_subject_of_the_catalogue_can_be_sampled(name: str) -> None:
    mechanism, pairs = catalogue.subject(name)
    for pair in pairs:
        for data in pair:
            mechanism.check(data)
            assert mechanism.part_of(mechanism.sample(data, SeededNoise(1))) in mechanism.guarantee


MADE_OF_OTHERS = {"ByGroup", "Chain", "FirstStable", "ProposeTestRelease", "Tested", "TestedRelease"}
"""They take mechanisms, tests or proposals: the Stable… ones and TestedLogisticRegression are made of them."""


def test_every_mechanism_of_the_library_is_in_the_catalogue() -> None:
    kinds = {
        name for name, kind in vars(mechanisms).items() if isinstance(kind, type) and issubclass(kind, Mechanism)
    }  # fmt: skip
    assert kinds == set(catalogue.names()) | MADE_OF_OTHERS


def _never(data: Any, noise: NoiseSource) -> int:
    raise AssertionError


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"mechanism": 3, "pairs": [(0, 1)]}, "takes a mechanism, or a function"),
        ({"mechanism": _never, "pairs": [(0, 1)]}, "and guarantee="),
        ({"mechanism": RESPONSE, "pairs": []}, "pairs of neighbouring databases"),
        ({"mechanism": RESPONSE, "pairs": [(1, 2, 3)]}, "pairs of neighbouring databases"),
        ({"mechanism": RESPONSE, "pairs": [(0, 1)], "confidence": 1}, "between 0 and 1"),
        ({"mechanism": RESPONSE, "pairs": [(0, 1)], "samples": 10}, "samples"),
        ({"mechanism": RESPONSE, "pairs": [(0, 1)], "order": 1}, "above 1"),
        ({"mechanism": RESPONSE, "pairs": [(0, 1)], "prices": Prices(otherwise=1)}, "give order="),
        ({"mechanism": _never, "pairs": [(0, 1)], "guarantee": Guarantee.uniform(1), "order": 2}, "give prices="),
        ({"mechanism": RESPONSE, "pairs": [(0, 1)], "order": 2, "prices": Prices(otherwise=1, delta=1)}, "up to a δ"),
    ],
)
def test_what_is_refused_before_anything_is_drawn(given_: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        audit(**given_)


def test_an_unknown_subject() -> None:
    with pytest.raises(InvalidValue, match="no mechanism 'Lapalce'"):
        catalogue.subject("Lapalce")
