"""Made-up data to try things on: :func:`example`."""

from __future__ import annotations

from pathlib import Path

from expost.errors import InvalidValue
from expost.mentions import brief

_HERE = Path(__file__).parent


def example(name: str) -> Path:
    """The path of made-up data that comes with expost: a Parquet file, for :func:`expost.read` or a data frame.

    ``"visits"``: 20,000 visits of 8,000 patients to a hospital that does not exist, messy as real data is. A row is a
    visit, with ``patient`` (text), ``visited`` (a date), ``ward`` (``A``, ``B``, ``C`` or ``ICU``), ``age``, ``days``
    (of the stay), ``cost`` (some are missing, a few are very large) and ``diagnosis``. Patients come up to 40 times.

    On the command line: ``expost example visits -o visits.csv``.

    >>> example("visits").name
    'visits.parquet'
    """
    found = {path.stem: path for path in sorted(_HERE.glob("*.parquet"))}
    if name not in found:
        raise InvalidValue(f"there is no example {brief(name)}: there is {', '.join(map(repr, found))}")
    return found[name]
