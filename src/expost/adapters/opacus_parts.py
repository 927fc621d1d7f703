"""What a training with Opacus relies on: the parts it takes, the samples, and that nothing changes on the way."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import Any

from expost.adapters.upper import library
from expost.errors import InvalidValue
from expost.ledger import Ledger
from expost.mentions import brief

_GRAIN = 2**24
"""torch draws uniform floats in steps of 2⁻²⁴."""


def check_parts(model: Any, optimizer: Any, loader: Any) -> None:
    """Refuse what is not plain torch on one device. Nothing is changed yet."""
    torch = library("torch", "torch", "trainings with Opacus", "opacus")
    data = library("torch.utils.data", "torch", "trainings with Opacus", "opacus")
    opacus = library("opacus", "opacus", "trainings with Opacus", "opacus")
    optimizers = library("opacus.optimizers", "opacus", "trainings with Opacus", "opacus")
    if not isinstance(model, torch.nn.Module) or isinstance(model, opacus.GradSampleModule):
        raise InvalidValue(f"the model is torch's, before Opacus wraps it, got a {type(model).__name__}")
    if not isinstance(optimizer, torch.optim.Optimizer) or isinstance(optimizer, optimizers.DPOptimizer):
        raise InvalidValue(f"the optimizer is torch's, before Opacus wraps it, got a {type(optimizer).__name__}")
    if not isinstance(loader, data.DataLoader) or hasattr(loader, "sample_rate"):
        raise InvalidValue(f"the loader is torch's DataLoader, before Opacus wraps it, got a {type(loader).__name__}")
    if isinstance(loader.dataset, data.IterableDataset) or loader.batch_size is None or not len(loader):
        given = f"{type(loader.dataset).__name__} and batch_size {loader.batch_size}"
        raise InvalidValue(f"Poisson samples need a data set with a length and records, and a batch_size, got {given}")
    _check_devices(torch, model)


def _check_devices(torch: Any, model: Any) -> None:
    distributed = library("torch.distributed", "torch", "trainings with Opacus", "opacus")
    wrapped = type(model).__name__ in ("DistributedDataParallel", "DifferentiallyPrivateDistributedDataParallel")
    running = distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1
    if wrapped or running or len({str(parameter.device) for parameter in model.parameters()}) > 1:
        raise InvalidValue("training on several devices is not analysed here: use one process and one device")


def sampled_at(rate: float) -> tuple[Fraction, int]:
    """The probability with which torch really takes a record, and the steps of an epoch, at Opacus's sample rate.

    The sampler takes a record if a uniform number of 24 bits is below the rate, itself rounded to 32 bits.

    >>> sampled_at(1 / 8)
    (Fraction(1, 8), 8)
    >>> float(sampled_at(0.1)[0]) - 0.1 < 2**-23
    True
    """
    import numpy as np

    largest = max(Fraction(rate), Fraction(float(np.float32(rate))))
    return min(Fraction(ceil(largest * _GRAIN), _GRAIN), Fraction(1)), int(1 / rate)


def counted_loader(made: Any) -> Any:
    """The loader that Opacus made, with a sampler that counts the samples it draws."""
    data = library("torch.utils.data", "torch", "trainings with Opacus", "opacus")
    sampling = library("opacus.utils.uniform_sampler", "opacus", "trainings with Opacus", "opacus")
    plain = made.batch_sampler
    if type(plain) is not sampling.UniformWithReplacementSampler:
        raise InvalidValue(f"Poisson sampling is required, and Opacus made a {type(plain).__name__}")

    class CountedSampler(sampling.UniformWithReplacementSampler):  # type: ignore[misc, name-defined]
        drawn = 0

        def __iter__(self) -> Any:
            for indices in super().__iter__():
                self.drawn += 1
                yield indices

    sampler = CountedSampler(
        num_samples=plain.num_samples, sample_rate=plain.sample_rate, generator=plain.generator, steps=plain.steps
    )
    kept = ("collate_fn", "num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context")
    more = ("generator", "prefetch_factor", "persistent_workers")
    settings = {name: getattr(made, name) for name in (*kept, *more)}
    return data.DataLoader(made.dataset, batch_sampler=sampler, **settings)


def drop_gradients(optimizer: Any) -> None:
    """Forget what a step would have used, so that nothing of it is published."""
    for parameter in optimizer.params:
        parameter.grad = parameter.grad_sample = parameter.summed_grad = None


class Watch:
    """What may not change while a training runs. Its hook goes around Opacus's own."""

    def __init__(self, training: Any, own: Any, before: Callable[[], None]) -> None:
        self._training, self._own, self._before = training, own, before
        self.noised = False
        """Whether the last noise was not used yet."""
        self._facts = self._now()
        self._accounted = self._steps_accounted()

    def hook(self, optimizer: Any) -> None:
        """Count the step, then let Opacus count it."""
        self._before()
        self._own(optimizer)
        self.noised = True

    def rebase(self) -> None:
        """Opacus's accountant was loaded from a checkpoint."""
        self._accounted = self._steps_accounted()

    def changed(self, taken: int) -> str | None:
        """What has changed since the beginning; None if nothing has."""
        try:
            now = self._now()
        except (AttributeError, TypeError):
            return "a part of the training was replaced by one that is not Opacus's"
        if now != self._facts:
            which = next(i for i, (one, other) in enumerate(zip(now, self._facts, strict=True)) if one != other)
            return f"{_FACTS[which]} changed"
        if self._training.optimizer.step_hook != self.hook:
            return "the hook of the optimizer was replaced, so that steps were not counted"
        if self._steps_accounted() != self._accounted + taken:
            return "Opacus's accountant has counted other steps than were taken here"
        return None

    def _now(self) -> tuple[Any, ...]:
        """What :data:`_FACTS` names."""
        training = self._training
        optimizer, loader, accountant = training.optimizer, training.loader, training.engine.accountant
        sampler, own = loader.batch_sampler, optimizer.__dict__
        return (
            optimizer.noise_multiplier,
            optimizer.max_grad_norm,
            type(optimizer),
            own.get("add_noise"),
            own.get("clip_and_accumulate"),
            own.get("pre_step"),
            id(optimizer.generator),
            id(sampler),
            sampler.sample_rate,
            sampler.num_samples,
            id(sampler.generator),
            id(loader.dataset),
            len(loader.dataset),
            id(accountant),
            len(accountant.history) > 1,
        )

    def _steps_accounted(self) -> int:
        return sum(steps for _, _, steps in self._training.engine.accountant.history)


