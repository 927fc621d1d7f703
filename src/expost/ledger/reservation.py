"""`Reservation`: a reserved worst case, to be settled, forfeited or voided."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from expost.errors import (
    AlreadyReserved,
    InvalidValue,
    KeyConflict,
    LedgerUnavailable,
    ReservationClosed,
    UnsettledWarning,
)
from expost.forks import here
from expost.guarantee import Part
from expost.ledger.entry import Entry, Request
from expost.ledger.kept import Kept
from expost.ledger.remedies import FORFEIT
from expost.ledger.store import Store
from expost.mechanism import Mechanism, Out, Release

if TYPE_CHECKING:
    from expost.ledger.ledger import Ledger

Found = TypeVar("Found")


def origin_of(store: Store, entry: int) -> Hashable:
    """Which entry of which books: the same for all who read it."""
    return store.identity, entry


class Reservation:
    """A reserved worst case: reserved → settled(part) | forfeited | voided.

    Use it as a ``with`` block. Leaving the block without settling charges the worst case.

    Attributes
    ----------
    id
        The number of its entry.
    entry
        The ledger's entry about it.
    """

    __slots__ = ("_entry", "_is_left", "_store")

    def __init__(self, store: Store, entry: Entry) -> None:
        self._store = store
        self._entry = entry
        self._is_left = False
        """Whether it could not be ended here, so that the store ends it as soon as it can."""

    @property
    def id(self) -> int:
        """The entry's number: ``ledger.reservation(id)`` finds it again."""
        return self._entry.id

    @property
    def entry(self) -> Entry:
        """The ledger's entry about it, as it is now."""
        if self._entry.state == "reserved":  # somebody else may have ended it
            self._entry = self._store.find(self._entry.id)
        return self._entry

    def begin(self) -> None:
        """Record that sampling starts: from now on the reservation cannot be voided."""
        self._store.begin(self._entry.id)

    def settle(self, part: Part) -> Entry:
        """Charge the output's part. A part that the guarantee does not have charges the worst case, and raises."""
        self._refuse_foreign("settle")
        return self._settle(part, None)

    def forfeit(self, error: BaseException | None = None) -> Entry:
        """Charge the worst case. With an ``error``, add a note to it, and raise nothing that would replace it."""
        try:
            self._entry = entry = self._store.forfeit(self._entry.id)
        except (ReservationClosed, LedgerUnavailable) as failure:
            self._is_left = isinstance(failure, LedgerUnavailable)
            if error is None:
                raise
            if self._is_left:
                error.add_note(f"expost: entry {self.id} stays reserved, and will be charged its worst case")
            return self._entry
        if error is not None:
            error.add_note(
                f"expost: this happened after sampling began, so the worst case ({entry.reserved}) was charged "
                f"to {entry.account!r} as entry {entry.id}"
            )
        return entry

    def void(self) -> Entry:
        """Charge nothing. Allowed only before sampling has begun."""
        self._refuse_foreign("void")
        return self._void()

    def _refuse_foreign(self, attempted: str) -> None:
        if self._entry.operation != "reserve":
            raise InvalidValue(
                f"cannot {attempted} entry {self.id} ({self._entry.operation}): only the process that runs it can, by "
                "its output; if that process is gone, end it with ",
                FORFEIT,
            )

    def _void(self) -> Entry:
        self._entry = self._store.void(self._entry.id)
        return self._entry

    def _settle(self, part: Part, output: Any) -> Entry:
        with self._store.one_deadline():
            try:
                self._entry = self._store.settle(self._entry.id, part, output)
            except ReservationClosed:
                raise
            except BaseException as error:
                self.forfeit(error)  # if an interrupt came after the entry was settled, that stays
                raise
        return self._entry

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_left:
            with self._store.one_deadline():
                self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        try:
            entry = self.entry
        except LedgerUnavailable as failure:
            self.forfeit(error or failure)
            if error is None:
                raise
            return
        if entry.state != "reserved":
            return
        if error is not None and not entry.begun:
            try:
                self.void()
            except LedgerUnavailable:
                error.add_note(f"expost: entry {self.id} stays reserved, and will be charged its worst case")
            return
        entry = self.forfeit(error)
        if error is None:
            message = (
                f"entry {entry.id} of {entry.account!r} was left unsettled, so its worst case ({entry.reserved}) was "
                "charged: call settle(part), or void() if nothing was sampled"
            )
            warnings.warn(message, UnsettledWarning, stacklevel=3)

    def __repr__(self) -> str:
        return f"<reservation {self.entry!r}>"


