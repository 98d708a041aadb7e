"""Lessons: what each makes, that it is made once, and the same after an interruption."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

import heedful.training.variants.variant_store as school_module
from heedful.core.batch import collate
from heedful.core.errors import ConfigError, NotApplicable, RunError
from heedful.numerics.tensor.distributions import jsd, tvd
from heedful.training.fit import fit
from heedful.training.loop.epochs import EarlyStopping
from heedful.training.loop.predictions import predict_all
from heedful.training.variants.guided_model import (
    encode_seen_words,
    predict_under_weights,
    word_weights,
)
from heedful.training.variants.models import read_recipe
from heedful.training.variants.texts import HiddenWords, RandomMasks, delete_hidden
from heedful.training.variants.variant_store import VARIANT_FILE, dependency_order
from heedful.training.variants.variants import (
    AdversaryVariant,
    DeceptiveVariant,
    GuidedVariant,
    MaskedVariant,
    RetrainedVariant,
    ShuffledLabelsVariant,
    WithoutWordsVariant,
    variant_from_dict,
    variant_to_dict,
)
from support.retraining import RECIPE, base, data, variant_store

SHORT = EarlyStopping(3, 3)
NEEDLES = HiddenWords("rationale")
LESSONS = (
    RetrainedVariant(1, pace=SHORT),
    RetrainedVariant(1, "uniform", SHORT),
    AdversaryVariant(0.01, "base", pace=SHORT),
    AdversaryVariant(0.01, "scratch", reverse=True, pace=SHORT),
    GuidedVariant(2, "own", pace=SHORT),
    GuidedVariant(2, "base", pace=SHORT),
    GuidedVariant(2, "adversary", AdversaryVariant(0.01, "base", pace=SHORT), pace=SHORT),
    DeceptiveVariant(1.0, NEEDLES, pace=SHORT),
    DeceptiveVariant(1.0, HiddenWords("list", ("superb", "awful")), worst=True, pace=SHORT),
    WithoutWordsVariant(NEEDLES, pace=SHORT),
    ShuffledLabelsVariant(1, SHORT),
    MaskedVariant(RandomMasks(1, 2), SHORT),
)


def weights(subject):
    return {name: one.clone() for name, one in subject.network.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Every lesson, taught once."""
    here = variant_store(tmp_path_factory.mktemp("school"))
    for variant in dependency_order(LESSONS):
        here.train_variant(variant)
    return here


@pytest.mark.parametrize("variant", LESSONS, ids=str)
def test_a_lesson_is_data(variant):
    assert variant_from_dict(variant_to_dict(variant)) == variant
    assert len({repr(variant_to_dict(one)) for one in LESSONS}) == len(LESSONS)


@pytest.mark.parametrize("variant", LESSONS, ids=str)
def test_what_is_kept_is_a_model_and_how_it_came_about(trained, variant):
    assert trained.done(variant)
    found = trained.trained(variant)
    assert found.subject.labels == base().labels
    assert found.record["epochs"] == len(found.record["dev_scores"]) == 3
    assert found.record["cpu_seconds"] > 0
    assert not (trained.variant_folder(variant) / "checkpoint.safetensors").exists()


def test_another_seed_is_the_same_recipe_with_another_seed(trained):
    wanted = fit(data("train", 160), data("dev", 60), replace(RECIPE, seed=1))
    found = trained.trained(LESSONS[0]).subject
    assert same(weights(wanted), {k: v.float() for k, v in weights(found).items()})


def test_uniform_attention_is_uniform_and_learns(trained):
    subject = trained.trained(LESSONS[1]).subject
    seen = predict_all(subject, trained.dev.encoded)
    for one, found in zip(trained.dev.encoded, seen.attention, strict=True):
        inside = torch.tensor(one.word) >= 0
        assert found[inside].tolist() == pytest.approx(
            [1 / one.explained_tokens] * one.explained_tokens
        )
        assert not found[~inside].any()


def test_an_adversary_from_the_base_attends_elsewhere_and_says_nearly_the_same(tmp_path):
    here = variant_store(tmp_path)
    lessons = [
        AdversaryVariant(weight, "base", pace=EarlyStopping(10, 10)) for weight in (0.0001, 1.0)
    ]
    found = []
    for variant in lessons:
        here.train_variant(variant)
        seen, own = (
            predict_all(here.trained(variant).subject, here.dev.encoded),
            here.dev.base_predictions,
        )
        found.append(
            (
                float(tvd(seen.probabilities, own.probabilities).mean()),
                float(jsd(seen.padded(), own.padded()).mean()),
            )
        )
    assert found[0][1] < 0.1 < found[1][1]
    assert found[0][0] < 0.1


