"""The least noise at which OpenDP lets N counts fit under (ε, δ) by zCDP. Runs in its own environment; prints JSON."""

import json
import sys

import opendp.prelude as dp

counts, epsilon, delta = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
dp.enable_features("contrib")
space = dp.atom_domain(T=int), dp.absolute_distance(T=float)


def spent(scale: float) -> float:
    """ε of all counts together."""
    together = dp.c.make_composition([dp.m.make_gaussian(*space, scale=scale)] * counts)
    return float(dp.c.make_zCDP_to_approxDP(together).map(1.0).epsilon(delta))


low, high = 1.0, 1e6
while high - low > 1e-4 * high:
    middle = (low * high) ** 0.5
    low, high = (low, middle) if spent(middle) <= epsilon else (middle, high)
print(json.dumps(high))
