"""The contract between mechanisms and ledgers: `Mechanism`, `Interaction`, `Release`, `WITHHELD`."""

from __future__ import annotations

import copy
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set, ValuesView
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from itertools import chain
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, Self, cast

from expost.cost import Cost, CostBesideNoise, Number, decimal_text, shortened
from expost.errors import InteractionClosed, InvalidValue, NotCopyable
from expost.estimate import Estimate
from expost.estimates import EstimateArray, Estimates, frame_of
from expost.fingerprint import identify
from expost.forks import here
from expost.frame import AsFrame, Frame
from expost.guarantee import Guarantee, Neighbours, Part
from expost.mentions import printable
from expost.noise import NoiseSource
from expost.text import shown

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from expost.accounting.renyi import Prices
    from expost.ledger import Entry

    In = TypeVar("In", contravariant=True, default=Any)
    Out = TypeVar("Out", default=Any)
    Published = TypeVar("Published", covariant=True, default=Any)
else:
    from typing import TypeVar

    In = TypeVar("In", contravariant=True)
    Out = TypeVar("Out")
    Published = TypeVar("Published", covariant=True)

AnInteraction = TypeVar("AnInteraction", bound="Interaction", covariant=True)
_Answer = TypeVar("_Answer")


class Withheld(Enum):
    """The type of :data:`WITHHELD`."""

    WITHHELD = "withheld"

    def __repr__(self) -> str:
        return "WITHHELD"

    __str__ = __repr__

    def __bool__(self) -> bool:
        return False


WITHHELD = Withheld.WITHHELD
"""No answer: what a mechanism publishes instead of a value when its own test failed."""


class Mechanism(ABC, Generic[In, Out]):
    """A randomised algorithm and its guarantee. It contains no data.

    A mechanism is a small frozen object (a frozen dataclass): printable, comparable, costed without
    touching data. Its docstring ends with ``Proof:`` and a label of ``docs/theory*.md``. For type checkers it is a
    ``Mechanism[In, Out]``: ``ledger.run`` takes data of type ``In`` and gives a ``Release[Out]``.
    """

    __repr__ = shown

    @property
    def fingerprint(self) -> str:
        """What it is: the same in every process for the same class and parameters, another for any other.

        A ledger's key is for one fingerprint. A mechanism that holds what cannot be identified (a lambda, a
        local function, a bound method, a partial, an object without fields), or whose class is defined in ``__main__``
        or in a function, has none and raises ``InvalidValue``, unless it has a ``name``: a field that identifies all of
        that. A class may also define its own.
        """
        return identify(self).fingerprint

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """(P, E, δ), for all data; an interactive one keeps it for every adaptive way of asking."""

    @abstractmethod
    def part_of(self, output: Out) -> Part:
        """The part of a published output. A function of the output only: anyone can recompute the charge."""

    def renyi_prices(self, order: Number) -> Prices:
        """The Rényi price of each part at an order: what the guarantee implies, or less where the noise is known.

        Proof: lem-tangent-prices, lem-trimming
        """
        from expost.accounting.renyi import tangent_prices

        return tangent_prices(self.guarantee, order)

    def gaussian_prices(self) -> Prices | None:
        """μ² = (sensitivity/σ)² of each part, if it is as private as Gaussian noise; else None."""
        return None

    def concentrated_prices(self) -> Prices | None:
        """2ρ of each part, if αρ is a valid Rényi price of it at every order α (ρ-zCDP); else None."""
        return None

    def reads(self, data: Any) -> Any:
        """The data in the form that is checked and sampled from: by default as it was given.

        It looks at types and shapes only, and never at private values.
        """
        return data

    def check(self, data: Any) -> None:
        """Refuse what is publicly wrong with the data: its type, its shape, a declared size.

        Called before anything is reserved. It never looks at private values.
        """

    def check_start(self, data: Any) -> None:
        """The same for an interaction about the data. By default all data is accepted, None included."""

    def sample(self, data: In, noise: NoiseSource) -> Out:
        """One output. Private values never make it raise; they follow the mechanism's stated rules."""
        raise InvalidValue(f"{type(self).__name__} answers questions one at a time: use ledger.open(…)")

    def start(self, data: In, noise: NoiseSource) -> Interaction:
        """An interaction about the data. Publishes nothing yet."""
        raise InvalidValue(f"{type(self).__name__} runs in one go: use ledger.run(…)")

    def answer_of(self, output: Out, origin: Hashable) -> Any:
        """The output as people read it: numbers are estimates, with the noise that they had, where that is known.

        ``origin`` says which entry of which ledger the noise was drawn for.
        """
        return output

    def frame_of(self, answer: Any) -> Frame:
        """An answer as rows: numbers have one schema, whatever they are."""
        return frame_of(answer, self)

    @property
    def what(self) -> str:
        """What its numbers are, in a few words: they stand in the first column of frames."""
        return "value"

    def describe(self, output: Out) -> str:
        """What came out, in a few words for a person."""
        return "withheld" if output is WITHHELD else _brief(output)


