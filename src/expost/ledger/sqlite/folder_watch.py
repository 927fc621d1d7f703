"""Whether a file in a folder was made, removed or renamed. Linux says so (inotify); asking takes less than looking."""

from __future__ import annotations

import ctypes
import os
from typing import Any

try:
    import fcntl
    import termios
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_MADE = 0x100 | 0x80  # IN_CREATE, IN_MOVED_TO
_GONE = 0x200 | 0x40 | 0x400 | 0x800  # IN_DELETE, IN_MOVED_FROM, and the same of the folder itself
_ONLY_FOLDERS = 0x01000000
_NOTHING = bytes(4)
_MOST = 1 << 16  # bytes that are read at once


def _library() -> Any:
    try:
        library = ctypes.CDLL(None, use_errno=True)
        return library.inotify_init1, library.inotify_add_watch
    except (OSError, AttributeError, TypeError):  # macOS, Windows
        return None


_calls = None if fcntl is None else _library()


class FolderWatch:
    """A watch on one folder, for what is done on this machine. Without one, something may always have changed."""

    def __init__(self, folder: bytes) -> None:
        self._queue: int | None = None
        if _calls is not None:
            queue = _calls[0](os.O_NONBLOCK | os.O_CLOEXEC)
            if queue >= 0 and _calls[1](queue, folder, _MADE | _GONE | _ONLY_FOLDERS) < 0:
                os.close(queue)
            elif queue >= 0:  # a user has a hundred or so
                self._queue = queue

    def has_changed(self) -> bool:
        """Whether something may have changed since the last :meth:`reset`."""
        return self._queue is None or fcntl.ioctl(self._queue, termios.FIONREAD, _NOTHING) != _NOTHING

    def reset(self) -> None:
        """Ask about later changes only."""
        if self._queue is not None and self.has_changed():
            os.read(self._queue, _MOST)

    def close(self) -> None:
        """Stop watching."""
        queue, self._queue = self._queue, None
        if queue is not None:
            os.close(queue)
