"""The reviewer's page and the page of a comparison in a real browser, on screens and on paper."""

import pytest

import heedful
from heedful.report.pages.review import render_review_html
from support.browser import COLOURS, contrast, made_up, started, visits
from support.records import NASTY
from support.run_folders import taus, write_run

browser = pytest.fixture(scope="module")(started)
opened = pytest.fixture(visits)
A4 = {"width": 680, "height": 960}
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module", params=["review", "compared"])
def address(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    path = folder / "page.html"
    if request.param == "review":
        path.write_text(render_review_html(made_up(), digest="ab" * 32), encoding="utf-8")
        return path.as_uri()
    pytest.importorskip("altair")
    sides = [
        write_run(folder / name, taus(30, seed=i, degree=0.3 + i / 2), model=NASTY[i])
        for i, name in enumerate(("one <b>", "two" * 20))
    ]
    heedful.compare(*sides).require("degree>=-0.05").to_html(path)
    return path.as_uri()


def test_it_opens_offline_and_asks_nothing_of_anyone(browser, address):
    context = browser.new_context(offline=True)
    page, asked, wrong = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: wrong.append(message.text))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    context.close()
    assert (asked, wrong) == ([address], [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(opened, scheme):
    page = opened(color_scheme=scheme)
    for text, ink, ground in page.evaluate(COLOURS):
        assert contrast(ink, ground) >= 4.4, text


@pytest.mark.parametrize("width", [360, 760, 1300])
def test_nothing_is_cut_off_at_the_side(opened, width):
    page = opened(viewport={"width": width, "height": 900})
    assert page.evaluate(WIDE) == 0


def test_it_fits_paper(opened):
    page = opened(viewport=A4)
    page.emulate_media(media="print")
    assert page.evaluate(WIDE) <= 0


def test_sign_off_can_be_filled_in(opened, address):
    page = opened()
    if page.locator("#sign-off").count():
        page.get_by_label("Reviewer").fill("A. Person")
        page.get_by_label("accepted with the conditions below").check()
        page.get_by_label("Conditions, line 1").fill("only for short texts")
        assert page.get_by_label("Reviewer").input_value() == "A. Person"
    assert page.locator("img, iframe, object, embed, link").count() == 0
