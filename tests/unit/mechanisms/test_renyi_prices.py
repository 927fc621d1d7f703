"""What mechanisms know about their Rényi prices."""

from __future__ import annotations

from fractions import Fraction

import pytest

import expost as xp
from expost.accounting.losses import GaussianNoise, LaplaceNoise
from expost.accounting.metering import MeterFilter
from expost.accounting.meters import RenyiMeter, Round
from expost.accounting.normal import normal_noise_for
from expost.accounting.renyi import (
    Prices,
    laplace_noise,
    normal_noise,
    randomized_response,
    sampled_normal_noise,
    tangent_prices,
    zcdp,
)

ORDER = Fraction("21.5")


def units(price: Fraction) -> int:
    return Prices.uniform(price).worst


def test_normal_noise_needs_no_delta() -> None:
    mechanism = xp.Gaussian(epsilon=1, delta="1e-6", sensitivity=3)
    ratio = normal_noise_for(Fraction(1), Fraction(1, 10**6))
    assert mechanism.renyi_prices(ORDER) == Prices.uniform(normal_noise(ORDER, ratio))
    assert mechanism.gaussian_prices() == Prices.uniform(1 / ratio**2)
    assert mechanism.renyi_prices(ORDER).worst < tangent_prices(mechanism.guarantee, ORDER).worst


def test_discrete_normal_noise_is_priced_by_its_zcdp() -> None:
    mechanism = xp.DiscreteGaussian(rho="0.01", delta="1e-6", sensitivity=1)
    assert mechanism.renyi_prices(ORDER) == Prices.uniform(zcdp(ORDER, "0.01"))
    assert mechanism.gaussian_prices() is None


@pytest.mark.parametrize(
    ("sensitivity", "grid", "steps"),
    [(1, None, 1), (5, None, 5), ("2.5", None, 2), ("0.5", None, 1024), (5, 8, 1), (5, 2, 3), ("0.5", "0.25", 2)],
)
def test_laplace_noise_counts_the_least_steps_that_data_may_have(
    sensitivity: int | str, grid: int | str | None, steps: int
) -> None:
    """Whole numbers have the sensitivity in steps, floats that of the grid; a thousand of them if none is given."""
    mechanism = xp.Laplace(epsilon=1, sensitivity=sensitivity, grid=grid)
    price = mechanism.renyi_prices(ORDER).worst
    assert units(laplace_noise(ORDER, 1, None)) <= price == units(laplace_noise(ORDER, 1, steps))
    assert price <= tangent_prices(mechanism.guarantee, ORDER).worst + 1


def test_randomised_response_knows_its_choices() -> None:
    mechanism = xp.mechanisms.RandomizedResponse(epsilon=1, choices=10)
    assert mechanism.renyi_prices(ORDER).worst == units(randomized_response(ORDER, 1, 10))
    assert mechanism.renyi_prices(ORDER).worst < tangent_prices(mechanism.guarantee, ORDER).worst


def test_other_mechanisms_take_what_their_guarantee_implies() -> None:
    mechanism = xp.SparseVector(threshold=5, at_most=3, epsilon=1, sensitivity=1)
    assert mechanism.renyi_prices(ORDER) == tangent_prices(mechanism.guarantee, ORDER)
    assert mechanism.gaussian_prices() is None


def test_steps_that_may_stop_pay_for_the_steps_taken() -> None:
    sampled = GaussianNoise(1, "0.01")
    run = xp.Iterative(steps=(sampled,) * 30, stops=(10, 20, 30), delta="1e-5", sensitivity=1, neighbours="add-remove")
    step = sampled_normal_noise(ORDER, 1, "0.01")
    assert run.renyi_prices(ORDER) == Prices({k: units(k * step) for k in (10, 20, 30)})
    assert run.gaussian_prices() is None


def test_steps_of_several_kinds() -> None:
    steps = (GaussianNoise(10), LaplaceNoise(20), xp.Laplace(epsilon="0.1", sensitivity=1))
    run = xp.Iterative(steps=steps, stops=(1, 2, 3), delta="1e-5", sensitivity=1)
    first, second = normal_noise(ORDER, 10), laplace_noise(ORDER, Fraction(1, 20), None)
    third = Fraction(steps[2].renyi_prices(ORDER).worst, 10**12)
    assert run.renyi_prices(ORDER).table == {
        1: units(first),
        2: units(first + second),
        3: units(first + second + third),
    }
    assert run.gaussian_prices() is None


