"""Small plots as SVG, drawn by hand: no script, no font and no picture from elsewhere.

Names and values are above their bars, and lengths are shares of the width: letters have one size on every screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from expost.mentions import printable

_ROW = 40
_PIECE = 15  # rows: what is longer is drawn in pieces, so that a printed page can end between two
MOST_BARS = 30
_LONGEST = 34


def bars(values: Mapping[str, float], error: float | None, title: str) -> str:
    """Horizontal bars with error bars, of the first values; negative ones grow to the left."""
    shown = list(values.items())[:MOST_BARS]
    reach = error or 0.0
    low = min(0.0, *(value - reach for _, value in shown))
    high = max(0.0, *(value + reach for _, value in shown))

    def x(value: float) -> float:
        return 100 * (value - low) / ((high - low) or 1.0)

    rows = []
    for place, (label, value) in enumerate(shown):
        y = place % _PIECE * _ROW
        left, right = sorted((x(0), x(value)))
        row = _words(label, _short(value), y) + _rect("bar", left, y, max(right - left, 0.2))
        if reach:
            row += _whisker(x(value - reach), x(value + reach), y + 29)
        if low < 0:
            row += _line("axis", x(0), y + 20, x(0), y + 38)  # beside the bar, not through its name
        rows.append(row)
    return _svg(rows, title)


def budget(rows: Sequence[tuple[str, float, float]], title: str) -> str:
    """For each question what was charged of what was reserved: (name, reserved, charged)."""
    widest = max((reserved for _, reserved, _ in rows), default=0.0) or 1.0
    drawn = []
    for place, (name, reserved, charged) in enumerate(rows):
        y = place % _PIECE * _ROW
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


def _whisker(start: float, end: float, y: int) -> str:
    """An error bar, drawn twice: a broad one below sets it off."""
    lines = ((start, y, end, y), (start, y - 5, start, y + 5), (end, y - 5, end, y + 5))
    return "".join(_line(kind, *line) for kind in ("halo", "error") for line in lines)


def _line(kind: str, x1: float, y1: int, x2: float, y2: int) -> str:
    return f'<line class="{kind}" x1="{x1:.2f}%" y1="{y1}" x2="{x2:.2f}%" y2="{y2}"/>'


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


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:,.3g}"
