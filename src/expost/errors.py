"""Every error of expost that a caller can meet.

::

    ExpostError
    ├── InvalidValue (ValueError)        a public value breaks a rule; free, nothing was charged
    │   ├── InvalidStudy                 something in a study file; names file, line and key
    │   ├── NeighbourMismatch            a guarantee for one neighbour relation met another
    │   ├── UnitMismatch                 a guarantee for one unit of privacy met another
    │   ├── AlreadyExists                a ledger, account or file of that name is there already
    │   └── NoLedgers                    the database has no ledgers
    ├── UnderWay                         another run of a study is asking this question; run again when it is done
    ├── UnknownPart (LookupError)        a part that the guarantee does not know
    ├── UnknownEntry (LookupError)       no account, reservation or key of that name
    ├── BudgetExceeded                   more was asked for than remains; the ledger is as it was
    ├── LedgerClosed                     its owner allows no further spending
    ├── LedgerUnavailable                the database does not answer; what was reserved stays reserved
    │   ├── Busy                         others keep the database busy; nothing was recorded, try again
    │   ├── RequestRejected              the database rejects this request, but may accept others
    │   └── SnapshotLost                 the connection dropped while a ledger was read; try again
    ├── LedgerCorrupt                    the tables contradict their audit trail
    │   └── BalanceChanged               a balance was changed by hand: nothing more can be reserved
    ├── AlreadyReserved                  the key was used before; carries its entry
    ├── KeyConflict                      the key was used before, for another request
    ├── ReservationClosed                settling, forfeiting or voiding what is no longer reserved
    ├── InteractionClosed                asking an interaction that will not answer again
    ├── NotStorable (TypeError)          an output that a durable ledger cannot store
    ├── NotCopyable (TypeError)          a copy in another process could spend a budget twice, or answer twice
    ├── EngineFailed                     the engine behind a private table broke down; it says no more than that
    └── MissingDependency (ImportError)  an optional package is not installed

    PaidAgainWarning (UserWarning)       a question was asked and paid for before, and its data has no name and version
    WeakLimitWarning (UserWarning)   a ledger's limit is so large that it guarantees little
    UnrecordedWarning (UserWarning)      a model was trained without a ledger, so that its ε is recorded nowhere
    UnsettledWarning (UserWarning)       a reservation was left without a part and was charged in full

Errors mention public values only: parameters, shapes, types, names, balances. Private values never
cause an error. Errors carry the objects that they are about, and can be pickled.

Elsewhere are only those that no caller meets (they are caught where they are defined, or a service answers them as
problem details), and what other libraries expect: ``AttributeError`` of names and of values that do not change, and
scikit-learn's ``NotFittedError``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from expost.mentions import Action, Argument, Mention, Words
from expost.unit_names import in_a_word, is_row

if TYPE_CHECKING:
    from expost.cost import Cost


class ExpostError(Exception):
    """The root of every error that expost raises on purpose."""

    def __post_init__(self) -> None:
        self.args = tuple(vars(self).values())  # by which errors with fields are shown, copied and pickled

    def _message(self) -> Iterable[str | Mention]:
        """The message: texts, and what they mention. An error without fields is made of it."""
        return self.args

    def text(self, words: Words = str) -> str:
        """The message in the words of a place: Python, unless others are given."""
        return "".join(piece if isinstance(piece, str) else words(piece) for piece in self._message())

    def __str__(self) -> str:
        return self.text()


class InvalidValue(ExpostError, ValueError):
    """A public value breaks a rule. The message names the value, the rule and the remedy.

    ``about`` says which value, to callers who know where it came from: an expression as it was given, or the path of a
    parameter, such as ``("schema", "age")``. None where no caller needs it.
    """

    about: str | tuple[str, ...] | None = None

    def __init__(self, *args: object, about: str | tuple[str, ...] | None = None) -> None:
        super().__init__(*args)
        self.about = about


@dataclass(eq=False, repr=False)
class NeighbourMismatch(InvalidValue):
    """A guarantee for one neighbour relation met another. Relations are never mixed silently."""

    guaranteed: str
    expected: str
    where: str

    def _message(self) -> Iterator[str | Mention]:
        yield f"{self.where} is for {self.expected!r} neighbours, the guarantee for {self.guaranteed!r}: "
        if (self.guaranteed, self.expected) == ("add-remove", "substitute"):
            yield "convert the guarantee with guarantee.under('substitute'); or, only if anybody may know how many "
            yield "units there are, read the table with "
            yield Argument("neighbours", "substitute")
        else:
            yield f"ask a table that is read for {self.expected!r} neighbours, as in table.mean(…), because statistics "
            yield "of arrays such as Mean take the number of records as public; or work out the sensitivity for "
            yield f"{self.expected!r} neighbours anew, and declare the mechanism for them"


@dataclass(eq=False, repr=False)
class UnitMismatch(InvalidValue):
    """A guarantee for one unit of privacy met another: a patient with eighty visits is not one visit."""

    guaranteed: str
    expected: str
    where: str

    def _message(self) -> Iterator[str | Mention]:
        yield f"{self.where} protects the unit {self.expected!r}, the guarantee {self.guaranteed!r}, and what one "
        yield "costs says nothing about the other: "
        if is_row(self.expected):
            word = in_a_word(self.expected)
            yield f"only if each row is one {word}" if word != "row" else "only if each row is protected for itself"
            yield ", read the table with "
            yield Argument("unit", self.expected)
        elif is_row(self.guaranteed):
            yield "read the table with unit=Unit(column, rows=…), by the column that says which "
            yield f"{in_a_word(self.expected)} a row is about"
        else:
            yield f"only if both are the same, say so with Unit(column, rows=…, name={in_a_word(self.expected)!r})"
        yield f"; or spend from a ledger of the unit {self.guaranteed!r}"


@dataclass(eq=False, repr=False)
class AlreadyExists(InvalidValue):
    """A ledger, account or file of that name is there already: ``kind`` says which, ``name`` is its name."""

    kind: Literal["ledger", "account", "file"]
    name: str

    def _message(self) -> Iterator[str | Mention]:
        yield f"{self.kind} {self.name!r} exists already: "
        if self.kind == "file":
            yield "nothing is overwritten; choose another"
        elif self.kind == "ledger":
            yield Action(f"Ledger.load(url, {self.name!r})", "expost ledger show")
            yield " finds it; another has a limit of its own, which adds to this one's for the same people"
        else:
            yield Action(f"account({self.name.rpartition('/')[2]!r})", "expost ledger accounts")
            yield " finds it"


class NoLedgers(InvalidValue):
    """The database has no ledgers: it is another one, or none was created yet."""


@dataclass(eq=False, repr=False)
class InvalidStudy(InvalidValue):
    """Something in a study file breaks a rule: ``problems`` are pairs of a line (or None) and what is wrong there."""

    file: str
    problems: tuple[tuple[int | None, str], ...]

    def _message(self) -> Iterator[str | Mention]:
        yield "\n".join(
            f"{self.file}: {what}" if line is None else f"{self.file}:{line}: {what}" for line, what in self.problems
        )


@dataclass(eq=False, repr=False)
class UnderWay(ExpostError):
    """Another run of a study is asking the same question, which is never sampled twice. ``label`` is the question's."""

    label: str

    def _message(self) -> Iterator[str | Mention]:
        yield (
            f"another run is asking {self.label!r} right now, and nothing is sampled twice: run again when it is done; "
            "what it publishes will be here, too"
        )


