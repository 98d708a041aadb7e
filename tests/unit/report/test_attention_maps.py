"""Whole maps in the page: as they were, small, and of tokens that are only text."""

import json
import re
import zlib
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import heedful.report.sections.attention_maps as module
from heedful.report.pages.run_html import render_html
from heedful.report.sections.attention_maps import BUDGET, build_maps
from heedful.results.tables import PartitionedTable
from support.html_page import PageReader
from support.records import NASTY, maps, records, transformer

pytest.importorskip("altair")


def weights(text):
    """What a browser will read of a text's maps."""
    levels = np.frombuffer(zlib.decompress(b64decode(text.packed)), dtype=np.uint8)
    return (levels / 255) ** 2


def with_maps(rows):
    return replace(records(10), maps=PartitionedTable.of(pa.Table.from_pylist(rows)))


def shown(page):
    """The maps that a page carries."""
    return json.loads(re.search(r'id="maps-data">(.*?)</script>', page, re.DOTALL)[1])


def test_every_weight_comes_back_in_order_whatever_the_order_of_rows():
    rows = maps(3, 2, 4).to_pylist()
    found = build_maps(with_maps(rows[::-1]))
    assert [text.instance for text in found.texts] == [0, 1, 2]
    for text in found.texts:
        assert text.keys == ("[CLS]", "a", "fine", "film", "[SEP]")
        assert [(one.layer, one.heads, one.queries) for one in text.layers] == [
            (layer, (0, 1, 2, 3), None) for layer in range(2)
        ]
        want = [w for row in rows if row["instance"] == text.instance for w in row["weights"]]
        got = weights(text)
        assert len(got) == len(want)
        assert np.abs(got - want).max() < 1 / 255
        small = np.array(want) < 0.01  # the root of a small weight keeps more of it
        assert np.abs(got - want)[small].max(initial=0) < 0.0005


def test_rows_that_are_not_the_tokens_have_their_own_names():
    row = {"instance": 4, "layer": 0, "head": 0, "queries": ["0"], "keys": ["a", "b"]}
    (text,) = build_maps(with_maps([row | {"weights": [0.25, 0.75]}])).texts
    assert text.layers[0].queries == ("0",)
    np.testing.assert_allclose(weights(text), [0.25, 0.75], atol=0.004)


def test_the_page_says_which_texts_these_are():
    told = [build_maps(transformer(kept_maps=count)).note for count in (1, 3)]
    assert told[0].startswith("Of text 0, the first of the data")
    assert told[1].startswith("Of texts 0, 1 and 2, the first of the data")
    assert told[1] in render_html(transformer(kept_maps=3))


@pytest.mark.parametrize("spread", [0.05, 1.0, 100.0])  # peaked, as random as can be, even
def test_three_long_texts_of_twelve_layers_and_heads_stay_under_two_megabytes(spread):
    rows = maps(3, 12, 12, tokens=[f"token{i}" for i in range(64)]).to_pylist()
    random = np.random.default_rng(0)
    for row in rows:
        row["weights"] = random.dirichlet(np.full(64, spread), 64).ravel()
    found = build_maps(with_maps(rows))
    assert len(found.texts) == 3
    assert sum(len(text.packed) for text in found.texts) < BUDGET < 2_000_000


def test_more_than_a_page_can_carry_is_left_out_and_told(monkeypatch):
    one = transformer(kept_maps=3)
    size = max(len(text.packed) for text in build_maps(one).texts)
    monkeypatch.setattr(module, "BUDGET", 2 * size + size // 2)
    found = build_maps(one)
    assert [text.instance for text in found.texts] == [0, 1]
    assert "The run kept 3: more would make this page too large" in found.note
    monkeypatch.setattr(module, "BUDGET", 3)
    page = render_html(one)
    assert "too large for a page" in page
    assert 'id="maps"' not in page
    assert 'id="maps-data"' not in page


def test_a_run_without_maps_has_none_and_damaged_ones_are_not_drawn():
    assert build_maps(records()) is None
    page = render_html(transformer(kept_maps=0))
    assert 'id="layers"' in page
    assert "<dialog" not in page
    rows = maps(1, 1, 2).to_pylist()
    rows[0]["weights"] = rows[0]["weights"][1:]
    (text,) = build_maps(with_maps(rows)).texts
    assert text.layers[0].heads == (1,)


def test_maps_without_measures_by_layer_make_a_section():
    page = render_html(with_maps(maps(1, 2, 2).to_pylist()))
    assert 'id="maps"' in page
    assert 'id="layers"' not in page
    assert shown(page)["tau"] == {}


def test_the_page_carries_what_the_script_needs():
    found = shown(render_html(transformer(layers=3, heads=2)))
    assert (found["layer"], found["position"]) == (2, "first")
    assert sorted(found["tau"]) == sorted(
        f"{layer} {head}" for layer in range(3) for head in (0, 1)
    )
    assert [text["instance"] for text in found["texts"]] == [0, 1]


def test_hostile_tokens_are_only_text():
    want = PageReader(render_html(transformer(tokens=["a"] * len(NASTY))))
    page = render_html(transformer(tokens=NASTY))
    found = PageReader(page)
    drawn = {"path", "g", "rect", "line", "text"}
    assert {tag: n for tag, n in found.elements.items() if tag not in drawn} == {
        tag: n for tag, n in want.elements.items() if tag not in drawn
    }
    assert found.elements["script"] == 3  # two of data, ours
    assert not set(page) & set("\x00\x1b\u202e\u2028")
    tokens = shown(page)["texts"][0]["keys"]
    assert "a\ufffdb\ufffd[2J" in tokens
    assert "👩\u200d👧 naïve" in tokens
    assert max(map(len, tokens)) <= 24


def test_values_that_are_no_weights_are_drawn_as_none():
    row = {"instance": 0, "layer": 0, "head": 0, "queries": ["a"], "keys": ["a", "b", "c"]}
    (text,) = build_maps(with_maps([row | {"weights": [None, -1.0, 7.0]}])).texts
    assert weights(text).tolist() == [0.0, 0.0, 1.0]
