"""Regularised linear models, fitted to a distance from the minimum that is a theorem.

The problem is to minimise J(w) = (1/n)·Σ loss(yᵢ·w·zᵢ) + (Λ/2)·‖w‖² + b·w/n over rows z of length at most one. J
is Λ-strongly convex, so a point whose gradient is at most τ long is at most τ/Λ from the minimum. Newton's method
finds one, and the floating-point gradient, with a bound on its own error, certifies it. Where that fails, plain
gradient descent in whole numbers of as many bits as it takes does it, in a number of steps that is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import cached_property
from math import ceil, isqrt, log
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
LossName: TypeAlias = Literal["logistic", "huber"]

CURVATURE: dict[LossName, Fraction] = {"logistic": Fraction(1, 4), "huber": Fraction(1)}
"""The largest second derivative of a loss. Slopes lie between −1 and 0, and loss(0) is at most 1."""

_UNIT = 2.0**-53  # rounding to nearest errs by at most that share
_NEWTON = 200  # steps at most


def slope(loss: LossName, margins: FloatArray) -> FloatArray:
    """loss′: −1/(1 + e^m), or the Huber hinge's, −1 up to m = ½, 0 from 3/2 on, and a line between."""
    if loss == "huber":
        return np.asarray(np.clip(margins - 1.5, -1.0, 0.0))
    return np.asarray(0.5 * np.tanh(0.5 * margins) - 0.5)


def bend(loss: LossName, slopes: FloatArray) -> FloatArray:
    """loss″, from loss′."""
    if loss == "huber":
        return ((slopes > -1.0) & (slopes < 0.0)).astype(np.float64)
    return -slopes * (1.0 + slopes)


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise the mean loss of ``rows`` (yᵢ·zᵢ, each of length at most one), regularised, tilted by ``tilt``/n."""

    loss: LossName
    rows: FloatArray
    regularizer: float
    tilt: tuple[Fraction, ...]

    @property
    def size(self) -> int:
        """How many rows."""
        return len(self.rows)

    def gradient(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """J′ in floating point, and the slopes it was made of."""
        slopes = slope(self.loss, self.rows @ at)
        return slopes @ self.rows / self.size + self.tilted + self.regularizer * at, slopes

    def error(self, length: float) -> float:
        """How far off that gradient is at most, at a point of this length.

        Proof: lem-gradient-error
        """
        return gradient_error(self.loss, self.rows.shape, self.regularizer, length, self._tilt_above)

    @cached_property
    def _tilt_above(self) -> float:
        return float(norm_above(self.tilt)) * 1.001

    @cached_property
    def tilted(self) -> FloatArray:
        """The tilt over n, as floats."""
        return np.array([float(entry) for entry in self.tilt]) / self.size


def gradient_error(loss: LossName, shape: tuple[int, ...], regularizer: float, length: float, tilt: float) -> float:
    """A bound on the error of :meth:`Problem.gradient`.

    Proof: lem-gradient-error
    """
    rows, columns = shape
    along = (float(CURVATURE[loss]) * columns + 8 * regularizer) * length
    return 1.1 * _UNIT * (rows + 32 + along + 8 * tilt / rows)


def norm_above(vector: tuple[Fraction, ...]) -> Fraction:
    """A rational number just above the length of a vector."""
    return Fraction(isqrt(ceil(sum((entry**2 for entry in vector), Fraction(0)) * 4**64)) + 1, 2**64)


def minimise(problem: Problem, tolerance: Fraction) -> list[Fraction]:
    """A point at most ``tolerance``/Λ from the minimum, whatever the data.

    Proof: thm-minimiser
    """
    found = _newton(problem, tolerance)
    return _descend(problem, tolerance) if found is None else [Fraction(entry) for entry in found.tolist()]


def _newton(problem: Problem, tolerance: Fraction) -> FloatArray | None:
    """Newton's method, each step to where J falls no more, so that J falls always; None if no point was certified."""
    at = np.zeros(problem.rows.shape[1])
    with np.errstate(all="ignore"):
        gradient, slopes = problem.gradient(at)
        for _ in range(_NEWTON):
            bound = 1.000001 * float(np.linalg.norm(gradient)) + problem.error(1.000001 * float(np.linalg.norm(at)))
            if bound <= float(tolerance) * 0.999999:
                return at
            weighted = problem.rows * bend(problem.loss, slopes)[:, None]
            hessian = weighted.T @ problem.rows / problem.size
            hessian[np.diag_indices_from(hessian)] += problem.regularizer
            try:
                step = np.asarray(-np.linalg.solve(hessian, gradient), np.float64)
            except np.linalg.LinAlgError:
                return None
            at = at + _fall(problem, at, step) * step
            gradient, slopes = problem.gradient(at)
    return None


