"""What packages export, as type checkers see it."""

import ast
import inspect
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType


def exported(module: ModuleType) -> list[str]:
    """The public names of a package: its ``__all__``, or else what it imports under the same name."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return listed
    imports = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ImportFrom)]
    return [name.name for node in imports for name in node.names if name.asname == name.name]


def class_in_source(module: str, name: str) -> ast.ClassDef:
    """A class as it is written, of a module that cannot be imported here."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    body = ast.parse(Path(spec.origin).read_text()).body
    (found,) = [node for node in body if isinstance(node, ast.ClassDef) and node.name == name]
    return found
