"""What trainings of tests share: a small model, and what a process does that is killed."""

import os
import signal
import sys
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from expost import Ledger
from expost.adapters import Training

USUAL: dict[str, Any] = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "epochs": 10, "delta": 1e-5}
KEPT: dict[str, Any] = {**USUAL, "key": "run", "lease": 600.0, "resume": True}
BATCHES = 8


def parts() -> tuple[Any, Any, Any]:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(16 * BATCHES, 6, generator=generator)
    labels = (features[:, 0] > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    loader = DataLoader(TensorDataset(features, labels), batch_size=16)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), loader


def step(training: Training, batch: Any) -> None:
    features, labels = batch
    training.optimizer.zero_grad()
    torch.nn.functional.cross_entropy(training.model(features), labels).backward()
    training.optimizer.step()


def run_epoch(training: Training, steps: int = BATCHES) -> None:
    for number, batch in enumerate(training.loader, 1):
        step(training, batch)
        if number == steps:
            return


def killed(url: str, checkpoint: str, settings: dict[str, Any]) -> None:
    """Train four epochs and half of a fifth; then die."""
    with Training(Ledger.load(url, "people"), *parts(), **settings) as training:
        for epoch in training:
            if epoch == 5:
                run_epoch(training, BATCHES // 2)
                os.kill(os.getpid(), signal.SIGKILL)
            run_epoch(training)
            training.save(checkpoint)


if __name__ == "__main__":
    killed(sys.argv[1], sys.argv[2], KEPT if sys.argv[3] == "kept" else USUAL)
