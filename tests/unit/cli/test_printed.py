"""Pages of Python without seeds do what they show."""

import doctest
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import printed
from expost import Ledger, SeededNoise
from expost.ledger.showing import caution_of

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[3]
FIRST = {"README.md", "quickstart.md"}
ALONE = [page for page in printed.pages() if "```console" not in page.read_text(encoding="utf-8")]
"""Those that need no files which commands made; `test_tutorials.py` follows the others."""


def test_the_first_pages_are_among_them() -> None:
    assert {page.name for page in printed.pages()} >= FIRST


@pytest.mark.parametrize("page", ALONE, ids=lambda page: page.stem)
def test_a_page_does_what_it_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert printed.follow(page) >= 3


@pytest.mark.parametrize("page", printed.pages(), ids=lambda page: page.stem)
def test_nobody_copies_a_seed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "SeededNoise" not in text
    assert not [
        part for part in doctest.DocTestParser().get_examples(text) if "key=" in part.source.replace("keys=", "")
    ]


PAGE = f"""{printed.MARK}
>>> import expost as xp
>>> ledger = xp.Ledger(
...     epsilon=1)
>>> ledger.run(xp.Laplace(epsilon=0.5, sensitivity=1), on=10)
{{shown}}>>> ledger.run(xp.Laplace(epsilon=0.75, sensitivity=1), on=10)
"""


def test_a_page_that_shows_something_else_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    monkeypatch.delenv("EXPOST_GOLDEN", raising=False)
    page.write_text(PAGE.format(shown="nothing\n"), encoding="utf-8")
    with pytest.raises(AssertionError, match="the page has\nnothing"):
        printed.follow(page)
    monkeypatch.setenv("EXPOST_GOLDEN", "update")
    printed.follow(page)
    monkeypatch.delenv("EXPOST_GOLDEN")
    assert printed.follow(page) == 4
    assert "BudgetExceeded" in page.read_text(encoding="utf-8")


def test_the_picture_has_the_numbers_of_the_page(tmp_path: Path) -> None:
    """What the README prints is what its picture shows."""
    drawn: Any = runpy.run_path(str(ROOT / "docs" / "gallery.py"))
    axes = Figure().subplots()
    drawn["answers"](axes)
    told = [
        f"{label.get_text()[5:]} {text.get_text()}"
        for label, text in zip(axes.get_yticklabels(), axes.texts, strict=True)
    ]
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert told == [" ".join(line.split()) for line in re.findall(r"^(?:A|B|C|ICU) +\d+ ± \d+$", page, re.MULTILINE)]
    drawn["draw"](tmp_path, ["answers"])
    assert [made.name for made in tmp_path.iterdir()] == ["answers.svg"]


def test_what_a_ledger_says_of_seeds_is_left_out() -> None:
    assert caution_of(Ledger(epsilon=1, noise=SeededNoise(1))) == printed.SAID_OF_SEEDS
