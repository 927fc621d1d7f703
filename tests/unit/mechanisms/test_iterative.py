"""Iterative: steps through a ledger, stopping anywhere, and what is refused."""

from __future__ import annotations

import copy
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.accounting import GaussianNoise, LaplaceNoise, optimal_delta, plan
from expost.errors import InteractionClosed, InvalidValue
from expost.mechanisms.iterative import IterativeInteraction
from toys import Fixed

DATA = np.linspace(0, 1, 60).reshape(20, 3)


def ledger() -> xp.Ledger:
    return xp.Ledger(epsilon=9, delta=1e-4, noise=xp.SeededNoise(11))


def opened(book: xp.Ledger, mechanism: xp.Iterative) -> IterativeInteraction:
    interaction = book.open(mechanism)
    assert isinstance(interaction, IterativeInteraction)
    return interaction


def walk(**changes: Any) -> xp.Iterative:
    given: dict[str, Any] = {"steps": [GaussianNoise(4)] * 12, "stops": [4, 8, 12], "delta": 1e-5, "sensitivity": 1}
    return xp.Iterative(**(given | changes))


@pytest.mark.parametrize(("taken", "part"), [(1, 4), (4, 4), (5, 8), (8, 8), (9, 12), (12, 12)])
def test_a_run_settles_at_the_stop_reached_or_the_next(taken: int, part: int) -> None:
    book, mechanism = ledger(), walk()
    with opened(book, mechanism) as interaction:
        for step in interaction:
            value = step(DATA.mean(axis=0))
            assert value.shape == (3,)
            assert step.may_stop == (step.number in (4, 8, 12))
            if step.number == taken:
                break
    assert interaction.release.part == part
    assert interaction.release.charged == mechanism.guarantee.cost_of(part)
    assert interaction.release.refunded.epsilon_units == (
        mechanism.guarantee.worst_case.epsilon_units - interaction.release.charged.epsilon_units
    )
    assert str(interaction.release).startswith(f"Iterative: {taken} of at most 12 steps")
    assert book.spent == interaction.release.charged


def test_all_steps_close_the_run_and_none_cost_nothing() -> None:
    book = ledger()
    with opened(book, walk()) as interaction:
        for step in interaction:
            step(0.5)
    assert interaction.closed
    assert len(interaction.release.value) == 12
    with opened(book, walk()) as interaction:
        pass
    assert interaction.release.charged == xp.Cost(0)


def test_an_exception_of_the_caller_settles_what_was_published() -> None:
    book, mechanism = ledger(), walk()

    def interrupted() -> None:
        with opened(book, mechanism) as interaction:
            for step in interaction:
                step(1.0)
                if step.number == 3:
                    raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert book.spent == mechanism.guarantee.cost_of(4)


def test_in_one_go_until_the_rule_says_so() -> None:
    def until(outputs: tuple[Any, ...]) -> bool:
        return len(outputs) >= 6

    mechanism = walk(compute=lambda rows, outputs: rows.mean(axis=0), until=until)
    release = ledger().run(mechanism, on=DATA)
    assert (release.part, len(release.value)) == (8, 8)  # the rule is asked at stops only
    with pytest.raises(InvalidValue, match="compute"):
        ledger().run(walk(), on=DATA)


def test_samples_are_drawn_once_and_are_required() -> None:
    sampled = walk(steps=[GaussianNoise(2, "0.25")] * 12, neighbours="add-remove")
    with opened(ledger(), sampled) as interaction:
        for step in interaction:
            with pytest.raises(InvalidValue, match="batch"):
                step(1.0)
            mask = step.batch(4000)
            assert 800 < mask.sum() < 1200
            with pytest.raises(InvalidValue, match="already"):
                step.batch(4000)
            step(1.0)
            with pytest.raises(InteractionClosed):
                step(1.0)
            if step.number == 2:
                break
    with pytest.raises(InvalidValue, match="add-remove"):
        walk(steps=[GaussianNoise(2, "0.25")] * 12)
    once = walk(
        steps=[GaussianNoise(2, "0.25")] * 12, neighbours="add-remove", compute=lambda rows, _: rows.sum(axis=0)
    )
    assert len(ledger().run(once, on=DATA).value) == 12


