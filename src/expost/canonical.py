"""Canonical JSON: equal values, equal text; and its hash."""

from __future__ import annotations

import hashlib
import json
from typing import Any

_text = json.encoder.encode_basestring_ascii
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Any) -> str:
    """Plain JSON values as text: names sorted, no spaces, ASCII."""
    if value is None:
        return "null"
    return _text(value) if type(value) is str else _ENCODER.encode(value)


def sha256(text: str) -> str:
    """The hash of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()
