"""`expost` on the command line: parses, calls and prints."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The entry point."""
    try:
        from expost.cli.main import app
    except ModuleNotFoundError as error:
        sys.exit(f"the command line needs {(error.name or '').partition('.')[0]}: pip install 'expost[cli]'")
    app(prog_name="expost")
