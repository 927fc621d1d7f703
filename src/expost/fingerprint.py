"""Fingerprints: what a mechanism is, from its class and its parameters, the same in every process and version.

Fields of expost's own classes are left out at their defaults, so that a new field with a default changes no
fingerprint; of other people's classes, whose defaults may change, all fields are written. Numbers count by their value.

A public identity is a fingerprint for one more purpose: two questions that have the same are the same question about
the same data. So it says which data, by what was stated of it, and is refused wherever a name stands for code.
What cannot be identified from its contents (a lambda, a local function, a bound method, a partial, an object that
is not a record, anything defined in ``__main__``) needs a name: the mechanism's ``name=`` identifies it.
"""

from __future__ import annotations

import dataclasses
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache
from math import isfinite
from types import BuiltinMethodType, MappingProxyType, MemberDescriptorType
from typing import Any, NamedTuple, NoReturn

from expost.canonical import canonical, sha256
from expost.cost import Cost
from expost.errors import InvalidValue
from expost.guarantee import Guarantee
from expost.names import class_name, function_name

DATA: Mapping[str, bool] = MappingProxyType({"data": True})
"""The metadata of a dataclass's field that is the data, or a way to it: no part of what a mechanism is."""
_ABSENT = object()


class MechanismIdentity(NamedTuple):
    """What a mechanism is, as plain JSON values; and the data that its parameters lead to."""

    content: Any
    data: tuple[Any, ...]

    @property
    def fingerprint(self) -> str:
        """The hash of the content; a mechanism's own fingerprint, if it defines one."""
        own = self.content.get("$fingerprint") if isinstance(self.content, dict) else None
        return sha256(canonical(self.content)) if own is None else str(own)


def identify(mechanism: Any) -> MechanismIdentity:
    """What a mechanism is. Raises ``InvalidValue`` for one that cannot be identified and has no name."""
    writer = _Writer(type(mechanism).__qualname__)
    try:
        content = writer.write(mechanism, "itself")
        canonical(content)
    except RecursionError:
        _refuse(writer.whose, "holds itself, or too much")
    except _Unset as unset:
        _refuse(writer.whose, f"has a field that was never set ({unset})")
    except ValueError as error:
        if isinstance(error, InvalidValue):
            raise
        _refuse(writer.whose, "holds a number with too many digits")
    return MechanismIdentity(content, tuple(writer.data))


class DataFacts(NamedTuple):
    """What is public of the data that a question is about: the ``_public_facts`` of a class.

    Attributes
    ----------
    facts
        All that decides what the data is and how it is read, in public words. Never anything made from its contents.
    named
        Whether they say which data it is: its name and its version were stated.
    rows
        What has the rows, if nothing in the facts says where they are: another object is other data.
    """

    facts: Mapping[str, Any]
    named: bool
    rows: Any = None


class PublicIdentity(NamedTuple):
    """What is asked of which data, by public words alone.

    Attributes
    ----------
    digest
        Equal for equal settings about data of equal facts.
    named
        Whether the data was named: then equal digests mean the same question.
    rows
        What has the rows, of data that says nowhere where they are.
    """

    digest: str
    named: bool
    rows: tuple[Any, ...]


def public_identity(asked: Any) -> PublicIdentity | None:
    """The public identity of a question, or of its mechanism. None if words do not tell what it is.

    That is so if it is about no data that has public facts, or also about other data; and if it holds a function or an
    object of somebody else's class: its name would stay the same when its code changes.
    """
    writer = _PublicWriter(type(asked).__qualname__)
    try:
        digest = sha256(canonical({"$asked": writer.write(asked, "itself")}))
    except (RecursionError, ValueError, _Unset):
        return None
    if not writer.about or writer.data:
        return None
    rows = tuple(each.rows for each in writer.about if each.rows is not None)
    return PublicIdentity(digest, all(each.named for each in writer.about), rows)


class _Unset(Exception):
    """A record has no value for one of its fields."""


