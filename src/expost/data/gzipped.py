"""Compressed files, checked when they are read: a file that was cut off would lose rows or fail at each question."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

from expost.errors import InvalidValue

_PIECE = 2**20
_WITH_HEADER = 31
"""For zlib: the data is in gzip's format, with its checksum and length."""


def refuse_damaged(paths: Iterable[str]) -> None:
    """Raise unless each file that ends in .gz is whole: it is decompressed once, and its checksums are compared.

    DuckDB compares no checksum. It fails in the middle of a question for a file that ends too early, and for some
    damage leaves out rows without a word.
    """
    for path in paths:
        if path.lower().endswith(".gz") and not _is_whole(path):
            raise InvalidValue(f"{path} is damaged, or was cut off: compress it again, or copy it again")


def _is_whole(path: str) -> bool:
    """Whether a file is one or more complete parts of gzip, and nothing else."""
    try:
        with open(path, "rb") as file:
            part, begun = zlib.decompressobj(_WITH_HEADER), False
            while piece := file.read(_PIECE):
                while piece:
                    if part.eof:
                        part = zlib.decompressobj(_WITH_HEADER)
                    begun = True
                    piece = _rest(part, piece)
            return begun and part.eof
    except (OSError, zlib.error):
        return False


def _rest(part: zlib._Decompress, piece: bytes) -> bytes:
    """Decompress a piece and forget what it says, a little at a time; what is left belongs to the next part."""
    while piece and not part.eof:
        part.decompress(piece, _PIECE)
        piece = part.unconsumed_tail
    return part.unused_data
