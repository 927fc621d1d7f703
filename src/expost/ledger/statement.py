"""A ledger's entries as a table for people."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Literal, NamedTuple

from expost.cost import Cost, decimal_text
from expost.errors import InvalidValue
from expost.ledger.arguments import harmless
from expost.ledger.entry import Entry, Used, View
from expost.ledger.metered import balance_shown
from expost.ledger.readings import meter_lines, readings

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters
    from expost.ledger.ledger import Ledger

_HEADINGS = ("#", "account", "what", "state", "came out", "reserved", "charged", "refunded")
PRICE_HEADING = "Rényi price"
"""What a charge at the ledger's order is called in tables."""
_WIDEST = 44  # characters of a cell


class Totals(NamedTuple):
    """A consistent snapshot of a ledger or account: its numbers and entries agree, whoever spends meanwhile."""

    costs: dict[str, Cost]
    """The limit, and what is spent, reserved and remaining."""
    closed: bool
    entries: Iterable[Entry]


def totals_of(ledger: Ledger) -> Totals:
    """A snapshot of a ledger or account as it is now. Its entries are read lazily."""
    store = ledger._store
    view = store.view(ledger._path)
    return Totals(balance_shown(store.meters, view.levels), any(level.closed for level in view.levels), view.entries)


def statement_lines(
    name: str, rows: Callable[[], Iterable[tuple[str, ...]]], balance: dict[str, Cost], closed: bool, caution: str = ""
) -> Iterator[str]:
    """The rows, headings first, then the balance.

    Rows are read twice, first for the widths of the columns.
    """
    widths: list[int] = []
    for row in rows():
        widths = [max(pair) for pair in zip_longest(widths, map(len, row), fillvalue=0)]
    for number, row in enumerate(rows()):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        if number == 0:
            yield "  ".join("─" * width for width in widths)
    yield ""
    yield f"{name}: " + " · ".join(
        [*(f"{what} {cost}" for what, cost in balance.items()), *["closed"] * closed, *[caution] * bool(caution)]
    )


def lines_of(
    name: str, view: View, meters: LedgerMeters | None, by: Literal["entry", "day"], caution: str = ""
) -> Iterator[str]:
    """The statement of an account: its entries or days, its balance with what to beware of, and its meters."""
    if by not in ("entry", "day"):
        raise InvalidValue(f"a statement is by 'entry' or by 'day', got {harmless(by)}")
    table, own = entry_rows if by == "entry" else day_rows, view.levels[-1]
    rows = partial(table, view.entries, priced=meters is not None)
    lines = statement_lines(name, rows, balance_shown(meters, view.levels), own.closed, caution)
    return chain(lines, meter_lines(readings(meters, own)))


def entry_rows(entries: Iterable[Entry], *, priced: bool = False) -> Iterator[tuple[str, ...]]:
    """One row per entry. An open entry shows only what it reserves. ``priced`` adds the Rényi price charged."""
    if not priced:
        return chain([_HEADINGS], map(_row, entries))
    return chain([(*_HEADINGS, PRICE_HEADING)], ((*_row(entry), _price(entry)) for entry in entries))


def day_rows(entries: Iterable[Entry], *, priced: bool = False) -> list[tuple[str, ...]]:
    """One row per day (UTC) of reservation and account: what was reserved, and what was charged and refunded of it."""
    days, prices = day_sums(entries)
    return [("day", "account", "reserved", "charged", "refunded", *([PRICE_HEADING] * priced)), *(
        (*day, *map(str, sums), *([decimal_text(prices[day], 12)] * priced)) for day, sums in sorted(days.items())
    )]  # fmt: skip


def day_sums(entries: Iterable[Entry]) -> tuple[dict[tuple[str, str], list[Used]], Counter[tuple[str, str]]]:
    """By day and account: what was reserved, charged and refunded; and the Rényi prices, in units."""
    days: dict[tuple[str, str], list[Used]] = defaultdict(lambda: [Used(Cost(0))] * 3)
    prices: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        day = f"{entry.when:%Y-%m-%d}", entry.account
        for column, used in enumerate(entry.used):
            days[day][column] = days[day][column].plus(used or Used(Cost(0)))
        prices[day] += 0 if entry.amounts is None else entry.amounts.renyi
    return days, prices


def _row(entry: Entry) -> tuple[str, ...]:
    return (
        str(entry.id),
        entry.account,
        _cut(entry.what),
        entry.state,
        "" if entry.part is None else _cut(str(entry.part)),
        *("" if used is None else str(used) for used in entry.used),
    )


def _price(entry: Entry) -> str:
    return "" if entry.amounts is None else decimal_text(entry.amounts.renyi, 12)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
