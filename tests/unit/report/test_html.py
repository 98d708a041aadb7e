"""The HTML page: whole, small, offline, and nothing in it that came from the data but text."""

import json
import re
import subprocess
import sys
from math import nan

import pytest

from heedful.core.errors import RunError
from heedful.core.records import Estimate
from heedful.report.pages.run_html import render_html
from heedful.report.pages.section_render import script_json
from heedful.report.pages.self_contained_html import TEMPLATES
from support.html_page import LOADING, PageReader
from support.records import MEASURES, NASTY, manifest, records

pytest.importorskip("altair")


def nasty(words=("a", "fine", "film"), *, classes=("neg", "pos"), text="x", **settings):
    data = manifest()["data"] | {"name": text, "bad_rows": text}
    changes = {"model": {"name": text, "family": text, "sha256": text}, "data": data}
    changes |= {"labels": list(classes), "versions": {text: text}}
    return records(
        60, classes, vocabulary=words, manifest_changes=changes, plan=text, why=text, **settings
    )


@pytest.fixture(scope="module")
def plain():
    return render_html(nasty())


def test_the_page_has_all_its_sections(plain):
    for section in ("verdict", "checks", "figures", "sentences", "slices", "limits", "method"):
        assert f'id="{section}"' in plain
    assert "Attention does not explain this model." in plain
    assert plain.count("<figure ") == 9
    assert "one_hot_gradient ranks words better" in plain


@pytest.mark.parametrize("classes", [NASTY[:2], NASTY[2:4], NASTY[5:7]])
def test_no_element_and_no_attribute_comes_from_the_data(plain, classes):
    want = PageReader(plain)
    page = render_html(nasty(NASTY, classes=classes, text="".join(NASTY)))
    found = PageReader(page)
    drawn = {"path", "g", "rect", "line", "text"}  # their number follows the values drawn
    assert {tag: n for tag, n in found.elements.items() if tag not in drawn} == {
        tag: n for tag, n in want.elements.items() if tag not in drawn
    }
    assert {name for name, _ in found.attributes} == {name for name, _ in want.attributes}
    assert found.scripts[1] == want.scripts[1]  # the first is data, the second ours
    assert not set(page) & set("\x00\x1b\u202e\u2028")
    shown = {word for one in json.loads(found.scripts[0])["sentences"] for word in one["words"]}
    assert {"<script>alert(1)</script>", "👩\u200d👧 naïve", "a\ufffdb\ufffd[2J"} <= shown


def test_texts_are_shown_as_they_are():
    text = "<script>alert(1)</script>"
    found = PageReader(render_html(nasty(text=text)))
    assert any(text in shown for shown in found.texts)
    assert f"Does attention explain {text}?" in "".join(found.texts)


def test_half_a_sign_in_a_name_can_still_be_written():
    name = {"name": "half \ud800 a sign"}
    assert render_html(records(manifest_changes={"model": name})).encode()


def test_nothing_is_requested_from_anywhere(plain):
    for page in (plain, render_html(nasty(text=NASTY[1], classes=NASTY[1:3]))):
        for name, value in PageReader(page).attributes:
            if name in LOADING:
                assert name == "href"
                assert value.startswith("#")
            assert "url(" not in (value or "") or name == "aria-label" or "url(#" in value
        ours = "".join(
            path.read_text() for kind in ("css", "js") for path in TEMPLATES.glob(f"*.{kind}")
        )
        for way in ("@import", "url(", "http:", "https:", "fetch(", "XMLHttp", "import(", "eval("):
            assert way not in ours
        namespaces = set(re.findall(r'xmlns(?::\w+)?="([^"]*)"', page))
        assert namespaces == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_the_policy_lets_only_our_own_style_and_script_work(plain):
    from base64 import b64encode
    from hashlib import sha256

    (policy,) = (v for name, v in PageReader(plain).attributes if name == "content" and "src" in v)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    style = re.search(r"<style>(.*?)</style>", plain, re.DOTALL)[1]
    script = re.search(r"<script>(.*?)</script>", plain, re.DOTALL)[1]
    for inside in (style, script):
        assert b64encode(sha256(inside.encode()).digest()).decode() in policy


@pytest.mark.parametrize("text", [*NASTY, "\u2028\u2029&<>"])
def test_json_in_a_script_is_the_same_value_without_a_sign_of_markup(text):
    made = script_json({"text": text})
    assert json.loads(made) == {"text": text}
    assert not set(made) & set("<>&\u2028\u2029")


def test_twenty_thousand_long_texts_stay_under_five_megabytes():
    page = render_html(records(20_000, words=250, vocabulary=("understanding", "extraordinary")))
    assert len(page.encode()) < 5_000_000


def test_the_same_records_give_the_same_bytes(plain):
    assert render_html(nasty()) == plain


def test_without_words_the_page_says_so():
    page = render_html(records(kept=False))
    assert "kept no words" in page
    assert 'id="search"' not in page


@pytest.mark.parametrize("name", MEASURES)
def test_one_check_alone(name):
    assert f'id="check-{name}"' in render_html(records(checks=(name,)))


@pytest.mark.parametrize("count", [1, 3, 12])
def test_any_number_of_classes(count):
    page = render_html(records(classes=tuple(f"class {i}" for i in range(count))))
    assert "class 0" in page


def test_numbers_that_do_not_exist_are_dashes():
    page = render_html(records(estimate=Estimate(nan, nan, nan, 0)))
    assert not re.search(r"\bnan\b", page, re.IGNORECASE)
    assert 'class="ruler"' not in page


@pytest.mark.parametrize("answer", ["faithful", "unfaithful", "undecided"])
def test_every_answer_has_its_card(answer):
    page = render_html(records(answer=answer, instead=None, degree=None))
    assert f'class="card {answer}"' in page
    assert f".card.{answer}" in page


def test_a_missing_library_is_named_with_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(RunError, match=r"jinja2: pip install 'heedful\[report\]'"):
        render_html(records())


def test_a_page_is_made_without_torch():
    code = (
        "import sys; sys.path.insert(0, 'tests');"
        "from support.records import records;"
        "from heedful.report.pages.run_html import render_html;"
        "from heedful.report.pages.run_markdown import render_markdown;"
        "one = records(); render_html(one); render_markdown(one);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
