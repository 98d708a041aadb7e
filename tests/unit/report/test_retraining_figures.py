"""Figures of retrained models, against numbers counted by hand."""

import re
from dataclasses import replace
from math import log

import numpy as np
import pytest
from heedful.report.figures.faithfulness import COPIED
from heedful.report.figures.retraining import CELLS, EVERYONE, around, build_retraining_figures

from heedful.report.figures.draw import build_chart, render_svg, write_figures
from heedful.report.figures.theme import GRID, INK, QUIET, SERIES
from heedful.report.sections.retraining import read_retrained_checks
from support.records import NASTY
from support.retrained_records import N, retrained

pytest.importorskip("altair")
NAMES = ["necessity", "seeds", "adversary", "guide", "deception", "roar", "off_manifold"]


def pictures(one):
    return {
        picture.name: picture
        for picture in build_retraining_figures(one, read_retrained_checks(one))
    }


def test_arms_have_their_seeds_means_and_difference():
    picture = pictures(retrained())["necessity"]
    assert picture.classes == ("own attention", "uniform")
    assert [(row["arm"], row["value"], row["lift"]) for row in picture.rows] == [
        (0, 1.0, -0.25),
        (0, 0.5, 0.25),
        (1, 0.5, -0.25),
        (1, 0.5, 0.25),
    ]
    own, uniform, gain, band = picture.marks
    assert own == {"arm": 0, "value": 0.75, "low": 0.73, "high": 0.77}
    assert uniform["value"] == 0.5
    assert gain == {
        "difference": "own attention − uniform",
        "value": 0.25,
        "low": 0.23,
        "high": 0.27,
    }
    assert band == {"margin": 0.01}
    assert picture.span == (0.45, 1.0)
    assert "Shaded: within 0.01" in picture.caption


def test_guides_have_four_arms_and_three_differences_without_a_margin():
    picture = pictures(retrained())["guide"]
    assert picture.classes == ("uniform", "its own", "under audit", "adversary")
    assert [mark["value"] for mark in picture.marks if "arm" in mark] == [0.0, 1.0, 1.0, 0.0]
    assert [mark["value"] for mark in picture.marks if "difference" in mark] == [1.0, 0.0, -0.5]
    assert not any("margin" in mark for mark in picture.marks)
    assert "Shaded" not in picture.caption


@pytest.mark.parametrize(
    ("values", "span"),
    [
        ((), (0.0, 1.0)),
        ((1.0, 1.0), (0.95, 1.0)),
        ((0.0,), (-0.05, 0.0)),
        ((0.52, 0.7), (0.5, 0.7)),
    ],
)
def test_scales_hold_what_they_show(values, span):
    assert around(values) == pytest.approx(span)


def test_distances_are_counted_by_class_source_and_largest_weight():
    picture = pictures(retrained())["seeds"]
    assert picture.classes == ("neg", "pos")
    quarter = N // 4  # of each class, half the texts have a largest weight of 0.3, half of 1
    found = {
        (mark["class"], mark["bin"], mark["source"]): mark
        for mark in picture.marks
        if "median" in mark
    }
    assert {place for _, place, _ in found} == {1, 3}
    assert {mark["n"] for mark in found.values()} == {quarter}
    assert found["neg", 1, "other seeds"]["median"] == 0.1
    assert found["pos", 3, "other seeds"]["median"] == 0.2
    assert found["pos", 3, "adversary, λ 0.001"]["high"] == 0.6
    assert [mark["shuffled"] for mark in picture.marks if "shuffled" in mark] == [0.4, 0.4]
    cells = [row for row in picture.rows if (row["class"], row["bin"]) == ("neg", 1)]
    assert len(cells) == 2 * CELLS
    (full,) = (row["x"] for row in cells if row["source"] == "other seeds" and row["height"])
    assert abs(full - 0.1) <= log(2) / CELLS / 2 + 1e-4


