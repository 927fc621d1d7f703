"""A journal: what is run is written into it first, and posted to the ledger at a public time.

A ledger that is written whenever something ends is a stopwatch: how long that took may depend on data, and shows in the
order of its lines and in the balance. A journal is in memory and nobody reads it. Posting it reserves and settles every
entry as it is in the journal, in order: the same guarantees, parts, charges and outputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from expost.canonical import canonical
from expost.cost import Cost
from expost.errors import ExpostError, KeyConflict
from expost.guarantee import Guarantee
from expost.ledger import codec
from expost.ledger.entry import Balance, Entry, Path, Request, lineage
from expost.ledger.ledger import Ledger
from expost.ledger.memory import MemoryStore
from expost.ledger.operations import Ending, Forfeit, Settle, Void
from expost.ledger.store import Store
from expost.ledger.trail import request_of
from expost.ledger.whose import in_books

if TYPE_CHECKING:
    from expost.accounting.amounts import Amounts
    from expost.accounting.tariff import Tariff


class Posting(NamedTuple):
    """An entry that is to be made in a ledger."""

    request: Request
    part: str | None
    """The part that came out, as text; None to charge the worst case."""
    output: str | None = None
    """What was published, as text."""

    @classmethod
    def of(cls, journal: Ledger, entry: Entry) -> Self:
        """An entry of a journal. Raises ``NotStorable`` if its output could not be read back."""
        if entry.state != "settled":
            return cls(entry.request, None)
        return cls(entry.request, codec.encode(entry.part), codec.kept(journal._store.output(entry.id)))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        request = self.request
        subject = codec.described(request.subject, keyed=request.key is not None)
        return {
            "operation": request.operation,
            "account": "/".join(request.account),
            "subject": subject.text,
            "fingerprint": subject.fingerprint,
            "guarantee": codec.guarantee_text(request.priced_guarantee),
            "label": request.label,
            "key": request.key,
            "part": self.part,
            "output": self.output,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The posting that :meth:`to_json` wrote."""
        path: Path = tuple(data["account"].split("/"))
        subject = codec.Described(data["subject"], data["fingerprint"])
        guarantee = codec.read_guarantee(json.loads(data["guarantee"]))
        request = request_of(data["operation"], path, subject, guarantee, data["label"], data["key"])
        return cls(request, data["part"], data["output"])


def new_journal(ledger: Ledger, levels: tuple[Balance, ...]) -> Ledger:
    """A journal for an account: it accepts what the account would, if its balances and those above it were these."""
    books = ledger._store
    store = MemoryStore(ledger._path[0], levels[0].limit, books.neighbours, books.unit, meters=books.meters)
    for path, level in zip(lineage(ledger._path), levels, strict=True):
        store._accounts[path] = level._replace(line=0)
    journal = object.__new__(Ledger)
    journal._path, journal._store, journal._noise = ledger._path, store, ledger._noise
    journal._basic_alone = ledger._basic_alone
    return journal


def postings_text(journal: Ledger) -> str:
    """What is to be posted of a journal. Raises ``NotStorable``."""
    return postings_of(Posting.of(journal, entry) for entry in journal.entries())


def postings_of(postings: Iterable[Posting]) -> str:
    """Postings as they are kept."""
    return canonical([posting.to_json() for posting in postings])


def post(ledger: Ledger, postings: Iterable[Posting]) -> list[Entry]:
    """Make the entries in the ledger, in order; what is there already is not made again.

    All of them are reserved, or none is; then all end; in a few transactions, however many they are. Raises
    ``BudgetExceeded`` or ``LedgerClosed`` where one cannot be, and ``KeyConflict`` where a key has another entry, or an
    entry with another output: then nothing may be published.
    """
    found = list(postings)
    entries = _reserved(ledger._store, found)
    return _ended(ledger._store, found, entries)


