"""`expost serve` as a fork of a process that has imported it: it begins at once, and dies like any other."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess

_FORKS = multiprocessing.get_context("forkserver")
_IMPORTED = ["apsw", "duckdb", "psycopg", "expost.cli.main", "expost.service.server"]


def fork_service(file: str, log: str, patch: Callable[[], None] | None = None) -> tuple[ForkServerProcess, Connection]:
    """The process, and what it prints. Its errors are appended to a log. A patch is called before it serves."""
    _FORKS.set_forkserver_preload(_IMPORTED)  # only the first time, when that process starts
    said, says = _FORKS.Pipe(duplex=False)
    with says:
        process = _FORKS.Process(target=_serve, args=(file, log, says, patch), daemon=True)
        process.start()
    return process, said


def _serve(file: str, log: str, says: Connection, patch: Callable[[], None] | None) -> None:
    from expost.cli.main import app

    os.dup2(says.fileno(), 1)
    os.dup2(os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND), 2)
    sys.argv = ["expost", "serve", file]
    os.environ["COLUMNS"] = "200"
    if patch is not None:
        patch()
    app(prog_name="expost")
