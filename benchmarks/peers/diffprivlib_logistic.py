"""Accuracy and fit time of diffprivlib's LogisticRegression at its defaults, on splits that are given."""

import json
import sys
import time
import warnings

import numpy as np
from diffprivlib.models import LogisticRegression
from sklearn.linear_model import LogisticRegression as Plain

warnings.simplefilter("ignore")
job = json.loads(sys.argv[1])
features, labels, splits = (np.load(job[name]) for name in ("features", "labels", "splits"))
scores = []
for seed in job["seeds"]:
    train, test = splits[seed][: job["train"]], splits[seed][job["train"] :]
    models = {
        str(epsilon): LogisticRegression(epsilon=epsilon, data_norm=1.0, random_state=seed)
        for epsilon in job["epsilons"]
    }
    models["plain"] = Plain()
    for model in models.values():
        model.fit(features[train], labels[train])
    scores.append({name: float(model.score(features[test], labels[test])) for name, model in models.items()})
seconds = []
for seed in range(job["timed"]):
    train = splits[seed][: job["train"]]
    model = LogisticRegression(epsilon=1.0, data_norm=1.0)
    start = time.perf_counter()
    model.fit(features[train], labels[train])
    seconds.append(time.perf_counter() - start)
print(json.dumps({"scores": scores, "seconds": float(np.median(seconds)) if seconds else None}))
