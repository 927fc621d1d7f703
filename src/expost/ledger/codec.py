"""Published outputs as canonical JSON: equal values give equal texts, and are read back exactly.

Plain values are written as they are; everything else is an object with one name that starts with ``$``. Floats are
written in hexadecimal, arrays as their bytes. Records (dataclasses and named tuples) are written with the durable name
of their class, and read back only if that is a record class in an imported module; missing fields, which the class
gained later, have their defaults.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import secrets
import sys
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from expost.canonical import canonical, sha256
from expost.cost import Cost
from expost.errors import InvalidValue, LedgerCorrupt, NotStorable
from expost.estimate import Estimate
from expost.estimates import EstimateArray
from expost.fingerprint import identify, ordered
from expost.guarantee import Guarantee
from expost.ledger.kept import Kept
from expost.names import class_name, find
from expost.text import text_of

if TYPE_CHECKING:
    from expost.accounting.tariff import Tariff


_NONCE = "nonce:"
"""How a sealed text begins: no JSON does."""
_SEAL = len(_NONCE) + 64 + 1


def encode(value: Any) -> str:
    """A published value as text. Raises ``NotStorable`` for types that cannot be read back."""
    return canonical(_write(value))


def kept(value: Any) -> str:
    """A value as text. Raises ``NotStorable`` unless reading it back gives a value with the same text."""
    text = encode(value)
    try:
        same = encode(decode(text)) == text
    except Exception:
        same = False
    if not same:
        raise NotStorable(
            f"a durable ledger cannot store this {_kind_of(value).__qualname__}, which could not be read back: "
            "publish numbers, texts, arrays"
        )
    return text


def _kind_of(value: Any) -> type:
    """What the type is of what was published."""
    return type(value.output if isinstance(value, Kept) else value)


def decode(text: str) -> Any:
    """The value that :func:`encode` wrote."""
    return _read(json.loads(text))


def sealed(text: str) -> str:
    """A text to be stored, with a new nonce before it. Its SHA-256 commits to the text and shows nothing of it.

    A published number is one of few: whoever had the hash of its bare text would try them all, in milliseconds.

    Proof: lem-commitment
    """
    return f"{_NONCE}{secrets.token_hex(32)} {text}"


def unsealed(stored: str) -> str:
    """The text that :func:`sealed` sealed. Raises ``LedgerCorrupt`` for any other."""
    if not stored.startswith(_NONCE):
        raise LedgerCorrupt(f"a stored output begins with {_NONCE!r}, and this one does not: it was changed by hand")
    return stored[_SEAL:]


# ---- writing and reading values


def _write(value: Any) -> Any:
    if isinstance(value, Estimate):
        value = value.value
    kind = type(value)
    if value is None or kind in (bool, str, int):
        return value
    if kind is list:
        return [_write(item) for item in value]
    writer = _WRITERS.get(kind)
    if writer is not None:
        name, write = writer
        return {name: write(value)}
    if isinstance(value, Enum):
        return {"$enum": [_class_name(kind), value.name]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [[field.name, _write(getattr(value, field.name))] for field in dataclasses.fields(value)]
        return {"$record": [_class_name(kind), fields]}
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        fields = [[name, _write(item)] for name, item in zip(kind._fields, value, strict=True)]
        return {"$record": [_class_name(kind), fields]}
    numpy = sys.modules.get("numpy")
    if isinstance(value, EstimateArray):
        value = value.plain
    if numpy is not None and isinstance(value, numpy.ndarray | numpy.generic):
        return _write_array(value, numpy)
    raise NotStorable(
        f"a durable ledger cannot store a value of type {kind.__qualname__}: publish numbers, texts, arrays"
    )


def _write_array(value: Any, numpy: Any) -> Any:
    array = numpy.asarray(value)
    if array.dtype.hasobject or type(value) not in (numpy.ndarray, array.dtype.type):
        raise NotStorable(f"a durable ledger cannot store an array of {array.dtype}: publish plain numbers")
    name = "$array" if isinstance(value, numpy.ndarray) else "$scalar"
    return {name: [numpy.lib.format.dtype_to_descr(array.dtype), list(array.shape), _base64(array.tobytes())]}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


_WRITERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    float: ("$float", lambda value: value.hex()),
    complex: ("$complex", lambda value: [value.real.hex(), value.imag.hex()]),
    bytes: ("$bytes", _base64),
    tuple: ("$tuple", lambda value: [_write(item) for item in value]),
    dict: ("$dict", lambda value: [[_write(key), _write(item)] for key, item in value.items()]),
    set: ("$set", lambda value: sorted((_write(item) for item in value), key=canonical)),
    frozenset: ("$frozenset", lambda value: sorted((_write(item) for item in value), key=canonical)),
    Fraction: ("$fraction", str),
    Decimal: ("$decimal", str),
    Cost: ("$cost", lambda value: [value.epsilon_units, value.delta_units]),
    Guarantee: ("$guarantee", lambda value: value.to_json()),
}


def _read(written: Any) -> Any:
    if isinstance(written, list):
        return [_read(item) for item in written]
    if not isinstance(written, dict):
        return written
    ((name, content),) = written.items()
    return _READERS[name](content)


def _read_array(content: Any) -> Any:
    import numpy as np

    descr, shape, data = content
    plain: Any = descr if isinstance(descr, str) else _tuples(descr)
    dtype = np.lib.format.descr_to_dtype(plain)
    return np.frombuffer(base64.b64decode(data), dtype=dtype).reshape(shape).copy()


def _tuples(descr: list[Any]) -> list[Any]:
    return [tuple(_tuples(part) if isinstance(part, list) and part and isinstance(part[0], list) else part
                  for part in field) for field in descr]  # fmt: skip


def _read_record(content: Any) -> Any:
    name, fields = content
    kind: Any = _class(name)
    values = {field: _read(item) for field, item in fields}
    if issubclass(kind, tuple):
        return kind(**values)
    record = kind.__new__(kind)
    for field, item in (_defaults(kind) | values).items():
        object.__setattr__(record, field, item)
    return record


def _defaults(kind: Any) -> dict[str, Any]:
    """The defaults of a class's fields, for fields that it gained after a value was written."""
    fields, missing = dataclasses.fields(kind), dataclasses.MISSING
    plain = {field.name: field.default for field in fields if field.default is not missing}
    return plain | {field.name: field.default_factory() for field in fields if field.default_factory is not missing}


