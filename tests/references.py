"""References for compositions of sampled Gaussian noise, to 30 digits and by other means than the library's.

``python tests/references.py`` writes unit/accounting/references.json: for 200 random settings the ε at which δ is as
given, from the inversion formula

    δ(ε) = 1/(2πi) ∫ M(s)^T·e^{−sε} / (s·(s + 1)) ds    along Re s = θ > 0,    M(s) = E[e^{sY}],

by trapezoidal rules, at half the best θ, in 50-digit arithmetic: neither grids of losses nor FFTs are in it. Where the
integrand falls off too slowly (rare large losses among nearly constant ones), the bounds of plain_composition stand for
it, a tenth as wide as the library's.
"""

from __future__ import annotations

import json
import random
from math import exp, log, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpc, mpf

from plain_composition import narrow_bracket

FILE = Path(__file__).parent / "unit" / "accounting" / "references.json"
NODES = (60, 120, 240, 480)  # along the line, in 50-digit arithmetic


def settings(number: int = 200, seed: int = 18) -> list[dict[str, Any]]:
    """Random ratios, rates, numbers of steps and δ's, over the same ranges as the benchmark."""
    rng = random.Random(seed)

    def between(low: float, high: float) -> float:
        return float(f"{exp(rng.uniform(log(low), log(high))):.3g}")

    return [
        {
            "noise_multiplier": between(0.5, 10),
            "sampling_rate": 1.0 if rng.random() < 0.05 else between(1e-4, 1),
            "steps": 1 if rng.random() < 0.05 else round(between(2, 1e5)),
            "delta": rng.choice([1e-5, 1e-6, 1e-8, 1e-12]),
        }
        for _ in range(number)
    ]


