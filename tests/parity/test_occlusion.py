"""Hidden tokens and words against plain loops and captum; and a linear model, known in advance."""

import jaxtyping
import pytest
import torch
from torch.testing import assert_close as close

from heedful.core.errors import ConfigError
from heedful.core.values import Example
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.erased_words import get_mask_embedding
from support import reference_removal

NAMES = ("bilstm", "cnn", "bert", "gpt2")
names = pytest.mark.parametrize("name", NAMES)


@names
@pytest.mark.parametrize("players", reference_removal.PLAYERS)
def test_equals_a_loop_over_texts_with_one_player_blank(name, players):
    context, target = reference_removal.sitting_of(name)
    one = context.subject
    for of in reference_removal.OF:
        found = reference_removal.explained("occlusion", context, target, of=of, players=players)
        assert max(float(scores.abs().max()) for scores in found) > 1e-3
        for row, text in enumerate(reference_removal.texts_of(name)):
            wanted = int(target[row])
            before = reference_removal.value_hiding(one, text, [], wanted, of)
            parties = reference_removal.members(text, players)
            lost = [
                before - reference_removal.value_hiding(one, text, places, wanted, of)
                for places in parties
            ]
            close(
                found[row], reference_removal.on_tokens(text, players, lost), atol=1e-10, rtol=1e-9
            )


def test_the_texts_have_words_of_several_pieces():
    for name in ("bert", "gpt2"):
        counts = [
            len(p)
            for text in reference_removal.texts_of(name)
            for p in reference_removal.members(text, "words")
        ]
        assert {1, 2, 3} <= set(counts)


@names
@pytest.mark.parametrize("players", reference_removal.PLAYERS)
def test_is_captums_feature_ablation(name, players):
    captum = pytest.importorskip("captum.attr")
    context, target = reference_removal.sitting_of(name)
    one = context.subject
    found = reference_removal.explained("occlusion", context, target, players=players)
    for row, text in enumerate(reference_removal.texts_of(name)):
        batch = one.batch([text])
        groups = torch.zeros(1, len(text.ids), 1, dtype=torch.long)  # special tokens are group 0
        parties = reference_removal.members(text, players)
        for number, places in enumerate(parties, 1):
            groups[0, places] = number
        x = one.embed(batch).detach()

        def output(x, batch=batch, row=row):
            with torch.no_grad():
                return one.forward(batch, x).logits.softmax(-1)[:, int(target[row])]

        blank = get_mask_embedding(context).vector.expand_as(x)
        ablated = captum.FeatureAblation(output).attribute(x, blank, feature_mask=groups)
        lost = [float(ablated[0, places[0], 0]) for places in parties]
        close(found[row], reference_removal.on_tokens(text, players, lost), atol=1e-10, rtol=1e-9)


SIGNED = ("occlusion", "leave_one_out", "kernel_shap", "shapley", "lime")


@pytest.mark.parametrize("name", SIGNED)
@pytest.mark.parametrize("of", ["log_odds", "logit"])
@pytest.mark.parametrize("players", reference_removal.PLAYERS)
def test_a_linear_model_is_explained_by_its_weights_times_its_input(name, of, players):
    lengths, more, near = [6, 1, 2, 9], {}, 1e-12
    if name == "lime":  # against so many samples its penalty of 1 is nothing, but for one word
        lengths, more, near = [6, 3, 2, 9], {"samples": 10**6}, 2e-2
    context, added = reference_removal.linear(lengths)
    target = torch.ones(4, dtype=torch.long)
    method = methods.build(name, of=of, players=players, **more)
    close(method(context, target).scores, added, atol=near, rtol=0)
    other = method(context, 1 - target).scores
    wanted = -added if of == "log_odds" else torch.zeros_like(added)  # its logit is constant
    close(other, wanted, atol=near, rtol=0)


@pytest.fixture
def _unchecked():
    """Settings as users give them, without the tests' own check of types."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.mark.usefixtures("_unchecked")
@pytest.mark.parametrize("name", SIGNED)
def test_wrong_settings_are_refused(name):
    with pytest.raises(ConfigError, match="players must be tokens or words, not 'letters'"):
        methods.build(name, players="letters")
    with pytest.raises(ConfigError, match=r"of must be probability, log_odds(,| or) logit"):
        methods.build(name, of="target")


@pytest.mark.parametrize("name", ["lime", "kernel_shap"])
def test_too_few_samples_are_refused(name):
    with pytest.raises(ConfigError, match="samples must be a whole number of at least 4, not 3"):
        methods.build(name, samples=3)


@pytest.mark.parametrize("name", ["occlusion", "kernel_shap", "shapley"])
@pytest.mark.parametrize("of", reference_removal.OF)
def test_a_word_like_the_blank_has_no_effect(name, of):
    one = reference_removal.subject("bert")
    text = one.encode(Example(0, "good ☃ film was unly", 0))
    assert text.pieces[2] == get_mask_embedding(reference_removal.alone(one, text, 0)[0]).name
    (found,) = reference_removal.explained(name, *reference_removal.alone(one, text, 1), of=of)
    assert float(found[2].abs()) < 1e-12
    assert float(found[[1, 3, 4, 5, 6]].abs().min()) > 1e-4


@pytest.mark.parametrize("name", SIGNED)
def test_words_that_the_model_treats_alike_have_the_same_score(name):
    one = reference_removal.subject("average")  # knows no order
    text = one.encode(Example(0, "w1 w2 w1 w3", 0))
    (found,) = reference_removal.explained(name, *reference_removal.alone(one, text, 1))
    close(found[1], found[3], atol=1e-12, rtol=0)
    assert float((found[1] - found[2]).abs()) > 1e-3


def test_texts_without_a_word_get_no_score():
    one = reference_removal.subject("gpt2")
    texts = [Example(3, text, 0) for text in ("a", "ox")]  # a alone cannot be left out
    batch = one.batch([one.encode(text) for text in texts])
    context, target = BatchContext(one, batch), torch.tensor([0, 1])
    for name in ("occlusion", "lime", "kernel_shap", "shapley", "leave_one_out"):
        empty, other = reference_removal.explained(name, context, target)
        assert not empty.any()
        assert other.all()
