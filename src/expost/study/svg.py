"""The plot of a receipt as SVG, drawn by hand: no script, no font and no picture from elsewhere.

Names and values are above their bars, and lengths are shares of the width: letters have one size on every screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from expost.mentions import printable

_ROW = 40
_PIECE = 15  # rows: what is longer is drawn in pieces, so that a printed page can end between two
_LONGEST = 34


def budget(rows: Sequence[tuple[str, float, float, str]], title: str) -> str:
    """For each question what was charged of what was reserved: (name, reserved, charged, what it is if it has no ε)."""
    widest = max((reserved for _, reserved, *_ in rows), default=0.0) or 1.0
    drawn = []
    for place, (name, reserved, charged, used) in enumerate(rows):
        y = place % _PIECE * _ROW
        if used:  # a length would be in other units
            drawn.append(_words(name, f"{used}, no ε", y))
            continue
        words = _words(name, f"{charged:.4g} of {reserved:.4g}", y)
        drawn.append(words + _rect("back", 0, y, 100 * reserved / widest) + _rect("bar", 0, y, 100 * charged / widest))
    return _svg(drawn, title)


def _words(name: str, value: str, y: int) -> str:
    """A name at the left and a value at the right."""
    return (
        f'<text class="name" x="0" y="{y + 16}">{escape(_cut(name))}</text>'
        f'<text class="value" x="100%" y="{y + 16}">{escape(value)}</text>'
    )


def _rect(kind: str, x: float, y: int, width: float) -> str:
    return f'<rect class="{kind}" x="{x:.2f}%" y="{y + 22}" width="{width:.2f}%" height="14" rx="2"/>'


def _svg(rows: Sequence[str], title: str) -> str:
    """Rows below each other, in pieces."""
    return "".join(
        f'<svg width="100%" height="{len(piece) * _ROW + 2}" role="img" aria-label="{escape(title, quote=True)}">'
        f"<title>{escape(title)}</title>{''.join(piece)}</svg>"
        for piece in (rows[at : at + _PIECE] for at in range(0, len(rows), _PIECE))
    )


def _cut(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
