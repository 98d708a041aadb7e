"""The section for a model card."""

from math import nan

import pytest

from heedful.core.records import Estimate
from heedful.report.pages.run_html import render_html
from heedful.report.pages.run_markdown import render_markdown
from heedful.report.pages.section_render import escape_markdown
from support.records import MEASURES, NASTY, manifest, records


def test_the_section_tells_verdict_estimates_data_and_limits():
    text = render_markdown(records())
    for part in (
        "## Does attention explain this model's predictions?",
        "**Attention does not explain this model.**",
        r"the gradient (1): 0.410 \[0.360, 0.470\].",
        "Means over texts with 90 % intervals.",
        r"| median change of output when weights are shuffled ↑: median\_tvd "
        r"| 0.410 \[0.360, 0.470\], 10 undefined | 90 |",
        "| measure | mean | n |\n| --- | --- | ---: |",
        r"shuffled attention and leave-one-out, τ (control): tau\_shuffled\_leave\_one\_out",
        "| name | sample:movies |\n| split | test |\n| texts | 105 |\n| too short | 5 |",
        "### What this does not show",
        "- 5 texts were too short to be ranked and are left out.",
    ):
        assert part in text


def test_claims_come_first_and_estimates_by_class_are_left_to_the_page():
    made = records()
    text = render_markdown(made)
    head = text[: text.index("\n### ")]
    assert [line for line in head.splitlines() if line.startswith("|")][:1] == [
        "| claim | answer | meaning |"
    ]
    for name, claim in made.verdict.claims.items():
        assert f"| {name} | {claim.answer} |" in head
    assert "By predicted class" in render_html(made)
    assert "By predicted class" not in text


def with_text(text):
    data = manifest()["data"] | {"name": text}
    return render_markdown(
        records(why=text, manifest_changes={"data": data, "model": {"name": text}})
    )


@pytest.mark.parametrize("text", NASTY)
def test_other_peoples_text_stays_text_and_on_its_line(text):
    made, plain = map(with_text, (text, "plain"))
    assert len(made.splitlines()) == len(plain.splitlines())
    assert "\x00" not in made
    for sign in "<|":
        assert f"x{sign}y" not in escape_markdown(f"x{sign}y")
    assert "<script" not in made.replace("\\<", "")


def test_the_plan_is_code():
    made = render_markdown(records(plan="a = 1\n<script>\n# b"))
    inside = made.partition("<summary>The plan of this run</summary>")[2].partition("</details>")[0]
    assert inside.strip("\n").splitlines() == ["    a = 1", "    <script>", "    # b"]


@pytest.mark.parametrize("name", MEASURES)
def test_one_check_alone(name):
    assert f"#### {name}: " in render_markdown(records(checks=(name,), kept=False))


def test_numbers_that_do_not_exist_are_dashes():
    assert "nan" not in render_markdown(records(estimate=Estimate(nan, nan, nan, 0)))
