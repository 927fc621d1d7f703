"""`expost` on the command line: parses, calls and prints."""

from __future__ import annotations

import sys
import warnings
from typing import Any

__all__ = ["main"]


def main() -> None:
    """The entry point."""
    try:
        from expost.cli.main import app
    except ModuleNotFoundError as error:
        sys.exit(f"the command line needs {(error.name or '').partition('.')[0]}: pip install 'expost[cli]'")
    warnings.showwarning = _show_warning
    app(prog_name="expost")


def _show_warning(message: Warning | str, *_where: Any, **_how: Any) -> None:
    """A warning as a command says it: without a file and a line of ours."""
    from expost.cli.console import err

    err.print(f"beware: {message}", style="yellow", soft_wrap=True)
