"""Every answer of a table is an estimate, or many of one schema: of each kind of question, and what its error says."""

from __future__ import annotations

import csv
import io
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import expost as xp
from expost.data.answers import Reached
from expost.data.lost import LostShare, LostShares
from expost.estimate import Estimate
from expost.estimates import Estimates
from expost.frame import NUMBERS, WHAT
from expost.noise.sums import LaplaceSteps

Table = Any
CITIES, BOTH = ["a", "b"], [(0, 100), (0, 50)]
NUMBER: dict[str, Callable[[Table], Any]] = {
    "count": lambda t: t.where("x > 1").count().mechanism(epsilon=1),
    "count of units": lambda t: t.where("x > 1").count(of="units").mechanism(epsilon=1),
    "sum": lambda t: t.sum("x", bounds=(0, 100)).mechanism(epsilon=1),
    "sum, gaussian": lambda t: t.sum("x", bounds=(0, 100)).mechanism(epsilon=1, delta=1e-6, noise="gaussian"),
    "sum, reduced": lambda t: t.sum("x", bounds=(0, 100)).mechanism(epsilon=1, within="10 %"),
    "mean": lambda t: t.mean("x", bounds=(0, 100)).mechanism(epsilon=1),
    "mean, missing": lambda t: t.mean("x", bounds=(0, 100), missing=0).mechanism(epsilon=1),
    "mean without bounds": lambda t: t.mean("x").mechanism(epsilon=8),
    "winsorised": lambda t: t.winsorized_mean("x", trim=0.05, bounds=(0, 1000)).mechanism(epsilon=1),
    "median": lambda t: t.median("x", bounds=(0, 100)).mechanism(epsilon=1),
    "variance": lambda t: t.variance("x", bounds=(0, 100)).mechanism(epsilon=1),
    "variance, missing": lambda t: t.variance("x", bounds=(0, 100), missing=0).mechanism(epsilon=1),
    "variance without bounds": lambda t: t.variance("x").mechanism(epsilon=8),
    "covariance": lambda t: t.covariance("x", "y", bounds=BOTH, missing=0).mechanism(epsilon=1),
    "correlation": lambda t: t.correlation("x", "y", bounds=BOTH, missing=0).mechanism(epsilon=1),
}
MANY: dict[str, Callable[[Table], Any]] = {
    "histogram": lambda t: t.histogram("city", keys=CITIES).mechanism(epsilon=1),
    "histogram, gaussian": lambda t: t.histogram("city", keys=CITIES).mechanism(
        epsilon=1, delta=1e-6, noise="gaussian"
    ),
    "histogram, reduced": lambda t: t.histogram("city", keys=CITIES).mechanism(epsilon=1, within="10 %"),
    "bins": lambda t: t.histogram("x", bins=4, bounds=(0, 100), of="units").mechanism(epsilon=1),
    "a column called value": lambda t: t.derive(value="city").histogram("value", keys=CITIES).mechanism(epsilon=1),
    "discovered": lambda t: t.discover("city").mechanism(epsilon=1, delta=1e-5),
    "quantiles": lambda t: t.quantile("x", [0.25, 0.75], bounds=(0, 100)).mechanism(epsilon=1),
    "lost": lambda t: t.lost("x", bounds=(0, 40)).mechanism(epsilon=1),
    "groups": lambda t: answers(t.by("city", CITIES)),
    "groups of two": lambda t: answers(t.by("city", "x > 50", keys={"city": CITIES, "x > 50": [True, False]})),
    "groups, discovered": lambda t: answers(t.by("city"), delta=1e-5),
    "groups, one statistic": lambda t: t.by("city", CITIES).agg(n=t.by("city", CITIES).count()).mechanism(epsilon=1),
    "asked": lambda t: t.by("city", CITIES).ask(lambda g: g.mean("x", bounds=(0, 9))).mechanism(epsilon=2),
    "asked for cells": lambda t: (
        t.by("city", CITIES).ask(lambda g: g.histogram("city", keys=CITIES)).mechanism(epsilon=2)
    ),
    "asked for shares": lambda t: t.by("city", CITIES).ask(lambda g: g.lost("x", bounds=(0, 40))).mechanism(epsilon=2),
}
KEYS: dict[str, Callable[[Table], Any]] = {
    "top": lambda t: t.discover("city").top(2).mechanism(epsilon=1, delta=1e-5),
    "regression": lambda t: t.regression(["x"], "y", bounds=BOTH[:1], target_bounds=BOTH[1]).mechanism(epsilon=1),
    "regressions": lambda t: (
        t.by("city", CITIES)
        .ask(lambda g: g.regression(["x"], "y", bounds=BOTH[:1], target_bounds=BOTH[1]))
        .mechanism(epsilon=2)
    ),
}


