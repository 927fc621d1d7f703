"""Statistics of all groups in one charge: sensitivities against every neighbour, answers, totals, keys, refusals."""

import random
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import expost as xp
from added import added
from expost.data.discovery import leak
from expost.errors import InvalidValue
from expost.frame import Frame
from expost.mechanisms.numbers import shape_of
from expost.questions.noised import Noised

pytestmark = pytest.mark.slow
ROWS = [("a", 1, 3, 1.0), ("a", 2, -2, None), ("b", 1, 9, -7.5), (None, 2, 0, 0.5), ("b", 2, 1, 9.0)]
UNITS = [unit for size in (1, 2, 3) for unit in combinations_with_replacement(ROWS, size)]
KEYS: dict[str, Any] = {
    "all": {"city": ["a", "b"], "year": [1, 2]},
    "some": [("a", 1), ("b", 2)],
    "one": [("a", 1)],
    "whole": "whole",
}


def asked(table: xp.PrivateTable, keys: Any) -> Any:
    if keys == "whole":
        return table.agg(
            rows=xp.Count(),
            units=xp.Count("units"),
            sums=xp.Sum("n", bounds=(-2, 3)),
            mean=xp.Mean("x", bounds=(-2, 2), grid=1),
            filled=xp.Mean("x", bounds=(-2, 2), grid=1, missing=1),
            spread=xp.Variance("x", bounds=(-1, 1)),
            both=xp.Covariance(["n", "x"], bounds=[(-2, 3), (-1, 1)]),
            line=xp.LinearRegression(["n"], "x", bounds=[(-2, 3)], target_bounds=(-1, 1), missing=1),
            share=xp.Ratio(["n", "x"], bounds=[(-2, 3), (0, 2)]),
        ).mechanism(epsilon=9)
    groups = table.by("city", "year", keys=keys)
    return (
        groups.agg(
            rows=groups.count(),
            units=groups.count(of="units"),
            sums=groups.sum("n", bounds=(-2, 3)),
            mean=groups.mean("x", bounds=(-2, 2), grid=1),
            spread=groups.variance("x", bounds=(-1, 1)),
            both=groups.covariance("n", "x", bounds=[(-2, 3), (-1, 1)]),
            line=groups.regression(["n"], "x", bounds=[(-2, 3)], target_bounds=(-1, 1), missing=1),
            ratio=groups.ratio("n", "x", bounds=[(-2, 3), (0, 2)]),
            share=groups.share("n > 0"),
        ).mechanism(epsilon=9)
        if keys is not None
        else groups.agg().mechanism(epsilon=1, delta="1e-6")
    )


