"""Statistics of arrays, lists, series and frames: the same class, the same answers, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import expost as xp
from expost import questions as q
from expost.errors import InvalidValue

AGES = np.random.default_rng(5).normal(44, 12, 4000)
SAME: dict[str, Any] = {
    "array": AGES,
    "list": AGES.tolist(),
    "tuple": tuple(AGES.tolist()),
    "series": pd.Series(AGES, name="age"),
    "polars series": pl.Series("age", AGES),
    "frame": pd.DataFrame({"age": AGES}),
    "column": AGES.reshape(-1, 1),
}


def ledger(**said: Any) -> xp.Ledger:
    return xp.Ledger(**{"epsilon": 100, "delta": 1e-6, "neighbours": "add-remove", "noise": xp.SeededNoise(1), **said})


@pytest.mark.parametrize("kind", SAME)
def test_the_same_statistic_of_every_kind_of_records(kind: str) -> None:
    found = [ledger().run(q.Mean(bounds=(0, 100)), on=data, epsilon=1) for data in (AGES, SAME[kind])]
    assert found[0].value == found[1].value
    assert found[1].value.error < 1
    low, high = found[1].interval(0.999)
    assert low < AGES.mean() < high


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize(
    ("asked", "true"),
    [
        (q.Sum(bounds=(0, 100)), AGES.sum()),
        (q.Mean(bounds=(0, 100)), AGES.mean()),
        (q.Mean(), AGES.mean()),
        (q.Variance(bounds=(0, 100)), AGES.var()),
        (q.Median(bounds=(0, 100)), np.median(AGES)),
        (q.Quantile(quantile=0.9, bounds=(0, 100)), np.quantile(AGES, 0.9)),
    ],
    ids=repr,
)
def test_answers_are_near_the_truth(asked: Any, true: float, relation: Any) -> None:
    value = ledger(neighbours=relation).run(asked, on=AGES, epsilon=5).value
    assert abs(value - true) < 0.02 * abs(true) + 3


def test_statistics_of_several_columns() -> None:
    both = np.column_stack([AGES, 2 * AGES])
    book, ends = ledger(), [(0, 100), (0, 200)]
    assert abs(book.run(q.Correlation(bounds=ends), on=both, epsilon=20).value - 1) < 0.05
    assert abs(book.run(q.Ratio(bounds=ends), on=both, epsilon=20).value - 0.5) < 0.01
    fit = book.run(q.LinearRegression(bounds=[(0, 100)], target_bounds=(0, 200)), on=both, epsilon=20).value
    assert abs(fit.coefficients[0] - 2) < 0.1
    frame = pd.DataFrame({"age": AGES, "twice": 2 * AGES})
    named = book.run(q.Covariance(["age", "twice"], bounds=ends), on=frame, epsilon=20)
    assert named.value.error < 20
    assert abs(book.run(q.Count(), on=both, epsilon=20).value - 4000) < 5


def test_a_target_that_is_named_is_the_target() -> None:
    """Of the first of two columns it was answered about the last one."""
    frame = pd.DataFrame({"cost": 2 * AGES, "age": AGES, "years": AGES - 20})
    ends = [(0, 100)] * 2
    asked = q.LinearRegression(target="cost", bounds=ends, target_bounds=(0, 200))
    release = ledger().run(asked, on=frame, epsilon=50)
    assert release.value.features == ("age", "years")
    assert release.value.what == "regression of cost"
    last = ledger().run(q.LinearRegression(bounds=[(0, 200), (0, 100)], target_bounds=(0, 100)), on=frame, epsilon=50)
    assert (last.value.features, last.value.what) == (("cost", "age"), "regression of years")


def test_the_same_statistic_of_a_table_and_of_its_groups() -> None:
    frame = pd.DataFrame({"ward": ["A", "B"] * 2000, "age": AGES})
    table = xp.read(frame, unit="row", neighbours="add-remove", key=1)
    mean = q.Mean("age", bounds=(0, 100))
    assert ledger().run(mean, on=table, epsilon=1).value == ledger().run(table.asked(mean), epsilon=1).value
    wards = table.by("ward", keys=["A", "B"])
    assert {*ledger().run(mean, on=wards, epsilon=1).value} == {"A", "B"}
    several = wards.agg(n=q.Count(), age=mean, middle=q.Median("age", bounds=(0, 100)))
    assert several == wards.agg(n=wards.count(), age=wards.mean("age", bounds=(0, 100)),
                                middle=wards.median("age", bounds=(0, 100)))  # fmt: skip


def test_a_ledger_says_whose_records_are() -> None:
    book = xp.Ledger(epsilon=10, neighbours="add-remove", unit="patient")
    book.run(q.Count(), on=AGES, epsilon=1)
    assert book.unit == "patient"
    with pytest.raises(InvalidValue, match=r"Ledger\(…, neighbours='add-remove'\)"):
        xp.Ledger(epsilon=1).run(q.Count(), on=AGES, epsilon=1)


def test_what_is_no_number_in_a_list_is_missing() -> None:
    """Types of a list's entries are private, too: none is an error, and none changes what the others are."""
    odd: list[Any] = [1.0, None, "seven", float("nan"), 10**400, object(), 3]
    book = ledger()
    release = book.run(q.Sum(bounds=(0, 10)), on=odd, epsilon=90)
    assert abs(release.value - (1 + 10 + 3)) < 2