def answers(groups: Any, **more: Any) -> Any:
    return groups.agg(
        total=True, n=groups.count(), people=groups.count(of="units"), s=groups.sum("x", bounds=(0, 100)),
        m=groups.mean("x", bounds=(0, 100)), v=groups.variance("x", bounds=(0, 100)),
        middle=groups.median("x", bounds=(0, 100)), q=groups.quantile("x", [0.25, 0.75], bounds=(0, 100)),
    ).mechanism(epsilon=8, **more)  # fmt: skip


@pytest.fixture(scope="module")
def data() -> pd.DataFrame:
    chance = np.random.default_rng(1)
    return pd.DataFrame(
        {"p": np.arange(4000) // 2, "city": chance.choice(CITIES, 4000, p=[0.75, 0.25]),
         "x": chance.normal(50, 10, 4000), "y": chance.uniform(0, 50, 4000)}
    )  # fmt: skip


@pytest.fixture(scope="module")
def tables(data: pd.DataFrame) -> dict[str, xp.PrivateTable]:
    people = xp.Unit("p", rows=2, groups=2)
    return {
        "rows": xp.read(data, unit="row", neighbours="substitute", size=len(data), key=1),
        "people": xp.read(data, unit=people, neighbours="add-remove", key=1),
    }


def run(mechanism: Any, seed: int = 1, **more: Any) -> Any:
    return xp.Ledger(epsilon=1000, delta=1e-2, noise=xp.SeededNoise(seed)).run(mechanism, **more)


def asked(name: str, table: xp.PrivateTable) -> Any:
    try:
        return {**NUMBER, **MANY, **KEYS}[name](table)
    except xp.InvalidValue as refused:  # pragma: no cover - says which question is not asked of this table
        pytest.fail(f"{name}: {refused}")


@pytest.mark.parametrize("of", ["rows", "people"])
@pytest.mark.parametrize("name", [*NUMBER, *MANY, *KEYS])
def test_every_answer_has_one_schema(tables: dict[str, xp.PrivateTable], of: str, name: str) -> None:
    of = "people" if name == "count of units" else of
    release = run(asked(name, tables[of]))
    frame = release.frame
    assert frame.names[0] == WHAT
    assert frame.names[-4:] == NUMBERS
    assert len(set(frame.names)) == len(frame.names)
    assert set(map(type, frame["what"])) == {str}
    assert frame.to_pandas().shape == (len(frame.rows), len(frame.names))
    read = list(csv.reader(io.StringIO(frame.to_csv())))
    assert tuple(read[0]) == frame.names
    assert read[1:] == [["" if cell is None else str(cell) for cell in row] for row in frame.rows]
    for row in frame.rows:
        value, low, high, error = row[-4:]
        assert (low is None) == (high is None) == (error is None)
        assert error is None or low <= value <= high
        assert error is not None or frame.notes or name == "top"
    assert str(frame)
    assert "<table>" in release._repr_html_()
    assert str(pickle.loads(pickle.dumps(release.value))) == str(release.value)


@pytest.mark.parametrize("of", ["rows", "people"])
@pytest.mark.parametrize("name", NUMBER)
def test_a_number_is_an_estimate(tables: dict[str, xp.PrivateTable], of: str, name: str) -> None:
    of = "people" if name == "count of units" else of
    release = run(asked(name, tables[of]))
    value = release.value
    assert isinstance(value, Estimate)
    assert isinstance(float(value), float)
    assert release.error == value.error
    assert repr(value - value) == "0 ± 0" or value.why or value - value == 0
    if value.why:
        assert value.error is None
        assert value.why in str(release.frame)
    else:
        low, high = value.interval(0.95)
        assert low <= value <= high
        assert value.error > 0


