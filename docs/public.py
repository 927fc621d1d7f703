"""The reference: one page for each public name, written from what the packages export when the pages are built.

A name has its page where it is shortest: ``xp.Laplace``, although ``xp.mechanisms.Laplace`` is the same class.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from expost.errors import MissingDependency
from expost.questions import Statistic

PACKAGES = {
    "": "What you type first. After `import expost as xp` each name is written as it stands here.",
    "questions": "Questions and statistics: what is asked, without an ε and without data.",
    "mechanisms": "All mechanisms: for arrays, and for questions of your own.",
    "data": "Private tables, groups, and what their answers are made of.",
    "ledger": "Entries, reservations, receipts and settings of ledgers.",
    "ledger.verify": "Checks of audit trails and their exports.",
    "recipes": "Several mechanisms and a ledger together.",
    "learn": "Estimators for scikit-learn.",
    "study": "Studies: files that ask questions, and what a run publishes.",
    "errors": "Every error and warning. Private values never cause one.",
    "adapters": "Mechanisms of other libraries, charged to a ledger.",
    "accounting": "Composition, early stopping and prices: pure functions.",
    "accounting.renyi": "Rényi prices.",
    "noise": "Exact samplers on a cryptographic source.",
    "verify": "Exact checks of guarantees.",
    "verify.audit": "Samples that may refute a guarantee.",
    "service.client": "What `xp.connect` returns.",
    "question": "The contract between questions and ledgers, for questions of your own.",
    "estimates": "Many numbers at once, and what is published as a frame.",
}
"""Packages in the order of the reference, and what is in them."""
SECTIONS = {
    "expost.questions": "What you ask",
    "expost.mechanisms": "Noise, counts and choices",
    "expost.mechanisms.sparse_vector": "Thresholds",
    "expost.mechanisms.reduction": "As accurate as needed",
    "expost.mechanisms.moments": "Means and variances",
    "expost.mechanisms.quantiles": "Medians and other quantiles",
    "expost.mechanisms.stability": "Propose-test-release",
    "expost.mechanisms.linear": "Models",
    "expost.mechanisms.tuning": "Tuning",
}
"""Where the table of a package has a heading: above the names that are defined there."""
_FIRST = "Tables, ledgers, answers"
_ONE_PAGE = ("errors",)
_OF_STATISTICS = ("read", "question")
"""What engines call of a statistic: told once, of ``Statistic``."""
_FOLDER = "reference/names"


@dataclass(frozen=True)
class Name:
    """A public name: the package that it is documented in, and what it is; None if its library is not installed."""

    package: str
    name: str
    value: Any

    @property
    def typed(self) -> str:
        """What one types."""
        return ".".join(filter(None, ("xp", self.package, self.name)))

    @property
    def path(self) -> str:
        """What is imported."""
        return self.typed.replace("xp", "expost", 1)

    @property
    def page(self) -> str:
        """Its page; of what shares one, the place there."""
        return f"xp.{self.package}.html#{self.path}" if self.package in _ONE_PAGE else f"{self.typed}.html"

    @property
    def directive(self) -> str:
        """The directive of autodoc that documents it."""
        if inspect.isclass(self.value):
            return "autoexception" if issubclass(self.value, BaseException) else "autoclass"
        return "autofunction" if inspect.isroutine(self.value) else "autodata"

    @property
    def summary(self) -> str:
        """The first sentence of its documentation, on one line."""
        if self.directive == "autodata":
            return f"``{self.value!r}``" if len(repr(self.value)) < 60 else ""
        text = (inspect.getdoc(self.value) or "").partition("\n\n")[0]
        return " ".join(text.split())


def exported(module: ModuleType) -> list[str]:
    """The public names: a package's ``__all__``, else what it imports under the same name, else what it defines."""
    listed: list[str] | None = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if not name.startswith("_")]
    imports = [node for node in ast.parse(inspect.getsource(module)).body if isinstance(node, ast.ImportFrom)]
    names = [name.name for node in imports for name in node.names if name.asname == name.name]
    return names or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def names() -> list[Name]:
    """Every public name once, in the first package that has it."""
    found: list[Name] = []
    seen: set[int] = set()
    for package in PACKAGES:
        module = import_module(f"expost.{package}" if package else "expost")
        for name in exported(module):
            try:
                value = getattr(module, name)
            except MissingDependency:
                continue
            if id(value) not in seen and not inspect.ismodule(value):
                seen.add(id(value))
                found.append(Name(package, name, value))
    return found


