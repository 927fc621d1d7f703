"""Records of questions: a table makes the same question of them as of its methods, and they are what they write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
import expost.questions as q
from expost.questions import QuestionRecord

PAIR = ((0, 40), (0, 9))
ASKED: dict[str, tuple[QuestionRecord[Any], Callable[[Any], Any]]] = {
    "count": (q.Count("units"), lambda t: t.count(of="units")),
    "sum": (q.Sum("x", (0, 40), grid=0.25), lambda t: t.sum("x", bounds=(0, 40), grid=0.25)),
    "mean": (q.Mean("x", (0, 40), missing=1), lambda t: t.mean("x", bounds=(0, 40), missing=1)),
    "searched": (q.Mean("x"), lambda t: t.mean("x")),
    "share": (q.Share("x > 1", missing=True), lambda t: t.share("x > 1", missing=True)),
    "ratio": (q.Ratio(("x", "y"), PAIR), lambda t: t.ratio("x", "y", bounds=PAIR)),
    "variance": (q.Variance("x", (0, 40)), lambda t: t.variance("x", bounds=(0, 40))),
    "covariance": (q.Covariance(("x", "y"), PAIR), lambda t: t.covariance("x", "y", bounds=PAIR)),
    "correlation": (q.Correlation(("x", "y")), lambda t: t.correlation("x", "y")),
    "regression": (
        q.LinearRegression(("x",), "y", (0, 40), (0, 9)),
        lambda t: t.regression(["x"], "y", bounds=(0, 40), target_bounds=(0, 9)),
    ),
    "median": (q.Median("x", (0, 40)), lambda t: t.median("x", bounds=(0, 40))),
    "quantile": (q.Quantile("x", 0.9, interval=True), lambda t: t.quantile("x", 0.9, interval=True)),
    "quartiles": (q.Quartiles("x", (0, 40)), lambda t: t.quantile("x", (0.25, 0.75), bounds=(0, 40))),
    "keys": (q.CountedCells("c", keys=["a", "b"], of="units"), lambda t: t.histogram("c", keys=["a", "b"], of="units")),
    "bins": (q.CountedCells("x", bins=4, bounds=(0, 40)), lambda t: t.histogram("x", bins=4, bounds=(0, 40))),
    "edges": (q.CountedCells("x", bins=[0.0, 20, 40]), lambda t: t.histogram("x", bins=np.linspace(0, 40, 3))),
    "above": (
        q.LargeCells("c", ["a", "b"], threshold=5, at_most=1),
        lambda t: t.histogram("c", keys=["a", "b"], other=None).above(5, at_most=1),
    ),
    "discover": (q.Discover("c", "rows"), lambda t: t.discover("c", of="rows")),
    "top": (q.Top("c", 3, without=["a"]), lambda t: t.discover("c").top(3, without=("a",))),
    "lost": (q.LostValues("x", (5, 30)), lambda t: t.lost("x", bounds=(5, 30))),
    "winsorized_mean": (q.ClampedMean("x", 0.1), lambda t: t.winsorized_mean("x", trim=0.1)),
}


@pytest.fixture(scope="module")
def table() -> xp.PrivateTable:
    frame = pd.DataFrame({"c": ["a", "b"] * 20, "x": np.arange(40.0), "y": np.arange(40.0) / 5})
    return xp.read(frame, unit="row", neighbours="add-remove", key=1)


def test_every_record_is_here() -> None:
    exported = {each for each in vars(q).values() if isinstance(each, type) and issubclass(each, QuestionRecord)}
    assert exported - {q.QuestionRecord, q.Statistic} == {type(record) for record, _ in ASKED.values()}


@pytest.mark.parametrize("name", ASKED)
def test_a_table_is_asked_a_record_as_by_its_method(table: xp.PrivateTable, name: str) -> None:
    record, ask = ASKED[name]
    question = ask(table)
    assert table.asked(record) == question
    assert question.record is not None
    assert table.asked(question.record) == question
    delta = 1e-6 if name in ("discover", "top") else 0
    assert table.asked(question.mechanism(epsilon=1, delta=delta).record) == question


@pytest.mark.parametrize("name", ASKED)
def test_a_record_is_what_it_writes(name: str) -> None:
    record, _ = ASKED[name]
    written = json.loads(json.dumps(record.settings()))
    assert type(record).from_settings(written) == record
    with pytest.raises(xp.InvalidValue, match="has no setting 'colour'"):
        type(record).from_settings({**written, "colour": "red"})


_ENDS = st.tuples(st.integers(-9, 0), st.floats(1, 1e9))
_SETTINGS = {
    "column": st.sampled_from(["x", "x / 2"]), "bounds": _ENDS, "missing": st.sampled_from(["drop", 0, 1]),
    "of": st.sampled_from(["rows", "units"]), "keys": st.lists(st.text(), min_size=1), "trim": st.floats(0.01, 0.4),
    "bins": st.one_of(st.integers(1, 9), st.lists(st.floats(0, 9), min_size=2)), "interval": st.booleans(),
    "other": st.one_of(st.none(), st.text()), "threshold": st.integers(), "at_most": st.integers(1, 9),
    "quantile": st.one_of(st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1)), "without": st.lists(st.text()),
    "grid": st.sampled_from([0.25, 1, 2]), "features": st.lists(st.sampled_from("xy"), min_size=1),
    "target": st.just("y"), "target_bounds": _ENDS, "columns": st.just(("x", "y")), "condition": st.just("x > 1"),
}  # fmt: skip


@given(st.data())
def test_any_settings_come_back(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([type(record) for record, _ in ASKED.values()]))
    names = data.draw(st.sets(st.sampled_from(kind.names())))
    record = kind.from_settings({name: data.draw(_SETTINGS[name], name) for name in sorted(names)})
    written = json.loads(json.dumps(record.settings()))
    assert kind.from_settings(written) == record
    assert kind.from_settings(written).settings() == written


def test_what_no_one_record_says_has_none(table: xp.PrivateTable) -> None:
    bins = table.histogram("x", bins=[0, 20, 40])
    assert bins.only(["[0, 20)"]).record is None
    groups = table.by("c", keys=["a", "b"])
    assert groups.agg(n=q.Count(), m=q.Mean("x", (0, 40))).record is None
    with pytest.raises(xp.InvalidValue, match="ask about each group by itself"):
        groups.asked(q.CountedCells("x", bins=[0, 20]))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (q.LargeCells("c", ["a"]), "pass threshold and at_most"),
        (q.Top("c"), "pass at_most"),
        (q.LostValues("x"), "pass bounds"),
        (q.Share(), "of which rows is the share"),
        (q.ClampedMean("x"), "pass trim"),
        (q.CountedCells(keys=["a"]), "of which column is the histogram"),
    ],
)
def test_what_is_missing_is_named(table: xp.PrivateTable, record: QuestionRecord[Any], said: str) -> None:
    with pytest.raises(xp.InvalidValue, match=said):
        table.asked(record)
