"""Many published numbers as one columnar object, with one schema: what, keys…, value, low, high, error."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.checks import as_confidence
from expost.comparison import Comparison
from expost.errors import InvalidValue
from expost.estimate import USUAL, Drawn, Estimate
from expost.frame import ABOVE, MOST_SHOWN, NUMBERS, WHAT, AsFrame, Frame
from expost.noise.sums import Term

_LARGEST = 2**62
"""What is added to whole numbers of 64 bits without overflow, as these are at most 2^60."""


def cells_of(number: Any) -> tuple[Any, Any, Any, Any]:
    """The value of a number, the ends of its interval at 95 %, and its error; None for what is not known."""
    if isinstance(number, Estimate):
        return number.columns
    return (None if isinstance(number, Enum) else number), None, None, None


def key_columns(names: Sequence[str], taken: Sequence[str] = (WHAT, *NUMBERS)) -> tuple[str, ...]:
    """Names of columns of keys that no other column has: such as ``value (key)`` for a column called ``value``."""
    found: list[str] = []
    for name in names:
        while name in taken or name in found:
            name = f"{name} (key)"
        found.append(name)
    return tuple(found)


def _notes(numbers: Sequence[Any]) -> tuple[str, ...]:
    """Why errors are missing, each reason once."""
    return tuple(dict.fromkeys(one.why for one in numbers if isinstance(one, Estimate) and one.why))


@dataclass(frozen=True)
class _Chosen:
    """Some of the numbers of others."""

    at: Callable[[int], Any]
    places: list[int]

    def __call__(self, row: int) -> Any:
        return self.at(self.places[row])


@dataclass(frozen=True)
class _WithoutError:
    """The numbers of others, whose errors do not hold."""

    at: Callable[[int], Any]
    why: str

    def __call__(self, row: int) -> Any:
        return without_errors(self.at(row), self.why)


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Mapping[Any, Any], AsFrame):
    """Published numbers by their keys. Each is an :class:`~expost.Estimate` where it is looked up.

    With several key columns a key is a tuple. Where several statistics were asked in one go the first thing to look up
    is which: ``value["cost"]["ICU"]``. The errors are those of each number by itself, at 95 %.

    Parameters
    ----------
    names
        What the columns of the keys are called.
    keys_of
        The key of each number, a tuple.
    what
        What each number is: a name for all of them, or one for each.
    at
        The number in that row: an estimate, or ``WITHHELD``.
    total
        How many of the last rows are about all others together, one for each statistic that adds up: they have no key,
        and are :attr:`all_together`.

    >>> found = Estimates.by_key(("ward",), ["A", "B"], "beds", [Estimate.exactly(3), Estimate.exactly(5)].__getitem__)
    >>> found["B"], list(found), found == {"A": 3, "B": 5}
    (5 ± 0, ['A', 'B'], True)
    """

    names: tuple[str, ...]
    keys_of: tuple[tuple[Any, ...], ...]
    what: tuple[str, ...]
    at: Callable[[int], Any]
    total: int = 0

    @staticmethod
    def by_key(names: Sequence[str], keys: Sequence[Any], what: str, at: Callable[[int], Any]) -> Estimates:
        """Numbers of one statistic; keys of one column need not be tuples."""
        listed: tuple[tuple[Any, ...], ...] = tuple(key if len(names) > 1 else (key,) for key in keys)
        return Estimates(tuple(names), listed, (what,) * len(listed), at)

    @staticmethod
    def named(numbers: Mapping[str, Any]) -> Estimates:
        """Several numbers, each with a name of its own."""
        values = list(numbers.values())
        return Estimates((), ((),) * len(values), tuple(numbers), values.__getitem__)

    @cached_property
    def _statistics(self) -> list[str]:
        return list(dict.fromkeys(self.what))

    @cached_property
    def _places(self) -> dict[Any, int]:
        last = len(self.keys_of) - self.total
        several = len(self._statistics) > 1 or not self.names
        found: dict[Any, int] = {}
        for place, (what, key) in enumerate(zip(self.what[:last], self.keys_of[:last], strict=True)):
            parts = (what, *key) if several else key
            found.setdefault(parts[0] if len(parts) == 1 else parts, place)
        return found

    def __getitem__(self, key: Any) -> Any:
        if key in self._places:
            return self.at(self._places[key])
        if self.names and len(self._statistics) > 1 and key in self._statistics:
            return self.of(key)
        raise KeyError(key)

    def of(self, statistic: str) -> Estimates:
        """The numbers of one of several statistics."""
        chosen = [place for place, what in enumerate(self.what) if what == statistic]
        if not chosen:
            there = ", ".join(map(repr, self._statistics))
            raise InvalidValue(f"there is no statistic {statistic!r}: there are {there}")
        return self._rows(chosen, sum(place >= len(self.what) - self.total for place in chosen))

    def _rows(self, places: Sequence[int], total: int = 0) -> Estimates:
        """Some of the rows, of which the last are totals."""
        keys, what = tuple(self.keys_of[place] for place in places), tuple(self.what[place] for place in places)
        return Estimates(self.names, keys, what, _Chosen(self.at, [*places]), total)

    def without_errors(self, why: str) -> Estimates:
        """The same numbers, of whose errors nothing is claimed."""
        return replace(self, at=_WithoutError(self.at, why))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def all_together(self) -> Any:
        """The number of all groups together, if it was asked for: of several statistics, one for each that adds up."""
        if not self.total:
            raise InvalidValue("there is no total: ask with total=True, for statistics that add up")
        last = range(len(self.what) - self.total, len(self.what))
        if len(self._statistics) == 1:
            return self.at(last[0])
        return Estimates.named({self.what[place]: self.at(place) for place in last})

    @property
    def frame(self) -> Frame:
        """A row for each number: what it is, its key, its value, its interval and its error at 95 %."""
        numbers = [self.at(place) for place in range(len(self.keys_of))]
        rows = tuple(
            (what, *key, *cells_of(number)) for what, key, number in zip(self.what, self.keys_of, numbers, strict=True)
        )
        return Frame((WHAT, *key_columns(self.names), *NUMBERS), rows, self.total, _notes(numbers))

    def __eq__(self, other: object) -> bool:
        return dict(self) == dict(other) if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of dictionaries

    def __copy__(self) -> Estimates:
        return self

    def __deepcopy__(self, memo: Any) -> Estimates:
        return self  # numbers that were published do not change

    def __repr__(self) -> str:
        pairs = [f"{key!r}: {_brief(self[key])}" for key, _ in zip(self, range(MOST_SHOWN), strict=False)]
        return f"{{{', '.join(pairs)}{', …' if len(self) > len(pairs) else ''}}}"

    @property
    def _first(self) -> Frame:
        """The rows that people see: of many, only the first are computed."""
        return self.frame if len(self.keys_of) <= MOST_SHOWN else self._rows([*range(MOST_SHOWN)], False).frame

    def __str__(self) -> str:
        return self._first.text(len(self.keys_of))

    def _repr_html_(self) -> str:
        return self._first.html(len(self.keys_of))


def _brief(number: Any) -> str:
    """A number among others: why its error is not known stands below them all."""
    if isinstance(number, Estimate) and number.why:
        return f"{number.value}" if isinstance(number, int) else f"{number.value:.6g}"
    return repr(number)


@dataclass(frozen=True)
class _Known:
    """What is known of the numbers of an array: their noise, each with a draw of its own, and their keys."""

    origin: Hashable
    shape: tuple[int, ...]
    law: Callable[[], Term] | None
    bound: Callable[[Fraction], float] | None
    why: str
    how: Any
    what: str
    names: tuple[str, ...]
    keys: tuple[tuple[Any, ...], ...] | None

    @property
    def has_error(self) -> bool:
        return not self.why and (self.law is not None or self.bound is not None)

    def draw(self, place: int) -> Drawn:
        return Drawn((self.origin, place), self.bound, self.law)

    def one(self, value: Any, place: int) -> Any:
        if self.has_error:
            return Estimate.of(value, self.draw(place), how=self.how)
        return Estimate.unknown(value, self.why or "how far noise moved it is not known", self.how)

    def keys_at(self, places: NDArray[np.int64]) -> list[tuple[Any, ...]]:
        """The keys of the numbers that were at these places when they were published."""
        if self.keys is not None:
            return [self.keys[place] for place in places.tolist()]
        if not self.shape:
            return [()] * len(places)
        return list(zip(*(axis.tolist() for axis in np.unravel_index(places, self.shape)), strict=True))


class EstimateArray(np.ndarray[Any, np.dtype[Any]], AsFrame):
    """An array of published numbers, each of which is an :class:`~expost.Estimate` where it is looked up.

    It is an array for everything else: what numpy computes from it is a plain array. It cannot be written to, for a
    number that was put there would be given an error that it does not have; ``np.array(value)`` is a plain copy.
    Parts of it (slices, masks, lists of places) keep the noise of their places.

    >>> found = EstimateArray.of(np.array([7, 0, 2]), "entry 1", bound=lambda miss: 3)
    >>> found, found[0], found[0] - found[[0, 0]][1], found * 2
    (EstimateArray([7, 0, 2] ± 3), 7 ± 3, 0 ± 0, array([14,  0,  4]))
    """

    _known: _Known | None
    _at: NDArray[np.int64] | None

    @staticmethod
    def of(
        values: NDArray[Any],
        origin: Hashable,
        law: Callable[[], Term] | None = None,
        *,
        bound: Callable[[Fraction], float] | None = None,
        why: str = "",
        how: Any = None,
        what: str = "value",
        names: Sequence[str] | None = None,
        keys: Sequence[tuple[Any, ...]] | None = None,
    ) -> EstimateArray:
        """Numbers that noise was added to: independent noise of one ``law``, or some that is within a ``bound`` each.

        Of those with neither, ``why`` says the reason. ``names`` and ``keys`` are what their rows are called, in the
        order of the array; by default their places.
        """
        if names is None:
            names = ("place",) if values.ndim == 1 else tuple(f"place {axis}" for axis in range(values.ndim))
        listed = None if keys is None else tuple(keys)
        known = _Known(origin, values.shape, law, bound, why, how, what, tuple(names), listed)
        return _rebuilt(values, known, np.arange(values.size).reshape(values.shape))

    def __array_finalize__(self, made_from: Any) -> None:
        # What numpy makes of this array (a copy, a sorted one) has the noise of other places: it forgets it.
        self._known, self._at = None, None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*_plain(inputs), **_plain(kwargs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_plain(args), **_plain(kwargs))

    def __getitem__(self, where: Any) -> Any:
        found = np.asarray(self)[where]
        if self._known is None or self._at is None:
            return found
        places = self._at[where]
        if isinstance(found, np.ndarray):
            return _rebuilt(found, self._known, places)
        return self._known.one(found.item(), int(places))

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self)))

    @property
    def plain(self) -> NDArray[Any]:
        """The same numbers as an array of numpy's own."""
        return np.asarray(self)

    # ---- errors

    @property
    def error(self) -> float | None:
        """How far noise moved each number at most, by itself, with 95 % confidence; None where that is not known."""
        return self._known.draw(0).reach(1 - USUAL) if self._known is not None and self._known.has_error else None

    @property
    def why(self) -> str:
        """Why no error is known; empty where one is."""
        if self._known is None:
            return "it was computed from numbers with errors, which numpy does not carry along"
        return "" if self._known.has_error else str(self._known.one(0, 0).why)

    @property
    def how(self) -> Any:
        """How they were made, where there is more to say: such as the level at which noise was small enough."""
        return None if self._known is None else self._known.how

    def interval(self, confidence: Any = USUAL) -> tuple[NDArray[Any], NDArray[Any]]:
        """The lower and the upper ends that each number without noise lies between, by itself, with this confidence."""
        values, reach = np.asarray(self), self._reach(1 - as_confidence(confidence))
        if isinstance(reach, int) and values.dtype.kind in "iu" and reach < _LARGEST:
            return values - reach, values + reach
        low, high = values - float(reach), values + float(reach)
        return (np.nextafter(low, -np.inf), np.nextafter(high, np.inf)) if reach else (low, high)

    def together(self, confidence: Any = USUAL) -> float:
        """How far noise moved any of them at most, all at once, with this confidence."""
        draws = 1 if self._at is None else len(np.unique(self._at))
        return self._reach((1 - as_confidence(confidence)) / max(draws, 1))

    def _reach(self, miss: Fraction) -> float:
        if self._known is None or not self._known.has_error:
            raise InvalidValue(f"there is no interval for these numbers: {self.why}")
        return self._known.draw(0).reach(miss)

    def without_errors(self, why: str) -> EstimateArray:
        """The same numbers, of whose errors nothing is claimed."""
        return self if self._known is None else _rebuilt(self, replace(self._known, why=why), self._at)

    # ---- rows

    @property
    def frame(self) -> Frame:
        """A row for each number, with its place in the array that was published."""
        if self._known is None or self._at is None:
            return EstimateArray.of(np.array(self), None, why=self.why).frame
        known, places = self._known, self._at.ravel()
        values, ends = np.asarray(self).ravel().tolist(), [[None] * len(places)] * 2
        if known.has_error:
            ends = [end.ravel().tolist() for end in self.interval()]
        error = self.error
        rows = tuple(
            (known.what, *key, value, low, high, error)
            for key, value, low, high in zip(known.keys_at(places), values, *ends, strict=True)
        )
        names = (WHAT, *key_columns(known.names), *NUMBERS)
        return Frame(names, rows, notes=(self.why,) if rows and known.why else ())

    def __repr__(self) -> str:
        if self._known is None:
            return repr(np.asarray(self))
        text = np.array2string(np.asarray(self), separator=", ", threshold=MOST_SHOWN)
        return f"EstimateArray({text}{self._error_text})"

    def __str__(self) -> str:
        return f"{np.asarray(self)}{self._error_text}"

    @property
    def _error_text(self) -> str:
        return "" if self._known is None or not self._known.has_error else f" ± {self.error:.6g}"

    def _repr_html_(self) -> str:
        return self.frame._repr_html_()

    # ---- copies

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._known is None:
            return np.asarray(self).__reduce_ex__(protocol)
        return _rebuilt, (np.array(self), self._known, np.array(self._at))

    def __copy__(self) -> Any:
        return np.array(self) if self._known is None else self

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__copy__()  # what was published does not change