def read_by(mechanism: Mechanism, output: Any, origin: Hashable) -> Any:
    """An output as people read it; ``WITHHELD`` stays what it is."""
    return output if output is WITHHELD else mechanism.answer_of(output, origin)


def rows_by(mechanism: Mechanism, answer: Any) -> Frame:
    """An answer as rows; ``WITHHELD`` is an empty cell."""
    return frame_of(answer, mechanism) if answer is WITHHELD else mechanism.frame_of(answer)


class PrivateData:
    """Data that says whose it is, such as a column of a private table. A ledger compares that with its own."""

    @property
    def unit_name(self) -> str:
        """Whose privacy is protected."""
        raise NotImplementedError

    @property
    def relation(self) -> Neighbours:
        """Which data differ by one unit."""
        raise NotImplementedError

    def check_as_data(self) -> None:
        """Raise if mechanisms do not run on it, because it is asked questions instead. By default they do."""


def private_data(data: Any, deepest: int = 8) -> Iterator[PrivateData]:
    """What says whose it is among the data that a mechanism is run on: itself, or what collections and records hold."""
    if isinstance(data, PrivateData):
        yield data
    elif deepest:
        for each in _held(data):
            if not isinstance(each, _SIMPLE):
                yield from private_data(each, deepest - 1)


_SIMPLE = (str, bytes, int, float, complex, type(None))
"""Of a million numbers, none is looked into."""


def _held(data: Any) -> Iterable[Any]:
    """What a collection or a record holds; nothing for all others."""
    if isinstance(data, Mapping):
        return chain(data.keys(), data.values())
    if isinstance(data, list | tuple | Set | ValuesView):
        return data
    if is_dataclass(data) and not isinstance(data, type):
        return [getattr(data, field.name, None) for field in fields(data)]
    of_objects = getattr(getattr(data, "dtype", None), "hasobject", False) and hasattr(data, "flat")
    return cast(Iterable[Any], data.flat) if of_objects else ()