_FACTS = (
    *("the noise multiplier", "the clipping norm", "the class of the optimizer", "how noise is added"),
    *("how gradients are clipped", "what comes before a step", "the generator of noise", "the sampler"),
    *("the sample rate", "the number of records that are sampled", "the generator of samples", "the data set"),
    *("the size of the data set", "the accountant", "the noise or sampling that was accounted"),
)


def _must_be(*allowed: Any) -> Callable[[Any, Ledger], None]:
    def check(value: Any, ledger: Ledger) -> None:
        if value not in allowed:
            raise InvalidValue(f"{brief(value)} is not analysed here: only {' or '.join(map(repr, allowed))}")

    return check


def _generator(value: Any, ledger: Ledger) -> None:
    try:
        durable = bool(ledger.__reduce__())
    except TypeError:
        durable = False
    if value is not None and durable:
        raise InvalidValue("a durable ledger needs private noise, and a generator can be seeded: leave it out")


OPACUS_OPTIONS: dict[str, Callable[[Any, Ledger], None]] = {
    "batch_first": _must_be(True, False),
    "clipping": _must_be("flat"),
    "grad_sample_mode": _must_be("hooks", "functorch", "ew"),
    "loss_reduction": _must_be("mean", "sum"),
    "noise_generator": _generator,
    "poisson_sampling": _must_be(True),
    "rand_on_empty": _must_be(True, False),
}