@dataclass(eq=False, repr=False)
class UnknownPart(ExpostError, LookupError):
    """A part that the guarantee does not know."""

    part: Any
    guarantee: Any

    def _message(self) -> Iterator[str | Mention]:
        if type(self.part) not in (int, str, tuple):
            kind = type(self.part).__name__
            yield f"{self.part!r} is not a part: parts are ints, strings and tuples of them, not {kind}"
        else:
            yield f"{self.part!r} is not a part of {self.guarantee!r}: list it with what it can leak, or pass "
            yield Argument("otherwise")


class UnknownEntry(ExpostError, LookupError):
    """No account, reservation or key of that name."""


class BudgetExceeded(ExpostError):
    """More was asked for than remains. Nothing was charged, nothing was sampled, and the ledger can be used on.

    ``ledger`` is the name of the ledger or account that is short, ``remaining`` is what remains there, and ``short``
    lists which of ``"epsilon"``, ``"delta"`` and (Gaussian noise) ``"rho"`` do not fit. ``affordable`` is what would
    fit at every level: the account, those above it, and the ledger.
    """

    def __init__(self, requested: Cost, remaining: Cost, ledger: str, affordable: Cost | None = None) -> None:
        super().__init__(requested, remaining, ledger, affordable)
        self.requested, self.remaining, self.ledger = requested, remaining, ledger
        self.affordable = remaining if affordable is None else affordable

    @property
    def short(self) -> tuple[str, ...]:
        """Which of ``"epsilon"``, ``"delta"`` and ``"rho"`` were asked for beyond what remains.

        None of them where there are several meters and parts of one request differ in cost: the ε of its costliest
        part would fit by itself, at a price that is lower on the meter that has room.
        """
        return tuple(
            name
            for name, asked, remaining in (
                ("epsilon", self.requested.epsilon_units, self.remaining.epsilon_units),
                ("delta", self.requested.delta_units, self.remaining.delta_units),
                ("rho", getattr(self.requested, "rho_units", 0), getattr(self.remaining, "rho_units", 0)),
            )
            if asked > remaining
        )

    @property
    def affordable_epsilon(self) -> float:
        """The largest ε that would be admitted now (at a δ that fits)."""
        return self.affordable.epsilon

    def _message(self) -> Iterator[str | Mention]:
        short = " and ".join({"epsilon": "ε", "delta": "δ", "rho": "ρ"}[name] for name in self.short)
        rho = getattr(self.affordable, "rho_text", None)
        if rho is not None:
            yield (
                f"asked for {self.requested}, and no meter of {self.ledger!r} has room for it"
                + (f" (short of {short})" if short else "")
                + f": the largest affordable ε is {self.affordable.epsilon_text}, or ρ {rho} of Gaussian noise; "
                "nothing was charged"
            )
        else:
            yield (
                f"asked for {self.requested}, but {self.ledger!r} has {self.remaining} remaining (short of {short}): "
                f"the largest affordable ε is {self.affordable.epsilon_text}; nothing was charged"
            )


