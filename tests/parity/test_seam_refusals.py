"""What the seam refuses, and what it says to the user."""

import jaxtyping
import pytest
import torch
import transformers

import tiny
import tiny_tokenizers
from heedful.core.errors import AttentionUnavailable, ConfigError
from heedful.models.attention_access.scope import Scope
from heedful.models.transformer.from_pretrained import from_model
from seams import batch, hand_made, inputs, made, subject


@pytest.fixture
def as_in_use():
    """Types unchecked, as users run it: what is refused here, our own messages refuse."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.mark.parametrize("kinds", [["fused"], ["exponent"], ["decoy"], ["softmax", "fused"]])
def test_attention_that_cannot_be_reached_is_refused(kinds):
    with pytest.raises(AttentionUnavailable, match=r"heedful\.Subject.*docs/your-own-model\.md"):
        hand_made(*kinds)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Longformer", tiny.LARGE | {"attention_window": 8}),
        (
            "Funnel",
            {"vocab_size": tiny_tokenizers.V, "d_model": 32, "n_head": 4, "block_sizes": [1, 1]},
        ),
    ],
)
def test_attention_that_is_no_map_of_all_tokens_is_refused(kind, more, as_in_use):
    settings = getattr(transformers, f"{kind}Config")(**more)
    model = getattr(transformers, f"{kind}ForSequenceClassification")(settings).eval()
    with pytest.raises(AttentionUnavailable, match="does not attend from every token") as error:
        from_model(model, tiny_tokenizers.words())
    assert "heedful.Subject" in str(error.value)  # what to do


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_an_unknown_argument_is_refused(name):
    one = subject(name)
    given = inputs(one, batch(one))
    with one.access.patched(), torch.no_grad():
        one.model(**given, mystery=None)  # nothing was said
        with pytest.raises(AttentionUnavailable, match="'mystery', which heedful does not know"):
            one.model(**given, mystery=torch.ones(2))
    assert one.model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("name", ["bert", "deberta"])
def test_training_mode_is_refused(name):
    model = tiny.build(name)
    one = made(model, name)
    model.train()
    with (
        pytest.raises(AttentionUnavailable, match=r"call model\.eval\(\) first"),
        one.access.patched(),
    ):
        pass
    with pytest.raises(AttentionUnavailable, match="training mode"):
        one.forward(batch(one))


@pytest.mark.parametrize("name", ["bert", "llama", "deberta", "xlnet"])
def test_an_edit_of_another_shape_is_refused(name):
    one = subject(name)
    for wrong in (lambda w: w[..., :-1], lambda w: w[:, :1], lambda w: w.mean(1)):
        with pytest.raises(AttentionUnavailable, match=r"weights of shape \(3, .* attends with \("):
            one.run(batch(one), lambda call, wrong=wrong: wrong(call.weights))


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ({"layer": 2}, "layers 0 to 1; there is no 2"),
        ({"layer": -3}, "layers 0 to 1; there is no -3"),
        ({"head": 4}, "heads 0 to 3; there is no 4"),
        ({"head": -1}, "heads 0 to 3; there is no -1"),
        ({"position": "middle"}, "position must be auto, first, last or mean, not 'middle'"),
    ],
)
@pytest.mark.parametrize("name", ["bert", "deberta", "t5"])
def test_a_scope_that_is_not_there_is_refused(name, scope, said, as_in_use):
    with pytest.raises(ConfigError, match=said):
        made(tiny.model(name), name, scope=Scope(**scope))


def test_the_mean_over_a_texts_queries_is_refused_where_the_queries_are_not_the_texts():
    with pytest.raises(ConfigError, match="position"):
        made(tiny.model("t5"), "t5", scope=Scope(position="mean"))
