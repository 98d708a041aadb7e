"""The figure of faithfulness: every method beside its controls, by every way."""

import re
from dataclasses import replace
from math import nan

import numpy as np
import pyarrow as pa
import pytest

from heedful.core.records import CheckResult
from heedful.numerics.stats.bootstrap import estimate_means
from heedful.report.figures.draw import build_chart, render_svg, write_figures
from heedful.report.figures.faithfulness import PANELS, build_removal_figures, first_way
from heedful.report.figures.theme import GRID, INK, QUIET, SERIES
from heedful.report.pages.run_html import render_html
from heedful.results.tables import PartitionedTable, gather_settings, gather_settings_of_measures

from .made_up import records

pytest.importorskip("altair")
CONTROLS = ("random", "uniform")


def columns(n=60, *, names=("attention", "lime"), seed=0):
    """Values per text of every measure that is drawn."""
    draw, found = np.random.default_rng(seed), {}
    for place, name in enumerate(names):
        found[f"comprehensiveness_{name}"] = draw.normal(0.3 + place / 10, 0.1, n)
        found[f"sufficiency_{name}"] = draw.normal(0.1, 0.1, n)
        found[f"beyond_random_{name}"] = draw.normal(0.2, 0.1, n)
        found[f"worst_{name}"] = draw.normal(-0.02, 0.05, n)
    for name in CONTROLS:
        found[f"comprehensiveness_{name}"] = draw.normal(0.05, 0.1, n)
        found[f"sufficiency_{name}"] = draw.normal(0.25, 0.1, n)
    return found


def holding(by_setting, *, plan=""):
    """Records of the check; plain rows have the setting None."""
    parts = [
        pa.table(
            {
                "instance": pa.array(np.arange(len(values))),
                "predicted": pa.array(["pos"] * len(values)),
                "label": pa.array(["pos"] * len(values)),
                "check": pa.array(["faithfulness"] * len(values)),
                "measure": pa.array([measure] * len(values)),
                "setting": pa.array([setting] * len(values), pa.string()),
                "value": pa.array(values, from_pandas=True),
            }
        )
        for setting, found in by_setting.items()
        for measure, values in found.items()
    ]
    usual = records(3, checks=("agreement",), kept=False)
    estimates = estimate_means(by_setting[None])
    checks = {"faithfulness": CheckResult("no vote", "", estimates)}
    verdict = replace(usual.verdict, checks=checks)
    tables = PartitionedTable.of(pa.concat_tables(parts))
    return replace(usual, verdict=verdict, measurements=tables, plan=plan)


def test_every_dot_is_the_mean_of_its_texts_by_its_way():
    both = {None: columns(), "masking": columns(seed=3)}
    both["masking"]["sufficiency_lime"][:5] = nan
    (picture,) = build_removal_figures(holding(both))
    found = {
        (row["panel"], row["method"], row["way"], row["what"]): row["value"] for row in picture.rows
    }
    assert len(found) == len(picture.rows) == 2 * (3 * 2 + 2 * 2 + 2)
    for setting, way in ((None, "deletion"), ("masking", "masking")):
        for measure, words in PANELS.items():
            for name in ("attention", "lime"):
                mean = np.nanmean(both[setting][f"{measure}_{name}"])
                assert found[words, name, way, "a method"] == pytest.approx(mean)
        lost = PANELS["comprehensiveness"]
        for name in CONTROLS:
            mean = both[setting][f"comprehensiveness_{name}"].mean()
            assert found[lost, name, way, "control"] == pytest.approx(mean)
        worst = both[setting]["worst_lime"].mean()
        assert found[lost, "lime", way, "its order from the end"] == pytest.approx(worst)
    for row in picture.rows:
        assert picture.span[0] <= row["low"] <= row["value"] <= row["high"] <= picture.span[1]
    assert picture.classes == ("attention", "lime", "random", "uniform")
    assert "Words go by deletion and by masking." in picture.caption


def test_the_first_way_of_the_plan_names_the_plain_rows():
    plan = '[settings.faithfulness]\nways = ["masking"]\n'
    assert first_way(plan) == "masking"
    for damaged in ("", "a = ", "[settings.faithfulness]\nways = []\n", "settings = 3"):
        assert first_way(damaged) == "deletion"
    (picture,) = build_removal_figures(holding({None: columns()}, plan=plan))
    assert {row["way"] for row in picture.rows} == {"masking"}


def test_a_method_that_refused_is_not_drawn_and_one_text_has_no_interval():
    found = columns(1)
    for measure in ("comprehensiveness", "sufficiency", "worst"):
        found[f"{measure}_lime"] = np.array([nan])
    del found["beyond_random_lime"]
    (picture,) = build_removal_figures(holding({None: found}))
    assert {row["method"] for row in picture.rows} == {"attention", *CONTROLS}
    assert all(row["low"] == row["value"] == row["high"] for row in picture.rows)
    assert "NaN" not in render_svg(picture)


def test_without_the_check_there_is_no_figure():
    assert build_removal_figures(records(checks=("agreement",))) == ()
    nothing = {name: np.array([nan, nan]) for name in columns(2)}
    assert build_removal_figures(holding({None: nothing})) == ()


def test_it_stands_on_the_page_and_is_written_in_colours_the_dark_page_knows(tmp_path):
    held = holding({None: columns(), "masking": columns(seed=3)})
    (picture,) = build_removal_figures(held)
    used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', render_svg(picture)))
    assert used <= {*SERIES, INK, QUIET, GRID, "none", "transparent"}
    assert set(SERIES[:2]) <= used
    assert build_chart(picture).to_dict()
    assert 'id="figure-faithfulness"' in render_html(held)
    names = {path.name for path in write_figures(held, tmp_path)}
    assert {"faithfulness.svg", "faithfulness.png"} <= names


def test_several_measures_are_gathered_as_each_alone():
    held = holding({None: columns(5), "masking": columns(5, seed=1), "other": columns(5, seed=2)})
    measures = ("worst_lime", "sufficiency_random", "nobody")
    together = gather_settings_of_measures(held.measurements, "faithfulness", measures)
    for measure in measures:
        alone = gather_settings(held.measurements, "faithfulness", measure)
        assert set(together[measure]) == set(alone)
        for setting, values in alone.items():
            assert np.array_equal(together[measure][setting], values)
    assert set(together["worst_lime"]) == {"masking", "other"}
    assert together["nobody"] == {}
