"""The auditor refutes a zoo of wrong mechanisms, spares right ones, and finds nothing against the library's own."""

from __future__ import annotations

from typing import Any

import pytest

from expost import Cost, Guarantee, Ledger
from expost.mechanisms import Coin, SparseVector
from expost.verify.audit import audit, catalogue, scripts
from soak import SOAK
from zoo import RIGHT, WRONG, Animal

SAMPLES = 20_000
FEW = ("Laplace", "Coin", "SparseVector", "Exponential", "TopK", "NoiseReduction", "StableMedian")


@pytest.mark.parametrize("animal", WRONG, ids=lambda animal: animal.name)
def test_wrong_mechanisms_are_refuted(animal: Animal) -> None:
    found = audit(animal, [animal.pair], guarantee=animal.guarantee, samples=SAMPLES, many=True, **animal.rest)
    assert found.refuted


@pytest.mark.parametrize("animal", RIGHT, ids=lambda animal: animal.name)
def test_right_mechanisms_are_not(animal: Animal) -> None:
    """Of few samples, too: a bound that is too narrow is so at any number."""
    samples = SAMPLES if SOAK else 5_000
    found = audit(animal, [animal.pair], guarantee=animal.guarantee, samples=samples, many=True, **animal.rest)
    assert not found.refuted


def test_right_mechanisms_are_refuted_at_most_as_often_as_stated() -> None:
    """At a confidence of one half, of which some is lost to the many bounds."""
    animal = next(one for one in RIGHT if one.name == "randomized response")
    refuted = [
        audit(
            animal, [animal.pair], guarantee=animal.guarantee, samples=2000, many=True, confidence=0.5, seed=seed
        ).refuted
        for seed in range(40)
    ]  # fmt: skip
    assert sum(refuted) <= 27  # 40 tosses of a coin: more only once in a hundred


@pytest.mark.parametrize("name", catalogue.names() if SOAK else FEW)
def test_nothing_is_found_against_our_own(name: str) -> None:
    mechanism, pairs = catalogue.subject(name)
    assert not audit(mechanism, pairs if SOAK else pairs[:1], samples=SAMPLES if SOAK else 2_000).refuted


def spend_all(ledger: Ledger, data: int) -> tuple[Any, ...]:
    """Ask until nothing remains, at most three times."""
    view: list[Any] = []
    while ledger.remaining.epsilon >= 1 and len(view) < 3:
        view.append(ledger.run(Coin(epsilon=1, sensitivity=1), data).value)
    return tuple(view)


@pytest.mark.parametrize("accounting", [{}, {"accounting": "renyi"}] if SOAK else [{}])
def test_a_whole_ledger_is_audited_as_one_mechanism(accounting: dict[str, Any]) -> None:
    run, delta = scripts.played(Cost(1, "0.01"), spend_all, **accounting), "0.01"
    assert not audit(run, [(0, 1)], guarantee=Guarantee.uniform(1, delta), samples=2000).refuted
    assert audit(run, [(0, 1)], guarantee=Guarantee.uniform("0.3", delta), samples=2000).refuted


def test_an_interaction_is_audited_through_a_script() -> None:
    sparse = SparseVector(threshold=0, at_most=1, epsilon=4, sensitivity=1)

    def script(interaction: Any) -> None:
        while not interaction.closed and len(interaction.transcript) < 4:
            interaction(lambda data: data)

    run = scripts.asked(sparse, script)
    found = audit(run, [(0, 1)], guarantee=sparse.guarantee, part_of=sparse.part_of, samples=2000)
    assert not found.refuted
    cheap = Guarantee({part: sparse.guarantee.cost_of(part).exact_epsilon / 8 for part in sparse.guarantee.parts})
    assert audit(run, [(0, 1)], guarantee=cheap, part_of=sparse.part_of, samples=2000).refuted
