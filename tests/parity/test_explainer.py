"""Gates by hand from the states of a model, and what explainers refuse."""

import json
import math

import numpy as np
import pytest
import torch

from heedful.core.batch import collate
from heedful.core.errors import ConfigError, ModelError, NotApplicable
from heedful.core.values import Example
from heedful.methods.diffmask import DiffMask
from heedful.models.batch_context import BatchContext
from heedful.models.diffmask import (
    EXPLAINER_SETTINGS_FILE,
    EXPLAINER_WEIGHTS_FILE,
    load_explainer,
)
from heedful.models.internals.hidden_states import read_hidden_states
from heedful.models.perturbed.perturbed_embeddings import PerturbedSubject
from heedful.models.transformer.from_pretrained import from_model
from heedful.training.fit_diffmask import FrozenPass
from support import subjects, tiny_models
from support.random_explainers import write_explainer

TEXTS = ("so fine a film w7", "dull film w1 w2 w3", "not so very fine , not dull w4 w5")


def transformer(name):
    return from_model(tiny_models.model(name), tiny_models.tokenizer(name))


def context(subject, texts=TEXTS):
    encoded = [subject.encode(Example(n, text, 0)) for n, text in enumerate(texts)]
    return BatchContext(subject, subject.batch(encoded))


def hooks(model):
    return [(len(one._forward_hooks), len(one._forward_pre_hooks)) for one in model.modules()]


@pytest.mark.parametrize("name", ["bert", "albert", "gpt2", "deberta", "xlnet", "bart"])
def test_states_are_the_hidden_states_that_transformers_gives(name):
    subject = transformer(name)
    batch = context(subject).batch
    before = hooks(subject.model)
    logits, states = read_hidden_states(subject, batch, subject.embed(batch))
    assert hooks(subject.model) == before
    inputs = {"input_ids": batch.ids, "attention_mask": batch.present.long()}
    if batch.types is not None:
        inputs["token_type_ids"] = batch.types
    reader = subject.model
    if name == "bart":
        reader = reader.get_encoder()
    with torch.no_grad():
        want = reader(**inputs, output_hidden_states=True).hidden_states
    layers = tiny_models.FAMILIES[name].layers
    assert len(states) == layers + 1
    whole = slice(None) if name in ("bert", "albert", "deberta") else slice(-1)  # a last norm
    for one, other in zip(states[whole], want[whole], strict=True):
        torch.testing.assert_close(one[batch.present], other[batch.present])
    torch.testing.assert_close(logits, subject.forward(batch).logits)


def by_hand(explainer, states, layer):
    """Π over layers of σ(5 + 10 tanh(w · tanh(W [h₀; h_l] + b) + c) − 0.2 log 0.2), in a loop."""
    found = 1.0
    for probe, state in list(zip(explainer.gates.probes, states, strict=True))[: layer + 1]:
        seen = np.concatenate([states[0], state])
        maps = [(one.weight.double().numpy(), one.bias.double().numpy()) for one in probe[::2]]
        (inward, start), (output_projection, shift) = maps
        inner = np.tanh(inward @ seen + start)
        logit = 5 + 10 * math.tanh(float((output_projection @ inner + shift)[0]))
        found *= 1 / (1 + math.exp(-(logit - 0.2 * math.log(0.2))))
    return found


@pytest.mark.parametrize("name", ["bilstm", "bert"])
@pytest.mark.parametrize("layer", [0, 1, -1])
def test_scores_are_the_chances_to_stay_open(name, layer, tmp_path):
    subject = subjects.subject(name) if name == "bilstm" else transformer(name)
    write_explainer(subject, tmp_path)
    sat = context(subject)
    explainer = load_explainer(tmp_path)
    _, states = read_hidden_states(subject, sat.batch, subject.embed(sat.batch))
    last = layer % len(states)
    scores = DiffMask(str(tmp_path), layer)(sat, sat.predicted).scores
    for row, column in sat.batch.mask.nonzero().tolist():
        each = [one[row, column].double().numpy() for one in states]
        want = by_hand(explainer, each, last)
        assert float(scores[row, column]) == pytest.approx(want, rel=1e-6)
    assert not scores[~sat.batch.mask].any()
    assert float(scores[sat.batch.mask].std()) > 0.02


@pytest.mark.parametrize("name", ["bilstm", "bert", "bart"])
def test_company_order_and_padding_never_matter(name, tmp_path):
    subject = subjects.subject(name) if name == "bilstm" else transformer(name)
    write_explainer(subject, tmp_path)
    method = DiffMask(str(tmp_path))
    sat = context(subject)
    together = method(sat, sat.predicted)
    turned = method(context(subject, TEXTS[::-1]), sat.predicted)
    for row, text in enumerate(TEXTS):
        alone = method(context(subject, [text]), sat.predicted[:1])
        for other, place in ((alone, 0), (turned, len(TEXTS) - 1 - row)):
            torch.testing.assert_close(
                other.scores[place][other.mask[place]],
                together.scores[row][together.mask[row]],
                atol=1e-9,
                rtol=1e-9,
            )


def test_deeper_layers_keep_no_more(tmp_path):
    subject = transformer("bert")
    write_explainer(subject, tmp_path)
    sat = context(subject)
    rows = [DiffMask(str(tmp_path), layer)(sat, sat.predicted).scores for layer in range(3)]
    assert bool((rows[1] <= rows[0]).all())
    assert bool((rows[2] <= rows[1]).all())


