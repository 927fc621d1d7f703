"""Small studies for tests: a table of people whose true answers are known, and a study that asks about it."""

from __future__ import annotations

import json
from pathlib import Path

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