@dataclass(eq=False, repr=False)
class LedgerClosed(ExpostError):
    """Its owner allows no further spending. Nothing was charged; what was reserved before can still end."""

    ledger: str

    def _message(self) -> Iterator[str | Mention]:
        yield f"{self.ledger!r} was closed by its owner and reserves nothing more; a new ledger is for other people"


class LedgerUnavailable(ExpostError):
    """The database does not answer. Nothing was delivered, and what was reserved stays reserved."""


class Busy(LedgerUnavailable):
    """Others keep the database busy. Nothing was recorded: try again."""


class RequestRejected(LedgerUnavailable):
    """The database rejects this request, but may accept others. Nothing was recorded."""


class SnapshotLost(LedgerUnavailable):
    """The connection dropped while a ledger was read: the next read would see another state. Try again."""


class LedgerCorrupt(ExpostError):
    """The tables contradict their audit trail: somebody changed one of them by hand, or the disk did."""

    def _message(self) -> Iterator[str | Mention]:
        yield from self.args
        yield ". Spend nothing from this ledger; a backup takes its place only if it has the last head that was noted "
        yield "(docs/ledger-backup.md, Restore)"


class BalanceChanged(LedgerCorrupt):
    """A balance was changed by hand: nothing can be reserved, and nothing is forfeited; all else can be done."""


