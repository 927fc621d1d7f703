"""Which globals of our own modules a test replaces, read from its text."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOMES = {"expost": ROOT / "src", "paper": ROOT, "check": ROOT / "proofs", "bridge": ROOT / "proofs"}
"""The first parts of the names of our own modules, and the folders that these are in."""


def patched(text: str) -> set[str]:
    """The full names of globals that a file replaces. Attributes of classes and of objects are none."""
    tree = ast.parse(text)
    names, found = full_names(tree), set[str]()
    for node in ast.walk(tree):
        for written in replaced(node):
            first, dot, rest = written.partition(".")
            found.add(f"{names.get(first, first)}{dot}{rest}")
    return {name for name in found if is_module(name.rpartition(".")[0])}


def full_names(tree: ast.AST) -> dict[str, str]:
    """What the imports of a file are called there, and their full names."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.asname: name.name for name in node.names if name.asname}
        elif isinstance(node, ast.ImportFrom):
            found |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
    return found


def replaced(node: ast.AST) -> list[str]:
    """What a statement or a call replaces, as it is written there: a name, or a dictionary with another entry."""
    if isinstance(node, ast.Call):
        return replaced_by_call(node)
    targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else getattr(node, "targets", [])
    parts = [part for target in targets for part in ast.walk(target)]
    names = [part for part in parts if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load)]
    return [ast.unparse(part) for part in [*names, *(part.value for part in parts if isinstance(part, ast.Subscript))]]


def replaced_by_call(call: ast.Call) -> list[str]:
    """The same for ``setattr``, ``monkeypatch.setattr``, ``mock.patch`` and their kin."""
    does = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    given = [str(arg.value) if isinstance(arg, ast.Constant) else ast.unparse(arg) for arg in call.args[:2]]
    if not given or does not in ("setattr", "delattr", "setitem", "delitem", "patch", "object", "dict"):
        return []
    whole = does in ("setitem", "delitem", "dict") or isinstance(call.args[0], ast.Constant)
    return given[:1] if whole else [".".join(given)]


def is_module(name: str) -> bool:
    """Whether it is the name of one of our modules."""
    first, *rest = name.split(".")
    place = HOMES.get(first, ROOT / "nowhere").joinpath(first, *rest)
    return place.is_dir() or place.with_suffix(".py").exists()
