"""Leaks that were: what an optimizer concluded from the column of one person's salary, and failures that told of it.

A row's value must not depend on the other rows. Each question is asked of a table and of its neighbour with one person
more, who earns more than anybody: as the ledger asks it, and by its plan on a connection with all optimizers on.
"""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import expost as xp

pytestmark = pytest.mark.slow
HIGH = 1_000_000
K = 500_000
FAILS = "CAST(note AS INT) > 0"
"""NULL for every row: no note is a number."""
CONDITIONS = [
    f"salary <= {K} OR {FAILS}",
    f"{FAILS} OR salary <= {K}",
    f"NOT (salary > {K} AND CAST(note AS INT) <= 0)",
    f"NOT (salary > {K}) OR {FAILS}",
    f"CASE WHEN salary <= {K} THEN TRUE ELSE {FAILS} END",
    f"CASE WHEN salary <= {K} THEN TRUE WHEN {FAILS} THEN TRUE ELSE {FAILS} END",
    f"CASE WHEN CASE WHEN salary > {K} THEN {FAILS} ELSE TRUE END THEN TRUE END",
    f"salary BETWEEN 0 AND {K} OR {FAILS}",
    f"salary NOT BETWEEN {K} AND {2 * HIGH} OR {FAILS}",
    f"(salary <= {K}) IN (TRUE, {FAILS})",
    f"coalesce(nullif(salary <= {K}, FALSE), {FAILS})",
    f"if(salary <= {K}, TRUE, {FAILS})",
    f"salary <= {K} OR salary * 9223372036854775807 > 0",
    f"salary <= {K} OR 1 // (salary - salary) > 0",
    f"greatest(salary, {K}) <= {K} OR {FAILS}",
    f"salary + 1 <= {K} OR {FAILS}",
    f"salary / 2 <= {K} OR {FAILS}",
    f"CAST(salary AS TEXT) < '6' OR {FAILS}",
    f"salary <= {K} AND salary >= 0 OR {FAILS}",
    f"salary <= {K} OR {FAILS} OR pay > 1e9 AND CAST(note AS DATE) > day",
    f"pay <= {K}.0 OR {FAILS}",
    f"week(day) >= 0 OR {FAILS}",
    "week(day) >= 0",
    "year(day + CAST(salary AS INTEGER)) > 0 OR day < DATE '2030-01-01'",
    "date_trunc('week', day) <= day",
    "day + INTERVAL (salary) YEAR > day",
    "length(note || note) >= 0 AND note >= ''",
]
QUESTIONS: dict[str, Callable[[xp.PrivateTable], Any]] = {
    **{text: lambda t, text=text: t.where(text).count() for text in CONDITIONS},  # type: ignore[misc]
    "derived": lambda t: t.derive(low=f"salary <= {K}").where(f"low OR {FAILS}").count(),
    "derived twice": lambda t: (
        t.derive(n="CAST(note AS INT)").derive(low=f"salary <= {K}").where("low OR n > 0").count()
    ),
    "two filters": lambda t: t.where("salary >= 0").where(f"salary <= {K} OR {FAILS}").count(),
    "filters that are joined": lambda t: t.where(f"salary <= {K} OR {FAILS}").where(f"pay <= {K} OR {FAILS}").count(),
    "key": lambda t: t.histogram(
        f"CASE WHEN salary <= {K} THEN 'a' ELSE CAST(CAST(note AS INT) AS TEXT) END", keys=["a"]
    ),
    "bin": lambda t: t.histogram(f"CASE WHEN salary <= {K} THEN 1 ELSE CAST(note AS INT) END", bins=2, bounds=(0, 2)),
    "sum": lambda t: t.sum(f"CASE WHEN salary <= {K} THEN 1 ELSE CAST(note AS INT) END", bounds=(0, 1)),
    "missing": lambda t: t.sum(f"if(salary <= {K}, 1, CAST(note AS INT))", bounds=(0, 1), missing=1),
    "discovery": lambda t: t.discover(f"if(salary <= {K}, 'a', CAST(CAST(note AS INT) AS TEXT))", of="rows"),
}


def people(rich: bool) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE t (salary BIGINT, pay DOUBLE, note VARCHAR, day DATE)")
    connection.execute("INSERT INTO t SELECT i, i, 'n' || i, DATE '2020-01-01' + i::INTEGER FROM range(100) r(i)")
    if rich:
        connection.execute(f"INSERT INTO t VALUES ({HIGH}, {HIGH}, 'rich', '5877642-06-25 (BC)')")
    return connection


