"""A question's public identity: the same words, the same question about the same data; and never anything private."""

import copy
import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.data import PrivateTable
from expost.errors import InvalidValue
from expost.fingerprint import public_identity
from expost.question import Question

FRAME = pd.DataFrame(
    {
        "p": [i // 4 for i in range(400)],
        "cost": [float(i % 40) for i in range(400)],
        "days": [i % 7 for i in range(400)],
        "ward": ["A", "B"] * 200,
    }
)
BOUNDS: dict[str, Any] = {"bounds": (0, 40)}


def read(source: Any = None, **options: Any) -> PrivateTable:
    given = {"unit": xp.Unit("p", rows=4), "neighbours": "add-remove", "name": "visits", "version": "1"} | options
    return xp.read(FRAME if source is None else source, **given)


def _agg(table: Any) -> Any:
    groups = table.by("ward", keys=["A", "B"])
    return groups.agg(n=groups.count(), m=groups.mean("cost", **BOUNDS), q=groups.median("days", bounds=(0, 7)))


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "count": lambda t: t.count(),
    "units": lambda t: t.count(of="units"),
    "sum": lambda t: t.sum("cost", **BOUNDS),
    "sum of another": lambda t: t.sum("days", **BOUNDS),
    "sum of an expression": lambda t: t.sum("cost + days", **BOUNDS),
    "sum with other bounds": lambda t: t.sum("cost", bounds=(0, 41)),
    "sum with missing": lambda t: t.sum("cost", missing=0, **BOUNDS),
    "sum on a grid": lambda t: t.sum("cost", grid=0.25, **BOUNDS),
    "mean": lambda t: t.mean("cost", **BOUNDS),
    "mean without bounds": lambda t: t.mean("cost"),
    "variance": lambda t: t.variance("cost", **BOUNDS),
    "covariance": lambda t: t.covariance("cost", "days", bounds=[(0, 40), (0, 7)]),
    "median": lambda t: t.median("cost", **BOUNDS),
    "median with an interval": lambda t: t.median("cost", interval=True, **BOUNDS),
    "quantile": lambda t: t.quantile("cost", 0.9, **BOUNDS),
    "quantiles": lambda t: t.quantile("cost", [0.5, 0.9], **BOUNDS),
    "winsorized": lambda t: t.winsorized_mean("cost", trim=0.1, **BOUNDS),
    "lost": lambda t: t.lost("cost", **BOUNDS),
    "histogram": lambda t: t.histogram("ward", keys=["A", "B"]),
    "histogram of the same in another order": lambda t: t.histogram("ward", keys=["B", "A"]),
    "histogram without others": lambda t: t.histogram("ward", keys=["A", "B"], other=None),
    "bins": lambda t: t.histogram("days", bins=[0, 1, 2]),
    "equal bins": lambda t: t.histogram("days", bins=2, bounds=(0, 1)),
    "above": lambda t: t.histogram("ward", keys=["A", "B"]).above(10, at_most=1),
    "discover": lambda t: t.discover("ward"),
    "top": lambda t: t.discover("ward").top(2),
    "by group": lambda t: t.by("ward", keys=["A", "B"]).mean("cost", **BOUNDS),
    "by other groups": lambda t: t.by("ward", keys=["A", "C"]).mean("cost", **BOUNDS),
    "agg": _agg,
    "each group": lambda t: t.by("ward", keys=["A", "B"]).ask(lambda rows: rows.count()),
    "each group's units": lambda t: t.by("ward", keys=["A", "B"]).ask(lambda rows: rows.count(of="units")),
    "found groups": lambda t: t.by("ward").count(),
    "filter": lambda t: t.where("days > 3").count(),
    "other filter": lambda t: t.where("days > 4").count(),
    "two filters": lambda t: t.where("days > 3").where("cost > 1").count(),
    "two filters, the other first": lambda t: t.where("cost > 1").where("days > 3").count(),
    "derived": lambda t: t.derive(y="cost * 2").sum("y", **BOUNDS),
    "derived otherwise": lambda t: t.derive(y="cost * 3").sum("y", **BOUNDS),
    "derived from derived": lambda t: t.derive(x="cost", y="x * 2").sum("y", **BOUNDS),
    "derived from other derived": lambda t: t.derive(x="days", y="x * 2").sum("y", **BOUNDS),
    "looked up": lambda t: t.join({"ward": ["A"], "w": [1]}, on="ward").sum("w", **BOUNDS),
    "looked up another": lambda t: t.join({"ward": ["A"], "w": [2]}, on="ward").sum("w", **BOUNDS),
    "looked up a float": lambda t: t.join({"ward": ["A"], "w": [1.0]}, on="ward").sum("w", **BOUNDS),
    "looked up zero": lambda t: t.join({"ward": ["A"], "w": [0.0]}, on="ward").sum("w", **BOUNDS),
    "looked up negative zero": lambda t: t.join({"ward": ["A"], "w": [-0.0]}, on="ward").sum("w", **BOUNDS),
    "looked up by other keys": lambda t: t.join({"ward": ["B"], "w": [1]}, on="ward").sum("w", **BOUNDS),
    "matched": lambda t: t.join({"ward": ["A"], "w": [1]}, on="ward", keep="matched").sum("w", **BOUNDS),
}
TABLES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "another name": {"name": "wards"},
    "another version": {"version": "2"},
    "more rows of a unit": {"unit": xp.Unit("p", rows=5)},
    "fewer groups of a unit": {"unit": xp.Unit("p", rows=4, groups=2)},
    "another unit": {"unit": xp.Unit("days", rows=4)},
    "every row a unit": {"unit": "row"},
    "other neighbours": {"neighbours": "substitute"},
    "a number of units": {"neighbours": "substitute", "size": 100},
    "a chosen key": {"key": 1},
    "another chosen key": {"key": 2},
}


