"""Numbers of one answer have names of their own, so that none is lost or taken for another: told before any charge."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import expost as xp
from expost.errors import InvalidValue
from expost.study import read_study, run_study

SIZE = 2_000


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    chance = np.random.default_rng(1)
    found = pd.DataFrame({name: chance.uniform(0, 1, SIZE) for name in ("intercept", "constant", "x")})
    return found.assign(y=found["intercept"] / 2 + found["constant"] / 4 + 0.1, city=["a", "b"] * (SIZE // 2))


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> xp.PrivateTable:
    return xp.read(frame, unit="row", neighbours="add-remove")


def line(*features: str) -> xp.LinearRegression:
    return xp.LinearRegression(features, "y", bounds=(0, 1), target_bounds=(0, 1))


@pytest.mark.parametrize("asked", ["whole", "array", "groups", "beside others"])
def test_a_feature_may_be_called_as_the_intercept_is(table: xp.PrivateTable, frame: pd.DataFrame, asked: str) -> None:
    """Before, the answer was charged and lost; by group the coefficient was shown as the intercept."""
    ledger = xp.Ledger(epsilon=1000, neighbours="substitute" if asked == "array" else "add-remove")
    question: Any = {
        "whole": table.asked(line("intercept", "constant")),
        "array": line("intercept", "constant"),
        "groups": table.by("city", keys=["a", "b"]).asked(line("intercept", "constant")),
        "beside others": table.agg(fit=line("intercept", "constant"), n=xp.Count()),
    }[asked]
    on = {"on": frame[["intercept", "constant", "y"]]} if asked == "array" else {}
    found = ledger.run(question, epsilon=300, **on).frame
    numbers: dict[str, list[float]] = {}
    for row in found.rows:
        numbers.setdefault(f"{row[0]} {row[1]}" if "term" in found.names else row[0], []).append(row[-4])
    for name, truth in {"(intercept)": 0.1, "intercept": 0.5, "constant": 0.25}.items():
        ((_, values),) = [each for each in numbers.items() if each[0].endswith(f" {name}")]
        assert len(values) == (2 if asked == "groups" else 1)
        assert values == pytest.approx([truth] * len(values), abs=0.05)


def test_a_study_keeps_the_constant_and_a_feature_of_that_name(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_parquet(tmp_path / "rows.parquet")
    path = tmp_path / "study.toml"
    path.write_text(
        'title = "Names"\n[data]\npath = "rows.parquet"\n[privacy]\nunit = "row"\nneighbours = "substitute"\n'
        '[limit]\nepsilon = 300\n[ledger]\nurl = "memory:"\nname = "names"\n[[question]]\nname = "fit"\n'
        'kind = "regression"\nfeatures = ["constant", "intercept"]\ntarget = "y"\nbounds = [0, 1]\n'
        "target_bounds = [0, 1]\nepsilon = 300\n"
    )
    (outcome,) = run_study(read_study(path)).outcomes
    assert outcome.answer is not None
    assert outcome.answer.value == pytest.approx({"constant": 0.25, "intercept": 0.5, "(constant)": 0.1}, abs=0.05)


SAME: dict[str, Callable[[xp.PrivateTable], Any]] = {
    "a feature twice": lambda t: t.asked(line("x", "X")),
    "a term": lambda t: t.agg(fit=line("x"), **{"fit x": xp.Count()}),
    "a level": lambda t: t.agg(q=xp.Quantile("x", [0.25, 0.5], bounds=(0, 1)), **{"q 0.25": xp.Count()}),
    "a level of groups": lambda t: t.by("city", keys=["a"]).agg(
        q=xp.Quantile("x", [0.25, 0.5], bounds=(0, 1)), **{"q 0.25": xp.Count()}
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_no_two_numbers_are_called_the_same(table: xp.PrivateTable, name: str) -> None:
    with pytest.raises(InvalidValue, match=r"name"):
        SAME[name](table)


def test_levels_that_are_close_are_told_apart(table: xp.PrivateTable) -> None:
    question = table.agg(q=xp.Quantile("x", [0.1234561, 0.1234562], bounds=(0, 1)))
    found = xp.Ledger(epsilon=9).run(question, epsilon=1)
    assert [row[0] for row in found.frame.rows] == ["q 0.1234561", "q 0.1234562"]
