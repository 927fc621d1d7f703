"""Trainings with Opacus and torch, in their own environment: ``make adapters`` builds it and runs this."""

import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pytest
import torch
from opacus.utils.batch_memory_manager import BatchMemoryManager

import expost as xp
from elsewhere.documented import example
from elsewhere.readings import order_of, renyi_units
from elsewhere.trainings import BATCHES, KEPT, USUAL, parts, run_epoch, step
from expost.accounting.renyi import sampled_normal_noise
from expost.adapters import Training

pytestmark = pytest.mark.filterwarnings("ignore")


def stopped_after(epochs: int, ledger: xp.Ledger, **settings: Any) -> Training:
    with Training(ledger, *parts(), **{**USUAL, **settings}) as training:
        for epoch in training:
            run_epoch(training)
            if epoch == epochs:
                break
    return training


def test_four_epochs_of_ten_are_charged_as_planned() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    training = stopped_after(4, ledger)
    planned = training.mechanism.guarantee.cost_of(4 * BATCHES)
    assert training.entry.state == "settled"
    assert training.entry.charged == planned == ledger.spent
    assert planned.epsilon_units < 0.7 * training.entry.reserved.epsilon_units
    assert training.steps == 4 * BATCHES
    assert 0 < training.engine.get_epsilon(1e-5) < float(planned.epsilon) * 1.5  # Opacus's own hook was called


def test_a_renyi_ledger_pays_for_steps() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4, accounting="renyi")
    with Training(ledger, *parts(), **USUAL) as training:
        run_epoch(training)
        run_epoch(training, 3)
    steps = BATCHES + 3
    assert training.entry.part == steps
    order = order_of(ledger)
    filtered = ceil(steps * sampled_normal_noise(order, 1, Fraction(1, BATCHES)) * 10**12)
    assert 0 < renyi_units(training.entry) <= filtered
    assert ledger.spent == xp.Cost(0)


def change_noise(training: Training) -> None:
    training.optimizer.noise_multiplier = 0.1


def change_clipping(training: Training) -> None:
    training.optimizer.max_grad_norm = 10.0


def change_sampling(training: Training) -> None:
    training.loader.batch_sampler.sample_rate = 0.9


def change_accountant(training: Training) -> None:
    training.engine.accountant = type(training.engine.accountant)()


def clear_accountant(training: Training) -> None:
    training.engine.accountant.history.clear()


def replace_hook(training: Training) -> None:
    training.optimizer.attach_step_hook(lambda _: None)


def leave_out_noise(training: Training) -> None:
    training.optimizer.add_noise = lambda: None


def step_past_opacus(training: Training) -> None:
    training.optimizer.original_optimizer.step()


def replace_loader(training: Training) -> None:
    training.loader = parts()[2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (replace_loader, "not Opacus's"),
        (change_noise, "the noise multiplier changed"),
        (change_clipping, "the clipping norm changed"),
        (change_sampling, "the sample rate changed"),
        (change_accountant, "the accountant changed"),
        (clear_accountant, "accountant has counted other steps"),
        (replace_hook, "stepped past Opacus"),
        (leave_out_noise, "how noise is added changed"),
        (step_past_opacus, "stepped past Opacus"),
    ],
)
def test_what_changes_on_the_way_is_forfeited(change: Callable[[Training], None], said: str) -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    training = Training(ledger, *parts(), **USUAL)
    before: list[Any] = []

    def go() -> None:
        with training:
            for number, batch in enumerate(training.loader):
                if number == 3:
                    before.extend(parameter.detach().clone() for parameter in training.model.parameters())
                    change(training)
                step(training, batch)

    with pytest.raises(xp.InvalidValue, match=f"{said}.*: this step was not taken"):
        go()
    assert training.entry.state == "forfeited"
    assert ledger.spent == training.entry.reserved
    after = list(training.model.parameters())
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert all(parameter.grad is None for parameter in after)


def test_a_batch_is_for_one_step() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    training = Training(ledger, *parts(), **USUAL)

    def go() -> None:
        with training:
            batch = next(iter(training.loader))
            step(training, batch)
            step(training, batch)

    with pytest.raises(xp.InvalidValue, match="without a fresh sample"):
        go()
    assert ledger.spent == training.entry.reserved


def test_a_hook_that_is_replaced_after_the_last_step_is_noticed() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    training = Training(ledger, *parts(), **USUAL)

    def go() -> None:
        with training:
            run_epoch(training)
            replace_hook(training)

    with pytest.raises(xp.InvalidValue, match=r"hook of the optimizer was replaced.*: the worst case"):
        go()
    assert ledger.spent == training.entry.reserved


def test_an_ended_training_takes_no_step() -> None:
    training = stopped_after(1, xp.Ledger(epsilon=20, delta=1e-4))
    with pytest.raises(xp.errors.InteractionClosed, match="has ended"):
        run_epoch(training)
    assert all(parameter.grad is None for parameter in training.model.parameters())
    with pytest.raises(xp.errors.InteractionClosed, match="one with block"):
        training.__enter__()


def test_no_more_steps_than_were_reserved() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    training = Training(ledger, *parts(), **{**USUAL, "epochs": 1})

    def go() -> None:
        with training:
            run_epoch(training)
            run_epoch(training)

    with pytest.raises(xp.errors.InteractionClosed, match="all 8 steps"):
        go()
    assert ledger.spent == training.entry.reserved


def test_the_caller_s_own_error_settles_what_was_taken() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    training = Training(ledger, *parts(), **USUAL)

    def go() -> None:
        with training:
            run_epoch(training)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        go()
    assert training.entry.part == BATCHES


def test_nothing_taken_costs_nothing() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    with Training(ledger, *parts(), **USUAL) as training:
        assert list(training) == list(range(1, 11))
    assert training.entry.state == "voided"
    assert ledger.spent == xp.Cost(0)


