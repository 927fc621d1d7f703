"""Small studies for tests: a table of people whose true answers are known, and a study that asks about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from expost.study.run import Outcome

PEOPLE = 6000
HEAD = """\
title = "People"

[data]
path = "people.csv"
schema = {{ person = "integer", age = "integer", city = "text", cost = "number", word = "text" }}

[privacy]
unit = "row"
who = "visitor"
neighbours = "substitute"

[limit]
epsilon = {epsilon}
delta = 1e-5

[ledger]
url = "{url}"
name = "people"
"""
COUNT = """
[[question]]
name = "old"
kind = "count"
where = "age >= 60"
epsilon = 0.5
"""

ABOVE = """
[[question]]
name = "busy"
kind = "above"
column = "age"
bins = 8
bounds = [0, 80]
threshold = {threshold}
at_most = 4
{amount}
"""


def question(name: str, kind: str, **keys: object) -> str:
    """A question as a study file says it."""
    told = {"name": name, "kind": kind, **keys}
    return "\n[[question]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in told.items())


AFTER = """
[[question]]
name = "after"
kind = "count"
where = "age < 20"
epsilon = {epsilon}
only_if = "{condition}"
"""

SPREAD = question("s", "stable_interquartile_range", column="{}", missing=0, epsilon=1, delta=1e-6)
MIDDLE = (
    '[[question]]\nname = "m"\nkind = "stable_median"\ncolumn = "age"\nmissing = 0\nscale = "s"\nfallback = {}\n'
    "epsilon = 1\ndelta = 1e-6\n"
)

CANARY = "zanzibar-4711"
"""A value of the data that no message may ever quote."""


def write_people(folder: Path) -> Path:
    """Ages 0 … 79 in turn, three cities, a cost of twice the age, and one person's own word."""
    path = folder / "people.csv"
    lines = ["person,age,city,cost,word"]
    for i in range(PEOPLE):
        word = CANARY if i == 7 else "x"
        lines.append(f"{i // 2},{i % 80},{('Rome', 'Oslo', 'Bern')[i % 3]},{2 * (i % 80)}.5,{word}")
    path.write_text("\n".join(lines) + "\n")
    return path


def write_study(folder: Path, *questions: str, epsilon: float = 4, url: str = "sqlite:///books.db") -> Path:
    """A study of these people."""
    if not (folder / "people.csv").exists():
        write_people(folder)
    path = folder / "study.toml"
    path.write_text(HEAD.format(epsilon=epsilon, url=url) + "".join(questions))
    return path


DERIVED = """
[derive]
ratio = "age / 80"
old = "CASE WHEN age >= 40 THEN 1 ELSE 0 END"
"""
MUCH: dict[str, Any] = {"epsilon": 20}
MUCH_AND_DELTA: dict[str, Any] = {**MUCH, "delta": 1e-6}
CITIES: dict[str, Any] = {"column": "city", "keys": ["Rome", "Oslo", "Paris"], "threshold": 1000, "at_most": 3}
CLASSES: dict[str, Any] = {"features": ["ratio"], "target": "old", "norm": 1, "missing": 0}
QUESTIONS = (
    question("old", "count", where="age >= 60", noise="gaussian", **MUCH_AND_DELTA),
    question("beyond", "lost", column="age", bounds=[0, 100], **MUCH),
    question("total", "sum", column="age", bounds=[0, 100], **MUCH),
    question("average", "mean", column="cost", bounds=[0, 200], where="age >= 60", **MUCH),
    question("bands", "histogram", column="age", bins=4, bounds=[0, 80], **MUCH),
    question("cities", "discover", column="city", count="rows", **MUCH_AND_DELTA),
    question("most", "top", column="city", at_most=3, **MUCH_AND_DELTA),
    question("which", "above", **CITIES, **MUCH),
    question("large", "large", **CITIES, **MUCH),
    question("spread", "stable_interquartile_range", column="age", missing=0, **MUCH_AND_DELTA),
    question("median", "stable_median", column="age", missing=0, scale="spread", slack=40, **MUCH_AND_DELTA),
    question(
        "ninth", "stable_quantile", column="age", missing=0, quantile=0.9, scale=40, slack=40, **MUCH_AND_DELTA
    ),
    question("trimmed", "stable_trimmed_mean", column="age", missing=0, trim=0.1, scale=64, **MUCH_AND_DELTA),
    question(
        "line", "stable_regression", features=["age"], target="cost", cell=[0.7, 7], blocks=50, bounds=[0, 80],
        target_bounds=[0, 200], missing=0, **MUCH_AND_DELTA,
    ),
    question("quartiles", "interquartile_range", column="age", bounds=[0, 100], grid=1, **MUCH),
    question("middle", "median", column="age", bounds=[0, 100], grid=1, **MUCH),
    question("tenth", "quantile", column="age", quantile=0.1, bounds=[0, 100], grid=1, **MUCH),
    question(
        "squares", "regression", features=["age"], target="cost", bounds=[0, 80], target_bounds=[0, 200], missing=0,
        **MUCH,
    ),
    question("sextiles", "quantiles", column="age", quantiles=[0.2, 0.8], bounds=[0, 100], epsilon=3),
    question("variance", "variance", column="age", missing=0, bounds=[0, 100], epsilon=3),
    question("per_year", "ratio", columns=["cost", "age"], bounds=[[0, 200], [0, 100]], epsilon=3),
    question("covariance", "covariance", columns=["age", "cost"], bounds=[[0, 100], [0, 200]], epsilon=3),
    question("correlation", "correlation", columns=["age", "cost"], bounds=[[0, 100], [0, 200]], epsilon=3),
    question("clamped", "winsorized_mean", column="cost", trim=0.1, bounds=[0, 10_000], epsilon=3),
    question("without", "trimmed_mean", column="cost", missing=0, trim=0.1, bounds=[0, 10_000], epsilon=3),
    question("model", "logistic_regression", **CLASSES, threshold=0.9, test_share=0.5, **MUCH),
    question("training", "training", **CLASSES, steps=20, every=10, **MUCH_AND_DELTA),
)  # fmt: skip
EVERYTHING = DERIVED + "".join(QUESTIONS)
TUNED = question(
    "who", "tuned_classifier", features=["age", "cost"], target="CASE WHEN age >= 40 THEN 1 ELSE 0 END", norm=100,
    missing=0, regularizers=[0.001, 1], shares=[0.1, 1], good_enough=0.6, epsilon=2,
)  # fmt: skip


def value(outcomes: dict[str, Outcome], name: str) -> Any:
    answer = outcomes[name].answer
    assert answer is not None, outcomes[name]
    return answer.value


def of_people(path: Path, neighbours: str) -> Path:
    told = path.read_text().replace('unit = "row"\nwho = "visitor"', 'unit = "person"\nrows = 2')
    path.write_text(told.replace('neighbours = "substitute"', f'neighbours = "{neighbours}"'))
    return path
