"""Training with Opacus, charged for the steps that were taken. Opacus is installed by its users (see the docs).

The noise, the clipping and the sampling are Opacus's, in floating point. What is ours is the plan, the count of real
steps, and the refusal to go on when something changed that the plan relies on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from threading import RLock
from types import TracebackType
from typing import Any, NoReturn, Self

from expost.adapters.epochs import EpochMarks
from expost.adapters.opacus_parts import OPACUS_OPTIONS, Watch, check_parts, counted_loader, drop_gradients, sampled_at
from expost.adapters.steps import NoisySteps
from expost.adapters.upper import as_guaranteed, library
from expost.checks import as_whole
from expost.cost import Number
from expost.errors import AlreadyReserved, InteractionClosed, InvalidValue
from expost.forks import here
from expost.ledger import Entry, Ledger, Reservation
from expost.ledger.reservation import reserve_elsewhere
from expost.mentions import brief


class Training:
    """A training with Opacus as a ``with`` block: reserves all epochs, and charges those that were begun.

    Parameters
    ----------
    ledger
        The ledger that pays.
    model, optimizer, loader
        Those of torch, before Opacus: within the block ``training.model``, ``training.optimizer`` and
        ``training.loader`` are Opacus's.
    noise_multiplier, max_grad_norm
        As of Opacus: the noise over the longest gradient, and the length that gradients are clipped to.
    epochs
        The number of epochs at most.
    delta
        The δ of the whole; in a ledger with Rényi prices none is taken.
    stops
        The epochs that have an ε of their own. By default all. Between two, the next one counts.
    accountant
        Opacus's own accountant, for ``training.engine.get_epsilon``: ``"rdp"``, ``"prv"`` or ``"gdp"``.
    label
        What the ledger's entry is called.
    key
        For checkpoints: the name of this training. Each epoch that begins is then noted in the ledger.
    lease
        How many seconds the reservation waits for a resumed training if this process dies. Without, its worst case is
        charged then.
    resume
        Whether to go on with the training of that key, if it was begun before.
    options
        Of Opacus's ``make_private``: ``batch_first``, ``loss_reduction``, ``grad_sample_mode`` (not ghost clipping),
        ``noise_generator``, ``rand_on_empty``. Poisson sampling and flat clipping are required.

    ::

        with Training(ledger, model, optimizer, loader, noise_multiplier=1.1, max_grad_norm=1.0, epochs=10,
                      delta=1e-5) as training:
            for epoch in training:
                for features, labels in training.loader:
                    ...  # as usual, with training.model and training.optimizer
                if good_enough(training.model):  # decided by what was published, or on public data
                    break

    In a ledger with Rényi prices every step is charged by itself, otherwise the epoch that was reached. If the noise,
    the clipping, the sampling or the accountant changed on the way, the worst case is charged and the step that would
    have used it is not taken. The guarantee is about one record that is added or removed.

    Proof: thm-iterative, lem-renyi-stopping
    """

    def __init__(
        self,
        ledger: Ledger,
        model: Any,
        optimizer: Any,
        loader: Any,
        *,
        noise_multiplier: float,
        max_grad_norm: float,
        epochs: int,
        delta: Number,
        stops: Sequence[int] | None = None,
        accountant: str = "rdp",
        label: str | None = None,
        key: str | None = None,
        lease: float | None = None,
        resume: bool = False,
        **options: Any,
    ) -> None:
        library("opacus", "opacus", "trainings with Opacus", "opacus")
        if not isinstance(ledger, Ledger):
            raise InvalidValue(f"a ledger is needed, got a {type(ledger).__name__}")
        for name, value in (("noise_multiplier", noise_multiplier), ("max_grad_norm", max_grad_norm)):
            if not as_guaranteed(value, name):
                raise InvalidValue(f"{name} is above 0, got {brief(value)}: without noise nothing is guaranteed")
        if lease is not None and key is None:
            raise InvalidValue("a lease is for a training that is resumed: give key=, its name")
        check_parts(model, optimizer, loader)
        unknown = sorted(options.keys() - OPACUS_OPTIONS.keys())
        if unknown:
            raise InvalidValue(f"{unknown[0]}={brief(options[unknown[0]])} is not analysed here: leave it out")
        for name, value in options.items():
            OPACUS_OPTIONS[name](value, ledger)
        self._ledger, self._parts, self._options = ledger, (model, optimizer, loader), options
        self._max_grad_norm, self._accountant = max_grad_norm, accountant
        self._label, self._key, self._lease, self._resume = label, key, lease, resume
        self._noise, self._epochs = noise_multiplier, as_whole(epochs, "epochs")
        self.mechanism = self._planned(len(loader), range(1, epochs + 1) if stops is None else stops, delta)
        self._process, self._lock = here(), RLock()
        self._reservation: Reservation | None = None
        self._marks: EpochMarks | None = None
        self._watch: Watch | None = None
        self._before = self._taken = 0
        self._closed = False

    def _planned(self, batches: int, stops: Sequence[int], delta: Number) -> NoisySteps:
        rate, self.steps_per_epoch = sampled_at(1 / batches)
        return NoisySteps(
            noise_multiplier=Fraction(self._noise),
            sampling_rate=rate,
            count=self._epochs * self.steps_per_epoch,
            stops=tuple(as_whole(stop, "a stop", most=self._epochs) * self.steps_per_epoch for stop in stops),
            delta=delta,
            neighbours="add-remove",
            every_step=len(self._ledger.meters) > 1,
        )

    # ---- the block

    def __enter__(self) -> Self:
        if self._reservation is not None or self._closed:
            raise InteractionClosed("a training is one with block: make another Training")
        self._reservation = reservation = self._reserve()
        try:
            self._make_private()
        except BaseException:
            if reservation.entry.state == "reserved" and not reservation.entry.begun:
                reservation.void()
            raise
        return self

    def _reserve(self) -> Reservation:
        try:
            found = reserve_elsewhere(self._ledger, self.mechanism, label=self._label, key=self._key, lease=self._lease)
        except AlreadyReserved as used:
            if not self._resume or used.entry.state != "reserved":
                raise
            found = self._ledger.reservation(used.entry.id)
        if self._key is not None:
            self._marks = EpochMarks(self._ledger, self._key)
            self._before = self._marks.begun * self.steps_per_epoch
        return found

    def _make_private(self) -> None:
        opacus = library("opacus", "opacus", "trainings with Opacus", "opacus")
        model, optimizer, loader = self._parts
        self.engine = opacus.PrivacyEngine(accountant=self._accountant)
        self.model, self.optimizer, made = self.engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=self._noise,
            max_grad_norm=self._max_grad_norm,
            **self._options,
        )
        self.loader = counted_loader(made)
        own = self.optimizer.step_hook
        self._watch = Watch(self, own, self._on_step)
        self.optimizer.attach_step_hook(self._watch.hook)
        self.optimizer.original_optimizer.register_step_pre_hook(self._on_update)

    def __iter__(self) -> Iterator[int]:
        """The numbers of the epochs that remain. Leaving the loop ends the training early."""
        first = self._before // self.steps_per_epoch + 1
        for epoch in range(first, self._epochs + 1):
            if self._closed:
                return
            yield epoch

    # ---- counting

    @property
    def steps(self) -> int:
        """The steps that count: those of this process, and all of epochs that were begun before it."""
        return self._before + self._taken

    def _on_step(self) -> None:
        """A step has its noise and is about to be taken. Called by Opacus's optimizer, before its own hook."""
        with self._lock:
            reason = self._wrong()
            if reason is not None:
                self._give_up(reason)
            if self.steps == self.mechanism.count:
                drop_gradients(self.optimizer)
                raise InteractionClosed(f"all {self.mechanism.count} steps that were reserved were taken")
            assert self._reservation is not None
            try:
                self._mark()
                if self._taken == 0:
                    self._begin()
            except BaseException:
                drop_gradients(self.optimizer)
                raise
            self._taken += 1

    def _mark(self) -> None:
        epoch = self.steps // self.steps_per_epoch + 1
        if self._marks is not None and epoch > self._marks.begun:
            try:
                self._marks.begin(epoch)
            except InteractionClosed:
                self._closed = True  # the reservation is another process's now
                raise

    def _begin(self) -> None:
        assert self._reservation is not None
        if not self._reservation.entry.begun:
            self._reservation.begin()

    def _wrong(self) -> str | None:
        """What keeps the next step from being one of those that were planned."""
        assert self._watch is not None
        if here() != self._process:
            drop_gradients(self.optimizer)
            raise InteractionClosed("this training belongs to the process that began it")
        if self._closed:
            drop_gradients(self.optimizer)
            raise InteractionClosed("this training has ended: what it published is charged, and no step is taken now")
        return self._watch.changed(self._taken) or (
            "a step was taken without a fresh sample of training.loader"
            if self.loader.batch_sampler.drawn <= self._taken
            else None
        )

    def _on_update(self, *_: Any) -> None:
        """Parameters are about to change: only after a step with noise."""
        with self._lock:
            assert self._watch is not None
            if self._closed:
                drop_gradients(self.optimizer)
                raise InteractionClosed("this training has ended: parameters are not changed any more")
            if not self._watch.noised:
                self._give_up("the optimizer was stepped past Opacus, without noise")
            self._watch.noised = False

    def _give_up(self, reason: str) -> NoReturn:
        drop_gradients(self.optimizer)
        self._closed = True
        error = InvalidValue(f"{reason}: this step was not taken, and the training cannot go on as planned")
        if self._reservation is not None:
            self._reservation.forfeit(error)
        raise error

    # ---- the end

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if here() == self._process:
            self.close(error)

    def close(self, error: BaseException | None = None) -> Entry | None:
        """End the training and settle the steps that count. Closing again does nothing."""
        with self._lock:
            if self._closed or self._reservation is None or self._watch is None:
                return None
            self._closed = True
            if self._taken == 0 and not self._reservation.entry.begun:
                return self._reservation.void()
            changed = self._watch.changed(self._taken)
            if changed is not None:
                return self._changed_at_the_end(changed, error)
            if self._marks is not None and not self._marks.end():
                if error is None:
                    raise InteractionClosed("another process goes on with this training, and will settle it")
                return None
            return self._reservation.settle(self.mechanism.part_of(self.steps))

    def _changed_at_the_end(self, reason: str, error: BaseException | None) -> Entry:
        assert self._reservation is not None
        entry = self._reservation.forfeit(error)
        if error is None:
            raise InvalidValue(f"{reason}: the worst case was charged as entry {entry.id}")
        return entry

    @property
    def entry(self) -> Entry:
        """The ledger's entry, as it is now."""
        if self._reservation is None:
            raise InteractionClosed("nothing is reserved yet: begin the with block")
        return self._reservation.entry

    # ---- checkpoints

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save model, optimizer and Opacus's accountant: what ``load`` reads when the training is resumed."""
        self.engine.save_checkpoint(path=path, module=self.model, optimizer=self.optimizer)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint, before the first step here. Steps that were lost since it was saved still count."""
        if self._taken:
            raise InvalidValue("a checkpoint is loaded before the first step of a resumed training")
        assert self._watch is not None
        self.engine.load_checkpoint(path=path, module=self.model, optimizer=self.optimizer)
        self._watch.rebase()
