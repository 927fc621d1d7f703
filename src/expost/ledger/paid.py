"""What was paid for once: a question that was published before is answered from the books, and costs nothing.

A question with a public identity has keys of its own, derived from its identity and the account that asks: ``once
digest #1``, ``#2``, … in the order in which its answers were bought. So they are found by the index of keys in every
store, and of two that buy at once one gets the number, and the other looks again. All of it depends on public settings
and on what was published; no contents, and no other account.

Proof: lem-paid-once
"""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from expost.canonical import canonical, sha256
from expost.errors import InvalidValue, PaidAgainWarning, UnknownEntry
from expost.fingerprint import PublicIdentity, public_identity
from expost.ledger.codec import Described
from expost.ledger.entry import Entry, Path
from expost.ledger.kept import Kept, as_kept
from expost.ledger.store import Store
from expost.mechanism import Mechanism
from expost.question import Question, Terms, is_as_accurate
from expost.text import text_of

_ONCE = "once "
MOST_REMEMBERED = 10_000
"""Of the questions without an identity: a warning is a help, and not worth more memory."""


def is_derived(key: str) -> bool:
    """Whether a key was derived from a question's identity, and says nothing to people."""
    return key.startswith(_ONCE)


class FromBooks(NamedTuple):
    """What the books have of a question."""

    entry: Entry | None = None
    """That of its answer; or, without a mechanism, one that is being sampled."""
    mechanism: Mechanism | None = None
    """What made the answer."""


@dataclass(frozen=True)
class OnTerms:
    """A question on its terms, from an account.

    Parameters
    ----------
    question
        What is asked.
    terms
        What it may cost, or how accurate it must be.
    mechanism
        What answers it on these terms.
    path
        The account that asks.
    """

    question: Question[Any]
    terms: Terms
    mechanism: Mechanism
    path: Path

    @cached_property
    def identity(self) -> str | None:
        """The question's public identity; None if it, or its mechanism, has none."""
        found = self.made
        return None if found is None or not found.named else self.question.identity

    @cached_property
    def made(self) -> PublicIdentity | None:
        """The public identity of the mechanism: the same question on the same terms."""
        return public_identity(self.mechanism)

    @cached_property
    def what(self) -> Described:
        """The mechanism as the books have it. Its fingerprint is public words alone, whatever key chose the rows."""
        return Described(text_of(self.mechanism), "" if self.made is None else self.made.digest)

    def key(self, number: int) -> str:
        """The key of the answer of that number."""
        return f"{self._keys}{number}"

    @cached_property
    def _keys(self) -> str:
        return f"{_ONCE}{sha256(canonical([self.identity, list(self.path)]))} #"

    # ---- what the books have

    def bought(self, store: Store) -> int:
        """How many answers were bought, whatever became of them: numbers have no gaps."""
        if _entry(store, self.key(1)) is None:
            return 0
        least, most = 1, 2
        while _entry(store, self.key(most)) is not None:
            least, most = most, 2 * most
        while most - least > 1:
            half = (least + most) // 2
            least, most = (half, most) if _entry(store, self.key(half)) is not None else (least, half)
        return least

    def found(self, store: Store, bought: int) -> FromBooks:
        """The last answer that is at least as accurate as what is asked; or that the same is being sampled.

        Each entry is read once: one that ends meanwhile is an answer or is under way, and is never overlooked.
        """
        under_way = None
        for entry in self._entries(store, bought):
            if entry.state == "settled" and (mechanism := self._answers(store, entry)) is not None:
                return FromBooks(entry, mechanism)
            if entry.state == "reserved" and self._is_same(entry):
                under_way = entry
        return FromBooks(under_way)

    def _entries(self, store: Store, bought: int) -> Iterator[Entry]:
        """The entries of its keys, the last one first. Anybody may have used such a text as a key of their own."""
        for number in range(bought, 0, -1):
            entry = _entry(store, self.key(number))
            if entry is not None and entry.operation == "run" and entry.request.account == self.path:
                yield entry

    def _is_same(self, entry: Entry) -> bool:
        return _fingerprint(entry) == self.what.fingerprint

    def _answers(self, store: Store, entry: Entry) -> Mechanism | None:
        """The mechanism that made an answer, if that answers what is asked."""
        kept = _kept(store, entry)
        if kept is None:
            return None
        if self._is_same(entry):
            return self.mechanism
        if kept.terms is None:
            return None
        then = Terms.as_said(kept.terms, self.terms.meters)
        try:
            made = self.question._mechanism(then)
        except InvalidValue:  # as of a version that took other terms
            return None
        again = public_identity(made)
        if again is None or again.digest != _fingerprint(entry):
            return None
        enough = is_as_accurate(then, made, kept.output, self.terms, self.mechanism)
        return made if enough else None

    # ---- what has no identity

    def warn_if_again(self, store: Store, stacklevel: int) -> None:
        """Warn, once, if a question without an identity is asked again on the same terms."""
        if self.made is not None and _MEMORY.is_news(store.identity, self.path, self.made):
            remedy = "version=" if not self.made.rows else "name= and version="
            warnings.warn(
                f"{self.mechanism.what} was asked before on the same terms, and is paid for again: read the table with "
                f"{remedy}, and what was published is free; or say again=True if this is meant",
                PaidAgainWarning,
                stacklevel=stacklevel,
            )


class _Remembered(NamedTuple):
    """What is remembered of a question without an identity."""

    rows: tuple[Callable[[], Any], ...]
    """Ways to what had the rows, where nothing says where they are."""
    told: bool
    """Whether its warning was given."""


class _Memory:
    """The questions without an identity that this process asked.

    Without a lock, which a fork could leave locked for ever: at worst two threads are both told.
    """

    def __init__(self) -> None:
        self._asked: OrderedDict[Hashable, _Remembered] = OrderedDict()

    def is_news(self, ledger: Hashable, path: Path, made: PublicIdentity) -> bool:
        """Whether it is asked again, of the same rows, and nobody was told."""
        asked = ledger, path, made.digest
        before = self._asked.pop(asked, None)
        same = before is not None and tuple(way() for way in before.rows) == made.rows
        told = before is not None and before.told
        self._asked[asked] = _Remembered(tuple(map(_way_to, made.rows)), told or same)
        if len(self._asked) > MOST_REMEMBERED:
            self._asked.popitem(last=False)
        return same and not told


_MEMORY = _Memory()


def _way_to(rows: Any) -> Callable[[], Any]:
    """A way to the object that does not keep it; to another one if there is no such way."""
    try:
        return weakref.ref(rows)
    except TypeError:
        return object


def _entry(store: Store, key: str) -> Entry | None:
    try:
        return store.find(key)
    except UnknownEntry:
        return None


def _fingerprint(entry: Entry) -> str:
    subject = entry.request.subject
    return subject.fingerprint if isinstance(subject, Described) else ""


def _kept(store: Store, entry: Entry) -> Kept | None:
    """What the books keep of it; None if it was dropped from them."""
    try:
        found = store.output(entry.id)
    except InvalidValue:
        return None
    return None if found is None else as_kept(found)
