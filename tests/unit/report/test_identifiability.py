"""Identifiability on the page and in figures, against plain recounts of the records."""

from dataclasses import replace

import numpy as np
import pytest

from heedful.checks.attention.identifiability.spec import COLUMNS, build_figures, describe_heads
from heedful.core.records import CheckResult, Estimate, MeasureKey, describe_key
from heedful.report.figures.draw import write_figures
from heedful.report.pages.run_html import render_html
from heedful.report.pages.run_markdown import render_markdown
from support.figures import draw
from support.html_page import PageReader
from support.records import estimated, records, tidy, transformer
from support.sections import sections_of

pytest.importorskip("altair")
N, LAYERS, HEADS = 20, 3, 4


MEASURES = tuple(COLUMNS)


def rows(scale=1.0, measures=MEASURES):
    """A column for each layer and head: the second head of layer 1 has the most to spare."""
    random, parts = np.random.default_rng(0), []
    for measure in measures:
        places = [{"layer": layer} for layer in range(LAYERS)]
        if measure.startswith("no_effect"):
            places += [{"layer": n, "head": h} for n in range(LAYERS) for h in range(HEADS)]
        elif not measure.startswith("keys"):
            places.append({"setting": "output"})
        for place in places:
            high = 0.4 if place == {"layer": 1, "head": 1} else 0.2
            values = scale * random.uniform(high - 0.1, high + 0.1, N)
            if measure.startswith("keys"):
                values = np.where(np.arange(N) < 5, 0.5, 1.25)  # five are short
            parts.append((MeasureKey("identifiability", measure, **place), values))
    whole = [
        tidy(key.check, key.measure, values, layer=key.layer, head=key.head, setting=key.setting)
        for key, values in parts
    ]
    return whole, {(key.measure, describe_key(key)): float(v.mean()) for key, v in parts}


def made(scale=1.0, measures=MEASURES, base=transformer):
    one = base(N)
    tables, means = rows(scale, measures)
    half = Estimate(0.5, 0.4, 0.6, N)
    chance = Estimate(0.07, 0.06, 0.08, N)
    result = CheckResult(
        "no vote", "What was found.", {"no_effect_share": half, "identified_by_chance": chance}
    )
    checks = {**one.verdict.checks, "identifiability": result}
    return estimated(replace(one, verdict=replace(one.verdict, checks=checks)), *tables), means


def table_of(one):
    (table,) = sections_of(one)["identifiability-numbers"].tables
    return table


def test_every_layer_has_its_means_and_the_last_is_the_output():
    one, means = made()
    rows = {
        row[0] if isinstance(row[0], str) else row[0].text: row[1:] for row in table_of(one).rows
    }
    heads = [f"layer {layer}, head {head}" for layer in range(LAYERS) for head in range(HEADS)]
    assert set(rows) == {"layer 0", "layer 1", "layer 2", "output", *heads}
    for name, cells in rows.items():
        for measure, cell in zip(COLUMNS, cells, strict=True):
            if (measure, name) in means:
                assert cell.estimate.value == pytest.approx(means[measure, name])
                assert cell.estimate.low < cell.estimate.value < cell.estimate.high
                assert cell.estimate.n == N
            else:
                assert cell == ""
    names = [row[0] for row in table_of(one).rows]
    assert [one.text for one in names[:-1] if one.answer] == ["layer 2"]  # under audit


def test_the_heads_with_the_most_are_named_with_interval_and_keys():
    one, means = made()
    first, *others = describe_heads(one)
    share = 100 * means["no_effect_share", "layer 1, head 1"]
    keys = means["keys_per_dimension", "layer 1"]
    assert first.startswith(
        f"Layer 1, head 1: {share:.1f} % of this head's attention has no effect"
    )
    assert "90 % interval" in first
    assert f"n = {N}; {keys:.2f} keys for each dimension of a head; " in first
    column = one.column("identifiability", "no_effect_share", layer=1, head=1)
    there = 100 * column[5:].mean()
    assert first.endswith(f"; {there:.1f} % in the 15 texts with more keys than dimensions).")
    assert len(others) == 2


def test_where_nothing_is_without_effect_that_is_said():
    (told,) = describe_heads(made(scale=1e-20)[0])
    assert told.startswith("In these texts no head has any weight without effect")


def test_pictures_show_means_heads_and_chance():
    one, means = made()
    effect, tokens, own = build_figures(one)
    assert [row["value"] for row in effect.rows] == pytest.approx(
        [means["no_effect_share", f"layer {layer}"] for layer in range(LAYERS)]
    )
    assert len([mark for mark in effect.marks if "x" in mark]) == LAYERS * HEADS
    assert effect.y_span == (0.0, 0.5)
    assert [row["x"] for row in tokens.rows] == [0, 1, 2, 3]
    assert [mark["rule"] for mark in tokens.marks if "rule" in mark] == [0.07]
    assert own.rows[3]["value"] == pytest.approx(means["own_share", "output"])
    for picture in (effect, tokens, own):
        draw(picture)


def test_the_page_and_the_card_have_a_section(tmp_path):
    one, _ = made()
    page, card = render_html(one), render_markdown(one)
    assert ("href", "#identifiability") in PageReader(page).attributes
    assert page.count('id="figure-identifiability_') == 3
    for text in (page, card):
        assert "of this head" in text
        assert "stays exactly the same" in text  # what it proves
        assert "grows with the length of the text" in text
        assert "output" in text
    names = {path.name for path in write_figures(one, tmp_path)}
    assert "identifiability_no_effect.svg" in names


def test_what_was_not_measured_is_not_shown():
    for one in (transformer(N), records(N)):
        assert "identifiability" not in sections_of(one)
    one, _ = made(measures=MEASURES[3:])  # a tap shows no values
    assert describe_heads(one) == ()
    found = sections_of(one)["identifiability"]
    assert [figure.name for figure in found.figures] == [
        "identifiability_tokens",
        "identifiability_own",
    ]
    assert "stays exactly the same" not in render_markdown(one)
    one, _ = made(measures=MEASURES[:3], base=lambda n: records(n, checks=("agreement",)))
    found = sections_of(one)
    assert [figure.name for figure in found["identifiability"].figures] == [
        "identifiability_no_effect"
    ]
    assert "layers" not in found  # its figures need no section of layers
