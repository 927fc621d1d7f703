"""Bytes as text, by one rule for CSV files, frames and databases: every byte has a place, and nothing is lost.

A byte that is not text is read as a question mark. Two people whose names differ in such bytes only are two people all
the same. So it is first *marked*: it becomes a character of a range that no text uses, another one for each byte. Units
are compared by their marked names; in expressions and answers each mark is a question mark.

Proof: lem-marked-text
"""

from __future__ import annotations

import codecs
import re

from expost.errors import InvalidValue
from expost.mentions import brief

ENCODINGS = ("utf-8", "latin-1", "cp1252", "cp1250", "iso-8859-2", "iso-8859-15", "mac-roman", "utf-16")
"""The encodings of CSV files: in none of them a byte makes reading fail, or changes how another line is read."""
MARKS = ("\U0010f700", "\U0010ffff")
"""The first and the last mark: the end of Unicode's last private area."""
FIRST_BYTES = MARKS[0].encode()[:2]
"""In UTF-8, all marks begin with these two bytes."""
_SURROGATES, _WRITTEN = 0x10F700 - 0xD800, 0x10FF00
"""Where the marks of bytes (and halves of surrogate pairs) begin, and those for characters that look like marks."""
_ODD = re.compile(f"[\ud800-\udfff{MARKS[0]}-{MARKS[1]}]")
_AS_SURROGATES = "expost-surrogates"


def check_encoding(encoding: object) -> None:
    """Raise for encodings not in ``ENCODINGS``."""
    if encoding is not None and encoding not in ENCODINGS:
        raise InvalidValue(
            f"encoding is the encoding of a CSV file, one of {', '.join(ENCODINGS)}; got {brief(encoding)}"
        )


def decoder_of(encoding: str | None) -> codecs.IncrementalDecoder:
    """A decoder of a file, without its byte-order mark, to be followed by :func:`marked`."""
    codec = "utf-8-sig" if encoding in (None, "utf-8") else str(encoding)
    return codecs.getincrementaldecoder(codec)(_AS_SURROGATES if encoding == "utf-16" else "surrogateescape")


def as_text(data: bytes, codec: str = "utf-8") -> str:
    """Bytes as marked text.

    Some encodings write one character in several ways. Bytes that are not the usual one are all marked, so that
    different bytes stay different texts.
    """
    if codec == "utf-8":
        return marked(data.decode(codec, "surrogateescape"))
    text = data.decode(codec, _AS_SURROGATES)
    return marked(text if _written_back(text, codec) == data else data.decode("ascii", "surrogateescape"))


def _written_back(text: str, codec: str) -> bytes | None:
    try:
        return text.encode(codec, "surrogateescape")
    except UnicodeEncodeError:
        return None


def marked(text: str) -> str:
    """A text with marks for the halves of surrogate pairs, which decoders write for bytes, and for marks themselves.

    No two texts become the same one.
    """
    return text if _is_plain(text) else _ODD.sub(_mark, text)


def has_marks(text: str) -> bool:
    """Whether some of a marked text is read as question marks."""
    return _ODD.search(text) is not None


def _is_plain(text: str) -> bool:
    """Whether a text needs no mark, for sure: faster than a regular expression."""
    try:
        return text.isascii() or FIRST_BYTES not in text.encode()
    except UnicodeEncodeError:  # a half of a surrogate pair
        return False


def with_question_marks(text: str) -> str:
    """A marked text as people see it, with a question mark for each mark."""
    return _ODD.sub("?", text)


def _mark(found: re.Match[str]) -> str:
    character = found[0]
    if character < MARKS[0]:
        return chr(ord(character) + _SURROGATES)
    return "".join(chr(_WRITTEN + byte) for byte in character.encode())


def _as_surrogates(error: UnicodeError) -> tuple[str, int]:
    """A half of a surrogate pair for each byte, as "surrogateescape" has them for bytes from 128 only."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "".join(chr(0xDC00 + byte) for byte in error.object[error.start : error.end]), error.end


codecs.register_error(_AS_SURROGATES, _as_surrogates)
