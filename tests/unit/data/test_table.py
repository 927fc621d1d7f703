"""Private tables as people use them: with a ledger, with mistakes, and without ever seeing data."""

import inspect
import os
import pickle
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, assert_type

import duckdb
import numpy as np
import pytest

import expost as xp
import expost.data
from duck import database

SECRET = "Xanthippe"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with database() as made:
        made.execute(f"""
            CREATE TABLE visits AS SELECT 'p' || (i % 400) AS person, (i * 7) % 90 AS age,
            CASE WHEN i % 3 = 0 THEN 'Rome' WHEN i = 5 THEN '{SECRET}' ELSE 'Oslo' END AS city, i / 8 AS cost,
            DATE '2024-01-01' + CAST(i % 300 AS INTEGER) AS day, [i] AS list
            FROM range(2000) t(i)""")
        yield made


@pytest.fixture
def visits(connection: duckdb.DuckDBPyConnection) -> xp.PrivateTable:
    return xp.read(connection, table="visits", unit=xp.Unit("person", rows=3, groups=2), neighbours="add-remove")


@pytest.fixture
def people(connection: duckdb.DuckDBPyConnection) -> xp.PrivateTable:
    return xp.read(connection, table="visits", unit="row", neighbours="substitute")


@pytest.fixture
def ledger() -> xp.Ledger:
    return xp.Ledger(epsilon=100, delta=1e-3, noise=xp.SeededNoise(2))


def test_the_better_noise_is_chosen_from_public_facts(connection: duckdb.DuckDBPyConnection) -> None:
    def histogram(groups: int) -> Any:
        unit = xp.Unit("person", rows=groups, groups=groups)
        table = xp.read(connection, table="visits", unit=unit, neighbours="add-remove")
        return table.histogram("age", bins=90, bounds=(0, 90), of="units")

    few, many = histogram(1), histogram(60)
    assert few.noisy(epsilon=1, delta=1e-6) == few.laplace(epsilon=1)
    assert many.noisy(epsilon=1, delta=1e-6) == many.gaussian(epsilon=1, delta=1e-6)
    assert many.noisy(epsilon=1) == many.laplace(epsilon=1)
    assert many.noisy(epsilon=1, delta=1e-6).error_bound("0.95") < many.laplace(epsilon=1).error_bound("0.95")


def test_answers_are_near_the_truth(visits: xp.PrivateTable, ledger: xp.Ledger) -> None:
    adults = visits.where("age >= 18")
    count = ledger.run(adults.count().laplace(epsilon=5)).value
    assert abs(count - adults.count().exact()) < 20
    total = ledger.run(visits.sum("cost", bounds=(0, 100)).gaussian(epsilon=5, delta=1e-6)).value
    assert abs(total - visits.sum("cost", bounds=(0, 100), grid=2**-10).exact() / 2**10) < 5000
    mean = ledger.run(visits.mean("age", bounds=(0, 100)).laplace(epsilon=10)).value
    assert abs(mean - 44.5) < 4
    cities = ledger.run(visits.histogram("city", keys=["Rome", "Oslo"]).discrete_gaussian(rho=2, delta=1e-6)).value
    assert list(cities) == ["Rome", "Oslo", "other"]
    assert abs(sum(cities.values()) - 1200) < 60


def test_a_sparse_vector_gives_back(visits: xp.PrivateTable, ledger: xp.Ledger) -> None:
    bins = visits.histogram("age", bins=30, bounds=(0, 90))
    large = ledger.run(bins.above(1000, at_most=10, epsilon=1))
    assert list(large.value) == list(bins.labels)
    assert not any(large.value.values())
    assert large.refunded.epsilon > 0.4
    assert large.mechanism.guarantee.neighbours == "add-remove"
    assert bins.above(1000, at_most=10, epsilon=1).noise.monotone
    assert str(large).startswith("Above: 0 of at most 10 above 1000")


def test_a_mean_over_a_public_number_spends_all_on_the_sum(people: xp.PrivateTable) -> None:
    public = people.mean("age", bounds=(0, 100), missing=50)
    assert public.count_sensitivity.l1 == 0
    assert public.laplace(epsilon=1)._shares[1] is None
    assert abs(public.laplace(epsilon=1).sample(None, xp.SeededNoise(1)) - 44.5) < 1
    private = people.mean("age", bounds=(0, 100))
    of_count = private.laplace(epsilon=1, count_share=0.25)._shares[1]
    assert of_count is not None
    assert of_count.epsilon == 0.25


