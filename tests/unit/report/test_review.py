"""The reviewer's page: data, method, results, limits, and room to sign."""

from math import nan

import pytest

from heedful.core.records import CLAIMS, ClaimResult, Estimate
from heedful.report.pages.review import (
    CONDITIONS,
    DECISIONS,
    FIELDS,
    build_review,
    render_review_html,
    render_review_markdown,
)
from heedful.report.sections.claims import UNKNOWN
from support.html_page import LOADING, PageReader
from support.records import MEASURES, NASTY, manifest, records


def nasty(text, **changes):
    data = manifest()["data"] | {"name": text, "split": text, "bad_rows": text, "sha256": text}
    told = {"data": data, "model": {"name": text, "family": text, "sha256": text}}
    told |= {"labels": [text], "versions": {text: text}, "interval": text}
    plan = "\n".join((text, "x = 1"))
    return records(20, (text, "pos"), why=text, plan=plan, manifest_changes=told, **changes)


@pytest.mark.parametrize("render", [render_review_html, render_review_markdown])
def test_it_tells_all_that_is_signed_for(render):
    made = render(records(), digest="ab12")
    for part in (
        "Does the attention of this model tell which words its predictions rest on?",
        "cd" * 32,
        "ab12",
        "1. Data and method",
        "agreement, permutation, adversarial, mechanism, erasure",
        "Attention ranks words nearer to chance.",
        UNKNOWN,
        "5 texts were too short to be ranked and are left out.",
        "2 texts were cut to the length the model can read.",
        "Not tested at all: used, needed, ranks, exclusive, robust.",
        "it was not there",
        "Conditions",
        "Signature",
        *FIELDS,
        *DECISIONS,
    ):
        assert part in made.replace("\\", "")
    assert made.count(UNKNOWN) == len(MEASURES)
    assert "0.410" in made
    assert "0.360" in made
    assert "undefined and left out: tau_gradient 10." in made.replace("\\", "")


def test_every_estimate_has_its_row():
    *_, results, _ = build_review(records())
    rows = [row[0].note or row[0].text for part in results.parts for row in part.tables[0].rows]
    assert rows == [one for measures in MEASURES.values() for one in measures]
    assert len(results.tables[0].rows) == len(CLAIMS)
    found = PageReader(render_review_html(records())).elements
    assert found["input"] == len(FIELDS) + len(DECISIONS) + CONDITIONS + 1


@pytest.mark.parametrize("render", [render_review_html, render_review_markdown])
@pytest.mark.parametrize("degree", [None, Estimate(nan, nan, nan, 0)])
def test_a_run_without_a_degree_and_an_undecided_one(render, degree):
    claims = {name: ClaimResult("undecided", "It is open.") for name in CLAIMS}
    changes = {"answer": "undecided", "instead": None, "degree": degree, "claims": claims}
    made = render(records(20, checks=("permutation",), **changes))
    assert "Not measured: the influence of words was not examined, or is undefined." in made
    assert "ndecided" in made
    assert "Instead" not in made
    assert "nan" not in made


@pytest.mark.parametrize("text", [*NASTY, "a\n# b\n- c", "    x", "```\n</pre><b>"])
def test_other_peoples_text_stays_text(text):
    plain, made = (PageReader(render_review_html(nasty(one))) for one in ("x", text))
    assert made.elements == plain.elements
    assert sorted(name for name, _ in made.attributes) == sorted(n for n, _ in plain.attributes)
    found = render_review_markdown(nasty(text))
    assert (
        len(found.splitlines())
        == len(render_review_markdown(nasty("x")).splitlines()) + len(text.splitlines()) - 1
    )
    body = found.partition("## Plan of the audit")[0]
    assert body.replace("\\<", "").count("<") == 0
    plan = found.partition("## Plan of the audit\n\n")[2]
    assert all(line.startswith("    ") for line in plan.splitlines())


def test_it_asks_nothing_of_anyone_and_has_no_script():
    page = render_review_html(records())
    found = PageReader(page)
    assert found.elements["script"] == 0
    assert not [value for name, value in found.attributes if name in LOADING and value]
    assert "@media print" in page
    assert "script-src" in page


def test_of_many_classes_some_are_named():
    changes = {"labels": [f"l{i}" for i in range(500)]}
    _, method, *_ = build_review(records(20, manifest_changes=changes))
    assert dict(method.tables[0].rows)["labels"].endswith("l19, and 480 more")
