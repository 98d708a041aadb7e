"""What a page shows, against plain recounts of the records."""

from dataclasses import replace
from itertools import pairwise
from math import log, nan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from heedful.checks import checks
from heedful.core.records import Estimate, EstimateRow
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.estimate import estimate_all
from heedful.report.figures.theme import spread_labels
from heedful.report.sections import example_texts
from heedful.report.sections.example_texts import MOST, MOST_WORDS, choose_examples
from heedful.report.sections.page import build_sections
from heedful.report.sections.slices import build_slices
from heedful.report.sections.verdict_summary import build_verdict_card
from heedful.results.figure_data import BINS, MOST_CLASSES, OTHER
from heedful.results.run_records import sanitise_text
from heedful.results.tables import PartitionedTable
from support.figures import figures_of
from support.records import MEASURES, measurements, records
from support.sections import names_of, page_figures, sections_of, values_of


def values(table, measure):
    return {row["instance"]: row["value"] for row in table.to_pylist() if row["measure"] == measure}


def test_every_measure_and_check_that_exists_is_explained():
    for spec in checks.specs():
        assert spec.question.endswith("?")
        assert len({one.name for one in spec.measures}) == len(spec.measures)
        for one in spec.measures:
            assert one.label
            assert one.range[0] < one.range[1]
            assert "{" not in one.of_method("lime").label
            assert ("{method}" in f"{one.label}{one.label_by_method}") <= ("method" in one.by)
            if not one.label_by_method and "method" in one.by and one.averaged:
                assert "{method}" in one.label


def test_controls_and_references_have_no_direction():
    for spec in checks.specs():
        for one in spec.measures:
            assert one.role == "measure" or one.direction == "none"
            control = one.of_method("random")
            assert (control.role, control.direction) == ("control", "none")
    assert checks.spec("agreement").measure("tau_leave_one_out").direction == "up"
    assert checks.spec("adversarial").measure("certified_jsd").direction == "down"


def test_sections_are_in_order_and_their_names_in_the_navigation():
    shown = [one.name for one in build_sections(records()) if one.short]
    assert shown == [
        *("claims", "checks", "figures", "sentences"),
        *("slices", "limits", "method"),
    ]
    found = sections_of(records())
    assert any("5 texts were too short" in one for one in found["limits"].points)
    assert any("2 texts were cut" in one for one in found["limits"].points)
    assert ("total", "3.8 (5.0)") in found["method"].tables[-1].rows


def test_every_check_has_its_measures_with_intervals_and_by_class():
    found = sections_of(records())
    assert [one.name for one in found["checks"].parts] == [f"check-{name}" for name in MEASURES]
    first = found["check-agreement"]
    assert "No lost_measure: it was not there" in first.words
    (table,), (classes,) = first.tables, found["check-agreement-classes"].tables
    name, mean, count = table.rows[0]
    assert (name.text[-1], name.note, mean.note) == ("↑", "tau_gradient", "10 undefined")
    assert mean.estimate.low < mean.estimate.value < mean.estimate.high
    assert (mean.span, count) == ((-1.0, 1.0), "90")
    roles = {row[0].note: (row[0].answer, row[1].muted) for row in table.rows}
    assert roles["tau_shuffled_leave_one_out"] == ("control", True)
    assert roles["tau_gradient_leave_one_out"] == ("reference", True)
    assert roles["tau_leave_one_out"] == ("", False)
    assert classes.head == ("measure", "neg, n = 90", "pos, n = 90")


def with_texts(one, name, values):
    texts = one.texts.whole()
    place = texts.column_names.index(name)
    return replace(one, texts=PartitionedTable.of(texts.set_column(place, name, pa.array(values))))


def test_columns_are_in_order_of_instances_whatever_the_order_of_rows():
    one = records(50)
    rows = one.measurements.whole()
    rows = rows.take(np.random.default_rng(1).permutation(len(rows)))
    files = [PartitionedTable.of(rows[at : at + 100]).readers[0] for at in range(0, len(rows), 100)]
    other = replace(one, measurements=PartitionedTable(tuple(files)))
    assert other.predicted == one.predicted
    column = other.column("agreement", "tau_gradient")
    for instance, value in values(one.measurements.whole(), "tau_gradient").items():
        assert np.isnan(column[instance]) if value is None else column[instance] == value


def test_rows_of_the_whole_data_set_and_of_settings_are_left_out():
    one = records(20)
    rows = one.measurements.whole()
    extra = rows.slice(0, 2).to_pylist()
    extra[0]["instance"], extra[1]["setting"] = -1, "λ = 1"
    added = pa.Table.from_pylist(extra, schema=rows.schema)
    other = replace(one, measurements=PartitionedTable.of(pa.concat_tables([rows, added])))
    assert other.instances.tolist() == list(range(20))
    np.testing.assert_array_equal(
        other.column("agreement", "tau_gradient"), one.column("agreement", "tau_gradient")
    )


