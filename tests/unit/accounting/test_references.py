"""Brackets against references that were found by other means, and wrong variants that these catch."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import exp, expm1, inf, pi, sqrt
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from expost.accounting import (
    ApproximateDP,
    GaussianNoise,
    LaplaceNoise,
    Loss,
    compose,
    convolution,
    optimal_composition,
    optimal_delta,
)
from expost.accounting.curve import Curve
from expost.accounting.law import LossLaw
from expost.accounting.losses import CUT
from expost.accounting.normal import delta_of_normal_noise
from expost.accounting.recursion import Recursion
from plain_composition import narrow_bracket
from references import FILE, settings
from soak import some

pytestmark = pytest.mark.slow
REFERENCES: list[dict[str, Any]] = json.loads(FILE.read_text())
KNOWN = [each for each in REFERENCES if each["epsilon"] is not None]
BRACKETED = [each for each in REFERENCES if each["by"] == "bracket"]


def bracket_of(setting: dict[str, Any], **options: Any) -> Any:
    return compose([GaussianNoise(setting["noise_multiplier"], setting["sampling_rate"])] * setting["steps"]).epsilon(
        setting["delta"], **options
    )


def test_the_sample_is_the_one_that_was_drawn() -> None:
    drawn = [
        {name: each[name] for name in ("noise_multiplier", "sampling_rate", "steps", "delta")} for each in REFERENCES
    ]
    assert drawn == settings()
    assert len(KNOWN) + len(BRACKETED) == len(REFERENCES) == 200


@pytest.mark.parametrize("part", range(8))
def test_brackets_contain_the_thirty_digit_references(part: int) -> None:
    for setting in KNOWN[part::8]:
        found, true = bracket_of(setting), Fraction(setting["epsilon"])
        assert Fraction(found.lower) <= true <= Fraction(found.upper), setting
        assert found.width <= max(2e-4 * found.upper, 1e-9), setting


@pytest.mark.parametrize("part", range(4))
@pytest.mark.uncounted
def test_where_there_is_none_an_independent_bracket_a_tenth_as_wide_agrees(part: int) -> None:
    for setting in some(BRACKETED[part::4], 2):
        found = bracket_of(setting)
        assert found.width <= 2e-4 * found.upper, setting
        tenth = 2e-5 if setting["steps"] < 30_000 else 1.1e-4  # of one setting half: more takes minutes
        assert setting["upper"] - setting["lower"] <= tenth * setting["upper"], setting
        assert found.lower <= setting["upper"], setting
        assert setting["lower"] <= found.upper, setting


@pytest.mark.parametrize("part", range(3))
@pytest.mark.uncounted
def test_the_plain_composition_contains_the_references(part: int) -> None:
    """The second implementation against the first kind of reference, where both are there."""
    chosen = [each for each in KNOWN if each["by"] == "quadrature" and each["steps"] < 1000]
    for setting in chosen[part:6:3]:
        lower, upper = narrow_bracket(setting, 2e-4)
        assert Fraction(lower) <= Fraction(setting["epsilon"]) <= Fraction(upper), setting
        assert upper - lower <= 2e-4 * upper, setting


def test_stored_brackets_are_the_ones_that_are_found() -> None:
    for setting in [each for each in BRACKETED if each["steps"] < 4]:
        assert narrow_bracket(setting, 2e-5) == pytest.approx((setting["lower"], setting["upper"]), rel=1e-9), setting


# ---- the same law in exact whole numbers: no transforms, tilts, windows, or parts


def exactly(law_: LossLaw, count: int, upper: bool) -> tuple[int, Any]:
    """The law of the sum in fixed point, rounded up or down: whole numbers are multiplied, digits kept apart."""
    bits, slot = 200, 2 * 200 + 32
    masses = [int(Fraction(float(mass)) * 2**bits) + upper for mass in law_.mass]
    result, low, square, base = 1 << bits, 0, _packed(masses, slot), law_.low
    length, width = 1, len(masses)
    while count:
        if count & 1:
            result, length, low = (
                _rounded(result * square, slot, bits, length + width - 1, upper),
                length + width - 1,
                low + base,
            )
        count >>= 1
        if count:
            width, base = 2 * width - 1, 2 * base
            square = _rounded(square * square, slot, bits, width, upper)
    return low, np.array([each / 2**bits for each in _unpacked(result, slot, length)])


def _packed(numbers: list[int], slot: int) -> int:
    return int.from_bytes(b"".join(number.to_bytes(slot // 8, "little") for number in numbers), "little")


def _unpacked(whole: int, slot: int, length: int) -> list[int]:
    data, size = whole.to_bytes(length * (slot // 8) + 8, "little"), slot // 8
    return [int.from_bytes(data[i * size : (i + 1) * size], "little") for i in range(length)]


def _rounded(whole: int, slot: int, bits: int, length: int, upper: bool) -> int:
    return _packed([(number >> bits) + upper for number in _unpacked(whole, slot, length)], slot)


def delta_of(low: int, masses: Any, step: float, epsilon: float) -> float:
    losses = (low + np.arange(masses.size)) * step
    return float((masses * np.maximum(-np.expm1(epsilon - losses), 0)).sum())


@pytest.mark.parametrize(
    ("loss", "count", "cutoff", "tilts"),
    [
        (GaussianNoise("0.955", "0.000106"), 22, 0.05, (300.0, 20.0)),
        (GaussianNoise("0.955", "0.000106"), 22, 0.2, (60.0, 1.0)),
        (GaussianNoise("0.5", "0.001"), 10, 1.0, (5.0, 1.5)),
        (GaussianNoise("0.5", "0.001"), 10, inf, (1.5, 1.5)),
        (GaussianNoise(1, "0.01"), 12, inf, (8.0, 8.0)),
        (LaplaceNoise(3), 9, 0.2, (3.0, 3.0)),
    ],
    ids=str,
)
@pytest.mark.uncounted
def test_parts_agree_with_exact_convolutions(loss: Loss, count: int, cutoff: float, tilts: tuple[float, float]) -> None:
    """Tilts, windows, parts and transforms change nothing but what their slack says."""
    each = loss.law(1e-3, False, 1e-24)
    step = each.mass.size * 1e-3 / 600
    each = loss.law(step, False, 1e-24)
    curve = Curve(convolution.in_parts([(each, count)], cutoff, tilts, 1e-9))
    more, less = exactly(each, count, True), exactly(each, count, False)
    for place in range(1, min(curve.size, 400), 7):
        epsilon = (curve.low + place) * step
        unsure = float(curve._unsure[place]) * (1 + 1e-9)
        found = float(curve._deltas[place])
        assert found - unsure <= delta_of(*more, step, epsilon) * (1 + 1e-8)
        assert found + unsure >= delta_of(*less, step, epsilon) * (1 - 1e-8)


@pytest.mark.parametrize(
    ("ratio", "rate", "delta"),
    some([("0.5", "1e-4", "1e-8"), ("0.5", "0.01", "1e-12"), ("0.7", "0.2", "1e-5"), ("1", "1e-3", "1e-8")], 4),
)
def test_two_steps_are_a_single_integral(ratio: str, rate: str, delta: str) -> None:
    """δ₂(ε) = E[δ₁(ε − Y)], with a formula for δ₁: to 20 digits also where losses are rare and large."""
    found = compose([GaussianNoise(ratio, rate)] * 2).epsilon(delta)
    with mp.workdps(25):
        assert two_steps(mpf(ratio), mpf(rate), mpf(found.upper)) <= mpf(delta)
        assert two_steps(mpf(ratio), mpf(rate), mpf(found.lower)) >= mpf(delta)
        assert found.width <= 2e-4 * found.upper


def two_steps(ratio: mpf, rate: mpf, epsilon: mpf) -> mpf:
    mean, root = 1 / ratio, mp.sqrt(2)

    def single(alpha: mpf) -> mpf:
        inside = (alpha - 1 + rate) / rate
        if inside <= 0:
            return 1 - alpha
        place = mp.log(inside) / mean
        near, far = place - mean / 2, place + mean / 2
        return rate * (mp.erfc(near / root) - inside * mp.erfc(far / root)) / 2

    def weighted(z: mpf) -> mpf:
        growth = 1 + rate * mp.expm1(mean * z - mean**2 / 2)
        return mp.npdf(z) * growth * single(mp.exp(epsilon) / growth)

    kink = mp.log((mp.exp(epsilon) - 1 + rate) / rate) / mean + mean / 2  # where the other step decides
    near = [kink + sign * mpf(10) ** -k for sign in (-1, 1) for k in range(1, 7)]
    return mp.quad(weighted, sorted([*range(-15, 18, 2), kink, *near]))


# ---- splitting is a smear


@pytest.mark.parametrize("mean", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("step", [0.02, 0.2, 0.9])
def test_a_split_normal_law_is_below_the_smeared_one(mean: float, step: float) -> None:
    """Gaussian noise smeared by Gaussian noise is Gaussian noise, so both sides are known at every ε."""
    curve = Curve((GaussianNoise(1 / Fraction(str(mean))).law(step),))
    smeared = 1 / sqrt(mean**2 + pi * step**2 / 8)
    for epsilon in np.arange(0, 3) * step:
        truth = float(delta_of_normal_noise(Fraction(1 / mean), Fraction(float(epsilon))).upper)
        most = float(delta_of_normal_noise(Fraction(smeared), Fraction(float(epsilon))).upper)
        assert truth * (1 - 1e-9) <= curve.delta_above(epsilon) <= most * (1 + 1e-6) + 2 * curve.blur.excess


class Smeared(ApproximateDP):
    """A step that says it is smeared less than it is."""

    share = 0.5

    def law(self, grid: float, reverse: bool = False, cut: float = CUT) -> LossLaw:
        found = super().law(grid, reverse, cut)
        return replace(found, blur=replace(found.blur, smear=found.blur.smear * self.share))


def lower_end_of_atoms_between_points(count: int, kind: type[ApproximateDP] = ApproximateDP) -> tuple[float, Fraction]:
    """Randomised response whose atoms are in the middle of cells, at a kink of the curve: the worst case of a split."""
    step = Fraction(1, 16)
    epsilon = step * 9 / 2
    rows = [(kind(epsilon).law(float(step)), count)]
    curve = Curve((convolution.composed(rows, 1e-12, 0.0),))
    kink = 2 * epsilon
    return curve.delta_below(float(kink)), optimal_composition([(epsilon, 0)] * count).delta(kink).upper


@pytest.mark.parametrize("count", [4, 8, 12, 20])
def test_reading_back_is_below_the_truth_at_kinks(count: int) -> None:
    found, true = lower_end_of_atoms_between_points(count)
    assert 0 < found <= true


def test_half_the_smear_is_caught() -> None:
    """With half of it the lower end would pass the truth."""
    ends = [lower_end_of_atoms_between_points(count, Smeared) for count in (4, 8, 12, 20)]
    assert any(found > true for found, true in ends)


@pytest.mark.parametrize("kind", [ApproximateDP, Smeared])
def test_stops_are_read_back_below_the_truth_and_half_the_smear_is_caught(kind: type[ApproximateDP]) -> None:
    """Atoms in the middle of cells, stops at kinks: on the lattice the value is known but for rounding errors."""
    epsilon = Fraction(9, 32)
    for count in (4, 8, 12, 20):
        stops, guaranteed = [count // 2, count], [2 * epsilon] * 2
        found = Recursion([kind(epsilon)] * count, stops, 1 / 16).bracket(guaranteed)
        exact = optimal_delta([(epsilon, 0)] * count, stops, guaranteed)
        assert 0 < found.lower < found.upper
        assert exact.lower <= found.upper
        assert (found.lower <= exact.upper) == (kind is ApproximateDP)


def test_a_window_cut_short_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window that loses its right part without counting it gives upper ends that are too small."""
    whole = convolution._window

    def short(rows: Any, miss: float) -> tuple[int, int]:
        first, last = whole(rows, miss)
        return first, first + (last - first) * 11 // 20

    monkeypatch.setattr(convolution, "_window", short)
    assert any(bracket_of(each).upper < each["lower"] for each in BRACKETED if 100 < each["steps"] < 3000)
    chosen = [each for each in KNOWN if each["by"] == "quadrature" and each["steps"] < 3000][:12]
    assert any(bracket_of(each).upper < float(each["epsilon"]) * (1 - 1e-6) for each in chosen)


def test_the_constants_of_the_smear() -> None:
    """The density that dominates every split, integrated: its calls are the suprema over all places in a cell."""
    for step in (0.1, 1.0):
        for t in (1.0, exp(step / 3), exp(0.9 * step)):
            best = max(expm1(u) * max(exp(step - u) - t, 0) / expm1(step) for u in np.linspace(0, step, 20001))
            assert best == pytest.approx((exp(step / 2) - sqrt(t)) ** 2 / expm1(step), rel=1e-6)