_READERS: dict[str, Callable[[Any], Any]] = {
    "$float": float.fromhex,
    "$complex": lambda content: complex(*map(float.fromhex, content)),
    "$bytes": base64.b64decode,
    "$tuple": lambda content: tuple(_read(item) for item in content),
    "$dict": lambda content: {_read(key): _read(item) for key, item in content},
    "$set": lambda content: {_read(item) for item in content},
    "$frozenset": lambda content: frozenset(_read(item) for item in content),
    "$fraction": Fraction,
    "$decimal": Decimal,
    "$cost": lambda content: Cost.of_units(*content),
    "$guarantee": Guarantee.from_json,
    "$array": _read_array,
    "$scalar": lambda content: _read_array(content)[()],
    "$enum": lambda content: _class(content[0])[content[1]],
    "$record": _read_record,
}


def _class_name(kind: type) -> str:
    name = class_name(kind)
    if name is None or not _is_record(kind):
        raise NotStorable(
            f"a durable ledger cannot store a {kind.__qualname__}, whose class cannot be imported by name: define it "
            "at the top of a module"
        )
    return name


def _class(name: str) -> Any:
    """The record or enumeration class of a name; no other class is ever used."""
    found = find(name)
    if not _is_record(found):
        raise InvalidValue(f"the stored output is a {name}, which is not imported here: import its module first")
    return found


def _is_record(found: Any) -> bool:
    return isinstance(found, type) and (
        dataclasses.is_dataclass(found) or issubclass(found, Enum) or (issubclass(found, tuple) and found is not tuple)
    )


# ---- requests


class Described(NamedTuple):
    """A mechanism or guarantee as a ledger stores it: its text, its fingerprint, and the data that it refers to.

    Without a key there is nothing to compare, and so no fingerprint, with which guesses of parameters could be checked.
    """

    text: str
    fingerprint: str = ""
    data: tuple[Any, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return Described, (self.text, self.fingerprint)  # data is not pickled

    def __repr__(self) -> str:
        return self.text


def described(subject: Any, *, keyed: bool = False) -> Described:
    """A mechanism or guarantee as a ledger stores it. Raises ``InvalidValue`` if it has a key but no fingerprint."""
    if isinstance(subject, Described):
        return subject
    if isinstance(subject, Guarantee) and not keyed:
        return _described_guarantee(subject)
    text = text_of(subject)
    if not keyed:
        return Described(text)
    if isinstance(subject, Guarantee):
        return Described(text, guarantee_digest(subject))
    identity = identify(subject)
    return Described(text, identity.fingerprint, identity.data)


@lru_cache(256)
def _described_guarantee(guarantee: Guarantee) -> Described:
    return Described(text_of(guarantee))


@lru_cache(256)
def guarantee_text(guarantee: Guarantee | Tariff) -> str:
    """A guarantee as text, with its prices if it has any. Equal guarantees have equal texts."""
    if isinstance(guarantee, Guarantee):
        return canonical(ordered(guarantee))
    return canonical({**ordered(guarantee.guarantee), "prices": guarantee.to_json()})


@lru_cache(256)
def guarantee_digest(guarantee: Guarantee | Tariff) -> str:
    """The hash under which a guarantee is stored."""
    return sha256(guarantee_text(guarantee))


def read_guarantee(found: Any) -> Guarantee | Tariff:
    """The guarantee, with its prices if it has any, that :func:`guarantee_text` wrote."""
    guarantee = Guarantee.from_json(found)
    if "prices" not in found:
        return guarantee
    from expost.accounting.tariff import Tariff

    return Tariff.from_json(guarantee, found["prices"])
