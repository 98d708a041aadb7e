"""Rollout and flow against plain loops and networkx, on weights that transformers itself tells."""

from functools import cache

import networkx as nx
import numpy as np
import pytest
import torch

from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.values import Example
from heedful.methods import methods
from heedful.models.attention_access.scope import Scope
from heedful.models.batch_context import BatchContext
from heedful.models.transformer.from_pretrained import from_model
from support import attention_families, subjects, tiny_models, tiny_tokenizers

CAUSAL = ("gpt2", "mistral", "llama", "gpt-oss")
PLAIN = ("bert", "albert", "xlnet", "deberta", *CAUSAL)
TRANSLATORS = ("t5", "bart", "marian")
SHORT = ("so fine a film", "not bad", "a dull film")  # with special tokens at most six
REDUCE = {"mean": np.mean, "max": np.max, "min": np.min}
both = pytest.mark.parametrize("method", ["rollout", "flow"])


@cache
def told(name, text):
    """Every map of one text alone, from the same model, which no part of heedful runs here."""
    subject, model = (
        attention_families.subject(name),
        tiny_models.build(name, attention="eager").requires_grad_(False),
    )
    given = attention_families.inputs(subject, attention_families.batch(subject, [text]))
    out = model(**given, output_attentions=True)
    if not tiny_models.FAMILIES[name].seq2seq:
        return [one[0].double().numpy() for one in out.attentions]
    stacks = out.encoder_attentions, out.decoder_attentions, out.cross_attentions
    return [[one[0].double().numpy() for one in stack] for stack in stacks]


def layer(weights, heads="mean", residual=0.5, normalise="none"):
    """Heads taken together and the residual beside them, entry by entry."""
    mixed = np.zeros(weights.shape[1:])
    for i, j in np.ndindex(mixed.shape):
        own = residual if i == j else 0.0
        mixed[i, j] = (1 - residual) * REDUCE[heads](weights[:, i, j]) + own
    return mixed / mixed.sum(-1, keepdims=True) if normalise == "row" else mixed


def rolled(maps, start_layer=0, **settings):
    """How much of each input reaches each position, layer after layer."""
    reached = np.eye(maps[0].shape[-1])
    for one in maps[start_layer:]:
        reached = layer(one, **settings) @ reached
    return reached


def translated(maps, heads="mean", residual=0.5):
    """The rule for an encoder–decoder: what each target position has of each source token."""
    encoder, decoder, cross = maps
    source = rolled(encoder, heads=heads, residual=residual)
    held = np.zeros((decoder[0].shape[-1], len(source)))
    for within, across in zip(decoder, cross, strict=True):
        passed = layer(within, heads, residual) @ held
        held = residual * passed + (1 - residual) * REDUCE[heads](across, axis=0) @ source
    return held


def network(maps, residual=0.5):
    """Arrows down the layers; a decoder's are two: look across or stay, then self-attention."""
    graph = nx.DiGraph()

    def arrows(matrix, upper, lower):
        for (i, j), capacity in np.ndenumerate(matrix):
            if capacity > 0:
                graph.add_edge((*upper, i), (*lower, j), capacity=float(capacity))

    encoder, decoder, cross = maps if isinstance(maps[0], list) else (maps, (), ())
    for level, one in enumerate(encoder):
        arrows(layer(one, residual=residual), ("encoder", level + 1), ("encoder", level))
    top = ("encoder", len(encoder))
    for level, (within, across) in enumerate(zip(decoder, cross, strict=True)):
        here, between, below = ("decoder", level + 1), ("self", level), ("decoder", level)
        arrows((1 - residual) * across.mean(0), here, top)
        arrows(residual * np.eye(within.shape[-1]), here, between)
        arrows(layer(within, residual=residual), between, below)
    return graph, ("decoder", len(decoder)) if decoder else top, ("encoder", 0)


def flows(maps, residual=0.5):
    """The greatest flow from each position to each token, every pair alone, by networkx."""
    graph, top, ground = network(maps, residual)
    found = np.zeros([sum(node[:2] == level for node in graph) for level in (top, ground)])
    for i, j in np.ndindex(found.shape):
        found[i, j] = nx.maximum_flow_value(graph, (*top, i), (*ground, j))
    return found


