"""The report page in a real browser: whole, offline, sortable, readable, and for every reader."""

import re

import numpy as np
import pytest

from heedful.report.sections.example_texts import MOST, choose_examples
from support.browser import (
    CLASSES,
    COLOURS,
    COUNT,
    contrast,
    ground,
    made_up,
    started,
    visits,
    written,
)
from support.records import NASTY, measurements

browser = pytest.fixture(scope="module")(started)
made = pytest.fixture(scope="module")(made_up)
address = pytest.fixture(scope="module")(written)
opened = pytest.fixture(visits)

STEP = 12  # as many texts as are shown at first
DARK, LIGHT = 150, 600  # below the one, above the other
CONTROLS = {"theme", "search", "sort", "class", "correct", "why", "more"}
A4 = {"width": 700, "height": 1000}  # between usual margins
FOCUSED = """(() => {
  const here = document.activeElement;
  const place = [...document.querySelectorAll("*")].indexOf(here);
  return [place, here.tagName, here.id, getComputedStyle(here).outlineStyle];
})()"""
EVERY_DEPTH = """(() => {
  for (const kind of ["plus", "minus"]) for (let s = 0; s <= 200; s++) {
    const word = document.querySelector(`.legend .${kind}`).cloneNode(true);
    word.style.setProperty("--s", s / 200);
    document.querySelector(".legend").append(word);
  }
})()"""


def items(page):
    """The facts told of each text on show: τ, JSD and its number; None for a dash."""
    told = page.locator("#list .figures-of").all_inner_texts()
    pattern = re.compile(r"τ (\S+) · JSD (\S+) .*text (\d+)$")
    values = [pattern.match(one).groups() for one in told]
    return [
        tuple(None if one == "–" else float(one.replace("−", "-")) for one in row) for row in values
    ]


def tab_to(page, name):
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == name:
            return
    raise AssertionError(f"Tab does not reach {name}")


def test_it_opens_offline_and_asks_nothing_of_anyone(browser, address):
    context = browser.new_context(offline=True)
    page, asked, wrong = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    context.close()
    assert asked == [address]
    assert wrong == []


def test_hostile_text_is_only_text(opened):
    page = opened()
    page.fill("#search", "alert(1)")
    shown = page.locator("#list").inner_text()
    for one in (NASTY[0], NASTY[2], "naïve"):
        assert one in shown
    assert page.locator("script").count() == 2  # the data and ours
    assert page.locator("img, iframe, object, embed, link").count() == 0
    assert page.locator("#class option").all_inner_texts()[1:] == sorted(CLASSES)


@pytest.mark.parametrize(("order", "sign"), [("damning", 1), ("innocent", -1)])
def test_sorting_puts_the_ends_of_the_records_first(opened, order, sign):
    rows = measurements(COUNT, CLASSES).to_pylist()
    taus = {
        row["instance"]: row["value"]
        for row in rows
        if row["measure"] == "tau_leave_one_out" and row["value"] is not None
    }
    want = sorted(taus, key=lambda one: sign * taus[one])[:STEP]
    page = opened()
    page.select_option("#sort", order)
    found = items(page)
    assert [number for _, _, number in found] == want
    np.testing.assert_allclose([tau for tau, _, _ in found], [taus[i] for i in want], atol=0.0051)


@pytest.mark.parametrize(
    ("order", "place", "sign"), [("far", 1, -1), ("near", 1, 1), ("order", 2, 1)]
)
def test_the_other_orders(opened, order, place, sign):
    page = opened()
    page.select_option("#sort", order)
    values = [sign * one[place] for one in items(page)]
    assert values == sorted(values)
    assert len(set(values)) > 2


def test_every_text_can_be_reached_and_undefined_ones_come_last(opened):
    page = opened()
    page.click("#more")
    assert len(items(page)) == 2 * STEP
    assert page.evaluate("document.activeElement === document.querySelector('#list').children[12]")
    page.evaluate("(() => { while (!more.hidden) more.click(); })()")
    taus = [tau for tau, _, _ in items(page)]
    assert len(taus) == MOST
    defined = [tau for tau in taus if tau is not None]
    assert len(defined) < MOST
    assert taus[: len(defined)] == sorted(defined)


