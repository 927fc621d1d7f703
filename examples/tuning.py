"""Tune a classifier: parameters and budget are chosen by a private score, and only the winner is paid for."""

import numpy as np

import expost as xp
from expost.learn import PrivateLogisticRegression, PrivateSearchCV

rng = np.random.default_rng(0)
features = rng.normal(size=(20_000, 6))
labels = (features[:, 4] - features[:, 5] + rng.normal(0, 0.3, 20_000) > 0).astype(int)

ledger = xp.Ledger(epsilon=2, noise=xp.SeededNoise(1))  # a seed, so that every run prints the same: not private
search = PrivateSearchCV(
    estimator=PrivateLogisticRegression(epsilon=1, norm=3, classes=[0, 1]),
    param_grid={"epsilon": [0.01, 0.1, 1], "regularizer": [1e-4, 1e-2, 1]},
    good_enough=0.85,
    ledger=ledger,
).fit(features, labels)
print(search.release_)
print(f"chosen: {search.best_params_}, right about {search.score(features, labels):.0%}")
print(f"{ledger.remaining} remaining; one fit after another, all nine would have reserved ε 3.33")
