"""A browser for the test of the report: one on PATH, else Debian's, where the machine lets us install it.

`python tests/browser.py` tries to install it, and axe-core, which finds what some people cannot use, for a few minutes
at most, and never fails.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

AXE = Path(__file__).resolve().parent.parent / "build" / "axe"
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


def axe(seconds: float = 60) -> str | None:
    """The text of axe-core, after an attempt to get it from npm if it is not there; it is not a part of the project."""
    file = AXE / "node_modules" / "axe-core" / "axe.min.js"
    if not file.exists() and shutil.which("npm") is not None:
        AXE.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(AXE), "axe-core@4"]
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(command, timeout=seconds, check=False, capture_output=True)
    return file.read_text() if file.exists() else None


if __name__ == "__main__":
    print(install() or "there is no browser, and none could be installed: the tests that need one say so")
    print("axe-core is there" if axe() else "there is no axe-core, and npm could not install it: its tests say so")