def _rebuilt(values: NDArray[Any], known: _Known, places: Any) -> EstimateArray:
    # Bytes: an array over an array of numpy's own could be made writable again.
    plain = np.frombuffer(values.tobytes(), values.dtype) if values.size else np.empty(0, values.dtype)
    made = plain.reshape(values.shape).view(EstimateArray)
    made.flags.writeable = False
    made._known, made._at = known, places
    return made


def _plain(each: Any) -> Any:
    """Arguments of numpy, with plain arrays in them."""
    if isinstance(each, EstimateArray):
        return np.asarray(each)
    if type(each) in (tuple, list):
        return type(each)(map(_plain, each))
    return {key: _plain(one) for key, one in each.items()} if type(each) is dict else each


def without_errors(answer: Any, why: str) -> Any:
    """What was published, of whose errors nothing is claimed; models and keys as they are."""
    if isinstance(answer, Estimate):
        return Estimate.unknown(answer.value, why, answer.how)
    return answer.without_errors(why) if isinstance(answer, Estimates | EstimateArray) else answer


# ---- frames of everything that is published

_SEVERAL = (np.ndarray, Mapping, tuple, list, AsFrame)
"""What has rows of its own."""


def frame_of(value: Any, mechanism: Any) -> Frame:
    """What was published as rows: numbers with what is known of their errors; masks, keys and models as they are.

    What was withheld is an empty cell.
    """
    own = value if isinstance(value, Frame) else getattr(value, "frame", None)
    if isinstance(own, Frame):
        return own
    if isinstance(value, dict):
        compared = _compared(value)
        if compared:
            key = _column_of(getattr(mechanism, "question", None), "key")
            return Frame((key, *_inner_names(mechanism, len(compared[0]) - 2), ABOVE), compared)
        return frame_by_key("key", value, mechanism)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return EstimateArray.of(value, None, what=_what(mechanism)).frame
    if hasattr(value, "_asdict"):
        return Estimates.named(value._asdict()).frame
    if isinstance(value, tuple | list | np.ndarray):
        return frame_by_key("place", dict(enumerate(value)), mechanism)
    return Frame((WHAT, *NUMBERS), ((_what(mechanism), *cells_of(value)),), notes=_notes([value]))


