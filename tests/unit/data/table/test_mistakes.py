"""Public mistakes are free and named, and nothing private is said or shown."""

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import expost as xp
import expost.data
from duck import SECRET

MISTAKES = {
    "a filter is true or false": lambda t: t.where("age + 1"),
    "there is no column 'agee': did you mean 'age'": lambda t: t.where("agee > 1"),
    "write the column's name alone": lambda t: t.where("visits.age > 1"),
    "ask for a count, sum": lambda t: t.where("sum(age) > 1"),
    "a query reads others": lambda t: t.where("age = (SELECT max(age) FROM visits)"),
    "random() is not allowed": lambda t: t.where("random() < 0.5"),
    "now() is not allowed": lambda t: t.where("now() > day"),
    "getvariable() is not allowed": lambda t: t.where("getvariable('x') = 1"),
    "read_csv() is not allowed": lambda t: t.derive(x="read_csv('/etc/passwd')"),
    "is not an expression": lambda t: t.where("age >"),
    "is unexpected": lambda t: t.where("true; DROP TABLE visits"),
    "an expression is text": lambda t: t.where(3),
    "say epsilon= before an ε": lambda t: xp.Ledger(epsilon=1).run(t.count(), 0.5),
    "> takes values of one kind, but has text and integer": lambda t: t.where("city > 3"),
    "already": lambda t: t.derive(AGE="age + 1"),
    "needs integer or number or boolean": lambda t: t.sum("city", bounds=(0, 1)),
    "a median needs integer or number or boolean, but 'city' holds text": lambda t: t.median("city"),
    "a quantile needs integer or number": lambda t: t.quantile("city", [0.1, 0.9]),
    "pair of numbers, the lowest first": lambda t: t.sum("age", bounds=(5, 1)),
    "pass bounds that differ": lambda t: t.sum("age", bounds=(5, 5)),
    "2^52 steps": lambda t: t.sum("age", bounds=(0, 1e30), grid=1),
    "take a smaller grid": lambda t: t.sum("age", bounds=(0, 1), grid=1024),
    "each of bounds must fit": lambda t: t.sum("age", bounds=(0, "1e399")),
    "power of two": lambda t: t.sum("age", bounds=(0, 10), grid=0.3),
    "a number or 'drop'": lambda t: t.sum("age", bounds=(0, 10), missing="zero"),
    "either keys or bins": lambda t: t.histogram("age"),
    "got 10 bins without bounds": lambda t: t.histogram("age", bins=10),
    "further apart": lambda t: t.histogram("age", bins=2, bounds=(-1.7e308, 1.7e308)),
    "ascend": lambda t: t.histogram("age", bins=[1, 1]),
    "got 2, of which 1 differ": lambda t: t.histogram("city", keys=["Rome", "Rome"]),
    "keys are values of the column": lambda t: t.histogram("city", keys=["Rome", 3]),
    "at most 64 bits": lambda t: t.histogram("age", keys=[2**63]),
    "is also one of the keys": lambda t: t.histogram("city", keys=["other"]),
    "needs text or integer or boolean": lambda t: t.discover("cost"),
    "'rows' or 'units'": lambda t: t.count(of="people"),
    "column 'list' is of a type that questions cannot use": lambda t: t.histogram("list", bins=[0, 1]),
    "neighbours='substitute'": lambda t: t.column("age"),
    "ask for a count of units": lambda t: t.size,
    "at least 1e-12": lambda t: t.count().mechanism(epsilon=0),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_mistakes_are_free_and_named(visits: xp.PrivateTable, message: str) -> None:
    with pytest.raises(xp.InvalidValue, match=re.escape(message)):
        MISTAKES[message](visits)


def test_columns_say_what_would_do(people: xp.PrivateTable, connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(xp.InvalidValue, match="own median"):
        people.where("age > 3").column("age")
    with pytest.raises(xp.InvalidValue, match="name at least one"):
        people.column()
    persons = xp.read(connection, table="visits", unit=xp.Unit("person", rows=2), neighbours="substitute")
    with pytest.raises(xp.InvalidValue, match="rows=1"):
        persons.column("age")
    one = xp.read(connection, table="visits", unit=xp.Unit("person", rows=1), neighbours="substitute")
    with pytest.raises(xp.InvalidValue, match="unit='row'"):
        one.column("age", "cost")
    assert len(one.column("age")) == 400


def test_reading_says_what_is_missing(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    def refused(match: str, source: Any = connection, **said: Any) -> None:
        with pytest.raises(xp.InvalidValue, match=re.escape(match)):
            xp.read(source, **{"unit": "row", "neighbours": "add-remove", **said})

    refused("table='visits'")
    refused("unit says whose privacy", table="visits", unit="person")
    refused("'add-remove' or 'substitute'", table="visits", neighbours=None)
    refused("got 'bounded': did you mean 'substitute'?", table="visits", neighbours="bounded")
    refused("cannot identify units", table="visits", unit=xp.Unit("cost", rows=1))
    refused("did you mean 'person'", table="visits", unit=xp.Unit("persn", rows=1))
    refused("leave size out", table="visits", size=3)
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
    for text, why in (
        ("", "is empty: its first line names the columns"),
        ("\n\n", "is empty: put the names of the columns there"),
        ("a,b,a\n1,2,3\n", "columns 1 and 3 are both 'a'; rename one"),
        ("a,A\n1,2\n", "columns 1 and 2 are both 'A', as 'a' but for the case of letters; rename one"),
        (",a\n1,2\n", "column 1 has no name, which pandas writes of an index unless index=False; give it one"),
        ("a,,b\n1,2,3\n", "column 2 has no name; give it one. Or is the delimiter not ','?"),
    ):
        file.write_text(text)
        refused(why, file)
    file = tmp_path / "some.parquet"
    for raw, why in (
        (b"", "cannot be read: it is empty"), (b"a,b\n1,2\n", "it is no Parquet file; if it is CSV, name it .csv"),
        (b"PAR1 and no more", "it begins as a Parquet file does, and is cut off or damaged"),
    ):  # fmt: skip
        file.write_bytes(raw)
        refused(why, file)


def test_units_are_stated_completely() -> None:
    with pytest.raises(TypeError):
        xp.Unit("person")  # type: ignore[call-arg]
    with pytest.raises(xp.InvalidValue, match="rows is a whole number from 1"):
        xp.Unit("person", rows=0)
    assert xp.Unit("person", rows=2, groups=9).groups == 2


def test_neighbours_must_match(visits: xp.PrivateTable) -> None:
    ledger = xp.Ledger(epsilon=1, neighbours="substitute")
    with pytest.raises(xp.errors.NeighbourMismatch, match="neighbours='substitute'"):
        ledger.run(visits.count().mechanism(epsilon=0.5))
    assert ledger.remaining == xp.Cost(1)
    with pytest.raises(xp.InvalidValue, match="without on="):
        xp.Ledger(epsilon=1).run(visits.count().mechanism(epsilon=0.5), on=[1])  # type: ignore[misc]


def test_noise_that_cannot_be_made_is_refused_before_the_charge(visits: xp.PrivateTable) -> None:
    ledger = xp.Ledger(epsilon=1, delta=1e-6)
    huge = visits.sum("cost", bounds=(0, 2.0**52), grid=1)
    for asked in (
        huge.mechanism(epsilon=1e-11),
        visits.mean("cost", bounds=(0, 2.0**52), grid=1).mechanism(epsilon=1e-11),
    ):
        with pytest.raises(xp.InvalidValue):
            ledger.run(asked)
    assert ledger.remaining == ledger.limit


def test_the_table_is_asked_after_the_reservation(connection: duckdb.DuckDBPyConnection) -> None:
    table = xp.read(connection, table="visits", unit="row", neighbours="add-remove")
    asked = table.count().mechanism(epsilon=0.5)
    ledger = xp.Ledger(epsilon=0.75)
    with pytest.raises(xp.BudgetExceeded):
        ledger.run(table.count().mechanism(epsilon=1))
    _ = asked.question.plan
    connection.execute("DROP TABLE visits")
    assert asked.guarantee.worst_case == xp.Cost(0.5)
    with pytest.raises(xp.errors.EngineFailed) as failed:
        ledger.run(asked)
    assert ledger.remaining == xp.Cost(0.25)  # it began, so it is paid for
    assert failed.value.__cause__ is None
    assert not any(isinstance(error, duckdb.Error) for error in behind(failed.value))


def behind(error: BaseException) -> list[BaseException]:
    """The exceptions during whose handling it was raised, as tracebacks show them."""
    return [] if error.__context__ is None else [error.__context__, *behind(error.__context__)]


def test_an_engines_message_is_kept_back(connection: duckdb.DuckDBPyConnection) -> None:
    table = xp.read(connection, table="visits", unit="row", neighbours="add-remove")
    with pytest.raises(xp.errors.EngineFailed) as failed:  # a query that we never make
        table.engine.fetch("SELECT CAST(city AS INTEGER) FROM visits")
    assert "Rome" not in str(failed.value) + repr(behind(failed.value))


def test_printing_shows_no_data(visits: xp.PrivateTable, people: xp.PrivateTable) -> None:
    adults = visits.where("age >= 18").derive(half="cost / 2")
    shown = str(adults)
    assert "at most 3 rows and 2 groups" in shown
    assert "half    number = cost / 2" in shown
    assert "where       age >= 18" in shown
    things: list[Any] = [adults, visits.histogram("city", keys=["Rome"]), visits.discover("city"), people.column("age")]
    things += [visits.mean("age", bounds=(0, 9)), visits.count().mechanism(epsilon=1), visits.sum("age", bounds=(0, 9))]
    for thing in things:
        assert SECRET not in repr(thing) + str(thing)
        assert not re.search(r"\b(2000|1200|400)\b", repr(thing) + str(thing))
    assert "missing dropped" in repr(visits.sum("age", bounds=(0, 9)))
    assert "one unit moves it by L1 27" in repr(visits.sum("age", bounds=(0, 9)))


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
