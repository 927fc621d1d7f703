"""The report of a ledger: what it guarantees, its bill, and the answers that it still has. It touches no data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from expost._version import __version__
from expost.cost import Cost, decimal_text
from expost.errors import ExpostError, InvalidValue
from expost.frame import Frame, title_of
from expost.ledger.entry import Balance, Entry
from expost.ledger.kept import as_kept
from expost.ledger.metered import balance_shown
from expost.ledger.paid import is_derived
from expost.ledger.readings import readings
from expost.ledger.store import Store
from expost.mentions import brief
from expost.noise import SystemNoise
from expost.reporting import Budget, EntryCost, Item, Promise, Report
from expost.reporting.charts import is_compared
from expost.reporting.record import ANSWERED, NO_NUMBER, NOT_KEPT
from expost.text import text_of
from expost.unit_names import in_a_word, is_row

if TYPE_CHECKING:
    from expost.ledger.ledger import Ledger

_SEEDED = (
    "This is a trial: its noise comes from a seed, and whoever knows that can take it away. What stands here may only "
    "be published if the data may."
)
_WHY = {
    "reserved": "It is open: its worst case is reserved until it ends.",
    "forfeited": "It ended without an answer in the books, so its worst case was charged.",
}
_BY_HAND = "It was reserved by hand: what was published for it is not in the books."
_NO_KEY = "The books have its price and no answer: it was run without a key, on data without a version."
_FORGOTTEN = "Its answer is not remembered: it is long, or was dropped, or many came after it. A key keeps answers."
_MOST_NAMED = 3


def promised(ledger: Ledger) -> tuple[str, Cost]:
    """The whole ledger and its limit: an account's own limit is a promise to its owner, and not to people."""
    return ledger._path[0], ledger._store.balances(ledger._path[:1])[0].limit


def report(ledger: Ledger, path: str | Path, *, title: str | None = None, last: int | None = None) -> Path:
    """Write the report of a ledger or account, one HTML page that needs nothing else, and return where it is.

    It has the guarantee, the bill and the answers, as reports of studies do. ``title`` is its heading, and with
    ``last`` it has only the last entries. In notebooks ``ledger.report()`` shows the same.

    >>> import tempfile, expost as xp
    >>> ledger = xp.Ledger(epsilon=1)
    >>> release = ledger.run(xp.Laplace(epsilon=1, sensitivity=1), on=12, label="How many")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     xp.report(ledger, f"{folder}/out.html").name
    'out.html'
    """
    if not hasattr(type(ledger), "report"):
        raise InvalidValue(
            f"a report is of a ledger or an account, as in xp.report(ledger, 'out.html'); got {brief(ledger)}"
        )
    return ledger.report(title=title, last=last).save(path)


def ledger_report(ledger: Ledger, title: str | None, last: int | None) -> Report:
    """What a ledger can tell of itself."""
    store = ledger._store
    view = store.view(ledger._path)
    entries = list(view.entries)
    shown = entries if last is None else entries[max(len(entries) - last, 0) :]
    costs, own = balance_shown(store.meters, view.levels), view.levels[-1]
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    name, limit = promised(ledger)
    shelf = _Shown(store, len(ledger._path))
    meters = readings(store.meters, own)
    seeded = not isinstance(ledger.noise, SystemNoise)
    return Report(
        title=title or f"Answers and charges of “{ledger.name}”",
        about=("Report of an account" if len(ledger._path) > 1 else "Report of a ledger", ledger.name, now),
        promise=Promise(
            ledger=name,
            limit=limit,
            who=None if store.unit is None else in_a_word(store.unit),
            by_row=store.unit is not None and is_row(store.unit),
            neighbours=store.neighbours,
            lasting="process" if store.address is None else "always",
        ),
        budget=Budget(
            name=ledger.name,
            limit=costs["limit"],
            spent=costs["spent"] + costs["reserved"],
            remaining=costs["remaining"],
            meters={each.name: str(each).removeprefix(f"{each.name}: ") for each in meters} if len(meters) > 1 else {},
            fits=None if store.meters is not None else _fits(entries, own),
        ),
        items=tuple(shelf.item(entry) for entry in shown if entry.state != "voided"),
        remarks=tuple(_remarks(entries, shown)),
        check=_check(store),
        facts=_facts(ledger, now),
        notice=_SEEDED if seeded else "",
        stamp="Trial" if seeded else "",
    )


def _fits(entries: Iterable[Entry], own: Balance) -> int:
    """How many entries would fit in this order, were each charged its worst case; those that do not are passed over."""
    spent, count = Cost(0), 0
    for entry in entries:
        if entry.state != "voided" and spent + entry.reserved <= own.limit:
            spent, count = spent + entry.reserved, count + 1
    return count


