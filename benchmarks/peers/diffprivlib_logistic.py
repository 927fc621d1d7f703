"""Accuracy and fit time of diffprivlib's LogisticRegression at its defaults, on splits that are given."""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from diffprivlib.models import LogisticRegression  # type: ignore[import-not-found]
from sklearn.linear_model import LogisticRegression as Plain

warnings.simplefilter("ignore")
job = json.loads(Path(sys.argv[1]).read_text())
features, labels = np.load(job["features"]), np.load(job["labels"])
splits = [np.load(path) for path in job["splits"]]
scores: dict[float, list[float]] = {}
for epsilon in job["epsilons"]:
    scores[epsilon] = []
    for seed, order in enumerate(splits):
        train, test = order[: job["train"]], order[job["train"] :]
        model = LogisticRegression(epsilon=epsilon, data_norm=1.0, random_state=seed)
        model.fit(features[train], labels[train])
        scores[epsilon].append(float(model.score(features[test], labels[test])))
plain = []
for order in splits[:10]:
    train, test = order[: job["train"]], order[job["train"] :]
    plain.append(float(Plain().fit(features[train], labels[train]).score(features[test], labels[test])))
seconds = []
for seed in range(job["timed"]):
    train = splits[seed][: job["train"]]
    model = LogisticRegression(epsilon=1.0, data_norm=1.0)
    start = time.perf_counter()
    model.fit(features[train], labels[train])
    seconds.append(time.perf_counter() - start)
print(json.dumps({"scores": scores, "plain": plain, "seconds": float(np.median(seconds))}))