class Inversion:
    """The inversion formula for one setting in one direction, in floating point."""

    def __init__(self, ratio: float, rate: float, steps: int, reverse: bool) -> None:
        self.mean, self.rate, self.steps, self.reverse = 1 / ratio, rate, steps, reverse
        self.strip = pi / self.mean  # where the loss has its branch points

    def knots(self, tilt: float, turn: float, digits: int) -> tuple[np.ndarray[Any, Any], float]:
        """Evenly spaced values of the noise that integrate M(s) for real parts up to tilt, imaginary up to turn."""
        enough = 2.31 * digits + 8
        coarse = np.linspace(-sqrt(2 * enough) - 1, self.mean * (tilt + 1) + sqrt(2 * enough) + 1, 4000)
        loss = np.log1p(self.rate * np.expm1(self.mean * coarse - self.mean**2 / 2))
        sizes = -coarse * coarse / 2 + (-tilt if self.reverse else tilt + 1) * loss
        kept = coarse[sizes > sizes.max() - enough]
        odds = self.rate * exp(min(self.mean * kept[-1] - self.mean**2 / 2, 50.0))
        slope = self.mean * min(1.0, 3 * odds / (1 - self.rate + odds))  # of the loss, at most
        step = 2 * pi / (turn * slope + max(enough / (0.9 * self.strip), 2.2 * sqrt(digits)))
        return np.arange(kept[0] - 0.1, kept[-1] + 0.1 + step, step), step

    def log_moments(self, s: Any, digits: int = 18) -> Any:
        """T·ln M(s) at many s with about the same real part."""
        z, step = self.knots(float(s.real.max()), float(s.imag.max()), digits)
        loss = np.log1p(self.rate * np.expm1(self.mean * z - self.mean**2 / 2))
        weights, powers = -z * z / 2 + (0 if self.reverse else loss), -loss if self.reverse else loss
        found = []
        for part in np.array_split(s, max(1, s.size * z.size // 4_000_000)):
            terms = weights[None, :] + part[:, None] * powers[None, :]
            tops = terms.real.max(axis=1)
            found.append(tops + np.log(np.exp(terms - tops[:, None]).sum(axis=1) * step / sqrt(2 * pi)))
        return self.steps * np.concatenate(found)

    def tilt(self, epsilon: float) -> float:
        """Where the integrand is least on the real line."""
        tilts = np.geomspace(1e-3, 3 * log(1 / self.rate) / self.mean**2 + 12 / self.mean + 5, 200)
        moments = np.array([self.log_moments(np.array([t + 0j])).real[0] for t in tilts])
        return float(tilts[np.argmin(moments - tilts * epsilon - np.log(tilts) - np.log1p(tilts))])


def by_digits(setting: dict[str, Any], near: float, reverse: bool, share: float = 0.5) -> mpf | None:
    """ε to 30 digits, or nothing where the integrand falls off too slowly."""
    inversion = Inversion(setting["noise_multiplier"], setting["sampling_rate"], setting["steps"], reverse)
    best = inversion.tilt(near)
    tilt, step = (
        best * share,
        2 * mp.pi * best / 220,
    )  # what comes back from a period away is below 10⁻³⁰ on either side
    number = next((n for n in NODES if _falls_off(inversion, tilt, float(step) * n)), None)
    if number is None:
        return None
    mean, rate = 1 / mpf(repr(setting["noise_multiplier"])), mpf(repr(setting["sampling_rate"]))
    z, width = inversion.knots(tilt, float(step) * number, 50)
    knots = [mpf(float(z[0])) + k * mpf(width) for k in range(z.size)]
    losses = [mp.log(1 + rate * mp.expm1(mean * each - mean**2 / 2)) for each in knots]
    sign = -1 if reverse else 1
    weights = [mp.exp(-(each**2) / 2 + (0 if reverse else loss)) for each, loss in zip(knots, losses, strict=True)]
    powers = [weight * mp.exp(sign * tilt * loss) for weight, loss in zip(weights, losses, strict=True)]
    turns = [mp.expj(sign * step * loss) for loss in losses]
    parts = [power * mp.expj(sign * step / 2 * loss) for power, loss in zip(powers, losses, strict=True)]
    rows: list[tuple[mpc, mpc]] = []
    largest, scale = mpf(0), mpf(width) / mp.sqrt(2 * mp.pi)
    for k in range(number):
        row = mp.log(mp.fsum(parts) * scale) * setting["steps"]
        size = mp.exp(row.real - tilt * near)
        largest = max(largest, size)
        rows.append((mpc(tilt, step * (k + mpf(1) / 2)), row))
        if size < largest * mpf(10) ** -40:
            return _solved(rows, step, mpf(repr(setting["delta"])), mpf(near))
        parts = [part * turn for part, turn in zip(parts, turns, strict=True)]
    return None


def _falls_off(inversion: Inversion, tilt: float, turn: float) -> bool:
    sizes = [float(inversion.log_moments(np.array([complex(tilt, u)])).real[0]) for u in (turn / 1000, turn)]
    return sizes[1] < sizes[0] - 95


def _solved(rows: list[tuple[mpc, mpc]], step: mpf, delta: mpf, near: mpf) -> mpf:
    """Newton's iteration; the moments do not depend on ε."""
    epsilon = near
    for _ in range(12):
        terms = [(mp.exp(row - s * epsilon), s) for s, row in rows]
        value = sum(((term / (s * (s + 1))).real for term, s in terms), mpf(0)) * step / mp.pi
        slope = -sum(((term / (s + 1)).real for term, s in terms), mpf(0)) * step / mp.pi
        change = mp.log(value / delta) * value / slope
        epsilon -= change
        if abs(change) < abs(epsilon) * mpf(10) ** -33:
            break
    return epsilon


def by_formula(setting: dict[str, Any]) -> mpf:
    """A single step, or noise without sampling: bisection on normal tails."""
    mean, rate = mp.sqrt(setting["steps"]) / mpf(repr(setting["noise_multiplier"])), mpf(repr(setting["sampling_rate"]))
    wanted = mpf(repr(setting["delta"])) / rate

    def delta(epsilon: mpf) -> mpf:
        near, far = (epsilon / mean + sign * mean / 2 for sign in (-1, 1))
        return (mp.erfc(near / mp.sqrt(2)) - mp.exp(epsilon) * mp.erfc(far / mp.sqrt(2))) / 2

    if delta(mpf(0)) <= wanted:
        return mpf(0)
    low, high = mpf(0), mean * (mean / 2 + mp.sqrt(-2 * mp.log(wanted)))
    for _ in range(140):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > wanted else (low, middle)
    return mp.log(1 + rate * mp.expm1(high))


def reference(setting: dict[str, Any]) -> dict[str, Any]:
    """The setting with its ε, and how it was found."""
    from expost.accounting import GaussianNoise, compose

    mp.dps = 50
    if setting["sampling_rate"] == 1 or setting["steps"] == 1:
        with mp.extradps(40):
            return {**setting, "epsilon": mp.nstr(by_formula(setting), 32), "by": "formula"}
    start = compose([GaussianNoise(setting["noise_multiplier"], setting["sampling_rate"])] * setting["steps"]).epsilon(
        setting["delta"]
    )
    near = (start.lower + start.upper) / 2  # where the iteration starts
    if near == 0:
        return {**setting, "epsilon": "0", "by": "nothing"}
    found = by_digits(setting, near, False)
    if found is not None:
        return {**setting, "epsilon": mp.nstr(found, 32), "by": "quadrature"}
    lower, upper = narrow_bracket(setting, 2e-5)
    return {**setting, "epsilon": None, "by": "bracket", "lower": lower, "upper": upper}


if __name__ == "__main__":
    rows: list[dict[str, Any]] = json.loads(FILE.read_text()) if FILE.exists() else []
    for each in settings()[len(rows) :]:  # it goes on where it was left
        rows.append(reference(each))
        print(rows[-1], flush=True)
        FILE.write_text(json.dumps(rows, indent=1) + "\n")
