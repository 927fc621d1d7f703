"""CSV files that are not UTF-8: read through a converted copy, private to this user, removed when the process ends."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from functools import cache
from pathlib import Path

from expost.errors import InvalidValue
from expost.mentions import brief

ENCODINGS = ("utf-8", "latin-1", "cp1252", "cp1250", "iso-8859-2", "iso-8859-15", "mac-roman", "utf-16")
"""Encodings in which no byte makes reading fail: what cannot be decoded becomes a replacement character."""
_CHUNK = 2**20


def check_encoding(encoding: object) -> None:
    """Raise for encodings not in ``ENCODINGS``."""
    if encoding is not None and encoding not in ENCODINGS:
        raise InvalidValue(
            f"encoding is the encoding of a CSV file, one of {', '.join(ENCODINGS)}; got {brief(encoding)}"
        )


def as_utf8(file: str, encoding: str | None) -> str:
    """The path of the file in UTF-8: itself, or a copy."""
    if encoding in (None, "utf-8"):
        return file
    assert encoding is not None
    handle, copy = tempfile.mkstemp(suffix=".csv", dir=_folder().name)
    opened = gzip.open if file.lower().endswith(".gz") else open
    try:
        with (
            opened(file, "rt", encoding=encoding, errors="replace", newline="") as source,
            os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as target,
        ):
            while chunk := source.read(_CHUNK):
                target.write(chunk)
    except UnicodeError:
        raise InvalidValue(
            f"{file} does not begin as {encoding} files do, with a byte-order mark: save it as UTF-8"
        ) from None
    except (EOFError, zlib.error):
        raise InvalidValue(f"{file} cannot be unpacked: is it complete?") from None
    except OSError:
        raise InvalidValue(f"{file} cannot be read: is the path right?") from None
    return str(Path(copy))


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder, removed when the process ends."""
    return tempfile.TemporaryDirectory(prefix="expost-")
