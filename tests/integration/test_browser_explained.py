"""The page of one explanation in a real browser, and its piece in a notebook."""

import pytest

from heedful.report.pages.explanation import (
    render_explanation_fragment,
    render_explanation_html,
)
from heedful.results.explanation import MethodScores, TextExplanation
from support.browser import COLOURS, contrast, ground, started, visits
from support.records import NASTY

browser = pytest.fixture(scope="module")(started)
opened = pytest.fixture(visits)

TOKENS = (*NASTY, "x" * 400, *(f"w{number}" for number in range(32)))
DARK, LIGHT = 150, 600  # below the one, above the other
WIDTHS = "[document.documentElement.scrollWidth, innerWidth]"


def explained(tokens=TOKENS, text=None):
    rising = [number / len(tokens) for number in range(len(tokens))]
    signed = tuple((-1) ** number * one for number, one in enumerate(rising))
    methods = {
        "attention": MethodScores("attention", False, tuple(rising)),
        **{f"method_{n}": MethodScores("saliency", True, signed, "logit") for n in range(12)},
    }
    refused = {"flow": NASTY[0]}
    text = " ".join(tokens) if text is None else text
    return TextExplanation(text, NASTY[2], "word", tokens, methods, "other", 0.25, refused, True)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("explained") / "page.html"
    path.write_text(render_explanation_html(explained(), model=NASTY[1]), encoding="utf-8")
    return path.as_uri()


def test_it_opens_offline_and_hostile_text_is_only_text(browser, address):
    context = browser.new_context(offline=True)
    page, asked, wrong = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    shown = page.locator("#words").inner_text()
    counts = [page.locator(one).count() for one in ("script", "img, iframe, object, embed, link")]
    context.close()
    assert asked == [address]
    assert wrong == []
    assert counts == [1, 0]
    assert NASTY[0] in shown
    assert "{{ 7 * 7 }}" in shown


@pytest.mark.parametrize("width", [320, 400, 800, 1280])
def test_nothing_sticks_out_of_the_window(opened, width):
    page = opened(viewport={"width": width, "height": 800})
    across, window = page.evaluate(WIDTHS)
    assert across <= window


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_ink_can_be_read_on_its_ground(opened, scheme):
    page = opened(color_scheme=scheme)
    assert (ground(page) > LIGHT) == (scheme == "light")
    found = page.evaluate(COLOURS)
    assert len(found) > 1000
    assert {text: (ink, on) for text, ink, on in found if contrast(ink, on) < 4.5} == {}


def test_the_theme_is_switched(opened):
    page = opened(color_scheme="light")
    page.click("#theme")
    assert ground(page) < DARK


def test_a_word_under_the_pointer_is_marked_in_every_method(opened):
    page = opened()
    page.locator("#words .heat[data-at='12']").first.hover()
    marked = page.locator(".same")
    assert marked.count() == 13 + 1  # its words and its row of numbers
    page.locator("h1").hover()
    assert marked.count() == 0


def test_columns_are_sorted_by_the_size_of_scores_and_back(opened):
    page = opened()
    places = "[...document.querySelectorAll('.scores tbody tr')].map((row) => +row.dataset.at)"
    order = list(range(len(TOKENS)))
    heading = page.locator(".scores .name button").nth(3)
    heading.focus()
    page.keyboard.press("Enter")
    assert page.evaluate(places) == order[::-1]
    assert page.locator("[aria-sort='descending']").count() == 1
    page.keyboard.press("Enter")
    assert page.evaluate(places) == order
    page.keyboard.press("Enter")
    assert page.locator("[aria-sort]").count() == 0


def test_without_script_all_is_there(opened):
    page = opened(java_script_enabled=False)
    for one in ("h1", ".key", "#words .heat", "#numbers table", "#refused li", "#limits li"):
        assert page.locator(one).first.is_visible(), one
    assert not page.locator("#theme").is_visible()
    title = page.locator("#words [data-at='10']").first.get_attribute("title")
    assert title == "w1: 0.244, 25% of the strongest"


def test_right_to_left_texts_run_from_right_to_left(opened, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(render_explanation_html(explained(("שלום", "עולם", "טוב"))), encoding="utf-8")
    page = opened()
    page.goto(path.as_uri())
    boxes = [one.bounding_box()["x"] for one in page.locator(".words").first.locator("span").all()]
    assert boxes == sorted(boxes, reverse=True)


@pytest.mark.parametrize("dark", [False, True])
def test_a_notebook_keeps_its_own_look_and_the_words_theirs(opened, tmp_path, dark):
    fragment = render_explanation_fragment(explained()).replace("<details>", "<details open>")
    side = 'data-jp-theme-light="false" style="background: #111"' if dark else ""
    path = tmp_path / "notebook.html"
    page = opened(viewport={"width": 700, "height": 800})
    head = "<!doctype html><meta charset=utf-8><p id=own>mine"
    path.write_text(f"{head}<div {side}>{fragment}</div>", encoding="utf-8")
    page.goto(path.as_uri())
    across, window = page.evaluate(WIDTHS)
    assert across <= window
    assert page.evaluate("getComputedStyle(own).color") == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).margin") == "8px"
    inside = [one for one in page.evaluate(COLOURS) if one[0] != "mine"]
    faint = {text: (ink, on) for text, ink, on in inside if contrast(ink, on) < 4.5}
    assert faint == {}
    paper = [on for text, _, on in inside if text == "attention"]
    assert all((sum(on) < DARK) == dark for on in paper)
