"""Which columns say whom a row is about, by their names alone."""

from __future__ import annotations

import re

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PEOPLE = frozenset(
    _WORDS.findall(
        """
        person patient user customer client member subject participant respondent employee student household family
        passenger traveller traveler driver rider worker child mother father parent pupil teacher voter citizen
        resident inhabitant donor player applicant borrower tenant owner subscriber visitor guest account taxpayer
        claimant beneficiary volunteer soldier prisoner device
        """
    )
)
_ENDINGS = frozenset(("id", "ids", "no", "nr", "num", "number", "code", "key", "uuid", "guid", "identifier"))
_ALONE = frozenset(("id", "pid", "uid", "uuid", "guid", "hhid", "caseid", "ssn", "mrn", "seqn", "email", "imei"))


def names_somebody(column: str) -> bool:
    """Whether a name says that the column tells people apart: ``patient_id``, ``PassengerId``, ``customer no``."""
    words = who_of(column)
    return column.lower() in _ALONE or (bool(words) and words[-1] in _PEOPLE)


def who_of(column: str) -> tuple[str, ...]:
    """The words of a name in lower case, without an ending such as ``id``, and in the singular."""
    words = [word.lower() for word in _WORDS.findall(column)]
    while len(words) > 1 and words[-1] in _ENDINGS:
        words.pop()
    return (*words[:-1], _singular(words[-1])) if words else ()


def _singular(word: str) -> str:
    """``patients`` and ``patientid`` are ``patient``."""
    return next((word.removesuffix(ending) for ending in ("id", "s") if word.removesuffix(ending) in _PEOPLE), word)
