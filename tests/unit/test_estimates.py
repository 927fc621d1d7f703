"""Many published numbers: `Estimates`, `EstimateArray`, and frames with one schema of everything that is published."""

from __future__ import annotations

import copy
import csv
import io
import pickle
import time
from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost import mechanisms as mech
from expost.accounting.losses import GaussianNoise
from expost.estimate import Drawn, Estimate
from expost.estimates import EstimateArray, Estimates, frames_together
from expost.frame import Frame
from expost.mechanism import WITHHELD
from expost.mechanisms.linear.box import LinearFit

pytestmark = pytest.mark.counted
RNG = np.random.default_rng(0)
VALUES = RNG.normal(45, 12, 2000)
PAIRS = np.column_stack([VALUES, 2 * VALUES + RNG.normal(0, 5, 2000)])
ROWS = np.column_stack([VALUES, VALUES > 45]).astype(float)
SCHEMA = ("value", "low", "high", "error")


def run(mechanism: Any, on: Any, **more: Any) -> Any:
    return xp.Ledger(epsilon=1000, delta="0.1", noise=xp.SeededNoise(3)).run(mechanism, on=on, **more)


def laplace(on: Any, sensitivity: float = 1) -> Any:
    return run(xp.Laplace(epsilon=1, sensitivity=sensitivity), on).value


# ---- everything that is published has a frame


KEYED: list[tuple[Any, Any, tuple[str, ...], bool]] = [
    (xp.Laplace(epsilon=1, sensitivity=1), 5, (), True),
    (xp.Laplace(epsilon=1, sensitivity=1), np.array([7, 0, 0]), ("place",), True),
    (xp.Gaussian(epsilon=1, delta=1e-6, sensitivity=1), np.zeros((2, 3)), ("place 0", "place 1"), True),
    (mech.MeanOfRecords(epsilon=1, bounds=(0, 100)), VALUES, (), True),
    (mech.MeanOfRecords(epsilon=4), VALUES, (), True),
    (mech.VarianceOfRecords(epsilon=1, bounds=(0, 100)), VALUES, (), True),
    (mech.TrimmedMean(trim=0.1, epsilon=1, bounds=(0, 100)), VALUES, (), True),
    (mech.CovarianceOfRecords(epsilon=1, bounds=[(0, 100), (0, 200)]), PAIRS, (), True),
    (mech.CorrelationOfRecords(epsilon=1, bounds=[(0, 100), (0, 200)]), PAIRS, (), False),
    (mech.CorrelationOfRecords(epsilon=4), PAIRS, (), False),
    (mech.Histogram(epsilon=1, edges=(0, 40, 100)), VALUES, ("from", "to"), True),
    (mech.Coin(epsilon=1, sensitivity=1, heads=1), 5, (), True),
    (mech.RandomizedResponse(epsilon=1, choices=3), np.array([0, 1, 2]), ("place",), False),
    (xp.PermuteAndFlip(epsilon=1, sensitivity=1), np.array([1, 9]), (), False),
    (mech.MedianOfRecords(epsilon=1, bounds=(0, 100), neighbours="substitute"), VALUES, (), False),
    (
        mech.QuantilesOfRecords(quantiles=(0.25, 0.75), epsilon=1, neighbours="substitute"),
        VALUES,
        ("quantile",),
        False,
    ),
    (mech.InterquartileRange(epsilon=1, bounds=(0, 99), neighbours="substitute"), VALUES, (), False),
    (
        mech.DistributionFunction(points=4, epsilon=1, bounds=(0, 99), neighbours="substitute"),
        VALUES,
        ("share",),
        False,
    ),
    (
        mech.QuantileLadder(quantile="0.5", within=5, epsilon=9, bounds=(0, 99), neighbours="substitute"),
        VALUES,
        (),
        True,
    ),
    (xp.NoiseReduction(epsilon=1, sensitivity=1, until=xp.RelativeError(within="0.1")), 1000, (), True),
    (
        xp.NoiseReduction(epsilon=1, sensitivity=1, until=xp.RelativeError(within="0.1")),
        np.array([1000, 2000]),
        ("place",),
        True,
    ),
    (mech.StableMedian(epsilon=5, delta=1e-6, proposed=1), VALUES, (), True),
    (mech.StableTrimmedMean(trim=0.1, epsilon=5, delta=1e-6, proposed=1), VALUES, (), True),
    (mech.StableInterquartileRange(epsilon=5, delta=1e-6), VALUES, (), False),
    (
        mech.RegressionOfRecords(epsilon=1, bounds=[(0, 100)], target_bounds=(0, 200)),
        PAIRS,
        ("feature",),
        False,
    ),
    (mech.OutputPerturbation(epsilon=1, norm=100), ROWS, ("feature",), False),
    (
        xp.Tuning(
            candidates=[mech.OutputPerturbation(epsilon=1, norm=100)],
            score=mech.CorrectPredictions(),
            held_out=0.3,
        ),
        ROWS,
        ("feature",),
        False,
    ),
    (
        mech.ByGroup(mechanism=mech.MeanOfRecords(epsilon=1, bounds=(0, 100)), groups=("a", "b"), split="record"),
        {"a": VALUES, "b": VALUES},
        ("group",),
        True,
    ),
    (
        mech.ByGroup(
            mechanism=mech.QuantilesOfRecords(
                quantiles=(0.25, 0.75), epsilon=1, bounds=(0, 99), neighbours="add-remove"
            ),
            groups=(1, 2),
            split="value",
        ),
        {1: VALUES, 2: VALUES},
        ("group", "quantile"),
        False,
    ),
]


