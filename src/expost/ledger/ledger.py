"""`Ledger`: reserve the worst case, run, charge what the output leaked, refund the rest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal, Self, get_args, overload

from expost.checks import as_whole
from expost.cost import Cost, Number
from expost.errors import AlreadyReserved, BalanceChanged, InvalidValue, KeyConflict, NotCopyable, UnknownEntry
from expost.frame import Frame
from expost.guarantee import Guarantee, Neighbours, as_neighbours
from expost.ledger import arguments
from expost.ledger.address import create_ledger, open_store
from expost.ledger.asking import as_mechanism, as_plans, each_planned, refuse_both
from expost.ledger.codec import Described, described
from expost.ledger.engine import Settings
from expost.ledger.entry import Entry, Manner, Path, Request, State
from expost.ledger.kept import Kept, as_kept
from expost.ledger.memory import MemoryStore
from expost.ledger.metered import remaining, spent_and_reserved
from expost.ledger.operations import Create
from expost.ledger.paid import OnTerms
from expost.ledger.prices import prices_of
from expost.ledger.quote import Quote, quoted
from expost.ledger.readings import MeterReading, readings
from expost.ledger.reports import ledger_report
from expost.ledger.reservation import UNSEEN, MechanismReservation, Reservation, origin_of, refuse_used_key, spend
from expost.ledger.showing import Entries, Statement, caution_of, epsilons_of, html_of, statement_of
from expost.ledger.statement import lines_of
from expost.ledger.store import Store
from expost.ledger.trail import Head, TrailLine, write_export
from expost.ledger.whose import in_books
from expost.mechanism import AnInteraction, In, Interactive, Mechanism, Out, Release
from expost.noise import NoiseSource, SystemNoise
from expost.question import NoiseName, OpenQuestion, Question, Terms
from expost.reporting.record import Report

if TYPE_CHECKING:
    from expost.accounting.capacities import Accounting, LedgerMeters


class Ledger:
    """A privacy budget: a limit (ε, δ) that spending can never exceed.

    Parameters
    ----------
    epsilon
        The limit's ε, or the whole limit as a :class:`~expost.cost.Cost`.
    delta
        The limit's δ.
    name
        Its name in statements and errors.
    neighbours
        The neighbour relation of all guarantees: ``"add-remove"`` or ``"substitute"``. None leaves it to the first
        guarantee that has one.
    unit
        Whose privacy is protected, as ``"patient"``: other tables are refused. None leaves it to the first guarantee.
    noise
        The source of the mechanisms' randomness. By default the operating system.
    accounting
        How charges add up: ``"basic"``, the sum of ε's; or ``"renyi"``, which also counts Rényi prices and Gaussian
        noise, and admits what fits on at least one of these meters (it needs a δ). A
        :class:`~expost.accounting.RenyiAccounting` has settings for it.

    Everything published under a ledger is together (ε, δ)-differentially private for its limit: whatever is asked, in
    any order, by any number of threads, with every choice adaptive, as long as the mechanisms' guarantees hold and what
    is asked depends only on what was published. An :meth:`account` limits what is charged to it; the guarantee for
    people is that of the whole ledger.

    >>> ledger = Ledger(epsilon=1)
    >>> with ledger.reserve(Guarantee({"large": 0.75, "small": 0.25})) as spending:
    ...     entry = spending.settle("small")
    >>> ledger.remaining
    Cost(0.75)

    Proof: thm-ledger, thm-ledger-meters
    """

    def __init__(
        self,
        epsilon: Number | Cost,
        delta: Number = 0,
        *,
        name: str = "ledger",
        neighbours: Neighbours | None = None,
        unit: str | None = None,
        noise: NoiseSource | None = None,
        accounting: Accounting = "basic",
    ) -> None:
        arguments.check_source(noise)
        if unit is not None:
            arguments.check_given(unit, "unit")
        limit = arguments.as_limit(epsilon, delta)
        arguments.warn_if_weak(limit, stacklevel=2)
        self._path: Path = (arguments.as_name(name, "a ledger"),)
        meters = arguments.as_meters(accounting, limit)
        self._store: Store = MemoryStore(name, limit, as_neighbours(neighbours), unit, meters=meters)
        self._noise: NoiseSource = noise or SystemNoise()
        self._basic_alone = False

    @classmethod
    def create(
        cls,
        url: str,
        name: str,
        epsilon: Number | Cost,
        delta: Number = 0,
        *,
        neighbours: Neighbours,
        unit: str,
        noise: NoiseSource | None = None,
        settings: Settings | None = None,
        accounting: Accounting = "basic",
    ) -> Self:
        """Create a durable ledger in a database: ``sqlite:///study.db`` or ``postgresql://host/database``.

        Every acknowledged operation survives crashes and power cuts; what was being sampled when a process died is
        charged its worst case.

        Proof: thm-durable
        """
        limit = arguments.as_limit(epsilon, delta)
        arguments.check_durable(name, neighbours, unit, noise)
        arguments.warn_if_weak(limit, stacklevel=2)
        meters, drawn = arguments.as_meters(accounting, limit), token_hex(16)
        create_ledger(url, Create(name, limit, neighbours, unit, meters, drawn=drawn), settings)
        return cls.load(url, name, noise=noise, settings=settings)

    @classmethod
    def load(
        cls,
        url: str,
        name: str,
        *,
        noise: NoiseSource | None = None,
        recover: bool = True,
        read_only: bool = False,
        settings: Settings | None = None,
    ) -> Self:
        """The ledger of that name in a database. Open reservations of processes that ended are forfeited first.

        ``recover=False`` leaves them open. With ``read_only=True`` nothing is changed at all: a write-protected backup
        can be read, verified and exported. If a balance was changed by hand, nothing is forfeited, and the ledger
        accepts no reservations; it can be read and closed.
        """
        arguments.as_name(name, "a ledger")
        arguments.check_private(noise)
        ledger = object.__new__(cls)
        ledger._path, ledger._store = (name,), open_store(url, name, settings, read_only=read_only)
        ledger._noise, ledger._basic_alone = noise or SystemNoise(), False
        if not read_only:
            with suppress(BalanceChanged):
                ledger._store.recover() if recover else ledger._store.check()
        return ledger

    # ---- spending

    @overload
    def run(
        self,
        what: Mechanism[In, Out],
        on: In | list[Any] | tuple[Any, ...] | None = None,
        *,
        key: str | None = None,
        label: str | None = None,
        again: bool = False,
    ) -> Release[Out]: ...
    @overload
    def run(
        self,
        what: OpenQuestion,
        on: Any,
        *,
        epsilon: Number | Cost | None = None,
        within: Number | str | None = None,
        delta: Number = 0,
        noise: NoiseName | None = None,
        key: str | None = None,
        label: str | None = None,
        again: bool = False,
    ) -> Release[Any]: ...
    @overload
    def run(
        self,
        what: Question[Out],
        *,
        epsilon: Number | Cost | None = None,
        within: Number | str | None = None,
        delta: Number = 0,
        noise: NoiseName | None = None,
        key: str | None = None,
        label: str | None = None,
        again: bool = False,
    ) -> Release[Out]: ...
    def run(
        self,
        what: Any,
        on: Any = None,
        *,
        epsilon: Number | Cost | None = None,
        within: Number | str | None = None,
        delta: Number = 0,
        noise: NoiseName | None = None,
        key: str | None = None,
        label: str | None = None,
        again: bool = False,
    ) -> Release[Any]:
        """Answer a question, or run a mechanism on data: reserve the worst case, sample, charge the output's part.

        A question that was published before is free. If its data has a version (:func:`~expost.read`), and this account
        has published the same question with at least the accuracy that is asked for now, the release is that one:
        ``release.replayed`` is True, ``release.charged`` is 0, and ``release.entry`` is the entry that paid. It works
        in every process that opens the ledger. Only an answer that is more accurate than what is known is bought, in
        full. A question about data without a version is paid for each time, and asking it twice on the same terms gives
        a :class:`~expost.errors.PaidAgainWarning`.

        Parameters
        ----------
        what
            A question, such as ``table.count()``; or a mechanism, which has its own ε.
        on
            The data of a mechanism; or what a statistic is asked of, such as ``xp.Mean(bounds=(0, 100))``: a table, its
            groups, or an array of records, each of which is one unit. A question of a table has its own.
        epsilon, within, delta, noise
            What the answer to a question may cost, or how accurate it must be, by the rule of
            :meth:`~expost.question.Question.mechanism`: ``epsilon=0.1``, ``epsilon=ledger.remaining`` (its ε; no δ is
            spent), ``within=50``, ``within="2 %", epsilon=0.3``.
        key
            A key that was used before returns the stored release and samples nothing. The request must be the same:
            operation, account, the mechanism's ``fingerprint``, its guarantee and the label. Data is not compared, so
            put its version into the key.
        label
            What the ledger's statement calls it.
        again
            Buy fresh noise although an answer may be known; a key never does.

        An exception while sampling charges the worst case and is raised again with a note.

        Proof: lem-paid-once
        """
        refuse_both(key, again)
        if isinstance(what, OpenQuestion):
            what, on = what.about(on, self.neighbours, self.unit), None
        mechanism = as_mechanism(what, on, self._prices, epsilon=epsilon, within=within, delta=delta, noise=noise)
        if key is None and isinstance(what, Question):
            asked = self._asked(what, mechanism, epsilon, within, delta, noise)
            if asked.identity is not None:
                return self._run_once(asked, label, again=again)
            if not again:
                asked.warn_if_again(self._store, stacklevel=3)
        return self._run(mechanism, on, self._request("run", mechanism, mechanism.guarantee, label, key, on))

    def _run(self, mechanism: Mechanism[In, Out], on: In | None, request: Request) -> Release[Out]:
        if type(mechanism).sample is Mechanism.sample:
            raise InvalidValue(f"{type(mechanism).__name__} is interactive and cannot be run: use ledger.open(…)")
        on = mechanism.reads(on)
        try:
            refuse_used_key(self._store, request)
            mechanism.check(on)
            spending = spend(self._store, request, begin=True)
        except AlreadyReserved as used:
            if used.entry.state != "settled":
                raise
            return self.stored_release(mechanism, used.entry)
        return self._sampled(mechanism, on, spending)

    def _run_once(self, asked: OnTerms, label: str | None, *, again: bool) -> Release[Any]:
        """Answer a question that has an identity: from the books if they have an answer, and else under its next key.

        Who loses the race for a key looks again: somebody else has bought an answer, or is about to.
        """
        mechanism = asked.mechanism
        first = self._request("run", mechanism, mechanism.guarantee, label, asked.key(1), what=asked.what)
        while True:
            bought = asked.bought(self._store)
            if not again:
                entry, made = asked.found(self._store, bought)
                if entry is not None:
                    if made is None:
                        raise AlreadyReserved(entry)
                    return self.stored_release(made, entry, known=True)
            mechanism.check(None)
            try:
                spending = spend(self._store, first._replace(key=asked.key(bought + 1)), begin=True)
            except (AlreadyReserved, KeyConflict):
                continue
            return self._sampled(mechanism, None, spending, asked.terms)

    def _sampled(
        self, mechanism: Mechanism[In, Out], on: In | None, spending: MechanismReservation, terms: Terms | None = None
    ) -> Release[Out]:
        """Sample once, and publish it."""
        try:
            output = mechanism.sample(on, self._noise)  # type: ignore[arg-type]  # checked before
        except BaseException as error:
            spending.forfeit(error)
            raise
        return spending.publish(mechanism, output, None if terms is None else terms.said)

    def _asked(
        self,
        question: Question[Any],
        mechanism: Any,
        epsilon: Number | Cost | None,
        within: Number | str | None,
        delta: Number,
        noise: NoiseName | None,
    ) -> OnTerms:
        return OnTerms(question, Terms.of(epsilon, within, delta, noise, self._prices), mechanism, self._path)

    def open(
        self, mechanism: Interactive[AnInteraction], on: Any = None, *, key: str | None = None, label: str | None = None
    ) -> AnInteraction:
        """Start an interaction with an interactive mechanism. Leaving its ``with`` block, or closing it, settles it.

        It costs nothing until its first answer. Interactions may be interleaved with one another and with runs.
        """
        if isinstance(mechanism, Question):
            raise InvalidValue("a question is answered in one go, and not opened: use ledger.run(question, epsilon=…)")
        arguments.require(mechanism, Mechanism, "run and open take a mechanism; reserve takes guarantees")
        kind: Any = type(mechanism)
        if kind.start is Mechanism.start:
            raise InvalidValue(f"{kind.__name__} is not interactive and cannot be opened: use ledger.run(…)")
        request = self._request("open", mechanism, mechanism.guarantee, label, key, on)
        refuse_used_key(self._store, request)
        on = mechanism.reads(on)
        mechanism.check_start(on)
        spending = spend(self._store, request, begin=False)
        try:
            return mechanism.start(on, self._noise).paid_by(spending)
        except BaseException as error:
            spending.forfeit(error)
            raise

    def reserve(
        self,
        guarantee: Guarantee,
        *,
        label: str | None = None,
        key: str | None = None,
        begin: bool = True,
        lease: float | None = None,
    ) -> Reservation:
        """Reserve a guarantee's worst case, for a mechanism of your own; then ``settle(part)`` the output's part.

        Leaving the ``with`` block without settling charges the worst case, and warns. With ``begin=False``
        the reservation can be voided until ``begin()`` is called.

        If this process dies, its reservation is forfeited. With ``lease`` the reservation stays open for that number of
        seconds instead, and any process may settle it: ``ledger.reservation(key)``.
        """
        arguments.require(guarantee, Guarantee, "reserve takes a guarantee; run and open take mechanisms")
        if lease is not None:
            arguments.check_lease(lease)
        request = self._request("reserve", guarantee, guarantee, label, key)
        with UNSEEN:
            return Reservation(self._store, self._store.reserve(request, begin=begin, lease=lease))

    def reservation(self, id_or_key: int | str) -> Reservation:
        """The reservation with that entry number or key, of this ledger or an account below it.

        Runs and interactions are settled by their own process; here they can only be forfeited.
        """
        if isinstance(id_or_key, bool) or not isinstance(id_or_key, int | str):
            raise InvalidValue(f"a reservation is found by entry number or key, got {arguments.harmless(id_or_key)}")
        entry = self._store.find(id_or_key)
        if entry.request.account[: len(self._path)] != self._path:
            raise UnknownEntry(f"entry {id_or_key!r} is not one of {self.name!r} or the accounts below it")
        return Reservation(self._store, entry)

    def output(self, key: str) -> Any:
        """The output that was published under a key. Raises ``AlreadyReserved`` if its entry ended without one."""
        return self._kept(key).output

    def frame(self, key: str) -> Frame:
        """What was published under a key, as the rows of its release: with the errors of its numbers.

        >>> from expost import Laplace
        >>> ledger = Ledger(epsilon=1)
        >>> release = ledger.run(Laplace(epsilon=1, sensitivity=1), on=12, key="how many")
        >>> ledger.frame("how many") == release.frame
        True
        """
        return self._kept(key).rows

    def _kept(self, key: str) -> Kept:
        entry = self.reservation(key).entry
        if entry.state != "settled" or entry.operation == "reserve":
            raise AlreadyReserved(entry)
        return as_kept(self._store.output(entry.id))

    def stored_release(self, mechanism: Mechanism[In, Out], entry: Entry, *, known: bool = False) -> Release[Out]:
        """What was published for an entry, as a release of its mechanism. Nothing is sampled or charged.

        ``known`` if it answers another request than that of the entry.
        """
        origin = origin_of(self._store, entry.id)
        output = as_kept(self._store.output(entry.id)).output
        return Release(mechanism, output, entry, replayed=True, origin=origin, known=known)

    # ---- accounts

    def create_account(
        self, name: str, epsilon: Number | Cost, delta: Number = 0, *, by: str | None = None, reason: str = "created"
    ) -> Ledger:
        """Create an account: a ledger whose charges all count here, too. Raises ``AlreadyExists``.

        Limits of accounts may add up to more than this ledger's own; what remains is always the least over all levels.
        The audit trail records who ordered it, if ``by`` says so, and the user in any case.

        >>> ledger = Ledger(epsilon=1)
        >>> alice, bob = ledger.create_account("alice", epsilon=0.75), ledger.create_account("bob", epsilon=0.75)
        >>> with alice.reserve(Guarantee.uniform(0.5)) as spending:
        ...     entry = spending.settle("done")
        >>> bob.remaining, ledger.account("alice").remaining
        (Cost(0.5), Cost(0.25))
        """
        path = (*self._path, arguments.as_new_name(name, "an account"))
        note = None if by is None else arguments.as_note(by, reason)
        self._store.create_account(path, arguments.as_limit(epsilon, delta), note)
        return self._below(path)

    def account(self, name: str) -> Ledger:
        """The account of that name. Raises ``UnknownEntry``."""
        return self._below((*self._path, arguments.as_name(name, "an account")))

    @property
    def accounts(self) -> tuple[Ledger, ...]:
        """The accounts directly below."""
        return tuple(self._below((*self._path, name)) for name in self._store.accounts(self._path))

    def _below(self, path: Path) -> Ledger:
        levels = self._store.balances(path)  # raises where there is no such account
        account = object.__new__(Ledger)
        account._path, account._store, account._noise = path, self._store, self._noise
        account._basic_alone = any(level.is_basic_alone for level in levels)
        return account

    # ---- administration

    def raise_limit(self, epsilon: Number | None = None, delta: Number | None = None, *, by: str, reason: str) -> None:
        """Raise the limit, in ε, in δ or in both. The audit trail records it.

        The new limit is then the guarantee for everything, including what was published before. Spending is never
        reset: data about other people needs a new ledger. With several meters, the basic sum and Rényi prices hold more
        afterwards; the meter of Gaussian noise stays as it was made, because the reasons may be answers.
        """
        note = arguments.as_note(by, reason)
        self._store.raise_limit(self._path, *arguments.as_raised(epsilon, delta), note)

    def close(self, *, by: str, reason: str) -> None:
        """Accept no more reservations, here and in the accounts below, for ever. Open ones can still end."""
        self._store.close(self._path, arguments.as_note(by, reason))

    @property
    def closed(self) -> bool:
        """Whether it, or a ledger above it, was closed."""
        return any(balance.closed for balance in self._store.balances(self._path))

    def remark(self, *, by: str, reason: str) -> None:
        """Record in the audit trail that something was done about this ledger or account: a token was given, a job
        declined. Changes no balance, and is possible where everything was closed.
        """
        self._store.remark(self._path, arguments.as_note(by, reason))

    def set_clock(self, *, by: str, reason: str) -> None:
        """Accept the machine's clock, though it is more than a year ahead of the audit trail's last line, or behind it.

        The audit trail uses it from then on. Until it is accepted, a clock so far ahead allows no reservations.
        """
        self._store.set_clock(arguments.as_note(by, reason))

    def adopt_heads(self, *, by: str, reason: str, known: Head | None = None) -> Head:
        """Note the head of a durable ledger anew, by a line of its audit trail; returns the new head.

        For when the head that was noted beside the database is missing or damaged, so that nothing shows whether these
        books are the last ones: you say so. They are verified first, and must contain ``known`` if it is given.
        """
        if self._store.address is None:
            raise InvalidValue(
                f"ledger {self.name!r} is in memory, and has no heads elsewhere: nothing is to be adopted"
            )
        from expost.ledger.transfer import adopt_heads

        return adopt_heads(*self._store.address, arguments.as_note(by, reason), known, self._store.manner[0])

    def recover(self) -> int:
        """Forfeit open reservations of processes that ended or fell silent, and return how many; load does so, too.

        Raises ``LedgerCorrupt``, and forfeits nothing, if a balance was changed by hand.
        """
        return self._store.recover()

    # ---- auditing

    def audit_trail(self, after: int = 0) -> Iterator[TrailLine]:
        """The lines of the whole ledger's audit trail, or those after one of them."""
        return self._store.trail(after)

    @property
    def head(self) -> Head:
        """The number and the hash of the audit trail's last line, as stored; :meth:`verify` checks them."""
        *_, last = self.audit_trail(self._store.balances(self._path[:1])[0].line - 1)
        return Head(last.sequence, last.hash)

    def verify(self, known: Head | None = None, *, since: bool = False) -> Head:
        """Replay the audit trail by the rules, and compare the result with all balances and entries.

        Raises ``LedgerCorrupt`` if they differ, and otherwise returns the trail's head. Keep it somewhere else: passed
        as ``known`` later, it shows that nothing up to it was rewritten, and that no old backup was restored. With
        ``since=True`` only lines after ``known`` are verified, and what they build on: rows of entries that ended
        before, and of accounts without new lines, are not compared (``VerificationSince`` lists all of it). Spending
        may go on meanwhile.
        """
        if since and known is None:
            raise InvalidValue("verify(since=True) starts at a head that was noted earlier: pass it as known=")
        return self._store.verify(known, since=since)

    def export(self, path: str | os.PathLike[str]) -> Head:
        """Write the audit trail as JSON lines, each with its hash, and return its head."""
        return write_export(self._store.trail(), path)

    # ---- reading

    @property
    def name(self) -> str:
        """The ledger's or account's name, preceded by the names of those above it."""
        return "/".join(self._path)

    @property
    def limit(self) -> Cost:
        """The most that may ever be spent here and below."""
        return self._store.balances(self._path)[-1].limit

    @property
    def spent(self) -> Cost:
        """What was charged, here and below. With several meters: an (ε, δ) that it proves, never above the limit."""
        return spent_and_reserved(self._store.meters, self._store.balances(self._path)[-1])[0]

    @property
    def reserved(self) -> Cost:
        """What everything that is still open, here and below, adds to ``spent`` at worst."""
        return spent_and_reserved(self._store.meters, self._store.balances(self._path)[-1])[1]

    @property
    def remaining(self) -> Cost:
        """What can still be reserved: the least of what remains here and at every level above.

        With several meters it is a :class:`~expost.ledger.Remaining`: ε of a guarantee without δ whose parts cost the
        same, or ρ of Gaussian noise.
        """
        return remaining(self._store.meters, self._store.balances(self._path))

    @property
    def meters(self) -> tuple[MeterReading, ...]:
        """The reading of each meter and its capacity: the basic sum, and other meters if the ledger has any."""
        return readings(self._store.meters, self._store.balances(self._path)[-1])

    @property
    def neighbours(self) -> Neighbours | None:
        """The neighbour relation of every guarantee in this ledger; None until the first one fixes it."""
        return self._store.neighbours

    @property
    def unit(self) -> str | None:
        """Whose privacy is protected; None until the first guarantee that has a unit fixes it."""
        return self._store.unit

    @property
    def noise(self) -> NoiseSource:
        """The source of the mechanisms' randomness."""
        return self._noise

    def entries(self, *, last: int | None = None, state: State | None = None) -> Entries:
        """The entries of this ledger and the accounts below it, or the last ones, or those in a state, in order: a
        consistent snapshot (of open ones: those that are open now).

        An iterator that is also a frame: ``ledger.entries().to_pandas()``.
        """
        if last is not None:
            as_whole(last, "last", 1)
        if state not in (None, *get_args(State)):
            raise InvalidValue(f"an entry's state is one of {get_args(State)}, got {arguments.harmless(state)}")
        found = self._store.view(self._path, last=last, state=state).entries
        return Entries(found, priced=self._store.meters is not None)

    def quote(
        self,
        planned: Mechanism | Guarantee | Question | Iterable[Mechanism | Guarantee | Question],
        *,
        epsilon: Number | Cost | None = None,
        within: Number | str | None = None,
        delta: Number = 0,
        noise: NoiseName | None = None,
        again: bool = False,
    ) -> Quote:
        """What a question, mechanism or guarantee would cost at worst and at best, or several of them together.

        Nothing is charged, and no data is touched. ``epsilon``, ``within``, ``delta`` and ``noise`` are for the
        questions among them, for each by itself, as in :meth:`run`. A question that was published before costs nothing,
        unless ``again``; its entry is in ``known``.

        >>> quote = Ledger(epsilon=1).quote([Guarantee({"hit": 0.75, "miss": 0.25})] * 2)
        >>> quote.worst, quote.best, quote.fits
        (Cost(1.5), Cost(0.5), False)
        """
        asked = each_planned(planned)
        plans = as_plans(asked, self._prices, epsilon=epsilon, within=within, delta=delta, noise=noise)
        known: dict[int, int] = {}
        if not again:
            for place, (what, plan) in enumerate(zip(asked, plans, strict=True)):
                if isinstance(what, Question):
                    entry = self._known_entry(self._asked(what, plan, epsilon, within, delta, noise))
                    known |= {} if entry is None else {place: entry}
        return quoted(self, plans, known)

    def _known_entry(self, asked: OnTerms) -> int | None:
        """The entry that has the answer to a question, if there is one."""
        if asked.identity is None:
            return None
        entry, made = asked.found(self._store, asked.bought(self._store))
        return None if entry is None or made is None else entry.id

    def statement_lines(self, *, by: Literal["entry", "day"] = "entry") -> Iterator[str]:
        """The lines of a statement, one at a time, so that memory use does not grow with the number of entries."""
        return lines_of(self.name, self._store.view(self._path), self._store.meters, by, caution_of(self))

    def statement(self, *, by: Literal["entry", "day"] = "entry") -> Statement:
        """A table for people: what was reserved, charged and refunded, per entry, or per day and account.

        It is text, and a frame: ``.to_pandas()``, ``.to_polars()``, ``.to_arrow()``, ``.to_csv()``.
        """
        return statement_of(self, by)

    def report(self, *, title: str | None = None, last: int | None = None) -> Report:
        """The report: what is guaranteed, the bill, and the answers with their errors, here and in accounts below.

        Notebooks show it, ``.save("out.html")`` writes it as one page that needs nothing else, and so does
        ``xp.report(ledger, "out.html")``. ``title`` is its heading, and with ``last`` it has only the last entries. It
        is made of published values and public settings. A durable ledger shows the answers that it stores: of runs with
        a key, and of questions about data with a version. One in memory remembers the others, too, unless they are
        large.
        """
        if title is not None:
            arguments.check_given(title, "title")
        if last is not None:
            as_whole(last, "last", 1)
        return ledger_report(self, title, last)

    def plot(self, ax: Any = None) -> Any:
        """Plot the ε that is spent, reserved and remaining, here and in the accounts below it, with matplotlib."""
        from expost.plots import draw_budgets

        return draw_budgets({each.name: epsilons_of(each) for each in (self, *self.accounts)}, ax)

    def _repr_html_(self) -> str:
        return html_of(self)

    # ---- a ledger is never copied

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._store.address is None:
            raise NotCopyable(
                f"ledger {self.name!r} is in memory, and a pickled copy could spend its budget twice: make it durable"
            )
        noise = None if type(self._noise) is SystemNoise else self._noise
        return _at, (*self._store.address, self._path[1:], noise, *self._store.manner)

    def __repr__(self) -> str:
        caution = caution_of(self)
        return f"<ledger {self.name!r}: {self.remaining} remaining of {self.limit}{f'; {caution}' if caution else ''}>"

    # ---- internal

    @property
    def _prices(self) -> LedgerMeters | None:
        """The meters that price noise without a δ; None where the basic sum counts, here or at a level above."""
        return None if self._basic_alone else self._store.meters

    def _request(
        self, operation: Manner, subject: Any, guarantee: Guarantee, label: str | None, key: str | None, on: Any = None,
        *, what: Described | None = None,
    ) -> Request:  # fmt: skip
        if label is not None or key is not None:
            arguments.check_names(label, key)
        meters, alone = self._store.meters, self._basic_alone
        what = what or described(subject, keyed=key is not None)
        tariff = None if meters is None else prices_of(meters, operation, subject, guarantee, basic_alone=alone)
        return in_books(self._store, Request(operation, self._path, what, guarantee, label, key, tariff), on)


def _at(
    url: str, name: str, below: Path, noise: NoiseSource | None, settings: Settings | None, read_only: bool
) -> Ledger:
    """The ledger or account at an address, for unpickling. Forfeits nothing."""
    ledger = Ledger.load(url, name, noise=noise, recover=False, settings=settings, read_only=read_only)
    for account in below:
        ledger = ledger.account(account)
    return ledger
