"""Which file a name leads to, asked without its times.

A kernel that was asked for the times of a file writes them anew with the next write to it, and has to sync more than
the data: before every commit, that would cost a quarter of it. ``os.stat`` always asks; ``statx`` asks for what is
needed.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any, NamedTuple

_HERE = -100  # AT_FDCWD: names are relative to the working directory
_WANTED = 0x4 | 0x100  # STATX_NLINK, STATX_INO
_RESULT = struct.Struct("<I12xI12xQ96xII")  # mask, links, inode, and the device's two numbers
_SIZE = 256


class Identity(NamedTuple):
    """A file, whatever its name."""

    device: int
    inode: int


def _library() -> Any:
    try:
        found = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError, TypeError):  # macOS, Windows, an old library
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
    return found


_statx = _library()


def identified(path: str) -> tuple[Identity, int]:
    """The file of that name, and how many names it has. Raises ``OSError``."""
    if _statx is None:
        return _stat(path)
    result = ctypes.create_string_buffer(_SIZE)
    if _statx(_HERE, os.fsencode(path), 0, _WANTED, result):
        return _stat(path)  # it raises, or the kernel is older than the library
    mask, links, inode, major, minor = _RESULT.unpack_from(result)
    if mask & _WANTED != _WANTED:
        return _stat(path)
    return Identity(os.makedev(major, minor), inode), links


def _stat(path: str) -> tuple[Identity, int]:
    found = os.stat(path)
    return Identity(found.st_dev, found.st_ino), found.st_nlink