@pytest.mark.parametrize(("mechanism", "data", "keys", "has_errors"), KEYED, ids=lambda one: type(one).__name__)
def test_all_numbers_have_one_schema(mechanism: Any, data: Any, keys: tuple[str, ...], has_errors: bool) -> None:
    release = run(mechanism, data)
    frame = release.frame
    assert frame.names == ("what", *keys, *SCHEMA)
    for *_, value, low, high, error in frame.rows:
        assert (error is not None) == (low is not None) == (high is not None) == has_errors
        assert not has_errors or low <= value - error * (1 - 1e-9) < value + error * (1 - 1e-9) <= high
    listed = list(csv.reader(io.StringIO(frame.to_csv())))
    assert listed[0] == list(frame.names)
    assert len(listed) == len(frame) + 1
    assert len(frame.to_pandas()) == frame.to_arrow().num_rows == frame.to_polars().height == len(frame)
    assert str(release).endswith("refunded 0") or "refunded" in str(release)
    assert "<table>" in release._repr_html_()
    assert len(repr(release)) <= 120
    if not has_errors and not isinstance(release.value, int | np.ndarray | tuple):
        assert "no error: " in str(frame)


def test_a_mean_is_one_row_and_its_bounds_are_how_it_was_made() -> None:
    """It was five rows, of which four were the bounds, the noise and the level."""
    release = run(mech.MeanOfRecords(epsilon=1, bounds=(0, 100)), VALUES)
    assert release.frame.rows == (("mean", release.output.value, *release.interval(), release.output.noise),)
    value = release.value
    assert issubclass(type(value), float)
    assert release.error == release.output.noise
    assert (value.how, value.how.low, value.how.high) == (release.output, 0, 100)


@pytest.mark.parametrize(
    "mechanism",
    [mech.MeanOfRecords(epsilon=1, bounds=(0, 100)), mech.MeanOfRecords(epsilon=1, bounds=(0, 100), scales=0),
     mech.TrimmedMean(trim=0.25, epsilon=8, bounds=(0, 100))],
)  # fmt: skip
def test_means_know_their_errors_at_every_confidence(mechanism: Any) -> None:
    books, missed, runs = xp.Ledger(epsilon=10**6, noise=xp.SeededNoise(4)), np.zeros(3), 150
    values = np.linspace(20, 80, 500)
    for _ in range(runs):
        one, other = (books.run(mechanism, on=values).value for _ in range(2))
        assert one.interval("0.5")[0] > one.interval()[0] > one.interval("0.99")[0] > -inf
        for place, (made, truth) in enumerate([(one, 50), (one - other, 0), (one / other, 1)]):
            low, high = made.interval("0.9")
            missed[place] += not low - 0.01 <= truth <= high + 0.01
    assert (missed / runs <= 0.1 + 4 * (0.09 / runs) ** 0.5).all()


