"""Layers and heads on the page and in figures, against plain recounts of the records."""

import re
from dataclasses import replace
from io import StringIO
from itertools import product
from math import nan

import numpy as np
import pyarrow.compute as pc
import pytest
from rich.console import Console

from heedful.checks.attention.agreement.sections import describe_layers
from heedful.report.figures.draw import build_chart, write_figures
from heedful.report.pages.run_html import render_html
from heedful.report.pages.run_markdown import render_markdown
from heedful.report.pages.section_render import STEPS, heat_class
from heedful.report.pages.self_contained_html import TEMPLATES, join_assets
from heedful.report.terminal.verdict_card import print_card
from heedful.results.audited_attention import read_audited_attention
from heedful.results.run_records import RunRecords
from heedful.results.tables import PartitionedTable
from support.figures import draw, figures_of
from support.html_page import PageReader
from support.records import NASTY, estimated, records, traced, transformer
from support.sections import names_of, page_figures, sections_of, values_of

pytest.importorskip("altair")


def mean(one: RunRecords, measure: str, layer: int, head: int | None = None):
    rows, wanted = one.measurements.whole().to_pylist(), (measure, layer, head)
    found = [r["value"] for r in rows if (r["measure"], r["layer"], r["head"]) == wanted]
    return np.mean([value for value in found if value is not None])


def pictures(one):
    return {name: one for name, one in figures_of(one).items() if name.startswith("layers_")}


def card(one):
    console = Console(file=StringIO(), width=100)
    print_card(one.verdict, one.manifest, details=True, console=console)
    return console.file.getvalue()


def again(one, table):
    """The same records with another table, estimated anew."""
    checks = {
        name: replace(result, by=tuple(row for row in result.by if row.layer is None))
        for name, result in one.verdict.checks.items()
    }
    verdict = replace(one.verdict, checks=checks)
    return estimated(replace(one, verdict=verdict, measurements=PartitionedTable.of(table)))


def undefined(one, **place):
    """The same records without a value at that place; at every layer if there is none."""
    table = one.measurements.whole()
    rows = table.to_pylist()
    for row in rows:
        if row["layer"] is not None and all(row[name] == at for name, at in place.items()):
            row["value"] = None
    return again(one, type(table).from_pylist(rows, table.schema))


def told(one):
    """What the page says of the layers."""
    return " ".join(describe_layers(one))


def table_of(one, name="layers-numbers"):
    (table,) = sections_of(one)[name].tables
    return table


def test_every_layer_and_head_has_its_mean_lower_to_higher():
    one = transformer(layers=12, heads=3)
    numbers, heads = table_of(one), table_of(one, "layers_heads")
    assert names_of(numbers) == names_of(heads) == [f"layer {layer}" for layer in range(12)]
    assert heads.head == ("head", "0", "1", "2")
    assert [row[0].answer for row in numbers.rows] == [""] * 11 + ["under audit"]
    for layer, (_, tau, mass, texts) in enumerate(numbers.rows):
        assert tau.estimate.value == pytest.approx(mean(one, "tau_leave_one_out", layer))
        assert mass.estimate.value == pytest.approx(mean(one, "word_mass", layer))
        assert tau.estimate.low < tau.estimate.value < tau.estimate.high
        assert texts == "30"
    cells = [cell for row in heads.rows for cell in row[1:]]
    strongest = max(abs(cell.estimate.value) for cell in cells)
    for cell, (layer, head) in zip(cells, product(range(12), range(3)), strict=True):
        value = mean(one, "tau_leave_one_out", layer, head)
        assert (cell.estimate.value, cell.estimate.n) == (pytest.approx(value), 30)
        assert cell.heat == pytest.approx(value / strongest)


def with_traced(n=30, layers=3):
    """A transformer's records with contributions to its layers."""
    one = transformer(n, layers=layers, checks=("agreement", "mechanism"))
    return estimated(one, traced(n, layers))


def test_contributions_stand_beside_agreement_in_every_layer():
    one = with_traced()
    table = table_of(one)
    assert len(table.head) == 7
    for place, name in enumerate(("weighting", "unrolled", "mixing"), 3):
        wanted = [mean(one, f"tau_{name}", layer) for layer in range(3)]
        assert values_of(table, place) == pytest.approx(wanted)
    assert "Weights agree most with what tokens contribute to their layer in layer 0, τ 0." in told(
        one
    )
    assert told(one).endswith("].")
    assert ", least in layer 2, τ 0." in told(one)
    assert len(table_of(transformer()).head) == 4
    assert "contribute" not in told(transformer())


