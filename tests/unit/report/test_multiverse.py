"""Powers and other choices on the page: told, marked where they differ, and escaped."""

from dataclasses import replace

import pytest

from heedful.core.records import CheckResult, ClaimResult, Verdict
from heedful.report.pages.run_html import render_html
from heedful.report.pages.run_markdown import render_markdown
from heedful.report.sections.claims import describe_check_power, describe_check_powers
from heedful.report.sections.multiverse import build_choices, describe_choices
from support.records import records
from support.sections import names_of

ROWS = (
    {"choice": "ε = 0.01", "used": "supported", "ranks": "supported"},
    {"choice": "<b>other</b>", "used": "refuted", "ranks": "refuted"},
)
CHECK = CheckResult("supports", "", {}, power={"ranks": {"description": "misses <i>3%</i>"}})


def verdict(rows=ROWS):
    claims = {
        "used": ClaimResult("refuted", "", ()),
        "ranks": ClaimResult("supported", "", ()),
        "robust": ClaimResult("not tested", "", ()),
    }
    return Verdict("faithful", "", None, None, claims, {}, rows)


def test_the_table_has_the_claims_that_were_examined_and_marks_what_differs():
    found = build_choices(verdict())
    (table,) = found.tables
    assert table.head == ("choice", "used", "ranks")
    assert names_of(table) == ["as in the verdict", "ε = 0.01", "<b>other</b>"]
    marks = [[cell.strong for cell in row[1:]] for row in table.rows]
    assert marks == [[False, False], [True, False], [False, True]]
    assert found.words[-1] == describe_choices(verdict())
    assert describe_choices(verdict()) == (
        "1 of 2 other choices leave the answer on ranks as it is; it changes with: <b>other</b>."
    )
    assert build_choices(verdict(rows=())) is None
    assert describe_choices(verdict(rows=())) == ""


def test_power_in_words():
    assert describe_check_power(CHECK, "ranks") == "misses <i>3%</i>"
    assert describe_check_power(CHECK, "used") == "power not measured"
    assert describe_check_powers(CHECK) == "ranks: misses <i>3%</i>"
    assert describe_check_powers(CheckResult("supports", "", {})) == "power not measured"


@pytest.fixture
def changed():
    made = records()
    checks = {
        name: replace(one, power={"ranks": {"description": "misses <i>3%</i>"}})
        for name, one in made.verdict.checks.items()
    }
    claims = {**made.verdict.claims, "ranks": ClaimResult("supported", "", ("agreement",))}
    told = replace(made.verdict, multiverse=ROWS, checks=checks, claims=claims)
    return replace(made, verdict=told)


def test_both_stand_on_the_page_and_are_escaped(changed):
    page = render_html(changed)
    assert "Does the verdict depend on analysis choices?" in page
    assert "&lt;b&gt;other&lt;/b&gt;" in page
    assert "misses &lt;i&gt;3%&lt;/i&gt;" in page
    assert "<b>other</b>" not in page
    text = render_markdown(changed)
    assert "### Does the verdict depend on analysis choices?" in text
    assert "\\<b\\>other\\</b\\>" in text
    assert "misses \\<i\\>3%" in text
