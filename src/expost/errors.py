"""Every error that expost raises on purpose.

::

    ExpostError
    ├── InvalidValue (ValueError)        a public value breaks a rule; free, nothing was charged
    │   ├── InvalidStudy                 something in a study file; names file, line and key
    │   ├── NeighbourMismatch            a claim about one neighbour relation met another
    │   └── AlreadyExists                a ledger or account of that name is there already
    ├── UnknownPart (LookupError)        a part that the guarantee does not know
    ├── UnknownEntry (LookupError)       no account, reservation or key of that name
    ├── BudgetExceeded                   an over-ask; the ledger is as it was
    ├── LedgerClosed                     its owner allows no further spending
    ├── LedgerUnavailable                the database does not answer; what was reserved stays reserved
    │   └── Busy                         others keep the database busy; nothing was recorded, try again
    ├── LedgerCorrupt                    the books contradict their audit trail
    ├── AlreadyReserved                  the key was used before; carries its entry
    ├── KeyConflict                      the key was used before, for another request
    ├── ReservationClosed                settling, forfeiting or voiding what is no longer reserved
    ├── InteractionClosed                asking an interaction that will not answer again
    └── EngineFailed                     the engine behind a private table broke down; it says no more than that

    UnsettledWarning (UserWarning)       a reservation was left without a part and was charged in full

Errors speak of public values only: parameters, shapes, types, names, balances. Private values never
cause an error. The exceptions carry the objects they speak of, and they survive pickling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from expost.cost import Cost


class ExpostError(Exception):
    """The root of every error that expost raises on purpose."""


class InvalidValue(ExpostError, ValueError):
    """A public value breaks a rule. The message names the value, the rule and the remedy.

    ``about`` says which value, to callers who know where it came from: an expression as it was given, or the path of a
    parameter, such as ``("schema", "age")``. None where nobody asks.
    """

    def __init__(self, *args: object, about: str | tuple[str, ...] | None = None) -> None:
        super().__init__(*args)
        self.about = about


class NeighbourMismatch(InvalidValue):
    """A claim about one neighbour relation met another; relations are never mixed silently."""

    def __init__(self, claimed: str, expected: str, where: str) -> None:
        super().__init__(claimed, expected, where)
        self.claimed = claimed
        self.expected = expected
        self.where = where

    def __str__(self) -> str:
        remedy = (
            "convert the claim with guarantee.under('substitute'), or read the table with neighbours='substitute'"
            if (self.claimed, self.expected) == ("add-remove", "substitute")
            else f"declare sensitivities, mechanisms and tables for {self.expected!r} neighbours"
        )
        return f"{self.where} is about {self.expected!r} neighbours, the claim about {self.claimed!r}: {remedy}"


class AlreadyExists(InvalidValue):
    """A ledger or an account of that name is there already."""


class InvalidStudy(InvalidValue):
    """Something in a study file breaks a rule: ``problems`` are pairs of a line (or None) and what is wrong there."""

    def __init__(self, file: str, problems: tuple[tuple[int | None, str], ...]) -> None:
        super().__init__(file, problems)
        self.file = file
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(
            f"{self.file}: {what}" if line is None else f"{self.file}:{line}: {what}" for line, what in self.problems
        )


class UnknownPart(ExpostError, LookupError):
    """A part that the guarantee does not know."""

    def __init__(self, part: Any, guarantee: Any) -> None:
        super().__init__(part, guarantee)
        self.part = part
        self.guarantee = guarantee

    def __str__(self) -> str:
        if type(self.part) not in (int, str, tuple):
            return (
                f"{self.part!r} is no part: parts are ints, strings and tuples of them, not {type(self.part).__name__}"
            )
        return f"{self.part!r} is no part of {self.guarantee!r}; give `otherwise=` a price for labels not listed"


class UnknownEntry(ExpostError, LookupError):
    """No account, reservation or key of that name."""


class BudgetExceeded(ExpostError):
    """An over-ask. Nothing was charged, nothing was sampled, and the ledger goes on.

    ``ledger`` names the ledger or account that is short and ``remaining`` is what it has left; ``short``
    names which of ``"epsilon"`` and ``"delta"`` do not fit there. ``affordable`` is what would fit at every
    level, the accounts above and the ledger itself included.
    """

    def __init__(self, requested: Cost, remaining: Cost, ledger: str, affordable: Cost | None = None) -> None:
        super().__init__(requested, remaining, ledger, affordable)
        self.requested = requested
        self.remaining = remaining
        self.ledger = ledger
        self.affordable = remaining if affordable is None else affordable

    @property
    def short(self) -> tuple[str, ...]:
        """Which of ``"epsilon"`` and ``"delta"`` were asked for beyond what remains."""
        return tuple(
            name
            for name, asked, left in (
                ("epsilon", self.requested.epsilon_units, self.remaining.epsilon_units),
                ("delta", self.requested.delta_units, self.remaining.delta_units),
            )
            if asked > left
        )

    @property
    def affordable_epsilon(self) -> float:
        """The largest ε that would be admitted now (at a δ that fits)."""
        return self.affordable.epsilon

    def __str__(self) -> str:
        short = " and ".join({"epsilon": "ε", "delta": "δ"}[name] for name in self.short)
        return (
            f"asked for {self.requested}, but {self.ledger!r} has {self.remaining} left (short of {short}): "
            f"the largest affordable ε is {self.affordable.epsilon_text}; nothing was charged"
        )


class LedgerClosed(ExpostError):
    """Its owner allows no further spending. Nothing was charged; what was reserved before can still end."""

    def __init__(self, ledger: str) -> None:
        super().__init__(ledger)
        self.ledger = ledger

    def __str__(self) -> str:
        return f"{self.ledger!r} was closed by its owner and reserves nothing more; new data need a new ledger"


class LedgerUnavailable(ExpostError):
    """The database does not answer. Nothing was delivered, and what was reserved stays reserved."""


class Busy(LedgerUnavailable):
    """Others keep the database busy. Nothing was recorded: try again."""


class LedgerCorrupt(ExpostError):
    """The books contradict their audit trail: somebody changed one of them by hand, or the disk did."""


class AlreadyReserved(ExpostError):
    """The key was used before. ``entry`` is what the ledger holds under it."""

    def __init__(self, entry: Any) -> None:
        super().__init__(entry)
        self.entry = entry

    def __str__(self) -> str:
        if self.entry.state != "reserved":
            remedy = "nothing is sampled twice; take a new key for a new request"
        elif self.entry.operation == "reserve":
            remedy = "settle it through ledger.reservation(key)"
        else:
            remedy = "it is still running; if whoever ran it is gone, ledger.reservation(key).forfeit() ends it"
        return f"key {self.entry.key!r} stands for entry {self.entry.id}, which is {self.entry.state}: {remedy}"


class KeyConflict(ExpostError):
    """The key was used before, for another request.

    ``entry`` is what the ledger holds under it; None if that is another account's.
    """

    def __init__(self, key: str, differs: str, entry: Any = None) -> None:
        super().__init__(key, differs, entry)
        self.key = key
        self.differs = differs
        self.entry = entry

    def __str__(self) -> str:
        taken = f"key {self.key!r} is taken by another account"
        if self.entry is not None:
            taken = f"key {self.key!r} stands for entry {self.entry.id}, a request with another {self.differs}"
        return f"{taken}: a key names one request for ever; take a new key"


class ReservationClosed(ExpostError):
    """Settling, forfeiting or voiding what is no longer reserved. ``entry`` is how it ended."""

    def __init__(self, entry: Any, attempted: str) -> None:
        super().__init__(entry, attempted)
        self.entry = entry
        self.attempted = attempted

    def __str__(self) -> str:
        if self.entry.state == "reserved":
            return f"cannot {self.attempted} entry {self.entry.id}: sampling has begun; settle or forfeit it"
        return f"cannot {self.attempted} entry {self.entry.id}: it is {self.entry.state} already"


class InteractionClosed(ExpostError):
    """Asking an interaction that will not answer again."""


class EngineFailed(ExpostError):
    """The engine behind a private table broke down: out of memory or disk, a file gone or damaged.

    Its own message is kept back, because it may quote data. That it failed at all may depend on the data, too, and is
    outside of every guarantee: do not show it to somebody whom you would not show the data.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind

    def __str__(self) -> str:
        return (
            f"the engine failed with {self.kind}; its message may quote data and is kept back: "
            "look whether the file is there and whole, and whether memory and disk suffice"
        )


class UnsettledWarning(UserWarning):
    """A reservation was left without a part and was charged its worst case."""
