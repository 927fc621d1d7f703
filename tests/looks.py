"""Look at pages in a browser: wide and narrow, light and dark. `python tests/looks.py FOLDER` fails if one looks bad.

Where there is no browser, the command says so and does not fail.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Playwright, sync_playwright

import browser

VIEWS = [(width, scheme) for scheme in ("light", "dark") for width in (1280, 400)]
_LOOK = r"""() => {
const seen = new Set(), root = document.documentElement, wide = root.clientWidth;
if (root.scrollWidth > wide) seen.add(`wider than the window by ${root.scrollWidth - wide} pixels`);
for (const image of document.images) if (image.complete && !image.naturalWidth) seen.add(`no picture: ${image.src}`);
const numbers = text => (text.match(/[\d.]+/g) || []).map(Number);
const opacity = color => color.length > 3 ? color[3] : 1;
const over = (color, under) => under.map((value, i) => color[i] * opacity(color) + value * (1 - opacity(color)));
const light = color => { const [r, g, b] = color.map(value => value / 255).map(
  value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = element => { const layers = [];
  for (let at = element; at; at = at.parentElement) layers.unshift(numbers(getComputedStyle(at).backgroundColor));
  return layers.reduce((under, layer) => over(layer, under), [255, 255, 255]); };
const scrolls = element => { for (let at = element; at; at = at.parentElement)
  if (/auto|scroll/.test(getComputedStyle(at).overflowX)) return true; };
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; node = walk.nextNode();) {
  const element = node.parentElement, style = getComputedStyle(element), range = document.createRange();
  if (!node.data.trim() || style.visibility === 'hidden') continue;
  if (element.closest('script, style, .visually-hidden')) continue;
  range.selectNodeContents(node);
  const box = range.getBoundingClientRect(), text = node.data.trim().slice(0, 40);
  if (!box.width || !box.height) continue;
  if (!scrolls(element)) for (let at = element; at; at = at.parentElement) {
    const edge = at.getBoundingClientRect().right, cut = box.left < edge && box.right > edge + 1;
    if (cut && getComputedStyle(at).overflowX === 'hidden') seen.add(`cut: ${text}`);
  }
  if (element.closest('svg')) continue;
  const under = ground(element), pair = [light(over(numbers(style.color), under)), light(under)].sort((a, b) => b - a);
  const ratio = (pair[0] + 0.05) / (pair[1] + 0.05), large = parseFloat(style.fontSize) >= 24;
  if (ratio < (large ? 3 : 4.5)) seen.add(`contrast of ${ratio.toFixed(1)}: ${text}`);
}
return [...seen]; }"""


def launched(playwright: Playwright, program: str) -> Browser:
    """A browser, however long it takes to start: a busy machine is no fault of the page."""
    flags = ["--no-sandbox", "--disable-gpu"]
    return playwright.chromium.launch(executable_path=program, args=flags, timeout=180_000)


def faults(files: list[Path], program: str) -> Iterator[str]:
    """What is wrong in any view: too wide, cut, hard to read, pictures missing, complaints, loads from elsewhere."""
    with sync_playwright() as playwright:
        found = launched(playwright, program)
        for width, scheme in VIEWS:
            options: Any = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
            page, said = _listened(found.new_context(**options).new_page())
            page.set_default_timeout(120_000)
            for file in files:
                page.goto(file.as_uri())
                found_here = [*page.evaluate(_LOOK), *said]
                said.clear()
                yield from (f"{file.name} at {width} pixels, {scheme}: {fault}" for fault in found_here)
            page.context.close()
        found.close()


def _listened(page: Page) -> tuple[Page, list[str]]:
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda one: None if one.url.startswith(("file:", "data:")) else said.append(f"loads {one.url}"))
    return page, said


if __name__ == "__main__":
    there = browser.program()
    if there is None:
        sys.exit(print("not looked at: there is no browser"))
    static = {"_static", "_modules", "_sources"}
    pages = [path for path in sorted(Path(sys.argv[1]).resolve().rglob("*.html")) if not static & set(path.parts)]
    sys.exit("\n".join(faults(pages, there)) or None)
