"""What units of privacy are called, and when two names mean the same unit.

A name is a word, such as ``patient``, ``patient_id`` or ``row``; or it is in full: ``patient (column pid)`` for the
rows with one value of a column, ``visit (one row each)`` for rows. Caps on rows and groups are no part of it: they
decide how much noise there is, not whose privacy is protected.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ROW = "row"  # whatever it is about
_EACH = " (one row each)"
_FULL = re.compile(r"(.+) \(column (.+)\)", re.DOTALL)
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\da-zA-Z_]+")
PEOPLE = frozenset(
    _WORDS.findall(
        """
        person patient user customer client member subject participant respondent employee student household family
        passenger traveller traveler driver rider worker child mother father parent pupil teacher voter citizen
        resident inhabitant donor player applicant borrower tenant owner subscriber visitor guest account taxpayer
        claimant beneficiary volunteer soldier prisoner device
        """
    )
)
"""Words for those whom rows are about."""
_ENDINGS = frozenset(("id", "ids", "no", "nr", "num", "number", "code", "key", "uuid", "guid", "identifier"))


class _Named(NamedTuple):
    """A name, taken apart."""

    is_row: bool
    names: tuple[tuple[str, ...], ...]
    """What it goes by, each in words: who it is, and the column, if that is said apart; of a plain row, nothing."""
    is_full: bool


def in_full(column: str | None, name: str | None = None) -> str:
    """What books call a unit: the word for it, with the column or the row if the word alone would not say that.

    >>> in_full("patient_id"), in_full("pid", "patient"), in_full(None), in_full(None, "visit")
    ('patient_id', 'patient (column pid)', 'row', 'visit (one row each)')
    """
    if column is None:
        return _ROW if name is None else f"{name}{_EACH}"
    found = _parsed(column)
    if name is None and not found.is_row and not found.is_full:
        return column
    return f"{name or column} (column {column})"


def row_name(unit: str) -> str | None:
    """Whom ``visit (one row each)`` says that a row is about; None if it is another name."""
    return unit.removesuffix(_EACH) if unit.endswith(_EACH) and unit != _EACH else None


def in_a_word(unit: str) -> str:
    """Who one unit is, without the column or the row.

    >>> in_a_word("patient (column pid)"), in_a_word("patient")
    ('patient', 'patient')
    """
    found = _FULL.fullmatch(unit)
    return row_name(unit) or (unit if found is None else found[1])


def is_row(unit: str) -> bool:
    """Whether a name is that of a row: a person may have any number of them."""
    return _parsed(unit).is_row


def same_unit(books: str, asked: str) -> bool:
    """Whether a question's unit is that of the books.

    Columns are compared by their names, or by the name that they were given: ``patient``, ``patients``, ``PatientID``
    and ``patient (column pid)`` are the same. A row is not the person it is about, whatever both are called. Books
    about rows of any kind take all of them, and books about visits only rows that are said to be visits.

    >>> same_unit("patient", "patient_id"), same_unit("patient", "row"), same_unit("patient", "patient (one row each)")
    (True, False, False)
    """
    theirs, ours = _parsed(books), _parsed(asked)
    if theirs.is_row or ours.is_row:
        return theirs.is_row and ours.is_row and theirs.names in ((), ours.names)
    if theirs.is_full and ours.is_full:  # what two columns were called decides, whatever their own names are
        return theirs.names[0] == ours.names[0]
    return not set(theirs.names).isdisjoint(ours.names)


def who_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case, without an ending such as ``id``, and in the singular."""
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 1 and words[-1] in _ENDINGS:
        words.pop()
    return (*words[:-1], _singular(words[-1])) if words else ()


def _singular(word: str) -> str:
    """``patients`` and ``patientid`` are ``patient``."""
    return next((word.removesuffix(ending) for ending in ("id", "s") if word.removesuffix(ending) in PEOPLE), word)


def _parsed(unit: str) -> _Named:
    each, full = row_name(unit), _FULL.fullmatch(unit)
    if each is not None:
        return _Named(True, (_words(each),), True)
    if full is not None:
        return _Named(False, tuple(map(_words, full.groups())), True)
    words = _words(unit)
    return _Named(True, (), False) if words == (_ROW,) else _Named(False, (words,), False)


def _words(name: str) -> tuple[str, ...]:
    return who_of(name) or (name,)
