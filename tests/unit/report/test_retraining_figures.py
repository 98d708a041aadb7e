"""Figures of retrained models, against numbers counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from heedful.report.figures.draw import write_figures
from heedful.results.figure_data import rounded_span
from support.figures import draw, figures_of
from support.records import NASTY
from support.retrained_records import N, retrained

pytest.importorskip("altair")
NAMES = ["necessity", "seeds", "guide", "adversary", "deception", "roar", "off_manifold"]
COPY = "masking, in the copy"


def by_panel(rows):
    """Rows, panel by panel."""
    return [
        [row for row in rows if row["panel"] == panel]
        for panel in dict.fromkeys(row["panel"] for row in rows)
    ]


def test_arms_have_their_seeds_means_and_difference():
    figure = figures_of(retrained())["necessity"]
    (own, uniform), (gain,) = by_panel(figure.rows)
    assert (own["value"], own["low"], own["high"]) == (0.75, 0.73, 0.77)
    assert (uniform["value"], uniform["label"]) == (0.5, "0.500")
    assert (gain["value"], gain["low"], gain["high"]) == (0.25, 0.23, 0.27)
    dots, (band,) = by_panel(figure.marks)
    assert [(dot["group"], dot["value"], dot["lift"]) for dot in dots] == [
        (own["group"], 1.0, -0.25),
        (own["group"], 0.5, 0.25),
        (uniform["group"], 0.5, -0.25),
        (uniform["group"], 0.5, 0.25),
    ]
    assert (band["from"], band["to"]) == (-0.01, 0.01)
    assert figure.panels[0].span == (0.45, 1.0)
    assert "within 0.01" in figure.caption


def test_guided_models_have_four_arms_and_three_differences_without_a_margin():
    figure = figures_of(retrained())["guide"]
    arms, differences = by_panel(figure.rows)
    assert [row["value"] for row in arms] == [0.0, 1.0, 1.0, 0.0]
    assert [row["value"] for row in differences] == [1.0, 0.0, -0.5]
    assert not any("from" in mark for mark in figure.marks)


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
    assert rounded_span(values) == pytest.approx(span)


def test_distances_are_counted_by_class_source_and_largest_weight():
    figure = figures_of(retrained())["seeds"]
    quarter = N // 4  # of each class, half the texts have a largest weight of 0.3, half of 1
    neg, pos = (panel.x for panel in figure.panels)
    assert ("neg" in neg, "pos" in pos) == (True, True)
    found = {(row["panel"], row["group"][-5:], row["class"]): row for row in figure.rows}
    assert {group for _, group, _ in found} == {"25–.5", ".75–1"}
    assert len(found) == len(figure.rows) == 8
    assert {row["label"] for row in figure.rows} == {f"n = {quarter}"}
    assert found[neg, "25–.5", "other seeds"]["value"] == 0.1
    assert found[pos, ".75–1", "other seeds"]["value"] == 0.2
    assert found[pos, ".75–1", "adversary, λ 0.001"]["high"] == 0.6
    assert [mark["rule"] for mark in figure.marks] == pytest.approx([0.4, 0.4])


def test_percentiles_are_those_of_the_texts():
    one = retrained(("seeds",), classes=("a", "b", "c"))
    figure = figures_of(one)["seeds"]
    assert len(figure.panels) == 1
    for row in figure.rows:
        measure = "jsd_seeds" if row["class"] == "other seeds" else "jsd_adversary"
        half = slice(N // 2) if row["group"].endswith("25–.5") else slice(N // 2, N)
        want = np.percentile(one.column("seeds", measure)[half], (10, 25, 50, 75, 90))
        found = [row[end] for end in ("low", "start", "value", "end", "high")]
        assert found == pytest.approx(want, abs=1e-4)


def test_a_class_of_one_text_is_drawn():
    figure = figures_of(retrained(("seeds",), classes=("often",) * 23 + ("once",)))["seeds"]
    once = [row for row in figure.rows if "once" in row["panel"]]
    assert [row["label"] for row in once] == ["n = 1", "n = 1"]
    draw(figure)


def test_adversaries_are_at_their_means_beside_the_seeds():
    figure = figures_of(retrained())["adversary"]
    places = [(row["class"], row["label"], row["x"], row["value"]) for row in figure.rows]
    assert places == [
        ("from scratch", "0.001", pytest.approx(0.5), pytest.approx(0.2)),
        ("from scratch", "0.01", pytest.approx(0.6), pytest.approx(0.3)),
        ("from base", "0.001", pytest.approx(0.4), pytest.approx(0.01)),
    ]
    *seeds, line = figure.marks
    assert [mark["x"] for mark in seeds] == pytest.approx([0.1, 0.2])
    assert [mark["value"] for mark in seeds] == pytest.approx([0.2, 0.2])
    assert line["rule"] == 0.05
    assert figure.y_span[1] == 0.3
    newer = "epsilon = 0.08\n[settings.adversary]\nepochs = 3\n"
    assert figures_of(retrained(plan=newer))["adversary"].marks[-1]["rule"] == 0.08
    alone = figures_of(retrained(("adversary",), plan=""))["adversary"]
    assert not alone.marks
    assert "Seeds" not in alone.caption


def test_hidden_words_go_from_before_to_after():
    figure = figures_of(retrained())["deception"]
    after = [row for row in figure.rows if row["role"] == "after"]
    assert [(row["group"], row["before"], row["value"]) for row in after] == [
        ("λ 0.001", 0.5, pytest.approx(0.4)),
        ("λ 0.01", 0.5, pytest.approx(0.1)),
        ("λ 0.001", 1.0, 1.0),
        ("λ 0.01", 1.0, 0.5),
    ]
    before = [row["value"] for row in figure.rows if row["role"] == "before"]
    assert before == [row["before"] for row in after]
    assert [mark["rule"] for mark in figure.marks] == [0.45]


def test_checks_without_values_have_no_figure():
    assert figures_of(retrained(missing=dict.fromkeys(NAMES, "no training split"))) == {}
    found = figures_of(retrained(missing={"seeds": "no labels"}))
    assert list(found) == [name for name in NAMES if name != "seeds"]


@pytest.mark.parametrize("name", NAMES)
def test_charts_use_only_colours_that_dark_repaints(name):
    hostile = retrained(classes=NASTY[:2], weights=NASTY[1:3])
    for one in (retrained(), hostile, retrained((name,), plan="")):
        assert "<script" not in draw(figures_of(one)[name])


def test_the_figures_are_written_too(tmp_path):
    names = [path.name for path in write_figures(retrained(), tmp_path)]
    assert names == [f"{name}.{ending}" for name in NAMES for ending in ("svg", "png")]


def test_curves_have_every_method_and_share_with_intervals_over_seeds_and_texts():
    picture = figures_of(retrained())["roar"]
    found = {(row["class"], row["x"]): row for row in picture.rows}
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
    assert [mark["rule"] for mark in picture.marks] == [1.0]
    assert picture.y_span == (0.0, 1.0)


def test_a_run_that_kept_no_rows_by_share_has_no_curves():
    one = retrained(("roar",))
    result = one.verdict.checks["roar"]
    bare = replace(result, by=tuple(row for row in result.by if row.setting is None))
    verdict = replace(one.verdict, checks={"roar": bare})
    assert "roar" not in figures_of(replace(one, verdict=verdict))


def test_a_copy_that_knows_holes_stands_beside_the_model():
    picture = figures_of(retrained())["off_manifold"]
    shown = [row for row in picture.rows if row["role"] != "its order reversed"]
    found = {(row["panel"], row["group"], row["class"]): row["value"] for row in shown}
    assert len(picture.rows) == len(shown) + 1
    beyond, lost = "lost beyond random removal", "lost without the top words"
    assert found == {
        (beyond, "attention", COPY): pytest.approx(0.15),
        (lost, "attention", COPY): pytest.approx(0.2),
        (lost, "random", COPY): pytest.approx(0.1),
        (beyond, "attention", "masking"): pytest.approx(0.1),
        (lost, "attention", "masking"): pytest.approx(0.3),
    }
