"""The commands about studies: what they print, whatever names and words they are given."""

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from commands import CliRunner
from expost.cli.main import app
from studies import COUNT, write_people, write_study

pytestmark = pytest.mark.slow
RUNNER = CliRunner()
COMMAND = [sys.executable, "-c", "from expost.cli import main; main()"]


def test_words_are_no_markup(tmp_path: Path) -> None:
    label = 'label = "[/bold] of :smile: [red]x"\n'
    path = write_study(tmp_path, COUNT + label)
    path.write_text(path.read_text().replace('name = "people"', 'name = "pe[o]ple"'))
    study = path.rename(tmp_path / "my [last] study.toml")
    for command in (["plan", str(study)], ["run", str(study)], ["report", str(study)]):
        result = RUNNER.invoke(app, command)
        assert result.exit_code == 0, result.output
        if command[0] != "plan":
            assert ("pe[o]ple: limit" if command[0] == "run" else "my [last] study.html") in result.output


def test_on_a_terminal_answers_stand_on_lines_of_their_own(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT, COUNT.replace('"old"', '"again"'))
    reader, writer = os.openpty()
    with subprocess.Popen(
        [*COMMAND, "run", str(path)],
        stdin=writer, stdout=writer, stderr=writer, env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    ) as process:  # fmt: skip
        os.close(writer)
        seen = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while part := os.read(reader, 4096):
                seen += part
        assert process.wait(60) == 0
    os.close(reader)
    shown = [line.rpartition("\x1b[2K")[2] for line in seen.decode().splitlines()]  # what clearing a line leaves
    plain = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", line) for line in shown]
    assert sum(bool(re.match("✓ (old|again)  ", line)) for line in plain) == 2, plain


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (
            "expost ",
            ["example", "init", "plan", "run", "report", "answers", "audit", "serve", "ledger", "token", "job"],
        ),
        ("expost pl", ["plan"]),
        ("expost ledger create --neighbours ", ["add-remove", "substitute"]),
        ("expost run --re", ["--record", "--report", "--rehearse"]),
        ("expost run ", ["old/", "visits.toml"]),
        ("expost run old/", ["old/first.toml"]),
        ("expost report v", ["visits.run.json", "visits.toml"]),
        ("expost init vis", ["visits.csv", "visits.parquet"]),
        ("expost answers no/", []),
    ],
)
def test_bash_completes(tmp_path: Path, typed: str, offered: list[str]) -> None:
    """What bash gets when it asks, as the script of --show-completion asks."""
    (tmp_path / "old").mkdir()
    for name in ("visits.toml", "visits.csv", "visits.parquet", "visits.run.json", "visits.html", "old/first.toml"):
        (tmp_path / name).touch()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),  # which may be relative
        "_EXPOST_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(typed.count(" ")),
    }
    asked = subprocess.run(
        COMMAND, env=environment, capture_output=True, text=True, timeout=600, check=True, cwd=tmp_path
    )
    assert asked.stdout.split() == offered


