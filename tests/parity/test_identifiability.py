"""The check on identifiability against plain loops, whole Jacobians and heads made by hand."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import test_blocks
import torch
from test_effective import by_hand, null_space, written_out
from torch.autograd.functional import jacobian

from heedful.checks import checks, default_checks
from heedful.checks.attention.identifiability import check
from heedful.checks.attention.identifiability.spec import describe
from heedful.core.batch import Batch
from heedful.core.errors import ConfigError
from heedful.core.records import CheckResult, Estimate
from heedful.models.attention_access.scope import Scope
from heedful.models.batch_context import BatchContext
from heedful.models.internals.identifiability import (
    find_identifiable_tokens,
    hidden_token_attribution,
    record_hidden_states,
)
from heedful.models.transformer.from_pretrained import from_model
from support import attention_families, measured_values, subjects, tiny_models
from support.tiny_models import H

ALL = {"tokens": 99, "projections": 32}  # every word, and as many directions as dimensions


def found(context, **settings):
    with torch.no_grad():  # as audits do
        findings = checks.build("identifiability", **settings)(context)
    return measured_values.columns(findings), findings


def sat(subject, texts=attention_families.TEXTS, seed=0):
    return BatchContext(subject, attention_families.batch(subject, texts), seed)


def apart(row, carried):
    """‖a N Nᵀ‖² / ‖a‖² with the null space of T, and of T with a column of ones."""
    ones = np.ones((len(row), 1))
    parts = (null_space(carried), null_space(np.concatenate([carried, ones], axis=1)))
    return [float(((row @ null) ** 2).sum() / (row**2).sum()) for null in parts]


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_shares_without_effect_are_those_of_every_layer_and_head(name):
    columns, _ = found(sat(attention_families.subject(name, Scope(0, 2))), tokens=0)
    place = 0 if name == "bert" else -1
    for b, text in enumerate(attention_families.TEXTS):
        for layer in (0, 1):
            rows, carried = written_out(name, text, layer)
            wanted = np.array([apart(rows[h, place], carried[h]) for h in range(H)])
            for measure, shares in zip(check.WEIGHT_MEASURES, wanted.T, strict=False):
                for h, one in enumerate(shares):
                    value = columns[f"{measure}[layer {layer}, head {h}]"][b]
                    assert value == pytest.approx(one, abs=1e-9)
                mean = columns[f"{measure}[layer {layer}]"][b]
                assert mean == pytest.approx(shares.mean(), abs=1e-9)
                if layer == 0:
                    assert columns[measure][b] == pytest.approx(shares[2], abs=1e-9)
            assert columns[f"keys_per_dimension[layer {layer}]"][b] == rows.shape[-1] / 8
    assert columns["no_effect_share"][0] > columns["no_effect_share_distribution"][0]


def test_a_head_whose_values_are_zero_has_no_effect_whatever():
    model = tiny_models.build("bert").requires_grad_(False)
    value = model.bert.encoder.layer[1].attention.self.value
    value.weight[16:24] = 0.0  # the third of four heads
    value.bias[16:24] = 0.0
    columns, _ = found(sat(from_model(model, tiny_models.tokenizer("bert"))), tokens=0)
    for head in range(H):
        values = columns[f"no_effect_share[layer 1, head {head}]"]
        assert values == pytest.approx(1.0, abs=1e-12) if head == 2 else (values < 0.9).all()


def states_of(name, text):
    """What enters each layer, as transformers itself tells it, and the word vectors."""
    out, subject = test_blocks.run(name, text), attention_families.subject(name)
    ids = attention_families.batch(subject, [text]).ids
    vectors = test_blocks.eager(name).get_input_embeddings().weight[ids[0]]
    return [one[0].double().numpy() for one in out.hidden_states], vectors.double().numpy()


def nearest(states, vectors):
    """For each state whether the vector with the largest cosine is its own, or equal to it."""
    own = []
    for place, state in enumerate(states):
        cosines = [
            float(state @ one / np.linalg.norm(state) / np.linalg.norm(one)) for one in vectors
        ]
        best = int(np.argmax(cosines))
        own.append(np.array_equal(vectors[best], vectors[place]))
    return np.array(own)


@pytest.mark.parametrize("name", ["bert", "gpt2", "mpnet"])
def test_tokens_are_identified_by_the_nearest_word_vector(name):
    context = sat(attention_families.subject(name))
    columns, _ = found(context, tokens=0)
    for b, text in enumerate(attention_families.TEXTS):
        states, vectors = states_of(name, text)
        words = context.batch.mask[b, : len(vectors)].numpy()
        settings = ["layer 0", "layer 1"] + ["output"] * (name != "gpt2")  # which adds a norm
        for setting, one in zip(settings, states, strict=False):
            wanted = nearest(one, vectors)[words].mean()
            assert columns[f"token_identified[{setting}]"][b] == pytest.approx(wanted)
        alike = [sum(np.array_equal(one, other) for other in vectors) for one in vectors]
        chance = np.array(alike)[words].mean() / len(vectors)
        assert columns["identified_by_chance"][b] == pytest.approx(chance)
    assert np.array_equal(columns["token_identified"], columns["token_identified[layer 1]"])


def test_at_the_start_every_word_is_itself():
    model = tiny_models.build("gpt2").requires_grad_(False)
    model.transformer.wpe.weight.zero_()  # what enters the first layer is the word vector
    columns, _ = found(sat(from_model(model, tiny_models.tokenizer("gpt2"))), **ALL)
    for measure in ("token_identified", "own_share", "own_largest"):
        assert columns[f"{measure}[layer 0]"] == pytest.approx(1.0)
    assert (columns["own_share[layer 1]"] < 0.9).all()


def test_a_word_written_twice_is_either_of_them_and_zeros_are_none():
    vectors = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [5.0, 5.0]]])
    states = torch.tensor([[[1.0, 0.2], [0.9, 0.1], [2.0, 0.0], [0.0, 0.0]]])
    here = torch.ones(1, 4, dtype=torch.bool)
    assert find_identifiable_tokens(states, vectors, here).tolist() == [[True, False, True, False]]
    here[0, 0] = here[0, 2] = False  # then nothing but the second and the last is there
    assert find_identifiable_tokens(states, vectors, here)[0, 1].item() is False
    assert find_identifiable_tokens(states.flip(-1), vectors, here)[0, 1].item() is True


@cache
def slopes(name, text):
    """‖∂e_j/∂x_i‖ of every two tokens, [layer][j, i], by whole Jacobians of the untouched model."""
    model, subject = test_blocks.eager(name), attention_families.subject(name)
    given = attention_families.inputs(subject, attention_families.batch(subject, [text]))
    vectors = model.get_input_embeddings()(given.pop("input_ids"))

    def run(x):
        out = model(inputs_embeds=x, **given, output_hidden_states=True)
        return tuple(one[0] for one in out.hidden_states[:2])

    return [one[:, :, 0].square().sum((1, 3)).sqrt() for one in jacobian(run, vectors)]


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_parts_of_a_state_are_norms_of_whole_jacobians(name):
    context = sat(attention_families.subject(name))
    columns, _ = found(context, **ALL)
    states = record_hidden_states(context.subject, context.batch, context.embedded, method="a test")
    tokens = torch.arange(context.batch.ids.shape[1]).expand(3, -1)
    every = torch.eye(32).double().expand(3, -1, -1)
    for layer in (0, 1):
        parts = hidden_token_attribution(
            states[layer], context.embedded, tokens=tokens, directions=every
        )
        for b, text in enumerate(attention_families.TEXTS):
            sizes = slopes(name, text)[layer]
            wanted = sizes / sizes.sum(-1, keepdim=True)
            here = parts[b, : len(sizes), : len(sizes)]
            torch.testing.assert_close(here.sum(-1), torch.ones(len(sizes)).double())
            torch.testing.assert_close(here, wanted, rtol=1e-9, atol=1e-9)
            words = context.batch.mask[b, : len(sizes)]
            own = wanted.diagonal()[words]
            assert columns[f"own_share[layer {layer}]"][b] == pytest.approx(float(own.mean()))
            first = (own == wanted.amax(-1)[words]).double().mean()
            assert columns[f"own_largest[layer {layer}]"][b] == pytest.approx(float(first))


def test_few_directions_and_words_come_near():
    texts = [" ".join(attention_families.TEXTS[0].split()[n:]) for n in range(8)]
    context = sat(attention_families.subject("bert"), texts)
    exact, some = found(context, **ALL)[0], found(context, tokens=8, projections=16)[0]
    gap = some["own_share[layer 1]"] - exact["own_share[layer 1]"]
    assert 0 < np.abs(gap).max() < 0.1
    assert abs(gap.mean()) < 0.03


def test_directions_are_orthonormal_and_point_everywhere_alike(monkeypatch):
    monkeypatch.setattr(Batch, "content", property(lambda batch: [*map(str, batch.instances)]))
    context = sat(attention_families.subject("bert"), ["so fine a film"] * 400)
    drawn = check._draw_directions(context, 4, 16).numpy()
    for one in drawn:
        np.testing.assert_allclose(one @ one.T, np.eye(4), atol=1e-12)
    mean = np.mean([one.T @ one for one in drawn], axis=0)  # unbiased: P/D on the diagonal
    np.testing.assert_allclose(mean, 4 / 16 * np.eye(16), atol=0.05)


def test_draws_belong_to_the_seed_and_the_text_and_company_never_matters():
    subject = attention_families.subject("gpt2")
    together, _ = found(sat(subject))
    for b, text in enumerate(attention_families.TEXTS):
        encoded = subject.encode(subjects.Example(b, text, 0))
        alone, _ = found(BatchContext(subject, subject.batch([encoded]), max_batch_tokens=5))
        assert alone.keys() == together.keys()
        for key, values in alone.items():
            np.testing.assert_allclose(values[0], together[key][b], rtol=0, atol=1e-9)
    other = found(sat(subject, seed=1))[0]["own_share[layer 1]"]
    assert abs(other - together["own_share[layer 1]"]).max() > 1e-3


def test_models_without_layers_are_told_why_they_have_none():
    subject = subjects.subject()
    _, findings = found(BatchContext(subject, subjects.batch(subject, [4, 2])))
    assert not findings.measurements
    assert set(measured_values.missing(findings)) == measured_values.measures(
        checks.spec("identifiability")
    )
    assert {one.reason for one in findings.missing} == {check.NO_LAYERS}


def test_layers_of_a_subject_of_ones_own_cannot_be_heard():
    inner = attention_families.subject("bert")
    verbs = ("encode", "batch", "embed", "forward", "decoder", "labels")
    own = SimpleNamespace(family="own", **{name: getattr(inner, name) for name in verbs})
    _, findings = found(sat(own))
    assert not findings.measurements
    assert {one.reason for one in findings.missing} == {check.NOT_A_TRANSFORMER}


@pytest.mark.parametrize(
    ("name", "missing", "why"),
    [
        ("albert", check.TOKEN_MEASURES, "Word vectors of 16 dimensions cannot be compared"),
        ("deberta", check.WEIGHT_MEASURES, "effective_attention needs "),
        ("xlnet", check.WEIGHT_MEASURES, "effective_attention needs "),
        (
            "t5",
            (*check.TOKEN_MEASURES, *check.OWN_PART_MEASURES),
            "States are followed through one",
        ),
    ],
)
def test_what_a_family_does_not_show_is_missing_with_its_reason(name, missing, why):
    columns, findings = found(sat(attention_families.subject(name)), tokens=1, projections=1)
    assert set(measured_values.missing(findings)) == set(missing)
    assert all(one.reason.startswith(why) for one in findings.missing)
    wanted = measured_values.measures(checks.spec("identifiability")) - set(missing)
    assert set(map(measured_values.plain, columns)) == wanted
    assert {name for name in columns if "[" not in name} == wanted


def test_it_leaves_the_model_as_it_was():
    model = tiny_models.build("bert")
    before = {key: one.clone() for key, one in model.state_dict().items()}
    found(sat(from_model(model, tiny_models.tokenizer("bert"))), tokens=1, projections=1)
    assert all(torch.equal(one, before[key]) for key, one in model.state_dict().items())
    assert all(one.grad is None for one in model.parameters())
    hooks = ("_forward_hooks", "_forward_pre_hooks")
    assert not any(getattr(one, kind) for one in model.modules() for kind in hooks)


def test_it_runs_when_asked_for():
    assert "identifiability" in checks
    assert "identifiability" not in default_checks()
    columns, _ = found(sat(attention_families.subject("bert")), tokens=0)
    assert not set(map(measured_values.plain, columns)) & set(check.OWN_PART_MEASURES)
    with pytest.raises(ConfigError, match="tokens must be a whole number of at least 0, not -1"):
        checks.build("identifiability", tokens=-1)
    with pytest.raises(ConfigError, match="projections must be a whole number of at least 1"):
        checks.build("identifiability", projections=0)


def test_the_sentence_tells_what_there_is():
    half, few = Estimate(0.5, 0.4, 0.6, 9), Estimate(0.1, 0.0, 0.2, 9)
    weights = {"no_effect_share": half, "keys_per_dimension": Estimate(1.5, 1.4, 1.6, 9)}
    states = {"token_identified": half, "identified_by_chance": few, "own_share": few}
    told, weighed, nothing = (
        describe(CheckResult("no vote", "", some)) for some in (weights | states, weights, {})
    )
    assert "share of 0.500 [0.400, 0.600] of the audited weights" in told
    assert "1.500 [1.400, 1.600] keys per dimension" in told
    assert "0.500 [0.400, 0.600] still point to their own word (by chance 0.100)" in told
    assert "0.100 [0.000, 0.200] of its own state" in told
    assert "own word" not in weighed
    assert "Nothing" in nothing


def test_a_plain_loop_finds_the_rows_that_the_method_gives():
    """`by_hand` itself: what it leaves is seen by nothing, and what it keeps has no part there."""
    rows, carried = written_out("bert", attention_families.TEXTS[0], 0)
    kept = by_hand(rows, carried, causal=False)
    null = null_space(carried[1])
    assert null.shape == (15, 7)  # 15 keys, 8 dimensions
    assert np.abs(null.T @ carried[1]).max() < 1e-12
    assert np.abs(kept[1] @ null).max() < 1e-12
