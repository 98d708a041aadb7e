"""Randomisation in whole audits of a trained model: what was learned, and what was not."""

import io
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from rich.console import Console

import heedful
from heedful.core.records import MissingMeasure
from heedful.core.values import Explanation
from heedful.methods import methods
from heedful.report.terminal.verdict_card import print_card
from heedful.training.fit import fit
from support.retraining import RECIPE, base, data, model
from support.sections import sections_of

SIZES = {"train": 400, "dev": 60, "test": 60}
GRADIENTS = ("gradient", "input_x_gradient", "one_hot_gradient")


@dataclass(frozen=True)
class Early:
    """The earlier a word, the higher its score, whatever the model says."""

    kind: ClassVar[str] = "saliency"
    signed: ClassVar[bool] = False
    join: ClassVar[str] = "sum"

    def __call__(self, context, target):
        mask = context.batch.mask
        places = (1.0 / (1 + torch.arange(mask.shape[1]))).double().expand(mask.shape)
        return Explanation("early", places.masked_fill(~mask, 0.0), mask)


@pytest.fixture(scope="module")
def early():
    methods.register("early")(Early)
    yield
    del methods._parts["early"]


@pytest.fixture(scope="module")
def run(early):
    settings = {"randomisation": {"methods": ["early", *GRADIENTS, "leave_one_out"]}}
    return heedful.audit(
        base(), data("test", 80), checks=["randomisation"], settings=settings, resamples=300
    )


def test_what_was_learned_is_lost_and_what_was_not_is_convicted(run):
    found = run.verdict.checks["randomisation"]
    assert found.answer == "no vote"
    alike = found.by_method("rank_correlation")
    assert alike["early"].value == pytest.approx(1.0)
    for name in ("attention", *GRADIENTS, "leave_one_out"):
        assert alike[name].high < 0.5, name
    assert "Hardly dependent on what was learned (ρ above 0.5): early (1.000" in found.why
    assert found.why.count("(1.000") == 1
    assert alike["random"].low < 0 < alike["random"].high
    assert found.missing == (
        MissingMeasure("rank_correlation", "equal scores rank nothing", "uniform"),
    )


def test_a_layer_that_a_method_does_not_read_leaves_it_as_it_was(run):
    """Attention of a BiLSTM never sees the output layer."""
    rows = run.verdict.checks["randomisation"].rows("rank_correlation", method="attention")
    by_setting = {row.setting: row.estimate.value for row in rows if row.setting}
    columns = run.records.columns.of_check("randomisation").items()
    found = {key.setting: one for key, one in columns if key.method == "attention" and key.setting}
    for setting, values in found.items():
        assert by_setting[setting] == pytest.approx(np.nanmean(values))
    for setting in ("cascade 1: decoder", "only decoder"):
        assert by_setting[setting] == pytest.approx(1.0)
    assert list(by_setting) == [
        *("cascade 1: decoder", "cascade 2: attention", "cascade 3: encoder"),
        *("cascade 4: embedding", "only decoder", "only attention", "only encoder"),
        "only embedding",
    ]


def test_the_page_has_every_setting(run):
    found = sections_of(run.records)
    (table,) = found["check-randomisation"].tables
    assert table.head[1:-1] == ("with all weights random, ρ",)
    (settings,) = found["check-randomisation-settings"].tables
    assert len(settings.rows) == 8
    assert {"attention", "early"} <= {*settings.head}
    html = run.report(run.folder / "page.html").read_text(encoding="utf-8")
    assert "cascade 2: attention" in html


@pytest.mark.study
def test_labels_that_taught_nothing_leave_what_reads_no_model(early):
    """Trained on other labels attention is another; a method that ignores the model is the same."""
    votes = {one: data(one, n, "synthetic:votes") for one, n in SIZES.items()}
    subject = fit(votes["train"], votes["dev"], replace(RECIPE, epochs=5))
    asked = {"methods": ["early", "leave_one_out"], "seeds": 2, "epochs": 15, "patience": 15}
    run = heedful.audit(
        subject,
        votes["test"],
        checks=["labels"],
        settings={"labels": asked},
        train=votes["train"],
        dev=votes["dev"],
        retraining={"workers": 1},
        resamples=300,
    )
    found = run.verdict.checks["labels"]
    assert found.answer == "no vote"
    alike, learned = (found.by_method(one) for one in ("rank_correlation", "learned"))
    assert alike["early"].value == pytest.approx(1.0)
    assert learned["early"].value == pytest.approx(0.0)
    for name in ("attention", "leave_one_out"):
        assert alike[name].high < 0.5
        assert learned[name].low > 0
    assert "No nearer to the model with the labels than without: early." in found.why
    assert "Hardly dependent on the labels (ρ above 0.5): early (1.000" in found.why
    (table,) = sections_of(run.records)["check-labels"].tables
    assert table.head[1] == "with labels shuffled, ρ"
    names = [told["name"] for told in run.manifest["retrained"]]
    assert names.count("shuffled labels, seed 1") == 1
    assert min(max(told["dev_scores"]) for told in run.manifest["retrained"]) > 0.9  # by heart
    assert "What the labels add" in card_text(run)


def card_text(run):
    console = Console(record=True, width=120, file=io.StringIO())
    print_card(run.verdict, run.manifest, details=True, console=console)
    return console.export_text()


def test_without_training_texts_labels_says_so():
    rows = [{"text": "a fine film", "label": name} for name in base().labels]
    found = heedful.audit(base(), rows, checks=["labels"]).verdict.checks["labels"]
    assert found.answer == "undecided"
    assert "no training split" in found.why


def test_numbers_do_not_depend_on_the_batch_size(tmp_path):
    subject = model(tmp_path)  # in float64, as models are loaded
    settings = {"randomisation": {"methods": ["leave_one_out"]}}
    frames = [
        heedful.audit(
            subject,
            data("test", 30),
            checks=["randomisation"],
            settings=settings,
            max_batch_tokens=size,
            resamples=100,
        ).to_dataframe()
        for size in (30, 20_000)
    ]
    assert (frames[0]["setting"].fillna("") == frames[1]["setting"].fillna("")).all()
    torch.testing.assert_close(
        *(torch.tensor(one["value"].to_numpy()) for one in frames),
        atol=1e-6,
        rtol=0,
        equal_nan=True,
    )
