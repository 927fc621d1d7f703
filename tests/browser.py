"""A browser for the test of the report: one on PATH, else Debian's, where the machine lets us install it.

`python tests/browser.py` tries to install it, for a few minutes at most, and never fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess

NAMES = ("chromium", "chromium-browser", "google-chrome")


def program() -> str | None:
    """The browser on PATH."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def install(seconds: float = 240) -> str | None:
    """The browser on PATH, after an attempt to install Debian's if there is none. Needs root and apt-get."""
    if program() is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        for step in ("--download-only", "--no-download"):  # only the first may take long; it can be cut short safely
            command = ["apt-get", "-qq", "-y", "--no-install-recommends", step, "install", "chromium"]
            try:
                subprocess.run(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    timeout=seconds, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                )  # fmt: skip
            except (OSError, subprocess.SubprocessError):
                break
    return program()


if __name__ == "__main__":
    print(install() or "there is no browser, and none could be installed: the test that needs one says so")
