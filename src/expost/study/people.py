"""Which columns say whom a row is about, by their names alone."""

from __future__ import annotations

from expost.unit_names import PEOPLE, who_of

_ALONE = frozenset(("id", "pid", "uid", "uuid", "guid", "hhid", "caseid", "ssn", "mrn", "seqn", "email", "imei"))


def names_somebody(column: str) -> bool:
    """Whether a name says that the column tells people apart: ``patient_id``, ``PassengerId``, ``customer no``."""
    words = who_of(column)
    return column.lower() in _ALONE or (bool(words) and words[-1] in PEOPLE)
