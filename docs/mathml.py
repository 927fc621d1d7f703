r"""Mathematics as MathML, written when the pages are built: no script and no network to read it.

Every browser draws MathML by itself. ``latex2mathml`` translates; it does not know a size before ``\{`` or ``\|``. Few
machines have a font for mathematics, so one comes with the pages: STIX Two Math, as ziamath ships it. Browsers break no
line within a formula, and one before the comma behind it; so long formulas are cut before relations, and punctuation
stays with its formula.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from docutils import nodes
from latex2mathml.converter import convert_to_element

FONT = "STIXTwoMath-Regular.ttf"
_SIZED = re.compile(r"\\[bB]igg?[lrm]?(?=\\[{}|])")
_RELATIONS = frozenset("=<>≤≥≠≈≡∝∈⊆→↦")
_BEHIND = re.compile(r"[.,;:!?)’”]+|-\w*")
SHORT = 24
"""A formula of at most this number of characters stays on one line."""


def _translated(latex: str, display: str) -> Element:
    formula = convert_to_element(_SIZED.sub("", latex.strip()), display=display)
    for part in formula.iter():
        part.text = part.text and unescape(part.text)  # signs are left as entities, for a text
        if part.get("movablelimits"):  # a word, such as max: browsers would put wide spaces around it
            part.attrib.update(lspace="0.1em", rspace="0.1em")
    return formula


def lines_of(formula: Element) -> Iterator[Element]:
    """The formula in pieces that each begin with a relation outside of brackets, except for the first."""
    whole, depth = Element("math", formula.attrib), 0
    piece = SubElement(whole, "mrow")
    for part in formula[0]:
        sign = part.text or "" if part.tag == "mo" else ""
        depth += (sign in set("([{⌊⌈")) - (sign in set(")]}⌋⌉"))
        if depth == 0 and sign in _RELATIONS and len(piece):
            yield whole
            whole = Element("math", formula.attrib)
            piece = SubElement(whole, "mrow")
        piece.append(part)
    yield whole


def keep_punctuation(app: Any, tree: nodes.document, name: str) -> None:
    """Give formulas the punctuation behind them."""
    for formula in list(tree.findall(nodes.math)):
        text = formula.next_node(nodes.Text, descend=False, siblings=True, ascend=False)
        found = text is not None and formula.parent.index(text) == formula.parent.index(formula) + 1
        behind = _BEHIND.match(text.astext()) if found and text is not None else None
        if behind and text is not None:
            formula["behind"] = behind.group()
            text.parent.replace(text, nodes.Text(text.astext()[behind.end() :]))


def inline(writer: Any, node: nodes.math) -> None:
    """A formula within a line."""
    formula = _translated(node.astext(), "inline")
    *first, last = lines_of(formula) if len("".join(formula.itertext())) > SHORT else [formula]
    written = "".join(tostring(piece, "unicode") for piece in first)
    end = tostring(last, "unicode")
    behind = writer.encode(node["behind"]) if "behind" in node else ""
    writer.body.append(f'{written}<span class="formula">{end}{behind}</span>' if behind else written + end)
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own, which scrolls where it is too wide."""
    writer.body.append(f'<div class="math">{tostring(_translated(node.astext(), "block"), "unicode")}</div>')
    raise nodes.SkipNode


def add_font(app: Any, error: Exception | None) -> None:
    """Put the font beside the style sheet that names it."""
    if error is None and app.builder.format == "html":
        font = files("ziamath").joinpath("fonts", FONT)
        (Path(app.outdir) / "_static" / FONT).write_bytes(font.read_bytes())


def setup(app: Any) -> dict[str, bool]:
    """Offer MathML to builders of HTML."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("doctree-resolved", keep_punctuation)
    app.connect("build-finished", add_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
