"""What notebooks show, as HTML. Whatever it is given is escaped; nothing is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_COLORS = {"spent": "#3b6fb5", "reserved": "#e0a030", "remaining": "#cfd8e3"}


def html_table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Rows under headings."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_text(text: str) -> str:
    """A paragraph."""
    return f"<p>{escape(text)}</p>"


def html_lines(title: str, lines: Sequence[str]) -> str:
    """A title, and a line for each fact."""
    return f"<p><b>{escape(title)}</b>{''.join(f'<br>{escape(line)}' for line in lines)}</p>"


def html_bar(name: str, parts: dict[str, float], words: str) -> str:
    """A bar whose parts, shares of its length, are what is spent, reserved and remaining; and the same in words."""
    left, drawn = 1.0, []
    for part, share in parts.items():
        share = min(max(share, 0.0), left)
        left -= share
        drawn.append(f'<div style="width:{100 * share:.2f}%;background:{_COLORS[part]}" title="{escape(part)}"></div>')
    outside = "display:flex;height:1em;max-width:30em;border:1px solid #8894a4"
    shown = f'<div style="{outside}" role="img" aria-label="{escape(words, quote=True)}">{"".join(drawn)}</div>'
    return f"<div><b>{escape(name)}</b>{shown}<small>{escape(words)}</small></div>"
