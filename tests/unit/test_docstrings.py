"""Every public class says what it is made of: its parameters, or its attributes if nobody makes one."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum

import pytest

from exports import ABSENT, class_in_source, importable

pytestmark = pytest.mark.counted
PACKAGES = [
    "expost",
    "expost.accounting",
    "expost.adapters",
    "expost.data",
    "expost.learn",
    "expost.ledger",
    "expost.noise",
    "expost.recipes",
    "expost.service.client",
    "expost.study",
    "expost.verify",
]

RECEIVED = {
    "AsyncConnection",
    "Balance",
    "Composition",
    "Connection",
    "Enclosure",
    "Entry",
    "TrailLine",
    "LocationAndSpread",
    "MeterReading",
    "Outcome",
    "Plan",
    "PrivateTable",
    "Quote",
    "RecipeResult",
    "Release",
    "Remaining",
    "Request",
    "Reservation",
    "Result",
    "Study",
    "Summary",
    "Verdict",
    "Witness",
}
"""Public classes whose objects people receive and do not construct: they have an Attributes section instead."""


def section(docstring: str | None, heading: str) -> list[str]:
    """The names in a section of a docstring; none if it has no such section."""
    found = re.split(rf"\n\s*{heading}\n\s*-{{10}}\n", docstring or "", maxsplit=1)[1:]
    texts = [inspect.cleandoc(text).split("\n\n")[0] for text in found]
    rows = [row for text in texts for row in re.findall(r"^\w+(?:, \w+)*$", text, re.MULTILINE)]
    return [name for row in rows for name in row.split(", ")]


def classes(package: str) -> Iterator[type]:
    """The public classes that can be imported here, except those that are only subclassed or raised."""
    for _, kind in importable(importlib.import_module(package)):
        if not inspect.isclass(kind) or issubclass(kind, Exception | Enum):
            continue
        if not inspect.isabstract(kind) and not getattr(kind, "_is_protocol", False):
            yield kind


def made_of(kind: type) -> set[str]:
    """The fields of a record; of other classes none are known."""
    return {field.name for field in fields(kind)} if is_dataclass(kind) else set(getattr(kind, "_fields", ()))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_class_has_its_own_docstring(package: str) -> None:
    for kind in classes(package):
        assert kind.__doc__ not in [None, *(base.__doc__ for base in kind.__mro__[1:])], kind


@pytest.mark.parametrize("package", PACKAGES)
def test_every_parameter_of_a_public_class_is_in_its_own_docstring(package: str) -> None:
    wanted = {
        kind: list(inspect.signature(kind).parameters) for kind in classes(package) if kind.__name__ not in RECEIVED
    }
    found = {kind: section(kind.__doc__, "Parameters") for kind in wanted}
    assert {kind: found[kind] for kind in wanted if sorted(found[kind]) != sorted(wanted[kind])} == {}


def test_every_attribute_of_what_people_receive_is_in_its_own_docstring() -> None:
    received = {kind for package in PACKAGES for kind in classes(package) if kind.__name__ in RECEIVED}
    assert {kind.__name__ for kind in received} == RECEIVED
    for kind in received:
        named = set(section(kind.__doc__, "Attributes"))
        assert named, f"{kind} has no Attributes section"
        assert made_of(kind) <= named, kind
        annotated = {name for base in kind.__mro__ for name in getattr(base, "__annotations__", {})}
        assert {name for name in named if not hasattr(kind, name)} <= annotated, kind


@pytest.mark.parametrize("name", ABSENT)
def test_a_class_of_an_absent_library_has_them(name: str) -> None:
    kind = class_in_source(name)
    (made,) = [node for node in kind.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    parameters = [each.arg for each in [*made.args.args, *made.args.kwonlyargs]]
    assert ["self", *section(f"\n{ast.get_docstring(kind)}", "Parameters")] == parameters


def test_a_section_is_found() -> None:
    text = """A class.

    Parameters
    ----------
    first, second
        Two of them.
    third
        Another: one

        word
    """
    assert section(text, "Parameters") == ["first", "second", "third"]
    assert section(text, "Attributes") == section(None, "Parameters") == []