def _what(mechanism: Any) -> str:
    return "value" if mechanism is None else str(mechanism.what)


def frame_by_key(name: str, values: Mapping[Any, Any], mechanism: Any) -> Frame:
    """A row for each of several numbers; of what is more than a number, its own rows."""
    if any(isinstance(each, _SEVERAL) for each in values.values()):
        return frames_together(name, {key: frame_of(each, mechanism) for key, each in values.items()})
    return Estimates.by_key((name,), list(values), _what(mechanism), list(values.values()).__getitem__).frame


def frames_together(name: str, frames: Mapping[Any, Frame]) -> Frame:
    """The rows of several frames of one kind, with a column that says which they are from.

    A frame with fewer columns (what was withheld) has empty cells.
    """
    longest = max(frames.values(), key=lambda frame: len(frame.names), default=Frame((WHAT, *NUMBERS), ()))
    if longest.is_numbers:
        keys = longest.names[1:-4]
        rows = [
            (row[0], key, *_padded(row[1:-4], len(keys)), *row[-4:])
            for key, each in frames.items()
            for row in each.rows
        ]
        names: tuple[str, ...] = (WHAT, *key_columns((name, *keys)), *NUMBERS)
    else:
        rows = [
            (key, *_padded(row if each.names == longest.names else (), len(longest.names)))
            for key, each in frames.items()
            for row in each.rows
        ]
        names = (name, *longest.names)
    notes = dict.fromkeys(note for each in frames.values() for note in each.notes)
    return Frame(names, tuple(rows), notes=tuple(notes))


def _padded(cells: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    return (*cells, *(None,) * (size - len(cells)))


def _compared(value: dict[Any, Any]) -> tuple[tuple[Any, ...], ...]:
    """A row for each comparison of a dictionary, or of a dictionary of them for each group; none if it has others."""
    rows: list[tuple[Any, ...]] = []
    for key, each in value.items():
        inner = _compared(each) if isinstance(each, dict) else ((str(each),),) if isinstance(each, Comparison) else ()
        if not inner:
            return ()
        rows += [(key, *row) for row in inner]
    return tuple(rows)


def _inner_names(mechanism: Any, number: int) -> tuple[str, ...]:
    """What the cells of groups are called: by what was counted, unless groups are by that, too."""
    question = getattr(next(iter(getattr(mechanism, "mechanisms", ())), None), "question", None)
    outer, inner = _column_of(mechanism.question, "key"), _column_of(question, "cell")
    return (inner if inner != outer else f"{inner} (cell)",) * number


def _column_of(question: Any, otherwise: str) -> str:
    """What the column is called that a question counts by, or groups go by."""
    first = next(iter(getattr(question, "values", ())), getattr(question, "value", None))
    return str(getattr(first, "name", otherwise))