def test_the_worth_an_adversary_is_chosen_by_is_its_loss_on_dev(trained):
    variant = LESSONS[2]
    told, subject = trained.trained(variant).record, trained.trained(variant).subject
    seen, own = predict_all(subject, trained.dev.encoded), trained.dev.base_predictions
    total = 0.0
    for p, q, a, b in zip(
        seen.probabilities.tolist(),
        own.probabilities.tolist(),
        seen.attention,
        own.attention,
        strict=True,
    ):
        moved = 0.5 * sum(abs(x - y) for x, y in zip(p, q, strict=True))
        inside = b > 0
        total += moved - 0.01 * float((a[inside] * (a[inside] / b[inside]).log()).sum())
    assert max(told["dev_scores"]) == pytest.approx(-total / len(trained.dev.encoded), abs=1e-5)


def test_a_guide_is_obeyed(trained):
    """Under the base's weights the output is the weighted sum of the words' own contributions."""
    variant = LESSONS[5]
    subject, texts = trained.trained(variant).subject, trained.dev
    read = encode_seen_words(subject, texts.encoded)
    given = word_weights(texts.encoded, texts.base_predictions)
    found = predict_under_weights(subject, read, given)
    for row in (0, 7):
        forward = subject.forward(collate([read[row]]))
        each = subject.decoder(collate([read[row]]), forward)
        logits = [
            float(each.bias[c])
            + sum(
                float(weight) * float(each.contributions[0, t, c])
                for t, weight in enumerate(given[row])
            )
            for c in range(2)
        ]
        wanted = np.exp(logits) / np.exp(logits).sum()
        assert found[row].tolist() == pytest.approx(wanted.tolist())
    assert not torch.allclose(found, predict_under_weights(subject, read, None))


def test_words_weigh_what_their_pieces_weigh():
    from heedful.core.batch import Encoded
    from heedful.training.loop.predictions import Predictions

    one = Encoded(0, 1, (9, 1, 2, 3, 9), (-1, 0, 0, 1, -1), ("unlike", "it"))
    seen = Predictions(torch.ones(1, 2) / 2, (torch.tensor([0.3, 0.1, 0.2, 0.4, 0.0]),))
    assert word_weights([one], seen)[0].tolist() == pytest.approx([0.0, 0.3, 0.4, 0.0])


def test_a_deceiver_takes_its_attention_off_the_hidden_words(tmp_path):
    here = variant_store(tmp_path)
    variant = DeceptiveVariant(5.0, NEEDLES, pace=EarlyStopping(8, 8))
    here.train_variant(variant)
    seen = predict_all(here.trained(variant).subject, here.dev.encoded)
    masses = [
        [
            float(one[gone].sum())
            for one, gone in zip(o.attention, here.dev.hidden(NEEDLES), strict=True)
        ]
        for o in (here.dev.base_predictions, seen)
    ]
    assert np.mean(masses[1]) < 0.5 * np.mean(masses[0])


def test_without_the_words_nothing_can_be_learnt(trained):
    subject = trained.trained(LESSONS[9]).subject
    shorter = trained.dev.without(NEEDLES, 1)
    outputs = predict_all(subject, shorter).probabilities
    right = (outputs.argmax(-1) == torch.tensor([one.label for one in shorter])).double().mean()
    assert float(right) < 0.75
    assert all(
        len(a.ids) == len(b.ids) - 1 for a, b in zip(shorter, trained.dev.encoded, strict=True)
    )


def test_a_text_of_hidden_words_alone_keeps_a_blank():
    from heedful.core.batch import Encoded

    one = Encoded(0, 1, (2, 7, 8, 3), (-1, 0, 1, -1), ("so", "fine"))
    gone = torch.tensor([False, True, True, False])
    assert delete_hidden(one, gone, blank=1).ids == (2, 1, 3)
    assert delete_hidden(one, gone, blank=1).word == (-1, 0, -1)
    assert delete_hidden(one, ~gone & gone, blank=1) == one


def test_keys_name_everything(tmp_path):
    here = variant_store(tmp_path)
    other = replace(here, origin={"model": "another"})
    assert len({here.key(one) for one in LESSONS} | {other.key(one) for one in LESSONS}) == 24
    assert here.key(RetrainedVariant(1, pace=SHORT)) == here.key(LESSONS[0])


def test_lessons_come_after_what_they_need_and_once():
    guided = LESSONS[6]
    order = dependency_order([guided, LESSONS[2], guided])
    assert order == [LESSONS[2], guided]


