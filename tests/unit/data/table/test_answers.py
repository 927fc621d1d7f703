"""Private tables answer: near the truth, with the better noise, in types that people read."""

import inspect
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, assert_type

import duckdb
import numpy as np
import pytest

import expost as xp
import expost.data
from expost.estimate import RealEstimate, WholeEstimate
from expost.estimates import Estimates
from expost.mechanisms import Comparison


def test_the_better_noise_is_chosen_from_public_facts(connection: duckdb.DuckDBPyConnection) -> None:
    def histogram(groups: int) -> Any:
        unit = xp.Unit("person", rows=groups, groups=groups)
        table = xp.read(connection, table="visits", unit=unit, neighbours="add-remove")
        return table.histogram("age", bins=90, bounds=(0, 90), of="units")

    few, many = histogram(1), histogram(60)
    assert few.mechanism(epsilon=1, delta=1e-6) == few.mechanism(epsilon=1)
    assert many.mechanism(epsilon=1, delta=1e-6) == many.mechanism(epsilon=1, delta=1e-6, noise="gaussian")
    assert many.mechanism(epsilon=1) == many.mechanism(epsilon=1, noise="laplace")
    assert many.mechanism(epsilon=1, delta=1e-6).error_bound("0.95") < many.mechanism(epsilon=1).error_bound("0.95")


def test_answers_are_near_the_truth(visits: xp.PrivateTable, ledger: xp.Ledger) -> None:
    adults = visits.where("age >= 18")
    count = ledger.run(adults.count().mechanism(epsilon=5)).value
    assert abs(count - adults.count().exact()) < 20
    total = ledger.run(visits.sum("cost", bounds=(0, 100)), epsilon=5, delta=1e-6, noise="gaussian").value
    assert abs(total - visits.sum("cost", bounds=(0, 100), grid=2**-10).exact() / 2**10) < 5000
    mean = ledger.run(visits.mean("age", bounds=(0, 100)), epsilon=10).value
    assert abs(mean - 44.5) < 4
    cities = ledger.run(visits.histogram("city", keys=["Rome", "Oslo"]), epsilon=5, delta=1e-6).value
    assert list(cities) == ["Rome", "Oslo", "other"]
    assert abs(sum(cities.values()) - 1200) < 60


def test_a_sparse_vector_gives_back(visits: xp.PrivateTable, ledger: xp.Ledger) -> None:
    bins = visits.histogram("age", bins=30, bounds=(0, 90))
    large = ledger.run(bins.above(1000, at_most=10).mechanism(epsilon=1))
    assert list(large.value) == list(bins.labels)
    assert not any(large.value.values())
    assert large.refunded.epsilon > 0.4
    assert large.mechanism.guarantee.neighbours == "add-remove"
    assert bins.above(1000, at_most=10).mechanism(epsilon=1).noise.monotone
    assert str(large).startswith("Above: 0 of at most 10 above 1000")


def test_cells_after_the_last_one_allowed_are_not_compared(visits: xp.PrivateTable, ledger: xp.Ledger) -> None:
    """Before, they were denied: False for cells that are as large as those found."""
    bins = visits.histogram("age", bins=3, bounds=(0, 90))
    found = ledger.run(bins.above(-100_000, at_most=2).mechanism(epsilon=1))
    assert list(found.value.values()) == ["above", "above", "not compared", "not compared"]
    assert (found.value["[0, 30)"], found.value["other"]) == (Comparison.ABOVE, Comparison.NOT_COMPARED)
    assert [label for label, above in found.value.items() if above] == list(bins.labels[:2])
    assert found.frame.names == ("age", "above")
    assert found.frame["above"] == [str(each) for each in found.value.values()]
    said = "2 of at most 2 above -100000: [0, 30), [30, 60); stopped after 2 (at_most), 2 not compared"
    assert str(found).startswith(f"Above: {said}")
    assert "not compared" in found._repr_html_()
    mine = bins.above(0, at_most=2).mechanism(epsilon=1)
    assert found.part == found.mechanism.part_of(found.output) == mine.noise.part(2, 2)
    every = ledger.run(bins.above(-100_000, at_most=4).mechanism(epsilon=1))
    assert {*every.value.values()} == {Comparison.ABOVE}