def test_other_moments_know_theirs_at_95_per_cent_only() -> None:
    release = run(mech.VarianceOfRecords(epsilon=1, bounds=(0, 100)), VALUES)
    assert release.interval("0.9") == release.interval()
    assert release.interval("0.99") == (-inf, inf)


def test_an_array_has_a_row_for_each_number() -> None:
    """It was one row, '[7 0 0]'."""
    release = run(xp.Laplace(epsilon=1, sensitivity=1), np.array([7, 0, 0]))
    assert [row[:3] for row in release.frame.rows] == [
        ("value", place, number) for place, number in enumerate(release.output.tolist())
    ]
    first, *_, last = str(release).splitlines()
    assert first.split() == ["place", "value"]
    assert last.startswith("Laplace: 3 values, all ± 4 at 95 % · reserved ε 1")


def test_models_have_a_row_for_each_coefficient() -> None:
    fit = run(mech.RegressionOfRecords(epsilon=1, bounds=[(0, 100)], target_bounds=(0, 200)), PAIRS)
    assert fit.value == fit.output
    assert fit.frame.to_dict()["what"] == ["intercept", "coefficient"]
    assert fit.frame.to_dict()["feature"] == [None, 0]
    assert fit.frame["value"] == [fit.value.intercept, *fit.value.coefficients]
    errors = LinearFit(1.0, (2.0, 3.0), (0.1, 0.2, 0.3)).frame
    assert [row[:3] for row in errors.rows[3:]] == [
        ("standard error", None, 0.1), ("standard error", 0, 0.2), ("standard error", 1, 0.3),
    ]  # fmt: skip
    two = mech.LinearModel(((1.0, 2.0),), 1.0, False, features=(4, 7)).frame
    assert [row[:3] for row in two.rows] == [("coefficient", 4, 1.0), ("coefficient", 7, 2.0)]
    three = mech.LinearModel(((1.0, 2.0),) * 3, 1.0, True).frame
    assert three.names[:3] == ("what", "class", "feature")
    assert len(three) == 6


def test_keys_and_masks_have_frames_of_their_own() -> None:
    top = xp.TopK(k=2, epsilon=9, delta=1e-6)
    assert run(top, {"a": 900, "b": 500}).frame == Frame(("rank", "label"), ((1, "a"), (2, "b")))
    assert run(top, {("a", 1): 900, ("b", 2): 500}).frame.names == ("rank", "label 1", "label 2")
    assert run(top, {("a", 1): 900, "b": 500}).frame["label"] == ["a, 1", "b"]
    assert run(top, {}).frame.rows == ()
    above = xp.SparseVector(threshold=50, at_most=1, epsilon=1, sensitivity=1)
    assert run(above, np.array([1, 100])).frame["above"] == ["below", "above"]
    each = mech.ByGroup(mechanism=above, groups=("a", "b"), split="record")
    found = run(each, {"a": np.array([1, 100]), "b": np.array([1])}).frame
    assert found.rows == (("a", 0, "below"), ("a", 1, "above"), ("b", 0, "below"))
    with xp.Ledger(epsilon=1).open(above) as ask:
        ask(1)
        ask(100)
    assert ask.release.frame["above"] == ["below", "above"]


def test_what_was_withheld_is_an_empty_cell() -> None:
    median = mech.MedianOfRecords(epsilon=1, neighbours="add-remove")
    few = run(median, VALUES[:3])
    assert few.value is WITHHELD
    assert few.frame.rows == (("median", None, None, None, None),)
    both = run(mech.ByGroup(mechanism=median, groups=("a", "b"), split="value"), {"a": VALUES, "b": VALUES[:3]})
    assert both.value["b"] is WITHHELD
    assert both.frame["value"] == [both.value["a"], None]
    assert len(both.frame.to_pandas()) == 2


