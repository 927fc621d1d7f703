"""Spark against the reference, row by row on hostile rows; against DuckDB, question by question.

``EXPOST_CASES`` says how many expressions are compared; ``make soak`` compares many.
"""

import os
import random
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import asked_everywhere as everywhere
import expost as xp
from added import rows_of
from every_question import EVERY
from expost.data.expression import evaluate, operators, parse
from expost.data.expression.operators import TABLE
from expost.data.query import relation
from expost.data.spark import rendering
from expost.errors import InvalidValue
from fuzz_tables import Search
from hostile_tables import KINDS, LONG, NAN, expression, moves, rows, same, stated_moves, vectors
from soak import some
from spark_session import WHY_NOT, event_log, in_spark, of_file, session, write_parquet

pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
CASES = int(os.environ.get("EXPOST_CASES", "75"))
TOGETHER = 25


def test_every_operator_has_a_rendering() -> None:
    assert {(each.name, each.takes) for each in TABLE} == set(rendering.SPARK_OPERATORS)
    assert set(operators.CASTS) == set(rendering.SPARK_CASTS)


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[xp.PrivateTable, list[Any]]:
    path, hostile_rows = tmp_path / "t.parquet", rows(random.Random(5), 25)
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

ROWS = [
    ("p", "a", 2**63 - 1, NAN), ("p", "a", -(2**63), float("inf")), ("q", "b", 0, float("-inf")),
    ("q", None, None, None), ("r", "it's; \\n ${x} `--", 1, -0.0), ("r", "a", 1, 0.0), (None, "a", 1, 1e308),
    ("s", "é" * 70_000, 5, 5e-324), ("s", "", 6, -1e308),
]  # fmt: skip
ASKED: dict[str, Any] = {
    "groups": lambda t: groups(t),
    "wide": lambda t: t.sum("n", bounds=(0, 2**52)).exact(),
    "keys": lambda t: t.histogram("city", keys=["a", "", "b", "it's; \\n ${x} `--", "é" * 70_000]).exact().tolist(),
    "discovered": lambda t: t.discover("city", of="rows").exact(),
    "moments": lambda t: t.covariance("n", "x", bounds=[(0, 5), (-2, 2)]).exact(),
    "ranks": lambda t: [a.tolist() for a in t.engine.arrays(t.median("x").plan)],
}
"""What ``test_engines.py`` does not ask of all engines."""


def groups(table: xp.PrivateTable) -> list[Any]:
    return rows_of(EVERY["groups"](table).question)


def as_arrow(given: list[Any]) -> pa.Table:
    kinds = {"person": pa.string(), "city": pa.string(), "n": pa.int64(), "x": pa.float64()}
    columns = list(zip(*given, strict=True)) if given else [()] * 4
    return pa.table({name: pa.array(list(v), kind) for (name, kind), v in zip(kinds.items(), columns, strict=True)})


def in_memory(given: list[Any], unit: Any) -> xp.PrivateTable:
    """Rows of the plan: the fastest."""
    schema = "person string, city string, n bigint, x double"
    frame = session().createDataFrame(as_arrow(given), schema)
    return xp.read(frame, unit=unit, neighbours="add-remove", key=5)


def both(given: list[Any], folder: Path, unit: Any) -> tuple[xp.PrivateTable, xp.PrivateTable]:
    pq.write_table(as_arrow(given), folder / "q.parquet")
    said: dict[str, Any] = {"unit": unit, "neighbours": "add-remove", "key": 5}
    frame = session().read.parquet(str(folder / "q.parquet"))
    return xp.read(folder / "q.parquet", **said), xp.read(frame, **said)


@pytest.mark.parametrize("unit", some([xp.Unit("person", rows=2), "row"], 2), ids=repr)
def test_answers_are_those_of_duckdb(unit: Any, tmp_path: Path) -> None:
    """No unit has more rows than count: which ones are kept would be up to the engine's hash."""
    duck, spark = both(ROWS, tmp_path, unit)
    assert duck.schema == spark.schema
    for name, ask in ASKED.items():
        assert ask(duck) == ask(spark), name


SPARK = [cell for cell in everywhere.CELLS if cell.data == "Spark frame"]


