"""Claims and retrained models in a real browser: readable in both themes, narrow and on paper."""

import pytest

from heedful.report.pages.run_html import render_html
from support.browser import COLOURS, contrast, started, visits, written
from support.records import NASTY
from support.retrained_records import retrained

browser = pytest.fixture(scope="module")(started)
address = pytest.fixture(scope="module")(written)
opened = pytest.fixture(visits)
CUT = "[...document.querySelectorAll('.scroll')].filter((o) => o.scrollWidth > o.clientWidth)"


@pytest.fixture(scope="module")
def made():
    return retrained(classes=NASTY[:2], weights=NASTY[1:3])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_ink_can_be_read_on_its_ground(opened, scheme):
    page = opened(color_scheme=scheme)
    page.click("#retraining summary")
    found = page.evaluate(COLOURS)
    faint = {text: (ink, on) for text, ink, on in found if contrast(ink, on) < 4.5}  # level AA
    assert faint == {}
    assert any("limit of epochs" in text for text, _, _ in found)


def test_nothing_sticks_out_of_a_narrow_window(opened):
    page = opened(viewport={"width": 380, "height": 800})
    page.click("#retraining summary")
    assert page.evaluate("document.documentElement.scrollWidth") == 380


def test_a_claim_leads_to_its_evidence(opened):
    page = opened()
    page.click(".claims a >> nth=4")
    assert page.url.endswith("#claim-5")
    assert page.locator("#claim-5 table").is_visible()


def test_every_figure_is_on_show(opened):
    page = opened()
    for one in page.locator("#retraining figure svg").all():
        assert one.is_visible()
    assert page.locator("#retraining figure svg").count() == 7
    assert page.locator("script").count() == 2  # the data and ours


def test_on_paper_nothing_is_cut(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(render_html(retrained()), encoding="utf-8")
    page = browser.new_page(viewport={"width": 700, "height": 1000})  # A4 between usual margins
    page.goto(path.as_uri())
    page.click("#retraining summary")
    page.emulate_media(media="print")
    assert page.evaluate(f"{CUT}.map((o) => o.ariaLabel)") == []
    page.close()
