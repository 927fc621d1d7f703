"""Spark against the reference, row by row on hostile rows; against DuckDB, question by question.

``EXPOST_CASES`` says how many expressions are compared; ``make soak`` compares many.
"""

import os
import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import expost as xp
from expost.data.expression import evaluate, operators, parse
from expost.data.expression.operators import TABLE
from expost.data.spark import rendering
from expost.errors import EngineFailed, InvalidValue
from fuzz_tables import Search
from hostile_tables import KINDS, expression, rows, same
from soak import some
from spark import WHY_NOT, in_spark, of_file, session, write_parquet

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
CASES = int(os.environ.get("EXPOST_CASES", "75"))
TOGETHER = 25


def test_every_operator_has_a_rendering() -> None:
    assert {(each.name, each.takes) for each in TABLE} == set(rendering.SPARK_OPERATORS)
    assert set(operators.CASTS) == set(rendering.SPARK_CASTS)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[xp.PrivateTable, list[Any]]:
    path, hostile_rows = tmp_path_factory.mktemp("spark") / "t.parquet", rows(random.Random(5), 25)
    write_parquet(hostile_rows, path)
    return xp.read(of_file(path), unit="row", neighbours="add-remove"), hostile_rows


def test_every_row_has_the_value_of_the_reference(hostile: tuple[xp.PrivateTable, list[Any]]) -> None:
    """All rows, in the order of the file: it is one, and small."""
    table, found_rows = hostile
    chance, compared, refused = random.Random(11), 0, 0
    while compared < CASES:
        trees: list[Any] = []
        while len(trees) < TOGETHER:
            text = expression(chance, chance.choice(KINDS), chance.choice((1, 2, 2, 3)), TABLE)
            try:
                tree = parse(text, table.schema)
                trees.append((text, tree, table.engine.render(tree)))
            except InvalidValue:
                refused += 1
        asked = ", ".join(f"{sql} AS y{i}" for i, (_, _, sql) in enumerate(trees))
        found = table.engine.fetch(f"SELECT {asked} FROM {table.engine.source}")
        assert len(found) == len(found_rows)
        for row, values in zip(found_rows, found, strict=True):
            for value, (text, tree, _) in zip(values, trees, strict=True):
                expected = evaluate(tree, row.values)
                assert same(value, expected), f"{text}: {value!r} instead of {expected!r} for {row.written}"
        compared += len(trees)
    assert refused < compared


