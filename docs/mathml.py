r"""Mathematics as MathML, written when the pages are built: no script and no network to read it.

Every browser draws MathML by itself. ``latex2mathml`` translates; it does not know a size before ``\{`` or ``\|``. Few
machines have a font for mathematics, so one comes with the pages: STIX Two Math, as ziamath ships it.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

FONT = "STIXTwoMath-Regular.ttf"
_SIZED = re.compile(r"\\[bB]igg?[lrm]?(?=\\[{}|])")


def _markup(latex: str, display: str) -> str:
    return str(convert(_SIZED.sub("", latex.strip()), display=display))


def inline(writer: Any, node: nodes.math) -> None:
    """A formula within a line."""
    writer.body.append(_markup(node.astext(), "inline"))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own, which scrolls where it is too wide."""
    writer.body.append(f'<div class="math">{_markup(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def add_font(app: Any, error: Exception | None) -> None:
    """Put the font beside the style sheet that names it."""
    if error is None and app.builder.format == "html":
        font = files("ziamath").joinpath("fonts", FONT)
        (Path(app.outdir) / "_static" / FONT).write_bytes(font.read_bytes())


def setup(app: Any) -> dict[str, bool]:
    """Offer MathML to builders of HTML."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("build-finished", add_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
