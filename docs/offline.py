"""Fail if built pages load anything from elsewhere: ``python docs/offline.py FOLDER``. Links may lead away."""

from __future__ import annotations

import re
import sys
from pathlib import Path

LOADED = re.compile(
    r"""<(?:script|img|iframe|source|object|embed)\b[^>]*?(?:src|data)=["'](?:https?:)?//[^"']*"""
    r"""|<link\b(?![^>]*rel=["']canonical)[^>]*?href=["'](?:https?:)?//[^"']*"""
    r"""|@import\s+["'](?:https?:)?//[^"']*|url\(["']?(?:https?:)?//[^)]*"""
)


def foreign(folder: Path) -> list[str]:
    """What pages and style sheets load from other hosts, with the file that does."""
    files = [path for path in sorted(folder.rglob("*")) if path.suffix in (".html", ".css")]
    return [f"{path}: {found}" for path in files for found in LOADED.findall(path.read_text(encoding="utf-8"))]


if __name__ == "__main__":
    sys.exit("\n".join(foreign(Path(sys.argv[1]))) or None)