def at(matrix, position):
    return {"first": matrix[0], "last": matrix[-1], "mean": matrix.mean(0)}[position]


def explained(method, name, texts=attention_families.TEXTS, scope=None, **settings):
    """Texts with their scores out of a padded batch, cut to their tokens, and which are words."""
    subject = attention_families.subject(name, scope)
    context = BatchContext(subject, attention_families.batch(subject, texts))
    scores = methods.build(method, **settings)(context, context.predicted).scores
    batch = context.batch
    assert not scores[~batch.mask].any()
    for text, row, present, mask in zip(texts, scores, batch.present, batch.mask, strict=True):
        yield text, row[present].double().numpy(), mask[present].numpy()


def same(found, wanted, words, near):
    np.testing.assert_allclose(found, np.where(words, wanted, 0.0), atol=near, rtol=near)


def exactness(name):
    """How near two ways must come; some families take their softmax in float32."""
    if tiny_models.FAMILIES[name].dtype != torch.float64 or name == "deberta":
        return 1e-5
    return 1e-7 if name in attention_families.ROUGH else 1e-10


@pytest.mark.parametrize("name", PLAIN)
def test_rollout_is_the_product_of_the_layers_last_to_first(name):
    residuals = [{"residual": 0.0}, {"residual": 0.2, "heads": "min"}, {"residual": 1.0}]
    divided = [{"normalise": "row"}, {"normalise": "row", "heads": "max"}]
    for settings in [{}, {"heads": "max"}, {"start_layer": 1}, *residuals, *divided]:
        for text, found, words in explained("rollout", name, **settings):
            wanted = at(
                rolled(told(name, text), **settings),
                attention_families.subject(name).scope.position,
            )
            same(found, wanted, words, exactness(name))
    maps = told(name, attention_families.TEXTS[0])
    assert np.abs(rolled(maps) - rolled(maps[::-1])).max() > 0.01  # the other order is not the same


@both
@pytest.mark.parametrize("name", ["bert", "gpt2"])
@pytest.mark.parametrize("position", ["first", "last", "mean"])
def test_the_position_asked_for_is_explained(method, name, position):
    whole = rolled if method == "rollout" else flows
    for text, found, words in explained(method, name, SHORT, Scope(position=position)):
        same(found, at(whole(told(name, text)), position), words, 1e-8)


@pytest.mark.parametrize("name", [one for one in PLAIN if one != "gpt-oss"])
def test_rows_that_sum_to_one_need_no_normalising(name):
    found = explained("rollout", name), explained("rollout", name, normalise="row")
    for (text, plain, words), (_, divided, _) in zip(*found, strict=True):
        same(divided, plain, words, exactness(name))
        maps = told(name, text)
        np.testing.assert_allclose(rolled(maps).sum(-1), 1.0, atol=exactness(name))
        added = np.eye(maps[0].shape[-1])
        for one in maps:  # without halves: I + A
            added = (np.eye(len(added)) + one.mean(0)) @ added
        wanted = at(added, attention_families.subject(name).scope.position) / 2 ** len(maps)
        same(plain, wanted, words, exactness(name))


def test_a_sink_takes_its_share_unless_normalised_away():
    found = explained("rollout", "gpt-oss"), explained("rollout", "gpt-oss", normalise="row")
    for (text, kept, words), (_, whole, _) in zip(*found, strict=True):
        maps = told("gpt-oss", text)
        assert (maps[0].sum(-1) < 1).all()
        same(kept, rolled(maps)[-1], words, 1e-6)
        assert kept.sum() < 0.99
        assert whole.sum() == pytest.approx(1.0, abs=1e-5)  # it has no special tokens


