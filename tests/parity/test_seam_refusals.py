"""What the seam refuses, and what it says to the user."""

import jaxtyping
import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

from heedful.core.errors import AttentionUnavailable, ConfigError
from heedful.models.attention_access.scope import Scope
from heedful.models.transformer.from_pretrained import from_model
from support import tiny_models, tiny_tokenizers
from support.attention_families import batch, hand_made, inputs, made, subject

PART = "holds only a part of LlamaForCausalLM: "


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


@pytest.mark.parametrize("kind", tiny_models.REFUSED)
def test_attention_that_is_no_map_of_all_tokens_is_refused(kind, as_in_use):
    with pytest.raises(AttentionUnavailable, match="does not attend from every token") as error:
        from_model(tiny_models.refused(kind), tiny_tokenizers.words())
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
    model = tiny_models.build(name)
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
        made(tiny_models.model(name), name, scope=Scope(**scope))


def test_the_mean_over_a_texts_queries_is_refused_where_the_queries_are_not_the_texts():
    with pytest.raises(ConfigError, match="position"):
        made(tiny_models.model("t5"), "t5", scope=Scope(position="mean"))


@pytest.fixture
def mesh():
    """A mesh of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def test_a_model_split_by_tensor_parallelism_is_refused(mesh):
    model = tiny_models.build("llama").float()
    parallelize_module(model, mesh, {"model.layers.1.self_attn.q_proj": ColwiseParallel()})
    found = PART + r"model\.layers\.1\.self_attn\.q_proj\.weight is a DTensor\. .*in one process"
    with pytest.raises(AttentionUnavailable, match=found):
        made(model, "llama")


@pytest.mark.parametrize(
    ("path", "name", "value", "why"),
    [
        ("", "_tp_size", 2, "its tensor-parallel size is 2"),
        ("", "_device_mesh", object(), "a parallel plan is applied to it"),
        ("model.layers.0.self_attn.q_proj", "_hf_tp_plan", "colwise", "q_proj"),
        ("model.layers.0.self_attn.q_proj", "_hf_device_mesh", object(), "q_proj"),
    ],
)
def test_what_transformers_notes_of_a_split_model_is_enough(path, name, value, why):
    model = tiny_models.build("llama")
    setattr(model.get_submodule(path), name, value)
    with pytest.raises(AttentionUnavailable, match=f"{PART}.*{why}"):
        made(model, "llama")


def test_a_plan_that_is_not_applied_is_no_reason():
    model = tiny_models.build("llama")
    assert model._tp_plan  # how it could be split
    model._tp_size = 1
    assert made(model, "llama").scope.layer == 1


def halved(model):
    """The first half of the heads of every layer, as one of two processes has it."""
    for layer in model.model.layers:
        attention = layer.self_attn
        for one in (attention.q_proj, attention.k_proj, attention.v_proj):
            one.weight.data = one.weight.data.chunk(2)[0]
        attention.o_proj.weight.data = attention.o_proj.weight.data.chunk(2, dim=1)[0]
    return model


def test_fewer_heads_than_the_config_says_are_refused():
    found = (
        r"layers\.0\.self_attn attends with 2 heads where the config .* says 4\. .*in one process"
    )
    with pytest.raises(AttentionUnavailable, match=found):
        made(halved(tiny_models.build("llama")), "llama")


@pytest.mark.parametrize(("name", "keys"), [("llama", 1), ("llama", 2), ("llama", 4)])
def test_keys_that_queries_share_are_not_missed(name, keys):
    one = made(tiny_models.build(name, num_key_value_heads=keys), name)
    assert one.run(batch(one))[1].calls[0].weights.shape[1] == tiny_models.H


def test_a_decoder_may_have_other_heads_than_its_encoder():
    for heads in ({"decoder_attention_heads": 2}, {"encoder_attention_heads": 2}):
        made(tiny_models.build("bart", **heads), "bart")
