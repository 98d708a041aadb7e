"""One job: everything counted, and nothing left of how the texts were batched."""

import json
from dataclasses import asdict, dataclass

import numpy as np
import pytest

from heedful.checks import checks
from heedful.checks.base import Findings, missing_of
from heedful.core.records import MeasureKey, Measurement, MissingMeasure
from heedful.core.values import Example
from heedful.pipeline.audit.job import JobSummary, run_job
from support import subjects

LENGTHS = (9, 2, 5, 1, 9, 3, 12, 2, 7)
INDICES = (30, 4, 17, 8, 2, 99, 1, 50, 25)  # neither from 0 nor in order


def examples(lengths=LENGTHS, indices=INDICES):
    return [
        Example(index, " ".join(subjects.WORDS[index % 7 : index % 7 + length]), index % 2)
        for index, length in zip(indices, lengths, strict=True)
    ]


@dataclass(frozen=True)
class Echo:
    """Measures what can be known beforehand, some of it under a setting."""

    def __call__(self, context):
        words = context.batch.lengths.double().numpy()
        missing = missing_of({f"batch of {len(context.batch)}": "seen"})
        keys = {"method": "m", "layer": 3, "head": 5, "seed": 2, "setting": "less"}
        found = (Measurement("words", words), Measurement("words", -words, **keys))
        return Findings(found, missing)


def job(texts=None, parts=None, subject=None, **settings):
    settings = {"seed": 0, "max_batch_tokens": 40} | settings
    texts = examples() if texts is None else texts
    return run_job(subject or subjects.subject(), texts, parts or {"echo": Echo()}, **settings)


@pytest.mark.parametrize("budget", [1, 30, 20_000])
def test_columns_are_sorted_by_instance_whatever_the_batch_size(budget):
    result = job(max_batch_tokens=budget)
    by_index = sorted(zip(INDICES, LENGTHS, strict=True))
    assert [one.key for one in result.columns] == [
        MeasureKey("echo", "words"),
        MeasureKey("echo", "words", "m", 3, 5, 2, "less"),
    ]
    for column, sign in zip(result.columns, (1, -1), strict=True):
        assert column.instances.dtype == np.int64
        assert column.instances.tolist() == [index for index, _ in by_index]
        assert column.values.tolist() == [sign * length for _, length in by_index]


def test_the_budget_really_made_other_batches():
    alone, together = (job(max_batch_tokens=n).summary.missing["echo"] for n in (1, 20_000))
    assert alone == (MissingMeasure("batch of 1", "seen"),)
    assert alone[0] not in together


def test_values_do_not_depend_on_batch_or_order():
    parts = {
        "agreement": checks.build("agreement", shuffles=2),
        "permutation": checks.build("permutation", draws=5),
        "mechanism": checks.build("mechanism"),
    }
    alone = job(parts=parts, max_batch_tokens=1)
    together = job(examples()[::-1], parts, max_batch_tokens=20_000)
    other = {one.key: one for one in together.columns}
    assert len(other) == len(alone.columns) > 10
    for one in alone.columns:
        again = other[one.key]
        np.testing.assert_array_equal(one.instances, again.instances)
        np.testing.assert_allclose(one.values, again.values, rtol=1e-9, atol=1e-9)


def test_the_seed_changes_what_is_drawn_and_nothing_else():
    parts = {"permutation": checks.build("permutation", draws=5)}
    one, other = (
        {c.key.measure: c.values for c in job(parts=parts, seed=s).columns} for s in (0, 1)
    )
    assert not np.array_equal(one["median_tvd"], other["median_tvd"])
    np.testing.assert_array_equal(one["max_attention"], other["max_attention"])


@pytest.mark.parametrize(("least", "short"), [(1, 0), (2, 1), (3, 3), (10, 8), (13, 9)])
def test_texts_that_are_too_short_are_counted_and_left_out(least, short):
    result = job(min_words=least)
    assert result.summary.too_short == short
    kept = sorted(i for i, n in zip(INDICES, LENGTHS, strict=True) if n >= least)
    assert sorted(result.predicted) == sorted(result.label) == kept
    for column in result.columns:
        assert column.instances.tolist() == kept


def test_a_text_without_words_is_too_short():
    result = job([Example(0, " ", 0), Example(1, "w1", 0)])
    assert result.summary.too_short == 1
    assert list(result.predicted) == [1]


@pytest.mark.parametrize(("most", "cut"), [(None, 0), (12, 0), (8, 3), (1, 8)])
def test_texts_that_are_cut_are_counted(most, cut):
    model = subjects.subject()
    short = type(model)(model.network, model.vocabulary, model.tokenizer, model.labels, most)
    result = job(subject=short)
    assert result.summary.truncated == cut
    assert result.columns[0].values.max() == min(most or 12, 12)


def test_a_text_that_is_cut_and_left_out_is_not_counted_as_cut():
    model = subjects.subject()
    short = type(model)(model.network, model.vocabulary, model.tokenizer, model.labels, 3)
    summary = job(subject=short, min_words=4).summary
    assert (summary.truncated, summary.too_short) == (0, 9)


def test_classes_are_the_model_s_and_the_data_s():
    model, result = subjects.subject(), job()
    assert result.label == {index: index % 2 for index in INDICES}
    for one in examples():
        forward = model.forward(model.batch([model.encode(one)]))
        assert result.predicted[one.index] == int(forward.predicted)
    assert set(result.predicted.values()) == {0, 1}


def test_the_summary_of_a_job():
    summary = job(parts={"echo": Echo(), "mechanism": checks.build("mechanism")}).summary
    assert summary.dtype == "float64"
    assert 0 <= summary.parity < 1e-12
    assert {"echo", "mechanism", "forward", "leave_one_out", "texts"} == summary.seconds.keys()
    assert summary.missing["mechanism"] == ()
    assert JobSummary.from_dict(json.loads(json.dumps(asdict(summary)))) == summary


def test_progress_is_reported_after_every_batch():
    heard = []
    job(max_batch_tokens=1, report_done=heard.append)
    assert heard == list(range(1, 10))
    heard.clear()
    job(min_words=3, report_done=heard.append)
    assert heard[-1] == 6
    assert heard == sorted(set(heard))


def test_nothing_to_do_is_no_error():
    result = job([])
    assert (result.columns, result.predicted, result.label) == ((), {}, {})
    assert result.summary == JobSummary()


def test_summaries_add_up():
    x, y, z = (
        MissingMeasure("x", "no"),
        MissingMeasure("y", "nor"),
        MissingMeasure("x", "z", "lime"),
    )
    again = MissingMeasure("x", "for another reason")
    one = JobSummary({"a": (x,)}, {"a": {"cpu": 1.0, "wall": 2.0}}, 1e-9, "float64", 3, 1)
    other = JobSummary(
        {"a": (y, again, z), "b": ()}, {"b": {"cpu": 4.0, "wall": 5.0}}, 1e-7, "", 4, 2
    )
    assert one + other == JobSummary(
        {"a": (x, y, z), "b": ()},
        {"a": {"cpu": 1.0, "wall": 2.0}, "b": {"cpu": 4.0, "wall": 5.0}},
        1e-7,
        "float64",
        7,
        3,
    )
    assert sum([one, other], JobSummary()) == one + other
    assert JobSummary() + JobSummary() == JobSummary()
