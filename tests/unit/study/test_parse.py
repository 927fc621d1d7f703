"""Positions, amounts and conditions of study files."""

import tomllib
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost import Cost
from expost.errors import InvalidStudy
from expost.study import parse_study
from expost.study.key import ledger_key
from expost.study.kinds import KINDS
from expost.study.lines import line_index, line_of
from expost.study.model import Amount
from studies import COUNT, HEAD

STUDY = HEAD.format(epsilon=2, url="memory:")
SOUND = (Path(__file__).resolve().parents[3] / "examples" / "randhie.toml").read_text()


def test_lines_of_everything() -> None:
    text = (
        'a = 1\n\n[t] # x\nb = [\n  "]", # c = 3\n  2,\n]\nd = """\ne = 5\n"""\n"f g" = 1\n[[q]]\nx = 1\n[[q]]\nx = 2\n'
    )
    assert line_index(text) == {
        ("a",): 1, ("t",): 3, ("t", "b"): 4, ("t", "d"): 8, ("t", "f g"): 11,
        ("q", 0): 12, ("q", 0, "x"): 13, ("q", 1): 14, ("q", 1, "x"): 15,
    }  # fmt: skip
    assert line_of(line_index(text), ("q", 1, "y")) == 14
    assert line_of({}, ("z",)) is None


names = st.from_regex(r"[a-z]{1,4}", fullmatch=True)
values = st.sampled_from(["1", '"# [x]"', "[1,\n 2]", "{ k = 1 }", '"""\nq = 1\n"""', "'[['"])


@given(st.lists(st.tuples(names, values), unique_by=lambda pair: pair[0], max_size=6))
def test_keys_stand_where_the_index_says(pairs: list[tuple[str, str]]) -> None:
    expected: dict[tuple[str | int, ...], int] = {("t",): 1}
    text, line = "[t]\n", 2
    for name, value in pairs:
        expected["t", name] = line
        text += f"{name} = {value}\n"
        line += 1 + value.count("\n")
    tomllib.loads(text)
    assert line_index(text) == expected


def test_amounts() -> None:
    limit, remaining = Cost(2), Cost(0.5)
    assert Amount("fixed", Fraction(1, 4)).resolve(limit, remaining) == Cost(0.25)
    assert Amount("limit", Fraction(1, 4)).resolve(limit, remaining) == Cost(0.5)
    assert Amount("remaining", Fraction(1, 4)).resolve(limit, remaining) == Cost(0.125)
    for text, amount in (
        ("share = 0.1", Amount("limit", Fraction(1, 10))),
        ("share_of_remaining = 0.5", Amount("remaining", Fraction(1, 2))),
        ('epsilon = "rest"', Amount("remaining", Fraction(1))),
    ):
        study = parse_study(STUDY + COUNT.replace("epsilon = 0.5", text), Path("s.toml"))
        assert study.questions[0].amount == amount


def test_keys_depend_on_what_is_asked_only() -> None:
    first = parse_study(STUDY + COUNT, Path("s.toml"))
    moved = parse_study("# a comment\n" + STUDY + COUNT + 'label = "in words"\n', Path("t.toml"))
    other = parse_study(
        STUDY.replace('path = "people.csv"', 'path = "people.csv"\nversion = "2"') + COUNT, Path("s.toml")
    )
    assert ledger_key(first, first.questions[0]) == ledger_key(moved, moved.questions[0])
    assert ledger_key(first, first.questions[0]) != ledger_key(other, other.questions[0])
    elsewhere = parse_study(STUDY + COUNT, Path("elsewhere/s.toml"))
    assert ledger_key(first, first.questions[0]) != ledger_key(elsewhere, elsewhere.questions[0]), "another people.csv"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_explains_itself(kind: str) -> None:
    """The example of a kind is a question of its own, and its keys are described."""
    delta = "\ndelta = 1e-6" if KINDS[kind].delta else ""
    text = f'[[question]]\nname = "q"\nkind = "{kind}"\nepsilon = 0.1{delta}\n{KINDS[kind].example}\n'
    study = parse_study(STUDY + text, Path("s.toml"))
    assert study.questions[0].kind == kind
    assert all(key.help for key in KINDS[kind].keys)