class _Writer:
    """Writes one mechanism. ``named`` while it is inside one that has a name."""

    def __init__(self, whose: str) -> None:
        self.whose = whose
        self.named = False
        self.data: list[Any] = []

    def write(self, value: Any, where: str) -> Any:
        """A value as plain JSON values; ``where`` is the parameter that it is in."""
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind in (int, float, Fraction, Decimal):
            return _number(value)
        if kind in (list, tuple):
            return [self.write(item, where) for item in value]
        writer = _WRITERS.get(kind)
        if writer is not None:
            return writer(value)
        return self._compound(value, where)

    def _compound(self, value: Any, where: str) -> Any:
        kind: type = type(value)
        if isinstance(value, Enum):
            member = self.write(value.value, where) if value.name is None else value.name  # flags that have no name
            return {"$enum": [self._class(kind, where), member]}
        if _says_itself(kind):
            return {"$fingerprint": _checked(value.fingerprint)}
        if callable(value) and not hasattr(kind, "part_of"):  # it may carry anything with it, as a bound method does
            return self._other(value, where)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._record(value, where, _fields(value))
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return self._record(value, where, _named_fields(value))
        if hasattr(kind, "part_of") and hasattr(value, "__dict__"):
            return self._record(value, where, iter(()))
        if kind in (dict, MappingProxyType):
            pairs = ([self.write(key, where), self.write(item, where)] for key, item in value.items())
            return {"$dict": sorted(pairs, key=canonical)}
        if kind in (set, frozenset):
            return {"$set": sorted((self.write(item, where) for item in value), key=canonical)}
        return self._other(value, where)

    def _other(self, value: Any, where: str) -> Any:
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic) and value.dtype.kind not in "OVMm":
            return self.write(value.item(), where)
        if numpy is not None and _is_array(value, numpy) and not value.dtype.hasobject:
            described = numpy.lib.format.dtype_to_descr(value.dtype)
            return {"$array": [str(described), list(value.shape), b64encode(value.tobytes()).decode()]}
        name = class_name(value) if isinstance(value, type) else function_name(value)
        if name is not None and not _passing(name):
            return {"$name": name}
        return self._nameless(where, f"holds {_a(value)} in {where!r}")

    def _record(self, value: Any, where: str, fields: Iterator[tuple[str, Any, Any]]) -> Any:
        outer, self.named = self.named, self.named or _has_name(value)
        try:
            kind: type = type(value)
            name = self._class(kind, where)
            hidden = _holds_unseen(kind)
            if hidden is not None:
                self._nameless(where, f"holds what a {hidden} holds, besides its attributes")
            content = self._fields(fields, elided=_ours(name)) | self._unlisted(value, where)
            if _has_name(value):
                content["name"] = value.name
            self.data += _data(value)
            return {"$record": [name, content]}
        finally:
            self.named = outer

    def _fields(self, fields: Iterator[tuple[str, Any, Any]], *, elided: bool) -> dict[str, Any]:
        content = {}
        for name, given, default in fields:
            if elided and given is default:
                continue
            written = self.write(given, name)
            if not elided or default is _ABSENT or canonical(written) != canonical(self._default(default, name)):
                content[name] = written
        return content

    def _unlisted(self, value: Any, where: str) -> dict[str, Any]:
        """Attributes that are not fields. Only a name allows them, and those that can be written still count."""
        unlisted = _unlisted(value)
        if unlisted or _settable(type(value)):
            names = ", ".join((*unlisted, *_settable(type(value))))
            self._nameless(where, f"has attributes that are not fields: {names}")
        return {name: self.write(held, name) for name, held in unlisted.items()}

    def _default(self, default: Any, where: str) -> Any:
        try:
            return self.write(default, where)
        except InvalidValue:
            return {"$default": None}  # what nothing else is written as

    def _class(self, kind: type, where: str) -> str:
        name = class_name(kind)
        if name is None or _passing(name):
            held = "" if where == "itself" else f"holds a {kind.__qualname__} in {where!r}, which "
            self._nameless(where, f"{held}is defined in __main__ or inside a function")
            return f"?:{kind.__qualname__}"
        return name

    def _nameless(self, where: str, why: str) -> Any:
        if not self.named:
            _refuse(self.whose, why)
        return {"$named": where}


