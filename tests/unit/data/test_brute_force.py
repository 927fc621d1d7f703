"""Every neighbour of many small tables, through the engine: no answer moves further than its question says.

A table is a random rest, which stays, and one more unit, whose rows are every multiset of up to three of the
possible rows. The rest alone and the rest with a unit are add-remove neighbours; the rest with one unit and the rest
with another are neighbours by substitution. Rows are written in random order, so nothing can hang on that.
"""

import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import Any

import duckdb
import numpy as np
import pytest

import expost as xp
from expost.data.sensitivity import Sensitivity
from soak import SOAK

pytestmark = pytest.mark.slow
ROWS = [("a", 3, 1.0), ("b", -2, None), ("c", 9, float("nan")), (None, 0, -7.5)]
"""What a row can say: a key, a whole number, a float."""
UNITS = [unit for size in (1, 2, 3) for unit in combinations_with_replacement(ROWS, size)]
TYPES = "person VARCHAR, city VARCHAR, n INTEGER, x DOUBLE"

Ask = Callable[[xp.PrivateTable], Any]
QUESTIONS: dict[str, Ask] = {
    "rows": lambda t: t.count(),
    "units": lambda t: t.count(of="units"),
    "some rows": lambda t: t.where("n >= 0").count(),
    "some units": lambda t: t.where("n >= 0").count(of="units"),
    "sum": lambda t: t.sum("n", bounds=(-2, 3)),
    "sum of positives": lambda t: t.sum("n + 3", bounds=(1, 6), missing=1),
    "sum of floats": lambda t: t.sum("x", bounds=(-1, 1), grid=0.5),
    "floats, missing": lambda t: t.sum("x", bounds=(-1, 1), missing=0.5, grid=0.5),
    "keys": lambda t: t.histogram("city", keys=["a", "b", "empty"]),
    "keys of units": lambda t: t.histogram("city", keys=["a", "b", "c"], of="units"),
    "stated only": lambda t: t.histogram("city", keys=["a", "b"], other=None),
    "one key": lambda t: t.histogram("city", keys=["a"], other=None),
    "bins": lambda t: t.histogram("n", bins=[-5, 0, 5]),
    "bins of units": lambda t: t.histogram("n", bins=2, bounds=(-5, 5), of="units"),
}


class Store:
    """One DuckDB table whose rows are exchanged."""

    def __init__(self, unit: Any) -> None:
        self.connection = duckdb.connect(config={"threads": 1})
        self.connection.execute(f"CREATE TABLE t ({TYPES})")
        self.table = xp.read(self.connection, table="t", unit=unit, neighbours="add-remove", key=7)

    def fill(self, rows: list[tuple[Any, ...]], chance: random.Random) -> None:
        chance.shuffle(rows)
        self.connection.execute("DELETE FROM t")
        if rows:
            values = ", ".join(["(?, ?, ?, ?)"] * len(rows))
            self.connection.execute(f"INSERT INTO t VALUES {values}", [field for row in rows for field in row])


def rests(chance: random.Random, tables: int) -> Iterator[list[tuple[Any, ...]]]:
    for _ in range(tables):
        people = [None, "p", "q", "r"][: chance.randrange(5)]
        yield [(person, *chance.choice(ROWS)) for person in people for _ in range(chance.randrange(1, 5))]


def moves(a: Any, b: Any) -> tuple[int, int, int]:
    apart = np.abs(np.atleast_1d(np.asarray(a)) - np.atleast_1d(np.asarray(b)))
    return int(apart.sum()), int((apart**2).sum()), int(apart.max())


def furthest(
    unit: Any, names: Collection[str] = QUESTIONS, tables: int = 5 if SOAK else 1
) -> dict[tuple[str, str], Sensitivity]:
    """For each question and relation the furthest move over all tables and neighbours."""
    store, chance = Store(unit), random.Random(1)
    own = unit == "row"
    candidates = [u for u in UNITS if not own or len(u) == 1]
    asked = {name: QUESTIONS[name](store.table) for name in names}
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for rest in rests(chance, tables):
        store.fill(rest, chance)
        alone = {name: question.exact() for name, question in asked.items()}
        answers: dict[str, set[tuple[int, ...]]] = {name: set() for name in asked}
        for i, unit_rows in enumerate(candidates):
            store.fill([*rest, *(("xy"[i % 2], *row) for row in unit_rows)], chance)
            for name, question in asked.items():
                answers[name].add(tuple(np.atleast_1d(np.asarray(question.exact())).tolist()))
        for name, each in answers.items():
            found.setdefault((name, "add-remove"), []).extend(moves(alone[name], answer) for answer in each)
            found.setdefault((name, "substitute"), []).extend(moves(a, b) for a in each for b in each)
    return {case: Sensitivity(*(max(column) for column in zip(*all_, strict=True))) for case, all_ in found.items()}


@pytest.mark.parametrize(
    "unit",
    ["row", xp.Unit("person", rows=1), xp.Unit("person", rows=2), xp.Unit("person", rows=2, groups=1)],
    ids=repr,
)
def test_no_neighbour_is_further_than_stated_and_some_are_as_far(unit: Any) -> None:
    store = Store(unit)
    for (name, relation), moved in furthest(unit).items():
        stated = QUESTIONS[name](replace(store.table, neighbours=relation)).sensitivity
        assert moved == stated, f"{name} under {relation}"


def test_without_truncation_it_would_be_noticed() -> None:
    names = ("rows", "some rows", "sum", "keys", "bins")
    loose = furthest(xp.Unit("person", rows=3), names)
    stated = Store(xp.Unit("person", rows=2)).table
    assert all(loose[name, "add-remove"].l1 > QUESTIONS[name](stated).sensitivity.l1 for name in names)