def test_groups_say_what_was_not_compared(visits: xp.PrivateTable, ledger: xp.Ledger) -> None:
    groups = visits.by("city", ["Rome", "Oslo"])
    found = ledger.run(
        groups.ask(lambda rows: rows.histogram("age", bins=[0, 50, 100]).above(-(10**6), at_most=1)), epsilon=2
    )
    expected = {"[0, 50)": "above", "[50, 100)": "not compared", "other": "not compared"}
    assert found.value == {"Rome": expected, "Oslo": expected}
    assert found.frame.names == ("city", "age", "above")
    assert found.frame.rows[:2] == (("Rome", "[0, 50)", "above"), ("Rome", "[50, 100)", "not compared"))


def test_a_mean_over_a_public_number_spends_all_on_the_sum(people: xp.PrivateTable) -> None:
    public = people.mean("age", bounds=(0, 100), missing=50)
    ((of_sum, of_count),) = public.mechanism(epsilon=1).noises.values()
    assert (of_sum.epsilon, of_count) == (1, None)
    mean = xp.Ledger(epsilon=1, noise=xp.SeededNoise(1)).run(public, epsilon=1).value
    assert abs(mean - 44.5) < 1
    assert mean.how.values == 2000
    private = people.mean("age", bounds=(0, 100))
    ((of_sum, of_count),) = private.mechanism(epsilon=1).noises.values()
    assert of_sum.epsilon == of_count.epsilon == Fraction(1, 2)


def test_rank_statistics_run_on_columns(people: xp.PrivateTable, ledger: xp.Ledger) -> None:
    ages = people.column("age")
    assert len(ages) == people.size == 2000
    spread = ledger.run(xp.mechanisms.StableInterquartileRange(epsilon=2, delta=1e-6), on=ages)
    assert not spread.withheld
    middle = ledger.run(xp.mechanisms.StableMedian.scaled(45, size=people.size, epsilon=2, delta=1e-6), on=ages)
    assert abs(middle.value - 44) < 5
    both = xp.recipes.location_and_spread(ledger, on=people.column("age"), epsilon="rest", delta="rest", fallback=40)
    assert abs(both.value.location - 44) < 5


def test_columns_that_cannot_be_read_are_refused_when_they_are_named() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 44 AS age")
    people = xp.read(connection, table="people", unit="row", neighbours="substitute")
    assert people.column("age").shape == (1,)
    named = people.column("age")
    connection.execute("ALTER TABLE people RENAME age TO years")
    ledger = xp.Ledger(epsilon=1, delta=1e-6)
    with pytest.raises(xp.InvalidValue, match="age"):
        ledger.run(xp.mechanisms.StableInterquartileRange(epsilon=1, delta=1e-6), on=named)
    assert ledger.remaining == xp.Cost(1, delta=1e-6), "refused before it was paid for"
    connection.execute("DROP TABLE people")
    with pytest.raises(xp.InvalidValue, match="people does not exist"):
        people.column("age")


def test_regressions_run_on_columns(people: xp.PrivateTable, ledger: xp.Ledger) -> None:
    columns = people.derive(target="age / 2").column("age", "target")
    fit = xp.mechanisms.StableRegression(
        cell=0.4, blocks=100, bounds=(0, 90), target_bounds=(0, 45), epsilon=5, delta=1e-5
    )
    assert abs(ledger.run(fit, on=columns).value.values[0] - 0.5) <= 0.2  # type: ignore[misc]


