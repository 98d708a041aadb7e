"""One job: everything counted, and nothing left of how the texts were batched."""

import json
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import pytest

import helpers
from heedful.checks import Findings, checks
from heedful.core.records import Measurement
from heedful.core.values import Example
from heedful.pipeline.audit.job import JobSummary, run_job

LENGTHS = (9, 2, 5, 1, 9, 3, 12, 2, 7)
INDICES = (30, 4, 17, 8, 2, 99, 1, 50, 25)  # neither from 0 nor in order


def examples(lengths=LENGTHS, indices=INDICES):
    return [
        Example(index, " ".join(helpers.WORDS[index % 7 : index % 7 + length]), index % 2)
        for index, length in zip(indices, lengths, strict=True)
    ]


@dataclass(frozen=True)
class Echo:
    """Measures what can be known beforehand, some of it under a setting."""

    claim: ClassVar[None] = None
    measures: ClassVar[tuple[str, ...]] = ("words",)
    beside: ClassVar[tuple[str, ...]] = ()
    head_measures: ClassVar[tuple[str, ...]] = ()

    def __call__(self, context):
        words = context.batch.lengths.double().numpy()
        missing = {f"batch of {len(context.batch)}": "seen"}
        found = (Measurement("words", words), Measurement("words", -words, setting="less"))
        return Findings(found, missing)


def job(texts=None, parts=None, subject=None, **settings):
    settings = {"seed": 0, "max_batch_tokens": 40} | settings
    texts = examples() if texts is None else texts
    return run_job(subject or helpers.subject(), texts, parts or {"echo": Echo()}, **settings)


@pytest.mark.parametrize("budget", [1, 30, 20_000])
def test_blocks_are_sorted_by_instance_whatever_the_batch_size(budget):
    result = job(max_batch_tokens=budget)
    by_index = sorted(zip(INDICES, LENGTHS, strict=True))
    assert [(one.check, one.measure, one.setting) for one in result.blocks] == [
        ("echo", "words", None),
        ("echo", "words", "less"),
    ]
    for block, sign in zip(result.blocks, (1, -1), strict=True):
        assert block.instances.dtype == np.int64
        assert block.instances.tolist() == [index for index, _ in by_index]
        assert block.values.tolist() == [sign * length for _, length in by_index]


def test_the_budget_really_made_other_batches():
    assert job(max_batch_tokens=1).beside.missing["echo"].keys() == {"batch of 1"}
    assert "batch of 1" not in job(max_batch_tokens=20_000).beside.missing["echo"]


def test_values_do_not_depend_on_batch_or_order():
    parts = {
        "agreement": checks.build("agreement", shuffles=2),
        "permutation": checks.build("permutation", draws=5),
        "mechanism": checks.build("mechanism"),
    }
    alone = job(parts=parts, max_batch_tokens=1)
    together = job(examples()[::-1], parts, max_batch_tokens=20_000)
    other = {(one.check, one.measure): one for one in together.blocks}
    assert len(other) == len(alone.blocks) > 10
    for one in alone.blocks:
        again = other[one.check, one.measure]
        np.testing.assert_array_equal(one.instances, again.instances)
        np.testing.assert_allclose(one.values, again.values, rtol=1e-9, atol=1e-9)


def test_the_seed_changes_what_is_drawn_and_nothing_else():
    parts = {"permutation": checks.build("permutation", draws=5)}
    one, other = ({b.measure: b.values for b in job(parts=parts, seed=s).blocks} for s in (0, 1))
    assert not np.array_equal(one["median_tvd"], other["median_tvd"])
    np.testing.assert_array_equal(one["max_attention"], other["max_attention"])


@pytest.mark.parametrize(("least", "short"), [(1, 0), (2, 1), (3, 3), (10, 8), (13, 9)])
def test_texts_that_are_too_short_are_counted_and_left_out(least, short):
    result = job(min_words=least)
    assert result.beside.too_short == short
    kept = sorted(i for i, n in zip(INDICES, LENGTHS, strict=True) if n >= least)
    assert sorted(result.predicted) == sorted(result.label) == kept
    for block in result.blocks:
        assert block.instances.tolist() == kept


def test_a_text_without_words_is_too_short():
    result = job([Example(0, " ", 0), Example(1, "w1", 0)])
    assert result.beside.too_short == 1
    assert list(result.predicted) == [1]


@pytest.mark.parametrize(("most", "cut"), [(None, 0), (12, 0), (8, 3), (1, 8)])
def test_texts_that_are_cut_are_counted(most, cut):
    model = helpers.subject()
    short = type(model)(model.network, model.vocabulary, model.tokenizer, model.labels, most)
    result = job(subject=short)
    assert result.beside.truncated == cut
    assert result.blocks[0].values.max() == min(most or 12, 12)


def test_a_text_that_is_cut_and_left_out_is_not_counted_as_cut():
    model = helpers.subject()
    short = type(model)(model.network, model.vocabulary, model.tokenizer, model.labels, 3)
    beside = job(subject=short, min_words=4).beside
    assert (beside.truncated, beside.too_short) == (0, 9)


def test_classes_are_the_model_s_and_the_data_s():
    model, result = helpers.subject(), job()
    assert result.label == {index: index % 2 for index in INDICES}
    for one in examples():
        forward = model.forward(model.batch([model.encode(one)]))
        assert result.predicted[one.index] == int(forward.predicted)
    assert set(result.predicted.values()) == {0, 1}


def test_what_is_told_beside_the_rows():
    beside = job(parts={"echo": Echo(), "mechanism": checks.build("mechanism")}).beside
    assert beside.dtype == "float64"
    assert 0 <= beside.parity < 1e-12
    assert {"echo", "mechanism", "forward", "leave_one_out", "texts"} == beside.seconds.keys()
    assert beside.missing["mechanism"] == {}
    assert json.loads(json.dumps(asdict(beside))) == asdict(beside)


def test_progress_is_told_after_every_batch():
    heard = []
    job(max_batch_tokens=1, report_done=heard.append)
    assert heard == list(range(1, 10))
    heard.clear()
    job(min_words=3, report_done=heard.append)
    assert heard[-1] == 6
    assert heard == sorted(set(heard))


def test_nothing_to_do_is_no_error():
    result = job([])
    assert (result.blocks, result.predicted, result.label) == ((), {}, {})
    assert result.beside == JobSummary()


def test_what_jobs_tell_adds_up():
    one = JobSummary({"a": {"x": "no"}}, {"a": {"cpu": 1.0, "wall": 2.0}}, 1e-9, "float64", 3, 1)
    other = JobSummary(
        {"a": {"y": "nor"}, "b": {}}, {"b": {"cpu": 4.0, "wall": 5.0}}, 1e-7, "", 4, 2
    )
    assert one + other == JobSummary(
        {"a": {"x": "no", "y": "nor"}, "b": {}},
        {"a": {"cpu": 1.0, "wall": 2.0}, "b": {"cpu": 4.0, "wall": 5.0}},
        1e-7,
        "float64",
        7,
        3,
    )
    assert sum([one, other], JobSummary()) == one + other
    assert JobSummary() + JobSummary() == JobSummary()
