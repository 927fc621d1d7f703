"""Pages that show a session at the prompt: files with a caption are written, commands run, and their output compared.

After the first run of a study numbers are noise, and only the words are compared. An ellipsis stands for anything.
With EXPOST_GOLDEN=update a page gets what was printed where that differs. Then all that has noise is of one run, but
for what has ellipses: numbers on a page never contradict each other.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from commands import CliRunner
from expost.cli.main import app

_BLOCK = re.compile(r"```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)```|```console\n(.*?)```", re.DOTALL)
_NUMBER = re.compile(r"[0-9a-f]{64}|-?\d+(,\d{3})*(\.\d+)?(e-?\d+)?")  # no comma behind it


def replay(page: Path, folder: Path, run: Callable[[str], str] | None = None) -> int:
    """Follow a page in a folder, the current one; returns the number of commands. ``run`` gives what one prints."""
    text, noisy, commands, stale = page.read_text(encoding="utf-8"), False, 0, False
    recorded: list[tuple[str, str, str]] = []
    for block in _BLOCK.finditer(text):
        name, content, session = block.groups()
        if name:
            (folder / name).write_text(content, encoding="utf-8")
            continue
        fresh = anew = ""
        for command, shown in _steps(session):
            commands += 1
            said = trimmed((run or _run)(command))
            noisy = noisy or command.startswith("expost run")
            same = _matches(shown, said, noisy)
            if os.environ.get("EXPOST_GOLDEN") != "update":
                assert same, f"{page.name}: $ {command}\n{said}\nand the page has\n{shown}"
            stale = stale or (noisy and not same)
            fresh += f"$ {command}\n{shown if same else said}"
            anew += f"$ {command}\n{shown if same and (not noisy or '…' in shown) else said}"
        recorded.append((session, fresh, anew))
    for session, fresh, anew in recorded:
        text = text.replace(session, anew if stale else fresh)
    if os.environ.get("EXPOST_GOLDEN") == "update":
        page.write_text(text, encoding="utf-8")
    return commands


def _steps(session: str) -> Iterator[tuple[str, str]]:
    for step in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        yield command, shown


def _run(command: str) -> str:
    program, *arguments = shlex.split(command)
    if program == "python":
        printed = StringIO()
        with redirect_stdout(printed):
            runpy.run_path(arguments[0], run_name="__main__")
        said = printed.getvalue()
    else:
        assert program == "expost", command
        said = CliRunner().invoke(app, arguments).output
    return said


def trimmed(said: str) -> str:
    """Without spaces at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in said.splitlines())


def _matches(shown: str, said: str, noisy: bool) -> bool:
    shown, said = (_words(text) if noisy else re.sub("[0-9a-f]{64}", "#", text) for text in (shown, said))
    pattern = re.escape(shown).replace(r"\ …\ ", r"\ (?:.*\ )?").replace("…", ".*")  # a line of its own may be nothing
    return re.fullmatch(pattern, said, re.DOTALL) is not None


def _words(text: str) -> str:
    """Without numbers, and without the spaces and ends of lines that depend on their lengths."""
    return re.sub(r"[\s─]+", " ", _NUMBER.sub("#", text))
