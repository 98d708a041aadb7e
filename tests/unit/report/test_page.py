"""What a page shows, against plain recounts of the records."""

from dataclasses import replace
from itertools import pairwise
from math import log, nan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from heedful.checks import checks
from heedful.core.records import Estimate
from heedful.pipeline.plan.plan import Plan
from heedful.pipeline.verdict.estimate import estimate_all
from heedful.report.figures.theme import spread_labels
from heedful.report.sections.example_texts import MOST, MOST_WORDS, choose_examples
from heedful.report.sections.page import build_page
from heedful.report.sections.slices import build_slices
from heedful.results.figure_data import BINS, MOST_CLASSES, OTHER
from heedful.results.run_records import sanitise_text
from heedful.results.tables import PartitionedTable
from support.figures import figures_of
from support.records import MEASURES, measurements, records


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
            if not one.label_by_method and "method" in one.by:
                assert "{method}" in one.label


def test_controls_and_references_have_no_direction():
    for spec in checks.specs():
        for one in spec.measures:
            assert one.role == "measure" or one.direction == "none"
            control = one.of_method("random")
            assert (control.role, control.direction) == ("control", "none")
    assert checks.spec("agreement").measure("tau_leave_one_out").direction == "up"
    assert checks.spec("adversarial").measure("certified_jsd").direction == "down"


def test_the_page_tells_the_verdict():
    page = build_page(records())
    assert page.answer == "unfaithful"
    assert page.headline.startswith("NOT FAITHFUL")
    assert page.degree == Estimate(0.41, 0.36, 0.47, 90)
    assert page.instead == "one_hot_gradient recovers 88% of the leave-one-out ranking."
    assert page.summary == "100 texts of sample:movies (test)"
    assert [one.name for one in page.claims] == ["used", "needed", "ranks", "exclusive", "robust"]
    assert [one.name for one in page.checks] == list(MEASURES)
    first = page.checks[0].rows[0]
    assert (first.name, first.direction, first.undefined) == ("tau_gradient", "up", 10)
    assert len(first.by_class) == 2
    assert page.checks[0].missing == ("lost_measure: it was not there",)
    assert any("5 texts were too short" in one for one in page.limits)
    assert any("2 texts were cut" in one for one in page.limits)
    assert ("total", "3.8 (5.0)") in page.facts[-1].rows


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
    """The slices of a page whose estimates are those of an audit of the same values."""
    plan = Plan("model", "data", checks=("agreement",), resamples=100)
    labels = sorted(set(one.predicted))
    evidence = estimate_all(plan, one.columns, missing={}, labels=labels, lengths=one.lengths)
    return build_slices(replace(one, verdict=replace(one.verdict, checks=evidence.results)))


def test_slices_partition_the_texts_and_have_their_means():
    one = records(200)
    slices = sliced(one)
    for group in {part.group for part in slices}:
        assert sum(part.texts for part in slices if part.group == group) == 200
    taus = values(one.measurements.whole(), "tau_leave_one_out")
    for part in slices[:2]:
        inside = [taus[i] for i in range(200) if one.predicted[i] == part.name]
        want = np.mean([tau for tau in inside if tau is not None])
        label = checks.spec("agreement").measure("tau_leave_one_out").label
        assert part.estimates[label].value == pytest.approx(want)
        assert part.estimates["degree"].n


def test_names_of_slices_are_sanitised():
    names = [part.name for part in build_slices(records(10, ("a\x1b[2Jb", "c: d")))]
    assert names == ["a\N{REPLACEMENT CHARACTER}[2Jb", "c: d"]


def test_quarters_of_length_hold_equal_lengths_together():
    one = records(40)
    words = [["w"] * (5 + i % 7) for i in range(40)]
    one = with_texts(one, "words", words)
    parts = [part for part in sliced(one) if part.group == "Length"]
    assert [part.name for part in parts] == ["5–6 words", "7–8 words", "9 words", "10–11 words"]
    assert sum(part.texts for part in parts) == 40


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
    assert build_page(one).classes == ()


def test_words_of_rulers_do_not_overlap():
    marks = figures_of(records())["mechanism"].marks
    heights = [mark["words_at"] for mark in spread_labels(marks, 0.075)]
    assert len(heights) == 3
    assert all(b - a > 0.07 for a, b in pairwise(heights))


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
    assert "240 of 1000 texts" in build_page(one).sampled


def test_few_texts_are_all_shown_and_long_ones_are_cut():
    one = records(30, words=MOST_WORDS + 7)
    shown = choose_examples(one)
    assert [sentence.instance for sentence in shown] == list(range(30))
    assert {(len(s.words), s.more_words) for s in shown} == {(MOST_WORDS, 7)}
    assert build_page(one).sampled == "All 30 texts."


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
    assert build_page(one).sampled == "All 9 texts."


def test_weights_of_zero_have_a_distance():
    one = records(1, words=2)
    for name, weights in (("attention", [1.0, 0.0]), ("adversarial", [0.0, 1.0])):
        one = with_texts(one, name, [weights])
    assert choose_examples(one)[0].jsd == pytest.approx(log(2), abs=1e-4)


def test_without_words_or_adversary_the_page_says_so():
    bare = build_page(records(kept=False))
    assert bare.sentences == ()
    assert "kept no words" in bare.sampled
    assert {part.group for part in sliced(records(kept=False))} == {
        "Predicted class",
        "Prediction",
    }
    (first, *_) = build_page(records(10, adversarial=False)).sentences
    assert "adversarial" not in first.scores
    assert first.jsd is None


@pytest.mark.parametrize("name", MEASURES)
def test_one_check_alone_makes_a_page(name):
    page = build_page(records(checks=(name,)))
    assert [one.name for one in page.checks] == [name]
    assert all(one.kind != "flow" for one in page.pictures)


def test_values_that_do_not_exist_leave_their_figures_out():
    page = build_page(records(estimate=Estimate(nan, nan, nan, 0)))
    assert page.degree is None
    assert all(one.kind != "flow" for one in page.pictures)


def test_no_rows_at_all_still_make_a_page():
    empty = replace(
        records(kept=False), measurements=PartitionedTable.of(measurements(0, ("neg", "pos")))
    )
    page = build_page(empty)
    assert page.sentences == ()
    assert [one.kind for one in page.pictures] == ["flow"]  # it is drawn from the verdict


@pytest.mark.parametrize("sign", ["\x00", "\x1b", "\u202e", "\u2066", "\u2028", "\ud800", "\n"])
def test_signs_that_do_more_than_be_read_become_visible(sign):
    assert sanitise_text(f"a{sign}b") == "a\N{REPLACEMENT CHARACTER}b"


def test_joined_emoji_and_other_scripts_stay():
    for text in ("👩‍👧", "שלום", "नमस्ते", "naïve"):
        assert sanitise_text(text) == text