@pytest.mark.parametrize("of", ["rows", "people"])
@pytest.mark.parametrize("name", MANY)
def test_many_numbers_are_estimates_by_key(tables: dict[str, xp.PrivateTable], of: str, name: str) -> None:
    release = run(asked(name, tables[of]))
    assert isinstance(release.value, Estimates)
    for one in release.value.values():
        assert isinstance(one, Estimate)
        assert isinstance(float(one), float)
        if not one.why:
            low, high = one.interval(0.95)
            assert low <= one <= high


# ---- what was wrong before


def test_a_variance_is_one_thing_under_either_relation(tables: dict[str, xp.PrivateTable]) -> None:
    """Before, it was a float under add-remove and a named tuple under substitution."""
    for table in tables.values():
        value = run(table.variance("x", bounds=(0, 100), missing=0).mechanism(epsilon=8)).value
        assert isinstance(value, Estimate)
        assert abs(value - 100) < 60


def test_a_mean_of_a_table_has_an_error(tables: dict[str, xp.PrivateTable], data: pd.DataFrame) -> None:
    """Before, it had one by group and in a study, but not here."""
    for table in tables.values():
        release = run(table.mean("x", bounds=(0, 100)).mechanism(epsilon=1))
        assert 0 < release.error < 3
        low, high = release.interval(0.99)
        assert high - low > 2 * release.error
        assert low < data["x"].clip(0, 100).mean() < high
        assert abs(release.value.how.values - 4000) < 50


def test_groups_and_histograms_show_their_values(tables: dict[str, xp.PrivateTable]) -> None:
    histogram = run(tables["people"].histogram("city", keys=CITIES, other=None).mechanism(epsilon=10))
    assert str(histogram.frame).splitlines()[0].split() == ["city", "rows"]
    assert "±" in str(histogram.value)
    groups = tables["people"].by("city", CITIES)
    cells = run(groups.agg(total=True, n=groups.count()).mechanism(epsilon=1)).frame
    assert [line.split()[0] for line in str(cells).splitlines()] == ["city", "a", "b", "total"]


def test_quantiles_say_how_far_off_they_are(tables: dict[str, xp.PrivateTable]) -> None:
    mechanism = tables["rows"].median("x", bounds=(0, 100), missing=0).mechanism(epsilon=1)
    value, ranks = run(mechanism).value, mechanism.error_bound("0.95")
    assert f"within {ranks} ranks ({100 * ranks / 4000:.2g} % of the rows) at 95 %" in value.why
    private = run(tables["people"].median("x", bounds=(0, 100)).mechanism(epsilon=1)).value
    assert "of the rows" not in private.why
    assert "ranks at 95 %" in private.why


# ---- what errors say


def test_two_cells_are_independent_and_one_cancels(tables: dict[str, xp.PrivateTable]) -> None:
    mechanism = tables["people"].histogram("city", keys=CITIES).mechanism(epsilon="0.1")
    cells = run(mechanism).value
    assert (cells["a"] - cells["a"]).error == 0
    one, apart = cells["a"].error, (cells["a"] - cells["b"]).error
    assert one < apart < 2 * one
    balanced = run(tables["rows"].histogram("city", keys=CITIES).mechanism(epsilon="0.1")).value
    assert (balanced["a"] - balanced["b"]).error > 2 * balanced["a"].error  # nobody says that they are independent
    assert sum(balanced.values()) == 4000


def test_a_total_is_the_sum_of_its_groups(tables: dict[str, xp.PrivateTable]) -> None:
    groups = tables["people"].by("city", CITIES)
    value = run(
        groups.agg(total=True, n=groups.count(), m=groups.mean("x", bounds=(0, 100))).mechanism(epsilon=1)
    ).value
    counts = value["n"]
    assert counts.all_together == counts["a"] + counts["b"] == value.all_together["n"]
    assert (counts.all_together - counts["a"] - counts["b"]).error == 0
    assert counts.all_together.error == (counts["a"] + counts["b"]).error
    assert value["m"].all_together.error > 0
    assert list(counts) == CITIES
    wide = tables["people"].by("p", keys=range(400))
    many = run(wide.agg(total=True, n=wide.count()).mechanism(epsilon=1))
    each = many.value[0].error
    assert 2 * each < many.value.all_together.error < 400 * each


