"""`expost init`: what it asks at a terminal, what it proposes elsewhere, and what it writes."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import CliRunner
from expost.cli.main import app
from expost.study import plan_study, read_study
from studies import CANARY, write_people

pytestmark = pytest.mark.slow
RUNNER = CliRunner()
COMMAND = [sys.executable, "-c", "from expost.cli import main; main()"]


def at_a_terminal(typed: list[str], *arguments: str) -> tuple[int, str]:
    """What a command says at a terminal, where somebody types this; and its exit code."""
    person, terminal = os.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=terminal, stdout=terminal, stderr=terminal,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "100"},
    ) as process:  # fmt: skip
        os.close(terminal)
        os.write(person, "".join(f"{line}\n" for line in typed).encode() + b"\x04")  # and no more: it ends, not waits
        seen = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(person, 4096):
                seen += part
        code = process.wait(60)
    os.close(person)
    return code, seen.decode()


def test_at_a_terminal_it_asks(tmp_path: Path) -> None:
    data, study = write_people(tmp_path), tmp_path / "study.toml"
    code, said = at_a_terminal(["", "3", "", "2", "0 to 110", ""], "init", str(data), "-o", str(study))
    assert code == 0, said
    assert "Whose rows are they? A column, or row if each is somebody else's [person]" in said
    assert "At most how many rows of one person count? Noise grows with it [10]" in said
    assert "Is how many different values of person there are private (add-remove), or public (substitute)?" in said
    assert CANARY not in said
    read = read_study(study)
    assert (read.privacy.unit, read.privacy.rows, read.privacy.neighbours) == ("person", 3, "add-remove")
    assert read.limit.epsilon == 2
    assert [question.values.get("column") for question in read.questions if "bounds" in question.values] == ["age"] * 4
    assert plan_study(read).fits


def test_at_a_terminal_it_asks_again_until_it_can_read_the_answer(tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    typed = ["persn", "cost", "row", "secret", "public", "-1", "0.5", "", "110,0", "0-110", ""]
    code, said = at_a_terminal(typed, "init", str(write_people(tmp_path)), "-o", str(study))
    assert code == 0, said
    for why in (
        "did you mean 'person'?", "'cost' holds number", "answer add-remove or substitute, got 'secret'",
        "ε must not be negative", "two numbers, the lowest first, such as 0,110, got '110,0'",
    ):  # fmt: skip
        assert why in said
    read = read_study(study)
    assert (read.privacy.unit, read.privacy.neighbours, read.limit.epsilon) == ("row", "substitute", 0.5)


def test_what_is_said_is_not_asked(tmp_path: Path) -> None:
    options = ["--unit", "person", "--rows", "2", "--neighbours", "substitute", "--epsilon", "3", "--bounds", "age=0,9"]
    code, said = at_a_terminal([], "init", str(write_people(tmp_path)), "-o", str(tmp_path / "study.toml"), *options)
    assert code == 0
    assert "?" not in said


def test_nobody_is_asked_without_a_terminal(tmp_path: Path) -> None:
    """It proposes, says why, and writes what can be planned as it is. Before: bounds were blank, and plans refused."""
    study = tmp_path / "study.toml"
    result = RUNNER.invoke(app, ["init", str(write_people(tmp_path)), "-o", str(study)])
    assert result.exit_code == 0
    told = dict(line.split(maxsplit=1) for line in result.stdout.splitlines()[:5])
    assert told == {
        "unit": "person: by its name, whom a row is about: check it (--unit)",
        "rows": "at most 10 of each person count; noise grows with it: 1 if nobody has more than one row (--rows)",
        "neighbours": "add-remove: how many different values of person there are is private (--neighbours)",
        "ε": "1.0, for the whole life of the ledger (--epsilon)",
        "bounds": "of age, cost unknown: none are guessed, and what needs them is not asked (--bounds)",
    }
    read = read_study(study)
    assert read.privacy.neighbours == "add-remove"
    assert plan_study(read).fits


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--unit", "persn"], "there is no column 'persn': did you mean 'person'?"),
        (["--unit", "cost"], "the unit is a column that tells people apart, of whole numbers or text, and 'cost'"),
        (["--unit", "row", "--rows", "3"], "name the column that says whose they are, with --unit"),
        (["--rows", "0"], "a whole number from 1 on, got 0"),
        (["--epsilon", "0"], "ε must be above 0, got '0'"),
        (["--epsilon", "-1"], "ε must not be negative, got '-1': give a number above 0"),
        (["--epsilon", "much"], "ε must be a number, got 'much'"),
        (["--bounds", "city=0,1"], "bounds are for columns of numbers, got 'city'"),
        (["--bounds", "city=0,1"], "words such as n/a stand among them"),
        (["--bounds", "Age=0,1"], "got 'Age': did you mean 'age'?"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, options: list[str], why: str) -> None:
    study = tmp_path / "study.toml"
    result = RUNNER.invoke(app, ["init", str(write_people(tmp_path)), "-o", str(study), *options])
    assert result.exit_code == 2
    assert why in result.stderr
    assert not study.exists()


@pytest.mark.parametrize("command", ["plan", "run", "report", "answers"])
@pytest.mark.parametrize("name", ["my visits.csv", "visits.parquet", "visits.csv.gz"])
def test_data_is_no_study(tmp_path: Path, command: str, name: str) -> None:
    """Before: "this is not TOML: Expected '=' after a key", and of a Parquet file that it is not UTF-8."""
    data = tmp_path / name
    data.write_bytes(b"PAR1\xff")
    result = RUNNER.invoke(app, [command, str(data)])
    assert result.exit_code == 2
    typed = f"'{data}'" if " " in name else data
    assert f"this is data, and no study: make a study of it first: expost init {typed}" in result.stderr