class _Own(int):
    """A number that says who it is when it is read."""

    def __float__(self) -> float:
        raise RuntimeError("patient 7")

    def __gt__(self, other: object) -> bool:
        raise RuntimeError("patient 7")


@pytest.mark.parametrize(
    "odd",
    [_Own(3), np.timedelta64(1, "s"), np.datetime64("2020"), 1 + 2j, np.complex128(1 + 2j), np.str_("3"), [4], "9",
     Decimal("sNaN"), np.longdouble("1e400"), type("Odd", (float,), {"__float__": lambda _: 1 / 0})(3)],
    ids=repr,
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_no_entry_of_a_list_runs_code_fails_or_warns(odd: Any) -> None:
    """An error before the charge would tell for free who is in the list."""
    release = ledger(epsilon=20).run(
        q.Sum(bounds=(0, 10)), on=[1.0, odd, Decimal(2), True, np.float32(4), -(10**400)], epsilon=20
    )
    assert abs(release.value - 8) < 2


@pytest.mark.parametrize("kind", [">f8", ">i4", "<u2", "f2"])
def test_arrays_of_any_order_of_bytes(kind: str) -> None:
    found = [ledger().run(q.Sum(bounds=(0, 100)), on=np.array([3, 40], own), epsilon=9).value for own in (kind, "f8")]
    assert abs(found[0] - found[1]) < 10
    both = np.array([[1, 2], [3, 4]], kind)
    assert ledger().run(q.Sum("value1", bounds=(0, 100)), on=both, epsilon=99).value == pytest.approx(6, abs=5)


@pytest.mark.filterwarnings("error")
def test_a_lazy_frame_is_collected_without_a_warning() -> None:
    lazy = pl.DataFrame({"age": AGES}).lazy()
    assert ledger(epsilon=20).run(q.Mean(bounds=(0, 100)), on=lazy, epsilon=9).value.error < 1


def test_an_index_is_a_series() -> None:
    assert ledger().run(q.Sum(bounds=(0, 100)), on=pd.Index(AGES), epsilon=9).value > 0


@pytest.mark.parametrize(
    ("asked", "on", "words"),
    [
        (q.Mean(bounds=(0, 1)), None, "on= is missing"),
        (q.Mean(bounds=(0, 1)), "ages.csv", r"xp\.read"),
        (q.Mean(bounds=(0, 1)), {"age": [1, 2]}, "got a dict"),
        (q.Mean(bounds=(0, 1)), np.zeros((3, 2)), "one column, and there are 2"),
        (q.Mean(bounds=(0, 1)), np.array(["a"]), "make a frame"),
        (q.Covariance(bounds=[(0, 1)] * 2), np.zeros((3, 3)), "of two columns, got 3"),
        (q.Mean("cost", bounds=(0, 1)), AGES, "cost"),
        (q.Sum(), AGES, "pass bounds"),
    ],
)
def test_mistakes_cost_nothing_and_say_what_to_do(asked: Any, on: Any, words: str) -> None:
    book = ledger()
    with pytest.raises(InvalidValue, match=words):
        book.run(asked, on=on, epsilon=1)
    assert list(book.entries()) == []


def test_a_table_needs_to_know_which_column() -> None:
    table = xp.read(pd.DataFrame({"age": AGES}), unit="row", neighbours="add-remove")
    with pytest.raises(InvalidValue, match="of which column is the mean"):
        table.asked(q.Mean(bounds=(0, 1)))
    with pytest.raises(InvalidValue, match="a list of columns"):
        q.LinearRegression("years", "cost", bounds=[(0, 1)], target_bounds=(0, 1))  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=r"such as xp\.Count\(\)"):
        table.asked("mean")  # type: ignore[arg-type]


