"""A ledger's entries as a table for people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from expost.cost import Cost
from expost.ledger.entry import Balance, Entry

_HEADINGS = ("#", "account", "what", "state", "part", "reserved", "charged", "refunded")
_WIDEST = 44  # characters of a cell


def statement(name: str, rows: Sequence[tuple[str, ...]], balance: Balance, remaining: Cost) -> str:
    """The rows, headings first, then the balance; ``remaining`` also knows the limits above."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("─" * width for width in widths))
    lines.append("")
    lines.append(
        f"{name}: limit {balance.limit} · spent {balance.spent} · reserved {balance.reserved} · remaining {remaining}"
        + (" · closed" if balance.closed else "")
    )
    return "\n".join(lines)


def entry_rows(entries: Iterable[Entry]) -> list[tuple[str, ...]]:
    """One row an entry. A voided entry charged nothing; an open one shows what it holds."""
    return [_HEADINGS, *(_row(entry) for entry in entries)]


def day_rows(entries: Iterable[Entry]) -> list[tuple[str, ...]]:
    """One row per account and day (UTC) of reservation: what was reserved, and what was charged and refunded of it."""
    days: dict[tuple[str, str], list[Cost]] = defaultdict(lambda: [Cost(0)] * 3)
    for entry in entries:
        sums = days[f"{entry.when:%Y-%m-%d}", entry.account]
        for column, cost in enumerate((entry.reserved, entry.charged, entry.refunded)):
            sums[column] = sums[column] + (cost or Cost(0))
    return [("day", "account", "reserved", "charged", "refunded"), *(
        (day, account, *map(str, sums)) for (day, account), sums in sorted(days.items())
    )]  # fmt: skip


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
