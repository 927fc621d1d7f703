"""Every question to a table says whose privacy it is about, and so does what is made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

import expost as xp
from every_question import EVERY
from expost import Guarantee, Ledger
from expost.adapters import private
from expost.checks import common_unit
from expost.data.questions import TableMechanism
from expost.errors import InvalidStudy
from expost.learn import PrivateLinearRegression, private_score
from expost.mechanism import Mechanism, private_data
from expost.mechanisms.linear.tested_logistic import ErrorTest
from expost.mechanisms.numbers import owned
from expost.study import plan_study, read_study
from studies import COUNT, write_study

FRAME = pd.DataFrame({"person": [1, 1, 2], "city": list("aab"), "n": [1, 2, 3], "x": [0.5, 1.0, 1.5]})


def below(kind: Any) -> Iterator[Any]:
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


def test_no_question_makes_its_guarantee_elsewhere() -> None:
    """The type checker says so, too: the property is final."""
    kinds = set(below(TableMechanism))
    assert len(kinds) > 12
    assert {kind for kind in kinds if kind.guarantee is not TableMechanism.guarantee} == set()
    others = [kind for kind in below(Mechanism) if kind.__module__.startswith("expost.data.")]
    assert {kind for kind in others if not issubclass(kind, TableMechanism)} == set()


@pytest.mark.parametrize("asked", EVERY)
@pytest.mark.parametrize("neighbours", ["add-remove", "substitute"])
def test_every_question_has_the_unit_of_its_table(asked: str, neighbours: Any) -> None:
    table = xp.read(FRAME, unit=xp.Unit("person", rows=2, name="guest"), neighbours=neighbours)
    rows = xp.read(FRAME, unit="row", neighbours=neighbours)
    assert EVERY[asked](table.where("n > 0")).guarantee.unit == "guest (column person)"
    assert EVERY[asked](rows.where("n > 0")).guarantee.unit == "row"


def test_columns_of_a_question_have_it_too() -> None:
    table = xp.read(FRAME, unit="row", neighbours="substitute")
    mechanism = table.variance("x", bounds=(0, 2), missing=0).mechanism(epsilon=1)
    assert type(mechanism).__name__ == "OnColumns"
    assert mechanism.guarantee.unit == "row"


def test_the_name_of_a_unit_changes_nothing_that_is_computed() -> None:
    plain, named = (
        xp.read(FRAME, unit=xp.Unit("person", rows=2, name=name), neighbours="add-remove", key=1)
        .count()
        .mechanism(epsilon=1)
        for name in (None, "guest")
    )
    assert plain.fingerprint == named.fingerprint
    ledger = Ledger(epsilon=3, unit="person")
    ledger.run(plain, key="k")
    assert ledger.unit == "person"


def test_what_holds_mechanisms_has_their_unit() -> None:
    rows = private(Guarantee.uniform(1, neighbours="add-remove", unit="row"))(lambda data, noise: 0)
    people = private(Guarantee.uniform(1, neighbours="add-remove", unit="person"))(lambda data, noise: 0)
    free = private(Guarantee.uniform(1, neighbours="add-remove"))(lambda data, noise: 0)
    assert xp.mechanisms.ByGroup(mechanism=rows, groups=("a", "b"), split="value").guarantee.unit == "row"
    kept = {"stops": [2], "delta": 1e-6, "neighbours": "add-remove"}
    assert xp.Iterative(steps=[free, rows], **kept).guarantee.unit == "row"
    assert xp.Iterative(steps=[free, free], **kept).guarantee.unit is None
    assert xp.Iterative(steps=[free, rows], epsilons=[3], **kept).guarantee.unit == "row"
    with pytest.raises(xp.errors.UnitMismatch):
        xp.Iterative(steps=[people, rows], **kept)
    fixed = [private(Guarantee.uniform(1, unit=unit))(lambda data, noise: 0) for unit in ("row", None, "person")]
    assert xp.Tuning(candidates=fixed[:2], score=xp.mechanisms.CorrectPredictions()).guarantee.unit == "row"
    with pytest.raises(xp.errors.UnitMismatch):
        xp.Tuning(candidates=fixed, score=xp.mechanisms.CorrectPredictions())
    test = ErrorTest(epsilon=1, threshold=1, classes=2, distance=Fraction(1, 10**6), columns=1)
    assert xp.mechanisms.Tested(mechanism=fixed[0], test=test).guarantee.unit == "row"


def test_lemmas_keep_the_unit() -> None:
    one = Guarantee({"a": 1, "b": 0.5}, neighbours="add-remove", unit="person")
    made = [
        one.post_process({"a": "c", "b": "c"}), one.group(3), one.under("substitute"),
        Guarantee.from_json(one.to_json()),
        Guarantee.parallel([one, Guarantee({"a": 1}, neighbours="add-remove")], split="record"),
    ]  # fmt: skip
    assert [each.unit for each in made] == ["person"] * 5
    assert repr(one).endswith("unit='person')")
    assert one != Guarantee({"a": 1, "b": 0.5}, neighbours="add-remove")
    assert "unit" not in Guarantee.uniform(1).to_json()
    with pytest.raises(xp.errors.UnitMismatch):
        Guarantee.parallel([one, Guarantee({"a": 1}, neighbours="add-remove", unit="row")], split="record")
    with pytest.raises(xp.errors.UnitMismatch):
        one.of_unit("row")
    for wrong in ("", 7):
        with pytest.raises(xp.InvalidValue, match="a unit is named by a text"):
            Guarantee.uniform(1, unit=wrong)  # type: ignore[arg-type]


def test_what_data_says_is_found_and_private_values_are_not_looked_into() -> None:
    column = xp.read(FRAME, unit="row", neighbours="substitute").column("n")
    assert [*private_data([{"a": (column,)}, column])] == [column, column]
    assert [*private_data(FRAME)] == [*private_data(np.ones(3))] == [*private_data([1.0] * 1000)] == []
    round_and_round: list[Any] = [column]
    round_and_round.append(round_and_round)
    assert set(map(id, private_data(round_and_round))) == {id(column)}


def test_models_and_recipes_pass_on_whose_columns_they_are_given() -> None:
    table = xp.read(FRAME, unit="row", neighbours="substitute")
    people, rows = (Ledger(epsilon=9, delta=1e-6, neighbours="substitute", unit=unit) for unit in ("person", "row"))
    features, target = table.column("n", "x"), table.column("n")
    bounds: dict[str, Any] = {"bounds": [(0, 3), (0, 2)], "target_bounds": (0, 3)}

    def fit(ledger: Ledger) -> Any:
        return PrivateLinearRegression(epsilon=1, **bounds, ledger=ledger).fit(features, target).release_

    def score(ledger: Ledger) -> Any:
        ones = DummyClassifier(strategy="constant", constant=1).fit([[0]], [1])
        return private_score(ledger, ones, features, np.ones(3), epsilon=1).releases[0]

    def large(ledger: Ledger) -> Any:
        found = xp.recipes.release_large(ledger, target, threshold=1e6, at_most=1, sensitivity=1, epsilon=1)
        return found.releases[0]

    for work in (fit, score, large):
        with pytest.raises(xp.errors.UnitMismatch):
            work(people)
        assert work(rows).entry.unit == "row"
    assert list(people.entries()) == []


UNITS = ["person", "persons", "person (column person)", "visitor", "visitor (one row each)", "row", "household"]
STUDIES = {
    'unit = "row"\n': "row",
    'unit = "row"\nwho = "visitor"\n': "visitor (one row each)",
    'unit = "person"\nrows = 2\n': xp.Unit("person", rows=2),
    'unit = "person"\nrows = 2\nwho = "visitor"\n': xp.Unit("person", rows=2, name="visitor"),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("stated", STUDIES)
def test_a_study_and_python_agree(unit: str, stated: str, tmp_path: Path) -> None:
    ledger = Ledger.create(f"sqlite:///{tmp_path}/books.db", "people", 4, 1e-5, neighbours="substitute", unit=unit)
    path = write_study(tmp_path, COUNT)
    path.write_text(path.read_text().replace('unit = "row"\nwho = "visitor"\n', stated, 1))
    question = (
        xp.read(FRAME, unit=STUDIES[stated], neighbours="substitute").where("n > 1").count().mechanism(epsilon=0.5)
    )
    try:
        ledger.quote([question])
    except xp.errors.UnitMismatch:
        with pytest.raises(InvalidStudy, match="unit: ledger"):
            plan_study(read_study(path))
    else:
        assert plan_study(read_study(path)).fits


class _Pair(NamedTuple):
    first: Any
    second: int


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda column: xp.mechanisms.Tally(column, np.ones(4)),
        lambda column: _Pair(column, 3),
        lambda column: [MappingProxyType({1: column})],
        lambda column: {"x": column}.values(),
        lambda column: [[[[[column]]]]],
        lambda column: np.array([column, None], object),
        lambda column: owned(np.asarray(column), column)[1:],
        lambda column: owned(np.asarray(column), column) * 2,
        lambda column: column.table,
        lambda column: column.table.count(),
    ],
    ids=["tally", "named tuple", "proxy", "view", "nested", "objects", "slice", "product", "table", "question"],
)
def test_whatever_holds_a_column_says_whose_it_is(wrapped: Callable[[Any], Any]) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]})
    column = xp.read(frame, unit="row", neighbours="substitute").column("x")
    found = {(each.unit_name, each.relation) for each in private_data(wrapped(column))}
    assert found == {("row", "substitute")}


def test_the_most_general_name_of_several_units_is_kept() -> None:
    said = "visit (one row each)"
    assert common_unit([said, None, "row"]) == common_unit(["row", said]) == "row"
    assert common_unit([said, said]) == said