def test_transcripts_are_rows_by_level_and_step() -> None:
    books = xp.Ledger(epsilon=10, delta=1e-4)
    with books.open(xp.NoiseReduction(epsilon=1, sensitivity=1), on=100) as answers:
        first, second = answers.refine(), answers.refine()
    release = answers.release
    assert [row[1:3] for row in release.frame.rows] == [(1, first), (2, second)]
    assert release.value[1].error == answers.error_bound(0.95) < release.value[0].error
    walk = xp.Iterative(steps=(GaussianNoise(10),) * 2, stops=(2,), delta=1e-5, sensitivity=1)
    with books.open(walk) as steps:
        for step in steps:
            step(np.array([1.0, 2.0]))
    assert [row[1:3] for row in steps.release.frame.rows] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert "because of what came out" in steps.release.frame.notes[0]
    assert steps.release.value[0].error is None


def test_what_was_chosen_by_looking_has_no_error() -> None:
    mechanism = xp.Laplace(epsilon=1, sensitivity=1, neighbours="substitute")
    tested = run(mech.Tested(mechanism=mechanism, test=Passing()), (5, 5))
    assert (tested.value, tested.error) == (tested.output, None)
    assert "test" in tested.value.why
    arrays = run(mech.Tested(mechanism=mechanism, test=Passing()), (np.array([5, 6]), 5)).value
    assert (arrays.error, arrays[0].error) == (None, None)
    with pytest.raises(xp.InvalidValue, match="test"):
        arrays.interval()


class Passing(mech.ModelTest):
    """Always passes, and says so."""

    epsilon = 1

    def passes(self, output: Any, held_out: Any, noise: Any) -> bool:
        return True


def test_ranks_are_told_where_the_error_is_not_known() -> None:
    release = run(mech.MedianOfRecords(epsilon=1, bounds=(0, 100), neighbours="substitute"), VALUES.astype(int))
    value = release.value
    assert issubclass(type(value), int)
    assert value.why == "it is known in ranks only, off by at most 15 at 95 %"
    mechanism = mech.QuantilesOfRecords(quantiles=(0.25, 0.75), epsilon=1, bounds=(0, 100), neighbours="substitute")
    several = run(mechanism, VALUES)
    assert list(several.value) == [0.25, 0.75]
    assert tuple(several.value.values()) == several.output
    assert mechanism.interval(several.value, 0.5, 0.95, n=2000) == mechanism.interval(several.output, 0.5, 0.95, n=2000)


def test_a_ladder_knows_its_distance_if_it_passed() -> None:
    def climb(**changes: Any) -> Any:
        settings = {"quantile": "0.5", "within": 5, "epsilon": 9, "bounds": (0, 99), "neighbours": "substitute"}
        return run(mech.QuantileLadder(**{**settings, **changes}), VALUES).value

    assert climb().error == 5
    assert climb().how.passed
    assert climb(confidence="0.9").why == "within 5 at 90 % only"
    assert climb(within="0.001", epsilon="0.001").why == "no test was passed"


@pytest.mark.parametrize(
    "mechanism", [xp.Laplace(epsilon=1, sensitivity=1), mech.Histogram(epsilon=1, edges=(0, 1, 2))]
)
def test_coverage_of_arrays(mechanism: Any) -> None:
    """At 90 %, each by itself and all together: no more are missed than a binomial law explains."""
    books, missed, runs = xp.Ledger(epsilon=10**6, noise=xp.SeededNoise(9)), np.zeros(2), 600
    data = np.array([100, 200]) if isinstance(mechanism, xp.Laplace) else np.repeat([0.5, 1.5], [100, 200])
    for _ in range(runs):
        value: Any = books.run(mechanism, on=data).value
        low, high = value.interval("0.9")
        missed[0] += not low[0] <= 100 <= high[0]
        missed[1] += np.abs(value - [100, 200]).max() > value.together("0.9")
    assert (missed / runs <= 0.1 + 4 * (0.09 / runs) ** 0.5).all()


# ---- arrays


