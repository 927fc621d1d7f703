"""The lines of a CSV file: every line is one row, whatever its bytes are, and no line changes another.

A line ends with LF, which may be missing behind the last one. One CR before it belongs to the end of the line, and any
other CR is a character like all others. Of a line that is longer than ``LONGEST_LINE`` the rest is not read.

Proof: lem-lines
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from expost.data.encodings import decoder_of, marked
from expost.errors import InvalidValue

LONGEST_LINE = 2**22
"""How many characters of a line are read."""


def first_line(file: str, encoding: str | None) -> str:
    """The line that names the columns, as marked text; empty if the file is."""
    return next(blocks(file, encoding), "").partition("\n")[0]


def rows(file: str, encoding: str | None, header: str) -> Iterator[str]:
    """All lines after the first, which must be the header, in blocks."""
    found = blocks(file, encoding)
    first, more, rest = next(found, "").partition("\n")
    if first != header:
        raise InvalidValue(f"the first line of {file} has changed since it was read: read it again")
    if more:
        yield rest
    yield from found


def blocks(file: str, encoding: str | None, longest: int = LONGEST_LINE) -> Iterator[str]:
    """The lines of a file in marked text, some at a time: n lines are a text with n - 1 LF."""
    with _opened(file, encoding) as source:
        decoder, begun = decoder_of(encoding), ""
        while data := source.read(longest // 2):  # so that only the first line of what is read can be too long
            head, end, rest = decoder.decode(data).partition("\n")
            begun = (begun + head)[:longest]
            if end:
                whole, more, rest = rest.rpartition("\n")
                yield _cleaned(begun + end + whole if more else begun)
                begun = rest
        begun = (begun + decoder.decode(b"", final=True))[:longest]
        if begun:
            yield _cleaned(begun)


def _cleaned(lines: str) -> str:
    return marked(f"{lines}\n".replace("\r\n", "\n")[:-1])


@contextmanager
def _opened(file: str, encoding: str | None) -> Iterator[Any]:
    """The file, unpacked if its name says that it is packed. What goes wrong says nothing of its content."""
    try:
        with gzip.open(file, "rb") if file.lower().endswith(".gz") else open(file, "rb") as source:
            yield source
    except UnicodeError:
        raise InvalidValue(
            f"{file} does not begin as {encoding} files do, with a byte-order mark: save it as UTF-8"
        ) from None
    except (EOFError, zlib.error):
        raise InvalidValue(f"{file} cannot be unpacked: is it complete?") from None
    except OSError:
        raise InvalidValue(f"{file} cannot be read: is the path right?") from None
