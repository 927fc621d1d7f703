"""diffprivlib's budget accountant on one of our ledgers. It is installed in an environment of its own (see the docs).

Its functions call ``check`` before they sample and ``spend`` afterwards. Here ``check`` reserves, so that threads and
processes never spend more than there is, and ``spend`` settles.
"""

from __future__ import annotations

import sys
from threading import Lock, get_ident
from types import FrameType
from typing import Any, NamedTuple, Self

from expost.adapters.upper import as_guaranteed, library
from expost.cost import Cost
from expost.errors import BudgetExceeded, InvalidValue, LedgerClosed, ReservationClosed
from expost.forks import Process, here
from expost.guarantee import Guarantee, Neighbours
from expost.ledger import Ledger, Reservation

_PART = "any"
_package = library("diffprivlib", "diffprivlib", "accountants of diffprivlib", "diffprivlib")


class Pending(NamedTuple):
    """A reservation that ``check`` made, and who is to spend it: a thread, and the function that checked."""

    amount: Cost
    reservation: Reservation
    frame: FrameType
    """Not let go until it is spent or given up: only so is it known not to be another one."""


class LedgerAccountant(_package.BudgetAccountant):  # type: ignore[misc, name-defined]
    """A ``BudgetAccountant`` of diffprivlib that spends from a ledger.

    Parameters
    ----------
    ledger
        The ledger or account that pays.
    neighbours
        The relation of what is asked: diffprivlib's functions differ, see their documentation. None leaves it open.
    label
        What the ledger's entries are called.

    Use it as any accountant of diffprivlib: ``accountant=`` of its functions and models, ``with``, ``set_default()``.
    What is reserved and not spent, because a function failed, is charged: when its thread checks again, or by
    ``close()``, which the end of a ``with`` block calls. There is no slack; a ledger with Rényi prices adds up better.

    Proof: lem-dp-to-odp, thm-ledger
    """

    def __init__(
        self, ledger: Ledger, *, neighbours: Neighbours | None = None, label: str | None = "diffprivlib"
    ) -> None:
        if not isinstance(ledger, Ledger):
            raise InvalidValue(f"a ledger is needed, got a {type(ledger).__name__}")
        self._ledger, self._neighbours, self._label = ledger, neighbours, label
        self._lock = Lock()
        self._pending: dict[tuple[Process, int], list[Pending]] = {}
        self._spent: list[Cost] = []

    # ---- what diffprivlib's functions call

    def check(self, epsilon: Any, delta: Any) -> bool:
        """Reserve (ε, δ), unless this thread has the same amount pending in a function that is still running."""
        amount = _checked(epsilon, delta)
        self._drop_abandoned()
        if self._find(amount) is None:
            reservation = self._reserve(amount)
            with self._lock:
                self._pending.setdefault(_owner(), []).append(Pending(amount, reservation, sys._getframe(1)))
        return True

    def spend(self, epsilon: Any, delta: Any) -> Self:
        """Settle what was reserved for (ε, δ) in this thread; without a check before, reserve it first."""
        amount = _checked(epsilon, delta)
        found = self._find(amount)
        if found is None:
            reservation = self._reserve(amount)
        else:
            reservation = found.reservation
            with self._lock:
                self._pending[_owner()].remove(found)
        reservation.settle(_PART)
        with self._lock:
            self._spent.append(amount)
        return self

    def close(self) -> None:
        """Charge what was reserved and never spent, in all threads."""
        with self._lock:
            abandoned = [pending for found in self._pending.values() for pending in found]
            self._pending.clear()
        _forfeit(abandoned)

    def _find(self, amount: Cost) -> Pending | None:
        with self._lock:
            found = self._pending.get(_owner(), [])
            return next((pending for pending in reversed(found) if pending.amount == amount), None)

    def _drop_abandoned(self) -> None:
        """Charge what functions of this thread reserved that have ended without spending."""
        with self._lock:
            found = self._pending.get(_owner(), [])
            running = list(_frames(sys._getframe(1))) if found else []
            abandoned = [pending for pending in found if pending.frame not in running]
            self._pending[_owner()] = [pending for pending in found if pending.frame in running]
        _forfeit(abandoned)

    def _reserve(self, amount: Cost) -> Reservation:
        guarantee = Guarantee.uniform(amount.exact_epsilon, amount.exact_delta, neighbours=self._neighbours)
        try:
            return self._ledger.reserve(guarantee, label=self._label)
        except (BudgetExceeded, LedgerClosed) as refused:
            raise _package.utils.BudgetError(str(refused)) from refused

    # ---- what people ask it

    @property
    def epsilon(self) -> float:
        """The ledger's limit."""
        return self._ledger.limit.epsilon

    @property
    def delta(self) -> float:
        """The ledger's limit."""
        return self._ledger.limit.delta

    @property
    def slack(self) -> float:
        """None: what a ledger adds up is its own affair."""
        return 0.0

    @slack.setter
    def slack(self, slack: float) -> None:
        if slack != 0:
            raise InvalidValue("a ledger has no slack: take one with accounting='renyi'")

    @property
    def spent_budget(self) -> list[tuple[float, float]]:
        """What was spent through this accountant; the ledger's entries are the whole."""
        with self._lock:
            return [(cost.epsilon, cost.delta) for cost in self._spent]

    def total(self, spent_budget: Any = None, slack: Any = None) -> Any:
        """What the ledger has charged."""
        if spent_budget is not None or slack is not None:
            raise InvalidValue("the total of a ledger is its own: ledger.quote([…]) says what more would cost")
        return _package.utils.Budget(self._ledger.spent.epsilon, self._ledger.spent.delta)

    def remaining(self, k: int = 1) -> Any:
        """What each of k equal questions may cost."""
        remaining = self._ledger.remaining
        shares = Cost.of_units(remaining.epsilon_units, remaining.delta_units).split(k)
        return _package.utils.Budget(shares[-1].epsilon, shares[-1].delta)

    def __len__(self) -> int:
        with self._lock:
            return len(self._spent)

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.close()

    def __copy__(self) -> Self:
        return self  # as its ledger, it is one

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _accountant, (self._ledger, self._neighbours, self._label)

    def __repr__(self, n_budget_max: int = 5) -> str:
        return f"LedgerAccountant({self._ledger!r})"


def _accountant(ledger: Ledger, neighbours: Neighbours | None, label: str | None) -> LedgerAccountant:
    return LedgerAccountant(ledger, neighbours=neighbours, label=label)


def _checked(epsilon: Any, delta: Any) -> Cost:
    """What somebody asks for is read by its text, as everywhere: ten times 0.1 is 1."""
    as_guaranteed(epsilon, "ε")
    if as_guaranteed(delta, "δ") >= 1:
        raise InvalidValue(f"δ is {delta}, which guarantees nothing: it must be below 1")
    return Cost(epsilon, delta)


def _owner() -> tuple[Process, int]:
    """A thread of a process: a forked copy of it has nothing pending."""
    return here(), get_ident()


def _forfeit(abandoned: list[Pending]) -> None:
    for pending in abandoned:
        try:
            pending.reservation.forfeit()
        except ReservationClosed:
            continue


def _frames(frame: FrameType | None) -> list[FrameType]:
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found