def sliced(one):
    """The table of slices whose estimates are those of an audit of the same values."""
    plan = Plan("model", "data", checks=("agreement",), resamples=100)
    labels = sorted(set(one.predicted))
    evidence = estimate_all(plan, one.columns, missing={}, labels=labels, lengths=one.lengths)
    checks = evidence.results
    (table,) = build_slices(replace(one, verdict=replace(one.verdict, checks=checks))).tables
    return table


def groups_of(table):
    """Names and numbers of texts of the slices of each group."""
    found = {}
    for group, name, *_, texts in table.rows:
        last = group or last  # an empty name is that of the row above
        found.setdefault(last, {})[name] = int(texts)
    return found


def test_slices_partition_the_texts_and_have_their_means():
    one = records(200)
    table = sliced(one)
    for group in groups_of(table).values():
        assert sum(group.values()) == 200
    taus = values(one.measurements.whole(), "tau_leave_one_out")
    place = table.head.index(checks.spec("agreement").measure("tau_leave_one_out").label)
    for _, name, *cells, _ in table.rows:
        inside = [taus[i] for i in range(200) if one.predicted[i] == name]
        if inside:
            want = np.mean([tau for tau in inside if tau is not None])
            assert cells[place - 2].estimate.value == pytest.approx(want)
    assert all(row[table.head.index("degree")].estimate.n for row in table.rows)


def test_names_of_slices_are_sanitised():
    (table,) = build_slices(records(10, ("a\x1b[2Jb", "c: d"))).tables
    assert [row[1] for row in table.rows] == ["a\N{REPLACEMENT CHARACTER}[2Jb", "c: d"]


def test_quarters_of_length_hold_equal_lengths_together():
    one = records(40)
    words = [["w"] * (5 + i % 7) for i in range(40)]
    one = with_texts(one, "words", words)
    parts = groups_of(sliced(one))["Length"]
    assert list(parts) == ["5–6 words", "7–8 words", "9 words", "10–11 words"]
    assert sum(parts.values()) == 40


def test_histograms_count_every_defined_value_once():
    one = records(100)
    picture = figures_of(one)["tau_leave_one_out"]
    assert len(picture.rows) == 2 * BINS
    for name in ("neg", "pos"):
        assert sum(r["share"] for r in picture.rows if r["class"] == name) == pytest.approx(1, 1e-3)


def test_densities_count_every_text_once_and_do_not_grow():
    small, large = (figures_of(records(n)) for n in (100, 5000))
    for picture, n in [(small, 100), (large, 5000)]:
        density = picture["certified_jsd"]
        assert sum(row["texts"] for row in density.rows) == n
        assert density.span == (0.0, log(2))
        assert len(density.rows) <= 2 * 24**2


def test_rare_classes_are_joined():
    many = tuple(f"class {i}" for i in range(9))
    one = records(300, many)
    picture = figures_of(one)["tau_gradient"]
    assert len(picture.classes) == MOST_CLASSES
    assert picture.classes[-1] == OTHER
    assert not any(name.endswith("-classes") for name in sections_of(one))


def test_words_of_rulers_do_not_overlap():
    marks = figures_of(records())["mechanism"].marks
    heights = [mark["words_at"] for mark in spread_labels(marks, 0.075)]
    assert len(heights) == 3
    assert all(b - a > 0.07 for a, b in pairwise(heights))


def sample(one):
    """What the page says about the texts it shows."""
    return sections_of(one)["sentences"].words[0]


def test_sentences_are_the_ends_and_a_draw_the_same_each_time():
    one = records(1000)
    shown = choose_examples(one)
    assert shown == choose_examples(one)
    assert len({sentence.instance for sentence in shown}) == len(shown) == MOST
    taus = {
        i: tau for i, tau in values(one.measurements.whole(), "tau_leave_one_out").items() if tau
    }
    ranked = sorted(taus, key=lambda i: taus[i])
    by_why = {
        why: {s.instance for s in shown if s.why == why}
        for why in ("damning", "innocent", "random")
    }
    assert by_why["damning"] == set(ranked[:60])
    assert by_why["innocent"] == set(ranked[-60:])
    assert len(by_why["random"]) == 120
    assert "240 of 1000 texts" in sample(one)


