"""The tutorials do what they show."""

import re
from pathlib import Path

import pytest

import printed
from transcripts import replay

pytestmark = pytest.mark.slow
PAGES = Path(__file__).resolve().parents[3] / "docs" / "tutorials"


@pytest.mark.parametrize("name", ["file", "survey", "custodian", "hospital", "payroll"])
def test_a_tutorial_does_what_it_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert replay(PAGES / f"{name}.md", tmp_path) >= 3
    if printed.is_one(PAGES / f"{name}.md"):
        assert printed.follow(PAGES / f"{name}.md") >= 4
    (report,) = tmp_path.glob("*.html")
    assert "The guarantee" in report.read_text(encoding="utf-8")


def test_answers_from_the_ledger_are_those_that_were_given() -> None:
    """Asked again, an answer is the same: the page is of one run."""
    page = (PAGES / "file.md").read_text(encoding="utf-8")
    given, listed = page.split("$ expost run flights.toml --report")[1].split("$ expost answers")
    numbers = re.findall(r"[:\d] +(\d{1,3}(?:,\d{3})+)", listed.split("```")[0])
    assert len(numbers) >= 5
    assert [number for number in numbers if f" {number}" not in given] == []


def test_a_page_that_shows_something_else_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ expost --version\nexpost of another name\n```\n")
    monkeypatch.delenv("EXPOST_GOLDEN", raising=False)
    with pytest.raises(AssertionError, match="and the page has"):
        replay(page, tmp_path)
