"""The tutorials do what they show."""

from pathlib import Path

import pytest

from transcripts import replay

PAGES = Path(__file__).resolve().parents[3] / "docs" / "tutorials"


@pytest.mark.parametrize("name", ["file", "survey", "custodian"])
def test_a_tutorial_does_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert replay(PAGES / f"{name}.md", tmp_path) >= 4
    (report,) = tmp_path.glob("*.html")
    assert "The guarantee" in report.read_text(encoding="utf-8")


def test_a_page_that_shows_something_else_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ expost --version\nexpost of another name\n```\n")
    monkeypatch.delenv("EXPOST_GOLDEN", raising=False)
    with pytest.raises(AssertionError, match="and the page has"):
        replay(page, tmp_path)
