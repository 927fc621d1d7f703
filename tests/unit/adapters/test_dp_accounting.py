"""dp-accounting's events, charged no less than they cost."""

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import log
from typing import Any

import dp_accounting as dp
import pytest
from dp_accounting import NeighboringRelation
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

import expost as xp
from elsewhere.readings import order_of, renyi_units
from expost.accounting import compose, optimal_delta
from expost.accounting.events import losses_of, response_epsilon
from expost.accounting.renyi import sampled_normal_noise
from expost.adapters import EventSteps, event_guarantee, history_event
from expost.adapters.upper import float_below
from soak import SOAK, some

RELATIONS = {"add-remove": NeighboringRelation.ADD_OR_REMOVE_ONE, "substitute": NeighboringRelation.REPLACE_ONE}
NORMAL = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.1))


def leaf(source: random.Random, depth: int = 1) -> Any:
    kind = source.randrange(7 if depth else 4)
    if kind == 0:
        return dp.GaussianDpEvent(round(source.uniform(1, 20), 3))
    if kind == 1:
        return dp.LaplaceDpEvent(round(source.uniform(2, 30), 3))
    if kind == 2:
        return dp.PoissonSampledDpEvent(round(source.uniform(0.001, 0.2), 4), dp.GaussianDpEvent(source.uniform(2, 4)))
    if kind == 3:
        return dp.NoOpDpEvent()
    if kind == 4:
        return dp.SelfComposedDpEvent(leaf(source, depth - 1), source.randint(1, 6))
    return dp.ComposedDpEvent([leaf(source, depth - 1) for _ in range(source.randint(1, 3))])


@pytest.mark.parametrize("seed", some(range(30), 2))
def test_random_compositions_cost_no_less_than_they_say(seed: int) -> None:
    source = random.Random(seed)
    event = dp.ComposedDpEvent([leaf(source) for _ in range(2)])
    delta = source.choice([1e-5, 1e-6, 3e-7])
    charged = event_guarantee(event, delta=delta, neighbours="add-remove").worst_case
    theirs = [kind().compose(event).get_epsilon(float_below(delta)) for kind in (PLDAccountant, RdpAccountant)]
    assert charged.exact_epsilon >= Fraction(min(theirs))
    assert float(charged.exact_epsilon) <= min(theirs) * 1.001 + 1e-4
    assert charged.exact_delta == Fraction(str(delta))


def responses(count: int) -> Any:
    return dp.SelfComposedDpEvent(dp.RandomizedResponseDpEvent(0.5, 2), count)


def test_their_accountant_ignores_how_often_a_response_is_repeated() -> None:
    """The bug that we correct. If this fails, it was mended there: then docs/adapters.md says too much."""
    found = [
        PLDAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE).compose(responses(n)).get_epsilon(1e-6)
        for n in (1, 10)
    ]
    assert found[0] == found[1] == pytest.approx(log(3), abs=1e-3)


@pytest.mark.parametrize("accountant", ["best", "pld", "rdp", "expost"])
def test_ten_responses_cost_ten(accountant: Any) -> None:
    guarantee = event_guarantee(responses(10), delta=1e-6, neighbours="substitute", accountant=accountant)
    assert guarantee.epsilon_of("any") == pytest.approx(10 * log(3), rel=1e-3)
    nested = dp.SelfComposedDpEvent(dp.ComposedDpEvent([responses(2), dp.GaussianDpEvent(1000.0)]), 5)
    again = event_guarantee(nested, delta=1e-6, neighbours="substitute", accountant=accountant)
    assert again.epsilon_of("any") > 10 * log(3) * 0.999


def test_an_exchanged_record_moves_a_sum_twice_as_far() -> None:
    """Their Rényi accountant takes it to move as far as one that is added. Their other one does not."""
    theirs = RdpAccountant(neighboring_relation=NeighboringRelation.REPLACE_ONE).compose(dp.GaussianDpEvent(4.0))
    once = RdpAccountant().compose(dp.GaussianDpEvent(4.0)).get_epsilon(1e-6)
    assert theirs.get_epsilon(1e-6) == once
    ours = event_guarantee(dp.GaussianDpEvent(4.0), delta=1e-6, neighbours="substitute", accountant="rdp")
    assert ours.epsilon_of("any") == pytest.approx(RdpAccountant().compose(dp.GaussianDpEvent(2.0)).get_epsilon(1e-6))
    wor = dp.SampledWithoutReplacementDpEvent(1000, 10, dp.GaussianDpEvent(4.0))
    relation = NeighboringRelation.REPLACE_ONE
    half = dp.SampledWithoutReplacementDpEvent(1000, 10, dp.GaussianDpEvent(2.0))
    expected = RdpAccountant(neighboring_relation=relation).compose(half).get_epsilon(float_below(1e-6))
    found = event_guarantee(wor, delta=1e-6, neighbours="substitute")
    assert found.worst_case.exact_epsilon == pytest.approx(expected)


