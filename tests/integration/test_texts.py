"""The words and scores a run keeps for its report."""

import numpy as np
import pytest

import heedful
from heedful.results.run_folder import RunFolder
from heedful.results.tables import TEXT_SCHEMA
from support import subjects

ROWS = [
    {"text": "w1 w2 w3 w4", "label": "class0"},
    {"text": "w5", "label": "class1"},
    {"text": "w7 w8 w9", "label": "class0"},
]
QUICK = {"adversarial": {"steps": 5}}


@pytest.mark.parametrize("classes", [2, 3])
def test_every_text_keeps_its_words_and_scores(classes):
    subject = subjects.subject(classes=classes)
    run = heedful.audit(subject, ROWS, settings=QUICK, instances_per_job=2)
    table = RunFolder(run.folder).texts().whole()
    assert table.schema.equals(TEXT_SCHEMA)
    rows = table.to_pylist()
    assert [row["instance"] for row in rows] == [0, 1, 2]
    for row, given in zip(rows, ROWS, strict=True):
        assert row["words"] == given["text"].split()
        assert row["label"] == given["label"]
        shown = heedful.explain(subject, given["text"]).to_dict()
        assert row["predicted"] == shown["target"]
        for name in ("attention", "one_hot_gradient", "leave_one_out"):
            np.testing.assert_allclose(row[name], shown["methods"][name]["scores"], atol=1e-12)
        assert sum(row["adversarial"]) == pytest.approx(1.0)
        assert 1 / classes <= row["probability"] <= 1


def test_what_no_check_asked_for_is_not_computed():
    run = heedful.audit(subjects.subject(), ROWS, checks=["permutation"])
    row = RunFolder(run.folder).texts().whole().to_pylist()[0]
    assert row["attention"] is not None
    assert row["adversarial"] is row["one_hot_gradient"] is row["leave_one_out"] is None
    assert not {"leave_one_out", "gradient"} & set(run.manifest["seconds"])


def test_a_part_with_equal_settings_works_once_in_a_sitting():
    from dataclasses import dataclass

    from heedful.models.batch_context import BatchContext

    worked = []

    @dataclass(frozen=True)
    class Part:
        setting: int = 0

        def __call__(self, context):
            worked.append(self.setting)
            return context.forward.attention

    subject = subjects.subject()
    context = BatchContext(subject, subjects.batch(subject, [3, 4]))
    for part in (Part(), Part(), Part(1), Part(0)):
        context.cached(part)
    assert worked == [0, 1]