def write(folder: Path) -> None:
    """Write a page for each name and each package."""
    everything, pages = names(), {}
    for package in PACKAGES:
        here = [name for name in everything if name.package == package]
        module = import_module(f"expost.{package}" if package else "expost")
        elsewhere = [name for name in everything if name.name in exported(module) and name not in here]
        pages[_typed(package)] = "\n".join(_package(package, here, elsewhere))
        if package not in _ONE_PAGE:
            pages |= {name.typed: "\n".join(_page(name, "=")) for name in here}
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.rst"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        page = folder / f"{name}.rst"
        if not page.exists() or page.read_text(encoding="utf-8") != text:  # what is unchanged is not read again
            page.write_text(text, encoding="utf-8")


def _typed(package: str) -> str:
    return f"xp.{package}" if package else "xp"


def _heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def _page(name: Name, line: str) -> Iterator[str]:
    yield from _heading(name.typed, line)
    yield f".. {name.directive}:: {name.path}"
    if name.directive in ("autoclass", "autoexception"):
        yield "   :members:"
    if name.directive == "autoexception":
        yield "   :show-inheritance:"
    if name.directive == "autoclass" and issubclass(name.value, Statistic) and name.value is not Statistic:
        yield f"   :exclude-members: {', '.join(_OF_STATISTICS)}"
    yield ""


def _package(package: str, here: list[Name], elsewhere: list[Name]) -> Iterator[str]:
    yield from _heading(_typed(package), "=")
    yield from (PACKAGES[package].replace("`", "``"), "")
    yield from (f".. module:: {_typed(package).replace('xp', 'expost', 1)}", "   :no-contents-entry:", "")
    if elsewhere:
        yield from (f"Also here: {', '.join(f':doc:`{name.typed}`' for name in elsewhere)}.", "")
    if package in _ONE_PAGE:
        for name in here:
            yield from _page(name, "-")
        return
    sections: dict[str, list[Name]] = {}
    for name in here:
        sections.setdefault(_section(package, name), []).append(name)
    for title, inside in sorted(sections.items(), key=lambda pair: [_FIRST, *SECTIONS.values(), ""].index(pair[0])):
        if len(sections) > 1:
            yield from _heading(title, "-")
        yield from (".. list-table::", "   :class: names", "   :widths: auto", "")
        for name in inside:
            yield from (f"   * - :doc:`{name.typed}`", f"     - {name.summary}")
        yield ""
    yield from (".. toctree::", "   :hidden:", "", *(f"   {name.name} <{name.typed}>" for name in here), "")


def _section(package: str, name: Name) -> str:
    """The heading for a name: of the deepest module that has one, if its package has several."""
    home = getattr(name.value, "__module__", "")
    if package not in ("", "mechanisms"):
        return ""
    inside = [module for module in SECTIONS if f"{home}.".startswith(f"{module}.")]
    if not package:
        inside = [module for module in inside if module.count(".") == 1]
    return SECTIONS[max(inside, key=len)] if inside else SECTIONS["expost.mechanisms"] if package else _FIRST


_HOMES: dict[str, str] = {}
"""Where a name is documented, by the name alone."""


def prepare(app: Any) -> None:
    """Write the pages before Sphinx looks for them."""
    write(Path(app.srcdir) / _FOLDER)
    _HOMES.update({name.name: name.path for name in reversed(names())})


def resolve(app: Any, env: Any, node: Any, shown: Any) -> Any:
    """Let a reference to a name by its module, or by the name alone, lead to its page; else show the name alone."""
    from sphinx.util.nodes import make_refnode

    if node.get("refdomain") != "py":
        return None
    parts = node["reftarget"].split(".")
    objects = env.domains["py"].objects
    for place, part in enumerate(parts):
        full = ".".join((_HOMES.get(part, part), *parts[place + 1 :]))
        if part in _HOMES and full in objects:
            found = objects[full]
            return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, [shown], full)
    short = parts[-1]
    return shown.__class__("", short) if len(parts) > 1 and shown.astext() == node["reftarget"] else None


def tell_less(app: Any, domain: str, kind: str, content: Any) -> None:
    """Leave out of exceptions the parameters that only the library gives them."""
    from docutils import nodes

    if kind != "exception":
        return
    for field in list(content.findall(nodes.field)):
        words = field[0].astext().split()
        told = {" ".join(one[0].astext().split()[1:]) for one in content.findall(nodes.field)
                if one[0].astext().startswith("param ")}  # fmt: skip
        if words[0] == "rtype" or (words[0] == "type" and " ".join(words[1:]) not in told):
            field.parent.remove(field)


def setup(app: Any) -> dict[str, bool]:
    """Write the pages, and mend references."""
    app.connect("builder-inited", prepare)
    app.connect("missing-reference", resolve)
    app.connect("object-description-transform", tell_less, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
