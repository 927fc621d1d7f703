"""Questions about groups of rows: in how many groups a unit can be, shares of ε, answers, and refusals."""

from collections.abc import Iterator
from itertools import count, product
from typing import Any

import duckdb
import pytest

import expost as xp
from duck import database, insert
from expost.data import Grouped
from expost.errors import InvalidValue

pytestmark = pytest.mark.slow
CITIES = ["Rome", "Oslo", "It's"]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with database() as connection:
        connection.execute("CREATE TABLE t (person INTEGER, city VARCHAR, cost DOUBLE)")
        yield connection


def fill(connection: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]]) -> None:
    connection.execute("DELETE FROM t")
    insert(connection, "t", ("INTEGER", "VARCHAR", "DOUBLE"), rows)


def counts(groups: Any) -> tuple[int, ...]:
    return tuple(groups.rows(key).count().exact() for key in groups.keys)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("most", [None, 3])
@pytest.mark.parametrize("keys", [1, 2, 3])
def test_one_unit_is_in_no_more_groups_than_the_question_says(
    connection: duckdb.DuckDBPyConnection, relation: Any, most: int | None, keys: int
) -> None:
    unit: Any = "row" if most is None else xp.Unit("person", rows=most)
    table = xp.read(connection, table="t", unit=unit, neighbours=relation, key=1)
    groups = table.by("city", CITIES[:keys])
    one = [[(1, city, 0.0)] for city in (*CITIES, "Bern", None)]
    several = [[(1, a, 0.0), (1, b, 0.0), (1, c, 0.0)] for a, b, c in product(CITIES, repeat=3)]
    own = one if most is None else one + several
    found = []
    for rows in own:
        fill(connection, [(0, "Rome", 1.0), *rows])
        found.append(counts(groups))
    fill(connection, [(0, "Rome", 1.0)])
    without = counts(groups)
    pairs = [(without, other) for other in found] if relation == "add-remove" else list(product(found, repeat=2))
    changed = max(sum(a != b for a, b in zip(x, y, strict=True)) for x, y in pairs)
    assert changed == groups.touched  # so a larger share for each group would be too much


def test_answers_by_group(connection: duckdb.DuckDBPyConnection) -> None:
    fill(connection, [(i, CITIES[i % 3], float(i % 3)) for i in range(3000)] + [(9999, None, 5.0)])
    ledger = xp.Ledger(epsilon=10_000, noise=xp.SeededNoise(1))
    table = xp.read(connection, table="t", unit="row", neighbours="add-remove", key=1)
    groups = table.by("city", CITIES)

    question = groups.ask(lambda rows: rows.mean("cost", bounds=(0, 4)))
    mechanism = question.mechanism(epsilon=100)
    release = ledger.run(question, epsilon=100)
    assert release.mechanism == mechanism
    assert dict(release.value) == pytest.approx({"Rome": 0, "Oslo": 1, "It's": 2}, abs=0.05)
    assert release.charged == xp.Cost(100)
    assert [one.epsilon for one in mechanism.mechanisms] == [100.0] * 3  # type: ignore[attr-defined]
    assert "Rome: mean of cost" in mechanism.describe(release.output)
    medians = groups.ask(lambda rows: rows.median("cost", bounds=(0, 4), grid=1)).mechanism(epsilon=9)
    assert ledger.run(medians).value == {"Rome": 0, "Oslo": 1, "It's": 2}
    older = table.by("CASE WHEN cost > 0.5 THEN 1 ELSE 0 END", [0, 1])
    total = older.ask(lambda rows: rows.count()).mechanism(epsilon=50)
    assert dict(ledger.run(total).value) == pytest.approx({0: 1000, 1: 2001}, abs=2)


@pytest.mark.parametrize(("relation", "share"), [("add-remove", 1.0), ("substitute", 0.5)])
def test_each_group_gets_its_share(connection: duckdb.DuckDBPyConnection, relation: Any, share: float) -> None:
    def shares(groups: xp.data.Groups, epsilon: float) -> list[float]:
        made: Any = groups.ask(lambda rows: rows.count()).mechanism(epsilon=epsilon)
        assert made.guarantee.worst_case == xp.Cost(epsilon)
        return [one.guarantee.worst_case.epsilon for one in made.mechanisms]

    table = xp.read(connection, table="t", unit="row", neighbours=relation, key=1)
    assert shares(table.by("city", CITIES), 1) == [share] * 3
    people = xp.read(connection, table="t", unit=xp.Unit("person", rows=2), neighbours=relation, key=1)
    assert shares(people.by("city", CITIES), 3) == [1.0] * 3


def test_what_is_publicly_wrong_is_refused(connection: duckdb.DuckDBPyConnection) -> None:
    table = xp.read(connection, table="t", unit="row", neighbours="substitute", key=1)
    for keys, rule in ((["a", "a"], "different"), ([], "1 to 10000"), ("ab", "a list"), ([1.5], "another kind")):
        with pytest.raises(InvalidValue, match=rule):
            table.by("city", keys=keys)
    with pytest.raises(InvalidValue):
        table.by("city", [1])  # text is not a number
    groups = table.by("city", ["Rome", "Oslo"])
    dear = groups.made_for_each(lambda rows: rows.count().mechanism(epsilon=1))
    with pytest.raises(InvalidValue, match=r"costs ε 1, more than its share of ε 0\.5"):
        Grouped(question=groups, mechanisms=dear, epsilon=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="a question, without an ε; got a Noisy"):
        groups.ask(lambda rows: rows.count().mechanism(epsilon=1))  # type: ignore[arg-type,return-value]
    with pytest.raises(InvalidValue, match="takes no δ"):
        groups.ask(lambda rows: rows.count()).mechanism(epsilon=1, delta="1e-6")
    with pytest.raises(InvalidValue, match="not about its rows"):
        groups.ask(lambda rows: table.where("cost > 0").count()).mechanism(epsilon=1)
    one = groups.rows("Rome").count().mechanism(epsilon="0.1")
    with pytest.raises(InvalidValue, match="2 groups need one question each, got 1"):
        Grouped(question=groups, mechanisms=(one,), epsilon=1)


@pytest.mark.parametrize(
    ("by", "keys", "said"),
    [
        (3, {"city": list(range(1500)), "person": list(range(1500)), "cost": list(range(1500))}, "= 3375000000"),
        (2, {"city": CITIES, "person": range(4000)}, "3 × 4000 = 12000"),
        (2, {"city": CITIES, "person": range(10**12)}, "got more"),
        (1, count(), "got more"),
        (2, {"city": "Rome", "person": [1]}, "a list of values"),
        (2, {"city": [], "person": [1]}, "got 0"),
    ],
)
def test_combinations_are_counted_before_they_are_made(
    connection: duckdb.DuckDBPyConnection, by: int, keys: Any, said: str
) -> None:
    """A few kilobytes of values have billions of combinations: they would take all memory."""
    table = xp.read(connection, table="t", unit="row", neighbours="substitute")
    with pytest.raises(InvalidValue, match=said):
        table.by(*("city", "person", "cost")[:by], keys=keys)
    assert len(table.by("city", "person", keys={"city": CITIES, "person": range(3333)}).keys) == 9999