def test_steps_of_normal_noise_add_up_their_means() -> None:
    steps = (GaussianNoise(10), xp.Gaussian(epsilon=1, delta="1e-6", sensitivity=1))
    run = xp.Iterative(steps=steps, stops=(1, 2), delta="1e-5", sensitivity=1)
    found = run.gaussian_prices()
    assert found is not None
    assert found.of(1) == 10**10
    assert found.of(2) == 10**10 + steps[1].gaussian_prices().worst


def test_a_step_that_needs_a_delta_leaves_the_guarantee() -> None:
    step = xp.mechanisms.StableMedian(epsilon=1, delta="1e-6", proposed="0.1", bounds=(0, 1))
    run = xp.Iterative(steps=(step,), stops=(1,), delta="1e-5", neighbours="substitute")
    assert run.renyi_prices(ORDER) == tangent_prices(run.guarantee, ORDER)
    assert run.renyi_prices(ORDER).delta > 0


def test_a_wrapper_has_the_prices_of_its_inner_mechanism() -> None:
    descent = xp.mechanisms.LogisticDescent(epsilon=1, delta="1e-6", norm=1, steps=20, every=10)
    assert descent.renyi_prices(ORDER) == descent.inner.renyi_prices(ORDER)
    assert descent.gaussian_prices() == descent.inner.gaussian_prices()


def test_training_that_stops_early_pays_what_the_filter_of_the_field_pays() -> None:
    """At every stop, an order's meter counts the steps taken, as a Rényi filter for fixed steps does, and no δ."""
    step = GaussianNoise(1, "0.01")
    stops = tuple(range(100, 1001, 100))
    run = Round(
        xp.Iterative(steps=(step,) * 1000, stops=stops, delta="1e-5", sensitivity=1, neighbours="add-remove"),
        interactive=True,
        delta=False,
    )
    meter = RenyiMeter.of(8, "1e-5")
    rule = MeterFilter(xp.Cost(8, "1e-5"), (meter,))
    once = sampled_normal_noise(meter.order, 1, "0.01")
    for stop in stops:
        charged = rule.price(run, stop)
        assert charged.delta == 0
        assert charged.amounts[0].units[0] <= stop * once * 10**12 + 1


def test_a_ledger_charges_training_at_every_stop_at_most_what_a_renyi_filter_does() -> None:
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    from dp_accounting.rdp import RdpAccountant

    stops = (5, 10, 20, 40)
    training = xp.Iterative(
        steps=(GaussianNoise("1.8", "0.06"),) * 40, stops=stops, delta="1e-5", sensitivity=1, neighbours="add-remove"
    )
    once = PoissonSampledDpEvent(0.06, GaussianDpEvent(1.8))
    for stop in stops:
        ledger = xp.Ledger(8, "1e-5", accounting=xp.accounting.RenyiAccounting(order=8))
        with ledger.open(training) as interaction:
            for step in interaction:
                step.batch(1)
                step(0.0)
                if step.number == stop:
                    break
        peer = RdpAccountant([8]).compose(SelfComposedDpEvent(once, stop))._rdp[0]  # in floating point
        (entry,) = ledger.entries()
        assert entry.charged == xp.Cost(0)  # no δ, and nothing that the basic sum could count
        assert 0.999 * peer < ledger.meters[1].spent / 1e12 <= peer * (1 + 1e-9) + 1e-12


def test_questions_to_tables_have_the_prices_of_their_noise() -> None:
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute("CREATE TABLE people AS SELECT i AS age FROM range(100) AS t(i)")
    count = xp.read(connection, table="people", unit="row", neighbours="add-remove").count()
    normal, laplace = count.mechanism(epsilon=1, delta="1e-6", noise="gaussian"), count.mechanism(epsilon=1)
    assert normal.renyi_prices(ORDER) == normal.noise.renyi_prices(ORDER)
    assert normal.gaussian_prices() == normal.noise.gaussian_prices()
    assert laplace.renyi_prices(ORDER) == laplace.noise.renyi_prices(ORDER)
    assert laplace.gaussian_prices() is None
    ledger = xp.Ledger(1, 1e-6, accounting="renyi")
    assert ledger.run(count.mechanism(epsilon="0.2", delta="1e-6", noise="gaussian")).entry.reserved == xp.Cost(
        0
    )  # it takes no δ
