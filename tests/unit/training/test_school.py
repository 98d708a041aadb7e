"""Lessons: what each makes, that it is made once, and the same after an interruption."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from heedful.core.batch import collate
from heedful.core.errors import ConfigError, NotApplicable, RunError
from heedful.numerics.tensor.distributions import jsd, tvd
from heedful.training.fit import fit
from heedful.training.loop.predictions import outlook
from heedful.training.variants.context import recipe_of
from heedful.training.variants.guided_model import by_words, outputs_under, word_weights
from heedful.training.variants.hidden_words import Hidden, without
from heedful.training.variants.masked_copy import Holes
from heedful.training.variants.serialisation import from_dict, to_dict
from heedful.training.variants.variant_store import DONE, in_order
from heedful.training.variants.variants import (
    Adversary,
    Deceived,
    Guided,
    Masked,
    Pace,
    Retrained,
    Shuffled,
    WithoutWords,
)
from schooling import RECIPE, base, data, school

SHORT = Pace(3, 3)
NEEDLES = Hidden("rationale")
LESSONS = (
    Retrained(1, pace=SHORT),
    Retrained(1, "uniform", SHORT),
    Adversary(0.01, "base", pace=SHORT),
    Adversary(0.01, "scratch", reverse=True, pace=SHORT),
    Guided(2, "own", pace=SHORT),
    Guided(2, "base", pace=SHORT),
    Guided(2, "adversary", Adversary(0.01, "base", pace=SHORT), pace=SHORT),
    Deceived(1.0, NEEDLES, pace=SHORT),
    Deceived(1.0, Hidden("list", ("superb", "awful")), worst=True, pace=SHORT),
    WithoutWords(NEEDLES, pace=SHORT),
    Shuffled(1, SHORT),
    Masked(Holes(1, 2), SHORT),
)


def weights(subject):
    return {name: one.clone() for name, one in subject.network.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    """Every lesson, taught once."""
    here = school(tmp_path_factory.mktemp("school"))
    for lesson in in_order(LESSONS):
        here.teach(lesson)
    return here


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_a_lesson_is_data(lesson):
    assert from_dict(to_dict(lesson)) == lesson
    assert len({repr(to_dict(one)) for one in LESSONS}) == len(LESSONS)


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_what_is_kept_is_a_model_and_how_it_came_about(taught, lesson):
    assert taught.done(lesson)
    found = taught.taught(lesson)
    assert found.subject.labels == base().labels
    assert found.told["epochs"] == len(found.told["dev_scores"]) == 3
    assert found.told["cpu_seconds"] > 0
    assert not (taught.place(lesson) / "checkpoint.safetensors").exists()


def test_another_seed_is_the_same_recipe_with_another_seed(taught):
    wanted = fit(data("train", 160), data("dev", 60), replace(RECIPE, seed=1))
    found = taught.taught(LESSONS[0]).subject
    assert same(weights(wanted), {k: v.float() for k, v in weights(found).items()})


def test_uniform_attention_is_uniform_and_learns(taught):
    subject = taught.taught(LESSONS[1]).subject
    seen = outlook(subject, taught.dev.encoded)
    for one, found in zip(taught.dev.encoded, seen.attention, strict=True):
        inside = torch.tensor(one.word) >= 0
        assert found[inside].tolist() == pytest.approx([1 / one.explained] * one.explained)
        assert not found[~inside].any()


def test_an_adversary_from_the_base_attends_elsewhere_and_says_nearly_the_same(tmp_path):
    here = school(tmp_path)
    lessons = [Adversary(weight, "base", pace=Pace(10, 10)) for weight in (0.0001, 1.0)]
    found = []
    for lesson in lessons:
        here.teach(lesson)
        seen, own = outlook(here.taught(lesson).subject, here.dev.encoded), here.dev.outlook
        found.append(
            (
                float(tvd(seen.probabilities, own.probabilities).mean()),
                float(jsd(seen.padded(), own.padded()).mean()),
            )
        )
    assert found[0][1] < 0.1 < found[1][1]
    assert found[0][0] < 0.1


def test_the_worth_an_adversary_is_chosen_by_is_its_loss_on_dev(taught):
    lesson = LESSONS[2]
    told, subject = taught.taught(lesson).told, taught.taught(lesson).subject
    seen, own = outlook(subject, taught.dev.encoded), taught.dev.outlook
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
    assert max(told["dev_scores"]) == pytest.approx(-total / len(taught.dev.encoded), abs=1e-5)


def test_a_guide_is_obeyed(taught):
    """Under the base's weights the output is the weighted sum of the words' own contributions."""
    lesson = LESSONS[5]
    subject, texts = taught.taught(lesson).subject, taught.dev
    read = by_words(subject, texts.encoded)
    given = word_weights(texts.encoded, texts.outlook)
    found = outputs_under(subject, read, given)
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
    assert not torch.allclose(found, outputs_under(subject, read, None))


def test_words_weigh_what_their_pieces_weigh():
    from heedful.core.batch import Encoded
    from heedful.training.loop.predictions import Outlook

    one = Encoded(0, 1, (9, 1, 2, 3, 9), (-1, 0, 0, 1, -1), ("unlike", "it"))
    seen = Outlook(torch.ones(1, 2) / 2, (torch.tensor([0.3, 0.1, 0.2, 0.4, 0.0]),))
    assert word_weights([one], seen)[0].tolist() == pytest.approx([0.0, 0.3, 0.4, 0.0])


def test_a_deceiver_takes_its_attention_off_the_hidden_words(tmp_path):
    here = school(tmp_path)
    lesson = Deceived(5.0, NEEDLES, pace=Pace(8, 8))
    here.teach(lesson)
    seen = outlook(here.taught(lesson).subject, here.dev.encoded)
    masses = [
        [
            float(one[gone].sum())
            for one, gone in zip(o.attention, here.dev.hidden(NEEDLES), strict=True)
        ]
        for o in (here.dev.outlook, seen)
    ]
    assert np.mean(masses[1]) < 0.5 * np.mean(masses[0])


def test_without_the_words_nothing_can_be_learnt(taught):
    subject = taught.taught(LESSONS[9]).subject
    shorter = taught.dev.without(NEEDLES, 1)
    outputs = outlook(subject, shorter).probabilities
    right = (outputs.argmax(-1) == torch.tensor([one.label for one in shorter])).double().mean()
    assert float(right) < 0.75
    assert all(
        len(a.ids) == len(b.ids) - 1 for a, b in zip(shorter, taught.dev.encoded, strict=True)
    )


def test_a_text_of_hidden_words_alone_keeps_a_blank():
    from heedful.core.batch import Encoded

    one = Encoded(0, 1, (2, 7, 8, 3), (-1, 0, 1, -1), ("so", "fine"))
    gone = torch.tensor([False, True, True, False])
    assert without(one, gone, blank=1).ids == (2, 1, 3)
    assert without(one, gone, blank=1).word == (-1, 0, -1)
    assert without(one, ~gone & gone, blank=1) == one


def test_keys_name_everything(tmp_path):
    here = school(tmp_path)
    other = replace(here, origin={"model": "another"})
    assert len({here.key(one) for one in LESSONS} | {other.key(one) for one in LESSONS}) == 24
    assert here.key(Retrained(1, pace=SHORT)) == here.key(LESSONS[0])


def test_lessons_come_after_what_they_need_and_once():
    guided = LESSONS[6]
    order = in_order([guided, LESSONS[2], guided])
    assert order == [LESSONS[2], guided]


@pytest.mark.parametrize("lesson", [LESSONS[0], LESSONS[2], LESSONS[7]], ids=str)
def test_cut_off_in_an_epoch_it_goes_on_to_the_same_weights(taught, lesson, tmp_path):
    here = school(tmp_path)

    def cut(done, total, words):
        if words.startswith("epoch 2") and done % 10 == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        here.teach(lesson, cut)
    assert not here.done(lesson)
    assert (here.place(lesson) / "checkpoint.safetensors").exists()
    here.teach(lesson)
    told = here.taught(lesson).told
    assert told["sittings"] == 2
    assert told["dev_scores"] == taught.taught(lesson).told["dev_scores"]
    assert same(weights(here.taught(lesson).subject), weights(taught.taught(lesson).subject))


def test_threads_are_one_inside_and_as_before_after(tmp_path):
    here, seen = school(tmp_path), []
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        here.teach(LESSONS[4], lambda *_: seen.append(torch.get_num_threads()))
        assert set(seen) == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_a_damaged_lesson_is_named(taught, tmp_path):
    here = school(tmp_path)
    here.place(LESSONS[0]).mkdir()
    (here.place(LESSONS[0]) / DONE).write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        here.taught(LESSONS[0])


@pytest.mark.parametrize(
    ("history", "told"),
    [
        ({}, "does not say how it was trained"),
        ({"recipe": {"epochs": 3}}, "cannot be followed"),
        ({"recipe": {"tokenizer": {}, "colour": "red"}}, "cannot be followed"),
        ({"recipe": {"tokenizer": {}, "epochs": 0}}, "cannot be followed"),
    ],
)
def test_a_model_without_a_recipe_cannot_be_made_anew(history, told):
    with pytest.raises(NotApplicable, match=told):
        recipe_of(replace(base(), history=history))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Adversary(-1.0),
        lambda: Adversary(0.1, "moon"),
        lambda: Deceived(-0.1, NEEDLES),
        lambda: Deceived(0.1, NEEDLES, "moon"),
        lambda: Guided(1, "adversary"),
        lambda: Guided(1, "base", Adversary(0.1)),
        lambda: Hidden("list"),
        lambda: Hidden("rationale", ("word",)),
        lambda: Hidden("moon"),
        lambda: Hidden("saliency", share=1.0),
    ],
)
def test_wrong_lessons_are_refused(wrong):
    with pytest.raises(ConfigError):
        wrong()


def test_shuffled_labels_are_those_of_other_texts_and_judged_by_themselves(taught):
    texts = taught.train.shuffled(1)
    own = [one.label for one in taught.train.examples]
    dealt = [one.label for one in texts.examples]
    assert sorted(dealt) == sorted(own)
    assert 0.3 < np.mean([a == b for a, b in zip(own, dealt, strict=True)]) < 0.7
    assert dealt == [one.label for one in taught.train.shuffled(1).examples]
    assert dealt != [one.label for one in taught.train.shuffled(2).examples]
    assert [one.text for one in texts.examples] == [one.text for one in taught.train.examples]
    made = taught.taught(Shuffled(1, SHORT))
    right = outlook(made.subject, texts.encoded).probabilities.argmax(-1)
    known = np.mean([int(a) == b for a, b in zip(right, dealt, strict=True)])
    best = made.told["dev_accuracies"][made.told["best_epoch"] - 1]
    assert known == pytest.approx(best)
