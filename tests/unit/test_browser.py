"""The browser of the report's test is installed where that is possible, and its absence never fails anything."""

import os
from pathlib import Path

import pytest

from browser import install, program

pytestmark = pytest.mark.counted


def machine(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, *, root: bool = True) -> None:
    """A machine whose apt-get does what the script says, and that has nothing else."""
    tool = folder / "apt-get"
    tool.write_text(f'#!/bin/sh\necho "$@" >> {folder}/asked\n{script}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)


def test_debians_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = f'case "$*" in *--no-download*) echo > {tmp_path}/chromium; /bin/chmod 755 {tmp_path}/chromium;; esac'
    machine(tmp_path, monkeypatch, made)
    assert install() == program() == str(tmp_path / "chromium")
    assert len((tmp_path / "asked").read_text().splitlines()) == 2
    assert install() == program(), "once is enough"
    assert len((tmp_path / "asked").read_text().splitlines()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("script", ["exit 100", "exec /bin/sleep 60"])
def test_where_it_cannot_be_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    machine(tmp_path, monkeypatch, script)
    assert install(seconds=3) is None
    assert "--download-only" in (tmp_path / "asked").read_text()
    assert "--no-download" not in (tmp_path / "asked").read_text()


def test_nobody_but_root_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, monkeypatch, "exit 0", root=False)
    assert install() is None
    assert not (tmp_path / "asked").exists()