def test_what_is_public_needs_no_noise(people: xp.PrivateTable, connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(xp.InvalidValue, match="public under substitution"):
        people.count().mechanism(epsilon=1)
    assert people.size == 2000
    declared = xp.read(connection, table="visits", unit="row", neighbours="substitute", size=1999)
    assert declared.size == 1999  # planning takes one's word
    ledger = xp.Ledger(epsilon=1, delta=1e-6)
    with pytest.raises(xp.InvalidValue, match="declare 2000"):
        ledger.run(xp.mechanisms.StableMedian.scaled(45, size=1999, epsilon=1, delta=1e-6), on=declared.column("age"))
    assert ledger.remaining == xp.Cost(1, delta=1e-6)


def test_plans_are_equal_if_they_ask_the_same(visits: xp.PrivateTable, ledger: xp.Ledger) -> None:
    def plan() -> Any:
        return visits.where("age > 3").histogram("city", keys=["Rome"]).mechanism(epsilon=1)

    assert plan() == plan()
    assert hash(plan()) == hash(plan())
    first, again = ledger.run(plan(), key="k"), ledger.run(plan(), key="k")
    assert first == again
    with pytest.raises(xp.errors.KeyConflict):
        ledger.run(visits.count().mechanism(epsilon=1), key="k")


def test_answers_have_the_types_that_people_read(visits: xp.PrivateTable) -> None:
    """mypy checks the same calls, through ``assert_type``."""
    ledger = xp.Ledger(epsilon=10, delta=0.01)
    count = assert_type(ledger.run(visits.count(), epsilon=1).value, int)
    total = assert_type(ledger.run(visits.sum("age", bounds=(0, 9)), epsilon=1).value, float)
    assert (type(count), type(total)) == (WholeEstimate, RealEstimate)  # numbers that know their errors
    assert type(ledger.run(visits.mean("age", bounds=(0, 9)).mechanism(epsilon=1)).value) is RealEstimate
    counted = visits.histogram("age", bins=[0, 50, 100])
    assert type(assert_type(ledger.run(counted, epsilon=1).value, Mapping[Any, int])) is Estimates
    above = counted.above(1, at_most=1)
    assert type(assert_type(ledger.run(above, epsilon=1).value, dict[Any, Comparison])) is dict


def test_every_mechanism_here_cites_its_proof() -> None:
    mechanisms = [
        kind for _, kind in inspect.getmembers(expost.data, inspect.isclass) if issubclass(kind, xp.Mechanism)
    ]
    assert len(mechanisms) >= 11
    for kind in mechanisms:
        assert re.fullmatch(r"Proof: [\w-]+", (inspect.getdoc(kind) or "").splitlines()[-1])


def test_a_plain_count_is_a_plain_query(tmp_path: Path) -> None:
    duckdb.sql(f"COPY (SELECT 1 AS i) TO '{tmp_path}/one.parquet'")
    one = xp.read(f"{tmp_path}/one.parquet", unit="row", neighbours="add-remove")
    assert one.count().plan == 'SELECT count(*) FROM "memory"."main"."expost_source"'


def test_temporary_tables_are_seen(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TEMP TABLE hidden AS SELECT 1 AS n")
    assert xp.read(connection, table="hidden", unit="row", neighbours="add-remove").count().exact() == 1


def test_threads_and_their_number_change_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE many AS SELECT i % 5000 AS person, sin(i) * 1e6 AS x FROM range(300000) t(i)")
    table = xp.read(connection, table="many", unit=xp.Unit("person", rows=20), neighbours="add-remove", key=1)
    asked: list[Any] = [table.sum("x", bounds=(-1e6, 1e6)), table.histogram("x", bins=9, bounds=(-1e6, 1e6))]
    answers = []
    for threads in (1, 3):
        connection.execute(f"SET threads = {threads}")
        answers.append([question.exact() for question in asked])
    assert np.array_equal(answers[0][0], answers[1][0])
    assert np.array_equal(answers[0][1], answers[1][1])


def test_a_key_stands_for_the_very_edges(visits: xp.PrivateTable, ledger: xp.Ledger) -> None:
    """Bins that print alike are not the same."""
    first, second = (visits.histogram("cost", bins=[0, edge, 2]).mechanism(epsilon=1) for edge in (1, 1 + 1e-13))
    assert repr(first) == repr(second)
    ledger.run(first, key="k")
    with pytest.raises(xp.errors.KeyConflict):
        ledger.run(second, key="k")


def test_a_key_stands_for_the_number_of_bins(visits: xp.PrivateTable) -> None:
    label = "[100000000000, 100000000001)"
    first, second = (visits.histogram("cost", bins=n, bounds=(1e11, 1e11 + 10)).only([label]) for n in (10, 9))
    assert first != second
    assert first.mechanism(epsilon=1).fingerprint != second.mechanism(epsilon=1).fingerprint


def test_the_remedy_for_a_filtered_column_is_a_better_answer(people: xp.PrivateTable, ledger: xp.Ledger) -> None:
    """A column that is NULL elsewhere would count all of that as 0: a wrong median with a small error."""
    adults = people.where("age >= 60")
    with pytest.raises(xp.InvalidValue, match=r"use the filtered table's own median") as error:
        adults.column("age")
    assert "NULL" not in str(error.value)
    median = ledger.run(adults.median("age", bounds=(0, 90)).mechanism(epsilon=1)).value
    assert abs(median - 75) <= 2
