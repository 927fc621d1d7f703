"""Counts of values that were discovered: they had to reach a threshold with their noise, and their errors say so."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import expost as xp
from expost.data import PrivateTable
from expost.data.discovery import Discovery
from expost.study.kinds import KINDS
from expost.study.kinds.kind import Answer, Asked
from expost.study.model import Amount, Question

VALUES, UNITS = 2_000, 9  # of each value: too few for most of them, and noise lifts some above the threshold
DELTA = Fraction(1, 10**6)


def answer(table: PrivateTable, mechanism: Any, output: dict[Any, int]) -> Answer:
    question = Question("found", "discover", "found", Amount("fixed", Fraction(1)), DELTA, {"column": "city"})
    asked = Asked(question, table, float(mechanism.epsilon), DELTA, 0)
    return KINDS["discover"].answer(asked, mechanism, output)


def errors(told: Answer) -> list[float]:
    """How far off the text says each count is at most."""
    assert isinstance(told.value, dict)
    if told.error is not None:
        return [told.error] * len(told.value)
    return [float(each.replace(",", "")) for each in re.findall(r" ± ([\d,.]+)", told.text)]


@pytest.fixture(scope="module")
def table() -> PrivateTable:
    return xp.read(pd.DataFrame({"city": ["a"] * 500 + ["b"] * 400}), unit="row", neighbours="add-remove")


def test_errors_of_discovered_counts_hold(table: PrivateTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of counts that are only there because their noise is large, the text may not say that it is small."""
    mechanism, noise = table.discover("city").mechanism(epsilon=1, delta=1e-6), xp.SeededNoise(3)
    monkeypatch.setattr(Discovery, "exact", lambda self: [(f"v{place:04}", UNITS) for place in range(VALUES)])
    missed = shown = 0
    for _ in range(200):
        told = answer(table, mechanism, mechanism.sample(None, noise))
        said = errors(told)
        assert len(said) == len(told.value)
        shown += len(said)
        missed += sum(abs(count - UNITS) > error for count, error in zip(told.value.values(), said, strict=True))
    assert shown > 200
    assert missed <= 0.1 * shown


def test_a_run_says_the_errors_of_its_rows(table: PrivateTable, tmp_path: Path) -> None:
    """In words as in frames: the same for all where all counts are far above the threshold."""
    found = xp.Ledger(epsilon=9, delta=1e-3, noise=xp.SeededNoise(1)).run(table.discover("city"), epsilon=1, delta=1e-6)
    told = answer(table, found.mechanism, found.output)
    assert errors(told) == found.frame["error"]
    assert told.text.endswith("; each ± 3 at 95 %")
    mechanism: Any = found.mechanism
    low = {"a": 500, "b": mechanism.threshold}
    near = answer(table, found.mechanism, low)
    assert errors(near) == [one.error for one in found.mechanism.answer_of(low, None).values()]
    assert near.text == f"a: 500 ± 3; b: {low['b']} ± {low['b'] - 1}; each at 95 %"
    assert near.beside == "each at 95 %"
