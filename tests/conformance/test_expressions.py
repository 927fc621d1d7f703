"""The fuzzer of private tables: random expressions over hostile rows, against the reference and on all neighbours.

The plans are run as DuckDB sets itself up, all of its optimizers on: what is rendered must need no help from settings.
``EXPOST_CASES`` says how many cases are tried.
"""

import os
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import expost as xp
from expost.data.expression import evaluate, parse
from expost.data.expression.operators import TABLE
from expost.data.unit import as_unit
from fuzz_tables import Search, in_duckdb, judged, operators
from hostile_tables import (
    COLUMNS,
    KINDS,
    PLAIN,
    Most,
    Names,
    Row,
    Vector,
    expression,
    fill,
    names_of,
    neighbours,
    question,
    rows,
    same,
    stated_moves,
    too_far,
    unit_and_rows,
    vectors,
)

CASES = int(os.environ.get("EXPOST_CASES", "400"))
SLICES = 8
PER_TABLE = 16


class Fuzz:
    """Tables, questions to them, and what was found."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.connection = duckdb.connect(config={"threads": 1})
        self.asked = self.refused = self.moved = 0
        self.named(PLAIN)

    def named(self, names: Names) -> None:
        """A table whose columns have these names."""
        self.names = names
        fill(self.connection, [], names=names)
        self.reader = xp.read(self.connection, table="t", unit="row", neighbours="add-remove")
        engine: Any = self.reader.engine
        engine.check = lambda plan: plan  # which is run soon enough
        engine.fetch = lambda plan: self.connection.execute(plan).fetchall()

    def table(self, cases: int) -> None:
        """Some questions to one table and its neighbours."""
        unit, some = unit_and_rows(self.chance, min(self.chance.choices(range(1, 9), k=4)))
        self.named(names_of(self.chance))
        private = replace(self.reader, unit=as_unit(unit))
        questions = []
        for _ in range(cases):
            text, ask = question(self.chance, TABLE, self.names)
            try:
                asked = ask(private)
                _ = vectors(asked)
            except xp.InvalidValue:
                self.refused += 1
                continue
            questions.append((text, asked, ask(replace(private, neighbours="substitute"))))
        self.answers(some, questions)
        self.asked += len(questions)

    def answers(self, some: list[Row], questions: list[Any]) -> None:
        found: list[list[Any]] = [[] for _ in questions]
        for index, each in enumerate(neighbours(some)):
            fill(self.connection, each, names=self.names)
            for answers, (text, asked, _) in zip(found, questions, strict=True):
                answers.append(vectors(asked))
                if index == 0 and not text.startswith("by name "):
                    self.compare(text, each)
        for answers, (text, added, exchanged) in zip(found, questions, strict=True):
            whole, *less = answers
            self.moved += any(one != whole for one in less)
            for one in less:
                self.within(whole, one, stated_moves(added), text)
                for other in less:
                    self.within(one, other, stated_moves(exchanged), text)

    def within(self, one: list[Vector], other: list[Vector], most: list[Most], text: str) -> None:
        found = too_far(one, other, most)
        assert found is None, f"{text}: {found}"

    def compare(self, text: str, some: list[Row]) -> None:
        """Every row's value is the reference's."""
        tree = parse(text, self.reader.schema)
        found = self.connection.execute(f"SELECT {self.reader.engine.render(tree)} FROM t").fetchall()
        for row, (value,) in zip(some, found, strict=True):
            expected = evaluate(tree, {self.names[name]: value for name, value in row.values.items()})
            assert same(value, expected), f"{text}: {value!r} instead of {expected!r} for {row.written}"


@pytest.mark.parametrize("part", range(SLICES))
def test_no_expression_depends_on_other_rows(part: int) -> None:
    fuzz = Fuzz(1000 * CASES + part)
    while fuzz.asked + fuzz.refused < CASES // SLICES:
        fuzz.table(PER_TABLE)
    assert fuzz.asked > 0.6 * (fuzz.asked + fuzz.refused)
    assert fuzz.moved > 0


def of_database(connection: duckdb.DuckDBPyConnection, folder: Path) -> xp.PrivateTable:
    connection.execute(f"ATTACH '{folder}/t.duckdb' AS other; CREATE TABLE other.t AS FROM t; DETACH other")
    return xp.read(folder / "t.duckdb", table="t", unit="row", neighbours="add-remove")


def of_parquet(connection: duckdb.DuckDBPyConnection, folder: Path) -> xp.PrivateTable:
    whole = "SELECT * REPLACE (TRY_CAST(h AS BIGINT) AS h) FROM t"  # Parquet has no whole numbers of 128 bits
    connection.execute(f"COPY ({whole}) TO '{folder}/t.parquet' (FORMAT parquet)")
    return xp.read(folder / "t.parquet", unit="row", neighbours="add-remove")


def of_view(connection: duckdb.DuckDBPyConnection, folder: Path) -> xp.PrivateTable:
    connection.execute("CREATE VIEW v AS SELECT * FROM t")
    return xp.read(connection.sql("FROM v"), unit="row", neighbours="add-remove")


def of_temporary(connection: duckdb.DuckDBPyConnection, folder: Path) -> xp.PrivateTable:
    connection.execute("CREATE TEMP TABLE hidden AS SELECT * FROM t")
    return xp.read(connection, table="hidden", unit="row", neighbours="add-remove")


def of_relation(connection: duckdb.DuckDBPyConnection, folder: Path) -> xp.PrivateTable:
    return xp.read(connection.table("t"), unit="row", neighbours="add-remove")


def of_arrow(connection: duckdb.DuckDBPyConnection, folder: Path) -> xp.PrivateTable:
    return xp.read(_arrow(connection), unit="row", neighbours="add-remove")


def of_polars(connection: duckdb.DuckDBPyConnection, folder: Path) -> xp.PrivateTable:
    return xp.read(pl.from_arrow(_arrow(connection)), unit="row", neighbours="add-remove")


def of_pandas(connection: duckdb.DuckDBPyConnection, folder: Path) -> xp.PrivateTable:
    frame = _arrow(connection).to_pandas(types_mapper=pd.ArrowDtype)
    return xp.read(frame, unit="row", neighbours="add-remove")


def _arrow(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Arrow has no dates without an end: they are NULL, as they are for us."""
    finite = {"d": "DATE", "t": "TIMESTAMP", "e": "TIMESTAMP_S", "z": "TIMESTAMP WITH TIME ZONE"}
    kept = [f"CASE WHEN isfinite({name}) AND year({name}) < 280000 THEN {name} END AS {name}" for name in finite]
    whole = f"SELECT * REPLACE (TRY_CAST(h AS BIGINT) AS h, {', '.join(kept)}) FROM t"
    return connection.sql(whole).to_arrow_table()


