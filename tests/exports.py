"""What packages export, as type checkers see it."""

import ast
import inspect
from types import ModuleType


def exported(module: ModuleType) -> list[str]:
    """The public names of a package: its ``__all__``, or else what it imports under the same name."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return listed
    imports = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ImportFrom)]
    return [name.name for node in imports for name in node.names if name.asname == name.name]