def test_a_step_without_a_value_is_noticed() -> None:
    with pytest.raises(InteractionClosed, match="no value"), opened(ledger(), walk()) as interaction:
        for _ in interaction:
            pass


def test_guarantees_are_planned_or_checked() -> None:
    losses = [GaussianNoise(4)] * 12
    planned = plan(losses, [4, 8, 12], 1e-5)
    assert walk().guarantee == planned
    assert optimal_delta(losses, [4, 8, 12], [planned.epsilon_of(stop) for stop in (4, 8, 12)]).upper <= 1e-5
    given = walk(epsilons=(3, 4, 5))
    assert given.guarantee.epsilon_of(8) == 4
    with pytest.raises(InvalidValue, match="need a δ"):
        walk(epsilons=(1, 1, 1))


def test_any_mechanism_may_be_a_step() -> None:
    """Randomised responses as steps, stopped by their answers: the exact law keeps the guarantee."""
    answer = xp.mechanisms.RandomizedResponse(epsilon=0.5, choices=2)
    mechanism = xp.Iterative(
        steps=[answer] * 2,
        stops=[1, 2],
        delta="0.17",
        epsilons=("0.2", "0.6"),
        compute=lambda bit, outputs: bit,
        until=lambda outputs: outputs[-1] == 1,
        neighbours="substitute",
    )
    assert mechanism.guarantee.worst_case.epsilon == 0.6
    release = xp.Ledger(epsilon=1, delta=0.2, noise=xp.SeededNoise(3)).run(mechanism, on=1)
    assert release.part == len(release.value)
    with pytest.raises(InvalidValue, match="need a δ"):
        xp.Iterative(steps=[answer] * 2, stops=[1, 2], delta="0.05", epsilons=("0.2", "0.6"), neighbours="substitute")


def test_laplace_steps_are_for_single_numbers() -> None:
    mechanism = walk(steps=[LaplaceNoise(10)] * 12)
    with opened(ledger(), mechanism) as interaction:
        for step in interaction:
            with pytest.raises(InvalidValue, match="single number"):
                step(np.ones(3))
            assert isinstance(step(0.5), float)
            if step.number == 1:
                break
    whole = walk(steps=[LaplaceNoise(10)] * 12)
    with opened(ledger(), whole) as interaction:
        for step in interaction:
            assert isinstance(step(7), int)
            break


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidValue, match="sensitivity"):
        walk(sensitivity=None)
    with pytest.raises(InvalidValue, match="a step is"):
        walk(steps=[(0.1, 0)] * 12)
    with pytest.raises(InvalidValue, match="stops"):
        walk(stops=[4, 8])
    with pytest.raises(InvalidValue, match="neighbours"):
        walk(steps=[xp.Laplace(epsilon=0.1, sensitivity=1, neighbours="substitute")] * 12)


def test_the_noise_has_the_deviation_that_was_paid_for() -> None:
    mechanism = xp.Iterative(steps=[GaussianNoise(3)] * 2, stops=[1, 2], delta=1e-3, sensitivity=2)
    with opened(xp.Ledger(epsilon=9, delta=1, noise=xp.SeededNoise(5)), mechanism) as interaction:
        for step in interaction:
            noise = step(np.zeros(4000))
    assert np.std(noise) == pytest.approx(6, rel=0.05)


def test_outputs_cannot_be_overwritten_with_private_values() -> None:
    def compute(data: Any, outputs: tuple[Any, ...]) -> Any:
        if outputs:
            with pytest.raises(ValueError, match="read-only"):
                outputs[-1][:] = data
        return np.zeros(3)

    mechanism = xp.Iterative(steps=(GaussianNoise(10),) * 2, stops=(1, 2), delta=1e-5, sensitivity=1, compute=compute)
    release = xp.Ledger(epsilon=10, delta=1e-4).run(mechanism, on=np.array([1e9, 1e9, 1e9]))
    assert all(np.abs(output).max() < 1e6 for output in release.value)