def test_sentences_are_drawn_by_what_they_say_and_copies_come_last():
    contents = np.array([f"text {n}" for n in range(50)] + ["text 3", "text 7"])
    order = example_texts._mixed(np.arange(52), contents, seed=0)
    drawn = contents[order].tolist()
    assert sorted(drawn[-2:]) == ["text 3", "text 7"]
    assert drawn[:50] != sorted(drawn[:50])
    mixed = np.random.default_rng(0).permutation(52)
    again = example_texts._mixed(np.arange(52), contents[mixed], seed=0)
    assert contents[mixed][again].tolist() == drawn
    few = example_texts._mixed(np.arange(20), contents[:20], seed=0)
    known = set(contents[:20].tolist())
    assert contents[:20][few].tolist() == [one for one in drawn[:50] if one in known]


def test_few_texts_are_all_shown_and_long_ones_are_cut():
    one = records(30, words=MOST_WORDS + 7)
    shown = choose_examples(one)
    assert [sentence.instance for sentence in shown] == list(range(30))
    assert {(len(s.words), s.more_words) for s in shown} == {(MOST_WORDS, 7)}
    assert sample(one) == "All 30 texts."


def test_scores_are_shares_of_the_strongest_and_jsd_is_that_of_the_rows():
    one = records(10)
    sentence, row = choose_examples(one)[0], one.texts.whole().to_pylist()[0]
    strongest = max(abs(score) for score in row["leave_one_out"])
    assert sentence.scores["leave_one_out"] == pytest.approx(
        [score / strongest for score in row["leave_one_out"]], abs=1e-3
    )
    want = 0.0
    for a, b in zip(row["attention"], row["adversarial"], strict=True):
        want += a * log(2 * a / (a + b)) / 2 + b * log(2 * b / (a + b)) / 2
    assert sentence.jsd == pytest.approx(want, abs=1e-4)


def test_words_of_texts_that_were_not_measured_are_not_shown():
    one = records(20)
    rows = one.measurements.whole()
    one = replace(one, measurements=PartitionedTable.of(rows.filter(pc.less(rows["instance"], 9))))
    assert [sentence.instance for sentence in choose_examples(one)] == list(range(9))
    assert sample(one) == "All 9 texts."


def test_weights_of_zero_have_a_distance():
    one = records(1, words=2)
    for name, weights in (("attention", [1.0, 0.0]), ("adversarial", [0.0, 1.0])):
        one = with_texts(one, name, [weights])
    assert choose_examples(one)[0].jsd == pytest.approx(log(2), abs=1e-4)


def test_without_words_or_adversary_the_page_says_so():
    bare = records(kept=False)
    assert sections_of(bare)["sentences"].widget is None
    assert "kept no words" in sample(bare)
    assert set(groups_of(sliced(bare))) == {"Predicted class", "Prediction"}
    (first, *_) = choose_examples(records(10, adversarial=False))
    assert "adversarial" not in first.scores
    assert first.jsd is None


@pytest.mark.parametrize("name", MEASURES)
def test_one_check_alone_makes_a_page(name):
    one = records(checks=(name,))
    assert [part.name for part in sections_of(one)["checks"].parts] == [f"check-{name}"]
    assert all(figure.kind != "flow" for figure in page_figures(one))


def test_values_that_do_not_exist_leave_their_figures_out():
    one = records(estimate=Estimate(nan, nan, nan, 0))
    assert build_verdict_card(one.verdict, one.manifest).degree is None
    assert all(figure.kind != "flow" for figure in page_figures(one))


def test_no_rows_at_all_still_make_a_page():
    empty = replace(
        records(kept=False), measurements=PartitionedTable.of(measurements(0, ("neg", "pos")))
    )
    assert sections_of(empty)["sentences"].widget is None
    assert [one.kind for one in page_figures(empty)] == ["flow"]  # it is drawn from the verdict


def test_a_check_without_sections_shows_its_rows_by_key_and_its_figures_stand_with_all_others():
    rows = tuple(
        EstimateRow("median_tvd", Estimate(value, 0.0, 1.0, 9), layer=layer)
        for layer, value in enumerate((0.25, 0.75))
    )
    one = records(checks=("permutation",))
    result = replace(one.verdict.checks["permutation"], by=rows)
    one = replace(one, verdict=replace(one.verdict, checks={"permutation": result}))
    (table,) = sections_of(one)["check-permutation-keys"].tables
    assert [row[1] for row in table.rows] == ["layer 0", "layer 1"]
    assert values_of(table, 2) == [0.25, 0.75]
    assert names_of(table) == ["median change of output when weights are shuffled"] * 2


@pytest.mark.parametrize("sign", ["\x00", "\x1b", "\u202e", "\u2066", "\u2028", "\ud800", "\n"])
def test_signs_that_do_more_than_be_read_become_visible(sign):
    assert sanitise_text(f"a{sign}b") == "a\N{REPLACEMENT CHARACTER}b"


def test_joined_emoji_and_other_scripts_stay():
    for text in ("👩‍👧", "שלום", "नमस्ते", "naïve"):
        assert sanitise_text(text) == text
