"""The dashboard in a real browser: sign in, plan, ask, see the charge on another page, sign out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, Route, sync_playwright

import browser
from looks import launched
from serving import Running
from soak import SOAK, some

PROGRAM = browser.program()
PATIENCE = 2 if SOAK else 120  # seconds; a busy machine is no fault of the page
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no browser, and none could be installed")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = launched(playwright, PROGRAM)
        yield found
        found.close()


@pytest.fixture
def said() -> list[str]:
    """What pages complained about."""
    return []


def new_page(chromium: Browser, running: Running, who: str, said: list[str], **options: Any) -> Page:
    page = chromium.new_context(**options).new_page()
    page.set_default_timeout(120_000)
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{running.address}/")
    page.fill("#token", running.secrets[who])
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:has-text('Budgets')")
    return page


def plan_a_count(page: Page, epsilon: str) -> None:
    """Fill in the form of a count, and wait for what it would cost."""
    page.click("text=Ask")
    page.click("text=count >> nth=0")
    page.fill("#f-where", "age >= 60")
    page.fill("#f-epsilon", epsilon)
    page.keyboard.press("Enter")
    page.wait_for_selector("text=at worst")


def test_an_analysts_day(chromium: Browser, running: Running, said: list[str]) -> None:
    page = new_page(chromium, running, "bob", said)
    second = new_page(chromium, running, "bob", said)
    spent = second.locator("[data-account='people/bob'] [data-of=spent]")
    before = spent.inner_text()
    plan_a_count(page, "0.125")
    assert "± " in page.inner_text("[aria-label='What it would cost']")
    page.click("text=Ask, and pay")
    page.wait_for_selector(".answer")
    since = time.monotonic()
    while spent.inner_text() == before and time.monotonic() - since < PATIENCE:
        time.sleep(0.02)
    assert spent.inner_text() != before  # without a reload
    page.click("text=Sign out")
    page.wait_for_selector("h1:has-text('Sign in')")
    assert said == []


def test_an_answer_that_came_before_the_page_listened(chromium: Browser, running: Running, said: list[str]) -> None:
    """Found: the page said for ever that the question was being answered."""
    page, held = new_page(chromium, running, "bob", said), list[Route]()
    plan_a_count(page, "0.0625")
    page.route("**/live", lambda route: held.append(route))  # it takes no method of a list
    page.click("text=Ask, and pay")
    page.wait_for_selector("[data-waiting], .answer")
    since = time.monotonic()
    while 'class="answer"' not in page.request.get(page.url).text() and time.monotonic() - since < PATIENCE:
        time.sleep(0.02)
    page.unroute("**/live")  # the page may begin to listen only now
    for route in held:
        with suppress(Error):  # of pages that were left
            route.continue_()
    page.wait_for_selector(".answer")
    assert said == []


PAGES = {"alice": ("/", "/ask", "/ask/people/histogram", "/jobs", "/entries"), "custodian": ("/reviews", "/audit")}


LOOKS = [(360, "dark"), (1280, "light"), (1280, "dark"), (360, "light")]


@pytest.mark.parametrize(("width", "scheme"), some(LOOKS, 4))
def test_pages_fit_and_are_accessible(
    chromium: Browser, running: Running, said: list[str], width: int, scheme: str
) -> None:
    script = browser.axe()
    for page, path in looked_at(chromium, running, said, width, scheme):
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        if script is not None:
            page.evaluate(script)  # not by a tag, which the policy forbids
            assert serious(page) == [], path
        if script is not None and path == "/audit":  # a fault that it must find
            page.evaluate("document.querySelector('main').append(document.createElement('button'))")
            assert serious(page) == ["button-name"]
    assert said == []
    if script is None:
        pytest.skip("axe-core is not there: `npm install --prefix build/axe axe-core@4`, or install npm and run again")


def looked_at(
    chromium: Browser, running: Running, said: list[str], width: int, scheme: str
) -> Iterator[tuple[Page, str]]:
    """Every page of everybody, at a width and in light or dark."""
    for who, paths in PAGES.items():
        page = new_page(chromium, running, who, said, viewport={"width": width, "height": 800}, color_scheme=scheme)
        for path in paths:
            page.goto(f"{running.address}{path}")
            page.wait_for_selector("h1")
            yield page, path
        page.context.close()


def serious(page: Page) -> list[str]:
    """The serious faults that axe finds."""
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [each["id"] for each in found if each["impact"] in ("serious", "critical")]