CORRELATED = type("CorrelatedDpEvent", (dp.DpEvent,), {})
SUBCLASS = type("GaussianDpEvent", (dp.GaussianDpEvent,), {})


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (dp.NonPrivateDpEvent(), "NonPrivateDpEvent guarantees nothing"),
        (dp.UnsupportedDpEvent(), "UnsupportedDpEvent says itself"),
        (dp.ComposedDpEvent([NORMAL, dp.SelfComposedDpEvent(dp.UnsupportedDpEvent(), 3)]), "UnsupportedDpEvent"),
        (dp.PoissonSampledDpEvent(0.1, dp.NonPrivateDpEvent()), "NonPrivateDpEvent guarantees nothing"),
        (dp.dp_event.RepeatAndSelectDpEvent(dp.NonPrivateDpEvent(), 1, 1), "NonPrivateDpEvent guarantees nothing"),
        (dp.PoissonSampledDpEvent(0.1, NORMAL), "do not support"),
        (dp.SampledWithReplacementDpEvent(10, 2, dp.GaussianDpEvent(1.0)), "neither accountant"),
        (dp.SingleEpochTreeAggregationDpEvent(1.0, [3]), "a relation that expost lacks"),
        (dp.RandomizedResponseDpEvent(0.5, 2), "say neighbours='substitute'"),
        (CORRELATED(), "CorrelatedDpEvent, which is not understood"),
        (SUBCLASS(1.0), "which is not understood"),
        (dp.GaussianDpEvent(float("nan")), "finite number, got nan"),
        (dp.GaussianDpEvent(float("inf")), "finite number, got inf"),
        (dp.GaussianDpEvent(0.0), "without noise"),
        (dp.LaplaceDpEvent(-1.0), "above 0"),
        (dp.GaussianDpEvent("1"), "is a number"),
        (dp.SelfComposedDpEvent(NORMAL, 2.5), "a whole number"),
        (dp.SelfComposedDpEvent(NORMAL, -1), "a whole number"),
        (dp.SelfComposedDpEvent(NORMAL, True), "a whole number"),
        (dp.SelfComposedDpEvent(dp.SelfComposedDpEvent(NORMAL, 10**5), 10**5), "at most 10000000 steps"),
        (dp.PoissonSampledDpEvent(1.5, dp.GaussianDpEvent(1.0)), "is a probability"),
        (dp.dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.6]), "add up to 1"),
        (dp.ZCDpEvent(-1.0), "not negative"),
        (dp.ZCDpEvent(float("inf")), "finite"),
        (dp.SampledWithoutReplacementDpEvent(10, 20, dp.GaussianDpEvent(1.0)), "larger than its data set"),
        ("gaussian", "a DpEvent of dp-accounting is needed, got str"),
    ],
)
def test_events_that_are_not_understood_are_refused_by_name(event: Any, said: str) -> None:
    ledger = xp.Ledger(epsilon=9, delta=1e-3)
    for make in (
        lambda: event_guarantee(event, delta=1e-6, neighbours="add-remove"),
        lambda: EventSteps(event=event, count=2, stops=(2,), delta=1e-6, neighbours="add-remove"),
    ):
        with pytest.raises(xp.InvalidValue, match=said):
            ledger.open(make())
    assert list(ledger.entries()) == []


def test_an_event_that_holds_itself() -> None:
    event = dp.ComposedDpEvent([])
    event.events.append(event)
    with pytest.raises(xp.InvalidValue, match="holds itself"):
        event_guarantee(event, delta=1e-6, neighbours="add-remove")


