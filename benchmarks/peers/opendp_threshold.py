"""What OpenDP's thresholded Laplace noise releases of people with a label of their own. Prints JSON.

The first number is the reported ε, the second the reported δ; then the released count of each person, null if none was.
"""

import json
import sys

import opendp.prelude as dp

people = int(sys.argv[1])
dp.enable_features("contrib")
counted = dp.t.make_count_by(dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance())
release = counted >> dp.m.then_laplace_threshold(scale=1.0, threshold=5)
names = [f"person {number}" for number in range(people)]
found = release(names)
print(json.dumps([*release.map(1), [found.get(name) for name in names]]))
