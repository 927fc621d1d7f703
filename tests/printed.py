"""Pages that show Python as one types it. Nothing on such a page fixes the noise, so that nobody copies a seed.

Here one is added: ledgers get ``noise=``, and private tables ``key=``, so that a page shows what it says. With
EXPOST_GOLDEN=update it gets what was printed. A page is one of these if it has the comment that is ``MARK``.

``python tests/printed.py page`` follows a page in the current folder, also where nothing but expost is installed.
"""

from __future__ import annotations

import ast
import doctest
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from traceback import format_exception_only
from typing import Any

MARK = "<!-- no seed: tests/printed.py adds one -->"
ADDED = {"Ledger": ("noise", "xp.SeededNoise(1)"), "read": ("key", "1")}
"""What is added to which calls."""
SAID_OF_SEEDS = "its noise is seeded and can be predicted: for trials, and not private"
"""What a ledger says of the seed that was added: nobody who follows the page reads that."""
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
_ROOT = Path(__file__).resolve().parents[1]


def pages() -> list[Path]:
    """All of them."""
    found = [_ROOT / "README.md", *sorted((_ROOT / "docs").glob("*.md")), *sorted((_ROOT / "docs").glob("*/*.md"))]
    return [page for page in found if is_one(page)]


def is_one(page: Path) -> bool:
    """Whether a page is one of these."""
    return MARK in page.read_text(encoding="utf-8")


def follow(page: Path) -> int:
    """Run a page's examples, and compare what they print; returns how many there are."""
    text = page.read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_examples(re.sub("^```.*$", "", text, flags=re.MULTILINE))
    shown = [example.want for example in examples]
    printed = list(_run(examples, page))
    checker = doctest.OutputChecker()
    stale = [place for place, said in enumerate(printed) if not checker.check_output(shown[place], said, _FLAGS)]
    if os.environ.get("EXPOST_GOLDEN") == "update":
        page.write_text(_with(text, examples, {place: printed[place] for place in stale}), encoding="utf-8")
    else:
        told = [f">>> {examples[place].source}{printed[place]}the page has\n{shown[place]}" for place in stale]
        assert not stale, f"{page.name}:\n" + "\n".join(told)
    return len(examples)


def _run(examples: list[doctest.Example], page: Path) -> Iterator[str]:
    """What each example prints, one after the other, in one namespace."""
    known: dict[str, Any] = {"__name__": "__main__"}
    for example in examples:
        said: list[str] = []
        again = doctest.Example(seeded(example.source), "", lineno=example.lineno)
        test = doctest.DocTest([again], known, page.name, str(page), example.lineno, None)
        runner = _Recorder(said)
        runner.run(test, out=lambda text: None, clear_globs=False)
        known = test.globs
        yield "".join(said).replace(f" · {SAID_OF_SEEDS}", "").replace(f"; {SAID_OF_SEEDS}", "")


class _Recorder(doctest.DocTestRunner):
    """Keeps what was printed, as a page shows it."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(_Never(), verbose=False, optionflags=_FLAGS)
        self.said = said

    def report_failure(self, out: Any, test: Any, example: Any, got: str) -> None:
        """Nothing was expected, so whatever was printed comes here."""
        self.said.append(got)

    def report_unexpected_exception(self, out: Any, test: Any, example: Any, exc_info: Any) -> None:
        """As a page shows an error."""
        told = "".join(format_exception_only(exc_info[1]))
        self.said.append(f"Traceback (most recent call last):\n{told}")


class _Never(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return not got


def seeded(source: str) -> str:
    """Python with what is added."""
    return f"{ast.unparse(_Seeds().visit(ast.parse(source)))}\n"


class _Seeds(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        named = node.func.attr if isinstance(node.func, ast.Attribute) and _is_xp(node.func.value) else ""
        if named in ADDED:
            keyword, value = ADDED[named]
            node.keywords.append(ast.keyword(keyword, ast.parse(value, mode="eval").body))
        return node


def _is_xp(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "xp"


def _with(text: str, examples: list[doctest.Example], said: dict[int, str]) -> str:
    """A page with what was printed. Examples begin at the left."""
    lines = text.splitlines(keepends=True)
    for place in sorted(said, reverse=True):
        begin = examples[place].lineno + len(examples[place].source.splitlines())
        shown = "".join(f"{line.rstrip() or '<BLANKLINE>'}\n" for line in said[place].splitlines())
        lines[begin : begin + len(examples[place].want.splitlines())] = [shown]
    return "".join(lines)


if __name__ == "__main__":
    print(f"followed {follow(Path(sys.argv[1]))} examples of {sys.argv[1]}")