def test_what_small_groups_withhold_is_withheld(tables: dict[str, xp.PrivateTable]) -> None:
    groups = tables["people"].by("city", ["a", "nowhere"])
    release = run(groups.agg(middle=groups.median("x"), n=groups.count()).mechanism(epsilon=1))
    assert release.value["middle"]["nowhere"] is xp.WITHHELD
    assert release.frame.rows[1] == ("middle", "nowhere", None, None, None, None)


def test_an_interval_that_is_known_at_95_percent_only() -> None:
    share = LostShares(LostShare(0.2, 0.1, 0.4), LostShare(0, 0, 0.1), None).estimates["values below the bounds"]
    assert share.interval(0.95) == share.interval(0.5) == (0.1, 0.4)
    assert share.interval(0.99) == (-np.inf, np.inf)
    assert share.error == 0.2


def test_a_stored_answer_is_the_same(tables: dict[str, xp.PrivateTable], tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/b.db"
    made = xp.Ledger.create(url, "x", epsilon=100, delta=1e-2, unit="p", neighbours="add-remove")
    for name in (
        "mean",
        "histogram",
        "discovered",
        "lost",
        "groups",
        "asked",
        "quantiles",
        "regression",
        "sum, reduced",
    ):
        mechanism = asked(name, tables["people"])
        first = made.run(mechanism, key=name)
        again = xp.Ledger.load(url, "x").run(mechanism, key=name)
        assert again.replayed
        assert again.output == first.output
        assert again.frame == first.frame


# ---- coverage, by redrawing noise


def coverage(release: Callable[[int], Any], truth: dict[Any, float], runs: int, confidence: float) -> float:
    """The largest share of intervals, of one key, that miss the truth."""
    missed = dict.fromkeys(truth, 0)
    for seed in range(runs):
        value = release(seed)
        for key, true in truth.items():
            low, high = (value if key is None else value[key]).interval(confidence)
            missed[key] += not low <= true <= high
    return max(missed.values()) / runs


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_intervals_cover_as_often_as_they_say(confidence: float, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"c": ["a"] * 60 + ["b"] * 20, "x": [10.0] * 40 + [30.0] * 40})
    table = xp.read(frame, unit="row", neighbours="add-remove", key=1)
    runs, groups = 300, table.by("c", CITIES)
    cells = table.histogram("c", keys=CITIES, other=None).mechanism(epsilon="0.2")
    mean = table.mean("x", bounds=(0, 40), missing=0).mechanism(epsilon=1)
    by_group = groups.agg(n=groups.count(), s=groups.sum("x", bounds=(0, 40))).mechanism(epsilon=1)
    found = cells.question.exact()
    monkeypatch.setattr(type(cells.question), "exact", lambda self: found)
    fetched = {made.question.plan: table.engine.fetch(made.question.plan) for made in (mean, by_group)}
    monkeypatch.setattr(type(table.engine), "fetch", lambda self, query: fetched[query])
    slack = 4 * (confidence * (1 - confidence) / runs) ** 0.5
    cases: list[tuple[Any, dict[Any, float]]] = [
        (cells, {"a": 60, "b": 20}),
        (mean, {None: 20.0}),
        (by_group, {("n", "a"): 60, ("s", "b"): 600}),
    ]
    for mechanism, truth in cases:
        answer = lambda seed, made=mechanism: made.answer_of(made.sample(None, xp.SeededNoise(seed)), seed)  # noqa: E731
        assert coverage(answer, truth, runs, confidence) <= 1 - confidence + slack


