"""How much the optimum gains over Lemma 11, against the number of stops; the figure."""

from pathlib import Path

import pytest

from expost.accounting import GaussianNoise, compose, optimal_delta, plan
from paper import stopping_gain


def test_lemma_11_adds_up_and_the_optimum_does_not() -> None:
    for stops, gain in ((1, 1), (10, 5.5), (100, 50.5)):
        summed, best = stopping_gain.response_gain(stops)
        assert summed / best == pytest.approx(gain, rel=0.01)
        assert best == pytest.approx(0.000999516, rel=1e-4)


def test_training_guarantees() -> None:
    first_sum, first, full_sum, full = stopping_gain.training_gain(20)
    assert first < first_sum < stopping_gain.renyi(100)
    assert stopping_gain.renyi(2000) < full < full_sum  # with many stops a Rényi filter is cheaper at full length
    assert full == pytest.approx(2.895, abs=0.003)
    assert first == pytest.approx(0.911, abs=0.003)
    assert stopping_gain.renyi(100) == pytest.approx(1.537, abs=0.001)  # one order for all stops, not the best for each
    assert (first_sum, full_sum) == pytest.approx((1.033, 3.063), abs=0.001)


def test_small_deltas_keep_their_digits() -> None:
    """Lemma 11 reads δ = 10⁻⁷ here, and a plan at 10⁻⁹ is found: rounding errors are far below both."""
    loss = GaussianNoise(1, "0.01")
    assert compose([loss] * 2000, grid=2.0**-10).epsilon_above(1e-7) == pytest.approx(3.305, abs=0.001)
    planned = plan([loss] * 400, range(100, 401, 100), 1e-9, grid=2.0**-10)
    each = [planned.epsilon_of(stop) for stop in (100, 200, 300, 400)]
    found = optimal_delta([loss] * 400, range(100, 401, 100), each, grid=2.0**-10)
    assert found.lower <= found.upper <= 1e-9
    assert found.upper > 0.9e-9


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    series = {name: [1.0, 2.0] for name in ("response Lemma 11", "response optimum")}
    for where in ("first stop", "full length"):
        series |= {f"{where} {name}": [1.0, 2.0] for name in ("Lemma 11", "optimum", "Rényi")}
    found = {**series, "response stops": [1, 2], "training stops": [1, 2]}
    stopping_gain.plot(found, tmp_path / "gain.png")
    assert (tmp_path / "gain.png").read_bytes().startswith(b"\x89PNG")
    assert "| 1 | 1.000e+00 | 1.000e+00 | 1.0 |" in stopping_gain.markdown(found)