def test_data_that_takes_no_mask_is_refused_for_free() -> None:
    mechanism = xp.Iterative(
        steps=(GaussianNoise(10, sampling_rate=0.5),) * 2,
        stops=(1, 2),
        delta=1e-5,
        sensitivity=1,
        neighbours="add-remove",
        compute=lambda rows, outputs: 0.0,
    )
    book = xp.Ledger(epsilon=10, delta=1e-4)
    with pytest.raises(InvalidValue, match=r"np\.asarray"):
        book.run(mechanism, on=[1, 2, 3])
    assert not book.spent


def test_a_step_out_of_turn_is_refused_and_the_run_goes_on() -> None:
    book = xp.Ledger(epsilon=10, delta=1e-4)
    with opened(book, walk()) as interaction:
        first, twin = next(iter(interaction)), next(iter(interaction))
        first(1.0)
        with pytest.raises(xp.errors.InteractionClosed, match="taken already"):
            twin(1.0)
    assert next(book.entries()).state == "settled"


def test_two_iterators_over_one_run_share_its_samples() -> None:
    """Found: each iterator made a step of its own, and each of these drew a Poisson sample, for one charge."""
    sampled = walk(steps=[GaussianNoise(2, "0.25")] * 12, neighbours="add-remove")
    with opened(ledger(), sampled) as interaction:
        first, second = iter(interaction), iter(interaction)
        one, other = next(first), next(second)
        one.batch(1000)
        for twin in (other, copy.copy(one), copy.deepcopy(one), type(one)(interaction, 0)):
            with pytest.raises(InvalidValue, match="has its sample already"):
                twin.batch(1000)
        with pytest.raises(InteractionClosed, match="not next"):
            type(one)(interaction, 1).batch(1000)
        other(1.0)
        with pytest.raises(InteractionClosed, match="taken already"):
            one(1.0)
        assert (one.answered, other.answered) == (True, True)
        assert next(first).number == next(second).number == 2
    assert interaction.release.part == 4


def test_outputs_that_were_handed_out_cannot_be_made_writable() -> None:
    with opened(ledger(), walk()) as interaction:
        handed = next(iter(interaction))(np.zeros(3))
        was = handed.tolist()
        for array in (handed, interaction.transcript[0], handed.base):
            with pytest.raises(ValueError, match="cannot set WRITEABLE"):
                array.setflags(write=True)
        handed.shape = (3, 1)
        interaction.transcript[0].shape = (1, 3)
        assert interaction.transcript[0].shape == (3,)
        interaction.close()
        assert interaction.release.value[0].tolist() == was


def test_two_threads_take_one_step_once() -> None:
    """Found: the slower one failed while sampling, and the worst case was charged."""
    step = Fixed(xp.Guarantee.uniform(0.5), "out")
    entered, go = Event(), Event()
    told: list[bool] = []

    def slow() -> str:
        entered.set()
        go.wait(60)
        return "output"

    def late() -> None:
        with pytest.raises(InteractionClosed, match="was taken already"):
            first(slow)
        told.append(True)

    with ledger().open(xp.Iterative(steps=(step, step), stops=(1, 2), delta=1e-5)) as interaction:
        assert isinstance(interaction, IterativeInteraction)
        first = next(iter(interaction))
        threads = [Thread(target=first, args=(slow,)), Thread(target=late)]
        threads[0].start()
        entered.wait(60)
        threads[1].start()
        threads[1].join(0.2)  # it waits for its turn
        go.set()
        for thread in threads:
            thread.join()
    assert told == [True]
    assert (interaction.release.value, interaction.release.part) == (("output",), 1)


def test_a_step_that_is_none_is_not_shown() -> None:
    with pytest.raises(InvalidValue, match=r"or a mechanism, got a tuple$"):
        xp.Iterative(steps=((987654321,),), stops=(1,), delta=1e-5)  # type: ignore[arg-type]