@pytest.mark.parametrize("count", [1, 15, 19, 20, 24, 40])
def test_counts_that_reached_a_threshold_are_covered_given_that(count: int) -> None:
    """By the law itself: a symmetric interval would miss nearly all counts below the threshold."""
    rate, threshold, miss = Fraction(1, 4), 20, Fraction(1, 20)
    noise = np.arange(-400, 401)
    chances = np.exp(-float(rate) * np.abs(noise))
    published = noise + count >= threshold
    reach = LaplaceSteps(rate).reach(miss)
    counts = (noise + count).tolist()
    ends = [Reached(counts, rate, threshold)(place).interval(1 - miss) for place in range(len(counts))]
    hidden = np.array([not low <= count <= high for low, high in ends])
    assert chances[published & hidden].sum() <= float(miss) * chances[published].sum() * (1 + 1e-9)
    if count < threshold - reach:
        assert (np.abs(noise[published]) > reach).all()


def test_stored_frames_keep_all_of_their_totals(tables: dict[str, xp.PrivateTable]) -> None:
    """They came back with one of two, which was then drawn as a group."""
    groups = tables["people"].by("city", CITIES)
    book = xp.Ledger(epsilon=1)
    both = groups.agg(total=True, n=groups.count(), s=groups.sum("x", bounds=(0, 100)))
    release = book.run(both, epsilon=1, key="k")
    assert (book.frame("k"), book.frame("k").total) == (release.frame, 2)


def test_keys_of_several_kinds_are_text_in_arrow(tables: dict[str, xp.PrivateTable]) -> None:
    derived = tables["people"].derive(k="CASE WHEN x > 50 THEN 1 ELSE 2 END")
    found = xp.Ledger(epsilon=1).run(derived.histogram("k", keys=[1, 2]), epsilon=1)
    assert found.to_arrow()["k"].to_pylist() == ["1", "2", "other"]


def test_labels_are_no_plot(tables: dict[str, xp.PrivateTable]) -> None:
    found = xp.Ledger(epsilon=1, delta=0.1).run(tables["people"].discover("city").top(2), epsilon=1, delta=0.01)
    with pytest.raises(xp.errors.InvalidValue, match="there are no numbers"):
        found.plot()


def test_why_a_mean_between_quantiles_has_no_error() -> None:
    few = xp.read(pd.DataFrame({"x": np.random.default_rng(3).random(30)}), unit="row", neighbours="add-remove", key=1)
    book = xp.Ledger(epsilon=2, noise=xp.SeededNoise(1))
    value = book.run(few.winsorized_mean("x", trim=0.1, bounds=(0, 1)), epsilon=1).value
    trimmed = xp.mechanisms.TrimmedMean(trim=0.1, epsilon="0.5", bounds=(0, 1))
    array: Any = xp.Ledger(epsilon=1).run(trimmed, on=np.random.default_rng(3).random(60)).value
    assert value.why == array.why == "too few values for this trim and ε"


def test_switches_and_statistics_without_names_are_refused(tables: dict[str, xp.PrivateTable]) -> None:
    people = tables["people"]
    groups = people.by("city", CITIES)
    with pytest.raises(xp.errors.InvalidValue, match="interval is True or False"):
        people.median("x", bounds=(0, 1), interval="no")  # type: ignore[arg-type]
    with pytest.raises(xp.errors.InvalidValue, match="takes statistics by name"):
        groups.agg(groups.count())
    with pytest.raises(xp.errors.InvalidValue, match="0 or more"):
        people.count().mechanism(within=-1)


def test_a_key_that_reads_like_a_number_stays_text() -> None:
    table = xp.read(pd.DataFrame({"g": ["inf", "nan"] * 300}), unit="row", neighbours="add-remove", key=1)
    book = xp.Ledger(epsilon=9, delta=0.1, noise=xp.SeededNoise(1))
    release = book.run(table.discover("g").top(2), epsilon=5, delta=0.01, key="top")
    assert {*book.frame("top")["value"]} == {*release.frame["value"]} == {"inf", "nan"}


def test_a_regression_is_printed_with_its_errors() -> None:
    visits = xp.read(xp.example("visits"), unit=xp.Unit("patient", rows=5), neighbours="add-remove", key=1)
    ledger = xp.Ledger(epsilon=1, noise=xp.SeededNoise(1))
    line = visits.regression(["days"], "cost", bounds=[(0, 30)], target_bounds=(0, 2000))
    release = ledger.run(line, epsilon=1)
    told = "; ".join(f"{name} {number!r}" for name, number in release.value.terms.items())
    assert told in str(release)
    assert told.count("±") == 2