def test_arrays_remember_which_noise_is_where() -> None:
    value = laplace(np.array([7, 0, 2, 5]))
    assert (type(value), isinstance(value, np.ndarray)) == (EstimateArray, True)
    assert isinstance(value[0], Estimate)
    assert value.error == value[1].error == 3
    assert repr(value[0] - value[[0, 0]][1]) == "0 ± 0"
    assert (value[[0, 0]][0] + value[[0, 0]][1]).error == 6
    assert (value[0] + value[1]).error < 6
    assert (value[1:][0] - value[1]).error == 0
    assert (value[value > -99][3] - value[-1]).error == 0
    assert (next(iter(value)) - value[0]).error == 0
    assert [row[1] for row in value[::2].frame.rows] == [0, 2]


def test_what_numpy_makes_is_plain() -> None:
    value = laplace(np.array([7, 0, 2]))
    for made in (np.sort(value), value + 1, np.concatenate([value, value]), np.where(value > 0, value, 0), -value):
        assert type(made) is np.ndarray
    assert isinstance(value.sum(), np.integer)
    assert type(np.array(value)) is np.ndarray
    assert np.divmod(value, 2)[0].shape == (3,)
    for made in (value.copy(), value.astype(float), value.reshape(3, 1)):
        assert getattr(made, "error", None) is None
        assert not isinstance(made.ravel()[0], Estimate)
    assert value.tolist() == list(value)
    assert (value == np.array(value)).all()


def test_arrays_cannot_be_written_to() -> None:
    value = laplace(np.array([7, 0, 2]))
    was = value.tolist()
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        value += 1
    with pytest.raises(ValueError, match="read-only"):
        value.sort()
    with pytest.raises(ValueError, match="WRITEABLE"):
        value.flags.writeable = True
    assert value.tolist() == was
    changed = np.array(value)
    changed[0] = 5


def test_outputs_that_change_do_not_change_what_people_read() -> None:
    release = run(xp.Laplace(epsilon=1, sensitivity=1), np.array([7, 0, 2]))
    was = release.value.tolist()
    release.output[0] += 100
    assert release.value.tolist() == was


def test_arrays_of_no_dimension_and_no_numbers() -> None:
    one, none = laplace(np.array(5)), laplace(np.zeros((0, 3), int))
    assert isinstance(one, Estimate)
    assert isinstance(one, int)
    assert one.error == 3
    row = laplace(np.array([5, 6]))[0:1].reshape(())
    assert (row.error, row[()]) == (None, row.tolist())
    assert none.frame.names == ("what", "place 0", "place 1", *SCHEMA)
    assert len(none.frame) == 0
    assert none.together() == none.error
    assert none.interval()[0].shape == (0, 3)


def test_intervals_of_arrays() -> None:
    value = laplace(np.array([7, 0]))
    low, high = value.interval()
    assert (value - low).tolist() == (high - value).tolist() == [3, 3]
    assert (low.dtype.kind, value[0].interval()) == ("i", (low[0], high[0]))
    floats = laplace(np.array([7.5, 0.25]), sensitivity=1.5)
    assert floats.interval()[0].tolist() == [each.interval()[0] for each in floats]
    assert floats.together() > floats.error
    assert floats[[0, 0]].together() == floats.error, "the same draw twice is one draw"


def test_copies_of_arrays_have_the_same_noise() -> None:
    for value in (laplace(np.array([7, 0])), run(mech.Histogram(epsilon=1, edges=(0, 40, 100)), VALUES).value):
        assert copy.copy(value) is copy.deepcopy(value) is value
        again = pickle.loads(pickle.dumps(value))
        assert again.frame == value.frame
        assert repr(again[0] - value[0]) == "0 ± 0"
        assert type(pickle.loads(pickle.dumps(value.copy()))) is np.ndarray
        assert type(copy.deepcopy(value.copy())) is np.ndarray


def test_a_hundred_thousand_numbers() -> None:
    release = run(xp.Laplace(epsilon=1, sensitivity=1), np.zeros(100_000))
    begin = time.process_time()
    assert len(release.frame) == 100_000
    assert time.process_time() - begin < 1  # 0.2 on a quiet machine
    assert "… 100,000 rows in all" in str(release)
    assert len(repr(release.value)) < 1000