def test_contributions_have_a_chart_of_three_lines_and_their_columns():
    one = with_traced(layers=4)
    picture = pictures(one)["layers_mechanism"]
    assert picture.kind == "lines"
    assert len(picture.rows) == 12
    assert [(one["from"], one["to"]) for one in picture.marks] == [(2.5, 3.5)]
    low, high = picture.y_span
    assert all(low <= row["low"] < row["high"] <= high for row in picture.rows)
    svg = draw(picture)
    assert svg.count(">under audit<") == 1
    assert all(f">{row['class']}<" in svg for row in picture.rows)
    page, plain = render_html(one), render_html(transformer())
    assert page.count('<figure class="lines"') == 3
    assert "τ traced to the words" in page
    assert "layers_mechanism" not in plain
    assert "traced to the words" not in plain


def test_the_level_of_the_intervals_is_that_of_the_run():
    wide, narrow = (
        table_of(transformer(manifest_changes={"level": level})).rows[0][1].estimate
        for level in (0.99, 0.5)
    )
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_the_summary_names_the_ends_the_audited_layer_and_the_heads():
    words = told(transformer(manifest_changes={"attention": "layer 1, head 2"}))
    assert words.startswith("Highest in layer 2, τ 0.")
    assert "; lowest in layer 0, τ −0." in words
    assert "; in the audited layer 1, τ " in words
    assert "-" not in words
    # of layers 0 and 2, two heads each on either side; those of layer 1 are near 0
    counts = re.search(r"12 heads, (\d+) .* above 0 and (\d+) below", words).groups()
    above, below = map(int, counts)
    assert 4 <= above <= 6
    assert 4 <= below <= 6
    assert "by chance alone about 0.6 would" in words  # 12 heads, 90 % intervals


@pytest.mark.parametrize(
    ("words", "layer", "head", "position"),
    [
        ("layer 5, mean over heads, first position", 5, None, "first"),
        ("layer 0, head 11, last position", 0, 11, "last"),
        ("mean over layers, mean over heads, mean over positions", None, None, None),
    ],
)
def test_the_manifest_says_what_was_audited(words, layer, head, position):
    found = read_audited_attention({"attention_path": "tap", "attention": words})
    assert (found.layer, found.head, found.position) == (layer, head, position)
    limits = " ".join(found.limits)
    assert words in limits
    assert ("Heads are averaged" in limits) == ("over heads" in words)
    assert ("Layers are averaged" in limits) == ("over layers" in words)
    assert ("The other layers attend too" in limits) == (layer is not None)
    assert limits.startswith("One row of" if position else "The rows of")


@pytest.mark.parametrize("manifest", [{}, {"attention_path": "own", "attention": "its one"}])
def test_a_model_with_one_attention_has_no_such_sentence(manifest):
    assert read_audited_attention(manifest) is None
    assert "under audit" not in card(records(manifest_changes=manifest))


def test_the_attention_under_audit_is_told_wherever_the_verdict_is():
    one = transformer()
    sentence = "The attention under audit: layer 2, mean over heads, first position."
    assert f'<p class="why">{sentence}</p>' in render_html(one)
    assert f"\n{sentence}\n" in render_markdown(one)
    assert sentence in card(one)
    found = sections_of(one)
    rows = dict(next(table for table in found["method"].tables if table.head[0] == "Method").rows)
    assert rows["attention under audit"] == "layer 2, mean over heads, first position"
    assert rows["attention path"].startswith("interface: ")
    assert rows["parity with the untouched model"] == "3e-07"
    assert rows["batches halved for memory"] == "2"
    assert any("Heads are averaged" in limit for limit in found["limits"].points)


def test_the_page_of_a_model_with_one_attention_is_as_it_was():
    changes = {"attention_path": "own", "attention": "the model's one", "batches_halved": 0}
    plain = render_html(records(manifest_changes=changes))
    for absent in ('"layers"', "under audit", "<dialog", "maps", "canvas", "thumbnail", "halved"):
        assert absent not in plain
    css, js = (
        join_assets(("page", "texts"), "css"),
        join_assets(("theme", "elements", "texts"), "js"),
    )
    assert f"<style>{css}</style>" in plain
    assert f"<script>{js}</script>" in plain
    assert not {"layers", "lines", "heads"} & {one.kind for one in page_figures(records())}


def test_the_section_has_two_charts_a_table_of_heads_and_the_maps():
    read = PageReader(page := render_html(transformer(layers=3, heads=4)))
    assert ("id", "layers") in read.attributes
    assert ("href", "#layers") in read.attributes
    assert page.count('<figure class="lines"') == 2
    titles = [value for name, value in read.attributes if name == "title"]
    cells = [re.match(r"layer (\d), head (\d): (\S+) \[\S+, \S+\], n = 30", t) for t in titles]
    places = [(int(one[1]), int(one[2])) for one in cells if one]
    assert places == list(product(range(3), range(4)))
    assert ("id", "maps-data") in read.attributes


