"""The command line in this process. It is built once: typer's own runner takes 20 ms to build it for each call."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from typer import Typer
from typer.main import get_command
from typer.testing import CliRunner as _CliRunner
from typer.testing import Result

_built = cache(get_command)


class CliRunner(_CliRunner):
    """Like typer's, for commands that end by themselves or by an exit code."""

    def invoke(  # type: ignore[override]
        self,
        app: Typer,
        args: Sequence[str] = (),
        input: str | None = None,
        env: Mapping[str, str | None] | None = None,
        prog_name: str | None = None,
    ) -> Result:
        """Run a command; what it said, and its exit code."""
        command, code, returned = _built(app), 0, None
        name = prog_name or self.get_default_prog_name(command)
        error: BaseException | None = None
        with self.isolation(input=input, env=env) as streams:
            try:
                returned = command.main(args=list(args), prog_name=name)
            except SystemExit as ended:
                code = int(ended.code or 0)
                error = ended if code else None
            except Exception as raised:
                code, error = 1, raised
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                said: list[Any] = [stream.getvalue() for stream in streams]
        return Result(self, said[0], said[1], said[2], returned, code, error)
