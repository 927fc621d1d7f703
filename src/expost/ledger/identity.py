"""Which file a name leads to.

A kernel that was asked for the times of a file writes them anew with the next write to it, and has to sync more than
the data: for the log, before every commit, that would cost a quarter of it. ``os.stat`` always asks; ``statx`` asks for
what is needed, and takes longer.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any, TypeAlias

_HERE = -100  # AT_FDCWD: names are relative to the working directory
_WANTED = 0x4 | 0x100  # STATX_NLINK, STATX_INO
_RESULT = struct.Struct("<I12xI12xQ96xII")  # mask, links, inode, and the device's two numbers
_Buffer = ctypes.c_char * 256
Identity: TypeAlias = tuple[int, int, int]
"""A file, whatever its name: its inode, and the two numbers of its device."""


def _library() -> Any:
    try:
        found = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError, TypeError):  # macOS, Windows, an old library
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
    return found


_statx = _library()


def identified(path: bytes, *, times: bool = True) -> tuple[Identity, int]:
    """The file of that name, and how many names it has, if need be without asking for its times. Raises ``OSError``."""
    if not times and _statx is not None:
        result = _Buffer()
        failed = _statx(_HERE, path, 0, _WANTED, result)
        mask, links, inode, major, minor = _RESULT.unpack_from(result)
        if not failed and mask & _WANTED == _WANTED:
            return (inode, major, minor), links
    found = os.stat(path)  # it raises; or the kernel is older than the library
    return (found.st_ino, os.major(found.st_dev), os.minor(found.st_dev)), found.st_nlink
