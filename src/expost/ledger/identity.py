"""The identity of the file at a path.

After a file's times were read, the kernel updates them at the next write, and has to sync more than the data. Before
every commit to the log, that would cost a quarter of the commit's time. ``os.stat`` always reads the times; ``statx``
reads only what is asked for, but the call itself takes longer.
"""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any, TypeAlias

_HERE = -100  # AT_FDCWD: paths are relative to the working directory
_WANTED = 0x4 | 0x100  # STATX_NLINK, STATX_INO
_RESULT = struct.Struct("<I12xI12xQ96xII")  # mask, links, inode, and the device's two numbers
_Buffer = ctypes.c_char * 256
Identity: TypeAlias = tuple[int, int]
"""A file's inode and device."""


def _library() -> Any:
    try:
        found = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError, TypeError):  # macOS, Windows, an old library
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
    return found


_statx = _library()


def identified(path: bytes | int, *, times: bool = True) -> tuple[Identity, int]:
    """The identity of the file at a path, or of an open one, and its number of links; ``times=False`` does not read its
    times. Raises ``OSError``."""
    if not times and _statx is not None:
        result = _Buffer()
        failed = _statx(_HERE, path, 0, _WANTED, result)
        mask, links, inode, major, minor = _RESULT.unpack_from(result)
        if not failed and mask & _WANTED == _WANTED:
            return (inode, os.makedev(major, minor)), links
    found = os.stat(path)  # raises the error; or the kernel does not support statx
    return (found.st_ino, found.st_dev), found.st_nlink
