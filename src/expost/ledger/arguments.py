"""Checks of a ledger's arguments: limits, names, notes, noise. Errors show nothing that may be data."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from unicodedata import is_normalized

from expost.cost import DELTA_UNITS, Cost, Number
from expost.errors import InvalidValue, WeakLimitWarning
from expost.guarantee import Guarantee, as_neighbours
from expost.ledger.entry import Note
from expost.mechanism import Mechanism
from expost.noise import NoiseSource

if TYPE_CHECKING:
    from expost.accounting.capacities import LedgerMeters

_IN_ADDRESSES = frozenset("%\\?#")

_LARGEST = Cost(20, "1e-3")
"""The largest limit that is not warned of."""


def as_limit(epsilon: Number | Cost, delta: Number) -> Cost:
    """A limit, given as a ``Cost`` or as ε and δ."""
    if isinstance(epsilon, Cost) and delta != 0:
        raise InvalidValue(f"a limit is a Cost, or epsilon= and delta=, not both: got {epsilon!r} and delta={delta!r}")
    return epsilon if isinstance(epsilon, Cost) else Cost.within(epsilon, delta)


def warn_if_weak(limit: Cost, stacklevel: int) -> None:
    """Warn of a new limit that guarantees little: most are asked for by mistake, and the others in trials."""
    weak = []
    if limit.epsilon_units > _LARGEST.epsilon_units:
        weak.append(f"with ε {limit.epsilon_text}, answers may tell almost surely whether somebody is in the data")
    if limit.delta_units > _LARGEST.delta_units:
        large = "with δ 1, nothing is guaranteed" if limit.delta_units == DELTA_UNITS else f"δ {limit.delta} is large"
        weak.append(f"{large}: give one far below one in the number of people in the data, such as 1e-6")
    if weak:
        message = (
            f"a limit of {limit} guarantees little: {'; '.join(weak)}. In trials on made-up data that does no harm"
        )
        warnings.warn(message, WeakLimitWarning, stacklevel=stacklevel + 1)


def as_raised(epsilon: Number | None, delta: Number | None) -> tuple[Cost | None, Cost | None]:
    """A new ε and δ; None leaves it as it is."""
    if epsilon is None and delta is None:
        raise InvalidValue("raise_limit got no new limit: pass epsilon= or delta=")
    return None if epsilon is None else Cost.within(epsilon), None if delta is None else Cost.within(0, delta)


def as_meters(accounting: Any, limit: Cost) -> LedgerMeters | None:
    """A ledger's other meters than the basic sum, if it is to have any."""
    if accounting == "basic":
        return None
    from expost.accounting.capacities import meters_of

    return meters_of(accounting, limit)


def require(value: Any, kind: type, rule: str) -> None:
    """Raise unless a value is of a type."""
    if not isinstance(value, kind):
        raise InvalidValue(f"{rule}; got a {type(value).__name__}")


def harmless(value: Any) -> str:
    """A wrong argument, as errors show it: texts and numbers only, because others may be data."""
    return repr(value) if type(value) in (str, bool, int, float, type(None)) else f"a {type(value).__name__}"


def check_given(text: Any, what: str) -> None:
    """Raise unless it is a text that is not empty."""
    if not isinstance(text, str) or not text:
        raise InvalidValue(f"a {what} is a string that is not empty, got {harmless(text)}")


def as_note(by: str, reason: str) -> Note:
    """Who ordered a change, and why."""
    check_given(by, "by")
    check_given(reason, "reason")
    return Note(by, reason)


def check_lease(seconds: Any) -> None:
    """Raise unless it is a positive number of seconds."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < 1e9:
        raise InvalidValue(f"a lease is a positive number of seconds below 1e9, got {harmless(seconds)}")


def check_source(noise: Any) -> None:
    """Raise unless it is a source of noise, or None for the default."""
    if noise is not None and not isinstance(noise, NoiseSource):
        raise InvalidValue(f"noise must be a NoiseSource such as SystemNoise(), got {harmless(noise)}")


def check_private(noise: Any) -> None:
    """Raise for noise that somebody could predict."""
    check_source(noise)
    if noise is not None and not noise.private:
        raise InvalidValue(f"a durable ledger needs private noise, and {noise!r} is predictable: use SystemNoise()")


def check_durable(name: Any, neighbours: Any, unit: Any, noise: Any) -> None:
    """Raise for a name, relation, unit or noise that a durable ledger cannot have."""
    as_name(name, "a ledger")
    check_given(unit, "unit")
    if as_neighbours(neighbours) is None:
        raise InvalidValue("a durable ledger needs the neighbour relation of its guarantees: pass neighbours=")
    check_private(noise)


def check_names(label: Any, key: Any) -> None:
    """Raise for a label or key that is not a text; None means that there is none."""
    for text, what in ((label, "label"), (key, "key")):
        if text is not None:
            check_given(text, what)


def as_name(name: Any, whose: str) -> str:
    """A name that can be part of a path."""
    if not isinstance(name, str) or not name or "/" in name:
        raise InvalidValue(f"{whose}'s name is a string that is not empty and has no '/', got {harmless(name)}")
    return name


def as_new_name(name: Any, whose: str) -> str:
    """A name for something new: one that reads the same wherever it is shown, and means itself in an address.

    No two names that look the same in print: no marks that are not seen or turn the direction of writing round, no
    spaces at the ends, and one way to write an accent. Nothing that a path or an address would take for something else.
    """
    new = as_name(name, whose)
    if new.isprintable() and is_normalized("NFC", new) and new == new.strip():
        if new.strip(".") and not _IN_ADDRESSES & {*new}:
            return new
        raise InvalidValue(f"{whose}'s name is not of dots alone and has none of % \\ ? #, got {harmless(name)}")
    raise InvalidValue(
        f"{whose}'s name has characters that are seen, without spaces at its ends, and accents in one piece (NFC), "
        f"got {name!a}"
    )


def as_guarantees(planned: Iterable[Mechanism | Guarantee]) -> list[Guarantee]:
    """The guarantees of a plan's mechanisms."""
    guarantees = [plan.guarantee if isinstance(plan, Mechanism) else plan for plan in planned]
    for guarantee in guarantees:
        require(guarantee, Guarantee, "quote takes questions, mechanisms and guarantees")
    return guarantees
