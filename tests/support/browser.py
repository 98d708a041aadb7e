"""What the tests in a real browser share."""

import re
import shutil
from itertools import cycle
from typing import get_args

import pytest

from heedful.core.records import CLAIMS, ClaimAnswer, ClaimResult
from heedful.report.pages.run_html import render_html
from support.records import NASTY, records

NAMES = ("chromium", "chromium-browser", "google-chrome")
CLASSES = (NASTY[0], "</script> 👩‍👧", "שלום")
COUNT = 300  # more texts than a page shows

# Ink and ground of every visible text as (r, g, b). A canvas mixes the colours as the page does:
# grounds over one another from the outermost in, then the ink with the opacity of all around it.
COLOURS = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const mixed = (layers) => {
    for (const [colour, opacity] of layers) {
      canvas.globalAlpha = opacity;
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.data.trim();
    const around = [walk.currentNode.parentElement];
    while (around[0].parentElement) around.unshift(around[0].parentElement);
    if (!text || !around.at(-1).checkVisibility()) continue;
    const styles = around.map((one) => getComputedStyle(one));
    const grounds = styles.map((one) => [one.backgroundColor, 1]);
    const last = styles.at(-1);
    const ink = around.at(-1) instanceof SVGElement ? last.fill : last.color;
    const opacity = styles.reduce((product, one) => product * one.opacity, 1);
    found.push([text, mixed([...grounds, [ink, opacity]]), mixed(grounds)]);
  }
  return found;
})()"""


def started():
    """The machine's own browser, by whatever name; none is ever downloaded."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"No browser: install chromium or Chrome, as one of {', '.join(NAMES)}.")
    with sync_api.sync_playwright() as playwright:
        # the sandbox needs rights that containers lack; all it would open is our own file
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=found, args=flags)
        yield browser
        browser.close()


def made_up():
    """Records of texts and classes that would rather be markup, with every answer there is."""
    answers = zip(CLAIMS, cycle(get_args(ClaimAnswer)), strict=False)
    claims = {name: ClaimResult(answer, NASTY[0]) for name, answer in answers}
    return records(COUNT, CLASSES, vocabulary=(*NASTY, "fine", "film"), claims=claims)


def written(made, tmp_path_factory):
    """The address of their page."""
    pytest.importorskip("altair")
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_html(made), encoding="utf-8")
    return path.as_uri()


def visits(browser, address):
    """Open the page in a fresh profile; whatever is done there, nothing may go wrong."""
    contexts, trouble = [], []

    def visit(**settings):
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.set_default_timeout(10_000)
        page.on(
            "console", lambda message: trouble.append(message.text)
        )  # the policy complains here
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("dialog", lambda dialog: (trouble.append(dialog.message), dialog.dismiss()))
        page.goto(address)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert trouble == []


def ground(page):
    """How bright the page is, from 0 to 765."""
    told = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, re.findall(r"\d+", told)[:3]))


def contrast(one, other):
    """The ratio of the Web Content Accessibility Guidelines 2.2, from 1 to 21."""
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    shares = [part / 255 for part in colour]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in shares
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