def test_settings_are_what_was_said() -> None:
    assert q.Count().settings() == {}
    assert q.Mean("cost", bounds=[0, 9], missing=0).settings() == {"column": "cost", "bounds": [0, 9], "missing": 0}  # type: ignore[arg-type]
    assert q.Mean("cost", bounds=[0, 9]) == q.Mean("cost", bounds=(0, 9))  # type: ignore[arg-type]
    assert hash(q.Ratio(["a", "b"], bounds=[[0, 1], [0, 1]])) == hash(q.Ratio(("a", "b"), bounds=((0, 1), (0, 1))))  # type: ignore[list-item]


MECHANISMS: list[Any] = [
    xp.Laplace(epsilon=1, sensitivity=1.5),
    xp.SparseVector(threshold=50, at_most=3, epsilon=1, sensitivity=1),
    xp.mechanisms.MeanOfRecords(epsilon=1, bounds=(0, 100)),
    xp.mechanisms.MedianOfRecords(epsilon=1, bounds=(0, 100), neighbours="substitute"),
    xp.mechanisms.StableMedian(epsilon=1, delta=1e-7, proposed=5),
]


@pytest.mark.parametrize("kind", ["list", "tuple", "series", "polars series", "frame"])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: type(one).__name__)
def test_mechanisms_for_arrays_read_what_is_like_one(mechanism: Any, kind: str) -> None:
    """Before, all of them said: try np.asarray(…)."""
    found = [ledger(neighbours="substitute").run(mechanism, on=data).output for data in (AGES, SAME[kind])]
    assert np.array_equal(np.asarray(found[0], object), np.asarray(found[1], object))


def test_a_frame_of_several_columns_is_an_array_of_rows() -> None:
    frame = pd.DataFrame({"age": AGES, "twice": 2 * AGES})
    fit = xp.mechanisms.LeastSquares(epsilon=20, bounds=[(0, 100)], target_bounds=(0, 200))
    assert abs(ledger(neighbours="substitute").run(fit, on=frame).value.coefficients[0] - 2) < 0.1


@pytest.mark.parametrize("make", [lambda v: pd.Series(v, dtype="Int64"), lambda v: pl.Series(v, dtype=pl.Int64)])
def test_a_missing_value_changes_no_dtype(make: Any) -> None:
    """Of nullable columns whole numbers would be floats, or objects, only if one is missing."""
    laplace = xp.Laplace(epsilon=1, sensitivity=1)
    found: list[Any] = [ledger().run(laplace, on=make(values)).output for values in ([1, 2, 3], [1, None, 3])]
    assert {(each.dtype, each.shape) for each in found} == {(np.dtype(np.float64), (3,))}
    with pytest.raises(InvalidValue, match="numeric data is"):
        ledger().run(laplace, on=pl.Series(["a", "b"]))  # type: ignore[misc]


