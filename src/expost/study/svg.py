"""Small plots as SVG, drawn by hand: no script, no font and no picture from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

_ROW, _WIDTH = 26, 680
MOST_BARS = 30


def bars(values: Mapping[str, float], error: float | None, title: str) -> str:
    """Horizontal bars with error bars, of the first values; negative ones grow to the left."""
    shown = list(values.items())[:MOST_BARS]
    reach = error or 0.0
    low = min(0.0, *(value - reach for _, value in shown))
    high = max(0.0, *(value + reach for _, value in shown))
    names = _room(values)
    room = _WIDTH - names - 90

    def x(value: float) -> float:
        return names + room * (value - low) / ((high - low) or 1.0)

    parts = []
    for place, (label, value) in enumerate(shown):
        y = place * _ROW
        left, right = sorted((x(0), x(value)))
        parts += [_text("name", names - 8, y, _cut(label)), _rect("bar", left, y, max(right - left, 0.5))]
        end = right
        if reach:
            start, end = x(value - reach), x(value + reach)
            line = f"M{start:.1f} {y + 13}H{end:.1f}M{start:.1f} {y + 9}v8M{end:.1f} {y + 9}v8"
            parts.append(f'<path class="halo" d="{line}"/><path class="error" d="{line}"/>')
        parts.append(_text("value", max(end, right) + 6, y, _short(value)))
    height = len(shown) * _ROW + 4
    axis = f'<path class="axis" d="M{x(0):.1f} 0V{height}"/>'
    return _svg(height, title, "".join(parts) + axis)


def budget(rows: Sequence[tuple[str, float, float]], title: str) -> str:
    """For each question what was charged of what was reserved: (name, reserved, charged)."""
    widest = max((reserved for _, reserved, _ in rows), default=0.0) or 1.0
    names = _room(name for name, _, _ in rows)
    room = _WIDTH - names - 150
    parts = []
    for place, (name, reserved, charged) in enumerate(rows):
        y = place * _ROW
        whole, paid = room * reserved / widest, room * charged / widest
        parts += [_text("name", names - 8, y, _cut(name)), _rect("back", names, y, whole), _rect("bar", names, y, paid)]
        parts.append(_text("value", names + whole + 6, y, f"{charged:.4g} of {reserved:.4g}"))
    return _svg(len(rows) * _ROW + 4, title, "".join(parts))


def _text(kind: str, x: float, y: int, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y + 17}">{escape(text)}</text>'


def _rect(kind: str, x: float, y: int, width: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y + 4}" width="{width:.1f}" height="18" rx="2"/>'


def _svg(height: int, title: str, inside: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title, quote=True)}">'
        f"<title>{escape(title)}</title>{inside}</svg>"
    )


def _room(names: Iterable[str]) -> int:
    """How wide the names are, about."""
    return min(200, 16 + 8 * max((len(_cut(name)) for name in names), default=0))


def _cut(text: str) -> str:
    return text if len(text) <= 23 else f"{text[:22]}…"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:,.3g}"
