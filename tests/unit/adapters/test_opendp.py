"""OpenDP's measurements, charged what their maps say."""

import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import opendp.prelude as dp
import pytest

import expost as xp
from elsewhere.readings import order_of, renyi_units
from expost.accounting.renyi import zcdp
from expost.adapters import OpenDPMeasurement

dp.enable_features("contrib", "honest-but-curious")
UNIT = 10**12
NUMBER = dp.atom_domain(T=int), dp.absolute_distance(T=int)
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
VECTOR = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
RECORDS = dp.vector_domain(dp.atom_domain(bounds=(0, 10))), dp.symmetric_distance()
SIZED = dp.vector_domain(dp.atom_domain(bounds=(0, 10)), size=5), dp.change_one_distance()


def laplace(scale: float = 3.0) -> Any:
    return dp.m.make_laplace(*NUMBER, scale=scale)


def gaussian(scale: float = 7.0) -> Any:
    return dp.m.make_gaussian(*NUMBER, scale=scale)


def fixed() -> Any:
    return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian()), 1e-7)


def candidates() -> Any:
    domain = dp.vector_domain(dp.atom_domain(T=int))
    return dp.m.make_noisy_max(domain, dp.linf_distance(T=int), dp.max_divergence(), scale=3.0)


MEASUREMENTS: dict[str, tuple[Callable[[], Any], Any, Any, str | None]] = {
    "laplace": (laplace, 1, 5, None),
    "laplace, sensitivity 7": (laplace, 7, 5, None),
    "laplace of floats": (lambda: dp.m.make_laplace(*REAL, scale=0.7), 0.1, 0.5, None),
    "laplace of vectors": (lambda: dp.m.make_laplace(*VECTOR, scale=1.1), 3, [1, 2], None),
    "geometric": (lambda: dp.m.make_geometric(*NUMBER, scale=1.3), 1, 5, None),
    "randomized response": (lambda: dp.m.make_randomized_response_bool(prob=0.75), 1, True, None),
    "noisy max": (candidates, 1, [3, 9, 1], None),
    "sum": (lambda: RECORDS >> dp.t.then_sum() >> dp.m.then_laplace(scale=9.0), 1, [1, 2, 3], "add-remove"),
    "sum of a public size": (
        lambda: SIZED >> dp.t.then_metric_unbounded() >> dp.t.then_sum() >> dp.m.then_laplace(scale=9.0),
        1,
        [1, 2, 3, 4, 5],
        "substitute",
    ),
    "fixed delta": (fixed, 1, 5, None),
    "pure as approximate": (lambda: dp.c.make_approximate(laplace()), 1, 5, None),
    "composition": (lambda: dp.c.make_composition([laplace(), laplace(1.7), laplace(0.3)]), 1, 5, None),
}


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_the_charge_is_the_map_rounded_up(name: str) -> None:
    make, d_in, data, relation = MEASUREMENTS[name]
    measurement = make()
    ledger = xp.Ledger(epsilon=100, delta=1e-3)
    release = ledger.run(OpenDPMeasurement(measurement=measurement, d_in=d_in), on=data)
    said = measurement.map(d_in)
    epsilon, delta = map(Fraction, said if isinstance(said, tuple) else (said, 0))
    assert epsilon <= release.charged.exact_epsilon < epsilon + Fraction(1, UNIT)
    assert delta <= release.charged.exact_delta < delta + Fraction(1, 10**18)
    assert release.entry.guarantee.neighbours == relation
    assert ledger.neighbours == relation


def test_zcdp_is_counted_as_it_is_in_a_renyi_ledger() -> None:
    measurement = gaussian()
    ledger = xp.Ledger(epsilon=2, delta=1e-5, accounting="renyi")
    release = ledger.run(OpenDPMeasurement(measurement=measurement, d_in=1, delta=1e-6), on=5)
    exactly = zcdp(order_of(ledger), Fraction(measurement.map(1)))
    assert exactly <= Fraction(renyi_units(release.entry), UNIT) < exactly + Fraction(1, UNIT)
    assert release.charged == xp.Cost(0)  # no δ is taken


