"""Names are not expressions: a column may be called anything, and no text is parsed twice."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
import pandas as pd
import pytest

import expost as xp
from expost.data.expression import evaluate, parse, read_value
from expost.data.expression.meant import quoted_name
from expost.data.expression.tree import Stated
from expost.errors import InvalidStudy, InvalidValue
from expost.questions import NumericStatistic
from expost.study.parse import parse_study
from hostile_tables import HOSTILE_NAMES

NAMES = [*HOSTILE_NAMES, "n + 0", "0 - n", "CAST(n AS INTEGER)", "n = 3 OR n", "n) = 0 OR (n"]
PLAIN = "zz"
"""A name with nothing special about it."""
Asked = Callable[[xp.PrivateTable, str], Any]


def _grouped(table: xp.PrivateTable, name: str) -> Any:
    groups = table.by(name, "city", keys={name: [1, 2, 3], "city": ["Rome", "Oslo"]})
    return groups.agg(
        n_rows=groups.count(),
        n_sum=groups.sum(name, bounds=(0, 9)),
        n_var=groups.variance(name, bounds=(0, 9)),
        n_mid=groups.median(name, bounds=(0, 9)),
    ).mechanism(epsilon=1)


def _found(table: xp.PrivateTable, name: str) -> Any:
    groups = table.by(name)
    return groups.agg(n_mean=groups.mean(name, bounds=(0, 9))).mechanism(epsilon=50, delta=1e-9)


def _looked_up(table: xp.PrivateTable, name: str) -> Any:
    joined = table.join({name: [1, 2, 3], "word": ["one", "two", "three"]}, on=name)
    return joined.histogram("word", keys=["one", "three"]).mechanism(epsilon=1)


ASKED: dict[str, Asked] = {
    "sum": lambda t, name: t.sum(name, bounds=(0, 9)).mechanism(epsilon=1),
    "mean": lambda t, name: t.mean(name, bounds=(0, 9)).mechanism(epsilon=1),
    "mean without bounds": lambda t, name: t.mean(name).mechanism(epsilon=1),
    "variance": lambda t, name: t.variance(name, bounds=(0, 9)).mechanism(epsilon=1),
    "variance without bounds": lambda t, name: t.variance(name).mechanism(epsilon=1),
    "covariance": lambda t, name: t.covariance(name, "n", bounds=[(0, 9), (0, 9)]).mechanism(epsilon=1),
    "correlation": lambda t, name: t.correlation("n", name, bounds=[(0, 9), (0, 9)]).mechanism(epsilon=1),
    "regression": lambda t, name: t.regression([name], "n", bounds=[(0, 9)], target_bounds=(0, 9)).mechanism(epsilon=1),
    "winsorized": lambda t, name: t.winsorized_mean(name, trim=0.2, bounds=(0, 9)).mechanism(epsilon=1),
    "quantiles": lambda t, name: t.quantile(name, [0.2, 0.6], bounds=(0, 9)).mechanism(epsilon=1),
    "median": lambda t, name: t.median(name).mechanism(epsilon=1),
    "keys": lambda t, name: t.histogram(name, keys=[3, 1]).mechanism(epsilon=1),
    "bins": lambda t, name: t.histogram(name, bins=[0, 2, 4]).mechanism(epsilon=1),
    "only": lambda t, name: t.histogram(name, keys=[3, 1]).only([1]).mechanism(epsilon=1),
    "discovered": lambda t, name: t.discover(name).mechanism(epsilon=50, delta=1e-9),
    "top": lambda t, name: t.discover(name).top(2).mechanism(epsilon=50, delta=1e-9),
    "groups": _grouped,
    "discovered groups": _found,
    "group by group": lambda t, name: (
        t.by(name, keys=[1, 2])
        .ask(lambda rows: rows.covariance("n", name, bounds=[(0, 9), (0, 9)]))
        .mechanism(epsilon=1)
    ),
    "join": _looked_up,
    "matched": lambda t, name: t.join({name: [1, 7]}, on=name, keep="matched").count().mechanism(epsilon=1),
}


def read(column: str) -> xp.PrivateTable:
    frame = pd.DataFrame(
        {"person": list("aabbccdd"), "city": ["Rome", "Oslo"] * 4, "n": [5, 4, 3, 2, 1, 0, 7, 8], "b": [True] * 8}
    )
    frame[column] = [3, 1, 2, 1, 3, 3, 2, 9]
    return xp.read(frame, unit=xp.Unit("person", rows=2), neighbours="add-remove", key=1)


def derived(name: str) -> xp.PrivateTable:
    return read("odd").derive(**{name: "odd + 0"})


def answer(asked: Asked, table: xp.PrivateTable, name: str) -> Any:
    mechanism = asked(table, name)
    mechanism.check(None)
    return plain(mechanism.sample(None, xp.SeededNoise(7)))


def plain(found: Any) -> Any:
    """Without the names of columns."""
    if isinstance(found, dict):
        return {key: plain(each) for key, each in found.items()}
    return found.rows if isinstance(found, xp.Frame) else found


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return {what: answer(asked, read(PLAIN), PLAIN) for what, asked in ASKED.items()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("table", [read, derived])
def test_a_name_makes_no_difference(
    table: Callable[[str], xp.PrivateTable], name: str, expected: dict[str, Any]
) -> None:
    named = table(name)
    for what, asked in ASKED.items():
        assert (what, answer(asked, named, name)) == (what, expected[what])
    for quoted in (quoted_name(name), f"({quoted_name(name)}) + 0"):
        filtered = table(name).where(f"{quoted} = 3")
        assert filtered.count().exact() == 3
        assert filtered.derive(again=quoted).sum("again", bounds=(0, 9)).exact() == 9


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_rows_may_have_any_name(name: str) -> None:
    frame = pd.DataFrame({name: [3.0, 1.0, 2.0], "n_": [5, 4, 3]})
    table = xp.read(frame, unit="row", neighbours="substitute")
    assert np.asarray(table.column(name)).tolist() == [3, 1, 2]
    assert table.column(name, "n_").shape == (3, 2)
    noisy = table.variance(name, bounds=(0, 9), missing=0).mechanism(epsilon=1)
    noisy.check(None)
    assert repr(name) in repr(table.column(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_text_of_an_expression_means_what_its_tree_means(name: str) -> None:
    table = read(name).derive(**{f"{name}_": "n + 0"})
    read_as = read_value(name, table.schema)
    assert (read_as.name, parse(read_as.text, table.schema)) == (name, read_as.tree)
    for key in (3, -1):
        rows = table.by(name, keys=[3, -1]).rows(key)
        condition = rows.steps[-1].expression
        assert parse(condition.text, table.schema) == condition.tree
        assert evaluate(condition.tree, {name: key}) is True
    texts = table.by("city", keys=["it's", ""])
    condition = texts.rows("it's").steps[-1].expression
    assert parse(condition.text, table.schema) == condition.tree


def test_groups_never_overlap_whatever_their_column_is_called() -> None:
    name = "id = 78 AND sick) OR (n"
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT i AS id, i % 40 AS n, i = 78 AS sick FROM range(200) r(i)")
    table = xp.read(connection, table="t", unit="row", neighbours="add-remove").derive(**{name: "n"})
    groups = table.by(name, keys=range(10, 1510))
    asked = groups.ask(lambda rows: rows.count()).mechanism(epsilon=0.25)
    counts = [cast(NumericStatistic[int], mechanism.question).exact() for mechanism in asked.mechanisms]
    assert sum(counts) == 150
    assert counts[:30] == [5] * 30


def test_groups_by_a_column_that_is_named_like_a_difference() -> None:
    frame = pd.DataFrame({"cost": [10, 20, 30], "tax": [1, 2, 3], "cost - tax": [7, 7, 8]})
    table = xp.read(frame, unit="row", neighbours="add-remove")
    groups = table.by("cost - tax", keys=[7, 8])
    assert [groups.rows(key).count().exact() for key in (7, 8)] == [2, 1]
    assert table.by("(cost - tax)", keys=[9, 18]).rows(18).count().exact() == 1


@pytest.mark.parametrize("salary", [70_000, 70_001])
def test_no_join_fails_because_of_a_row(salary: int) -> None:
    """The key is text by its column, and was read a second time as an expression that is a number."""
    frame = pd.DataFrame({"id": range(100), "n": [50_000] * 99 + [salary]})
    table = xp.read(frame, unit="row", neighbours="add-remove").derive(**{"n + 0": "CAST(n AS TEXT)"})
    joined = table.where("n = 70001").join({"n + 0": ["Rome", "70001"], "v": [1, 2]}, on="n + 0")
    question = joined.sum("v", bounds=(0, 9))
    question.mechanism(epsilon=1e-9).check(None)
    assert question.exact() == (2 if salary == 70_001 else 0)


@pytest.mark.parametrize(
    ("value", "kind"),
    [("Rome", "integer"), (3, "text"), (True, "integer"), (1.0, "integer"), (2**63, "integer"), ("\0", "text"),
     ("\ud800", "text"), (1, "number"), (1, "boolean"), ("x", None), (3, "other")],
)  # fmt: skip
def test_a_stated_value_is_of_its_kind(value: Any, kind: Any) -> None:
    with pytest.raises(InvalidValue, match="convert"):
        Stated(value, kind)


STUDY = """
[data]
path = "visits.csv"
[data.schema]
n = "integer"
[privacy]
unit = "row"
neighbours = "add-remove"
[limit]
epsilon = 1
[ledger]
url = "sqlite:///study.db"
name = "visits"
[derive]
{name} = "n"
[[question]]
name = "all"
kind = "count"
epsilon = 1
"""


@pytest.mark.parametrize("name", ["a) OR (b", "n + 0", "my city", "TRUE", "", "1st", "key 0"])
def test_derived_columns_of_studies_are_named_by_words(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidStudy) as refused:
        parse_study(STUDY.format(name=f"'{name}'"), tmp_path / "study.toml")
    (problem,) = refused.value.problems
    assert problem[0] == 15
    assert "letters" in problem[1]
    assert parse_study(STUDY.format(name="'größe_2'"), tmp_path / "study.toml").derive == {"größe_2": "n"}


# ---- nothing can parse a text twice

DATA = Path(xp.__file__).parent / "data"
DOORS = {"table.py", "groups.py", "moment_questions.py"}
"""The modules whose public methods take texts that people wrote."""
TAKE_TEXT = {"parse", "read_expression", "read_value", "expression", "where", "derive", "join", "by"}
"""What parses its argument."""


def parsed(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """The calls that parse a text, and what is called."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            of_texts = name == "join" and "on" not in (word.arg for word in call.keywords)
            if name in TAKE_TEXT and not of_texts:
                yield name, call


def unsafe(name: str, source: str) -> list[str]:
    """The calls of a module that may parse a text which was parsed before, or which was put together."""
    found = []
    for called, call in parsed(ast.parse(source)):
        given = call.args[0] if call.args else None
        if name not in DOORS:
            found.append(f"{name}: {called}")
        elif isinstance(given, ast.JoinedStr | ast.BinOp | ast.Attribute):
            found.append(f"{name}: {called} of what is no argument")
    return found


def modules() -> dict[str, str]:
    paths = [path for path in DATA.rglob("*.py") if "expression" not in path.relative_to(DATA).parts]
    return {path.relative_to(DATA).as_posix(): path.read_text() for path in paths}


def test_text_is_parsed_where_it_enters_and_nowhere_else() -> None:
    assert [each for name, source in modules().items() for each in unsafe(name, source)] == []


@pytest.mark.parametrize(
    "line",
    [
        "table.where(f'({text}) = {key}')",
        "table.expression(value.text, KINDS, 'a sum')",
        "read_value(text + ' = 3', schema)",
    ],
)
def test_a_second_parse_would_be_found(line: str) -> None:
    assert unsafe("groups.py", line)
    assert unsafe("query.py", line)
