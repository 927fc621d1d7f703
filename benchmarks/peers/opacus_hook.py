"""How long a step of a training with Opacus takes, and our hook in it. Prints JSON: seconds of both."""

import json
import sys
import time
import warnings
from pathlib import Path

import torch
from torch.utils.data import DataLoader, TensorDataset

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
warnings.simplefilter("ignore")

from expost import Ledger  # noqa: E402
from expost.adapters import Training  # noqa: E402

torch.set_num_threads(1)
features, labels = torch.randn(4096, 784), torch.randint(0, 10, (4096,))
model = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(features, labels), batch_size=64)
ledger = Ledger(epsilon=1000, delta=1e-4)
spent: list[float] = []

with Training(
    ledger, model, optimizer, loader, noise_multiplier=1.0, max_grad_norm=1.0, epochs=3, delta=1e-5
) as training:
    watch = training._watch
    assert watch is not None
    count = watch._before

    def timed() -> None:
        """Our part of a step."""
        begun = time.perf_counter()
        count()
        spent.append(time.perf_counter() - begun)

    watch._before = timed
    steps: list[float] = []
    for _ in training:
        for batch, target in training.loader:
            begun = time.perf_counter()
            training.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(training.model(batch), target).backward()
            training.optimizer.step()
            steps.append(time.perf_counter() - begun)

print(json.dumps({"hook": sorted(spent)[len(spent) // 2], "step": sorted(steps)[len(steps) // 2], "steps": len(steps)}))