class _PublicWriter(_Writer):
    """Writes public words only, and gathers which data they are about."""

    def __init__(self, whose: str) -> None:
        super().__init__(whose)
        self.about: list[DataFacts] = []

    def write(self, value: Any, where: str) -> Any:
        """Floats by what they are: 0.1 may be read as a tenth, which the fraction of the same value is not."""
        if type(value) is float and not (value.is_integer() and abs(value) < 2**53 and value.hex() != "-0x0.0p+0"):
            return {"$float": value.hex()}
        return super().write(value, where)

    def _nameless(self, where: str, why: str) -> Any:
        """A mechanism's own name is no help: it does not change when its code does."""
        _refuse(self.whose, why)

    def _compound(self, value: Any, where: str) -> Any:
        kind: type = type(value)
        if kind.__module__.partition(".")[0] not in _PLAIN or callable(value) or _says_itself(kind):
            _refuse(self.whose, f"holds {_a(value)} in {where!r}")
        if not hasattr(kind, "_public_facts"):
            return super()._compound(value, where)
        about: DataFacts = value._public_facts
        self.about.append(about)
        facts = {name: self.write(each, name) for name, each in about.facts.items()}
        return {"$data": [self._class(kind, where), facts]}


_PLAIN = frozenset({"expost", "builtins", "numpy", "types"})
"""Whose classes mean the same tomorrow."""


