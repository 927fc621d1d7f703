"""What ``d_in`` means in the metrics of OpenDP: who is protected, and which distances protect nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import inf
from numbers import Real
from typing import Any

from expost.errors import InvalidValue
from expost.guarantee import Neighbours
from expost.mentions import brief

_RELATIONS: dict[str, Neighbours] = {
    "SymmetricDistance": "add-remove",
    "InsertDeleteDistance": "add-remove",
    "SymmetricIdDistance": "add-remove",
    "ChangeOneDistance": "substitute",
    "HammingDistance": "substitute",
    "ChangeOneIdDistance": "substitute",
}
"""Metrics on databases. ``d_in`` is then the number of records that one person may have."""
_SENSITIVITIES = (
    *("AbsoluteDistance", "L1Distance", "L2Distance", "LInfDistance"),
    *("L01InfDistance", "L02InfDistance", "DiscreteDistance"),
)
"""Metrics on values: ``d_in`` is a sensitivity, for whichever relation it was computed for."""
_WHOLE = re.compile(r"\b([iu](8|16|32|64|128|size)|bool)\W*$")
"""How the types of whole numbers end, alone or in a vector or a map."""


def check_distance(measurement: Any, d_in: Any) -> None:
    """Raise if a distance is one within which no two different databases lie: its guarantee would be about nobody.

    What else OpenDP does not take as a distance is left to its own check.
    """
    least = 1 if _counted(measurement) else 0
    for number in _numbers(d_in):
        if not 0 <= number < inf:
            raise InvalidValue(f"d_in is a distance: finite numbers above 0, got {brief(d_in)}")
        if number == 0:
            raise protects_nobody(d_in, "only a database and itself are that close")
        if number < least:
            raise protects_nobody(d_in, "different whole numbers are at least 1 apart")


def protects_nobody(d_in: Any, reason: str) -> InvalidValue:
    """The error about a distance that is none."""
    return InvalidValue(
        f"d_in {brief(d_in)} protects nobody: {reason}. Say how many records one person may have, or how far they move "
        "the value"
    )


def relation_of(measurement: Any, d_in: Any, wanted: Neighbours | None) -> Neighbours | None:
    """The relation of a guarantee at this distance in a metric; ``wanted`` where the metric leaves it open.

    >>> import opendp.prelude as dp
    >>> sums = [
    ...     (dp.vector_domain(dp.atom_domain(bounds=(0, 9)), size=size), dp.symmetric_distance()) >> dp.t.then_sum()
    ...     for size in (None, 5)
    ... ]
    >>> relation_of(sums[0], 1, None), relation_of(sums[0], 2, "substitute"), relation_of(sums[1], 2, None)
    ('add-remove', 'substitute', 'substitute')
    """
    metric = _metric(measurement)
    name = _plain_name(metric.type)
    own = _RELATIONS.get(name)
    if own is None:
        if name not in _SENSITIVITIES and wanted is None:
            raise InvalidValue(f"the metric {metric} is not known here: say which relation it is by neighbours=")
        return wanted
    even = isinstance(d_in, int) and d_in % 2 == 0
    if own == "add-remove" and getattr(measurement.input_domain, "size", None) is not None:
        if not even:
            raise InvalidValue(
                f"d_in {brief(d_in)} in {metric} where the number of records is public: neighbours have as many, so "
                "that they are an even number apart; one exchanged record is d_in=2"
            )
        own = "substitute"
    exchanged = own == "add-remove" and wanted == "substitute" and even
    if wanted is not None and wanted != own and not exchanged:
        raise InvalidValue(
            f"the metric {metric} is about {own!r} neighbours at d_in {brief(d_in)}, not {wanted!r}: an exchanged "
            "record is two apart in symmetric distance"
        )
    return wanted or own


def _counted(measurement: Any) -> bool:
    """Whether distances are of records or of whole numbers, so that the least one is 1."""
    return _plain_name(_metric(measurement).type) in _RELATIONS or bool(
        _WHOLE.search(str(measurement.input_carrier_type))
    )


def _metric(measurement: Any) -> Any:
    """The input metric; of a frame, that of its records."""
    metric = measurement.input_metric
    while str(metric.type).startswith("FrameDistance"):
        metric = metric.inner_metric
    return metric


def _numbers(d_in: Any) -> Iterator[Any]:
    """All numbers in a distance: of a tuple, of a list, and of the bounds of a frame."""
    if isinstance(d_in, Real):
        yield d_in
    elif isinstance(d_in, tuple | list):
        for each in d_in:
            yield from _numbers(each)
    else:
        bounds = (getattr(d_in, name, None) for name in ("per_group", "num_groups"))
        yield from (each for each in bounds if isinstance(each, Real))


def _plain_name(kind: Any) -> str:
    return str(kind).partition("<")[0].rpartition("::")[2]