def of_connection(rich: bool, folder: Path) -> Any:
    return {"source": people(rich), "table": "t"}


def of_parquet(rich: bool, folder: Path) -> Any:
    file = folder / f"{rich}.parquet"
    people(rich).execute(f"COPY t TO '{file}' (FORMAT parquet)")
    return {"source": file}


def of_database(rich: bool, folder: Path) -> Any:
    file = folder / f"{rich}.duckdb"
    with duckdb.connect(str(file)) as made:
        made.execute("CREATE TABLE t (salary BIGINT, pay DOUBLE, note VARCHAR, day DATE)")
        for row in people(rich).execute("SELECT salary, pay, note, day::VARCHAR FROM t").fetchall():
            made.execute("INSERT INTO t VALUES (?, ?, ?, ?::DATE)", list(row))
    return {"source": file, "table": "t"}


@pytest.fixture(params=[of_connection, of_parquet, of_database], ids=lambda way: way.__name__, scope="module")
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[xp.PrivateTable]:
    folder = tmp_path_factory.mktemp("tables")
    return [xp.read(unit="row", neighbours="add-remove", **request.param(rich, folder)) for rich in (False, True)]


def apart(answers: list[Any]) -> int:
    one, other = (dict(answer) if isinstance(answer, list) else dict(enumerate(_listed(answer))) for answer in answers)
    return sum(abs(one.get(key, 0) - other.get(key, 0)) for key in {*one, *other})


def _listed(answer: Any) -> list[int]:
    return answer.tolist() if hasattr(answer, "tolist") else [answer]


@pytest.mark.parametrize("name", QUESTIONS)
def test_one_person_moves_no_answer_further_than_stated(both: list[xp.PrivateTable], name: str) -> None:
    asked = [QUESTIONS[name](table) for table in both]
    assert apart([question.exact() for question in asked]) <= asked[0].sensitivity.l1


@pytest.mark.parametrize("name", QUESTIONS)
def test_nor_with_all_optimizers_on(name: str) -> None:
    answers = []
    for rich in (False, True):
        connection = people(rich)
        question = QUESTIONS[name](xp.read(connection, table="t", unit="row", neighbours="add-remove"))
        plan = question.plan
        question.table.engine.fetch = lambda _, connection=connection, plan=plan: connection.execute(plan).fetchall()
        answers.append(question.exact())
    assert apart(answers) <= question.sensitivity.l1