def test_no_answer_moves_too_far_and_none_fails(tmp_path: Path) -> None:
    """Random questions to a few hostile tables and to all of their neighbours."""
    search = Search(3, list(TABLE), in_spark(tmp_path))
    assert [line for _ in range(max(CASES // 75, 1)) for line in search.table(5)] == []
    assert search.asked > 2


# ---- questions

Q = xp.Unit("person", rows=2, groups=1)
ROWS = [
    ("p", "a", 2**63 - 1, float("nan")), ("p", "a", -(2**63), float("inf")), ("q", "b", 0, float("-inf")),
    ("q", None, None, None), ("r", "it's; \\n ${x} `--", 1, -0.0), ("r", "a", 1, 0.0), (None, "a", 1, 1e308),
    ("s", "é" * 70_000, 5, 5e-324), ("s", "", 6, -1e308),
]  # fmt: skip
ASKED: dict[str, Any] = {
    "count": lambda t: t.count().exact(),
    "units": lambda t: t.count(of="units").exact(),
    "filter": lambda t: t.where("x > 1 AND n IS NOT NULL").count().exact(),
    "sum": lambda t: t.sum("x", bounds=(-1, 1), missing=0.5, grid=0.25).exact(),
    "wide": lambda t: t.sum("n", bounds=(0, 2**52)).exact(),
    "keys": lambda t: t.histogram("city", keys=["a", "", "b", "it's; \\n ${x} `--", "é" * 70_000]).exact().tolist(),
    "bins": lambda t: t.histogram("x", bins=[-1, 0, 1]).exact().tolist(),
    "even": lambda t: t.histogram("x", bins=2, bounds=(-1, 1)).exact().tolist(),
    "derived": lambda t: t.derive(y="CAST(city AS INTEGER)").where("y IS NULL").count().exact(),
    "discovered": lambda t: t.discover("city", of="rows").exact(),
    "moments": lambda t: t.covariance("n", "x", bounds=[(0, 5), (-2, 2)]).exact().tolist(),
    "ranks": lambda t: [a.tolist() for a in t.engine.arrays(t.median("x").plan)],
    "groups": lambda t: sorted(groups(t)),
}


def groups(table: xp.PrivateTable) -> list[Any]:
    asked = table.by("city", "n > 0", keys={"city": ["a", ""], "n > 0": [True, False]})
    made = asked.answers(epsilon=1, n=asked.count(), u=asked.count(of="units"), s=asked.sum("x", bounds=(-1, 1)),
                         v=asked.variance("x", bounds=(-1, 1)), q=asked.median("n", bounds=(0, 9)))  # fmt: skip
    found = table.engine.fetch(made.question.measured(made._all_measures))
    return [(made.question.key_of(row), *(int(n or 0) for n in row[1:])) for row in found]


def both(given: list[Any], folder: Path, unit: Any) -> tuple[xp.PrivateTable, xp.PrivateTable]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (person VARCHAR, city VARCHAR, n BIGINT, x DOUBLE)")
    if given:
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", given)
    connection.execute(f"COPY t TO '{folder}/q.parquet' (FORMAT parquet)")
    frame = session().read.parquet(f"{folder}/q.parquet")
    said: dict[str, Any] = {"unit": unit, "neighbours": "add-remove", "key": 5}
    return xp.read(connection, table="t", **said), xp.read(frame, **said)


@pytest.mark.parametrize("unit", ["row", xp.Unit("person", rows=2)], ids=repr)
def test_answers_are_those_of_duckdb(unit: Any, tmp_path: Path) -> None:
    """No unit has more rows than count: which ones are kept would be up to the engine's hash."""
    duck, spark = both(ROWS, tmp_path, unit)
    assert duck.schema == spark.schema
    names = list(ASKED) if unit != "row" else some(list(ASKED), 4)
    for name in names:
        assert ASKED[name](duck) == ASKED[name](spark), name


def test_units_are_cut_down_by_their_own_rows(tmp_path: Path) -> None:
    """The furthest that one more unit moves answers is what questions say, and rows of others change nothing."""
    own = [("p", "a", 1, 1.0)] * 3 + [("p", "b", 1, 1.0)] * 2
    rest = [(f"q{i}", "ab"[i % 2], i, 1.0) for i in range(20)]
    moved = {}
    for name, given in (("without", rest), ("with", [*rest, *own]), ("more", [*own, *rest, *rest[::-1]])):
        (tmp_path / name).mkdir()
        _, spark = both(given, tmp_path / name, Q)
        hist = spark.histogram("city", keys=["a", "b"])
        moved[name] = hist.exact() if name != "more" else None
        if name == "more":
            assert spark.count().exact() == 20 * 2 + 2
    apart = moved["with"] - moved["without"]
    assert np.abs(apart).sum() == hist.sensitivity.l1 == 2
    assert sorted(apart.tolist()) == [0, 0, 2]  # of one group


# ---- what is told


MARK = "zebra-7f3a"


def test_nothing_private_is_told(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, spark = both([(MARK, MARK, 7, 1.0)] * 3, tmp_path, xp.Unit("person", rows=2))
    for name in some(list(ASKED), 3):
        ASKED[name](spark)
        assert MARK not in repr(spark), name
    out, err = capfd.readouterr()
    assert MARK not in out + err
    with pytest.raises(EngineFailed) as failed:  # a query that we never make
        spark.engine.fetch(f"SELECT raise_error(city) FROM {spark.engine.source}")
    assert MARK not in f"{failed.value} {failed.value.__context__!r} {failed.value.__cause__!r}"
