"""A ledger's entries as a table for people."""

from __future__ import annotations

from collections.abc import Iterable

from expost.cost import Cost
from expost.ledger.entry import Balance, Entry

_HEADINGS = ("#", "account", "what", "state", "part", "reserved", "charged", "refunded")
_WIDEST = 44  # characters of a cell


def statement(name: str, entries: Iterable[Entry], balance: Balance, remaining: Cost) -> str:
    """One line an entry, then the balance; ``remaining`` also knows the limits above.

    A voided entry charged nothing; an open one shows what it holds.
    """
    rows = [_HEADINGS, *(_row(entry) for entry in entries)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADINGS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("─" * width for width in widths))
    lines.append("")
    lines.append(
        f"{name}: limit {balance.limit} · spent {balance.spent} · set aside {balance.reserved} · remaining {remaining}"
    )
    return "\n".join(lines)


def _row(entry: Entry) -> tuple[str, ...]:
    return (
        str(entry.id),
        entry.account,
        _cut(entry.what),
        entry.state,
        "" if entry.part is None else _cut(str(entry.part)),
        str(entry.reserved),
        _shown(entry.charged),
        _shown(entry.refunded),
    )


def _shown(cost: Cost | None) -> str:
    return "" if cost is None else str(cost)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
