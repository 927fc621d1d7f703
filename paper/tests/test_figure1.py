"""Figure 1: the noise on released values, with and without refunds."""

import json
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from paper import figure1


def test_the_curves() -> None:
    curves = figure1.data(runs=40)
    found = {name: np.array(values) for name, values in curves.items()}
    assert np.all(found["without refunds"] == 40)
    assert np.all(found["ledger, exact"] < found["filter only"])
    assert np.all(found["filter only"] <= 40)
    assert np.all(found["ledger, exact"] <= found["ledger, Chebyshev bound"] + 1e-9)
    assert np.all(np.diff(found["ledger, exact"]) > 0)
    # one large entry: its value alone gets ε₃ and what nineteen positives would have cost
    _, second = figure1.finder("two-sided").halves
    alone = 1 / (0.5 + second.epsilon * 19 / 20)
    assert found["ledger, exact"][0] == pytest.approx(alone, rel=0.25)  # false positives add a little
    assert found["ledger, exact"][-1] == pytest.approx(40, rel=0.01)
    # the simulation agrees with the computation, within ten standard errors, and with nothing else
    scales = figure1.scale(np.arange(figure1.AT_MOST + 1, dtype=np.float64))
    laws = [figure1.found_law(large, "two-sided") for large in figure1.COUNTS]
    errors = np.array([sqrt(max(law @ scales**2 - (law @ scales) ** 2, 1e-3) / 40) for law in laws])
    assert np.all(np.abs(found["ledger, simulated"] - found["ledger, exact"]) < 10 * errors)
    assert not np.all(np.abs(found["ledger, simulated"] - found["filter only"]) < 10 * errors)


def test_laws_are_laws() -> None:
    for noise in ("one-sided", "two-sided"):
        law = figure1.found_law(5, noise)  # type: ignore[arg-type]
        assert law.sum() == pytest.approx(1)
        assert law.min() >= -1e-12
        assert law.argmax() == 5


def test_written_as_data_and_as_a_plot(tmp_path: Path) -> None:
    curves = {name: [1.0] * 20 for name in figure1.data(runs=1)}
    curves["large entries"] = list(range(1, 21))
    figure1.plot(curves, tmp_path / "figure1.png")
    assert (tmp_path / "figure1.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(json.dumps(curves)) == curves