def test_search_narrows_says_when_nothing_is_found_and_gives_all_back(opened, made):
    page = opened()
    count = page.locator("#count")
    everything = (count.inner_text(), items(page))
    assert everything[0] == f"{STEP} of {MOST} shown"
    page.keyboard.press("/")
    page.keyboard.type("NAÏVE")
    found = sum("naïve" in " ".join(one.words) for one in choose_examples(made))
    assert 0 < found < MOST
    assert count.inner_text() == f"{min(found, STEP)} of {found} shown"
    for text in page.locator("#list > li").all_inner_texts():
        assert "naïve" in text
    page.fill("#search", "no such words")
    assert count.inner_text() == "No text matches."
    assert items(page) == []
    page.fill("#search", "")
    assert (count.inner_text(), items(page)) == everything


def test_filters_keep_what_they_name(opened, made):
    page = opened()
    page.select_option("#class", label=CLASSES[1])
    page.select_option("#correct", "no")
    page.select_option("#why", "random")
    kept = [
        one.instance
        for one in choose_examples(made)
        if one.predicted == CLASSES[1] != one.label and one.why == "random"
    ]
    assert page.locator("#count").inner_text() == f"{STEP} of {len(kept)} shown"
    assert {number for _, _, number in items(page)} <= set(kept)
    for head in page.locator("#list .head").all_inner_texts():
        assert head.startswith(f"✗ predicted {CLASSES[1]} at")
        assert "· at random ·" in head


def test_the_theme_is_switched_by_keys_and_remembered(opened):
    page = opened(color_scheme="light")
    light = ground(page)
    tab_to(page, "theme")
    page.keyboard.press("Enter")
    dark = ground(page)
    assert dark < DARK < LIGHT < light
    page.reload()
    assert ground(page) == dark
    tab_to(page, "theme")
    page.keyboard.press("Space")
    assert ground(page) == light


def test_the_systems_dark_is_honoured(opened):
    assert ground(opened(color_scheme="dark")) < DARK


def test_keys_reach_every_control_and_show_where_they_are(opened):
    page = opened()
    wanted = page.locator("a, summary, button, input, select").count()
    reached = {}
    while len(reached) < 400:
        page.keyboard.press("Tab")
        place, tag, name, outline = page.evaluate(FOCUSED)
        if place in reached or tag == "BODY":
            break
        assert outline != "none", name
        reached[place] = (tag, name)
    assert {name for _, name in reached.values()} >= CONTROLS
    assert sum(tag not in ("DIV", "LI") for tag, _ in reached.values()) == wanted


@pytest.mark.parametrize("width", [380, 800])
def test_nothing_sticks_out_of_a_narrow_window(opened, width):
    page = opened(viewport={"width": width, "height": 800})
    page.click("summary")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide == width


def test_without_javascript_the_verdict_and_the_tables_are_there(opened):
    page = opened(java_script_enabled=False)
    assert page.get_by_role("heading", name="Attention does not explain this model.").is_visible()
    for one in ("#checks table", "#slices table", "figure svg", "#limits li"):
        assert page.locator(one).first.is_visible()
    assert page.locator("noscript p").is_visible()
    for one in CONTROLS:  # what cannot work is not offered
        assert not page.locator(f"#{one}").is_visible()


def test_on_paper_the_page_is_light_and_whole(opened):
    page = opened(color_scheme="dark", viewport=A4)
    page.click("#theme")
    page.click("#theme")  # dark by the reader's own choice
    page.emulate_media(media="print", color_scheme="dark")
    assert ground(page) > LIGHT
    assert not page.locator(".top").is_visible()
    cut = "[...document.querySelectorAll('.scroll')].filter((o) => o.scrollWidth > o.clientWidth)"
    assert page.evaluate(f"{cut}.map((o) => o.ariaLabel)") == []  # paper cannot be scrolled
    assert page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_ink_can_be_read_on_its_ground(opened, scheme):
    page = opened(color_scheme=scheme)
    page.evaluate(EVERY_DEPTH)
    found = page.evaluate(COLOURS)
    assert len(found) > 1000
    faint = {text: (ink, on) for text, ink, on in found if contrast(ink, on) < 4.5}  # level AA
    assert faint == {}


def test_contrast_has_its_known_values():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.005)