def test_zcdp_has_an_epsilon_at_a_delta() -> None:
    guarantee = OpenDPMeasurement(measurement=gaussian(), d_in=1, delta=1e-6).guarantee
    curve = dp.c.make_zCDP_to_approxDP(gaussian()).map(1)
    assert guarantee.epsilon_of("any") == pytest.approx(curve.epsilon(1e-6), rel=1e-3)
    assert guarantee.worst_case.exact_delta == Fraction(1, 10**6)
    profile = OpenDPMeasurement(measurement=dp.c.make_zCDP_to_approxDP(gaussian()), d_in=1, delta=1e-6).guarantee
    assert Fraction(curve.epsilon(1e-6)) <= profile.worst_case.exact_epsilon
    approximate = OpenDPMeasurement(measurement=dp.c.make_approximate(gaussian()), d_in=1, delta=1e-6)
    assert approximate.guarantee == guarantee
    assert approximate.renyi_prices(8).delta  # it has a δ of its own


def renyi(price: Callable[[float], float]) -> Any:
    return dp.m.make_user_measurement(
        *NUMBER, dp.renyi_divergence(), function=lambda value: value, privacy_map=lambda _: price, TO="i32"
    )


def test_renyi_divergence_at_the_order_of_the_ledger() -> None:
    mechanism = OpenDPMeasurement(measurement=renyi(lambda order: order / 98), d_in=1, delta=1e-6, name="r")
    usual = OpenDPMeasurement(measurement=gaussian(), d_in=1, delta=1e-6)
    assert mechanism.renyi_prices(Fraction(22, 7)).worst == pytest.approx(usual.renyi_prices(Fraction(22, 7)).worst)
    assert mechanism.guarantee.epsilon_of("any") == pytest.approx(usual.guarantee.epsilon_of("any"), rel=1e-9)


SPACE = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()


@pytest.mark.parametrize(
    ("make", "settings", "said"),
    [
        (lambda: laplace(0.0), {}, "ε is inf, which guarantees nothing"),
        (lambda: renyi(lambda _: float("nan")), {"delta": 1e-6}, "nan, which guarantees nothing"),
        (lambda: renyi(lambda _: float("inf")), {"delta": 1e-6}, "infinite at every order"),
        (gaussian, {}, "only at a δ: give delta="),
        (gaussian, {"delta": 0}, "at least 1e-18"),
        (gaussian, {"delta": float("nan")}, "δ must be a finite number"),
        (laplace, {"d_in": -1}, "finite numbers above 0, got -1"),
        (laplace, {"d_in": 0.5}, "at least 1 apart"),
        (laplace, {"d_in": None}, "does not take d_in None"),
        (laplace, {"neighbours": "removal"}, "neighbours must be"),
        (laplace, {"name": ""}, "a name is a text"),
        (lambda: RECORDS >> dp.t.then_sum() >> dp.m.then_laplace(scale=9.0), {"neighbours": "substitute"}, "two apart"),
        (
            lambda: SIZED >> dp.t.then_metric_unbounded() >> dp.t.then_sum() >> dp.m.then_laplace(scale=9.0),
            {"neighbours": "add-remove"},
            "not 'add-r",
        ),
        (lambda: dp.t.make_count(*SPACE), {}, "Measurement is needed, got a Transformation"),
        (lambda: dp.c.make_fully_adaptive_composition(*SPACE, dp.max_divergence()), {}, "an odometer bounds no loss"),
        (lambda: 3, {}, "Measurement is needed, got a int"),
    ],
)
def test_public_mistakes(make: Callable[[], Any], settings: dict[str, Any], said: str) -> None:
    with pytest.raises(xp.InvalidValue, match=said):
        OpenDPMeasurement(**{"measurement": make(), "d_in": 1, **settings})


def summed(size: int | None, metric: Any) -> Any:
    domain = dp.vector_domain(dp.atom_domain(bounds=(0, 10)), size=size)
    return (domain, metric) >> dp.t.then_sum() >> dp.m.then_laplace(scale=9.0)


def large_keys() -> Any:
    counts = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
    return dp.m.make_laplace_threshold(counts, dp.l01inf_distance(dp.absolute_distance(T=int)), 2.0, 20)


