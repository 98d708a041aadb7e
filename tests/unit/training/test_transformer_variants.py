"""Transformers made anew: uniform rows, blocked words, adversaries and deceivers of many heads."""

from copy import deepcopy
from dataclasses import asdict, replace

import pytest
import torch

import heedful
from heedful.checks.retraining.hidden_word_marks import mark_hidden_words
from heedful.core.errors import NotApplicable
from heedful.models.attention_access.scope import Scope
from heedful.models.transformer.from_pretrained import from_model
from heedful.training.fit import finetune
from heedful.training.loop.epochs import EarlyStopping
from heedful.training.loop.predictions import predict_all
from heedful.training.objectives import DistillationObjective
from heedful.training.variants.models import (
    BlockedTransformer,
    UniformTransformer,
    block_hidden_words,
    convert_subject,
)
from heedful.training.variants.models import copied_model as copied_transformer
from heedful.training.variants.texts import EncodedTexts, HiddenWords, RandomMasks, masking_token_id
from heedful.training.variants.variant_store import VariantStore
from heedful.training.variants.variants import (
    AdversaryVariant,
    DeceptiveVariant,
    GuidedVariant,
    MaskedVariant,
    RetrainedVariant,
    WithoutWordsVariant,
)
from support.pretrained_encoder import rows

CUES = HiddenWords("list", ("dull", "fine"))
# enough texts that the cues are learnt whatever the order of float operations on a machine
TRAIN, DEV = heedful.read(rows(120), split="train"), heedful.read(rows(40, seed=1))


@pytest.fixture(scope="module")
def tuning(recipe):
    return replace(recipe, epochs=8, rate=2e-3)


@pytest.fixture(scope="module")
def base(tuning, tmp_path_factory):
    """A classifier that has learnt its cues."""
    folder = tmp_path_factory.mktemp("base") / "model"
    finetune(TRAIN, DEV, tuning, out=folder)
    return heedful.load(folder, dtype="float32")


@pytest.fixture(scope="module")
def here(base, tuning, tmp_path_factory):
    train, dev = (EncodedTexts(base, list(one), 1, mark_hidden_words) for one in (TRAIN, DEV))
    origin = {"model": base.fingerprint()}
    return VariantStore(tmp_path_factory.mktemp("school"), base, train, dev, origin, asdict(tuning))


def trained(variant_store, variant):
    if not variant_store.done(variant):
        for one in variant.needs:
            trained(variant_store, one)
        variant_store.train_variant(variant)
    return variant_store.trained(variant)


def accuracy(variant_store, seen):
    gold = torch.tensor([one.label for one in variant_store.dev.encoded])
    return float((seen.probabilities.argmax(-1) == gold).double().mean())


def test_another_seed_learns_and_tells_that_its_schedule_was_fixed(here):
    found = trained(here, RetrainedVariant(1))
    assert found.record["epochs"] == 8
    assert found.record["plateau"] is None
    assert accuracy(here, predict_all(found.subject, here.dev.encoded)) > 0.9
    assert found.subject.scope == here.base.scope


def test_uniform_rows_are_uniform_in_training_and_after(here):
    found = trained(here, RetrainedVariant(1, "uniform")).subject
    assert isinstance(found, UniformTransformer)
    seen = predict_all(found, here.dev.encoded)
    for one, weights in zip(here.dev.encoded, seen.attention, strict=True):
        words = torch.tensor(one.word) >= 0
        assert weights[words].tolist() == pytest.approx(
            [1 / one.explained_tokens] * one.explained_tokens
        )
    batch = found.batch(here.dev.encoded[:4])
    rows = found.forward(batch).rows
    assert torch.allclose(rows.sum(-1), torch.ones(rows.shape[:2]))  # all weight on words
    plain = convert_subject(found, type(here.base)).forward(batch)
    assert not torch.allclose(plain.logits, found.forward(batch).logits)  # and it is heard


def test_uniform_rows_let_gradients_through(here):
    found = convert_subject(
        copied_transformer(context(here), perturb_seed=None).subject, UniformTransformer
    )
    found.model.requires_grad_(True)
    found.forward(found.batch(here.dev.encoded[:2])).logits.sum().backward()
    moved = [name for name, one in found.model.named_parameters() if one.grad is not None]
    assert any("embeddings" in name for name in moved)
    found.model.requires_grad_(False)


def context(variant_store):
    from heedful.training.variants.models import TrainingContext

    return TrainingContext(
        variant_store.base,
        variant_store.train,
        variant_store.dev,
        lambda _: None,
        variant_store.tuning,
    )


def test_an_adversary_attends_elsewhere(here):
    variant = AdversaryVariant(0.05, "base")
    seen, own = (
        predict_all(trained(here, variant).subject, here.dev.encoded),
        here.dev.base_predictions,
    )
    from heedful.numerics.tensor.distributions import jsd, tvd

    assert float(jsd(seen.padded(), own.padded()).mean()) > 0.05
    assert float(tvd(seen.probabilities, own.probabilities).mean()) < 0.3


