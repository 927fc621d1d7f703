"""What an OpenDP measurement is: its constructors and their arguments. How it prints says less, and not the noise."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import isfinite
from typing import Any

from expost.canonical import canonical, sha256
from expost.errors import InvalidValue

_MADE = "__opendp_dict__"
"""Where OpenDP notes how an object was made."""


def digest_of_measurement(measurement: Any, d_in: Any, name: str | None) -> str:
    """A fingerprint: equal only for the same constructors with the same arguments, distance and name.

    Each object is hashed once, for chains of them share their parts. What holds functions of Python needs a name, and
    then what can be written still counts.
    """
    writer = _Digests(name)
    content = {"opendp": writer.write(measurement), "d_in": writer.write(d_in), "name": name}
    shape = [str(item) for item in (*measurement.input_space, measurement.output_measure)]
    return sha256(canonical({**content, "shape": shape}))


def constructors_of(measurement: Any) -> Iterator[str]:
    """The names of the constructors that made what gives its output, as far as OpenDP noted them."""
    made = getattr(measurement, _MADE, None)
    if isinstance(made, dict):
        yield str(made.get("__function__"))
        arguments = made.get("__kwargs__", {})
        for argument in ("measurement1", "measurement"):  # what a chain or a conversion ends with
            if argument in arguments:
                yield from constructors_of(arguments[argument])


class _Digests:
    """Writes values as JSON, and objects of OpenDP as hashes of how they were made."""

    def __init__(self, name: str | None) -> None:
        self._name = name
        self._known: dict[int, Any] = {}

    def write(self, value: Any) -> Any:
        """A value as plain JSON values."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return {"float": str(Fraction(value)) if isfinite(value) else str(value)}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.write(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[self.write(key), self.write(item)] for key, item in value.items()]}
        made = getattr(value, _MADE, None)
        return self._made(value, made) if isinstance(made, dict) else self._unknown(value)

    def _made(self, value: Any, made: dict[str, Any]) -> Any:
        if id(value) not in self._known:
            parts = {str(part): self.write(item) for part, item in made.items()}
            self._known[id(value)] = {"made": sha256(canonical(parts))}
        return self._known[id(value)]

    def _unknown(self, value: Any) -> Any:
        if self._name is None:
            raise InvalidValue(
                f"this OpenDP measurement holds a {type(value).__name__}, which OpenDP cannot write down, so that no "
                "key can be used for it: give name='…' (a new name for a new meaning), or use no key"
            )
        return {"named": type(value).__name__}
