"""Variances, covariances, correlations and regressions of tables: what one unit moves, truths, filters, refusals."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from added import added
from duck import database, insert
from expost.data import winsorized
from expost.data.winsorized import mean_between
from expost.errors import InvalidValue
from expost.mechanisms.linear.box import STEPS
from expost.questions import NoisyStatistics
from published import published

pytestmark = pytest.mark.slow
REST = [("r", 1.0, -1.0), ("s", 0.0, 1.0), ("s", 1.0, 1.0)]
OWN = [*product((-1.0, 0.0, 1.0), repeat=2), (None, 1.0)]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with database() as connection:
        connection.execute("CREATE TABLE t (person VARCHAR, x DOUBLE, y DOUBLE)")
        yield connection


def fill(connection: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]]) -> None:
    connection.execute("DELETE FROM t")
    insert(connection, "t", ("VARCHAR", "DOUBLE", "DOUBLE"), rows)


def asked(table: xp.PrivateTable, values: int, missing: Any) -> Any:
    if values == 1:
        return table.variance("x", bounds=(-1, 1), missing=missing)
    return table.covariance("x", "y", bounds=[(-1, 1), (-1, 1)], missing=missing)


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("missing", ["drop", 1])
@pytest.mark.parametrize("values", [1, 2])
def test_one_unit_moves_all_sums_by_no_more_than_the_question_says(
    connection: duckdb.DuckDBPyConnection, most: int, missing: Any, values: int
) -> None:
    own = [rows for size in range(most + 2) for rows in combinations_with_replacement(OWN, size)]
    own = own if most == 1 else own[::5]
    table = xp.read(connection, table="t", unit=xp.Unit("person", rows=most), neighbours="add-remove", key=7)
    questions = [asked(each, values, missing) for each in (table, replace(table, neighbours="substitute"))]
    by_plan: dict[str, dict[Any, Any]] = {question.plan: {} for question in questions}
    for rows in own:
        fill(connection, [*REST, *(("me", *row) for row in rows)])
        for question in {question.plan: question for question in questions}.values():  # once if they ask the same
            ((*_, by_plan[question.plan][rows]),) = added(question)
    all_pairs: list[list[Any]] = [[((), rows) for rows in own], [(a, b) for a in own[1:] for b in own[1:]]]
    for question, pairs in zip(questions, all_pairs, strict=True):
        ((sums,),) = question.sums.values()
        found, start = by_plan[question.plan], sums.public  # a public number of rows has no noise
        if start:
            assert len({int(numbers[0, 0]) for rows, numbers in found.items() if rows}) == 1
        apart = [(found[a] - found[b])[start:] for a, b in pairs]
        moved = max(int(np.abs(each).sum()) for each in apart)
        assert moved <= sums.moved.l1
        assert moved >= sums.moved.l1 * Fraction(4, 5)  # so noise for half of it would not do
        assert max(int((each * each).sum()) for each in apart) <= sums.moved.l2_squared


def test_the_noise_is_for_what_a_unit_moves(connection: duckdb.DuckDBPyConnection) -> None:
    for rows, relation in product((1, 3), ("add-remove", "substitute")):
        unit = xp.Unit("person", rows=rows)
        table = xp.read(connection, table="t", unit=unit, neighbours=relation, key=1)  # type: ignore[arg-type]
        mechanism = table.variance("x", bounds=(0, 2)).mechanism(epsilon=2)
        ((noise,),) = mechanism.noises.values()
        assert 1 / noise.rate == Fraction(3 * rows, 2) * STEPS**2
        assert mechanism.guarantee.worst_case == xp.Cost(2)


@pytest.fixture
def visits(connection: duckdb.DuckDBPyConnection) -> tuple[duckdb.DuckDBPyConnection, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(50, 10, size=3000)
    y = 2 * x + rng.normal(0, 20, size=3000)
    people = [f"p{i % 1500}" for i in range(3000)]
    fill(connection, list(zip(people, x.tolist(), y.tolist(), strict=True)))
    return connection, np.column_stack([x, y])


BOUNDS = [(0, 100), (-100, 300)]


@pytest.mark.parametrize("unit", ["row", xp.Unit("person", rows=2)], ids=["row", "person"])
@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("filtered", [False, True])
def test_statistics_are_the_true_ones_with_much_epsilon(visits: Any, unit: Any, relation: Any, filtered: bool) -> None:
    connection, data = visits
    table = xp.read(connection, table="t", unit=unit, neighbours=relation, key=1)
    if filtered:
        table, data = table.where("x > 45"), data[data[:, 0] > 45]
    ledger = xp.Ledger(epsilon=10**6, noise=xp.SeededNoise(1))

    def ask(question: Any) -> Any:
        return ledger.run(question.mechanism(epsilon=10_000)).value

    true = np.cov(data.T, ddof=0)
    assert ask(table.variance("x", bounds=(0, 100))) == pytest.approx(true[0, 0], rel=0.01)
    assert ask(table.covariance("x", "y", bounds=BOUNDS)) == pytest.approx(true[0, 1], rel=0.01)
    expected = true[0, 1] / (true[0, 0] * true[1, 1]) ** 0.5
    assert ask(table.correlation("x", "y", bounds=BOUNDS, missing=0)) == pytest.approx(expected, abs=0.01)
    fit = ask(table.regression(["x"], "y", bounds=[(0, 100)], target_bounds=(-100, 300)))
    slope, intercept = np.polyfit(data[:, 0], data[:, 1], 1)
    assert fit.coefficients[0] == pytest.approx(slope, rel=0.02)
    assert fit.intercept == pytest.approx(intercept, abs=3)


def test_at_a_common_epsilon_answers_are_useful(visits: Any) -> None:
    connection, _ = visits
    table = xp.read(connection, table="t", unit="row", neighbours="substitute", key=1)
    mechanism = table.regression(["x"], "y", bounds=[(0, 100)], target_bounds=(-100, 300), missing=0).mechanism(
        epsilon=1
    )
    slopes = [mechanism.sample(None, xp.SeededNoise(seed)).coefficients[0] for seed in range(20)]
    assert np.median(slopes) == pytest.approx(2, abs=0.5)


def test_where_every_row_is_a_person_the_best_mechanism_reads_the_columns(visits: Any) -> None:
    connection, data = visits
    ledger, true = xp.Ledger(epsilon=1000, noise=xp.SeededNoise(1)), np.cov(data.T, ddof=0)
    table = xp.read(connection, table="t", unit="row", neighbours="substitute", key=1)
    variance = table.variance("x", bounds=(0, 100), missing=0).mechanism(epsilon=10)
    assert ledger.run(variance).value == pytest.approx(true[0, 0], rel=0.05)
    assert variance.guarantee.worst_case == xp.Cost(10)
    both: dict[str, Any] = {"bounds": BOUNDS, "missing": 0}
    assert ledger.run(table.covariance("x", "y", **both).mechanism(epsilon=10)).value == pytest.approx(
        true[0, 1], rel=0.2
    )
    assert ledger.run(table.correlation("x", "y", **both).mechanism(epsilon=10)).value == pytest.approx(0.7, abs=0.1)
    line = table.regression(["x"], "y", bounds=[(0, 100)], target_bounds=(-100, 300), missing=0).mechanism(epsilon=10)
    assert ledger.run(line).value.coefficients[0] == pytest.approx(2, abs=0.2)
    for other in (table.where("x > 0"), xp.read(connection, table="t", unit="row", neighbours="add-remove")):
        assert isinstance(other.variance("x", bounds=(0, 100), missing=0).mechanism(epsilon=1), NoisyStatistics)
    assert isinstance(table.variance("x", bounds=(0, 100)).mechanism(epsilon=1), NoisyStatistics)  # rows may not count


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("unit", ["row", xp.Unit("person", rows=2)], ids=["row", "person"])
def test_winsorized_means_within_loose_bounds(visits: Any, relation: Any, unit: Any) -> None:
    connection, data = visits
    table = xp.read(connection, table="t", unit=unit, neighbours=relation, key=1).where("x > 40")
    question = table.winsorized_mean("x", trim=0.05, bounds=(-1e6, 1e6))
    values = data[data[:, 0] > 40, 0]
    expected = np.clip(values, *np.quantile(values, [0.05, 0.95])).mean()
    ledger = xp.Ledger(epsilon=100, noise=xp.SeededNoise(1))
    mechanism = question.mechanism(epsilon=8)
    assert mechanism.guarantee.worst_case == xp.Cost(8)
    found = ledger.run(mechanism)
    assert found.value == pytest.approx(expected, abs=2)
    assert found.error is not None
    assert 0 < found.error < 2
    assert found.value.how == found.output
    loose = ledger.run(table.mean("x", bounds=(-1e6, 1e6)).mechanism(epsilon=8)).value
    assert abs(loose - expected) > 2  # noise for the bounds


def test_error_bars_of_winsorized_means_hold(connection: duckdb.DuckDBPyConnection) -> None:
    values = np.arange(1000) % 40 * 1.5
    fill(connection, [("p", float(x), 0.0) for x in values])
    table = xp.read(connection, table="t", unit="row", neighbours="add-remove", key=1)
    mechanism = table.winsorized_mean("x", trim=0.1, bounds=(0, 1000)).mechanism(epsilon=2)
    found = [published(mechanism.sample(None, xp.SeededNoise(seed))) for seed in range(40)]
    off = np.array([abs(each.value - np.clip(values, each.low, each.high).mean()) for each in found])
    noise = np.array([each.noise for each in found])
    assert (off > noise).mean() <= 0.05
    assert (off > noise / 10).mean() > 0.05  # a tenth of it would not do


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
def test_no_bar_where_the_quantiles_may_frame_nothing(connection: duckdb.DuckDBPyConnection, relation: Any) -> None:
    """300 heights at ε 0.1: whether there are enough is decided from the noisy number of values, or the public one."""
    heights = np.random.default_rng(1).normal(170, 10, 300)
    fill(connection, [("p", float(x), 0.0) for x in heights])
    table = xp.read(connection, table="t", unit="row", neighbours=relation, key=1)
    question = table.winsorized_mean("x", trim=0.1, missing=0, bounds=(0, 100_000))
    few = question.mechanism(epsilon="0.1")
    found = [published(few.sample(None, xp.SeededNoise(seed))) for seed in range(20)]
    assert all(one.noise is None for one in found)
    assert "too few values for this trim" in few.describe(found[0])
    enough = question.mechanism(epsilon=20)
    assert published(enough.sample(None, xp.SeededNoise(1))).noise is not None
    assert (enough.knows_error(300), few.knows_error(300)) == (True, False)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_lemma_of_error_bars_on_every_small_case(width: int) -> None:
    """Proof: lem-mean-error; with half of the width instead of h it is wrong where that is odd."""
    middle, worst = width // 2, Fraction(0)
    for count, moved, more in product((1, 2), (-2, 0, 2), (-1, 0, 2)):
        if count + more <= 1:
            continue
        for total in {sum(values) - count * middle for values in product(range(width + 1), repeat=count)}:
            shown = min(max(middle + Fraction(total + moved, count + more), Fraction(0)), Fraction(width))
            off = abs(shown - middle - Fraction(total, count)) * (count + more)
            assert off <= min(width * (count + more), abs(moved) + abs(more) * (width - middle))
            worst = max(worst, off - abs(moved) - Fraction(abs(more) * width, 2))
    assert (worst > 0) is (width % 2 == 1)


def test_the_shares_of_a_winsorized_mean_add_up(connection: duckdb.DuckDBPyConnection) -> None:
    """It is a mean between two quantiles, for what these leave of ε: computed again from the same seed."""
    table = xp.read(connection, table="t", unit="row", neighbours="add-remove", key=1)
    fill(connection, [("p", float(x % 10), 0.0) for x in range(100)])
    for bounds in ((0, 9), None):
        mechanism = table.winsorized_mean("x", trim=0.2, bounds=bounds).mechanism(epsilon=10_000)
        found, again = published(mechanism.sample(None, xp.SeededNoise(1))), xp.SeededNoise(1)
        assert found.value == pytest.approx(4.3, abs=0.01)
        assert tuple(mechanism._ends.sample(None, again)) == (found.low, found.high) == (1.0, 7.0)
        mean = winsorized.mean_between(table, mechanism.question.ranks.value, 1.0, 7.0)
        rest = 10_000 - Fraction(str(mechanism._ends.epsilon))
        counted = NoisyStatistics(question=mean, epsilon=rest)
        assert counted.answer_of(counted.sample(None, again), None) == found.value
    tiny = table.winsorized_mean("x", trim=0.2).mechanism(epsilon="1e-11")
    with pytest.raises(InvalidValue):  # before anything is charged
        xp.Ledger(epsilon=1).run(tiny)
    with pytest.raises(InvalidValue, match="below 1/2"):
        table.winsorized_mean("x", trim=0.5, bounds=(0, 9))


@pytest.mark.parametrize("value", [4.0, 1e300, -1e-300, 0.0])
@pytest.mark.parametrize("bounds", [(0, 9), None])
def test_where_all_values_are_the_same_that_is_the_mean(
    connection: duckdb.DuckDBPyConnection, value: float, bounds: Any
) -> None:
    table = xp.read(connection, table="t", unit="row", neighbours="add-remove", key=1)
    fill(connection, [("p", value, 0.0)] * 50)
    mechanism = table.winsorized_mean("x", trim=0.1, bounds=bounds).mechanism(epsilon=10_000)
    found = published(mechanism.sample(None, xp.SeededNoise(1)))
    expected = min(max(value, 0.0), 9.0) if bounds else float(np.float32(min(value, 3.4028234663852886e38)))
    assert found.value == pytest.approx(expected)
    assert found.noise is None  # nothing is known of values beyond
    assert "±" not in mechanism.describe(found)


@given(st.floats(-3e38, 3e38), st.floats(0, 3e38))
def test_no_ends_make_the_second_question_fail(low: float, distance: float) -> None:
    low, high = float(np.float32(low)), float(np.float32(min(low + distance, 3e38)))
    with database() as connection:
        connection.execute("CREATE TABLE t (person VARCHAR, x DOUBLE)")
        connection.execute("INSERT INTO t VALUES ('p', 1.0)")
        table = xp.read(connection, table="t", unit="row", neighbours="add-remove", key=1)
        value = table.winsorized_mean("x", trim=0.1, missing=0).ranks.value
        mean = mean_between(table, value, low, max(low, high))
        if mean is not None:
            counted = NoisyStatistics(question=mean, epsilon=1)
            assert np.isfinite(counted.answer_of(counted.sample(None, xp.SeededNoise(1)), None))


@pytest.mark.parametrize("rows", [[], [("p", None, None)], [("p", float("nan"), float("inf"))], [("p", 1e308, -1e308)]])
def test_no_row_causes_an_error(connection: duckdb.DuckDBPyConnection, rows: Any) -> None:
    connection.execute("DELETE FROM t")
    for row in rows:
        connection.execute("INSERT INTO t VALUES (?, ?, ?)", row)
    units: list[Any] = ["row", xp.Unit("person", rows=2)]
    gone: list[Any] = ["drop", 0]
    for unit, missing in product(units, gone):
        table = xp.read(connection, table="t", unit=unit, neighbours="add-remove", key=1)
        for question in (
            table.variance("x", bounds=(0, 1), missing=missing),
            table.correlation("x", "y", bounds=[(0, 1), (5, 5)], missing=missing),
        ):
            mechanism = question.mechanism(epsilon=1)
            assert np.isfinite(mechanism.answer_of(mechanism.sample(None, xp.SeededNoise(1)), None))
        winsorized = table.winsorized_mean("x", trim=0.25, bounds=(0, 1), missing=missing)
        assert 0 <= winsorized.mechanism(epsilon=1).sample(None, xp.SeededNoise(1)).value <= 1


def test_what_is_publicly_wrong_is_refused(connection: duckdb.DuckDBPyConnection) -> None:
    table = xp.read(connection, table="t", unit="row", neighbours="substitute", key=1)
    with pytest.raises(InvalidValue, match="one pair for each of 2 values, the lowest first, got 1"):
        table.covariance("x", "y", bounds=[(0, 1)])
    with pytest.raises(InvalidValue, match="'drop'"):
        table.variance("x", bounds=(0, 1), missing="gone")
    with pytest.raises(InvalidValue, match="CAST"):
        table.variance("person", bounds=(0, 1))
    with pytest.raises(InvalidValue, match="from 1 to 20"):
        table.regression(["x"] * 20, "y", bounds=[(0, 1)] * 20, target_bounds=(0, 1))
    assert "variance of x (0 … 1), missing 0" in repr(table.variance("x", bounds=(0, 1), missing=0))


SPREADS: dict[str, Callable[[xp.PrivateTable], Any]] = {
    "variance": lambda t: t.variance("x", bounds=(-1, 1), missing=0),
    "covariance": lambda t: t.covariance("x", "y", bounds=[(-1, 1), (-1, 1)], missing=0),
    "correlation": lambda t: t.correlation("x", "y", bounds=[(-1, 1), (-1, 1)], missing=0),
    "regression": lambda t: t.regression(["x"], "y", bounds=(-1, 1), target_bounds=(-1, 1), missing=0),
}


@pytest.mark.parametrize("name", SPREADS)
def test_rows_need_no_order(name: str, tmp_path: Path) -> None:
    """Records whose number is public: a folder of partitions, as Spark, gives them in any order."""
    chance = np.random.default_rng(1)
    x = chance.uniform(-1, 1, 600)
    frame = pd.DataFrame({"x": x, "y": x / 2 + chance.uniform(-0.2, 0.2, 600)})
    for part in range(3):
        (tmp_path / f"part={part}").mkdir()
        frame[part::3].to_parquet(tmp_path / f"part={part}" / "rows.parquet")
    read: dict[str, Any] = {"unit": "row", "neighbours": "substitute"}
    folder = xp.read(tmp_path, partitions={"part": "integer"}, **read)
    assert not folder.ordered
    ledger = xp.Ledger(epsilon=1000, noise=xp.SeededNoise(1))
    found, ours = (ledger.run(SPREADS[name](table), epsilon=200) for table in (folder, xp.read(frame, **read)))
    assert found.charged == ours.charged
    for one, other in zip(found.frame["value"], ours.frame["value"], strict=True):
        assert one == pytest.approx(other, abs=0.01)
