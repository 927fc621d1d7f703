"""One's own functions as mechanisms: a decorator, a ``with`` block, and an audit of what was stated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from expost.errors import InvalidValue
from expost.guarantee import Guarantee, Part
from expost.ledger import Ledger, Reservation
from expost.mechanism import Mechanism
from expost.mentions import brief
from expost.names import function_name
from expost.noise import NoiseSource

if TYPE_CHECKING:
    from expost.verify.audit import AuditResult

OwnOutput = TypeVar("OwnOutput")
OwnFunction = Callable[[Any, NoiseSource], OwnOutput]
"""A function of the data and of a source of noise, such as ``ledger.noise``."""


@dataclass(frozen=True, kw_only=True, repr=False)
class OwnMechanism(Mechanism[Any, Any]):
    """A function with a guarantee that its author states.

    Parameters
    ----------
    function
        A function of the data and a source of noise. It may use noise of its own instead.
    stated
        What it guarantees, for all data. Nobody here has proved it: ``.audit(…)`` tries to refute it.
    partition
        The part of an output. May be left out if all outputs cost the same.
    name
        For keys: what the function is. By default its module and name, unless it is defined in ``__main__``, in
        another function, or by a lambda.

    Private values must not cause exceptions in it: that there was one is outside of every guarantee, though it is
    charged.

    >>> def count(data, noise):
    ...     return len(data) + noise.below(3)
    >>> OwnMechanism(function=count, stated=Guarantee.uniform(2), name="a bad count").part_of(7)
    'any'

    Proof: lem-dp-to-odp
    """

    function: OwnFunction[Any]
    stated: Guarantee
    partition: Callable[[Any], Part] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidValue(f"a function of the data and a noise source is needed, got {brief(self.function)}")
        _check_stated(self.stated, self.partition)

    @property
    def guarantee(self) -> Guarantee:
        """What was stated."""
        return self.stated

    def sample(self, data: Any, noise: NoiseSource) -> Any:
        """One output of the function."""
        return self.function(data, noise)

    def part_of(self, output: Any) -> Part:
        """The part of an output."""
        return "any" if self.partition is None else self.partition(output)

    def audit(self, pairs: Sequence[tuple[Any, Any]], **options: Any) -> AuditResult:
        """Try to refute what was stated on pairs of neighbouring databases: :func:`expost.verify.audit.audit`.

        The options are that function's: ``samples=``, ``seconds=``, ``confidence=``, ``seed=``.

        Proof: lem-audit
        """
        from expost.verify.audit import audit

        return audit(self, pairs, **options)


def private(
    guarantee: Guarantee, *, part_of: Callable[[Any], Part] | None = None, name: str | None = None
) -> Callable[[OwnFunction[Any]], OwnMechanism]:
    """A decorator: the function becomes a mechanism with this guarantee, for ``ledger.run(…, on=data)``.

    >>> @private(Guarantee.uniform(1))
    ... def answered(data, noise):
    ...     return data if noise.below(4) else 1 - data
    >>> Ledger(epsilon=1).run(answered, on=1).charged
    Cost(1)
    """
    _check_stated(guarantee, part_of)

    def decorated(function: OwnFunction[Any]) -> OwnMechanism:
        known = name or _name_of(function)
        return OwnMechanism(function=function, stated=guarantee, partition=part_of, name=known)

    return decorated


class OwnCharge(Generic[OwnOutput]):
    """What a ``with charged(…)`` block publishes through."""

    def __init__(self, reservation: Reservation, part_of: Callable[[Any], Part] | None) -> None:
        self._reservation, self._part_of = reservation, part_of

    def publish(self, output: OwnOutput) -> OwnOutput:
        """OwnCharge the part of an output, once, and hand it on."""
        try:
            part = "any" if self._part_of is None else self._part_of(output)
        except BaseException as error:
            self._reservation.forfeit(error)
            raise
        self._reservation.settle(part)
        return output

    @property
    def reservation(self) -> Reservation:
        """The reservation that pays."""
        return self._reservation


@contextmanager
def charged(
    ledger: Ledger,
    guarantee: Guarantee,
    *,
    part_of: Callable[[Any], Part] | None = None,
    label: str | None = None,
    key: str | None = None,
) -> Iterator[OwnCharge[Any]]:
    """A ``with`` block for work of one's own: reserves the worst case, and charges the part of what is published.

    An exception in the block charges the worst case, and so does leaving it without publishing.

    >>> ledger, sizes = Ledger(epsilon=1), Guarantee({"small": 0.25, "large": 0.75})
    >>> with charged(ledger, sizes, part_of=lambda answer: "small" if answer < 9 else "large") as charge:
    ...     answer = charge.publish(7)
    >>> ledger.remaining
    Cost(0.75)
    """
    _check_stated(guarantee, part_of)
    with ledger.reserve(guarantee, label=label, key=key) as reservation:
        yield OwnCharge(reservation, part_of)


def _check_stated(guarantee: Any, part_of: Any) -> None:
    if not isinstance(guarantee, Guarantee):
        raise InvalidValue(f"a guarantee is needed, such as Guarantee.uniform(1), got {brief(guarantee)}")
    if part_of is None and "any" not in guarantee:
        raise InvalidValue("this guarantee has parts: say by part_of= which part an output is in")
    if part_of is not None and not callable(part_of):
        raise InvalidValue(f"part_of is a function of an output, got {brief(part_of)}")


def _name_of(function: Any) -> str | None:
    """Its module and name, if that is where the mechanism will be found from now on."""
    if function_name(function) is not None:
        return None  # found by its own name already
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", "<locals>")
    return f"{module}:{path}" if module not in (None, "__main__", "__mp_main__") and "<" not in path else None