@pytest.mark.parametrize("name", ["bilstm", "cnn", "bert", "gpt2", "xlnet", "bart"])
def test_with_every_gate_open_the_model_says_what_it_says(name):
    subject = subjects.subject(name) if name in ("bilstm", "cnn") else transformer(name)
    frozen = FrozenPass.run(subject, context(subject).batch)
    blank, shape = torch.full((frozen.embedded.shape[-1],), 0.7), frozen.batch.ids.shape
    with torch.no_grad():
        opened, closed = (
            frozen.kl_under_gates(gates(shape), blank) for gates in (torch.ones, torch.zeros)
        )
        torch.testing.assert_close(frozen.logits, subject.forward(frozen.batch).logits)
    assert float(opened.abs().max()) < 1e-9
    assert float(closed.max()) > 1e-3


def test_moved_vectors_are_heard(tmp_path):
    subject = transformer("bert")
    write_explainer(subject, tmp_path)
    sat = context(subject)
    moved = PerturbedSubject(subject, sat.batch, subject.embed(sat.batch).roll(1, -1))
    other = DiffMask(str(tmp_path))(BatchContext(moved, sat.batch), sat.predicted).scores
    assert not torch.allclose(other, DiffMask(str(tmp_path))(sat, sat.predicted).scores)


def test_which_attention_is_under_audit_does_not_matter(tmp_path):
    write_explainer(transformer("bert"), tmp_path)
    other = from_model(tiny_models.model("bert"), tiny_models.tokenizer("bert"))
    from heedful.models.attention_access.scope import Scope

    first = from_model(
        tiny_models.model("bert"), tiny_models.tokenizer("bert"), scope=Scope(layer=0)
    )
    one, two = (
        DiffMask(str(tmp_path))(sat, sat.predicted).scores for sat in map(context, (other, first))
    )
    assert torch.equal(one, two)


def test_refusals_say_what_to_do(tmp_path):
    subject, other = subjects.subject(), subjects.subject(seed=1)
    write_explainer(subject, tmp_path / "made")
    sat = context(subject)
    with pytest.raises(NotApplicable, match="trained for this model: heedful diffmask MODEL DATA"):
        DiffMask()(sat, sat.predicted)
    with pytest.raises(NotApplicable, match="trained for another model"):
        DiffMask(str(tmp_path / "made"))(context(other), sat.predicted)
    with pytest.raises(ModelError, match=r"No explainer at .*nowhere: explainer.json is missing"):
        DiffMask(str(tmp_path / "nowhere"))(sat, sat.predicted)
    with pytest.raises(ConfigError, match="layer must be between -2 and 1, not 2"):
        DiffMask(str(tmp_path / "made"), 2)(sat, sat.predicted)


def test_weights_written_to_are_another_model(tmp_path):
    subject = subjects.subject()
    write_explainer(subject, tmp_path)
    sat = context(subject)
    DiffMask(str(tmp_path))(sat, sat.predicted)
    with torch.no_grad():
        subject.network.decoder.bias.add_(1.0)
    with pytest.raises(NotApplicable, match="other weights"):
        DiffMask(str(tmp_path))(sat, sat.predicted)


def damaged(folder, how):
    if how == "weights":
        (folder / EXPLAINER_WEIGHTS_FILE).write_bytes(b"nothing")
    elif how == "missing":
        (folder / EXPLAINER_WEIGHTS_FILE).unlink()
    else:
        told = json.loads((folder / EXPLAINER_SETTINGS_FILE).read_text())
        told |= {"schema": {"schema": 9}, "widths": {"widths": [3, 4]}, "kind": {"kind": "x"}}[how]
        (folder / EXPLAINER_SETTINGS_FILE).write_text(json.dumps(told))


@pytest.mark.parametrize("how", ["weights", "missing", "schema", "widths", "kind"])
def test_a_damaged_folder_is_an_error(how, tmp_path):
    write_explainer(subjects.subject(), tmp_path)
    damaged(tmp_path, how)
    with pytest.raises(ModelError, match="no usable explainer"):
        load_explainer(tmp_path)


def test_a_query_is_read_and_never_hidden():
    from benchmarks.counting import Counter, CounterSubject

    with torch.random.fork_rng():
        torch.manual_seed(0)
        subject = CounterSubject(Counter().eval().requires_grad_(False))
    batch = collate([subject.encode(Example(0, "ant bee cat", 0, pair="bee cat"))])
    frozen = FrozenPass.run(subject, batch)
    assert [one.shape[-1] for one in frozen.states] == [32, 64, 32]
    closed = torch.zeros(batch.ids.shape)
    vectors = subject.network.embedding.weight[0]
    blank = CounterSubject(subject.network).forward(
        collate([subject.encode(Example(0, "ant bee cat", 0, pair="bee cat"))]),
        vectors.expand(1, 3, -1),
    )
    want = frozen.logits.softmax(-1) * (
        frozen.logits.log_softmax(-1) - blank.logits.log_softmax(-1)
    )
    torch.testing.assert_close(
        frozen.kl_under_gates(closed, vectors), want.sum(-1), atol=1e-6, rtol=1e-5
    )