def stated(loss: Any) -> Any:
    measure = dp.zero_concentrated_divergence()
    return dp.m.make_user_measurement(*REAL, measure, lambda value: value, lambda _: loss, TO="f64")


def in_a_context(contributions: int) -> Any:
    asked = dp.Context.compositor(
        data=[1, 2, 3],
        privacy_unit=dp.unit_of(contributions=contributions),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
        domain=dp.vector_domain(dp.atom_domain(T=int)),
    )
    return asked, asked.query().clamp((0, 10)).sum().laplace(20.0)


@pytest.mark.parametrize(
    ("make", "d_in"),
    [
        (laplace, 0),
        (lambda: dp.m.make_laplace(*REAL, scale=2.0), 0.0),
        (lambda: dp.m.make_laplace(*REAL, scale=2.0), -0.0),
        (lambda: dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=float), scale=2.0), 0.999),
        (lambda: dp.m.make_gaussian(VECTOR[0], dp.l2_distance(T=float), scale=2.0), 1e-9),
        (lambda: dp.m.make_randomized_response_bool(prob=0.75), 0),
        (gaussian, 0),
        (lambda: summed(None, dp.symmetric_distance()), 0),
        (lambda: summed(None, dp.insert_delete_distance()), 0),
        (lambda: summed(5, dp.symmetric_distance()), 0),
        (large_keys, (0, 1, 1)),
        (large_keys, (1, 0, 1)),
        (large_keys, (1, 1, 0)),
        (lambda: dp.c.make_adaptive_composition(*SPACE, dp.max_divergence(), d_in=0, d_mids=[1.0]), 0),
        (lambda: stated(0.0), 1.0),
        (lambda: renyi(lambda _: 0.0), 1),
        (lambda: dp.c.make_approximate(stated(0.0)), 1.0),
    ],
)
def test_a_distance_that_protects_nobody_is_refused(make: Callable[[], Any], d_in: Any) -> None:
    with pytest.raises(xp.InvalidValue, match="protects nobody"):
        OpenDPMeasurement(measurement=make(), d_in=d_in, delta=1e-6)


@pytest.mark.parametrize("d_in", [-1.0, float("nan"), float("inf"), -(10**400), [1.0, float("nan")]])
def test_a_distance_is_finite_and_not_negative_whatever_the_map_takes(d_in: Any) -> None:
    metric = dp.user_distance("theirs")
    domain = dp.user_domain("all", lambda _: True)
    free = dp.m.make_user_measurement(domain, metric, dp.max_divergence(), lambda _: 1, lambda _: 0.5, TO="i32")
    with pytest.raises(xp.InvalidValue, match="finite numbers above 0"):
        OpenDPMeasurement(measurement=free, d_in=d_in, neighbours="add-remove")


def test_records_of_a_public_number_are_exchanged_two_apart() -> None:
    """One record apart are no two databases of one size: the map says ε 0 for a sum that hides nobody."""
    measurement = summed(5, dp.symmetric_distance())
    assert measurement.map(1) == 0
    for odd in (1, 3):
        with pytest.raises(xp.InvalidValue, match="an even number apart"):
            OpenDPMeasurement(measurement=measurement, d_in=odd)
    assert OpenDPMeasurement(measurement=measurement, d_in=2).neighbours == "substitute"
    with pytest.raises(xp.InvalidValue, match="not 'add-remove'"):
        OpenDPMeasurement(measurement=measurement, d_in=2, neighbours="add-remove")


def test_a_context_that_protects_nobody_or_others_is_refused_before_any_charge() -> None:
    with pytest.raises(xp.InvalidValue, match="protects nobody"):
        OpenDPMeasurement.of_query(in_a_context(0)[1])
    asked, query = in_a_context(2)
    ledger = xp.Ledger(epsilon=9)
    mechanism = OpenDPMeasurement.of_query(query)
    one = OpenDPMeasurement(measurement=mechanism.measurement, d_in=1)
    with pytest.raises(xp.InvalidValue, match="the context protects d_in 2"):
        ledger.run(one, on=asked)
    assert list(ledger.entries()) == []
    assert ledger.run(mechanism, on=asked).charged == xp.Cost(1)