def test_no_two_questions_have_the_same_identity() -> None:
    table = read()
    found = {name: make(table).identity for name, make in QUESTIONS.items()}
    assert None not in found.values()
    assert len(set(found.values())) == len(found)


def test_no_two_tables_have_the_same_identity() -> None:
    found = {name: read(**options).count().identity for name, options in TABLES.items()}
    assert None not in found.values()
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_same_words_are_the_same_question(name: str) -> None:
    """The random key of a table is no part of them, nor is what the frame contains."""
    other = FRAME.assign(cost=FRAME.cost + 1)[:17]
    make = QUESTIONS[name]
    assert make(read()).identity == make(read()).identity == make(read(other)).identity


@pytest.mark.parametrize("name", QUESTIONS)
def test_without_a_version_there_is_none(name: str, tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "visits.csv", index=False)
    schema = {"p": "integer", "cost": "number", "days": "integer"}
    for table in (
        read(version=None),
        read(name=None, version=None),
        read(str(tmp_path / "visits.csv"), name=None, version=None, schema=schema),
    ):
        assert QUESTIONS[name](table).identity is None


def test_a_version_is_that_of_something_with_a_name(tmp_path: Path) -> None:
    connection = duckdb.connect(str(tmp_path / "a.duckdb"))
    connection.execute("CREATE TABLE visits AS SELECT 1 AS p")
    for source, options in ((FRAME, {}), (connection, {"table": "visits"}), (read().engine, {})):
        with pytest.raises(InvalidValue, match="pass name='visits', too"):
            read(source, name=None, **options)
        assert read(source, **options).count().identity is not None
        assert read(source, version=None, **options).name == "visits"


@pytest.mark.parametrize("wrong", ["", 1, b"1", "a\0", "\ud800"])
@pytest.mark.parametrize("what", ["name", "version"])
def test_names_and_versions_are_texts(what: str, wrong: Any) -> None:
    with pytest.raises(InvalidValue, match=f"a {what} is a text"):
        read(**{what: wrong})


def test_a_path_says_which_file_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        FRAME.to_parquet(tmp_path / folder / "visits.parquet")
    found = []
    for folder in ("a", "b"):
        monkeypatch.chdir(tmp_path / folder)
        relative, absolute = read("visits.parquet", name=None), read(Path.cwd() / "visits.parquet", name=None)
        assert relative.count().identity == absolute.count().identity
        found.append(relative.count().identity)
    assert found[0] != found[1]
    named = {read(tmp_path / folder / "visits.parquet").count().identity for folder in ("a", "b")}
    assert len(named) == 1
    listed = read([tmp_path / "a" / "visits.parquet", tmp_path / "b" / "visits.parquet"], name=None)
    whole = read(tmp_path / "a", name=None)
    assert len({*found, listed.count().identity, whole.count().identity}) == 4


def test_contents_size_and_time_of_a_file_are_nothing_to_it(tmp_path: Path) -> None:
    path = tmp_path / "visits.parquet"
    FRAME.to_parquet(path)
    before = read(path, name=None).sum("cost", **BOUNDS).identity
    FRAME[:3].assign(cost=7.5).to_parquet(path)
    assert read(path, name=None).sum("cost", **BOUNDS).identity == before


