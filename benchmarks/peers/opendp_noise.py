"""Samples a second of OpenDP's vector mechanisms at several scales. Prints JSON: {"integer Laplace 40": rate}."""

import json
import sys
import time

import opendp.prelude as dp

SIZE, RUNS = 20_000, 3

dp.enable_features("contrib")
rates = {}
for scale in map(int, sys.argv[1:]):
    for name, kind, make, metric in (
        ("integer Laplace", int, dp.m.make_laplace, dp.l1_distance(T=int)),
        ("float Laplace", float, dp.m.make_laplace, dp.l1_distance(T=float)),
        ("integer Gaussian", int, dp.m.make_gaussian, dp.l2_distance(T=float)),
    ):
        atoms = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=int)
        measurement, zeros = make(dp.vector_domain(atoms), metric, scale=float(scale)), [kind(0)] * SIZE
        best = float("inf")
        for _ in range(RUNS):
            start = time.perf_counter()
            measurement(zeros)
            best = min(best, time.perf_counter() - start)
        rates[f"{name} {scale}"] = SIZE / best
print(json.dumps(rates))