def test_an_event_that_grows_later_is_planned_as_it_was() -> None:
    parts = [NORMAL]
    mechanism = training(event=dp.ComposedDpEvent(parts), count=2, stops=(2,))
    before = mechanism.fingerprint, mechanism.renyi_prices(8)
    parts.append(dp.GaussianDpEvent(0.1))
    assert (mechanism.fingerprint, mechanism.renyi_prices(8)) == before


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"delta": 0}, "needs a δ"),
        ({"delta": float("nan")}, "finite number"),
        ({"neighbours": None}, "say which"),
        ({"neighbours": "special"}, "say which"),
        ({"accountant": "gdp"}, "an accountant is"),
    ],
)
def test_public_mistakes(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(xp.InvalidValue, match=said):
        event_guarantee(NORMAL, **{"delta": 1e-6, "neighbours": "add-remove", **settings})


@pytest.mark.parametrize(
    "event",
    [
        dp.dp_event.MixtureOfGaussiansDpEvent(10.0 if SOAK else 100.0, [0.0, 1.0], [0.5, 0.5]),  # 10 takes theirs long
        dp.dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 5, 4.0),
        dp.dp_event.RepeatAndSelectDpEvent(dp.GaussianDpEvent(5.0), 2.0, 1.0),
        dp.PoissonSampledDpEvent(0.1, dp.SelfComposedDpEvent(dp.GaussianDpEvent(3.0), 4)),
    ],
)
def test_rarer_events_cost_no_less_than_they_say(event: Any) -> None:
    charged = event_guarantee(event, delta=1e-5, neighbours="add-remove").worst_case
    made = [kind() for kind in (PLDAccountant, RdpAccountant)]
    theirs = [each.compose(event).get_epsilon(float_below(1e-5)) for each in made if each.supports(event)]
    assert charged.exact_epsilon >= Fraction(float(min(theirs)))


def test_nothing_costs_nothing() -> None:
    for event in (dp.NoOpDpEvent(), dp.SelfComposedDpEvent(NORMAL, 0), dp.PoissonSampledDpEvent(0.0, NORMAL.event)):
        assert event_guarantee(event, delta=1e-6, neighbours="add-remove").worst_case == xp.Cost(0, 1e-6)
    with pytest.raises(xp.InvalidValue, match="take accountant='rdp'"):
        event_guarantee(dp.ZCDpEvent(0.1), delta=1e-6, neighbours="add-remove", accountant="expost")


STOPS = (400, 800, 1200, 1600, 2000)


def training(**settings: Any) -> EventSteps:
    usual = {"event": NORMAL, "count": 2000, "stops": STOPS, "delta": 1e-5, "neighbours": "add-remove"}
    return EventSteps(**usual | settings)


def test_stops_are_planned_and_settled() -> None:
    mechanism, ledger = training(), xp.Ledger(epsilon=5, delta=1e-5)
    with ledger.open(mechanism) as interaction:
        for number in interaction:
            if number == 500:
                break
    assert interaction.release.part == 800
    assert ledger.spent == mechanism.guarantee.cost_of(800)
    epsilons = [mechanism.guarantee.cost_of(stop).exact_epsilon for stop in STOPS]
    assert all(one < other for one, other in pairwise(epsilons))
    fixed = event_guarantee(dp.SelfComposedDpEvent(NORMAL, 2000), delta=1e-5, neighbours="add-remove")
    assert fixed.worst_case.exact_epsilon < epsilons[-1]


def test_planned_stops_need_no_more_delta_than_was_asked_for() -> None:
    small = training(event=dp.ComposedDpEvent([NORMAL, dp.GaussianDpEvent(9.0)]), count=8, stops=(2, 8))
    epsilons = [small.guarantee.cost_of(stop).exact_epsilon for stop in (2, 8)]
    assert optimal_delta(losses_of(small.event) * 8, (4, 16), epsilons).lower <= 1e-5


def test_a_renyi_ledger_pays_for_steps() -> None:
    mechanism, ledger = training(every_step=True), xp.Ledger(epsilon=5, delta=1e-5, accounting="renyi")
    with ledger.open(mechanism) as interaction:
        for number in interaction:
            if number == 500:
                break
    price = sampled_normal_noise(order_of(ledger), Fraction(1.1), Fraction(0.01))
    assert interaction.release.part == 500
    assert 0 <= renyi_units(interaction.release.entry) - 500 * price * 10**12 < 1
    assert 0 < ledger.spent.epsilon < 5


def test_steps_are_counted_when_they_begin() -> None:
    ledger = xp.Ledger(epsilon=5, delta=1e-4)
    mechanism = training(count=3, stops=(1, 2, 3))

    def fail_in_the_second(interaction: Any) -> None:
        with interaction:
            for number in interaction:
                assert number < 2

    interaction = ledger.open(mechanism)
    with pytest.raises(AssertionError):
        fail_in_the_second(interaction)
    assert interaction.release.part == 2
    with ledger.open(mechanism) as interaction:
        assert list(interaction) == [1, 2, 3]
        with pytest.raises(xp.errors.InteractionClosed, match="all 3 steps"):
            interaction.begin_step()
    assert interaction.release.charged == mechanism.guarantee.worst_case