class MechanismReservation(Reservation):
    """The reservation of a run or an interaction, which its output settles.

    Only the process that made it can settle it: a forked copy would publish a second output for one charge.
    """

    __slots__ = ("_process",)

    def __init__(self, store: Store, entry: Entry) -> None:
        super().__init__(store, entry)
        self._process = here()

    def publish(
        self, mechanism: Mechanism[Any, Out], output: Out, terms: Mapping[str, Any] | None = None
    ) -> Release[Out]:
        """Settle the part of an output, and return its release. ``terms`` are kept beside it."""
        self._refuse_forked("settle")
        origin = origin_of(self._store, self.id)
        try:
            part = mechanism.part_of(output)
            kept = output if self._entry.key is None else Kept.of(mechanism, output, origin, terms)
        except BaseException as error:
            self.forfeit(error)
            raise
        release = Release(mechanism, output, self._settle(part, kept), origin=origin)
        if self._store.shelf is not None and self._entry.key is None:
            self._store.shelf.put(release)
        return release

    def forfeit(self, error: BaseException | None = None) -> Entry:
        """Charge the worst case; in a forked process only add a note to the error."""
        if here() == self._process or error is None:
            self._refuse_forked("forfeit")
            return super().forfeit(error)
        error.add_note(f"expost: entry {self.id} belongs to process {self._process.number}; nothing was charged here")
        return self._entry

    def abandon(self, mechanism: Mechanism) -> Release:
        """Void an interaction that gave no answer."""
        self._refuse_forked("void")
        return Release(mechanism, (), self._void())

    def _refuse_forked(self, attempted: str) -> None:
        if here() != self._process:
            raise InvalidValue(
                f"cannot {attempted} entry {self.id} ({self._entry.operation}) in a forked process: it belongs to "
                f"process {self._process.number}, which publishes its output; run it again here"
            )


class _Unseen:
    """A block in which a ``KeyConflict`` loses its traceback, whose frames hold another's entry."""

    def __enter__(self) -> None:
        """Nothing yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, KeyConflict):
            raise error.with_traceback(None) from None


UNSEEN = _Unseen()


def spend(store: Store, request: Request, *, begin: bool) -> MechanismReservation:
    """Reserve for a run or an interaction."""
    with UNSEEN:
        return MechanismReservation(store, store.reserve(request, begin=begin))


def refuse_used_key(store: Store, request: Request) -> None:
    """Raise ``AlreadyReserved`` if the key was used for the same request, and ``KeyConflict`` if for another."""
    with UNSEEN:
        earlier = store.earlier(request)
    if earlier is not None:
        raise AlreadyReserved(earlier)


def reserve_elsewhere(
    ledger: Ledger, mechanism: Mechanism, *, label: str | None, key: str | None, lease: float | None
) -> Reservation:
    """Reserve for a mechanism that another library runs. It can be voided until ``begin()``.

    Like ``ledger.reserve`` of its guarantee, but with the mechanism's Rényi prices and fingerprint.
    """
    request = ledger._request("reserve", mechanism, mechanism.guarantee, label, key)
    with UNSEEN:
        return Reservation(ledger._store, ledger._store.reserve(request, begin=False, lease=lease))
