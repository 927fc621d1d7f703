"""Texts that durable ledgers store or show."""

from __future__ import annotations

import json
import re
from typing import Any

from expost.errors import InvalidValue
from expost.ledger.entry import Note

LONGEST = 500
"""The most characters of a name or a key, which every database can index."""


def check_text(text: str, what: str, longest: int = 10_000) -> None:
    """Raise for a text that not every database can store."""
    if len(text) > longest:
        raise InvalidValue(f"{what} must have at most {longest} characters, got {len(text)}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"{what} must be valid UTF-8, got {text!r}") from None
    if "\0" in text:
        raise InvalidValue(f"{what} must not contain NUL characters, got {text!r}")


def checked_note(note: Note) -> Note:
    """The note, checked to be storable in every database."""
    check_text(note.by, "by")
    check_text(note.reason, "a reason")
    return note


def masked(url: Any) -> Any:
    """An address without its password, for messages."""
    return re.sub(r"(://[^:/@]*):.*@|(password=)[^&\s]*", r"\1\2…@", url) if isinstance(url, str) else url


def described_owner(identity: str | None) -> str:
    """A process, as shown to people."""
    if identity is None:
        return "lease"
    try:
        who = json.loads(identity)
        return f"process {who['pid']} on {str(who['machine'])[:8]}"
    except (ValueError, TypeError, KeyError):
        return "unknown"