def test_quartiles_are_those_of_the_texts():
    one = retrained(("seeds",), classes=("a", "b", "c"))
    picture = pictures(one)["seeds"]
    assert picture.classes == (EVERYONE,)
    for mark in picture.marks:
        if "median" in mark:
            measure = "jsd_seeds" if mark["source"] == "other seeds" else "jsd_adversary"
            values = one.column("seeds", measure)[
                slice(N // 2) if mark["bin"] == 1 else slice(N // 2, N)
            ]
            want = np.quantile(values, (0.25, 0.5, 0.75))
            assert [mark["low"], mark["median"], mark["high"]] == pytest.approx(want, abs=1e-4)


def test_few_texts_have_a_median_and_no_distribution():
    many = tuple(f"class {i}" for i in range(2)) * 11 + ("rare", "rare")
    one = retrained(("seeds",), classes=many)
    assert pictures(one)["seeds"].classes == (EVERYONE,)
    few = pictures(retrained(("seeds",), classes=("often",) * 23 + ("once",)))["seeds"]
    assert [mark["n"] for mark in few.marks if mark.get("class") == "once" and "n" in mark] == [
        1,
        1,
    ]
    assert not [row for row in few.rows if row["class"] == "once"]
    assert build_chart(few).to_dict()


def test_adversaries_stand_at_their_means_beside_the_seeds():
    picture = pictures(retrained())["adversary"]
    assert picture.classes == ("from scratch", "from base")
    places = [
        (row["start"], row["weight"], row["jsd_value"], row["tvd_value"]) for row in picture.rows
    ]
    assert places == [
        ("from scratch", "0.001", pytest.approx(0.5), pytest.approx(0.2)),
        ("from scratch", "0.01", pytest.approx(0.6), pytest.approx(0.3)),
        ("from base", "0.001", pytest.approx(0.4), pytest.approx(0.01)),
    ]
    *seeds, line = picture.marks
    assert [mark["jsd"] for mark in seeds] == pytest.approx([0.1, 0.2])
    assert [mark["tvd"] for mark in seeds] == pytest.approx([0.2, 0.2])
    assert line == {"epsilon": 0.05}
    assert picture.span == (0.0, 0.3)
    newer = "epsilon = 0.08\n[settings.adversary]\nepochs = 3\n"
    assert pictures(retrained(plan=newer))["adversary"].marks[-1] == {"epsilon": 0.08}
    alone = pictures(retrained(("adversary",), plan=""))["adversary"]
    assert alone.marks == ()
    assert "Seeds" not in alone.caption


def test_hidden_words_go_from_before_to_after():
    picture = pictures(retrained())["deception"]
    assert [(row["of"], row["weight"], row["before"], row["value"]) for row in picture.rows] == [
        ("mass", "λ 0.001", 0.5, pytest.approx(0.4)),
        ("mass", "λ 0.01", 0.5, pytest.approx(0.1)),
        ("score", "λ 0.001", 1.0, 1.0),
        ("score", "λ 0.01", 1.0, 0.5),
    ]
    assert picture.marks == ({"without": 0.45},)


def test_checks_that_could_not_be_made_have_no_figure():
    assert pictures(retrained(missing=dict.fromkeys(NAMES, "no training split"))) == {}
    assert list(pictures(retrained(missing={"seeds": "no labels"}))) == [
        name for name in NAMES if name != "seeds"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_charts_use_only_colours_that_dark_repaints(name):
    hostile = retrained(classes=NASTY[:2], weights=NASTY[1:3])
    for one in (retrained(), hostile, retrained((name,), plan="")):
        svg = render_svg(pictures(one)[name])
        used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg))
        assert used <= {*SERIES, INK, QUIET, GRID, "none", "transparent"}
        assert "<script" not in svg
        assert "NaN" not in svg


def test_the_figures_are_written_too(tmp_path):
    names = [path.name for path in write_figures(retrained(), tmp_path)]
    assert names == [f"{name}.{ending}" for name in NAMES for ending in ("svg", "png")]


def test_curves_have_every_method_and_share_with_intervals_over_seeds_and_texts():
    picture = pictures(retrained())["roar"]
    found = {(row["method"], row["share"]): row for row in picture.rows}
    means = {place: row["value"] for place, row in found.items()}
    assert means == {
        ("attention", 0.1): 0.5,
        ("attention", 0.5): 0.0,
        ("random", 0.1): 1.0,
        ("random", 0.5): 0.5,
    }
    halved, sure = found["attention", 0.1], found["random", 0.1]
    assert 0.2 < halved["low"] < 0.5 < halved["high"] < 0.8
    assert sure["low"] == sure["high"] == 1.0
    assert picture.marks == ({"whole": 1.0},)
    assert picture.span == (0.0, 1.0)


def test_a_run_that_kept_no_rows_by_share_has_no_curves():
    one = retrained(("roar",))
    result = one.verdict.checks["roar"]
    bare = replace(result, by=tuple(row for row in result.by if row.setting is None))
    verdict = replace(one.verdict, checks={"roar": bare})
    assert "roar" not in pictures(replace(one, verdict=verdict))


def test_a_copy_that_knows_holes_stands_beside_the_model():
    picture = pictures(retrained())["off_manifold"]
    shown = [row for row in picture.rows if row["what"] != "its order reversed"]
    found = {(row["panel"], row["method"], row["way"]): row["value"] for row in shown}
    assert len(picture.rows) == len(shown) + 1
    beyond, lost = "lost beyond random removal", "lost without the top words"
    assert found == {
        (beyond, "attention", COPIED): pytest.approx(0.15),
        (lost, "attention", COPIED): pytest.approx(0.2),
        (lost, "random", COPIED): pytest.approx(0.1),
        (beyond, "attention", "masking"): pytest.approx(0.1),
        (lost, "attention", "masking"): pytest.approx(0.3),
    }