def test_no_entry_of_a_list_changes_how_the_others_are_read() -> None:
    """Whole numbers and floats are private in a list: noise must not depend on which there are."""
    laplace = xp.Laplace(epsilon=1, sensitivity=1)
    for odd in (3, 3.5, None, "x", object()):
        found: Any = ledger().run(laplace, on=[1, odd, 2]).output
        assert (found.dtype, found.shape) == (np.float64, (3,))


def test_several_statistics_of_a_whole_table_in_one_charge() -> None:
    table = xp.read(pd.DataFrame({"age": AGES}), unit="row", neighbours="add-remove", key=1)
    asked = table.agg(n=q.Count(), age=q.Mean("age", bounds=(0, 100)), middle=q.Median("age", bounds=(0, 100)))
    release = ledger().run(asked, epsilon=9)
    assert release.reserved == xp.Cost(9)
    assert abs(release.value["n"] - 4000) <= release.value["n"].error + 2
    assert abs(release.value["age"] - AGES.mean()) < 1
    assert abs(release.value["middle"] - np.median(AGES)) < 1
    for wrong, words in (
        ({}, "at least one"),
        ({"n": table.count()}, "write it without the table"),
        ({"n": 3}, "a int"),
    ):
        with pytest.raises(InvalidValue, match=words):
            table.agg(**wrong)
    with pytest.raises(InvalidValue, match="interval"):
        table.agg(middle=q.Median("age", interval=True), n=q.Count())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: q.Mean("age", bounds=np.array([0, 100])), "bounds is a setting"),  # type: ignore[arg-type]
        (lambda: q.Mean("age", bounds=(0, 1), missing=np.array([0, 1])), "missing is a setting"),  # type: ignore[arg-type]
        (lambda: q.Mean(AGES, bounds=(0, 1)), r"column is a setting.*data goes into on="),  # type: ignore[arg-type]
        (lambda: q.Mean(pd.Series(AGES), bounds=(0, 1)), "column is a setting"),  # type: ignore[arg-type]
        (lambda: q.Covariance(pd.Index(["a", "b"]), [(0, 1)] * 2), r"columns=list\(names\)"),  # type: ignore[arg-type]
        (lambda: q.Covariance(bounds=[np.array([0, 1])] * 2), "bounds is a setting"),  # type: ignore[list-item]
        (lambda: q.Count(np.array(["rows"])), "of is a setting"),  # type: ignore[arg-type]
    ],
)
def test_an_array_is_no_setting(make: Any, words: str) -> None:
    """It may be private, so its values are not quoted; and comparing it would fail for its own reasons."""
    with pytest.raises(InvalidValue, match=words) as found:
        make()
    assert str(AGES[0])[:6] not in str(found.value)


@pytest.mark.parametrize("bounds", [5, 1.5, True, object(), {0, 1}, "01"])
@pytest.mark.parametrize("kind", [q.Ratio, q.Covariance, q.Correlation])
def test_bounds_of_two_columns_are_pairs(kind: Any, bounds: Any) -> None:
    book, table = ledger(), xp.read(pd.DataFrame({"a": AGES, "b": AGES}), unit="row", neighbours="add-remove")
    for on in (table, table.by("a > 3", keys=[True])):
        with pytest.raises(InvalidValue, match="bounds are a pair for each column, such as"):
            book.run(kind(("a", "b"), bounds=bounds), on=on, epsilon=1)
    assert list(book.entries()) == []


def test_missing_that_no_float_holds() -> None:
    with pytest.raises(InvalidValue, match="missing must fit a float"):
        ledger().run(q.Variance(bounds=(0, 1), missing=10**400), on=AGES, epsilon=1)