def test_events_that_only_the_renyi_accountant_knows_share_delta() -> None:
    mechanism = training(event=dp.ZCDpEvent(0.001), count=20, stops=(10, 20))
    for stop in (10, 20):
        event = dp.SelfComposedDpEvent(dp.ZCDpEvent(0.001), stop)
        alone = RdpAccountant().compose(event).get_epsilon(float_below(5e-6))
        assert mechanism.guarantee.cost_of(stop).exact_epsilon >= Fraction(alone)
    assert 0 <= mechanism.renyi_prices(8).of(20) - 20 * 8 * 10**9 <= 1
    with pytest.raises(xp.InvalidValue, match="too small to be shared"):
        training(event=dp.ZCDpEvent(0.001), count=2, stops=(1, 2), delta="1e-18")


def price(event: Any, order: Any, **settings: Any) -> int:
    return training(event=event, count=1, stops=(1,), **settings).renyi_prices(order).worst


def test_prices_of_steps() -> None:
    def theirs(event: Any, order: float, relation: str = "add-remove") -> float:
        made = RdpAccountant(orders=[order], neighboring_relation=RELATIONS[relation])
        return float(made.compose(event)._rdp[0] * 10**12)

    for event in (dp.GaussianDpEvent(3.0), dp.LaplaceDpEvent(3.0), NORMAL, dp.ZCDpEvent(0.01, 0.02)):
        assert price(event, 8) == pytest.approx(theirs(event, 8.0), rel=1e-9)
    response = dp.RandomizedResponseDpEvent(0.5, 3)
    assert price(response, 8, neighbours="substitute") == pytest.approx(theirs(response, 8.0, "substitute"), rel=1e-9)
    exchanged = price(dp.GaussianDpEvent(3.0), 8, neighbours="substitute")
    assert exchanged == pytest.approx(4 * theirs(dp.GaussianDpEvent(3.0), 8.0), rel=1e-9)
    wor = dp.SampledWithoutReplacementDpEvent(1000, 10, dp.GaussianDpEvent(4.0))
    half = dp.SampledWithoutReplacementDpEvent(1000, 10, dp.GaussianDpEvent(2.0))
    assert price(wor, "7.5", neighbours="substitute") == pytest.approx(theirs(half, 8.0, "substitute"), abs=1)
    discrete = dp.dp_event.DiscreteLaplaceDpEvent(0.3, 1)  # the Rényi accountant does not know it
    assert price(discrete, 8) <= Fraction(3, 10) * 10**12 * Fraction(1001, 1000)


def test_normal_noise_is_counted_as_such() -> None:
    mechanism = training(event=dp.GaussianDpEvent(2.0), count=4, stops=(2, 4))
    prices = mechanism.gaussian_prices()
    assert prices is not None
    assert prices.of(2) == 10**12 // 2
    assert training(event=dp.LaplaceDpEvent(2.0), count=4, stops=(2, 4)).gaussian_prices() is None


def test_fingerprints_tell_events_apart() -> None:
    one = training(count=2, stops=(2,))
    assert one.fingerprint == training(count=2, stops=(2,)).fingerprint
    other = dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.1000000000000003))
    assert len({one.fingerprint, training(event=other, count=2, stops=(2,)).fingerprint}) == 2
    assert "GaussianDpEvent" in repr(one)


@pytest.mark.parametrize(("neighbours", "accountant"), [("substitute", PLDAccountant), ("add-remove", RdpAccountant)])
def test_a_history_goes_back_as_an_event(neighbours: Any, accountant: Callable[..., Any]) -> None:
    ledger = xp.Ledger(epsilon=3, delta=1e-5)
    for _ in range(20):
        with ledger.reserve(xp.Guarantee({"a": 0.1, "b": 0.01}, 1e-7)) as spending:
            spending.settle("b")
    with ledger.reserve(xp.Guarantee.uniform(1), begin=False) as spending:
        spending.void()
    history = history_event(ledger, neighbours=neighbours)
    assert history.delta == Fraction(20, 10**7)
    assert len(history.event.events) == 20
    found = accountant(neighboring_relation=RELATIONS[neighbours]).compose(history.event).get_epsilon(1e-6)
    exactly = compose([(Fraction(1, 10), 0)] * 20).epsilon(1e-6).lower
    assert found >= float(exactly) * (1 - 1e-6)
    assert found < 2.2
    with pytest.raises(xp.InvalidValue, match="say neighbours='substitute'"):
        history_event(xp.Ledger(epsilon=1, neighbours="substitute"), neighbours="add-remove")
    with pytest.raises(xp.InvalidValue, match="a history is for"):
        history_event(ledger, neighbours="all")


def test_the_rounding_of_responses_is_up() -> None:
    for epsilon in (Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(7)):
        ledger = xp.Ledger(epsilon=10)
        ledger.reserve(xp.Guarantee.uniform(epsilon))
        (event,) = history_event(ledger, neighbours="substitute").event.events
        assert response_epsilon(event) >= epsilon
