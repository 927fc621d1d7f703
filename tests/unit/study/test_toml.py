"""Errors speak the words of the place: Python, a study file, the command line."""

from pathlib import Path
from typing import Any

import pytest

from expost.cli.console import command_words
from expost.errors import InvalidStudy, InvalidValue
from expost.mentions import Action, Argument, GivenValue, Mention
from expost.study import plan_study, read_study, run_study
from expost.study.toml import toml_text, toml_words
from studies import COUNT, question, write_study


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (True, "true"),
        ("a", '"a"'),
        ([1, "b", [False]], '[1, "b", [false]]'),
        ({"a": 1.5, "b": {}}, "{ a = 1.5, b = {} }"),
        ("x" * 99, '"' + "x" * 56 + "…"),
    ],
)
def test_values(value: Any, said: str) -> None:
    assert toml_text(value) == said


@pytest.mark.parametrize(
    ("mention", "python", "toml", "command"),
    [
        (Argument("rows", 1), "rows=1", "rows = 1", "--rows 1"),
        (Argument("unit", "row"), "unit='row'", 'unit = "row"', "--unit row"),
        (Argument("read_only"), "read_only=", "'read_only'", "--read-only"),
        (Argument("schema", {"a": 1}), "schema={'a': 1}", "schema = { a = 1 }", "--schema {'a': 1}"),
        (GivenValue((110, 0)), "(110, 0)", "[110, 0]", "(110, 0)"),
        (GivenValue(None), "None", "nothing", "None"),
        (Action("close()", "expost ledger close"), "close()", "expost ledger close", "expost ledger close"),
    ],
)  # fmt: skip
def test_each_place_has_its_own_words(mention: Mention, python: str, toml: str, command: str) -> None:
    rest = ": None as in \"city='Rome'\" and f()"
    error = InvalidValue("use ", mention, rest)
    assert str(error) == f"use {python}{rest}", "what somebody wrote is shown as it is"
    assert error.text(toml_words) == f"use {toml}{rest}"
    assert error.text(command_words) == f"use {command}{rest}"


MISTAKES = (
    (COUNT.replace("0.5", "true"), "got true"),
    (question("a", "mean", column="cost", bounds=["x"], epsilon=1), 'got ["x"]'),
    (question("a", "mean", column="cost", bounds=[110, 0], epsilon=1), "the lowest first, got [110, 0]"),
    (question("a", "mean", column="cost", bounds=[5, 5], epsilon=1), "pass bounds that differ"),
    (question("a", "histogram", column="age", epsilon=1), "takes either keys or bins"),
    (
        question("a", "stable_median", column="nope", missing=0, scale=1, epsilon=1, delta=1e-6),
        "there is no column 'nope'",
    ),
    (question("a", "sum", column="city", bounds=[0, 1], epsilon=1), "needs integer or number or boolean"),
    (COUNT.replace('"count"', "0x" + "f" * 5000), "unknown kind a very long int: known are count"),
    (COUNT.replace("kind =", "kind" + ".a" * 3000 + " ="), "a key has at most 20 parts"),
)


@pytest.mark.parametrize(("asked", "said"), MISTAKES)
def test_no_mistake_is_answered_in_python(tmp_path: Path, asked: str, said: str) -> None:
    path = write_study(tmp_path, asked)
    with pytest.raises(InvalidStudy) as refused:
        plan_study(read_study(path))
    message = str(refused.value)
    assert said in message
    for python in ("=(", "='", "()", "True", "None", "Unit("):
        assert python not in message, message


@pytest.mark.parametrize("key", ["path", "url"])
def test_names_that_are_too_long_for_files(tmp_path: Path, key: str) -> None:
    path = write_study(tmp_path, COUNT)
    long = "x" * 300
    path.write_text(path.read_text().replace({"path": "people.csv", "url": "books.db"}[key], f"{long}/{long}.csv"))
    with pytest.raises(InvalidStudy, match=rf"study\.toml:\d+: .*{long}"):
        plan_study(read_study(path))


def test_a_column_may_be_called_self(tmp_path: Path) -> None:
    asked = question("mean", "mean", column="self", bounds=[0, 2], epsilon=4)
    study = read_study(write_study(tmp_path, '[derive]\nself = "1 + 0 * age"\n', asked))
    (outcome,) = run_study(study).outcomes
    assert outcome.answer is not None
    assert outcome.answer.value == pytest.approx(1, abs=0.1)


def test_a_decimal_comma_and_another_encoding(tmp_path: Path) -> None:
    asked = (
        question("who", "count", where="name = 'Zoë'", epsilon=4),
        question("sum", "sum", column="cost", bounds=[0, 10], epsilon=40),
    )
    path = write_study(tmp_path, *asked, epsilon=44)
    lines = ["name;cost", *["Zoë;1,5"] * 500, *["Ann;2,25"] * 500, "odd\x80;1.234,5", "Ann;7.5"]
    (tmp_path / "people.csv").write_bytes("\r\n".join(lines).encode("latin-1"))
    text = path.read_text()
    start, end = text.index("schema ="), text.index("[privacy]")
    written = 'schema = { name = "text", cost = "number" }\ndecimal = ","\nencoding = "latin-1"\n\n'
    path.write_text(text[:start] + written + text[end:])
    values = [outcome.answer.value for outcome in run_study(read_study(path)).outcomes if outcome.answer is not None]
    assert values == pytest.approx([500, 1875], abs=10), "a number with a point and a comma is empty"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('title = "café"'.encode("latin-1"), "is not UTF-8, which TOML must be: save it as UTF-8"),
        (
            b"[limit]\nepsilon = 0,5\n",
            "study.toml:2: .*Numbers have a decimal point, not a comma: 0.5",
        ),
        (b'title = "a"\nname = city\n', "study.toml:2: .*Text goes in quotation marks"),
        (b"[limit]\nepsilon = = 5\n", r"this is not TOML: .*\(at line 2, column \d+\)$"),
        (b"[limit]\nepsilon = " + 5000 * b"9", "a number has thousands of digits: write fewer"),
    ],
)
def test_files_that_are_not_toml(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(content)
    with pytest.raises(InvalidStudy, match=said):
        read_study(path)