def _fall(problem: Problem, at: FloatArray, step: FloatArray) -> float:
    """How many steps to go: one, if J is nearly level there and has fallen; else to where it falls no more.

    A convex J changes by at most the mean of its derivatives at a half and at one, so that has to be below 0.
    """
    here, along = problem.rows @ at, problem.rows @ step
    pull = float(problem.tilted @ step) + problem.regularizer * float(at @ step)
    stiff = problem.regularizer * float(step @ step)

    def derivative(share: float) -> float:
        mean = float(slope(problem.loss, here + share * along) @ along) / problem.size
        return mean + pull + share * stiff

    full = derivative(1.0)
    if 10 * abs(full) <= -derivative(0.0) and derivative(0.5) + full < 0:
        return 1.0
    low, high = (1.0, 2.0) if full < 0 else (0.0, 1.0)
    while low >= 1 and derivative(high) < 0 and high < 1e6:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if derivative(middle) < 0 else (low, middle)
    return high


def descent_steps(problem: Problem, tolerance: Fraction, farthest: Fraction) -> int:
    """How many steps of gradient descent bring a point at most ``farthest`` away to τ/4Λ.

    Proof: thm-minimiser
    """
    condition = 1 + float(CURVATURE[problem.loss]) / problem.regularizer
    return ceil(1.01 * condition * log(max(4 * float(farthest) * problem.regularizer / float(tolerance), 2.0))) + 1


def _descend(problem: Problem, tolerance: Fraction) -> list[Fraction]:
    """Gradient descent from 0, with fixed step, in whole numbers of 2^−bits.

    Proof: thm-minimiser
    """
    regularizer, n = Fraction(problem.regularizer), problem.size
    smooth = CURVATURE[problem.loss] + regularizer
    farthest = (1 + norm_above(problem.tilt) / n) / regularizer
    columns = problem.rows.shape[1]
    bits = 40 + ceil((farthest + 1) * columns * (1 + smooth + 1 / smooth) ** 2 / tolerance).bit_length()
    rows = [[_fixed(Fraction(entry), bits) for entry in row] for row in problem.rows.tolist()]
    tilt = [_fixed(entry / n, bits) for entry in problem.tilt]
    rate = _fixed(1 / smooth, bits)
    shrink = _fixed(regularizer, bits)
    at = [0] * columns
    for _ in range(descent_steps(problem, tolerance, farthest)):
        total = [0] * columns
        for row in rows:
            margin = sum(a * z for a, z in zip(at, row, strict=True)) >> bits
            pull = _fixed_slope(problem.loss, margin, bits)
            total = [t + pull * z for t, z in zip(total, row, strict=True)]
        for j in range(columns):
            gradient = (total[j] // n + shrink * at[j] >> bits) + tilt[j]
            at[j] -= rate * gradient >> bits
    return [Fraction(entry, 1 << bits) for entry in at]


def _fixed(number: Fraction, bits: int) -> int:
    return (number.numerator << bits) // number.denominator


def _fixed_slope(loss: LossName, margin: int, bits: int) -> int:
    """2^bits·loss′ to two units."""
    one = 1 << bits
    if loss == "huber":
        return max(-one, min(0, margin - 3 * one // 2))
    if abs(margin) >= bits << bits:  # e^−bits is less than half a unit
        return 0 if margin > 0 else -one
    context = Context(prec=bits // 3 + 20, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    power = context.exp(context.divide(Decimal(margin), Decimal(one)))
    return -int(context.divide(Decimal(one), context.add(Decimal(1), power)))