def test_large_batches_in_pieces_are_single_steps() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    with Training(ledger, *parts(), **USUAL) as training:
        kinds = {"data_loader": training.loader, "max_physical_batch_size": 4, "optimizer": training.optimizer}
        with BatchMemoryManager(**kinds) as pieces:
            for batch in pieces:
                step(training, batch)
    assert training.steps == BATCHES


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"poisson_sampling": False}, "False is not analysed here: only True"),
        ({"grad_sample_mode": "ghost"}, "'ghost' is not analysed"),
        ({"clipping": "adaptive"}, "'adaptive' is not analysed"),
        ({"noise_multiplier": 0.0}, "without noise nothing is guaranteed"),
        ({"noise_multiplier": float("nan")}, "guarantees nothing"),
        ({"noise_multiplier": float("inf")}, "guarantees nothing"),
        ({"max_grad_norm": float("inf")}, "guarantees nothing"),
        ({"epochs": 0}, "epochs is a whole number"),
        ({"delta": 0}, "needs a δ"),
        ({"stops": [3]}, "the last of them all"),
        ({"lease": 5.0}, "give key="),
        ({"secure": True}, "leave it out"),
    ],
)
def test_public_mistakes_are_free(settings: dict[str, Any], said: str) -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    with pytest.raises(xp.InvalidValue, match=said):
        Training(ledger, *parts(), **{**USUAL, **settings})
    assert list(ledger.entries()) == []


def test_parts_that_are_not_plain() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    model, optimizer, loader = parts()
    for wrong in ((None, optimizer, loader), (model, model, loader), (model, optimizer, [1])):
        with pytest.raises(xp.InvalidValue, match="before Opacus wraps it"):
            Training(ledger, *wrong, **USUAL)
    with Training(ledger, model, optimizer, loader, **USUAL) as training:
        made = training.model, training.optimizer, training.loader
    with pytest.raises(xp.InvalidValue, match="before Opacus wraps it"):
        Training(ledger, *made, **USUAL)


def test_too_dear_a_training_changes_nothing() -> None:
    ledger, (model, optimizer, loader) = xp.Ledger(epsilon=1, delta=1e-4), parts()
    with pytest.raises(xp.BudgetExceeded):
        Training(ledger, model, optimizer, loader, **USUAL).__enter__()
    assert not any(hasattr(parameter, "grad_sample") for parameter in model.parameters())


def durable(tmp_path: Path) -> tuple[str, xp.Ledger]:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    return url, xp.Ledger.create(url, "people", epsilon=20, delta=1e-4, neighbours="add-remove", unit="person")


def die(url: str, tmp_path: Path, kind: str) -> None:
    script = str(Path(__file__).with_name("trainings.py"))
    command = [sys.executable, "-W", "ignore", script, url, str(tmp_path / "model.pt"), kind]
    assert subprocess.run(command, env={**os.environ}, check=False).returncode == -9


def test_killed_within_an_epoch_it_costs_the_worst_case(tmp_path: Path) -> None:
    url, _ = durable(tmp_path)
    die(url, tmp_path, "usual")
    ledger = xp.Ledger.load(url, "people")
    (entry,) = ledger.entries()
    assert (entry.state, entry.charged) == ("forfeited", entry.reserved)


def test_a_checkpoint_is_resumed_without_paying_twice(tmp_path: Path) -> None:
    url, _ = durable(tmp_path)
    die(url, tmp_path, "kept")
    ledger = xp.Ledger.load(url, "people")
    with Training(ledger, *parts(), **KEPT) as training:
        training.load(tmp_path / "model.pt")
        assert training.steps == 5 * BATCHES  # the fifth epoch was begun, and is lost
        for epoch in training:
            run_epoch(training)
            if epoch == 7:
                break
    assert training.entry.part == 7 * BATCHES
    assert ledger.spent == training.mechanism.guarantee.cost_of(7 * BATCHES)
    assert [entry.charged for entry in ledger.entries() if entry.id != training.entry.id] == [xp.Cost(0)] * 8
    ledger.verify()
    with pytest.raises(xp.errors.AlreadyReserved):
        Training(ledger, *parts(), **KEPT).__enter__()
    other = Training(ledger, *parts(), **{**KEPT, "noise_multiplier": 2.0})
    with pytest.raises(xp.errors.KeyConflict):
        other.__enter__()


def test_of_two_who_resume_one_goes_on() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    first, second = (Training(ledger, *parts(), **KEPT) for _ in range(2))
    with first:
        second.__enter__()
        run_epoch(first)
        with pytest.raises(xp.errors.InteractionClosed, match="belongs to another process"):
            run_epoch(second, 1)
        second.close()
    assert first.entry.part == BATCHES


def test_who_is_overtaken_does_not_settle() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    first = Training(ledger, *parts(), **KEPT)
    first.__enter__()
    run_epoch(first)
    second = Training(ledger, *parts(), **KEPT)
    second.__enter__()
    run_epoch(second)
    with pytest.raises(xp.errors.InteractionClosed, match="will settle it"):
        first.close()
    assert ledger.spent == xp.Cost(0)
    assert ledger.reserved == first.entry.reserved


def test_a_forked_copy_takes_no_step() -> None:
    ledger = xp.Ledger(epsilon=20, delta=1e-4)
    with Training(ledger, *parts(), **USUAL) as training:
        run_epoch(training, 2)
        child = os.fork()
        if not child:
            try:
                run_epoch(training, 1)
            except xp.errors.InteractionClosed:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert training.entry.part == BATCHES


def test_the_example_of_the_docs() -> None:
    exec(compile(example("Opacus"), "docs/adapters.md", "exec"), {})
