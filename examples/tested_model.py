"""Try models until one is good enough. Each that is not stays unseen, and costs only its test."""

import numpy as np

import expost as xp
from expost.learn import PrivateLogisticRegression, TestedLogisticRegression

rng = np.random.default_rng(0)
features = rng.normal(size=(20_000, 6))
labels = (features[:, 4] - features[:, 5] + rng.normal(0, 0.3, 20_000) > 0).astype(int)
records = np.column_stack([features, labels])

ledger = xp.Ledger(epsilon=1, noise=xp.SeededNoise(1))  # a seed, so that every run prints the same: not private
candidates = (
    xp.mechanisms.TestedLogisticRegression(epsilon=0.5, test_share=0.1, threshold=0.8, norm=2, features=pair)
    for pair in ((0, 1), (1, 2), (2, 3), (4, 5))
)
found = xp.recipes.try_until_one_passes(ledger, candidates, on=records)
print(found)
print(ledger.statement())
model = found.value
assert isinstance(model, xp.mechanisms.LinearModel)
print(f"features {model.features}, right about {np.mean(model.predict(features) == labels):.0%}")

print("\nWith what remains, one more model by scikit-learn's interface:")
estimator = TestedLogisticRegression(
    epsilon=ledger.remaining.epsilon, test_share=0.1, threshold=0.1, norm=3, classes=[0, 1], ledger=ledger
).fit(features, labels)
print(f"released: {estimator.released_} · {estimator.release_}")

print("\nWithout a test, at the same ε, noise on the objective does better:")
plain = PrivateLogisticRegression(epsilon=0.3, norm=3, classes=[0, 1], ledger=ledger).fit(features, labels)
print(f"right about {plain.score(features, labels):.0%} · {ledger.remaining} remaining")