def test_unknown_metrics_and_measures_are_refused() -> None:
    metric = dp.user_distance("theirs")
    measurement = dp.m.make_user_measurement(
        dp.user_domain("all", lambda _: True), metric, dp.max_divergence(), lambda _: 1, lambda _: 0.5, TO="i32"
    )
    with pytest.raises(xp.InvalidValue, match="is not known here"):
        OpenDPMeasurement(measurement=measurement, d_in=1.0)
    assert OpenDPMeasurement(measurement=measurement, d_in=1.0, neighbours="add-remove").neighbours == "add-remove"
    theirs = dp.m.make_user_measurement(*NUMBER, dp.user_divergence("theirs"), lambda _: 1, lambda _: 0.5, TO="i32")
    with pytest.raises(xp.InvalidValue, match="has no ε here"):
        OpenDPMeasurement(measurement=theirs, d_in=1)


def test_an_exception_on_a_value_is_charged() -> None:
    ledger = xp.Ledger(epsilon=1)
    mechanism = OpenDPMeasurement(measurement=laplace(), d_in=1)
    with pytest.raises(TypeError) as caught:
        ledger.run(mechanism, on="text")
    assert "worst case" in caught.value.__notes__[-1]
    assert ledger.spent == mechanism.guarantee.worst_case
    with pytest.raises(xp.InvalidValue, match="give on="):
        ledger.run(mechanism)


def context(queries: int = 2) -> Any:
    return dp.Context.compositor(
        data=[1, 2, 3],
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=queries,
        domain=dp.vector_domain(dp.atom_domain(T=int)),
    )


def test_queries_of_a_context() -> None:
    asked, ledger = context(), xp.Ledger(epsilon=1)
    mechanism = OpenDPMeasurement.of_query(asked.query().clamp((0, 10)).sum().laplace())
    assert mechanism.guarantee == xp.Guarantee.uniform(0.5, neighbours="add-remove")
    assert isinstance(ledger.run(mechanism, on=asked).value, int)
    assert asked.remaining_privacy_loss() == [0.5]  # its own accountant was asked, too
    assert isinstance(ledger.run(mechanism, on=[4, 5]).value, int)
    assert ledger.remaining == xp.Cost(0)
    with pytest.raises(xp.InvalidValue, match="a query is what"):
        OpenDPMeasurement.of_query(laplace())
    with pytest.raises(xp.InvalidValue, match="of_query"):
        OpenDPMeasurement(measurement=asked.query(), d_in=1)
    with pytest.raises(xp.InvalidValue, match="no d_in"):
        OpenDPMeasurement.of_query(dp.Query(SPACE, dp.max_divergence()))


def compositor(losses: list[float]) -> OpenDPMeasurement:
    made = dp.c.make_adaptive_composition(*SPACE, dp.max_divergence(), d_in=1, d_mids=losses)
    return OpenDPMeasurement(measurement=made, d_in=1)


def test_queryables_are_interactions() -> None:
    ledger = xp.Ledger(epsilon=2)
    count = SPACE >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    with pytest.raises(xp.InvalidValue, match="one at a time"):
        ledger.run(compositor([0.5, 0.5]), on=[1, 2])
    assert list(ledger.entries()) == []
    with ledger.open(compositor([0.5, 0.5]), on=[1, 2]) as ask:
        assert ledger.spent == xp.Cost(0)
        assert [type(ask(count)) for _ in range(2)] == [int, int]
    assert ledger.spent == xp.Cost(1)
    with pytest.raises(xp.errors.InteractionClosed):
        ask(count)
    with ledger.open(compositor([0.5, 0.5]), on=[1, 2]):
        pass
    assert ledger.spent == xp.Cost(1)  # nothing was asked


def test_an_answer_that_takes_questions_itself_is_not_handed_out() -> None:
    ledger = xp.Ledger(epsilon=2)
    inner = compositor([0.5]).measurement
    with ledger.open(compositor([0.5, 0.5]), on=[1, 2]) as ask, pytest.raises(xp.InvalidValue, match="closed"):
        ask(inner)
    assert ledger.spent == xp.Cost(1)
    plain = OpenDPMeasurement(measurement=laplace(), d_in=1)
    with ledger.open(plain, on=5) as ask, pytest.raises(xp.InvalidValue, match="gives one output"):
        ask(1)