def ordered(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as plain JSON values, its parts in a fixed order: equal guarantees, equal values."""
    written = guarantee.to_json()
    return {**written, "parts": sorted(written["parts"], key=canonical)}


def _refuse(whose: str, why: str) -> NoReturn:
    raise InvalidValue(
        f"{whose} {why}, so it cannot be identified, and no key can be used for it: "
        "give the mechanism name='…' (a new name for a new meaning), or use no key"
    )


def _passing(name: str) -> bool:
    """Whether it is a name of the program that runs now: tomorrow, or when a cell is run again, it is another thing."""
    return name.startswith(("__main__:", "__mp_main__:"))


def _number(value: int | float | Fraction | Decimal) -> Any:
    """A number by its value: 1, 1.0 and Fraction(1) are one number."""
    if isinstance(value, int):
        return value
    finite = value.is_finite() if isinstance(value, Decimal) else isinstance(value, Fraction) or isfinite(value)
    if not finite:
        return {"$number": str(value).lower()}
    exact = Fraction(value)
    return exact.numerator if exact.denominator == 1 else {"$number": str(exact)}


def _is_array(value: Any, numpy: Any) -> bool:
    """An array, or a numpy value that is not a plain one: it has a unit, or fields."""
    return type(value) in (numpy.ndarray, numpy.void, numpy.datetime64, numpy.timedelta64)


def _checked(fingerprint: Any) -> str:
    if not isinstance(fingerprint, str) or not 0 < len(fingerprint) <= 500 or not fingerprint.isprintable():
        raise InvalidValue(
            f"a fingerprint is a text of 1 to 500 printable characters, got a {type(fingerprint).__name__}"
        )
    return fingerprint


@lru_cache(1024)
def _says_itself(kind: type) -> bool:
    """Whether it is a class of mechanisms that has a ``fingerprint`` of its own."""
    written = next((base for base in kind.__mro__ if "fingerprint" in vars(base)), None)
    return hasattr(kind, "part_of") and written is not None and written.__module__ != "expost.mechanism"


def _ours(name: str) -> bool:
    """Whether it is a class of this package, whose defaults never change."""
    return name.startswith(("expost:", "expost."))


def _has_name(value: Any) -> bool:
    """Whether it is a mechanism that was given a name, which identifies what cannot be written."""
    name = getattr(value, "name", None) if hasattr(type(value), "part_of") else None
    return isinstance(name, str) and bool(name) and ("name" in _listed(value) or "name" in _held(value))


def _listed(value: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()


def _held(value: Any) -> dict[str, Any]:
    """All attributes that the object itself has, in its dictionary or in slots."""
    kind: type = type(value)
    slots = {name: slot.__get__(value) for name, slot in _slots(kind).items() if _is_set(slot, value)}
    return slots | getattr(value, "__dict__", {})


@lru_cache(1024)
def _slots(kind: type) -> dict[str, Any]:
    found = (item for base in reversed(kind.__mro__) for item in vars(base).items())
    return {name: slot for name, slot in found if isinstance(slot, MemberDescriptorType)}


def _is_set(slot: Any, value: Any) -> bool:
    try:
        slot.__get__(value)
    except AttributeError:
        return False
    return True


@lru_cache(1024)
def _holds_unseen(kind: type) -> str | None:
    """A class above it that is not written in Python and makes its own objects: what those hold is not an attribute."""
    named_tuple = tuple if hasattr(kind, "_fields") else object
    found = (base for base in kind.__mro__ if base not in (object, named_tuple))
    return next((base.__name__ for base in found if isinstance(vars(base).get("__new__"), BuiltinMethodType)), None)


def _fields(value: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, value and default of each field that decides what a record is."""
    for field in dataclasses.fields(value):
        if field.compare and not field.metadata.get("data"):
            if not hasattr(value, field.name):
                raise _Unset(field.name)
            default = _ABSENT if field.default is dataclasses.MISSING else field.default
            yield field.name, getattr(value, field.name), default


def _named_fields(value: Any) -> Iterator[tuple[str, Any, Any]]:
    defaults = type(value)._field_defaults
    return ((name, item, defaults.get(name, _ABSENT)) for name, item in zip(value._fields, value, strict=True))


def _data(value: Any) -> list[Any]:
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    return [getattr(value, field.name, None) for field in fields if field.metadata.get("data")]


def _unlisted(value: Any) -> dict[str, Any]:
    """Attributes that are neither fields nor computed from them."""
    kind: type = type(value)
    known = _listed(value) | _cached(kind).keys() | ({"name"} if _has_name(value) else set())
    return {name: held for name, held in _held(value).items() if name not in known}


def _settable(kind: type) -> list[str]:
    """Cached properties of other people's classes that are not frozen: something else may have been put there."""
    frozen = dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    owners = {} if frozen else _cached(kind)
    return [name for name, owner in owners.items() if owner.__module__.partition(".")[0] != "expost"]


@lru_cache(1024)
def _cached(kind: type) -> dict[str, type]:
    """The cached properties of a class, and where they are defined."""
    found = ((name, base) for base in reversed(kind.__mro__) for name in vars(base))
    return {name: base for name, base in found if isinstance(vars(base)[name], cached_property)}


def _a(value: Any) -> str:
    """What cannot be written, in words."""
    kind = type(value)
    words = {"function": "a function that no module has under its name", "method": "a bound method"}
    if kind.__name__ in words:
        return words[kind.__name__]
    return f"a {kind.__name__}"


_WRITERS: dict[type, Callable[[Any], Any]] = {
    complex: lambda value: {"$complex": [value.real.hex(), value.imag.hex()]},
    bytes: lambda value: {"$bytes": b64encode(value).decode()},
    date: lambda value: {"$date": value.isoformat()},
    datetime: lambda value: {"$datetime": value.isoformat()},
    time: lambda value: {"$time": value.isoformat()},
    timedelta: lambda value: {"$timedelta": [value.days, value.seconds, value.microseconds]},
    range: lambda value: {"$range": [value.start, value.stop, value.step]},
    Cost: lambda value: {"$cost": [value.epsilon_units, value.delta_units]},
    Guarantee: lambda value: {"$guarantee": ordered(value)},
}


def writes_as(kind: type, plain: Callable[[Any], int | float]) -> None:
    """Values of a class are identified as a plain number: what else they know is no part of what they are."""
    _WRITERS[kind] = lambda value: _number(plain(value))
