"""The commands about studies: what they print, whatever names and words they are given."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from expost.cli.main import app
from studies import COUNT, write_study

RUNNER = CliRunner()


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
        [sys.executable, "-c", "from expost.cli import main; main()", "run", str(path)],
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
