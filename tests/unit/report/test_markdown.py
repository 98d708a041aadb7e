"""The section for a model card."""

from math import nan

import pytest

from heedful.core.records import Estimate
from heedful.report.pages.run_markdown import escape_markdown, render_markdown
from support.records import MEASURES, NASTY, manifest, records


def test_the_section_tells_verdict_estimates_data_and_limits():
    text = render_markdown(records())
    for part in (
        "## Does attention explain this model's predictions?",
        "**Not faithful**: attention does not rank the words by their influence.",
        r"the gradient (1): 0.410 \[0.360, 0.470\].",
        "Means over texts, 90 % intervals.",
        r"| permutation | median change of output when weights are shuffled: median\_tvd "
        r"| 0.410 \[0.360, 0.470\] | 90 |",
        r"shuffled attention and leave-one-out, τ (control): tau\_shuffled\_leave\_one\_out",
        "- Data: name: sample:movies, split: test, texts: 105, too short: 5",
        "### What this does not show",
        "- 5 texts were too short to be ranked and are left out.",
    ):
        assert part in text


@pytest.mark.parametrize("text", NASTY)
def test_other_peoples_text_stays_text_and_on_its_line(text):
    data = manifest()["data"] | {"name": text}
    changes = {"data": data, "model": {"name": text}}
    made = render_markdown(records(why=text, manifest_changes=changes))
    assert len(made.splitlines()) == len(render_markdown(records()).splitlines())
    assert "\x00" not in made
    for sign in "<|":
        assert f"x{sign}y" not in escape_markdown(f"x{sign}y")
    assert "<script" not in made.replace("\\<", "")


@pytest.mark.parametrize("name", MEASURES)
def test_one_check_alone(name):
    assert f"| {name} |" in render_markdown(records(checks=(name,), kept=False))


def test_numbers_that_do_not_exist_are_dashes():
    assert "nan" not in render_markdown(records(estimate=Estimate(nan, nan, nan, 0)))
