"""The figure of faithfulness: every method beside its controls, by every way."""

from dataclasses import replace
from math import nan

import numpy as np
import pyarrow as pa
import pytest

from heedful.checks.faithfulness.spec import PANELS, build_figures
from heedful.core.records import CheckResult
from heedful.report.figures.draw import write_figures
from heedful.report.pages.run_html import render_html
from heedful.results.tables import PartitionedTable
from support.figures import draw
from support.records import estimated, records, tidy

pytest.importorskip("altair")
CONTROLS = ("random", "uniform")


def columns(n=60, *, names=("attention", "lime"), seed=0):
    """Values per text of every measure that is drawn, by measure and method."""
    draw, found = np.random.default_rng(seed), {}
    for place, name in enumerate(names):
        found["comprehensiveness", name] = draw.normal(0.3 + place / 10, 0.1, n)
        found["sufficiency", name] = draw.normal(0.1, 0.1, n)
        found["beyond_random", name] = draw.normal(0.2, 0.1, n)
        found["worst", name] = draw.normal(-0.02, 0.05, n)
    for name in CONTROLS:
        found["comprehensiveness", name] = draw.normal(0.05, 0.1, n)
        found["sufficiency", name] = draw.normal(0.25, 0.1, n)
    return found


def holding(by_setting, *, plan=""):
    """Records of the check; plain rows have the setting None."""
    parts = [
        tidy("faithfulness", measure, values, method=method, setting=setting)
        for setting, found in by_setting.items()
        for (measure, method), values in found.items()
    ]
    usual = records(3, checks=("agreement",), kept=False)
    verdict = replace(usual.verdict, checks={"faithfulness": CheckResult("no vote", "", {})})
    tables = PartitionedTable.of(pa.concat_tables(parts))
    return estimated(replace(usual, verdict=verdict, measurements=tables, plan=plan))


def test_every_dot_is_the_mean_of_its_texts_by_its_way():
    both = {None: columns(), "masking": columns(seed=3)}
    both["masking"]["sufficiency", "lime"][:5] = nan
    (figure,) = build_figures(holding(both))
    found = {
        (row["panel"], row["group"], row["class"], row["role"]): row["value"] for row in figure.rows
    }
    assert len(found) == len(figure.rows) == 2 * (3 * 2 + 2 * 2 + 2)
    for setting, way in ((None, "deletion"), ("masking", "masking")):
        for measure, words in PANELS.items():
            for name in ("attention", "lime"):
                mean = np.nanmean(both[setting][measure, name])
                assert found[words, name, way, "method"] == pytest.approx(mean)
        lost = PANELS["comprehensiveness"]
        for name in CONTROLS:
            mean = both[setting]["comprehensiveness", name].mean()
            assert found[lost, name, way, "control"] == pytest.approx(mean)
        worst = both[setting]["worst", "lime"].mean()
        assert found[lost, "lime", way, "its order reversed"] == pytest.approx(worst)
    for row in figure.rows:
        low, high = figure.panels[0].span
        assert low <= row["low"] <= row["value"] <= row["high"] <= high
    groups = list(dict.fromkeys(row["group"] for row in figure.rows))
    assert groups == ["attention", "lime", "random", "uniform"]
    draw(figure)


def test_the_first_way_of_the_plan_names_the_plain_rows():
    plan = '[settings.faithfulness]\nways = ["masking"]\n'
    ways = {plan: "masking"}
    ways |= dict.fromkeys(("", "a = ", "[settings.faithfulness]\nways = []\n", "settings = 3"))
    for text, way in ways.items():
        (figure,) = build_figures(holding({None: columns()}, plan=text))
        assert {row["class"] for row in figure.rows} == {way or "deletion"}


def test_a_method_that_refused_is_not_drawn_and_one_text_has_no_interval():
    found = columns(1)
    for measure in ("comprehensiveness", "sufficiency", "worst"):
        found[measure, "lime"] = np.array([nan])
    del found["beyond_random", "lime"]
    (figure,) = build_figures(holding({None: found}))
    assert {row["group"] for row in figure.rows} == {"attention", *CONTROLS}
    assert all(row["low"] == row["value"] == row["high"] for row in figure.rows)
    draw(figure)


def test_without_the_check_there_is_no_figure():
    nothing = {name: np.array([nan, nan]) for name in columns(2)}
    assert build_figures(holding({None: nothing})) == []


def test_it_is_on_the_page_and_is_written(tmp_path):
    held = holding({None: columns(), "masking": columns(seed=3)})
    assert 'id="figure-faithfulness"' in render_html(held)
    names = {path.name for path in write_figures(held, tmp_path)}
    assert {"faithfulness.svg", "faithfulness.png"} <= names