@dataclass(eq=False, repr=False)
class AlreadyReserved(ExpostError):
    """The key was used before. ``entry`` is what the ledger holds under it."""

    entry: Any

    def _message(self) -> Iterator[str | Mention]:
        yield f"key {self.entry.key!r} is that of entry {self.entry.id}, which is {self.entry.state}: "
        if self.entry.state != "reserved":
            yield "nothing is sampled twice; take a new key for a new request"
        elif self.entry.operation == "reserve":
            yield "settle it through ledger.reservation(key)"
        else:
            yield "it is still running; if whoever ran it is gone, "
            yield Action("ledger.reservation(key).forfeit()", "expost ledger forfeit")
            yield " ends it, at its worst case"


@dataclass(eq=False, repr=False)
class KeyConflict(ExpostError):
    """The key was used before, for another request.

    ``entry`` is what the ledger holds under it; None if that is another account's, or behind a service.
    """

    key: str
    differs: str
    entry: Any = None

    def _message(self) -> Iterator[str | Mention]:
        again = "repeat that request as it was to get its answer again, or "
        if self.entry is not None:
            taken = f"key {self.key!r} is that of entry {self.entry.id}, a request with another {self.differs}"
        elif self.differs == "account":
            taken, again = f"key {self.key!r} is taken by another account", ""
        else:
            taken = f"key {self.key!r} was used before, for a request with another {self.differs}"
        yield f"{taken}: {again}take a new key for a new request, which is charged anew"


@dataclass(eq=False, repr=False)
class ReservationClosed(ExpostError):
    """Settling, forfeiting or voiding what is no longer reserved. ``entry`` is how it ended."""

    entry: Any
    attempted: str

    def _message(self) -> Iterator[str | Mention]:
        reserved = self.entry.state == "reserved"
        why = "sampling has begun; settle or forfeit it" if reserved else f"it is {self.entry.state} already"
        yield f"cannot {self.attempted} entry {self.entry.id}: {why}"


class InteractionClosed(ExpostError):
    """Asking an interaction that will not answer again."""


class NotStorable(ExpostError, TypeError):
    """A durable ledger cannot store an output of this type. If it was sampled, its worst case was charged."""


class NotCopyable(ExpostError, TypeError):
    """A ledger in memory, or an interaction: a pickled copy could spend a budget twice, or answer when it is closed."""


@dataclass(eq=False, repr=False)
class EngineFailed(ExpostError):
    """The engine behind a private table broke down: out of memory or disk, a file gone or damaged.

    Its own message is not shown, because it may quote data. Whether it fails may depend on the data, which is outside
    every guarantee: show this error only to people who may see the data.
    """

    kind: str

    def _message(self) -> Iterator[str | Mention]:
        yield (
            f"the engine failed with {self.kind}; its message may quote data and is not shown: "
            "check that the file is there and complete, and that memory and disk suffice"
        )


@dataclass(eq=False, repr=False)
class MissingDependency(ExpostError, ImportError):
    """An optional package is not installed: ``package``, which ``what`` needs and ``extra`` brings, if any does."""

    what: str
    package: str
    extra: str | None = None

    def _message(self) -> Iterator[str | Mention]:
        brings = self.package if self.extra is None else f"'expost[{self.extra}]'"
        yield f"{self.what} need {self.package}: pip install {brings}"


class WeakLimitWarning(UserWarning):
    """A ledger's limit is so large that it guarantees little."""


class PaidAgainWarning(UserWarning):
    """A question was asked before on the same terms, and is paid for again: nothing says that the data is the same."""


class UnrecordedWarning(UserWarning):
    """A model was trained without a ledger: its ε is recorded nowhere."""


class UnsettledWarning(UserWarning):
    """A reservation was left without saying what came out, and was charged its worst case."""