@dataclass(frozen=True, eq=False, repr=False)
class Release(AsFrame, Generic[Published]):
    """What was published, and its receipt. Immutable.

    Attributes
    ----------
    mechanism
        The mechanism that was run.
    value
        What it published, as people read it: numbers are :class:`~expost.Estimate`, where their errors are known.
    entry
        The ledger's entry, as it was when the value was delivered.
    replayed
        Whether the value was read from the ledger: nothing was sampled, and nothing more charged.
    origin
        Which entry of which ledger it is: numbers of one entry share their noise, also if it is read again.
    known
        Whether it answers a new request from the books, by an entry that was published before. Then nothing is charged
        for it, and ``entry`` says what was paid then. (The same request once more, under its key, has its own receipt.)
    output
        What it published as ``mechanism.part_of`` reads it: numbers are plain.

    Two releases are equal if they are of the same entry and published the same, arrays and NaN included.
    """

    mechanism: Mechanism
    value: Published
    entry: Entry
    replayed: bool = False
    origin: Hashable = field(default=None, repr=False)
    known: bool = False
    output: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "output", self.value)
        if self.entry.state == "settled":
            value = read_by(self.mechanism, self.value, object() if self.origin is None else self.origin)
            object.__setattr__(self, "value", value)

    @property
    def error(self) -> float | None:
        """How far noise moved a published number at most, with 95 % confidence; None where that is not one number."""
        return self.value.error if isinstance(self.value, Estimate) else None

    def interval(self, confidence: Number = "0.95") -> tuple[float, float]:
        """What the number would be without its noise lies between these, with this confidence."""
        if not isinstance(self.value, Estimate):
            raise InvalidValue(f"{type(self.mechanism).__name__} published no single number with an error: see .frame")
        return self.value.interval(confidence)

    @property
    def part(self) -> Part | None:
        """The part that was charged; None if nothing was asked."""
        return self.entry.part

    @property
    def reserved(self) -> Cost:
        """The worst case that was reserved; nothing for what was known."""
        return Cost(0) if self.known else self.entry.reserved

    @property
    def charged(self) -> Cost:
        """What the part costs. Noise that has no ε costs none, and is shown as its ρ or Rényi price.

        What was known costs nothing: what was paid for it then is ``entry.charged``.
        """
        assert self.entry.charged is not None
        if self.known:
            return Cost(0)
        used = self.entry.used[1]
        return (
            CostBesideNoise.of(self.entry.charged, str(used))
            if used is not None and used.is_noise
            else self.entry.charged
        )

    @property
    def refunded(self) -> Cost:
        """What was refunded of the reservation. δ never is, once sampling began."""
        return self.reserved - self.charged

    @property
    def withheld(self) -> bool:
        """Whether the mechanism published no answer."""
        return self.value is WITHHELD

    @property
    def frame(self) -> Frame:
        """What was published as a :class:`~expost.frame.Frame`; ``.to_pandas()``, ``.to_csv()`` … are its methods."""
        if self.entry.state != "settled":
            return frame_of(self.value, self.mechanism)
        return rows_by(self.mechanism, self.value)

    def plot(self, value: str | None = None, ax: Any = None) -> Any:
        """Its numbers with their errors, as :meth:`~expost.frame.Frame.plot`."""
        return self.frame.plot(value, ax)

    def _repr_html_(self) -> str:
        from expost.markup import html_text

        return f"{self.frame.html()}{html_text(self._line)}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        return self.entry == other.entry and _same(self.output, other.output)

    def __hash__(self) -> int:
        return hash((self.entry.id, self.part, self.entry.charged))

    def __repr__(self) -> str:
        entry = f"entry {self.entry.id} of {printable(self.entry.account)!r}"
        return f"<{type(self.mechanism).__name__}: {_cut(self._what, 40)}, {_cut(entry, 30)}, {self.entry.state}>"

    def __str__(self) -> str:
        """Several numbers with what is known of their errors, then a line with the receipt; of one number, the line."""
        frame = self.frame if isinstance(self.value, Estimates | EstimateArray) else ()
        return f"{frame}\n{self._line}" if len(frame) > 1 else self._line

    @property
    def _what(self) -> str:
        return "nothing was asked" if self.part is None else printable(self.mechanism.describe(self.output))

    @property
    def _line(self) -> str:
        replayed = " · replayed, nothing more was charged" if self.replayed and not self.known else ""
        return f"{type(self.mechanism).__name__}: {self._what} · {self._receipt()}{replayed}"

    def _receipt(self) -> str:
        if self.known:
            return f"replayed from entry {self.entry.id}, nothing was charged"
        reserved, paid, left = self.entry.used
        if reserved.is_noise:  # it has no ε: what it used is its ρ, and its price on the Rényi meter
            return f"reserved {reserved}, charged {paid}{_renyi(self.entry)}, refunded {left}"
        charged, refunded = _amount(self.charged, up=True), _amount(self.refunded, up=False)
        return f"reserved {shortened(self.reserved, up=True)}, charged {charged}, refunded {refunded}"


class Payer(Protocol):
    """What an interaction needs of the reservation that pays for it. A ledger provides it."""

    def begin(self) -> None:
        """From here on, output may have leaked."""

    def publish(self, mechanism: Mechanism[Any, Out], output: Out) -> Release[Out]:
        """Settle the part of ``output``."""

    def forfeit(self, error: BaseException | None = None) -> object:
        """Charge the worst case; note it on ``error``."""

    def abandon(self, mechanism: Mechanism) -> Release:
        """Void: sampling never began."""


class Interactive(Protocol[AnInteraction]):
    """A mechanism that answers questions one at a time: what ``ledger.open`` takes."""

    @property
    def guarantee(self) -> Guarantee:
        """As of :class:`Mechanism`."""

    def reads(self, data: Any) -> Any:
        """As of :class:`Mechanism`."""

    def check_start(self, data: Any) -> None:
        """As of :class:`Mechanism`."""

    def start(self, data: Any, noise: NoiseSource) -> AnInteraction:
        """As of :class:`Mechanism`."""


