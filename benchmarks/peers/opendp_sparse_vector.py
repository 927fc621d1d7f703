"""Comparisons a second of a sparse vector on OpenDP's scalar Laplace mechanism. Prints JSON."""

import json
import sys
import time

import opendp.prelude as dp

questions, threshold, at_most, epsilon = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
dp.enable_features("contrib")
space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
first = epsilon / (1 + (2 * at_most) ** (2 / 3))
bar = dp.m.make_laplace(*space, scale=1 / first)(threshold)
noisy = dp.m.make_laplace(*space, scale=2 * at_most / (epsilon - first))

start = time.perf_counter()
positives = 0
for _ in range(questions):
    if positives < at_most and noisy(7) >= bar:
        positives += 1
print(json.dumps(questions / (time.perf_counter() - start)))
