"""Pages that load something from elsewhere are noticed."""

import runpy
from pathlib import Path

import pytest

pytestmark = pytest.mark.counted
foreign = runpy.run_path(str(Path(__file__).resolve().parents[2] / "docs" / "offline.py"))["foreign"]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ('<script async src="https://cdn.example/x.js"></script>', 1),
        ("<link rel='stylesheet' href='//fonts.example/a.css'>", 1),
        ('<img alt="x" src="http://example/x.png">', 1),
        ("<style>@import 'https://example/x.css'; a { background: url(https://example/y.png) }</style>", 2),
        ('<a href="https://example.org">elsewhere</a> <script src="_static/x.js"></script> <img src="x.svg">', 0),
    ],
)
def test_what_is_loaded_from_elsewhere(tmp_path: Path, page: str, found: int) -> None:
    (tmp_path / "page.html").write_text(page)
    assert len(foreign(tmp_path)) == found