# ---- by key


def estimate(value: float, name: str = "entry") -> Estimate:
    return Estimate.of(value, Drawn(name, lambda miss: 3))


@pytest.fixture
def wards() -> Estimates:
    return Estimates.by_key(("ward",), ["A", "B"], "beds", [estimate(5, "a"), estimate(7, "b")].__getitem__)


def test_estimates_are_a_mapping(wards: Estimates) -> None:
    assert wards["A"].error == 3
    assert wards == {"A": 5, "B": 7}
    assert wards != {"A": 5}
    assert (wards == 5) is False
    assert "C" not in wards
    with pytest.raises(KeyError):
        wards["C"]
    assert copy.copy(wards) is copy.deepcopy(wards) is wards
    assert repr(wards) == "{'A': 5 ± 3, 'B': 7 ± 3}"
    assert str(wards).splitlines() == ["ward  beds", "A     5 ± 3", "B     7 ± 3"]


def test_estimates_are_pickled() -> None:
    means = mech.ByGroup(mechanism=mech.MeanOfRecords(epsilon=1, bounds=(0, 100)), groups=("a", "b"), split="record")
    value = run(means, {"a": VALUES, "b": VALUES}).value
    again = pickle.loads(pickle.dumps(value))
    assert again.frame == value.frame
    assert repr(again["a"] - value["a"]) == "0 ± 0"
    several = Estimates(("k",), (("a",), ("a",)), ("n", "m"), [1, 2].__getitem__)
    assert pickle.loads(pickle.dumps(several.of("m"))) == {"a": 2}
    assert several["n"] == {"a": 1}
    assert several["n", "a"] == 1


def test_the_noise_of_groups_is_not_the_same() -> None:
    means = mech.ByGroup(mechanism=xp.Laplace(epsilon=1, sensitivity=1), groups=("a", "b"), split="record")
    value = run(means, {"a": 5, "b": 7}).value
    assert 3 < (value["a"] - value["b"]).error < 6
    assert (value["a"] - value["a"]).error == 0


def test_many_estimates_show_the_first(wards: Estimates) -> None:
    many = Estimates.by_key(("k",), range(10_000), "n", lambda row: estimate(row, f"{row}"))
    assert str(many).splitlines()[-1] == "… 10,000 rows in all"
    assert len(str(many).splitlines()) == 22
    assert "10,000 rows" in many._repr_html_()
    assert repr(many).endswith(", …}")
    none = Estimates.by_key(("k",), [], "n", [].__getitem__)
    assert (repr(none), none == {}, len(none.frame)) == ("{}", True, 0)
    assert str(none).split() == ["what", "k", "value"]
    assert none._repr_html_().count("<td>") == 0


def test_keys_called_like_columns_keep_a_column() -> None:
    named = Estimates.by_key(("value",), ["x"], "n", [estimate(1)].__getitem__)
    assert named.frame.names == ("what", "value (key)", *SCHEMA)
    assert named.frame.to_dict()["value (key)"] == ["x"]


def test_frames_of_several_kinds_are_put_together() -> None:
    one = Estimates.by_key(("k",), ["x"], "n", [estimate(1)].__getitem__).frame
    empty = Frame(("what", *SCHEMA), (("n", None, None, None, None),))
    both = frames_together("group", {"a": one, "b": empty})
    assert both.names == ("what", "group", "k", *SCHEMA)
    assert [row[:4] for row in both.rows] == [("n", "a", "x", 1), ("n", "b", None, None)]
    assert len(frames_together("group", {})) == 0


# ---- frames


CELLS: list[tuple[Any, Any, str]] = [
    (3, 0, "3 ± 0"),
    (3, None, "3"),
    (None, None, ""),
    (1e300, 1e299, "1e+300 ± 1e+299"),
    (inf, 1.0, "inf ± 1"),
    (nan, None, "nan"),
    (-0.01, 4.5, "0.0 ± 4.5"),
    (1.0, 1e-320, "1 ± 1e-320"),
    (12.3456, inf, "12.35 ± ∞"),
    (10**30, 5, "1e+30 ± 5"),
]