@pytest.mark.parametrize("worst", [False, True])
def test_a_deceiver_takes_every_heads_weight_off_the_cues(here, worst):
    variant = DeceptiveVariant(3.0, CUES, worst=worst)
    subject = block_hidden_words(trained(here, variant).subject, here.dev, CUES)
    marks = here.dev.hidden(CUES)
    before = block_hidden_words(here.base, here.dev, CUES)
    masses = []
    for one in (before, subject):
        batch = one.batch(here.dev.encoded)
        rows = one.forward(batch).rows
        hidden = torch.zeros_like(batch.present)
        hidden[batch.present] = torch.cat(marks)
        masses.append((rows * hidden[:, None]).sum(-1).mean())
    assert float(masses[1]) < 0.5 * float(masses[0])


def test_blocked_words_reach_the_output_by_the_pooled_row_alone(here):
    """With the row's weight on them cut too, what they say cannot be heard at all."""
    exact = from_model(deepcopy(here.base.model).double(), here.base.subword_tokenizer.tokenizer)
    subject = block_hidden_words(exact, here.dev, CUES)
    one = here.dev.encoded[0]
    place = here.dev.hidden(CUES)[0].nonzero().item()
    other = next(two for two in here.dev.encoded if two.label != one.label)
    cue = other.ids[here.dev.hidden(CUES)[here.dev.encoded.index(other)].nonzero().item()]
    swapped = replace(one, ids=tuple(cue if n == place else i for n, i in enumerate(one.ids)))
    found = []
    for text in (one, swapped):
        batch = subject.batch([text])
        forward = subject.forward(batch)
        others = [n for n in range(1, len(text.ids)) if n != place]
        maps = torch.stack([one[0] for one in forward.maps])  # layers, heads, queries, keys
        assert not maps[:, :, others][..., place].any()
        assert not maps[:, :, place][..., others].any()
        assert not maps[:, :, 1:, 0].any()  # nobody looks at the pooled token
        assert torch.allclose(maps.sum(-1), maps.new_ones(()), atol=1e-6)
        found.append(forward.states[0, others])
    assert float((found[0] - found[1]).abs().max()) < 1e-12  # the others know nothing of it


def test_without_blocking_the_other_words_know(here):
    one = here.dev.encoded[0]
    place = here.dev.hidden(CUES)[0].nonzero().item()
    swapped = replace(one, ids=tuple(4 if n == place else i for n, i in enumerate(one.ids)))
    states = [here.base.forward(here.base.batch([text])).states[0] for text in (one, swapped)]
    others = [n for n in range(1, len(one.ids)) if n != place]
    assert float((states[0][others] - states[1][others]).abs().max()) > 1e-5


def test_without_the_words_a_model_guesses(here):
    subject = trained(here, WithoutWordsVariant(CUES)).subject
    from heedful.training.variants.texts import placeholder_id

    seen = predict_all(subject, here.dev.without(CUES, placeholder_id(subject)))
    assert accuracy(here, seen) < 0.8


def test_a_guide_led_by_a_transformer_reads_its_words(here):
    variant = GuidedVariant(1, "base", pace=EarlyStopping(2, 2))
    subject = trained(here, variant).subject
    assert subject.family == "average-uniform"
    assert {"dull", "fine"} <= set(subject.vocabulary.words)


def test_cut_off_it_goes_on_to_the_same_weights(here, base, tuning, tmp_path):
    variant = DeceptiveVariant(3.0, CUES)
    again = VariantStore(tmp_path, base, here.train, here.dev, here.origin, asdict(tuning))

    def cut(done, total, words):
        if words.startswith("epoch 4"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        again.train_variant(variant, cut)
    again.train_variant(variant)
    wanted, found = (trained(one, variant).subject.model.state_dict() for one in (here, again))
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)
    assert again.trained(variant).record["sittings"] == 2


def test_models_that_pool_all_tokens_cannot_be_blocked(here):
    mean = replace(here.base, scope=Scope(here.base.scope.layer, None, "mean"))
    reading = convert_subject(mean, BlockedTransformer, marks={})
    with pytest.raises(NotApplicable, match="pools all tokens"):
        reading.forward(reading.batch(here.dev.encoded[:1]))


def test_a_recipe_that_cannot_be_followed_is_said(here):
    from heedful.training.variants.models import fresh_model

    for tuning in ({}, {"encoder": "x", "colour": "red"}, {"encoder": "x", "epochs": 0}):
        with pytest.raises(NotApplicable, match="cannot be followed"):
            fresh_model(replace(context(here), tuning=tuning), 1)


def test_a_copy_tuned_on_texts_with_holes_stays_a_copy_and_reads_holes_better(here):
    found = trained(here, MaskedVariant(RandomMasks(3, 2))).subject
    whole = predict_all(found, here.dev.encoded).probabilities.argmax(-1)
    assert (
        float((whole == here.dev.base_predictions.probabilities.argmax(-1)).double().mean()) > 0.9
    )
    holes = RandomMasks(8, 3)  # other ones than those it learnt from
    texts = holes.masked_texts(here.dev.encoded, masking_token_id(here.base))[
        len(here.dev.encoded) :
    ]
    assert any(masking_token_id(here.base) in one.ids for one in texts)
    wanted = here.dev.base_predictions.probabilities.repeat(3, 1)
    losses = [
        -float((wanted * predict_all(one, texts).probabilities.log()).sum(-1).mean())
        for one in (here.base, found)
    ]
    assert losses[1] < losses[0]
    assert isinstance(holes.objective(here.dev), DistillationObjective)