def test_what_prints_alike_is_not_the_same() -> None:
    two, three = (OpenDPMeasurement(measurement=laplace(scale), d_in=1) for scale in (2.0, 3.0))
    assert str(two.measurement) == str(three.measurement)
    same = OpenDPMeasurement(measurement=laplace(2.0), d_in=1)
    assert two.fingerprint == same.fingerprint != three.fingerprint
    # the noise differs, and the loss does not: twice the scale at twice the distance
    four = OpenDPMeasurement(measurement=laplace(4.0), d_in=2)
    assert four.guarantee == two.guarantee
    assert four.fingerprint != two.fingerprint


def test_functions_of_python_need_a_name() -> None:
    doubled, halved = (laplace(2.0) >> function for function in (lambda value: value * 2, lambda value: value // 2))
    ledger = xp.Ledger(epsilon=4)
    with pytest.raises(xp.InvalidValue, match="give name="):
        ledger.run(OpenDPMeasurement(measurement=doubled, d_in=1), on=5, key="k")
    assert list(ledger.entries()) == []
    ledger.run(OpenDPMeasurement(measurement=doubled, d_in=1, name="doubled"), on=5, key="k")
    with pytest.raises(xp.errors.KeyConflict):
        ledger.run(OpenDPMeasurement(measurement=halved, d_in=1, name="halved"), on=5, key="k")
    other = laplace(3.0) >> (lambda value: value * 2)
    with pytest.raises(xp.errors.KeyConflict):
        ledger.run(OpenDPMeasurement(measurement=other, d_in=1, name="doubled"), on=5, key="k")


def test_long_chains_are_written_once() -> None:
    chain = SPACE >> dp.t.then_clamp((0, 10))
    for _ in range(40):
        chain = chain >> dp.t.then_clamp((0, 10))
    assert OpenDPMeasurement(measurement=chain >> dp.t.then_sum() >> dp.m.then_laplace(scale=9.0), d_in=1).fingerprint


ELSEWHERE = """
import json, sys
import opendp.prelude as dp
import expost as xp
from expost.adapters import OpenDPMeasurement
dp.enable_features("contrib")
for url in sys.argv[1:]:
    found = []
    ledger = xp.Ledger.load(url, "people")
    for scale in (2.0, 3.0):
        noisy = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=scale)
        try:
            release = ledger.run(OpenDPMeasurement(measurement=noisy, d_in=int(scale)), on=10**6, key="count")
            found.append([release.value, release.replayed])
        except xp.errors.KeyConflict:
            found.append("conflict")
    print(json.dumps(found))
"""


def test_a_key_is_for_one_measurement_in_all_stores_and_processes(
    sqlite_url: Callable[[], str], postgres_url: Callable[[], str]
) -> None:
    """Scale 2 at distance 2 and scale 3 at distance 3 print alike, and cost the same."""
    urls = [sqlite_url(), postgres_url()]
    ledgers = [xp.Ledger.create(url, "people", epsilon=9, neighbours="add-remove", unit="person") for url in urls]
    found = []
    for ledger in ledgers:
        first = ledger.run(OpenDPMeasurement(measurement=laplace(2.0), d_in=2), on=7, key="count")
        with pytest.raises(xp.errors.KeyConflict):
            ledger.run(OpenDPMeasurement(measurement=laplace(3.0), d_in=3), on=7, key="count")
        found.append([[first.value, True], "conflict"])
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, *urls], check=True, capture_output=True, text=True)
    assert [json.loads(line) for line in done.stdout.splitlines()] == found
    assert [ledger.spent for ledger in ledgers] == [xp.Cost(1)] * 2


def test_a_key_is_for_one_measurement_in_memory() -> None:
    ledger = xp.Ledger(epsilon=9)
    first = ledger.run(OpenDPMeasurement(measurement=laplace(2.0), d_in=2), on=7, key="count")
    with pytest.raises(xp.errors.KeyConflict):
        ledger.run(OpenDPMeasurement(measurement=laplace(3.0), d_in=3), on=7, key="count")
    again = ledger.run(OpenDPMeasurement(measurement=laplace(2.0), d_in=2), on=7, key="count")
    assert (again.value, again.replayed) == (first.value, True)