@pytest.mark.parametrize(("value", "error", "text"), CELLS)
def test_cells(value: Any, error: Any, text: str) -> None:
    low, high = (None, None) if error is None else (value - error, value + error)
    frame = Frame(("what", "Ort", *SCHEMA), (("n", "Zürich <b>", value, low, high, error),))
    assert str(frame).splitlines()[1].removeprefix("Zürich <b>").strip() == text
    assert "Zürich &lt;b&gt;" in frame.html()
    (row,) = csv.DictReader(io.StringIO(frame.to_csv()))
    assert (row["Ort"], row["error"]) == ("Zürich <b>", "" if error is None else f"{error}")


PLOTS: list[tuple[Callable[[], Any], str]] = [
    (lambda: run(mech.Histogram(epsilon=1, edges=(0, 40, 100)), VALUES), "bars"),
    (lambda: run(xp.Laplace(epsilon=1, sensitivity=1.5), np.zeros(3)), "dots"),
    (
        lambda: run(mech.MedianOfRecords(epsilon=1, bounds=(0, 99), neighbours="substitute"), VALUES.astype(int)),
        "dots",
    ),
]


@pytest.mark.parametrize(("publish", "kind"), PLOTS)
def test_counts_are_bars_and_all_others_dots(publish: Callable[[], Any], kind: str) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    release = publish()
    axes = release.plot()
    assert bool(axes.patches) == (kind == "bars")
    assert ("95 %" in axes.get_title(loc="left")) == any(error is not None for error in release.frame["error"])
    assert axes.get_ylabel() == ", ".join(release.frame.names[1:-4]) or axes.get_xlabel() == "from, to"
    pyplot.close("all")


def test_intervals_without_ends_and_thousands_of_rows_are_plotted() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    wide = Frame(("what", "k", *SCHEMA), (("n", "a", 1.5, -inf, inf, inf), ("n", "b", 2.0, 1.0, 3.0, 1.0)))
    wide.plot().figure.canvas.draw()
    many = run(xp.Laplace(epsilon=1, sensitivity=1), np.zeros(3000, int)).plot()
    assert not many.get_yticks().size
    assert many.figure.get_size_inches()[1] <= 40
    pyplot.close("all")


# ---- releases


def test_releases_are_equal_by_what_was_published() -> None:
    books = xp.Ledger(epsilon=10)
    means = mech.ByGroup(mechanism=xp.Laplace(epsilon=1, sensitivity=1), groups=("a", "b"), split="record")
    first = books.run(means, on={"a": 5, "b": 7}, key="k")
    again = books.run(means, on={"a": 5, "b": 7}, key="k")
    assert again.replayed
    assert first.output == again.output
    assert first.value == again.value
    assert repr(first.value["a"] - again.value["a"]) == "0 ± 0"
    assert first != books.run(means, on={"a": 5, "b": 7})


def test_releases_are_short_in_a_shell() -> None:
    release = run(xp.Laplace(epsilon=1, sensitivity=1), np.zeros(1000, int))
    assert repr(release) == "<Laplace: 1000 values, all ± 10 at 95 %, entry 1 of 'ledger', settled>"
    assert str(release).count("\n") == 22
    one = run(xp.Laplace(epsilon=1, sensitivity=1), 5)
    assert str(one).count("\n") == 0


def test_numbers_are_plain_where_python_wants_them_plain() -> None:
    whole, real = run(xp.Laplace(epsilon=1, sensitivity=1), 5).value, laplace(2.5, sensitivity=1.5)
    assert [type(each) for each in (int(whole), float(whole), round(whole), whole.value)] == [int, float, int, int]
    assert [type(each) for each in (int(real), float(real), round(real), round(real, 1))] == [int, float, int, float]
    assert (f"{whole:d}", f"{real:.1f}") == (str(whole.value), f"{real.value:.1f}")
    assert (whole == whole.value, hash(whole) == hash(whole.value), {whole: 1}[whole.value]) == (True, True, 1)
    assert EstimateArray.of(np.array([1]), "x").why == "how far noise moved it is not known"
