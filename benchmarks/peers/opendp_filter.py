"""Seconds that OpenDP's privacy filter takes for N charges. Runs in its own environment; prints JSON."""

import json
import sys
import time

import opendp.prelude as dp

charges = int(sys.argv[1])
dp.enable_features("contrib")
space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
query = dp.m.make_laplace(*space, scale=50_000.0)
odometer = dp.c.make_fully_adaptive_composition(*space, output_measure=dp.max_divergence())
answers = dp.c.make_privacy_filter(odometer, d_in=1, d_out=10.0)(7)

start = time.perf_counter()
for _ in range(charges):
    answers(query)
print(json.dumps(time.perf_counter() - start))
