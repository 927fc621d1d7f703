"""The service's own tables, beside the ledger's: made when they are first needed."""

from __future__ import annotations

from importlib.resources import files

NAME = "0001_service"


def table_statements(backend: str) -> list[str]:
    """The statements that make them."""
    text = files(__package__).joinpath(backend, f"{NAME}.sql").read_text(encoding="utf-8")
    return [statement for statement in map(str.strip, text.split(";")) if statement]
