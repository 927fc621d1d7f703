"""Rényi prices: what each part of a mechanism costs at an order α, and what a limit (ε, δ) holds there.

At one order a part with a third of the worst ε costs about a ninth, and stopping early costs no extra δ.
"""

from __future__ import annotations

from expost.accounting.renyi.known import (
    laplace_noise,
    normal_noise,
    normal_noise_worth,
    randomized_response,
    zcdp,
)
from expost.accounting.renyi.orders import as_order, best_order, capacity, delta_at, epsilon_at
from expost.accounting.renyi.prices import Prices
from expost.accounting.renyi.sampled import sampled_normal_noise
from expost.accounting.renyi.tangent import balanced_slope, slope_for, steepest_slope, tangent_price, tangent_prices

__all__ = [
    "Prices",
    "as_order",
    "balanced_slope",
    "best_order",
    "capacity",
    "delta_at",
    "epsilon_at",
    "laplace_noise",
    "normal_noise",
    "normal_noise_worth",
    "randomized_response",
    "sampled_normal_noise",
    "slope_for",
    "steepest_slope",
    "tangent_price",
    "tangent_prices",
    "zcdp",
]