def _reserved(store: Store, postings: list[Posting]) -> list[Entry]:
    """An entry for each, the worst case reserved. Begun at once where it is one: then there is nothing to undo."""
    found = [_known(store, posting) for posting in postings]
    wanted = [posting.request for posting, entry in zip(postings, found, strict=True) if entry is None]
    made = iter(_all_or_none(store, wanted, begin=len(postings) == 1))
    return [entry or next(made) for entry in found]


def _known(store: Store, posting: Posting) -> Entry | None:
    """The entry that was made before. Raises ``KeyConflict`` if it is another, or has another output."""
    entry = store.earlier(posting.request)
    if entry is not None and entry.state == "settled" and posting.part is not None:
        stored = store.output(entry.id)
        if codec.encode(entry.part) != posting.part or posting.output != codec.kept(stored):
            raise KeyConflict(entry.key or "", "its output")
    return entry


def _all_or_none(store: Store, requests: list[Request], *, begin: bool) -> list[Entry]:
    """Reserve all of them together. Raises what refuses the first that is refused, and then none stays."""
    made = store.reserve_all(requests, begin=begin) if requests else []
    refused = next((each for each in made if isinstance(each, ExpostError)), None)
    entries = [each for each in made if isinstance(each, Entry)]
    if refused is None:
        return entries
    if entries:
        store.end_all([Void(entry.id) for entry in entries])
    raise refused


def _ended(store: Store, postings: list[Posting], entries: list[Entry]) -> list[Entry]:
    """The entries, ended together as the postings say, where they had not ended before."""
    open_ = [(posting, entry) for posting, entry in zip(postings, entries, strict=True) if entry.state == "reserved"]
    ended = iter(store.end_all([_ending(*each) for each in open_]) if open_ else [])
    return [next(ended) if entry.state == "reserved" else entry for entry in entries]


def _ending(posting: Posting, entry: Entry) -> Ending:
    if posting.part is None:
        return Forfeit(entry.id)
    output = None if posting.output is None else codec.decode(posting.output)
    return Settle(entry.id, codec.decode(posting.part), output=output)


def forfeits(ledger: Ledger, held: Amounts, label: str, key: str) -> list[Posting]:
    """Entries that charge a whole amount as the worst case: what was set aside for something that was lost.

    Together they take of each meter what was set aside on it, so they fit where that did.
    """
    if ledger._store.meters is None:
        return [_forfeit(ledger, _uniform(held.cost), label, key)]
    return [_forfeit(ledger, tariff, label, f"{key}{kind}") for kind, tariff in _tariffs(held)]


def _tariffs(held: Amounts) -> Iterator[tuple[str, Tariff]]:
    """The prices of what was set aside: of noise that takes no δ, or of Gaussian noise that does, and of the rest."""
    from expost.accounting.tariff import Tariff

    rest, renyi = held.cost, held.renyi
    if held.unpriced:
        yield " noise", Tariff(Guarantee.uniform(0), False, (renyi,), None if held.foreign else (held.normal,))
        renyi = 0
    elif held.normal:  # the account has the basic sum alone, but above it the Gaussian meter may have let it in
        rest = Cost.of_units(held.others)
        yield " gaussian" if rest else "", Tariff(_uniform(held.cost - rest), True, (renyi,), (held.normal,))
        renyi = 0
    if rest or not (held.unpriced or held.normal):
        yield "", Tariff(_uniform(rest), True, (renyi,), None)


def _uniform(cost: Cost) -> Guarantee:
    return Guarantee.uniform(cost.exact_epsilon, cost.exact_delta)


def _forfeit(ledger: Ledger, guarantee: Any, label: str, key: str) -> Posting:
    plain = guarantee if isinstance(guarantee, Guarantee) else guarantee.guarantee
    subject = codec.described(plain, keyed=True)
    return Posting(in_books(ledger._store, request_of("reserve", ledger._path, subject, guarantee, label, key)), None)
