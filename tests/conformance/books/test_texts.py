"""No text in the books, and no message, shows what may be data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import expost as xp
from carriers import GUARANTEE, SECRET, Alike, Asked, Called, Opaque, Trainer, module_step
from expost import Ledger
from expost.accounting.losses import GaussianNoise
from expost.mechanisms.stability.release import Proposal


@dataclass(frozen=True)
class Table:
    rows: tuple[int, ...] = (SECRET,)


class Row(NamedTuple):
    income: int = SECRET


class HomeMade(Proposal):
    price = 0

    def __init__(self) -> None:
        self.rows = [SECRET]

    def __repr__(self) -> str:
        return f"HomeMade({self.rows})"

    def distance(self, data: Any, cap: int) -> int:
        return cap

    def release(self, data: Any, noise: xp.noise.NoiseSource) -> Any:
        return 0


def iterative(compute: Any) -> xp.Iterative:
    steps = (GaussianNoise(10),) * 2
    return xp.Iterative(steps=steps, stops=(2,), delta=1e-5, sensitivity=1, compute=compute)


HOLDERS: dict[str, Callable[[], xp.Mechanism]] = {
    "bound method": lambda: iterative(Trainer().step),
    "partial": lambda: iterative(partial(module_step, [SECRET])),
    "called": lambda: iterative(Called()),
    "until": lambda: iterative(partial(Trainer().step)),
    "proposal": lambda: xp.mechanisms.ProposeTestRelease(proposal=HomeMade(), test_epsilon=1, delta=1e-6),
    "proposals": lambda: xp.mechanisms.FirstStable(proposals=(HomeMade(),), test_epsilon=1, delta=1e-6),
    "array": lambda: Alike(np.array([SECRET])),  # type: ignore[arg-type]
    "dict": lambda: Alike({"step": [Trainer().step]}),  # type: ignore[arg-type]
    "data": lambda: Asked(1, rows=[SECRET]),
    "record": lambda: Alike(Table()),  # type: ignore[arg-type]
    "records": lambda: Alike([Row()]),  # type: ignore[arg-type]
    "home-made": lambda: Opaque(Trainer()),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", HOLDERS)
def test_the_books_hold_no_object_of_a_callable(ledger: Ledger, what: str, tmp_path: Path) -> None:
    """Found: incomes that a bound method carried with it stood in the entry, the audit trail and its export."""
    mechanism = HOLDERS[what]()
    ledger._store.reserve(ledger._request("run", mechanism, GUARANTEE, None, None), begin=True)
    ledger.export(tmp_path / "trail.jsonl")
    (entry,) = ledger.entries()
    books = [entry.what, repr(entry), repr(entry.request), ledger.statement(), (tmp_path / "trail.jsonl").read_text()]
    books += [event.line for event in ledger.audit_trail()]
    assert str(SECRET) not in "".join(books)
    if what in ("bound method", "partial", "called"):
        assert "module_step" in entry.what or "Trainer.step" in entry.what or ":Called" in entry.what
        assert str(SECRET) not in repr(mechanism)


def test_without_a_key_there_is_no_hash_of_the_parameters(ledger: Ledger) -> None:
    """Found: whoever guesses a parameter that does not print could check the guess by the fingerprint."""
    ledger.run(Alike(np.array([SECRET])))  # type: ignore[arg-type]
    with ledger.reserve(GUARANTEE) as spending:
        spending.settle("small")
    ledger.run(Alike(2), key="k")
    told = [event.body["fingerprint"] for event in ledger.audit_trail() if event.kind == "reserve"]
    assert told == ["", "", Alike(2).fingerprint]
    ledger.verify()


def test_the_trail_is_written_when_it_happens(ledger: Ledger) -> None:
    """Found: in memory it was written when it was read, and parameters had changed meanwhile."""
    given = [1]
    ledger.run(Alike(given))  # type: ignore[arg-type]
    head = ledger.verify()
    given.append(2)
    assert ledger.verify(known=head) == head
    assert "[1]" in next(ledger.entries()).what


@pytest.mark.parametrize(
    "attempt",
    [
        lambda ledger: ledger.run([SECRET], Alike(1)),
        lambda ledger: ledger.open(np.array([SECRET])),
        lambda ledger: ledger.reserve([SECRET]),
        lambda ledger: ledger.run(SECRET, Alike(1)),
        lambda ledger: ledger.quote([SECRET]),
        lambda ledger: ledger.run(Alike(1), label=[SECRET]),
        lambda ledger: ledger.run(Alike(1), key=[SECRET]),
        lambda ledger: ledger.account([SECRET]),
        lambda ledger: ledger.reservation([SECRET]),
        lambda ledger: ledger.reserve(GUARANTEE, lease=[SECRET]),
    ],
)
def test_messages_do_not_show_what_may_be_data(attempt: Callable[[Ledger], Any]) -> None:
    with pytest.raises(xp.InvalidValue, match=r"got (a|one) (list|ndarray|Asked|int)") as caught:
        attempt(Ledger(epsilon=1))
    assert str(SECRET) not in str(caught.value)
