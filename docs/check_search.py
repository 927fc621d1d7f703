"""The search of the built pages finds what people look for first: run by ``make docs``, where there is a browser."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import browser  # noqa: E402
from looks import launched  # noqa: E402

FIRST = {
    "median": "reference/names/xp.Median.html",
    "mean": "reference/names/xp.Mean.html",
    "histogram": "reference/names/xp.PrivateTable.html",
    "groups": "tables.html",
    "csv": "table-sources.html",
    "bounds": "glossary.html",
    "ledger": "glossary.html",
}


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    program = browser.program()
    if program is None:
        pytest.skip("there is no browser")
    with sync_playwright() as playwright:
        found = launched(playwright, program)
        yield found.new_page()
        found.close()


@pytest.mark.parametrize(("word", "expected"), FIRST.items())
def test_the_first_result_is_the_page_about_it(page: Page, word: str, expected: str) -> None:
    page.goto(f"{(ROOT / 'docs/_build/html/search.html').as_uri()}?q={word}")
    first = page.locator("#search-results ul.search li a").first
    first.wait_for(timeout=60_000)
    page.wait_for_function("document.querySelector('#search-results h2').innerText === 'Search Results'")
    assert (first.get_attribute("href") or "").partition("#")[0] == expected


def test_a_copy_button_copies_what_was_typed(page: Page) -> None:
    page.goto((ROOT / "docs/_build/html/tables.html").as_uri())
    page.evaluate("document.execCommand = () => { window.copied = document.activeElement.value; return true; }")
    page.locator("button.copybtn").nth(1).click()
    copied = page.evaluate("window.copied")
    assert copied.startswith('adults = visits.where("age >= 18")\nadults.count()\n')
    assert ">>>" not in copied