@pytest.fixture(scope="module")
def of_both(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, tuple[xp.PrivateTable, xp.PrivateTable]]:
    """Tables of one file, in DuckDB and in Spark, as each cell says."""
    path = tmp_path_factory.mktemp("asked") / "rows.parquet"
    everywhere.made_rows().to_parquet(path)
    return {
        (cell.relation, cell.unit): (everywhere.in_table(path, cell), everywhere.in_table(of_file(path), cell))
        for cell in SPARK
    }


@pytest.mark.parametrize("name", everywhere.BY_NAME)
def test_every_cell_is_answered_or_refused(name: str, of_both: dict[Any, Any]) -> None:
    """Those of Spark in ``docs/questions.md``: with the same noise they are those of DuckDB, and so are exact numbers.

    That these intervals cover is tested there.
    """
    asked = everywhere.BY_NAME[name]
    for cell in SPARK:
        duck, spark = of_both[cell.relation, cell.unit]
        if words := asked.refusal(cell):
            assert everywhere.refused(asked, cell, spark) == words
            continue
        found = []
        for table in (duck, spark):
            table, engine = everywhere.remembering(table)
            release = everywhere.run(asked, cell, table)
            everywhere.check_published(asked, release)
            found.append((release.output, release.frame, engine.exact))
        assert found[0] == found[1], cell


def test_places_of_many_keys_do_not_overflow(tmp_path: Path) -> None:
    """Eight columns of fifteen keys each have more than 2^31 combinations: as 32 bits, places would be others."""
    columns = [f"n + {more}" for more in range(8)]
    keys = [tuple(n + more for more in range(8)) for n in range(15)]
    table = in_memory([("p", "a", n, 0.0) for n in (*range(15), 2**63 - 1, None)], "row")
    asked = table.by(*columns, keys=keys)
    made = asked.agg(rows=asked.count()).mechanism(epsilon=1)
    assert sorted(made.question.exact()) == keys


# ---- joins with public tables

PUBLIC: dict[str, list[Any]] = {
    "i": [0, 1, -1, 2**63 - 1, -(2**63), 2**31, 5],
    "k": [0, 3, 2**31 - 1, -(2**31), 2**31, -(2**63)],
    "h": [5, -(2**63)],
    "s": ["", "a", "A", " 12 ", "É", "ßẞ", "a\nb", "🙂 it's", "%_", LONG, LONG + "a"],
    "b": [True, False],
}


def test_keys_are_looked_up_as_the_reference_does(hostile: tuple[xp.PrivateTable, list[Any]]) -> None:
    table, found_rows = hostile
    for on, keys in PUBLIC.items():
        table = table.join({on: keys, f"w{on}": list(range(len(keys)))}, on=on)
    found = table.engine.fetch(f"SELECT {', '.join(f'w{on}' for on in PUBLIC)} FROM {relation(table)}")
    for row, values in zip(found_rows, found, strict=True):
        for value, (on, keys) in zip(values, PUBLIC.items(), strict=True):
            expected = next((place for place, key in enumerate(keys) if key == row.values[on]), None)
            assert value == expected, f"{on} {row.values[on]!r}"
    assert {on: len({values[place] for values in found}) > 2 for place, on in enumerate(PUBLIC)}["s"]