@pytest.mark.parametrize("count", [1, 2])
def test_even_attention_has_a_closed_form(count):
    model = tiny_models.build("bert", num_hidden_layers=count)
    for block in model.bert.encoder.layer:  # all queries zero: every key is as good as any other
        block.attention.self.query.requires_grad_(False).weight.zero_()
        block.attention.self.query.bias.zero_()
    subject = from_model(model, tiny_models.tokenizer("bert"))
    context = BatchContext(subject, attention_families.batch(subject))
    found = methods.build("rollout")(context, context.predicted).scores
    for row, present, mask in zip(found, context.batch.present, context.batch.mask, strict=True):
        share = (1 - 0.5**count) / int(present.sum())  # the rest stays with the first token
        same(row.numpy(), np.full(len(row), share), mask.numpy(), 1e-12)


@both
@pytest.mark.parametrize("name", CAUSAL)
def test_what_comes_later_is_not_behind_the_first_position(method, name):
    for text, found, _ in explained(method, name, SHORT, Scope(position="first")):
        assert found[0] > 0.1
        assert not found[1:].any()
        assert not np.triu(rolled(told(name, text)), 1).any()


@pytest.mark.parametrize("name", [*PLAIN, *TRANSLATORS])
@pytest.mark.parametrize("residual", [0.5, 0.8])
def test_flow_is_what_networkx_finds_and_never_less_than_rollout(name, residual):
    position = attention_families.subject(name).scope.position
    roll = translated if name in TRANSLATORS else rolled
    for text, found, words in explained("flow", name, SHORT, residual=residual):
        maps = told(name, text)
        same(found, at(flows(maps, residual), position), words, max(exactness(name), 2e-8))
        least = np.where(words, at(roll(maps, residual=residual), position), 0.0)
        assert (found >= least - 1e-6).all()
        assert (found <= 1 + 1e-6).all()


def test_flow_through_one_layer_is_that_layer():
    subject = from_model(
        tiny_models.build("bert", num_hidden_layers=1), tiny_models.tokenizer("bert")
    )
    context = BatchContext(subject, attention_families.batch(subject))
    half = 0.5 * context.forward.maps[0].mean(1)[:, 0] * context.batch.mask  # no word stands first
    for method in ("rollout", "flow"):
        found = methods.build(method)(context, context.predicted).scores
        torch.testing.assert_close(found, half, atol=1e-8, rtol=0)


def test_flow_is_solved_for_texts_of_64_tokens_and_refused_for_65():
    model = tiny_models.build("bert", max_position_embeddings=80)
    subject = from_model(model, tiny_tokenizers.words(types=True, longest=80))
    solved, refused = (
        BatchContext(subject, subject.batch([subject.encode(Example(0, "fine " * words, 0))]))
        for words in (62, 63)  # and two special tokens
    )
    assert methods.build("flow")(solved, solved.predicted).scores[0, 1:-1].all()
    with pytest.raises(NotApplicable, match=r"64 tokens, one has 65\.$"):
        methods.build("flow")(refused, refused.predicted)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_an_encoder_decoder_is_rolled_out_through_both(name):
    for settings in [{}, {"heads": "max"}, {"heads": "min"}, {"residual": 0.2}, {"residual": 1.0}]:
        for text, found, words in explained("rollout", name, **settings):
            wanted = translated(told(name, text), **settings)[-1]
            same(found, wanted, words, exactness(name))
            if not settings:
                assert found.sum() == pytest.approx(0.75)  # its decoder starts from nothing
    with pytest.raises(NotApplicable, match="start_layer"):
        list(explained("rollout", name, start_layer=1))


@both
def test_a_model_of_one_attention_is_refused_with_a_sentence(method):
    subject = subjects.subject()
    context = BatchContext(subject, subjects.batch(subject, [4, 2]))
    with pytest.raises(NotApplicable, match=rf"^{method} .*this model has one attention\.$"):
        methods.build(method)(context, context.predicted)


@pytest.mark.parametrize("wrong", [{"start_layer": 2}, {"residual": 1.5}, {"residual": -0.1}])
def test_settings_out_of_their_range_are_refused(wrong):
    with pytest.raises(ConfigError, match=r"between 0 and 1, not"):
        list(explained("rollout", "bert", **wrong))
