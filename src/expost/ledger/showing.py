"""A ledger's entries, statement and balance as frames, in notebooks and as plots. It touches no data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from expost.cost import decimal_text
from expost.frame import AsFrame, Frame
from expost.ledger.entry import Entry, Used
from expost.ledger.statement import day_sums, entry_rows, lines_of, totals_of

if TYPE_CHECKING:
    from expost.ledger.ledger import Ledger

_UNITS = 10**12
_LAST_SHOWN, _MOST_SHOWN = 10, 20
_COSTS = ("reserved", "charged", "refunded")
_AMOUNTS = tuple(f"{name}_{what}" for name in _COSTS for what in ("epsilon", "delta"))
_PRICE = "renyi_price"


class Entries(AsFrame):
    """A consistent snapshot of a ledger's entries: an iterator, and a frame of all of them."""

    def __init__(self, entries: Iterable[Entry], *, priced: bool = False) -> None:
        self._entries, self._iterator, self._priced = entries, iter(entries), priced

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        return next(self._iterator)

    @property
    def frame(self) -> Frame:
        """One row per entry, including those that the iterator has passed."""
        return entries_frame(self._entries, priced=self._priced)

    def __repr__(self) -> str:
        names, *rows = islice(entry_rows(self._entries, priced=self._priced), _MOST_SHOWN + 2)
        more = f"\nthe first {_MOST_SHOWN} entries" if len(rows) > _MOST_SHOWN else ""
        return Frame(names, tuple(rows[:_MOST_SHOWN])).text() + more if rows else "<no entries>"

    def _repr_html_(self) -> str:
        return _html_of_entries(self._entries, priced=self._priced)


class Statement(str, AsFrame):
    """A statement: text for people, and a frame."""

    _frame: Callable[[], Frame]

    def __new__(cls, lines: Iterable[str], frame: Callable[[], Frame]) -> Statement:
        """The text of these lines."""
        self = super().__new__(cls, "\n".join(lines))
        self._frame = frame
        return self

    @property
    def frame(self) -> Frame:
        """One row per entry, or per day and account."""
        return self._frame()

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


def entries_frame(entries: Iterable[Entry], *, priced: bool) -> Frame:
    """One row per entry."""
    names = ("id", "when", "account", "what", "unit", "state", "part", *_AMOUNTS, *([_PRICE] * priced))
    return Frame(names, tuple(_row(entry, priced) for entry in entries))


def days_frame(entries: Iterable[Entry], *, priced: bool) -> Frame:
    """One row per day of reservation and account."""
    days, prices = day_sums(entries)
    rows = [(*day, *_amounts(costs), *([prices[day] / _UNITS] * priced)) for day, costs in sorted(days.items())]
    return Frame(("day", "account", *_AMOUNTS, *([_PRICE] * priced)), tuple(rows))


def _row(entry: Entry, priced: bool) -> tuple[Any, ...]:
    price = [None if entry.amounts is None else float(decimal_text(entry.amounts.renyi, 12))] * priced
    part = None if entry.part is None else str(entry.part)
    who = (entry.id, entry.when, entry.account, entry.what, entry.unit, entry.state, part)
    return (*who, *_amounts(entry.used), *price)


def _amounts(costs: Iterable[Used | None]) -> Iterator[float | None]:
    """ε and δ of each; no ε where there is noise that has none."""
    for used in costs:
        yield from (None, None) if used is None else (None if used.is_noise else used.cost.epsilon, used.cost.delta)


def statement_of(ledger: Ledger, by: Literal["entry", "day"]) -> Statement:
    """What was reserved, charged and refunded, per entry, or per day and account, and the balance."""
    view, meters = ledger._store.view(ledger._path), ledger._store.meters
    frame = partial(entries_frame if by == "entry" else days_frame, view.entries, priced=meters is not None)
    return Statement(lines_of(ledger.name, view, meters, by, caution_of(ledger)), frame)


def caution_of(ledger: Ledger) -> str:
    """What a ledger says of itself where somebody else can make its noise, too."""
    return "" if ledger._noise.private else "its noise is seeded and can be predicted: for trials, and not private"


def html_of(ledger: Ledger) -> str:
    """What notebooks show: a bar of what is spent, reserved and remaining, one for each meter, and the last entries."""
    from expost.markup import html_bar

    costs = totals_of(ledger).costs
    words = f"spent {costs['spent']} · reserved {costs['reserved']} · remaining {costs['remaining']} of {ledger.limit}"
    words += f" · {caution_of(ledger)}" if caution_of(ledger) else ""
    whole = ledger.limit.epsilon or 1.0
    bars = [html_bar(ledger.name, {part: amount / whole for part, amount in epsilons_of(ledger).items()}, words)]
    bars += [_meter(each) for each in ledger.meters[1:]]
    return "".join(bars) + ledger.entries(last=_LAST_SHOWN)._repr_html_()


def _html_of_entries(entries: Iterable[Entry], *, priced: bool) -> str:
    """The first entries, as statements show them; empty if there are none."""
    from expost.markup import html_table

    names, *rows = islice(entry_rows(entries, priced=priced), _MOST_SHOWN + 2)
    more = f"<p>the first {_MOST_SHOWN} entries</p>" if len(rows) > _MOST_SHOWN else ""
    return html_table(names, rows[:_MOST_SHOWN]) + more if rows else ""


def epsilons_of(ledger: Ledger) -> dict[str, float]:
    """The ε that is spent, reserved and remaining."""
    costs = totals_of(ledger).costs
    return {name: costs[name].epsilon for name in ("spent", "reserved", "remaining")}


def _meter(reading: Any) -> str:
    from expost.markup import html_bar

    whole = reading.capacity or 1
    remaining = max(whole - reading.spent - reading.reserved, 0)
    parts = {"spent": reading.spent / whole, "reserved": reading.reserved / whole, "remaining": remaining / whole}
    return html_bar(reading.name, parts, str(reading))