class Interaction:
    """An interaction with a mechanism. Leaving the ``with`` block is STOP, and settles what was published.

    Subclasses give the way of asking, through :meth:`_answer`. Nothing asked costs nothing. The caller's
    own exceptions settle too; only an exception while a private value was being evaluated forfeits.
    An answer is copied before it is handed out: what is priced and kept is what was answered, whatever becomes of the
    object. An answer that ``copy.deepcopy`` does not take (a mapping proxy, a lock) is an error while sampling, and
    forfeits. One question is answered at a time, whatever the threads; a closed interaction never answers again, and
    one that was forked answers only in the process that it was opened in.

    Parameters
    ----------
    mechanism
        The mechanism that it is with.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        self._process = here()
        self._lock = RLock()
        self._transcript: list[Any] = []
        self._spending: Payer | None = None
        self._release: Release | None = None
        self._begun = False
        self._answering = False
        self._closed = False

    def paid_by(self, spending: Payer) -> Self:
        """Let a reservation pay. Called once, by the ledger, before the first question."""
        if self._spending is not None or self._begun or self._closed:
            raise InteractionClosed("this interaction is paid for already, or has begun without a ledger: open another")
        self._spending = spending
        return self

    @property
    def closed(self) -> bool:
        """Whether it will never answer again."""
        return self._closed

    @property
    def transcript(self) -> tuple[Any, ...]:
        """The answers so far; copies of those that could be changed."""
        return tuple(map(_apart, self._transcript))

    @property
    def output(self) -> Any:
        """What has been published, in the form that ``mechanism.part_of`` reads: the transcript."""
        return self.transcript

    @property
    def release(self) -> Release:
        """What was published, its part and the receipt; there once the interaction is closed."""
        if self._release is None:
            state = "it was forfeited, at its worst case" if self._closed else "close it first"
            raise InteractionClosed(f"this interaction has no release: {state}")
        return self._release

    def close(self) -> None:
        """STOP. Settles the part of what was published; closing again does nothing."""
        self._refuse_forked()
        with self._lock:
            if self._answering:
                raise InteractionClosed("a question may not close the interaction that is answering it")
            if self._closed:
                return
            self._closed = True
            if self._spending is None:
                return
            if self._begun:
                self._release = self._spending.publish(self._mechanism, self.output)
            else:
                self._release = self._spending.abandon(self._mechanism)

    def finished(self) -> bool:
        """Whether the mechanism allows no further question. Reads the transcript only."""
        return False

    def _answer(self, evaluate: Callable[[], _Answer]) -> _Answer:
        """Publish ``evaluate()``: the only place where private values are looked at."""
        self._refuse_forked()
        with self._lock:
            if self._closed:
                raise InteractionClosed(
                    f"this {type(self._mechanism).__name__} is closed and answers no more; open another"
                )
            if self._answering:
                raise InteractionClosed("a question may not ask the interaction that is answering it")
            if self._spending is not None and not self._begun:
                self._spending.begin()
            self._begun = self._answering = True
            try:
                answer = evaluate()
                self._transcript.append(_apart(answer))
            except BaseException as error:
                self._closed = True
                if self._spending is not None:
                    self._spending.forfeit(error)
                raise
            finally:
                self._answering = False
            self._refuse_forked()  # the question itself may have forked
            if self.finished():
                self.close()
            return answer

    def _refuse_forked(self) -> None:
        """One reservation pays for one interaction: a forked copy would answer without being charged."""
        if here() != self._process:
            raise InteractionClosed(
                f"this {type(self._mechanism).__name__} belongs to process {self._process.number} and answers only "
                "there: open another in this process"
            )

    def __copy__(self) -> Self:
        return self  # a copy would answer after the original was closed

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise NotCopyable("an interaction lives in this process; a pickled copy could answer after it was closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if here() == self._process:  # a forked process that leaves the block ends nothing
            self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<{state} interaction with {self._mechanism!r}: {len(self._transcript)} answers>"


def fixed(array: Any) -> Any:
    """A read-only copy of the array: its values are in bytes. Arrays of objects are copied."""
    import numpy as np

    if array.dtype.hasobject:
        return copy.deepcopy(array)
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def _same(one: Any, other: Any) -> bool:
    """Whether two published values are the same. NaN is the same as NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if is_dataclass(one):
        return all(_same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(one, numpy.ndarray):
        return bool(one.dtype == other.dtype and one.shape == other.shape and _same(one.tolist(), other.tolist()))
    return bool(one == other or (one != one and other != other))


_UNCHANGING = frozenset({bool, int, float, str, bytes, type(None)})


def _apart(answer: Any) -> Any:
    """A copy of an answer that others cannot change."""
    if type(answer) in _UNCHANGING:
        return answer
    numpy = sys.modules.get("numpy")
    if numpy is None or type(answer) is not numpy.ndarray:
        return copy.deepcopy(answer)
    held = answer.base
    return answer.view() if type(held) is numpy.ndarray and type(held.base) is bytes else fixed(answer)


def _brief(output: Any) -> str:
    shape = getattr(output, "shape", None)
    if shape:
        return f"{' × '.join(map(str, shape))} values"
    text = repr(output)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _renyi(entry: Entry) -> str:
    """The Rényi price beside a ρ."""
    amounts = entry.amounts
    return "" if amounts is None or not amounts.normal else f" (Rényi price {decimal_text(amounts.renyi, 12)})"


def _amount(cost: Cost, *, up: bool) -> str:
    """A cost without the symbol of ε, to six places, for the middle of a receipt: charges round up, refunds down."""
    text = shortened(cost, up=up).epsilon_text
    return text if not cost.delta_units else f"{text} (δ {decimal_text(cost.delta_units, 18)})"