def numbers(mechanism: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The exact numbers of every statistic, in all groups together."""
    return {f"{each.name}{place}": each.noisy for place, each in enumerate(added(mechanism.question))}


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("unit", ["row", xp.Unit("p", rows=2), xp.Unit("p", rows=3, groups=1)], ids=repr)
def test_no_neighbour_is_further_than_the_noise_is_for(unit: Any, keys: str) -> None:
    connection, chance = duckdb.connect(config={"threads": 1}), random.Random(3)
    connection.execute("CREATE TABLE t (p INTEGER, city VARCHAR, year INTEGER, n INTEGER, x DOUBLE)")
    both = {
        relation: asked(xp.read(connection, table="t", unit=unit, neighbours=relation, key=7), KEYS[keys])
        for relation in ("add-remove", "substitute")
    }
    mechanism = both["add-remove"]
    rest = [(p, *chance.choice(ROWS)) for p in (1, 2, 2)] + [(None, "a", 1, 1, 1.0)]

    def exact(own: Any) -> dict[str, Any]:
        rows = [*rest, *((8, *row) for row in own)]
        chance.shuffle(rows)
        connection.execute("DELETE FROM t")
        connection.execute(
            f"INSERT INTO t VALUES {', '.join(['(?, ?, ?, ?, ?)'] * len(rows))}", [f for r in rows for f in r]
        )
        return numbers(mechanism)

    alone = exact(())
    found = [exact(own) for own in UNITS if unit != "row" or len(own) == 1]
    for relation, pairs in (("add-remove", [(alone, one) for one in found]),
                            ("substitute", [(a, b) for a in found for b in found])):  # fmt: skip
        stated = {f"{each.name}{place}": each.sums.moved for place, each in enumerate(added(both[relation].question))}
        noises = [noise for several in both[relation].noises.values() for noise in several]
        assert [0 if noise is None else int(noise.sensitivity) for noise in noises] == [
            moved.l1 for moved in stated.values()
        ]
        for name, most in stated.items():
            apart = [a[name] - b[name] for a, b in pairs]
            moved = max(int(np.abs(each).sum()) for each in apart)
            assert moved <= most.l1, f"{name} under {relation}"
            assert max(int((each * each).sum()) for each in apart) <= most.l2_squared, f"{name} under {relation}"
            assert max(int(np.abs(each).max()) for each in apart) <= most.each, f"{name} under {relation}"
            if name in ("rows0", "units1", "sums2", "share10") and keys == "all":
                assert moved == most.l1, f"{name} under {relation} is too wide"


def test_discovered_keys_and_their_threshold() -> None:
    frame = pd.DataFrame({"p": range(3000), "city": ["a"] * 1500 + ["b"] * 1499 + ["rare"], "x": [5.0] * 3000})
    for relation in ("add-remove", "substitute"):
        table = xp.read(frame, unit=xp.Unit("p", rows=3, groups=2), neighbours=relation, key=1)
        groups = table.by("city", "x > 1")
        mechanism = groups.agg(mean=groups.mean("x", bounds=(0, 10))).mechanism(epsilon=2, delta="1e-6")
        assert mechanism.guarantee.worst_case == xp.Cost(2, delta="1e-6")
        rate = mechanism.found_noise[1]
        assert leak(mechanism.threshold, rate, ((1, 1),)) <= 1e-6 < leak(mechanism.threshold - 1, rate, ((1, 1),))
        out = xp.Ledger(epsilon=9, delta=1e-3, noise=xp.SeededNoise(2)).run(mechanism)
        assert {row[:2] for row in out.output.rows} == {("a", True), ("b", True)}
        assert all(abs(mean - 5) < 1 for mean in out.value["mean"].values())
        assert out.output.names == ("city", "x > 1", "units", "mean #1", "mean #2")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    chance = np.random.default_rng(1)
    return pd.DataFrame(
        {"p": chance.integers(0, 4000, 20_000), "city": chance.choice(["a", "b", "c"], 20_000),
         "year": chance.integers(1, 3, 20_000), "x": chance.normal(20, 5, 20_000)}
    )  # fmt: skip


@pytest.mark.parametrize("unit", ["row", xp.Unit("p", rows=20, groups=6)], ids=repr)
def test_answers_are_near_the_truth(frame: pd.DataFrame, unit: Any) -> None:
    table = xp.read(frame, unit=unit, neighbours="add-remove", key=1)
    groups = table.by("city", "year", keys=frame[["city", "year"]].drop_duplicates())
    mechanism = groups.agg(
        total=True,
        n=groups.count(),
        people=groups.count(of="units"),
        s=groups.sum("x", bounds=(0, 40)),
        m=groups.mean("x", bounds=(0, 40)),
        v=groups.variance("x", bounds=(0, 40)),
        q=groups.quantile("x", [0.25, 0.75], bounds=(0, 40), grid="1/4"),
        median=groups.median("x"),
    ).mechanism(epsilon=60)
    release = xp.Ledger(epsilon=60, noise=xp.SeededNoise(4)).run(mechanism)
    assert release.charged == xp.Cost(60)
    truth = frame.groupby(["city", "year"]).agg(
        n=("x", "size"), people=("p", "nunique"), s=("x", "sum"), m=("x", "mean"), v=("x", lambda x: x.var(ddof=0)),
        median=("x", "median"), low=("x", lambda x: x.quantile(0.25)),
    )  # fmt: skip
    out = release.value
    for key, true in truth.iterrows():
        wanted = true["people"] if unit != "row" else true["n"]
        assert abs(out["people"][key] - wanted) <= out["people"][key].error * 3
        for name in ("n", "s", "m", "v"):
            assert abs(out[name][key] - true[name]) <= out[name][key].error * 2, name
        assert abs(out["median"][key] - true["median"]) < 1
        assert abs(out["q 0.25"][key] - true["low"]) < 1
    total = out.all_together
    assert abs(total["n"] - len(frame)) <= total["n"].error
    assert abs(total["m"] - frame["x"].mean()) <= total["m"].error
    assert not {"people", "median"} & {*total}


def test_bounds_of_totals_hold_as_often_as_they_say() -> None:
    noise, groups = xp.Laplace(epsilon="0.5", sensitivity=1), 12
    sums = [abs(noise.sample(np.zeros(groups, np.int64), xp.SeededNoise(seed)).sum()) for seed in range(2000)]
    law = noise.noise_of(shape_of(0)).noise
    bound = Noised((0,), (law,), groups=groups).noise.reach((1.0,), Fraction(1, 20))
    beyond = float(np.mean([total > bound for total in sums]))
    assert beyond <= 0.05
    assert bound < groups * noise.error_bound("0.95", n=groups)
    assert float(np.mean([total > bound / 2 for total in sums])) > 0.05


def test_a_ledger_keeps_answers(frame: pd.DataFrame, tmp_path: Any) -> None:
    table = xp.read(frame, unit="row", neighbours="add-remove", key=1)
    groups = table.by("city", keys=["a", "b"])
    mechanism = groups.agg(n=groups.count(), v=groups.variance("x", bounds=(0, 40))).mechanism(epsilon=1)
    book = xp.Ledger.create(f"sqlite:///{tmp_path}/b.db", "x", epsilon=1, unit="row", neighbours="add-remove")
    first = book.run(mechanism, key="k")
    again = book.run(mechanism, key="k")
    assert again.replayed
    assert first.value == again.value
    assert isinstance(again.output, Frame)
    assert first.output == again.output
    assert (first.value["n"]["a"] - again.value["n"]["a"]).error == 0


def test_what_is_publicly_wrong_is_refused(frame: pd.DataFrame) -> None:
    table = xp.read(frame, unit="row", neighbours="add-remove", key=1)
    for values, keys, rule in (
        ((), ["a"], "one or more"), (("city", "city"), [("a", "a")], "different"), (("city",), "ab", "a list"),
        (("city",), 5, "a list"), (("city",), [("a", 1)], "for each of 1"), (("city", "year"), ["a"], "for each of 2"),
        (("city",), ["a", "a"], "different"), (("city",), [], "1 to 10000"), (("city",), [1], "of another kind"),
        (("city", "year"), {"city": ["a"]}, "need values of 'year'"), (("x",), [1.5], "keys of numbers are whole"),
        (("city",), pl.DataFrame({"town": ["a"]}), "need values of 'city'"),
        (("city",), pa.table({"town": ["a"]}), "need values of 'city'"),
    ):  # fmt: skip
        with pytest.raises(InvalidValue, match=rule):
            table.by(*values, keys=keys)
    assert table.by("city", keys=pl.DataFrame({"city": ["a"]})).keys == ("a",)
    assert table.by("city", keys=pa.table({"city": ["a"]})).keys == ("a",)
    groups = table.by("city", keys=["a"])
    for said, rule in (
        ({}, "at least one"), ({"n": 5}, "'n' is a int: make it from the groups"),
        ({"city": groups.count()}, "different names"),
        ({"m": table.where("x > 0").median("x")}, "'m' is a Ranks: make it from the groups"),
        ({"m": table.where("x > 0").by("city", keys=["a"]).median("x")}, "other groups"),
        ({"n": groups.count(), "total": groups.count()}, "total"),
    ):  # fmt: skip
        with pytest.raises(InvalidValue, match=rule):
            groups.agg(**said)
    with pytest.raises(InvalidValue, match="leave delta out"):
        groups.agg(n=groups.count(), m=groups.median("x")).mechanism(epsilon=1, delta="1e-6")
    with pytest.raises(InvalidValue, match="at least 2e-12"):
        groups.agg(n=groups.count(), m=groups.count(of="units")).mechanism(epsilon="1e-12")
    discovered = table.by("city")
    with pytest.raises(InvalidValue, match="δ"):
        discovered.agg(n=discovered.count()).mechanism(epsilon=1)
    with pytest.raises(InvalidValue, match="needs the keys of the groups"):
        discovered.ask(lambda rows: rows.count()).mechanism(epsilon=1)


def test_frames() -> None:
    out = Frame(("city", "n", "n_error"), (("Rome", 12, 3.5), ("<b>", None, None)))
    assert out.to_csv() == "city,n,n_error\nRome,12,3.5\n<b>,,\n"
    assert out.to_pandas()["n"].tolist()[0] == 12
    assert out.to_polars()["n"].to_list() == out.to_arrow().column("n").to_pylist() == [12, None]
    assert "&lt;b&gt;" in out._repr_html_()
    with pytest.raises(InvalidValue, match="no column 'x'"):
        out["x"]
    assert str(out).splitlines()[1] == "Rome  12  3.5"


@pytest.mark.parametrize("said", [{"within": 50}, {"within": "10 %", "epsilon": 1}], ids=repr)
def test_a_total_is_never_left_out(frame: pd.DataFrame, said: Any) -> None:
    """An accuracy is one of the groups: asked for with a total, it was answered without that."""
    groups = xp.read(frame, unit="row", neighbours="add-remove").by("city", keys=["a", "b"])
    with pytest.raises(InvalidValue, match="pass epsilon= for a total"):
        groups.agg(n=groups.count(), total=True).mechanism(**said)
    assert groups.agg(n=groups.count()).mechanism(**said)