def test_how_a_file_is_read_belongs_to_it(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("p,cost\n1,2\n")
    forms: list[dict[str, Any]] = [
        {},
        {"schema": {"p": "integer"}},
        {"schema": {"p": "integer", "cost": "number"}},
        {"schema": {"p": "integer", "cost": "integer"}},
        {"encoding": "latin-1"},
        {"quote": "'"},
        {"quote": ""},
        {"delimiter": ","},
    ]
    found = [read(path, name=None, unit=xp.Unit("p", rows=1), **form).count().identity for form in forms]
    assert len(set(found)) == len(forms)


def test_folders_and_what_they_are_named_after(tmp_path: Path) -> None:
    for year in (1, 2):
        (tmp_path / f"year={year}").mkdir()
        FRAME.to_parquet(tmp_path / f"year={year}" / "visits.parquet")
    found = {
        read(tmp_path, name=None, partitions=columns).count().identity
        for columns in (None, {"year": "integer"}, {"year": "text"})
    }
    assert len(found) == 3


# ---- every field


def _changed(value: Any) -> Any:
    """Something else of that type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, int | float | Fraction):
        return value + 1
    if value is None:
        return "something"
    assert isinstance(value, tuple), f"how does one change a {type(value)}?"
    return (*value, "something")


def _with(record: Any, name: str, value: Any) -> Any:
    """The record with another value, whatever its own checks would say."""
    other = copy.copy(record)
    for computed in [each for each in vars(other) if each not in {field.name for field in dataclasses.fields(other)}]:
        del vars(other)[computed]
    object.__setattr__(other, name, value)
    return other


def _variants(record: Any, where: str) -> Iterator[tuple[str, Any]]:
    """The record with one field of it, or of what it holds, changed; and which."""
    for field in dataclasses.fields(record):
        if (
            not field.compare
            or field.metadata.get("data")
            or (isinstance(record, PrivateTable) and field.name == "name")
        ):
            continue
        value, place = getattr(record, field.name), f"{where}.{field.name}"
        for inner, changed in _inside(value, place):
            yield inner, _with(record, field.name, changed)
    if isinstance(record, PrivateTable):
        yield f"{where}.place", _with(record, "place", _changed(record.place))


def _inside(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if dataclasses.is_dataclass(value):
        yield from _variants(value, place)
        return
    if isinstance(value, tuple):
        for number, item in enumerate(value):
            for inner, changed in _inside(item, f"{place}[{number}]"):
                yield inner, (*value[:number], changed, *value[number + 1 :])
        if hasattr(value, "_fields"):
            return
    if not isinstance(value, np.ndarray | dict):
        yield place, _changed(value)


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_field_belongs_to_it(name: str) -> None:
    """Of the question, its table, its unit, its columns, its steps, and what all of them hold."""
    question = QUESTIONS[name](read().where("p > 0").derive(z="cost / 2"))
    found = {"as it is": question.identity}
    for place, changed in _variants(question, "question"):
        found[place] = changed.identity
    assert len(found) > 10
    same = {place for place, identity in found.items() if list(found.values()).count(identity) > 1}
    assert not same, "these have one identity"


@given(st.text(), st.text(), st.text(), st.text())
def test_names_and_versions_are_kept_apart(name: str, version: str, other: str, another: str) -> None:
    """No two pairs of texts run together into one."""
    table = read()

    def called(what: str, which: str) -> str | None:
        changed = dataclasses.replace(table, place=what, version=which)
        found: str | None = changed.count().identity
        return found

    assert (called(name, version) == called(other, another)) == ((name, version) == (other, another))


# ---- what has none


@dataclasses.dataclass(frozen=True)
class Own(Question[int]):
    table: PrivateTable

    def _mechanism(self, terms: Any) -> Any:
        return self.table.count()._mechanism(terms)


@dataclasses.dataclass(frozen=True)
class WithFunction:
    table: PrivateTable
    function: Any


WithFunction.__module__ = "expost.data.table"


def test_what_other_peoples_code_means_is_not_known() -> None:
    """The name of a class or a function stays the same when its code changes."""
    assert Own(read()).identity is None
    assert public_identity(Own(read())) is None
    for function in (len, str, np.sin, read, lambda: 0):
        assert public_identity(WithFunction(read(), function)) is None


def test_data_without_words_is_no_data_with_some() -> None:
    """Not even beside a table that has an identity."""
    unnamed = read(version=None).count()
    both = read().by("ward", keys=["A", "B"]).ask(lambda rows: rows.count())
    mixed = dataclasses.replace(both, questions=(both.questions[0], unnamed))
    assert both.identity is not None
    assert mixed.identity is None
    assert public_identity(xp.Laplace(epsilon=1, sensitivity=1)) is None  # about no data at all


def test_it_is_the_same_in_every_process() -> None:
    program = (
        "import pandas as pd, expost as xp\n"
        "t = xp.read(pd.DataFrame({'p': [1], 'cost': [2.0]}), unit=xp.Unit('p', rows=4), neighbours='add-remove',"
        " name='visits', version='1')\n"
        "print(t.where('p > 0').sum('cost', bounds=(0, 40)).identity)"
    )
    here = read(pd.DataFrame({"p": [1], "cost": [2.0]})).where("p > 0").sum("cost", **BOUNDS).identity
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        assert told.stdout.strip() == here