REFUSED = [
    "dayofweek(INTERVAL (salary) DAY) = 1",
    "week(INTERVAL (salary) DAY) = 1",
    "date_diff('day', CAST(day AS TIME), CAST(day AS TIME)) = 0",
    "dayofweek(day - DATE '2020-01-01') = 1",
    "exp(pay) > 1",
    "pay ** 2.5 > 1",
    "ln(pay) > 1",
    "pow(pay, 3) > 1",
    "TRY(salary > 1)",
    "CAST(pay AS TEXT) = '1.0'",
    "CAST(note AS TINYINT) = 1",
    "regexp_matches(note, '(a)\\1')",
    "regexp_matches(note, '(?=a)')",
    "regexp_matches(note, note)",
    "note LIKE note",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_defined_for_all_values_is_refused(text: str) -> None:
    """Inside a CASE it failed if and only if some row met the condition: a bit of a salary, for nothing."""
    table = xp.read(people(True), table="t", unit="row", neighbours="add-remove")
    ledger = xp.Ledger(epsilon=1)
    with pytest.raises(xp.InvalidValue):
        ledger.run(table.where(f"CASE WHEN salary > {K} THEN {text} END").count().mechanism(epsilon=1))
    assert ledger.remaining == ledger.limit


STUDY = """
[data]
path = "{path}"
[privacy]
unit = "row"
neighbours = "add-remove"
[limit]
epsilon = 1.0
[ledger]
url = "memory:"
name = "books"
[[question]]
name = "probe"
kind = "count"
where = "salary <= 500000 OR CAST(note AS INT) > 0"
epsilon = 1.0
"""


def test_a_study_tells_neighbours_apart_by_no_more_than_noise(tmp_path: Path) -> None:
    from expost.study import parse_study, run_study

    answers = []
    for rich in (False, True):
        file = of_parquet(rich, tmp_path)["source"]
        result = run_study(parse_study(STUDY.format(path=file.name), tmp_path / "study.toml"))
        assert result.error is None
        answer = result.outcomes[0].answer
        assert answer is not None
        answers.append(answer.value)
    assert abs(answers[0] - answers[1]) < 60  # at ε 1; the leak moved it by 100


@pytest.mark.parametrize("key", [1, 2, 12345678901234567890])
@pytest.mark.parametrize("of", ["rows", "units"])
@pytest.mark.parametrize("way", [of_connection, of_parquet], ids=lambda way: way.__name__)
def test_what_is_kept_of_a_unit_is_even(way: Any, of: Any, key: int, tmp_path: Path) -> None:
    """Of 50 cells one is kept, each as often as the others: χ² with 49 degrees of freedom, p > 10⁻³."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT p AS person, c::INT AS cell FROM range(8000) a(p), range(50) b(c)")
    source: dict[str, Any] = {"source": connection, "table": "t"}
    if way is of_parquet:
        connection.execute(f"COPY t TO '{tmp_path}/t.parquet' (FORMAT parquet)")
        source = {"source": tmp_path / "t.parquet"}
    table = xp.read(**source, unit=xp.Unit("person", rows=1), neighbours="add-remove", key=key)
    kept = table.histogram("cell", keys=range(50), other=None, of=of).exact()
    assert kept.sum() == 8000
    assert chi_square(kept) < 85.4


def chi_square(kept: Any) -> float:
    return float(((kept - kept.mean()) ** 2 / kept.mean()).sum())


def test_one_hash_of_several_columns_is_not_even() -> None:
    """The order that was used once, as a control."""
    cells = "SELECT p AS u, c::INT AS c FROM range(8000) a(p), range(50) b(c)"
    first = f"SELECT arg_min(c, hash('1', u, c)) AS m FROM ({cells}) GROUP BY u"
    kept = duckdb.connect().execute(f"SELECT count(*) FROM ({first}) GROUP BY m").fetchall()
    assert chi_square(np.array(kept)) > 1000


# ---- statistics of files that speak of other values than those that are read


def of_patched_parquet(file: Path, query: str, old: bytes, new: bytes) -> xp.PrivateTable:
    """A file in which some values were exchanged and no statistics: as other writers leave NaN out of theirs."""
    duckdb.connect().execute(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION uncompressed)")
    content = file.read_bytes()
    assert old in content
    file.write_bytes(content.replace(old, new))
    return xp.read(file, unit="row", neighbours="add-remove")


NOT_A_NUMBER = ["x > 5", "NOT x <= 5", "isnan(x)", "x >= 5 AND x > 1", "x BETWEEN 5 AND CAST('nan' AS DOUBLE)"]


@pytest.mark.parametrize("condition", NOT_A_NUMBER)
def test_no_row_group_is_skipped_for_what_another_row_holds(condition: str, tmp_path: Path) -> None:
    """NaN is above 5 by our rule, and a reader skips rows if their statistics, NaN left out, end at 4."""
    answers = []
    for people in (1000, 1001):
        values = "CASE WHEN i = 0 THEN 1.0::DOUBLE WHEN i = 1 THEN 4.0 WHEN i = 1000 THEN 10.0 ELSE 2.5 END AS x"
        query = f"SELECT {values} FROM range({people}) r(i)"
        patched = (struct.pack("<d", 2.5), struct.pack("<d", float("nan")))
        table = of_patched_parquet(tmp_path / f"{people}.parquet", query, *patched)
        answers.append(table.where(condition).count().exact())
    assert answers[0] == 998
    assert answers[1] - answers[0] in (0, 1)


@pytest.mark.parametrize("condition", ["s = '????'", "s IN ('????', 'b')", "s LIKE '????'", "s < 'A'", "s <> 'x'"])
def test_bytes_that_are_not_text_are_read_each_by_itself(condition: str, tmp_path: Path) -> None:
    """They read as question marks, and a filter in the file speaks of the bytes."""
    answers: list[int] = []
    for one in ("AAAA", "????"):
        query = f"SELECT CASE WHEN i = 0 THEN '{one}' WHEN i = 1 THEN '!' ELSE 'zzzz' END AS s FROM range(2000) r(i)"
        table = of_patched_parquet(tmp_path / f"{len(answers)}.parquet", query, b"zzzz", b"\xff" * 4)
        answers.append(table.where(condition).count().exact())
    assert min(answers) >= 1998
    assert abs(answers[0] - answers[1]) <= 1
