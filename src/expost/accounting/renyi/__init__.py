"""Rényi prices: what each part of a mechanism costs at an order α, and what a limit (ε, δ) holds there.

At one order a part with a third of the worst ε costs about a ninth, and stopping early costs no extra δ.
"""

from expost.accounting.renyi.known import laplace_noise as laplace_noise
from expost.accounting.renyi.known import normal_noise as normal_noise
from expost.accounting.renyi.known import normal_noise_worth as normal_noise_worth
from expost.accounting.renyi.known import randomized_response as randomized_response
from expost.accounting.renyi.known import zcdp as zcdp
from expost.accounting.renyi.orders import as_order as as_order
from expost.accounting.renyi.orders import best_order as best_order
from expost.accounting.renyi.orders import capacity as capacity
from expost.accounting.renyi.orders import delta_at as delta_at
from expost.accounting.renyi.orders import epsilon_at as epsilon_at
from expost.accounting.renyi.prices import Prices as Prices
from expost.accounting.renyi.sampled import sampled_normal_noise as sampled_normal_noise
from expost.accounting.renyi.tangent import balanced_slope as balanced_slope
from expost.accounting.renyi.tangent import slope_for as slope_for
from expost.accounting.renyi.tangent import steepest_slope as steepest_slope
from expost.accounting.renyi.tangent import tangent_price as tangent_price
from expost.accounting.renyi.tangent import tangent_prices as tangent_prices
