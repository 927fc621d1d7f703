"""What a study asks is a record, and a record is what a study asks: for every kind that asks a table."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost.errors import InvalidValue
from expost.questions import CountedCells, Mean, Median, Quantile, QuestionRecord, Sum
from expost.study.grammar import Key
from expost.study.kinds import KINDS, stated_as
from expost.study.kinds.kind import QuestionKind

OF_TABLES = {name: kind for name, kind in KINDS.items() if kind.record is not None}
_NUMBER = st.one_of(st.integers(-100, 100), st.floats(-1e6, 1e6))
_PAIR = st.lists(_NUMBER, min_size=2, max_size=2)
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(min_size=1), "number": _NUMBER, "numbers": st.lists(st.floats(0, 1), min_size=1),
    "whole": st.integers(1, 99), "texts": st.lists(st.text(min_size=1), min_size=2, max_size=2), "pair": _PAIR,
    "pairs": st.lists(_PAIR, min_size=2, max_size=2), "ranges": st.one_of(_PAIR, st.lists(_PAIR, min_size=1)),
    "keys": st.lists(st.one_of(st.text(), st.integers()), min_size=1), "above 0": st.floats(1e-3, 1e3),
    "bins": st.one_of(st.integers(1, 99), st.lists(_NUMBER, min_size=1)),
}  # fmt: skip


def a_value(key: Key) -> st.SearchStrategy[Any]:
    return (st.sampled_from(key.choices) if key.choices else _VALUES[key.type]).filter(lambda v: not key.wrong(v))


def keys_of(kind: QuestionKind) -> list[Key]:
    """Those of its record."""
    assert kind.record is not None
    return [key for key in kind.keys if (key.setting or key.name) in kind.record.names()]


def test_kinds_that_ask_tables_have_records() -> None:
    assert {name for name, kind in KINDS.items() if not kind.reads} == set(OF_TABLES)
    named = {kind.record.kind for kind in OF_TABLES.values() if kind.record is not None}
    assert named == set(OF_TABLES) - {"quantiles", "large"}  # two ways to ask for a quantile; and a second step


@pytest.mark.parametrize("name", OF_TABLES)
def test_the_example_of_a_kind_comes_back(name: str) -> None:
    kind = OF_TABLES[name]
    values = tomllib.loads(kind.example)
    record = kind.record_of(values)
    assert kind.stated(record) == {key.name: values[key.name] for key in keys_of(kind) if key.name in values}


@pytest.mark.parametrize("name", OF_TABLES)
@given(st.data())
def test_any_values_come_back(name: str, data: st.DataObject) -> None:
    kind = OF_TABLES[name]
    keys = [key for key in keys_of(kind) if key.required or data.draw(st.booleans())]
    record = kind.record_of({key.name: data.draw(a_value(key), key.name) for key in keys})
    stated = json.loads(json.dumps(kind.stated(record)))
    assert kind.record_of(stated) == record
    assert all(key.wrong(stated[key.name]) is None for key in keys if key.name in stated)
    found = json.loads(json.dumps(stated_as(record)))
    assert KINDS[found.pop("kind")].record_of(found) == record


def test_the_first_kind_that_has_words_is_asked() -> None:
    assert stated_as(Quantile("cost", 0.9)) == {"kind": "quantile", "column": "cost", "quantile": 0.9}
    assert stated_as(Quantile("cost", [0.5, 0.9])) == {"kind": "quantiles", "column": "cost", "quantiles": [0.5, 0.9]}
    assert stated_as(Quantile("cost")) == {"kind": "quantile", "column": "cost", "quantile": 0.5}
    assert stated_as(Median("cost")) == {"kind": "median", "column": "cost"}
    assert stated_as(CountedCells("city", ["a"], of="units")) == {
        "kind": "histogram", "column": "city", "keys": ["a"], "count": "units",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (Sum("cost", (0, 9), grid=0.5), "a sum with grid=0.5 has no words in a study"),
        (Mean("cost", (0, 9), missing="zero"), "a mean with missing='zero' has no words"),
        (Median("cost", interval=True), "a median with interval=True has no words"),
    ],
)
def test_what_has_no_words_is_named(record: QuestionRecord[Any], said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        stated_as(record)


def test_what_no_kind_is_has_none() -> None:
    class Other(Mean):
        kind = "guess"

    with pytest.raises(InvalidValue, match="no kind of question of a study, or of a service, is a guess"):
        stated_as(Other("cost", (0, 9)))
