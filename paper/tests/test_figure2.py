"""Figure 2: the noise of the test against the number of records; and how many models can be tried."""

import json
from fractions import Fraction
from math import exp, log, tanh
from pathlib import Path

import numpy as np
import pytest

from expost.mechanisms import TestedLogisticRegression
from paper import figure2


def test_the_curves_are_the_formulas() -> None:
    curves = figure2.data()
    for i, size in enumerate(figure2.SIZES):
        held_out = min(-(-3 * size // 10), size - 1)
        training = size - held_out
        for regularizer in figure2.REGULARIZERS:
            paper = max(2 / held_out, 2 * (exp(2 / (training * regularizer)) - 1))
            tight = max(2 / held_out, 2 * tanh(1 / (2 * training * regularizer)))
            for epsilon in figure2.EPSILONS:
                key = f"Λ = {regularizer:g}, ε₂ = {epsilon:g}"
                assert curves[f"{key}, paper"][i] == pytest.approx(paper / epsilon * log(10))
                assert curves[f"{key}, tight"][i] == pytest.approx(tight / epsilon * log(10))


def test_what_the_tight_bound_buys() -> None:
    """Nothing at Λ = 1 but for a handful of records; at Λ = 0.1 nearly a factor of four, and more for few records."""
    at = {
        (size, regularizer): [figure2.percentile(size, 1, regularizer, b) for b in (figure2.loose, figure2.tight)]
        for size in (5, 100, 10**6)
        for regularizer in figure2.REGULARIZERS
    }
    assert at[100, 1.0][0] == at[100, 1.0][1]
    assert at[5, 1.0][0] > at[5, 1.0][1]
    assert at[10**6, 0.1][0] / at[10**6, 0.1][1] == pytest.approx(4, rel=0.01)
    assert at[100, 0.1][0] / at[100, 0.1][1] > 4


def test_the_percentile_is_that_of_the_noise() -> None:
    sample = np.random.default_rng(0).laplace(0, 2 / 300 / 0.5, 200_000)
    assert np.quantile(sample, 0.95) == pytest.approx(figure2.percentile(1000, 0.5, 1.0, figure2.tight), rel=0.02)


def test_the_mechanism_has_the_noise_of_the_figure() -> None:
    """Up to what its finite precision costs."""
    for size in (100, 10_000):
        mechanism = TestedLogisticRegression(epsilon=1, test_share=0.1, threshold=1, norm=1, regularizer=0.1)
        drawn = figure2.percentile(size, 0.1, 0.1, figure2.tight)
        assert drawn < mechanism.error_bound(0.95, n=size, features=5) < 1.01 * drawn


def test_tries() -> None:
    bars = figure2.tries()
    assert bars["without"][0] == 2
    for share, tried in zip(bars["model ε / test ε"], bars["with recovery"], strict=True):
        assert tried == (Fraction(1, 2) // Fraction(1, 2 * share)) + 1


def test_written_as_data_and_as_plots(tmp_path: Path) -> None:
    figure2.main(str(tmp_path), sizes=[10, 100, 1000])
    assert json.loads((tmp_path / "figure2.json").read_text()) == figure2.data([10, 100, 1000])
    assert json.loads((tmp_path / "tries.json").read_text()) == figure2.tries()
    for name in ("figure2.png", "tries.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_the_tight_bound_is_four_times_less_than_the_papers() -> None:
    for size, factor in ((10**6, 4.0), (2, 7.016), (1, 13.8)):
        loose, tight = (float(bound(size, Fraction(1))) for bound in (figure2.loose, figure2.tight))
        assert loose / tight == pytest.approx(factor, rel=0.01)
    assert figure2.loose(1, Fraction(1)) > 2