def test_an_interrupt_charges_and_says_so(tmp_path: Path) -> None:
    path = write_study(tmp_path, COUNT)
    program = (
        "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "  # a shell may have it ignored
        "from expost.data.questions import Noisy; "
        "Noisy.sample = lambda *a: os.kill(os.getpid(), signal.SIGINT); from expost.cli import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, "run", str(path)], capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 130
    assert "worst case" in ended.stderr
    assert "Traceback" not in ended.stderr
    again = RUNNER.invoke(app, ["run", str(path), "--json"])
    record = json.loads(again.stdout)
    assert [question["state"] for question in record["questions"]] == ["lost"]
    assert record["ledger"]["spent"]["epsilon"] == "0.5"
    assert again.exit_code == 1


@pytest.mark.parametrize("wrapped", ["plan", "report"])
def test_an_interrupt_before_anything_was_sampled_says_so(tmp_path: Path, wrapped: str) -> None:
    """Before: "what was being sampled is charged its worst case", whatever was interrupted."""
    path = write_study(tmp_path, COUNT)
    program = (
        "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "import expost.study.parse as p; p.refuse_data = lambda *a: os.kill(os.getpid(), signal.SIGINT); "
        "from expost.cli import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, wrapped, str(path)], capture_output=True, text=True, timeout=600, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "interrupted: nothing was being sampled\n")


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    """Also where permissions allow it. Before: "report: …" was printed, and then that it cannot be written."""
    study = write_study(tmp_path, COUNT)
    for place in ("/proc/x.html", str(tmp_path), str(tmp_path / "none" / "x.html")):
        result = RUNNER.invoke(app, ["run", str(study), "--report", place])
        assert result.exit_code == 2
        assert "cannot be written" in result.stderr
        assert result.stdout == ""
        assert not (tmp_path / "books.db").exists()
    page = tmp_path / "page.html"
    assert f"report: {page}" in RUNNER.invoke(app, ["run", str(study), "--report", str(page)]).stdout
    assert page.read_text().startswith("<!")


def test_init_says_what_to_type_next(tmp_path: Path) -> None:
    target = tmp_path / "my study.toml"
    result = RUNNER.invoke(app, ["init", str(write_people(tmp_path)), "-o", str(target), "--bounds", "age=0,110"])
    typed = shlex.split(result.stdout.strip().rpartition("then: ")[2])
    assert typed == ["expost", "plan", str(target)]
    assert RUNNER.invoke(app, typed[1:]).exit_code == 0
    assert "expost run 'my study.toml'" in target.read_text()


@pytest.mark.parametrize("given", ["age", "age=1", "age=2,1", "=0,1", "age=0,inf", "age=0,x", "age=nan,1"])
def test_init_refuses_odd_bounds(tmp_path: Path, given: str) -> None:
    result = RUNNER.invoke(
        app, ["init", str(write_people(tmp_path)), "-o", str(tmp_path / "study.toml"), "--bounds", given]
    )
    assert result.exit_code == 2
    assert "such as age=0,110" in result.stderr
    assert not (tmp_path / "study.toml").exists()


def test_python_m_expost_is_the_command_line() -> None:
    command = [sys.executable, "-m", "expost", "--help"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("Usage: expost ")


@pytest.mark.parametrize(("text", "encoding", "beware"), [("é", "utf-8", False), ("é", "latin-1", True)])
def test_init_warns_of_what_is_no_unicode(tmp_path: Path, text: str, encoding: str, beware: bool) -> None:
    data = tmp_path / "visits.csv"
    data.write_bytes(f"name,age\n{text},3\n".encode(encoding))
    result = RUNNER.invoke(app, ["init", str(data), "-o", str(tmp_path / "study.toml")])
    assert result.exit_code == 0
    assert ("Beware: not all of" in result.stderr) == beware
    assert "Beware" not in (tmp_path / "study.toml").read_text(), "that is about values, and for its owner only"


@pytest.mark.parametrize(
    "garbled",
    ["{", "", "[]", "\x00", '{"expost record": 0}', "whole, without its ledger", "whole, with a ledger of no kind"],
)
def test_a_garbled_record_stops_no_plan_and_no_run(tmp_path: Path, garbled: str) -> None:
    study = write_study(tmp_path, COUNT)
    record = tmp_path / "study.run.json"
    assert RUNNER.invoke(app, ["run", str(study)]).exit_code == 0
    whole = json.loads(record.read_text())
    if garbled.startswith("whole"):
        ledger = {"durable": True, "name": 3, "head": "x"} if garbled.endswith("kind") else "gone"
        garbled = json.dumps({**whole, "ledger": ledger})
    for command in ("plan", "run"):
        record.write_text(garbled)
        result = RUNNER.invoke(app, [command, str(study)])
        assert result.exit_code == 0, result.output
        assert "study.run.json is not the record of a run, and is ignored" in result.stderr
    assert json.loads(record.read_text())["ledger"] == whole["ledger"]  # written anew
    assert "ignored" not in RUNNER.invoke(app, ["plan", str(study)]).stderr


@pytest.mark.parametrize(
    ("asked", "stated", "beware"),
    [("where = \"city = 'Süd'\"", "", True), ("where = \"city = 'Süd'\"", 'encoding = "utf-8"', False),
     ("where = \"city = 'Rome'\"", "", False)],
)  # fmt: skip
def test_plan_warns_of_letters_in_an_unknown_encoding(tmp_path: Path, asked: str, stated: str, beware: bool) -> None:
    """By what the study says alone: the same for every file."""
    path = write_study(tmp_path, COUNT.replace('where = "age >= 60"', asked))
    path.write_text(path.read_text().replace('path = "people.csv"', f'path = "people.csv"\n{stated}'))
    data = tmp_path / "people.csv"
    said = set()
    for odd in (b"", b"1,2,S\xfcd,3,x\n", "1,2,Süd,3,x\n".encode()):
        data.write_bytes(data.read_bytes() + odd)
        result = RUNNER.invoke(app, ["plan", str(path)])
        assert result.exit_code == 0, result.output
        assert ("is found only if people.csv is written in UTF-8" in result.stderr) == beware
        said.add(result.stderr)
    assert len(said) == 1


def test_a_warning_is_said_without_a_place_in_the_library(tmp_path: Path) -> None:
    study = write_study(tmp_path, COUNT)
    study.write_text(study.read_text().replace("epsilon = 4", "epsilon = 400", 1))
    ended = subprocess.run([*COMMAND, "plan", str(study)], capture_output=True, text=True, timeout=600, check=True)
    assert ended.stderr.startswith("beware: a limit of ε 400, δ 1e-5 guarantees little: with ε 400, answers may tell")
    assert ".py" not in ended.stderr
