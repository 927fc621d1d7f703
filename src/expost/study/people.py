"""What columns are about, by their names alone."""

from __future__ import annotations

import re

from expost.unit_names import PEOPLE, who_of

_ALONE = frozenset(("id", "pid", "uid", "uuid", "guid", "hhid", "caseid", "ssn", "mrn", "seqn", "email", "imei"))
_CODES = _ALONE | frozenset(
    ("ids", "no", "nr", "num", "number", "code", "key", "identifier", "index", "zip", "zipcode", "postcode", "plz",
     "phone", "fax", "year", "month", "isbn", "iban")
)  # fmt: skip
_FREE = frozenset(
    ("name", "surname", "firstname", "lastname", "username", "mail", "address", "street", "comment", "comments", "note",
     "notes", "remark", "remarks", "text", "description", "message", "url", "link", "ip", "filename", "path")
)  # fmt: skip


def names_somebody(column: str) -> bool:
    """Whether a name says that the column tells people apart: ``patient_id``, ``PassengerId``, ``customer no``."""
    words = who_of(column)
    return column.lower() in _ALONE or (bool(words) and words[-1] in PEOPLE)


def is_code(column: str) -> bool:
    """Whether a name says that a column's numbers are no amounts: ``flight_no``, ``zip``."""
    return _last_word(column) in _CODES


def is_free_text(column: str) -> bool:
    """Whether a name says that a column's texts are hardly ever the same: ``last name``, ``comment``."""
    return _last_word(column) in _FREE | _CODES


def _last_word(column: str) -> str:
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", column)
    return words[-1].lower() if words else ""