def test_rank_statistics_run_on_columns(people: xp.PrivateTable, ledger: xp.Ledger) -> None:
    ages = people.column("age")
    assert len(ages) == people.size == 2000
    spread = ledger.run(xp.StableInterquartileRange(epsilon=2, delta=1e-6), on=ages)
    assert not spread.withheld
    middle = ledger.run(xp.StableMedian.scaled(45, size=people.size, epsilon=2, delta=1e-6), on=ages)
    assert abs(middle.value - 44) < 5
    both = xp.location_and_spread(ledger, on=people.column("age"), epsilon="rest", delta="rest", fallback=40)
    assert abs(both.value.location - 44) < 5


def test_regressions_run_on_columns(people: xp.PrivateTable, ledger: xp.Ledger) -> None:
    columns = people.derive(target="age / 2").column("age", "target")
    fit = xp.StableRegression(cell=0.4, blocks=100, bounds=(0, 90), target_bounds=(0, 45), epsilon=5, delta=1e-5)
    assert abs(ledger.run(fit, on=columns).value.values[0] - 0.5) <= 0.2  # type: ignore[misc]


# ---- nothing is charged for public mistakes, and nothing private is said


MISTAKES = {
    "a filter is true or false": lambda t: t.where("age + 1"),
    "there is no column 'agee': did you mean 'age'": lambda t: t.where("agee > 1"),
    "write the column's name alone": lambda t: t.where("visits.age > 1"),
    "count(), sum()": lambda t: t.where("sum(age) > 1"),
    "a query reads others": lambda t: t.where("age = (SELECT max(age) FROM visits)"),
    "random() is not allowed": lambda t: t.where("random() < 0.5"),
    "now() is not allowed": lambda t: t.where("now() > day"),
    "getvariable() is not allowed": lambda t: t.where("getvariable('x') = 1"),
    "read_csv() is not allowed": lambda t: t.derive(x="read_csv('/etc/passwd')"),
    "is not an expression": lambda t: t.where("age >"),
    "is unexpected": lambda t: t.where("true; DROP TABLE visits"),
    "an expression is text": lambda t: t.where(3),
    "> takes values of one kind, but has text and integer": lambda t: t.where("city > 3"),
    "already": lambda t: t.derive(AGE="age + 1"),
    "needs integer or number or boolean": lambda t: t.sum("city", bounds=(0, 1)),
    "pair (lowest, highest)": lambda t: t.sum("age", bounds=(5, 1)),
    "pass bounds that differ": lambda t: t.sum("age", bounds=(5, 5)),
    "2^52 steps": lambda t: t.sum("age", bounds=(0, 1e30), grid=1),
    "pass a smaller grid=": lambda t: t.sum("age", bounds=(0, 1), grid=1024),
    "each of bounds must fit": lambda t: t.sum("age", bounds=(0, "1e399")),
    "power of two": lambda t: t.sum("age", bounds=(0, 10), grid=0.3),
    "a number or 'drop'": lambda t: t.sum("age", bounds=(0, 10), missing="zero"),
    "either keys=[…] or bins=…": lambda t: t.histogram("age"),
    "needs bounds=": lambda t: t.histogram("age", bins=10),
    "further apart": lambda t: t.histogram("age", bins=2, bounds=(-1.7e308, 1.7e308)),
    "ascend": lambda t: t.histogram("age", bins=[1, 1]),
    "list each once": lambda t: t.histogram("city", keys=["Rome", "Rome"]),
    "keys are values of the column": lambda t: t.histogram("city", keys=["Rome", 3]),
    "at most 64 bits": lambda t: t.histogram("age", keys=[2**63]),
    "is also one of the keys": lambda t: t.histogram("city", keys=["other"]),
    "needs text or integer or boolean": lambda t: t.discover("cost"),
    "'rows' or 'units'": lambda t: t.count(of="people"),
    "needs integer or number": lambda t: t.histogram("list", bins=[0, 1]),
    "neighbours='substitute'": lambda t: t.column("age"),
    "ask count(of='units')": lambda t: t.size,
    "at least 1e-12": lambda t: t.count().laplace(epsilon=0),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_free_and_named(visits: xp.PrivateTable, message: str) -> None:
    with pytest.raises(xp.InvalidValue, match=re.escape(message)):
        MISTAKES[message](visits)


def test_columns_say_what_would_do(people: xp.PrivateTable, connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(xp.InvalidValue, match=r"median\(\)"):
        people.where("age > 3").column("age")
    with pytest.raises(xp.InvalidValue, match="name at least one"):
        people.column()
    persons = xp.read(connection, table="visits", unit=xp.Unit("person", rows=2), neighbours="substitute")
    with pytest.raises(xp.InvalidValue, match=re.escape("Unit('person', rows=1)")):
        persons.column("age")
    one = xp.read(connection, table="visits", unit=xp.Unit("person", rows=1), neighbours="substitute")
    with pytest.raises(xp.InvalidValue, match="unit='row'"):
        one.column("age", "cost")
    assert len(one.column("age")) == 400


def test_what_is_public_needs_no_noise(people: xp.PrivateTable, connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(xp.InvalidValue, match="public under substitution"):
        people.count().laplace(epsilon=1)
    assert people.size == 2000
    declared = xp.read(connection, table="visits", unit="row", neighbours="substitute", size=1999)
    assert declared.size == 1999  # planning takes one's word
    ledger = xp.Ledger(epsilon=1, delta=1e-6)
    with pytest.raises(xp.InvalidValue, match="declare 2000"):
        ledger.run(xp.StableMedian.scaled(45, size=1999, epsilon=1, delta=1e-6), on=declared.column("age"))
    assert ledger.remaining == xp.Cost(1, delta=1e-6)


def test_reading_says_what_is_missing(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    def refused(match: str, source: Any = connection, **said: Any) -> None:
        with pytest.raises(xp.InvalidValue, match=re.escape(match)):
            xp.read(source, **{"unit": "row", "neighbours": "add-remove", **said})

    refused("table='visits'")
    refused("unit is whose privacy", table="visits", unit="person")
    refused("'add-remove' or 'substitute'", table="visits", neighbours=None)
    refused("cannot identify units", table="visits", unit=xp.Unit("cost", rows=1))
    refused("did you mean 'person'", table="visits", unit=xp.Unit("persn", rows=1))
    refused("leave out size=", table="visits", size=3)
    refused("does not exist", table="nothing")
    refused("is the path right", tmp_path / "none.parquet")
    refused("is the path right", tmp_path / "none.csv")
    refused("there is no database", tmp_path / "none.duckdb", table="t")
    refused("has an unknown ending", tmp_path / "none.xls")
    refused("leave out table", tmp_path / "none.parquet", table="t")
    refused("are for CSV", tmp_path / "none.parquet", schema={})
    refused("takes a path", 3)
    file = tmp_path / "some.csv"
    file.write_text("a,b\n1,2\n")
    refused("has no column 'c'", file, schema={"c": "integer"})
    refused("declare one of integer", file, schema={"a": "whole"})
    refused("declare one of integer", file, schema={"a": "INT); DROP"})
    refused("key is a whole number", file, key="x")
    file.write_text("a,a\n1,2\n")
    refused("does not name each column once", file)


def test_units_are_stated_completely() -> None:
    with pytest.raises(TypeError):
        xp.Unit("person")  # type: ignore[call-arg]
    with pytest.raises(xp.InvalidValue, match="rows is a whole number from 1"):
        xp.Unit("person", rows=0)
    assert xp.Unit("person", rows=2, groups=9).groups == 2


def test_neighbours_must_match(visits: xp.PrivateTable) -> None:
    ledger = xp.Ledger(epsilon=1, neighbours="substitute")
    with pytest.raises(xp.NeighbourMismatch, match="neighbours='substitute'"):
        ledger.run(visits.count().laplace(epsilon=0.5))
    assert ledger.remaining == xp.Cost(1)
    with pytest.raises(xp.InvalidValue, match="without on="):
        xp.Ledger(epsilon=1).run(visits.count().laplace(epsilon=0.5), on=[1])  # type: ignore[misc]


def test_noise_that_cannot_be_made_is_refused_before_the_charge(visits: xp.PrivateTable) -> None:
    ledger = xp.Ledger(epsilon=1, delta=1e-6)
    huge = visits.sum("cost", bounds=(0, 2.0**52), grid=1)
    for asked in (huge.laplace(epsilon=1e-11), visits.mean("cost", bounds=(0, 2.0**52), grid=1).laplace(epsilon=1e-11)):
        with pytest.raises(xp.InvalidValue):
            ledger.run(asked)
    assert ledger.remaining == ledger.limit


def test_the_table_is_asked_after_the_reservation(connection: duckdb.DuckDBPyConnection) -> None:
    table = xp.read(connection, table="visits", unit="row", neighbours="add-remove")
    asked = table.count().laplace(epsilon=0.5)
    ledger = xp.Ledger(epsilon=0.75)
    with pytest.raises(xp.BudgetExceeded):
        ledger.run(table.count().laplace(epsilon=1))
    _ = asked.question.plan
    connection.execute("DROP TABLE visits")
    assert asked.guarantee.worst_case == xp.Cost(0.5)
    with pytest.raises(xp.EngineFailed) as failed:
        ledger.run(asked)
    assert ledger.remaining == xp.Cost(0.25)  # it began, so it is paid for
    assert failed.value.__context__ is None
    assert failed.value.__cause__ is None


def test_an_engines_message_is_kept_back(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE VIEW trap AS SELECT person, CAST(city AS INTEGER) AS n FROM visits")
    table = xp.read(connection, table="trap", unit="row", neighbours="add-remove")
    with pytest.raises(xp.EngineFailed) as failed:
        xp.Ledger(epsilon=1).run(table.sum("n", bounds=(0, 1)).laplace(epsilon=1))
    assert "Rome" not in str(failed.value) + repr(failed.value.__context__)


def test_printing_shows_no_data(visits: xp.PrivateTable, people: xp.PrivateTable) -> None:
    adults = visits.where("age >= 18").derive(half="cost / 2")
    shown = str(adults)
    assert "at most 3 rows and 2 groups" in shown
    assert "half    number = cost / 2" in shown
    assert "where       age >= 18" in shown
    things: list[Any] = [adults, visits.histogram("city", keys=["Rome"]), visits.discover("city"), people.column("age")]
    things += [visits.mean("age", bounds=(0, 9)), visits.count().laplace(epsilon=1), visits.sum("age", bounds=(0, 9))]
    for thing in things:
        assert SECRET not in repr(thing) + str(thing)
        assert not re.search(r"\b(2000|1200|400)\b", repr(thing) + str(thing))
    assert "missing dropped" in repr(visits.sum("age", bounds=(0, 9)))
    assert "one unit moves it by L1 27" in repr(visits.sum("age", bounds=(0, 9)))


def test_plans_are_equal_if_they_ask_the_same(visits: xp.PrivateTable, ledger: xp.Ledger) -> None:
    def plan() -> Any:
        return visits.where("age > 3").histogram("city", keys=["Rome"]).laplace(epsilon=1)

    assert plan() == plan()
    assert hash(plan()) == hash(plan())
    first, again = ledger.run(plan(), key="k"), ledger.run(plan(), key="k")
    assert first == again
    with pytest.raises(xp.KeyConflict):
        ledger.run(visits.count().laplace(epsilon=1), key="k")


def test_answers_have_the_types_that_people_read(visits: xp.PrivateTable) -> None:
    """mypy checks the same calls, through ``assert_type``."""
    ledger = xp.Ledger(epsilon=10, delta=0.01)
    assert type(assert_type(ledger.run(visits.count().laplace(epsilon=1)).value, int)) is int
    assert type(assert_type(ledger.run(visits.sum("age", bounds=(0, 9)).laplace(epsilon=1)).value, float)) is float
    assert type(assert_type(ledger.run(visits.mean("age", bounds=(0, 9)).laplace(epsilon=1)).value, float)) is float
    counted = visits.histogram("age", bins=[0, 50, 100])
    assert type(assert_type(ledger.run(counted.laplace(epsilon=1)).value, dict[Any, int])) is dict
    above = counted.above(1, at_most=1, epsilon=1)
    assert type(assert_type(ledger.run(above).value, dict[Any, bool])) is dict


def test_every_mechanism_here_cites_its_proof() -> None:
    mechanisms = [
        kind for _, kind in inspect.getmembers(expost.data, inspect.isclass) if issubclass(kind, xp.Mechanism)
    ]
    assert len(mechanisms) >= 11
    for kind in mechanisms:
        assert re.fullmatch(r"Proof: [\w-]+", (inspect.getdoc(kind) or "").splitlines()[-1])


# ---- files


def test_nothing_is_concluded_from_values(tmp_path: Path) -> None:
    """One person's field would decide of which type everybody's are."""
    file = tmp_path / "ages.csv"
    for odd in ("7", "seven"):
        file.write_text(f"age\n1\n2\n{odd}\n")
        assert xp.read(file, unit="row", neighbours="add-remove").schema == {"age": "text"}
        declared = xp.read(file, unit="row", neighbours="add-remove", schema={"age": "integer"})
        assert declared.where("age >= 2").count().exact() == (2 if odd == "7" else 1)


def test_a_csv_file_with_everything_wrong_is_read(tmp_path: Path) -> None:
    file = tmp_path / "bad.csv"
    lines = ["p,1,1.5", "p,x,nan", "q", "q,3,3,9,9", "r,99999999999999999999,inf", "caf\xe9,1,1", ",4,", "s,5,-0"]
    file.write_bytes(("person,n,x\n" + "\n".join(lines) + "\n").encode("latin1"))
    table = xp.read(file, unit="row", neighbours="add-remove", schema={"n": "integer", "x": "number"})
    assert table.schema == {"person": "text", "n": "integer", "x": "number"}
    assert table.where("n IS NULL").count().exact() == 3  # not a number, not there, too large
    assert table.sum("x", bounds=(0, 10), grid=1).exact() == 2 + 3 + 10  # the line that is not UTF-8 is no row
    assert {key for key, _ in table.discover("person").exact()} >= {"p", "q", "r", "s"}


def test_files_come_in_several(tmp_path: Path) -> None:
    for i in range(3):
        duckdb.sql(f"COPY (SELECT {i} AS n FROM range(5)) TO '{tmp_path}/part-{i}.parquet'")
        (tmp_path / f"part-{i}.csv").write_text("n,day\n" + f"{i},2024-01-0{i + 1}\n" * 5)
    parquet = xp.read(f"{tmp_path}/part-*.parquet", unit="row", neighbours="add-remove")
    declared = {"n": "integer", "day": "date"}
    csv = xp.read(f"{tmp_path}/part-*.csv", unit="row", neighbours="add-remove", schema=declared)
    assert csv.schema == declared
    for table in (parquet, csv):
        counted = table.histogram("n", keys=[0, 1, 2])
        assert counted.exact().tolist() == [5, 5, 5, 0]
    assert csv.where("year(day) = 2024 AND day >= DATE '2024-01-02'").count().exact() == 10


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    file = f"{tmp_path}/rows.parquet"
    duckdb.sql(f"COPY (SELECT i FROM range(100) t(i)) TO '{file}'")
    table = xp.read(file, unit="row", neighbours="add-remove")
    asked = [table.count(), table.where("i >= 50").count(), table.sum("i", bounds=(0, 1000))]
    assert [question.exact() for question in asked] == [100, 50, 4950]
    for old, rows in ((0, 300), (1000, 70), (1000, 80)):
        duckdb.sql(f"COPY (SELECT i FROM range({rows}) t(i)) TO '{file}'")
        os.utime(file, (time.time() - old, time.time() - old))
        assert [question.exact() for question in asked] == [rows, rows - 50, rows * (rows - 1) // 2]


def test_a_plain_count_is_a_plain_query(tmp_path: Path) -> None:
    duckdb.sql(f"COPY (SELECT 1 AS i) TO '{tmp_path}/one.parquet'")
    one = xp.read(f"{tmp_path}/one.parquet", unit="row", neighbours="add-remove")
    assert one.count().plan == 'SELECT count(*) FROM "memory"."main"."expost_source"'


def test_what_spills_is_private_and_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = f"{tmp_path}/wide.parquet"
    duckdb.sql(f"COPY (SELECT i AS person, md5(CAST(i AS VARCHAR)) AS s FROM range(1000000) t(i)) TO '{file}'")
    table = xp.read(file, unit=xp.Unit("person", rows=2), neighbours="add-remove")
    getattr(table.engine, "_connection").execute("SET memory_limit = '60MB'")  # noqa: B009
    (folder,) = tmp_path.glob("expost-*")
    assert folder.stat().st_mode & 0o077 == 0
    assert table.histogram("s", keys=["x"]).exact().tolist() == [0, 1000000]
    del table
    assert not folder.exists()


def test_temporary_tables_are_seen(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TEMP TABLE hidden AS SELECT 1 AS n")
    assert xp.read(connection, table="hidden", unit="row", neighbours="add-remove").count().exact() == 1


def test_threads_and_their_number_change_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE many AS SELECT i % 5000 AS person, sin(i) * 1e6 AS x FROM range(300000) t(i)")
    table = xp.read(connection, table="many", unit=xp.Unit("person", rows=20), neighbours="add-remove", key=1)
    asked = [table.sum("x", bounds=(-1e6, 1e6)), table.histogram("x", bins=9, bounds=(-1e6, 1e6))]
    answers = []
    for threads in (1, 3):
        connection.execute(f"SET threads = {threads}")
        answers.append([question.exact() for question in asked])
    assert np.array_equal(answers[0][0], answers[1][0])
    assert np.array_equal(answers[0][1], answers[1][1])


def test_a_key_stands_for_the_very_edges(visits: xp.PrivateTable, ledger: xp.Ledger) -> None:
    """Bins that print alike are not the same."""
    first, second = (visits.histogram("cost", bins=[0, edge, 2]).laplace(epsilon=1) for edge in (1, 1 + 1e-13))
    assert repr(first) == repr(second)
    ledger.run(first, key="k")
    with pytest.raises(xp.KeyConflict):
        ledger.run(second, key="k")


def test_a_key_stands_for_the_form_of_a_file(tmp_path: Path) -> None:
    """Delimiter, quotation mark and a chosen key of the hash decide the answer: no key replays it for others."""
    file = tmp_path / "form.csv"
    file.write_text("p;q,r\n'a;b',1\n")
    ledger = xp.Ledger.create(f"sqlite:///{tmp_path}/books.db", "books", 9, neighbours="add-remove", unit="row")

    def asked(**said: Any) -> Any:
        return xp.read(file, unit="row", neighbours="add-remove", **said).count().laplace(epsilon=1)

    ledger.run(asked(), key="k")
    for other in ({"quote": "'"}, {"delimiter": ";"}, {"key": 1}):
        with pytest.raises(xp.KeyConflict):
            ledger.run(asked(**other), key="k")
    assert asked(key=1).fingerprint == asked(key=1).fingerprint != asked(key=2).fingerprint


def test_a_key_stands_for_the_number_of_bins(visits: xp.PrivateTable) -> None:
    label = "[100000000000, 100000000001)"
    first, second = (visits.histogram("cost", bins=n, bounds=(1e11, 1e11 + 10)).only([label]) for n in (10, 9))
    assert first != second
    assert first.laplace(epsilon=1).fingerprint != second.laplace(epsilon=1).fingerprint


@pytest.mark.parametrize(
    ("ask", "about"),
    [
        (lambda t: t.where("agee > 1"), "agee > 1"),
        (lambda t: t.where("age + 1"), "age + 1"),
        (lambda t: t.sum("city", bounds=(0, 1)), "city"),
        (lambda t: t.histogram("age +", bins=2, bounds=(0, 1)), "age +"),
        (lambda t: t.sum("age", bounds=(1, 0)), None),
    ],
)
def test_errors_carry_what_they_are_about(
    visits: xp.PrivateTable, ask: Callable[[xp.PrivateTable], object], about: str | None
) -> None:
    with pytest.raises(xp.InvalidValue) as error:
        ask(visits)
    assert error.value.about == about
    assert pickle.loads(pickle.dumps(error.value)).about == about


def test_the_remedy_for_a_filtered_column_is_a_better_answer(people: xp.PrivateTable, ledger: xp.Ledger) -> None:
    """A column that is NULL elsewhere would count all of that as 0: a wrong median with a small error."""
    adults = people.where("age >= 60")
    with pytest.raises(xp.InvalidValue, match=r"use the filtered table's own median\(\)") as error:
        adults.column("age")
    assert "NULL" not in str(error.value)
    median = ledger.run(adults.median("age", bounds=(0, 90)).permute_and_flip(epsilon=1)).value
    assert abs(median - 75) <= 2
