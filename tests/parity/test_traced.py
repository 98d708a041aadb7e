"""The mechanism check on transformers: contributions by plain loops, τ by scipy."""

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from heedful.checks import checks
from heedful.checks.attention.mechanism import layer_contributions
from heedful.core.errors import NotApplicable
from heedful.methods import methods
from heedful.methods.attention.vector_based import value_zeroing_changes
from heedful.models.attention_access.scope import Scope
from heedful.models.batch_context import BatchContext
from support import attention_families, measured_values, reference_decomposition

TEXTS = ("so fine , and dull .", "not bad", "it was the best")
OF_LAYERS = ("tau_weighting", "tau_mixing", "tau_unrolled")


def sat(name, scope=None):
    subject = attention_families.subject(name, scope)
    return BatchContext(subject, attention_families.batch(subject, TEXTS))


def found(context, **settings):
    findings = checks.build("mechanism", **settings)(context)
    return measured_values.columns(findings), measured_values.missing(findings)


def tau(one, other, words):
    """By scipy, over the words; undefined where there is nothing to rank."""
    return kendalltau(one[words].numpy(), other[words].numpy()).statistic


def same(columns, name, wanted):
    np.testing.assert_allclose(columns[name], wanted, atol=1e-9, err_msg=str(name))


def wanted_of(context, contributions, layers, upto):
    """The three τ of every text, from matrices of each text, (T, T) a layer, at the position."""
    batch, position = context.batch, context.subject.scope.position
    leave = methods.build("leave_one_out", of="output")(context, context.predicted).scores
    rows = {name: [] for name in OF_LAYERS}
    for row, (every, present) in enumerate(zip(contributions, batch.present, strict=True)):
        at = {"first": 0, "last": int(present.sum()) - 1}[position]
        weights = torch.stack([context.forward.maps[n][row, :, at].mean(0) for n in layers])
        own = torch.stack([every[n][at] for n in layers]).mean(0)
        whole = torch.eye(len(own)).double()
        for n in range(upto + 1):
            whole = every[n] @ whole
        words = batch.mask[row][present]
        told = leave[row][present]
        rows["tau_weighting"].append(tau(weights.mean(0)[present], own, words))
        rows["tau_mixing"].append(tau(whole[at], told, words))
        rows["tau_unrolled"].append(tau(own, told, words))
    return rows


def by_hand(name, context):
    """ALTI's matrices of each text, rows summing to 1, by plain loops."""
    texts = []
    for ids, present in zip(context.batch.ids, context.batch.present, strict=True):
        layers = reference_decomposition.contributions(name, tuple(ids[present].tolist()), "alti")
        texts.append([one / one.sum(-1, keepdim=True) for one in layers])
    return texts


@pytest.mark.parametrize("name", ["bert", "gpt2"])
@pytest.mark.parametrize("layer", [0, -1, "all"])
def test_weights_contributions_and_influence_are_ranked_as_by_hand(name, layer):
    context = sat(name, Scope(layer))
    columns, missing = found(context)
    assert not missing
    matrices = by_hand(name, context)
    layers, upto = {0: ([0], 0), -1: ([1], 1), "all": ([0, 1], 1)}[layer]
    for measure, wanted in wanted_of(context, matrices, layers, upto).items():
        same(columns, measure, wanted)
    for number in (0, 1):
        for measure, wanted in wanted_of(context, matrices, [number], number).items():
            same(columns, f"{measure}[layer {number}]", wanted)
    layers = {name.partition("[")[2] for name in columns}
    assert layers == {"", "layer 0]", "layer 1]"}


def test_where_alti_is_refused_value_zeroing_tells():
    context = sat("deberta")
    columns, missing = found(context)
    assert not missing
    layers = context.cached(value_zeroing_changes)
    matrices = [
        [one[row][present][:, present].double() for one in layers]
        for row, present in enumerate(context.batch.present)
    ]
    for number in (0, 1):
        for measure, wanted in wanted_of(context, matrices, [number], number).items():
            same(columns, f"{measure}[layer {number}]", wanted)


def test_without_zeroing_the_reason_is_told():
    columns, missing = found(sat("deberta"), zeroing=False)
    assert set(columns) == {"conicity"}
    assert set(missing) == set(OF_LAYERS)
    assert all("alti" in why and "layer 0 (DebertaLayer)" in why for why in missing.values())


def test_an_encoder_with_a_decoder_has_a_reason_too():
    columns, missing = found(sat("bart"))
    assert set(columns) == {"conicity"}
    assert set(missing) == set(OF_LAYERS)
    assert all("an encoder and a decoder" in why for why in missing.values())


def test_where_both_are_refused_both_reasons_are_told(monkeypatch):
    def refuse(context):
        raise NotApplicable("value_zeroing is refused: so.")

    monkeypatch.setattr(layer_contributions, "value_zeroing_changes", refuse)
    _, missing = found(sat("deberta"))
    assert missing["tau_mixing"].startswith("alti needs ")
    assert missing["tau_mixing"].endswith(". value_zeroing is refused: so.")


def test_it_takes_one_pass_beside_those_that_every_audit_makes():
    context = sat("bert")
    found(context)
    again = sat("bert")
    again.forward, again.decode, again.without_each  # noqa: B018 - what agreement asks for
    passes = []
    with again.subject.model.register_forward_pre_hook(lambda *_: passes.append(1)):
        found(again)
    assert len(passes) == 1