INPUTS = [of_database, of_parquet, of_view, of_temporary, of_relation, of_arrow, of_polars, of_pandas]


@pytest.mark.parametrize("way", INPUTS, ids=lambda way: way.__name__)
def test_wherever_the_rows_are(way: Any, tmp_path: Path) -> None:
    """Every row's value is the reference's, through the engine as questions use it."""
    chance, connection = random.Random(5), duckdb.connect(config={"threads": 1})
    some = rows(chance, 12)
    fill(connection, some)
    table = way(connection, tmp_path)
    compared = 0
    while compared < 40:
        try:
            tree = parse(expression(chance, chance.choice(KINDS), 4, TABLE), table.schema)
        except xp.InvalidValue:  # a part without columns, which cannot be computed
            continue
        found = table.engine.fetch(f"SELECT {table.engine.render(tree)} FROM {table.engine.source}")
        for row, (value,) in zip(some, found, strict=True):
            assert same(value, evaluate(tree, row.values)), f"{tree}: {value!r} for {row.written}"
        compared += 1


def test_all_operators_are_asked_about() -> None:
    assert {op.gives for op in TABLE} == {kind for kind, _, _ in COLUMNS.values()}


@pytest.mark.parametrize("way", INPUTS, ids=lambda way: way.__name__)
def test_no_answer_moves_too_far_wherever_the_rows_are(way: Any, tmp_path: Path) -> None:
    """The neighbours of a few tables, each read anew."""
    chance = random.Random(CASES)
    asked = 0
    for number in range(max(CASES // 800, 1)):
        unit, some = unit_and_rows(chance, 3)
        questions = [question(chance, TABLE) for _ in range(PER_TABLE)]
        found: list[list[tuple[Any, Any]]] = [[] for _ in questions]
        for index, each in enumerate(neighbours(some)):
            folder = tmp_path / f"{number}-{index}"
            folder.mkdir()
            connection = duckdb.connect(config={"threads": 1})
            fill(connection, each)
            table = replace(way(connection, folder), unit=as_unit(unit), key=7)
            for answers, (_, ask) in zip(found, questions, strict=True):
                with suppress(xp.InvalidValue):
                    answers.append((vectors(ask(table)), stated_moves(ask(table))))
        for answers, (text, _) in zip(found, questions, strict=True):
            assert len(answers) in (0, index + 1), f"{text} is refused on some neighbours only"
            for one, most in answers[1:]:
                assert too_far(answers[0][0], one, most) is None, text
            asked += bool(answers)
    assert asked > 5


def test_what_the_search_in_any_version_looks_for() -> None:
    far, near = ([{0: 5}], [(1, 1, 1)]), ([{0: 4}], [(1, 1, 1)])
    kinds = [judged([("answered", far), *rest]) for rest in ([("answered", near)], [("failed", "Error")])]
    assert [found and found[0] for found in kinds] == [None, "a failure that depends on rows"]
    moved = judged([("answered", far), ("answered", ([{0: 2}], near[1]))])
    assert moved == ("an answer that moves too far", "moved by (3, 9, 3), stated (1, 1, 1)")
    assert judged([("failed", "Error")] * 2) == ("a failure on all neighbours", "Error")
    assert judged([("refused", None)] * 2) is None
    assert Search(1, operators(None), in_duckdb()).table() == []