@pytest.mark.parametrize(
    "line",
    [
        "share = 2",
        "share = 0",
        'epsilon = "all"',
        "epsilon = true",
        'epsilon = 1\nrepeat = { until = "any", floor = 0 }',
    ],
)
def test_amounts_that_are_none(line: str) -> None:
    with pytest.raises(InvalidStudy, match=r"s\.toml:\d+: "):
        parse_study(STUDY + COUNT.replace("epsilon = 0.5", line), Path("s.toml"))


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ('unit = "row"', 'unit = "person"\nrows = 0', r"\[privacy\] 'rows' is a whole number, at least 1, got 0"),
        ('schema = { person = "integer"', "schema = { person = 5", r"\[data\] 'schema' is a table of texts"),
        ("delta = 1e-5", "delta = 5", r"\[limit\] 'delta' is a number from 0 to below 1, got 5"),
    ],
)
def test_what_is_stated_wrongly_is_not_said_to_be_missing_too(right: str, wrong: str, said: str) -> None:
    text = STUDY.replace("[ledger]", '[ledger]\naccounting = "renyi"').replace(right, wrong)
    with pytest.raises(InvalidStudy, match=said) as raised:
        parse_study(text + COUNT, Path("s.toml"))
    assert len(raised.value.problems) == 1


VALUES = ["nan", "-inf", "true", "[]", "{}", '""', "1e400", "-1", "9" * 400, "2026-01-01"]


@given(st.data())
def test_no_text_breaks_the_parser(data: st.DataObject) -> None:
    """Lines of a sound study dropped, doubled and changed: it is read, or what is wrong is said with a line."""
    lines = SOUND.splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(lines) - 1))
        value = data.draw(st.sampled_from(VALUES))
        change = data.draw(st.sampled_from(["drop", "double", "value"]))
        key = lines[place].partition("=")[0]
        lines[place : place + 1] = {"drop": [], "double": [lines[place]] * 2, "value": [f"{key} = {value}"]}[change]
        lines = lines or [""]
    try:
        study = parse_study("\n".join(lines), Path("s.toml"))
    except InvalidStudy as error:
        found = len(error.problems)
    else:
        found = len(study.questions)
        assert found == sum(line.strip() == "[[question]]" for line in lines)
    assert found


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('name = "old"', 'name = "old"\nlabel = "x\\u0000"', 22, "character zero"),
        ('name = "old"', f'name = "old"\nlabel = "{"x" * 9001}"', 22, "at most 9000"),
        ('name = "old"', f'name = "{"x" * 201}"', 21, "at most 200"),
        ('name = "people"', 'name = "a/b"', 18, "no '/'"),
        ('name = "people"', 'name = "people"\naccount = "a//b"', 19, "a path of names"),
    ],
)
def test_what_a_ledger_cannot_keep(old: str, new: str, line: int, said: str) -> None:
    with pytest.raises(InvalidStudy, match=f"s.toml:{line}: .*{said}"):
        parse_study((STUDY + COUNT).replace(old, new, 1), Path("s.toml"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("epsilon = 0.5", 'epsilon = 0.5\nonly_if = "old > 1.2.3"', "'only_if' reads"),
        ("epsilon = 0.5", "epsilon = 1e30", "from 1e-12 to a million"),
        ("epsilon = 0.5", 'epsilon = 0.5\nnoise = "gaussian"\ndelta = 0', 'above 0 and below 1, or "rest", got 0'),
        ('unit = "row"', 'unit = "person"\nrows = 0', "'rows' is a whole number, at least 1, got 0"),
        ("[[question]]", "[question]", "write .\\[question"),
    ],
)
def test_mistakes_that_are_easily_made(old: str, new: str, said: str) -> None:
    with pytest.raises(InvalidStudy, match=said):
        parse_study((STUDY + COUNT).replace(old, new, 1), Path("s.toml"))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("epsilon = 0", "s.toml:13: [limit] 'epsilon' is a number from 1e-12 to a million, got 0"),
        ("epsilon = -1", "s.toml:13: [limit] 'epsilon' is a number from 1e-12 to a million, got -1"),
        ("epsilon = 1e-13", "s.toml:13: [limit] 'epsilon' is a number from 1e-12 to a million, got 1e-13"),
        ("epsilon = 1\ndelta = 1.5", "s.toml:14: [limit] 'delta' is a number from 0 to below 1, got 1.5"),
        ("epsilon = 1\ndelta = -1e-6", "s.toml:14: [limit] 'delta' is a number from 0 to below 1, got -1e-06"),
        ("epsilon = 1e30", "s.toml:13: [limit] 'epsilon' is a number from 1e-12 to a million, got 1e+30"),
    ],
)
def test_limits(told: str, said: str) -> None:
    with pytest.raises(InvalidStudy) as error:
        parse_study(STUDY.replace("epsilon = 2\ndelta = 1e-5", told) + COUNT, Path("s.toml"))
    assert str(error.value) == said


def test_a_password_in_an_address_is_not_shown() -> None:
    with pytest.raises(InvalidStudy, match='got "host/db"') as caught:
        parse_study(HEAD.format(epsilon=2, url="mysql://user:secret@host/db") + COUNT, Path("s.toml"))
    assert "secret" not in str(caught.value)