def test_hostile_keys_are_looked_up(tmp_path: Path) -> None:
    """Bytes that are not UTF-8, and whole numbers of more than 64 bits; NaN and the zeros as what they are cast to."""
    texts = [b"a", b"\xff\xfe", b"\xed\xa0\x80x", b"z\xc3", b"a\x00"]
    raw = pa.array(texts, pa.binary()).buffers()
    wide = pa.array([2**64, -(2**100), 7, None, 2**63], pa.decimal128(38, 0))
    columns = {"s": pa.Array.from_buffers(pa.string(), 5, raw), "m": wide, "x": [NAN, -0.0, 0.0, float("inf"), 1e300]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    frame = session().read.parquet(str(tmp_path / "t.parquet")).localCheckpoint()  # for the decimals of 38 digits
    table = xp.read(frame, unit="row", neighbours="add-remove")
    table = table.derive(whole="CAST(m AS INTEGER)", near="CAST(x AS INTEGER)")
    table = table.join({"s": ["a", "\ufffd" * 2, "z\ufffd", "?"], "ws": [0, 1, 2, 3]}, on="s")
    table = table.join({"whole": [7, 0, 2**63 - 1], "ww": [0, 1, 2]}, on="whole")
    table = table.join({"near": [0, 2**63 - 1], "wn": [1, 2]}, on="near")
    found = table.engine.fetch(f"SELECT ws, ww, wn FROM {relation(table)}")
    assert found == [(0, None, None), (1, None, 1), (None, 0, 1), (2, None, None), (None, None, None)]
    assert table.join({"near": [0], "more": [1]}, on="near", keep="matched").count().exact() == 2
    thousands = {"near": list(range(5000)), "many": [str(n) for n in range(5000)]}
    assert table.join(thousands, on="near").where("many = '0'").count().exact() == 2
    with pytest.raises(InvalidValue, match="more than 64 bits"):
        table.join({"near": [2**63], "more": [1]}, on="near")


# ---- neighbours

SAID = [("a", 3, 1.0), ("b", -2, None), ("c", 9, NAN), (None, 0, -7.5)]
"""What a row can say."""
PAIRS = list(combinations_with_replacement(SAID, 2))
QUESTIONS: dict[str, Any] = {
    "rows": lambda t: t.where("n > -5").count(),
    "units": lambda t: t.count(of="units"),
    "sum": lambda t: t.sum("n", bounds=(-2, 3)),
    "keys": lambda t: t.histogram("city", keys=["a", "b", "empty"]),
    "bins of units": lambda t: t.histogram("n", bins=2, bounds=(-5, 5), of="units"),
    "median": lambda t: t.median("x", bounds=(-5, 5), grid=0.5, missing=0),
}


@pytest.mark.parametrize("unit", some([xp.Unit("person", rows=2, groups=1), "row"], 2), ids=repr)
def test_sensitivities_are_those_of_all_neighbours(unit: Any) -> None:
    """One more unit with each of its possible rows: the furthest that it moves an answer is what the question says."""
    rest = [("q", *SAID[0]), ("q", *SAID[1]), ("r", *SAID[2]), ("q", *SAID[3])]
    more = [[said] for said in SAID] if unit == "row" else [[PAIRS[0][0]], *map(list, some(PAIRS, 4))]
    without = in_memory(rest, unit)
    furthest = dict.fromkeys(QUESTIONS, 0)
    answers = {name: vectors(ask(without)) for name, ask in QUESTIONS.items()}
    for own in more:
        table = in_memory([*rest[:2], *(("p", *said) for said in own), *rest[2:]], unit)
        for name, ask in QUESTIONS.items():
            (moved,) = (moves(*pair)[0] for pair in zip(answers[name], vectors(ask(table)), strict=True))
            furthest[name] = max(furthest[name], moved)
    assert furthest == {name: stated_moves(ask(without))[0][0] for name, ask in QUESTIONS.items()}


def test_units_are_cut_down_by_their_own_rows() -> None:
    """Rows of others change nothing."""
    own = [("p", "a", 1, 1.0)] * 3 + [("p", "b", 1, 1.0)] * 2
    rest = [(f"q{i}", "ab"[i % 2], i, 1.0) for i in range(20)]
    unit = xp.Unit("person", rows=2, groups=1)
    without, with_it, more = (in_memory(given, unit) for given in (rest, [*rest, *own], [*own, *rest, *rest[::-1]]))
    hist = lambda table: table.histogram("city", keys=["a", "b"])  # noqa: E731
    apart = hist(with_it).exact() - hist(without).exact()
    assert sorted(apart.tolist()) == [0, 0, 2]  # of one group
    assert more.count().exact() == 20 * 2 + 2


# ---- what Spark writes down

MARK = "okapi-51c9"
"""Of no other test: the log is that of the whole session."""


def test_the_event_log_holds_numbers_and_no_values(tmp_path: Path) -> None:
    """As the docs say: keep it private. Its numbers are exact, of our queries, too; values are not among them."""
    rows = [(f"{MARK}-{n}", f"{MARK}-{n % 7}", n, n / 2) for n in range(1237)]
    _, table = both([*rows, *[(None, "a", 1, 1.0)] * 3], tmp_path, xp.Unit("person", rows=2))
    ledger = xp.Ledger(epsilon=1000, delta=0.1)
    for name in some(list(EVERY), 4):
        ledger.run(EVERY[name](table))
    session().sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    logged = event_log()
    assert MARK not in logged
    assert "1237" in logged
    session().sql(f"SELECT '{MARK}-9' AS shown").collect()  # the log has what plans say
    session().sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    assert MARK in event_log()