def test_one_head_under_audit_is_marked():
    words = {"attention": "layer 1, head 2, first position"}
    page = render_html(transformer(manifest_changes=words))
    assert len(re.findall(r'<td class="word [^"]* chosen" title="layer 1, head 2:', page)) == 1
    assert page.count(' chosen" title=') == 1


def test_colours_have_a_sign_a_depth_and_a_class_for_every_step():
    assert heat_class(0.2, 0.2) == f"plus s{STEPS}"
    assert heat_class(-0.2, 0.2) == f"minus s{STEPS}"
    assert heat_class(0.0, 0.2) == "plus s0"
    assert heat_class(nan, 0.2) == "none"
    css = (TEMPLATES / "page.css").read_text()
    for step in range(STEPS + 1):
        (found,) = re.findall(rf"\.s{step} {{ --s: ([\d.]+); }}", css)
        assert float(found) == pytest.approx(step / STEPS)


def test_charts_show_layers_heads_rulers_and_the_audited_one():
    one = transformer(layers=5, heads=4)
    shown = pictures(one)
    assert list(shown) == ["layers_tau_leave_one_out", "layers_word_mass", "layers_heads"]
    tau = shown["layers_tau_leave_one_out"]
    assert [mark["from"] for mark in tau.marks if "from" in mark] == [3.5]
    assert len([mark for mark in tau.marks if "x" in mark]) == 20
    assert [mark["label"] for mark in tau.marks if "rule" in mark] == ["gradient", "shuffled"]
    low, high = tau.y_span
    assert all(low <= mark["value"] <= high for mark in tau.marks if "value" in mark)
    bare = pictures(transformer(layers=5, heads=0, kept_maps=0))["layers_tau_leave_one_out"]
    assert all(bare.y_span[0] <= row["low"] < row["high"] <= bare.y_span[1] for row in bare.rows)
    assert shown["layers_word_mass"].y_span == (0.0, 1.0)
    heads = shown["layers_heads"]
    assert [mark["row"] for mark in heads.marks] == ["4"]
    assert heads.span[0] == -heads.span[1]
    assert heads.span[1] == max(abs(row["value"]) for row in heads.rows)
    for figure in shown.values():
        assert draw(figure).count(">under audit<") == 1


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 17), (40, 2)])
def test_any_number_of_layers_and_heads(layers, heads):
    one = transformer(10, layers=layers, heads=heads, kept_maps=0)
    for picture in pictures(one).values():
        assert build_chart(picture).to_dict()
    page = render_html(one)
    assert ('class="heads dense"' in page) == (heads > 16)
    assert page.count('<td class="word') == layers * heads


def test_the_figures_are_written_too(tmp_path):
    names = [path.name for path in write_figures(transformer(), tmp_path)]
    for name, kind in product(("layers_tau_leave_one_out", "layers_heads"), ("svg", "png")):
        assert f"{name}.{kind}" in names
    assert "layers_heads.svg" not in [path.name for path in write_figures(records(), tmp_path)]


def test_a_head_without_a_value_is_a_dash_and_no_dot():
    one = undefined(transformer(), layer=1, head=2)
    page = render_html(one)
    assert re.search(r'<td class="word none" title="layer 1, head 2: –, n = 0"><span>–<', page)
    assert not re.search(r"\bnan\b", page, re.IGNORECASE)
    assert len([m for m in pictures(one)["layers_tau_leave_one_out"].marks if "x" in m]) == 11


def test_layers_without_any_value_say_so():
    one = undefined(transformer())
    assert "No layer has a τ with leave-one-out" in render_html(one)
    assert pictures(one) == {}


def test_runs_that_measured_some_layers_on_fewer_texts_have_a_page():
    one = transformer()
    rows = one.measurements.whole()
    here = pc.equal(rows["layer"].fill_null(-1), 1)
    lost = pc.and_(here, pc.equal(rows["instance"], 3))
    fewer = again(one, rows.filter(pc.invert(lost)))
    assert [row[1].estimate.n for row in table_of(fewer).rows] == [30, 29, 30]


def test_a_hostile_name_of_the_attention_is_only_text():
    text, want = "".join(NASTY), PageReader(render_html(transformer()))
    page = render_html(transformer(manifest_changes={"attention": text, "attention_path": text}))
    found = PageReader(page)
    assert any(NASTY[0] in one for one in found.texts)
    assert "\x1b" not in card(transformer(manifest_changes={"attention": text}))
    for tag in ("script", "img", "svg"):
        assert found.elements[tag] == want.elements[tag]
    assert not set(page) & set("\x00\x1b\u202e\u2028")
