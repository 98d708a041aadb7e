"""Layers, heads and whole maps in a real browser: enlarged, walked through, read and closed."""

import re

import numpy as np
import pytest

from support.browser import COLOURS, contrast, ground, started, visits, written
from support.records import NASTY, transformer

browser = pytest.fixture(scope="module")(started)
address = pytest.fixture(scope="module")(written)
opened = pytest.fixture(visits)

LAYERS, HEADS = 3, 12
TOKENS = (*NASTY, "fine", "film")
PIXEL = """([x, y]) => {
  const copy = document.createElement("canvas").getContext("2d");
  copy.drawImage(document.querySelector("#map-canvas"), 0, 0);
  return copy.getImageData(x, y, 1, 1).data[3];
}"""

STOPS = (
    "[...document.querySelectorAll('.thumbnail')].filter((o) => !o.tabIndex).map((o) => o.title)"
)


@pytest.fixture(scope="module")
def made():
    return transformer(layers=LAYERS, heads=HEADS, tokens=TOKENS, kept_maps=3)


@pytest.fixture
def page(opened):
    one = opened(viewport={"width": 1280, "height": 900})
    one.wait_for_selector(".thumbnail")
    return one


def weights(made, instance, layer, head):
    """The map as the run kept it."""
    (row,) = (
        one
        for one in made.maps.whole().to_pylist()
        if (one["instance"], one["layer"], one["head"]) == (instance, layer, head)
    )
    return np.array(row["weights"]).reshape(len(TOKENS), -1)


def told(page):
    """The tokens and the weight in the line above the large map."""
    text = page.locator("#map-status").inner_text()
    return re.fullmatch(r"“(.*)” attends to “(.*)”: ([\d.]+)", text, re.DOTALL).groups()


def hover(page, *, key, query):
    box = page.locator("#map-canvas").bounding_box()
    side = box["width"] / len(TOKENS)
    page.mouse.move(box["x"] + (key + 0.5) * side, box["y"] + (query + 0.5) * side)


def open_by_click(page, layer, head):
    page.locator(".thumbnail").nth(layer * HEADS + head).click()
    assert page.locator("#map").is_visible()