def _remarks(entries: list[Entry], shown: list[Entry]) -> Iterable[str]:
    left, states = len(entries) - len(shown), Counter(entry.state for entry in shown)
    if left:
        yield f"These are the last {len(shown)} of {len(entries)} entries."
    if states["voided"]:
        yield f"Voided entries: {states['voided']}. They published nothing and cost nothing."


def _check(store: Store) -> str:
    if store.address is None:
        return (
            "Charges are functions of published answers. This ledger is in memory: until its process ends, "
            "ledger.verify() checks it, and ledger.export(path) writes its audit trail."
        )
    return (
        "Charges are functions of published answers, and the ledger's audit trail has every one of them. “expost "
        "ledger verify”, or ledger.verify(), shows that it still contains the line below, unchanged."
    )


def _facts(ledger: Ledger, now: str) -> dict[str, str]:
    head, store = ledger.head, ledger._store
    return {
        "ledger": ledger.name + ("" if store.address else ", in memory"),
        "protected": store.unit or "not stated yet: the first question with a unit says it",
        "neighbours": store.neighbours or "not stated yet",
        "accounting": "basic sum" if store.meters is None else "Rényi prices beside the basic sum",
        "its audit trail ends at": f"{head.sequence}:{head.hash}",
        "made by": f"expost {__version__}, {now}",
    }


class _Shown:
    """The entries of a ledger as people read them."""

    def __init__(self, store: Store, depth: int) -> None:
        self._store, self._depth = store, depth

    def item(self, entry: Entry) -> Item:
        """An entry, with its answer if there is one."""
        frame = self._frame(entry)
        withheld = frame is not None and frame.is_numbers and {row[-4] for row in frame.rows} == {None}
        subject = text_of(entry.request.subject)
        return Item(
            anchor=f"entry-{entry.id}",
            title=entry.label or _title(frame) or subject.partition("(")[0],
            about="/".join(entry.request.account[self._depth :]),
            state=(NO_NUMBER if withheld else ANSWERED) if frame is not None else self._state(entry),
            why="No number was released, which is an answer, too." if withheld else self._why(entry, frame),
            frame=frame,
            how=_how(entry, subject),
            charges=(_charge(entry),),
        )

    def _frame(self, entry: Entry) -> Frame | None:
        """The rows of its answer: from the books, or from what is remembered."""
        if entry.state != "settled" or entry.operation == "reserve":
            return None
        if entry.key is None:
            return None if self._store.shelf is None else self._store.shelf.frame(entry.id)
        try:
            return as_kept(self._store.output(entry.id)).rows
        except ExpostError:  # it was dropped, or another version wrote it
            return None

    def _state(self, entry: Entry) -> str:
        return {"settled": NOT_KEPT, "reserved": "open"}.get(entry.state, entry.state)

    def _why(self, entry: Entry, frame: Frame | None) -> str:
        if frame is not None:
            return ""
        if entry.operation == "reserve" and entry.state == "settled":
            return _BY_HAND
        if entry.state == "settled":
            return _NO_KEY if self._store.shelf is None and entry.key is None else _FORGOTTEN
        return _WHY[entry.state]


def _title(frame: Frame | None) -> str:
    """What the rows are, in words: the statistics, and what groups go by."""
    if frame is None:
        return ""
    if is_compared(frame):
        return f"Comparisons by {' and '.join(frame.names[:-1])}"
    if not frame.is_numbers or not frame.rows:
        return ""
    whats = list(dict.fromkeys(str(row[0]) for row in frame.rows))
    if whats in (["value"], ["intercept", "coefficient"]):  # the name of what was fitted says more
        return ""
    several = [f"{len(whats) - _MOST_NAMED} more"] if len(whats) > _MOST_NAMED else []
    text = title_of([*whats[:_MOST_NAMED], *several], frame.names[1:-4])
    return text[:1].upper() + text[1:]


def _how(entry: Entry, subject: str) -> dict[str, str]:
    """What the books say of it; δ and ε in full."""
    facts = {
        "made by": subject,
        "part": "" if entry.part is None else str(entry.part),
        "key": "" if entry.key is None or is_derived(entry.key) else entry.key,
        "account": entry.account,
        "reserved at": f"{entry.when:%Y-%m-%d %H} h UTC",
    }
    return {name: text for name, text in facts.items() if text}


def _charge(entry: Entry) -> EntryCost:
    reserved, used, _ = entry.used
    price = entry.amounts.renyi if entry.is_metered and entry.amounts is not None else None
    said = used or reserved
    return EntryCost(
        entry=entry.id,
        reserved=entry.reserved,
        charged=entry.charged,
        used=str(said) if said.is_noise else "",
        price="" if price is None else decimal_text(price, 12),
    )