@pytest.mark.parametrize("variant", [LESSONS[0], LESSONS[2], LESSONS[7]], ids=str)
def test_cut_off_in_an_epoch_it_goes_on_to_the_same_weights(trained, variant, tmp_path):
    here = variant_store(tmp_path)

    def cut(done, total, words):
        if words.startswith("epoch 2") and done % 10 == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        here.train_variant(variant, cut)
    assert not here.done(variant)
    assert (here.variant_folder(variant) / "checkpoint.safetensors").exists()
    here.train_variant(variant)
    told = here.trained(variant).record
    assert told["sittings"] == 2
    assert told["dev_scores"] == trained.trained(variant).record["dev_scores"]
    assert same(weights(here.trained(variant).subject), weights(trained.trained(variant).subject))


def test_threads_are_one_inside_and_as_before_after(tmp_path):
    here, seen = variant_store(tmp_path), []
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        here.train_variant(LESSONS[4], lambda *_: seen.append(torch.get_num_threads()))
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_damaged_lesson_is_named(trained, tmp_path):
    here = variant_store(tmp_path)
    here.variant_folder(LESSONS[0]).mkdir()
    (here.variant_folder(LESSONS[0]) / VARIANT_FILE).write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        here.trained(LESSONS[0])


def test_how_a_training_went_is_read_without_its_weights(trained, monkeypatch):
    monkeypatch.setattr(school_module, "_load_variant", None)
    for variant in LESSONS:
        found = trained.record(variant)
        assert found["key"] == trained.key(variant)
        assert found["name"] == str(variant)
        assert len(found["dev_scores"]) == 3


def test_few_models_are_in_memory_at_once_and_their_outputs_no_longer_than_they(trained):
    kept = []
    for variant in LESSONS[:4]:
        subject = trained.trained(variant).subject
        assert trained.trained(variant).subject is subject
        trained.dev.predict_with(subject)
        kept.append(weakref.ref(subject))
    del subject
    gc.collect()
    assert [one() is not None for one in kept] == [False, False, True, True]
    assert len(trained.loaded) == school_module.MODELS_IN_MEMORY == 2
    assert (
        sum(one in trained.dev.predictions for one in (base(), *(one() for one in kept[2:]))) >= 2
    )
    assert len(trained.dev.predictions) <= 3


@pytest.mark.parametrize(
    ("history", "told"),
    [
        ({}, "no record of how it was trained"),
        ({"recipe": {"epochs": 3}}, "cannot be followed"),
        ({"recipe": {"tokenizer": {}, "colour": "red"}}, "cannot be followed"),
        ({"recipe": {"tokenizer": {}, "epochs": 0}}, "cannot be followed"),
    ],
)
def test_a_model_without_a_recipe_cannot_be_made_anew(history, told):
    with pytest.raises(NotApplicable, match=told):
        read_recipe(replace(base(), history=history))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: AdversaryVariant(-1.0),
        lambda: AdversaryVariant(0.1, "moon"),
        lambda: DeceptiveVariant(-0.1, NEEDLES),
        lambda: DeceptiveVariant(0.1, NEEDLES, "moon"),
        lambda: GuidedVariant(1, "adversary"),
        lambda: GuidedVariant(1, "base", AdversaryVariant(0.1)),
        lambda: HiddenWords("list"),
        lambda: HiddenWords("rationale", ("word",)),
        lambda: HiddenWords("moon"),
        lambda: HiddenWords("saliency", share=1.0),
    ],
)
def test_wrong_lessons_are_refused(wrong):
    with pytest.raises(ConfigError):
        wrong()


def test_shuffled_labels_are_those_of_other_texts_and_judged_by_themselves(trained):
    texts = trained.train.shuffled(1)
    own = [one.label for one in trained.train.examples]
    dealt = [one.label for one in texts.examples]
    assert sorted(dealt) == sorted(own)
    assert 0.3 < np.mean([a == b for a, b in zip(own, dealt, strict=True)]) < 0.7
    assert dealt == [one.label for one in trained.train.shuffled(1).examples]
    assert dealt != [one.label for one in trained.train.shuffled(2).examples]
    assert [one.text for one in texts.examples] == [one.text for one in trained.train.examples]
    made = trained.trained(ShuffledLabelsVariant(1, SHORT))
    right = predict_all(made.subject, texts.encoded).probabilities.argmax(-1)
    known = np.mean([int(a) == b for a, b in zip(right, dealt, strict=True)])
    best = made.record["dev_accuracies"][made.record["best_epoch"] - 1]
    assert known == pytest.approx(best)