def test_there_is_a_map_for_every_layer_and_head_with_its_name(page):
    names = page.locator(".thumbnail").evaluate_all("all => all.map((one) => one.ariaLabel)")
    pattern = re.compile(r"Layer (\d), head (\d+), mean τ −?0\.\d\d, enlarge")
    places = [tuple(map(int, pattern.fullmatch(name).groups())) for name in names]
    assert places == [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    assert page.locator(".maps .audited .name").all_inner_texts() == ["layer 2\nunder audit"]


def test_a_click_enlarges_pointing_tells_the_weight_and_escape_closes(page, made):
    open_by_click(page, 1, 2)
    assert page.locator("#map-name").inner_text().startswith("Layer 1, head 2, mean τ")
    kept = weights(made, 0, 1, 2)
    for query, key in ((0, 0), (9, 8), (4, 9)):
        hover(page, key=key, query=query)
        _, _, weight = told(page)
        assert float(weight) == pytest.approx(kept[query, key], abs=0.006)
        depth = page.evaluate(PIXEL, [key, query])
        assert depth == pytest.approx(255 * kept[query, key] ** (1 / 3), abs=3)
    assert told(page)[1] == "film"
    assert page.locator(".large .here").count() == 2
    page.keyboard.press("Escape")
    assert not page.locator("#map").is_visible()
    assert page.evaluate("document.activeElement.title").startswith("Layer 1, head 2")


def test_keys_alone_find_enlarge_read_and_leave_a_map(page, made):
    assert [one[:15] for one in page.evaluate(STOPS)] == ["Layer 0, head 0"]
    page.locator("#maps-text").focus()
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.className") != "thumbnail":
        page.keyboard.press("Tab")  # what scrolls may be a stop of its own
    for key in ("ArrowDown", "ArrowRight", "ArrowUp", "ArrowUp", "End", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.title").startswith("Layer 1, head 11")
    assert page.evaluate(STOPS) == [page.evaluate("document.activeElement.title")]
    page.keyboard.press("Enter")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert float(told(page)[2]) == pytest.approx(weights(made, 0, 1, 11)[1, 2], abs=0.006)
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.title").startswith("Layer 1, head 11")


def test_the_next_head_and_the_close_button(page):
    open_by_click(page, 0, 0)
    assert page.locator("#map-before").is_disabled()
    page.click("#map-after")
    assert page.locator("#map-name").inner_text().startswith("Layer 0, head 1")
    page.click("#map-close")
    assert not page.locator("#map").is_visible()
    assert page.evaluate("document.activeElement.title").startswith("Layer 0, head 1,")
    page.keyboard.press("Enter")
    page.click("#map-before")
    assert page.locator("#map-name").inner_text().startswith("Layer 0, head 0")
    page.keyboard.press("Escape")
    open_by_click(page, 2, 11)
    assert page.locator("#map-after").is_disabled()
    page.mouse.click(3, 3)  # beside it
    assert not page.locator("#map").is_visible()


def test_only_the_row_under_audit_is_marked(page):
    open_by_click(page, 2, 0)
    marked = page.locator("#map-queries bdi").evaluate_all("all => all.map((one) => one.className)")
    assert marked == ["audited"] + [""] * (len(TOKENS) - 1)
    page.click("#map-before")
    assert page.locator("#map-queries .audited").count() == 0


def test_another_text_shows_its_own_maps(page, made):
    page.select_option("#maps-text", "2")
    page.wait_for_function("document.querySelectorAll('.thumbnail').length === 36")
    open_by_click(page, 0, 1)
    hover(page, key=3, query=3)
    assert float(told(page)[2]) == pytest.approx(weights(made, 2, 0, 1)[3, 3], abs=0.006)


def test_hostile_tokens_are_only_text(page):
    open_by_click(page, 0, 0)
    keys = page.locator("#map-keys bdi").all_inner_texts()
    assert keys[2].startswith("\"'><img src=x")
    assert page.locator("img, iframe, object, embed, link").count() == 0
    assert page.locator("script").count() == 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_ink_can_be_read_on_its_ground(opened, scheme):
    page = opened(color_scheme=scheme)
    page.wait_for_selector(".thumbnail")
    page.locator("summary").first.click()
    page.evaluate("""(() => {
      for (const kind of ["plus", "minus", "none"]) for (let s = 0; s <= 20; s++) {
        const cell = document.querySelector(".heads td").cloneNode(true);
        cell.className = `word ${kind} s${s}`;
        document.querySelector(".heads tr").append(cell);
      }
    })()""")
    open_by_click(page, 2, 1)
    found = page.evaluate(COLOURS)
    assert len(found) > 300
    assert {text: (i, on) for text, i, on in found if contrast(i, on) < 4.5} == {}


@pytest.mark.parametrize("width", [380, 800])
def test_nothing_sticks_out_of_a_narrow_window(opened, width):
    page = opened(viewport={"width": width, "height": 700})
    page.wait_for_selector(".thumbnail")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    open_by_click(page, 1, 1)
    box = page.locator("#map").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= 700


def test_without_javascript_the_tables_are_there_and_the_maps_are_not_offered(opened):
    page = opened(java_script_enabled=False)
    assert page.locator(".heads").is_visible()
    assert page.locator("figure.layers svg").count() == 2
    assert page.locator("#attention-maps noscript p").is_visible()
    assert not page.locator("#maps").is_visible()


def test_on_paper_nothing_is_cut(opened):
    page = opened(color_scheme="dark", viewport={"width": 700, "height": 1000})
    page.wait_for_selector(".thumbnail")
    page.emulate_media(media="print", color_scheme="dark")
    assert ground(page) > 600
    cut = "[...document.querySelectorAll('.scroll')].filter((o) => o.scrollWidth > o.clientWidth)"
    assert page.evaluate(f"{cut}.map((o) => o.ariaLabel)") == []
