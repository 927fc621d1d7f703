"""What packages export, as type checkers see it."""

import ast
import inspect
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from expost.errors import MissingDependency

ABSENT = {"LedgerAccountant": "expost.adapters.diffprivlib"}
"""Public names that cannot be imported here, because their libraries have environments of their own; and where."""


def exported(module: ModuleType) -> list[str]:
    """The public names of a package: its ``__all__``, or else what it imports under the same name."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return listed
    imports = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ImportFrom)]
    return [name.name for node in imports for name in node.names if name.asname == name.name]


def importable(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public names of a package and what they are, except those of libraries that are not installed here."""
    for name in exported(module):
        try:
            yield name, getattr(module, name)
        except MissingDependency:
            assert name in ABSENT, name


def class_in_source(name: str) -> ast.ClassDef:
    """A class as it is written, of a module that cannot be imported here."""
    spec = find_spec(ABSENT[name])
    assert spec is not None
    assert spec.origin is not None
    body = ast.parse(Path(spec.origin).read_text()).body
    (found,) = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
    return found
