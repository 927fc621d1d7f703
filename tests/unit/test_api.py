"""Every public name and its signature, as a golden text: a change to the API is a change that somebody reads."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest

import golden
from exports import class_in_source, exported, importable
from expost import Mechanism

pytestmark = pytest.mark.counted
PACKAGES = (
    "expost",
    "expost.questions",
    "expost.mechanisms",
    "expost.errors",
    "expost.learn",
    "expost.recipes",
    "expost.accounting",
    "expost.noise",
    "expost.verify",
    "expost.data",
    "expost.ledger",
    "expost.study",
    "expost.adapters",
    "expost.service.client",
)


def signature(thing: Any) -> str:
    """How it is called. Annotations are written without quotes, objects in defaults without their addresses."""
    text = re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(thing)))
    text = re.sub(r"ForwardRef\('(.*?)'[^)]*\)", r"\1", text)
    return re.sub(r"""(: |-> )(['"])(.*?)\2(?=[,)]| = |$)""", r"\1\3", text)


def own(kind: type) -> Iterator[tuple[str, Any]]:
    """The public attributes of a class that are expost's, except what every mechanism has."""
    common = vars(Mechanism) if issubclass(kind, Mechanism) and kind is not Mechanism else {}
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] == "expost":
            found |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    return iter(
        sorted(((name, value) for name, value in found.items() if name not in common), key=lambda pair: pair[0])
    )


def member(name: str, value: Any) -> str | None:
    if isinstance(value, classmethod | staticmethod):
        return f"  {name}{signature(value.__func__)}"
    if inspect.isfunction(value):
        return f"  {name}{signature(value)}"
    return f"  {name}" if isinstance(value, property) or hasattr(value, "__get__") else None


def described(name: str, thing: Any) -> Iterator[str]:
    if inspect.isclass(thing):
        made = "" if issubclass(thing, Enum | Warning) else called(thing)
        yield f"class {name}{made}"
        yield from filter(None, (member(*pair) for pair in own(thing)))
    elif callable(thing):
        yield f"{name}{signature(thing)}"
    else:
        yield name


def written(kind: ast.ClassDef) -> Iterator[str]:
    """A class that cannot be imported here, from its source: how it is made, and its own public methods."""
    methods = [node for node in kind.body if isinstance(node, ast.FunctionDef)]
    (made,) = [node for node in methods if node.name == "__init__"]
    yield f"class {kind.name}({ast.unparse(made.args).removeprefix('self, ')})"
    public = [node for node in methods if not node.name.startswith("_")]
    arguments = ["" if node.decorator_list else f"({ast.unparse(node.args)})" for node in public]
    yield from sorted({f"  {node.name}{given}" for node, given in zip(public, arguments, strict=True)})


def called(kind: type) -> str:
    """The signature of a class that says how it is made; nothing for one that is only subclassed or raised."""
    written = inspect.isfunction(kind.__init__) or issubclass(kind, tuple)  # type: ignore[misc]
    return signature(kind) if written and not getattr(kind, "_is_protocol", False) else ""


def api() -> Iterator[str]:
    homes: dict[int, str] = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        yield f"# {package}"
        present = dict(importable(module))
        for name in sorted(exported(module)):
            if name not in present:
                yield from written(class_in_source(name))
            elif callable(present[name]) and (home := homes.setdefault(id(present[name]), package)) != package:
                yield f"{name} = {home}.{name}"
            else:
                yield from described(name, present[name])
        yield ""


def test_the_public_names_and_their_signatures() -> None:
    golden.check("api", "\n".join(api()))


@pytest.mark.parametrize("package", ["expost", "expost.adapters", "expost.data"])
def test_mechanisms_are_made_by_keyword_only(package: str) -> None:
    kinds = [kind for _, kind in importable(importlib.import_module(package)) if inspect.isclass(kind)]
    made = {kind: inspect.signature(kind).parameters.values() for kind in kinds if issubclass(kind, Mechanism)}
    assert made
    assert {kind for kind, given in made.items() if any(each.kind is not each.KEYWORD_ONLY for each in given)} == set()


def test_every_public_name_is_in_it_once() -> None:
    lines = list(api())
    for package in PACKAGES:
        start = lines.index(f"# {package}") + 1
        names = {re.findall(r"\w+", line.removeprefix("class "))[0] for line in lines[start : lines.index("", start)]}
        assert set(exported(importlib.import_module(package))) <= names
    assert not any("0x" in line for line in lines)
