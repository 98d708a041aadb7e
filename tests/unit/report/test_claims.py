"""The claims with their evidence."""

from dataclasses import replace
from math import nan

import pytest

from heedful.checks import checks
from heedful.core.records import CheckResult, ClaimResult, Estimate
from heedful.report.pages.run_html import render_html
from heedful.report.sections.claims import build_claims
from support.html_page import PageReader
from support.records import NASTY, records
from support.retrained_records import retrained
from support.sections import sections_of

pytest.importorskip("altair")


def by_name(one):
    return {claim.name: claim for claim in build_claims(one.verdict, one.manifest)}


def evidence(claim):
    return [
        (one.check, one.answer, [figure.name for figure in one.figures]) for one in claim.evidence
    ]


def test_leading_figures_are_measures_of_their_checks():
    for spec in checks.specs():
        known = {one.name for one in spec.measures}
        assert set(spec.leading) <= known
        assert {name for vote in spec.votes for name in vote.leading} <= known


def test_each_claim_has_the_checks_about_it():
    found = by_name(retrained())
    assert list(found) == ["used", "needed", "ranks", "exclusive", "robust"]
    assert evidence(found["used"]) == [("necessity", "", ["gain"])]
    assert evidence(found["needed"]) == [("necessity", "refutes", ["gain"])]
    assert evidence(found["ranks"]) == [
        ("guide", "no vote", ["base_minus_uniform"]),
        (
            "roar",
            "no vote",
            [
                "beyond_random (attention)",
                "score (attention)",
                "score (random)",
                "score_whole",
            ],
        ),
        (
            "off_manifold",
            "no vote",
            [
                "beyond_random (attention)",
                "comprehensiveness (attention)",
                "comprehensiveness (random)",
                "same_prediction",
            ],
        ),
    ]
    assert evidence(found["exclusive"]) == [("adversary", "no vote", ["jsd", "tvd"])]
    assert evidence(found["robust"]) == [
        ("seeds", "refutes", ["jsd_seeds", "jsd_shuffled"]),
        ("deception", "refutes", ["mass_before", "mass_after", "score_lost"]),
    ]
    assert found["robust"].evidence[0].figures[0].estimate.value == 0.15


def with_claim(one, **claims):
    return replace(one, verdict=replace(one.verdict, claims={**one.verdict.claims, **claims}))


def test_those_who_vote_come_first():
    claim = ClaimResult("refuted", "", ("guide", "seeds", "necessity"))
    found = by_name(with_claim(retrained(), ranks=claim))["ranks"]
    assert [one.check for one in found.evidence] == ["seeds", "necessity", "guide"]


def test_agreement_stands_with_its_control_and_reference():
    claim = ClaimResult("refuted", "", ("agreement", "never_run"))
    (one,) = by_name(with_claim(records(), ranks=claim))["ranks"].evidence
    assert [figure.measure.role for figure in one.figures] == ["measure", "control", "reference"]


def test_a_check_of_others_leads_with_its_first_figures():
    own = CheckResult(
        "supports", "", {name: Estimate(0.5, 0.4, 0.6, 9) for name in ("a", "b", "c")}
    )
    one = with_claim(records(), used=ClaimResult("supported", "", ("mine",)))
    one = replace(one, verdict=replace(one.verdict, checks={"mine": own}))
    assert evidence(by_name(one)["used"]) == [("mine", "supports", ["a", "b"])]
    assert '<a href="#check-mine"><bdi>mine</bdi></a>' in render_html(one)


def test_a_check_without_figures_says_why():
    one = retrained(missing={"seeds": "no training split"})
    seeds, deception = by_name(one)["robust"].evidence
    assert (seeds.figures, seeds.missing) == ((), "no training split")
    assert deception.missing == ""
    (table,) = sections_of(one)["claim-5"].tables
    assert [row[1].text for row in table.rows if row[0] and row[0].text == "seeds"] == [
        "no training split"
    ]


def test_the_section_stands_after_the_verdict_on_every_page():
    for one in (records(), retrained(), records(estimate=Estimate(nan, nan, nan, 0))):
        page = render_html(one)
        assert page.index('id="verdict"') < page.index('id="claims"') < page.index('id="checks"')
        assert len(sections_of(one)["claims"].parts) == 5
        assert ("href", "#claim-5") in PageReader(page).attributes
        assert ("id", "claim-5") in PageReader(page).attributes
    assert not any(claim.tables for claim in sections_of(one)["claims"].parts)


def test_hostile_sentences_are_only_text():
    claim = ClaimResult("supported", NASTY[0] + NASTY[2], ("necessity",))
    page = render_html(with_claim(retrained(), used=claim))
    want = PageReader(render_html(retrained()))
    found = PageReader(page)
    for tag in ("script", "img", "table"):
        assert found.elements[tag] == want.elements[tag]
    assert any(NASTY[0] + NASTY[2] in text for text in found.texts)
