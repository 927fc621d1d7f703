"""Seconds that diffprivlib's BudgetAccountant takes for N charges. Runs in its own environment; prints JSON."""

import json
import sys
import time

from diffprivlib import BudgetAccountant

charges = int(sys.argv[1])
accountant = BudgetAccountant(epsilon=10, delta=0)

start = time.perf_counter()
for _ in range(charges):
    accountant.spend(0.00002, 0)
print(json.dumps(time.perf_counter() - start))
