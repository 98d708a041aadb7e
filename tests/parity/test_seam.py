"""The seam against the untouched model, plain loops, eager attention and hand-made models.

First what must hold of every family, then the traps that were met on the way.
"""

import copy
import sys
import threading
from contextlib import suppress
from functools import cache

import jaxtyping
import pytest
import torch
import transformers
from torch import nn

import tiny
from heedful.core.errors import AttentionUnavailable, ConfigError, HeedfulError
from heedful.core.values import Batch, Example
from heedful.interventions import interventions
from heedful.models.hearing import Mixed
from heedful.models.pretrained import from_model
from heedful.models.replay import RowReplay
from heedful.models.scope import Scope
from heedful.models.seam import find_seam
from heedful.models.sitting import Sitting
from tiny import FAMILIES, H

TEXTS = (
    "a film that is so fine , and in places so dull .",
    "not bad",
    "it was the best of all",
)
CAUSAL = [name for name, family in FAMILIES.items() if family.causal]
DOUBLE = [name for name, family in FAMILIES.items() if family.dtype == torch.float64]
TAPPED = [name for name, family in FAMILIES.items() if family.path == "tap"]
SHORT = [
    name
    for name, family in FAMILIES.items()
    if family.path == "interface" and not family.seq2seq and name != "albert"
]  # where other rows of the last layer can be decoded by that layer alone
ROUGH = ("deberta", "llama", "mistral", "qwen2", "t5")  # norms in float32, whatever the model is in
families = pytest.mark.parametrize("name", FAMILIES)


def made(model, name, **choices):
    """A subject of the model; an encoder–decoder has written two words already."""
    written = {"prefix": "so fine"} if FAMILIES[name].seq2seq else {}
    return from_model(model, tiny.tokenizer(name), **written, **choices)


@cache
def subject(name, scope=None):
    return made(tiny.model(name), name, scope=scope)


def encoded(subject, texts=TEXTS):
    return [subject.encode(Example(index, text, 0)) for index, text in enumerate(texts)]


def batch(subject, texts=TEXTS):
    return subject.batch(encoded(subject, texts))


def draw(shape, like, seed=0):
    made = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return made.to(like)


def inputs(subject, rows):
    """What a user would hand to the model for a padded batch."""
    given = {"input_ids": rows.ids, "attention_mask": rows.present.long()}
    if rows.types is not None:
        given["token_type_ids"] = rows.types
    if subject.prefix:
        given["decoder_input_ids"] = torch.tensor(subject.prefix).expand(len(rows), -1)
    return given


def answers(subject, output, rows):
    """The logits of the classes, or of the next token after each text's last."""
    if output.logits.dim() == 2:
        return output.logits
    if subject.prefix:
        return output.logits[:, -1]
    last = [int(one.nonzero().max()) for one in rows.present]
    return torch.stack([logits[at] for logits, at in zip(output.logits, last, strict=True)])


def untouched(model, subject, rows, **more):
    return answers(subject, model(**inputs(subject, rows), **more), rows)


def alone(subject, ids, types=None):
    """The untouched model's answer to one text without any padding."""
    ids = torch.tensor([ids])
    here = torch.ones_like(ids, dtype=torch.bool)
    types = None if types is None else torch.tensor([types])
    with torch.no_grad():
        return untouched(subject.model, subject, Batch(ids, here, here, (0,), types))[0]


def allowed(name, rows, order):
    """Which keys each query of the attention may see, (B, Q, K), by the family's definition."""
    family, width = FAMILIES[name], rows.ids.shape[1]
    causal, queries, reach, present = family.causal, width, None, rows.present
    if not family.seq2seq:
        reach = family.reach[order]
    elif order >= family.layers:  # the decoder: self, cross, self, cross
        cross = (order - family.layers) % 2
        causal, queries = not cross, 3
        present = present if cross else torch.ones(len(rows), 3, dtype=torch.bool)
    seen = torch.zeros(len(rows), queries, present.shape[1], dtype=torch.bool)
    for b, i, j in torch.cartesian_prod(*map(torch.arange, seen.shape)).tolist():
        near = reach is None or abs(i - j) <= reach
        seen[b, i, j] = present[b, j] and near and (j <= i or not causal)
    return seen


def real_queries(rows, seen):
    """The queries that are tokens of a text or of the decoder; padding may attend as it likes."""
    return rows.present if seen.shape[1] == rows.ids.shape[1] else torch.ones(seen.shape[:2]).bool()


def uniform(name, rows):
    def edit(call):
        seen = allowed(name, rows, call.order)
        even = seen.double() / seen.sum(-1, keepdim=True).clamp(min=1)
        return even[:, None].repeat(1, H, 1, 1).to(call.weights)

    return edit


def random_rows(name, subject, rows, forward, draws=(), seed=0):
    """Random distributions over the keys that the rows under audit may see."""
    layer = len(forward.maps) - 1 if subject.scope.layer == "all" else subject.scope.layer
    order = layer if not subject.prefix else FAMILIES[name].layers + 2 * layer + 1
    seen = allowed(name, rows, order)
    where = subject.position(rows)
    if where is None:
        seen = seen & rows.present[:, :, None]
        seen = seen.repeat(1, forward.rows.shape[1] // seen.shape[1], 1)
    else:
        seen = seen[torch.arange(len(rows)), where][:, None]
    made = draw((*draws, *forward.rows.shape), forward.rows, seed) ** 3 * seen
    return made / made.sum(-1, keepdim=True).clamp(min=1e-9)


def by_hand(subject, rows, new):
    """The whole model with the rows put in their places by plain loops."""
    scope, where = subject.scope, subject.position(rows)
    maps = []

    def edit(call):
        if subject.prefix and call.order not in (3, 5):  # two of the encoder, then self, cross
            return None
        maps.append(call)
        layer, changed = len(maps) - 1, call.weights.clone()
        if scope.layer not in ("all", layer):
            return None
        heads = range(H) if scope.head is None else [scope.head]
        queries = range(changed.shape[2]) if where is None else [None]
        at = layer * len(heads) * len(queries) if scope.layer == "all" else 0
        for head in heads:
            for query in queries:
                for b in range(len(rows)):
                    i = int(where[b]) if query is None else query
                    if where is not None or rows.present[b, i]:
                        changed[b, head, i] = new[b, at]
                at += 1
        return changed

    with subject.seam.open(edit):
        return untouched(subject.model, subject, rows)


# --- what must hold of every family ---------------------------------------------------------------


@families
def test_every_attention_is_heard_once(name):
    family, one = FAMILIES[name], subject(name)
    assert one.seam.path == family.path
    with torch.no_grad():
        _, hearing = one.run(batch(one))
    assert hearing.count == len(hearing.calls) == family.layers * (3 if family.seq2seq else 1)
    assert [call.order for call in hearing.calls] == list(range(hearing.count))
    assert len({call.module for call in hearing.calls}) == (
        1 if name == "albert" else hearing.count
    )
    if family.seq2seq:
        crossing = [("EncDec" in c.module or "encoder_attn" in c.module) for c in hearing.calls]
        assert crossing == [False] * 2 + [False, True] * 2


@families
def test_the_identity_edit_changes_nothing(name):
    one = subject(name)
    eager = tiny.build(name, attention="eager")
    with torch.no_grad():
        for rows in map(one.batch, zip(encoded(one), strict=True)):
            before = untouched(eager, one, rows)
            with one.seam.open(lambda call: call.weights.clone()) as hearing:
                torch.testing.assert_close(
                    untouched(one.model, one, rows), before, rtol=1e-6, atol=1e-12
                )
            assert hearing.count == one.seam.calls
        rows = batch(one)
        before = untouched(one.model, one, rows)  # by fused kernels, where the family has them
        after, _ = one.run(rows, lambda call: call.weights.clone())
        scale = float(before.abs().max())
        torch.testing.assert_close(after, before, rtol=0, atol=1e-5 * scale)
        torch.testing.assert_close(one.forward(rows).logits, before, rtol=0, atol=1e-5 * scale)
        assert one.seam.parity <= 1e-5 * scale


@families
def test_the_weights_are_large_enough_for_attention_to_matter(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        before = untouched(one.model, one, rows)
        after, _ = one.run(rows, uniform(name, rows))
    assert float((after - before).abs().max()) > 1e-3 * float(before.abs().max())


@families
def test_heads_give_out_the_mix_of_values_that_the_weights_say(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad(), tiny.witnessed(one.model, name) as seen:
        _, hearing = one.run(rows)
    assert len(seen) == hearing.count
    for call, (values, output) in zip(hearing.calls, seen, strict=True):
        mixed = torch.einsum("bhqk,bhkd->bhqd", call.weights.to(values), values)
        torch.testing.assert_close(output, mixed, **FAMILIES[name].close)
        if FAMILIES[name].path == "interface":
            assert torch.equal(call.values, values)


@families
def test_all_weight_on_one_key_gives_exactly_its_value(name):
    one = subject(name)
    rows = batch(one)
    chosen = []

    def edit(call):
        keys = draw(call.weights.shape, call.weights, seed=call.order).argmax(-1)
        chosen.append(keys)
        return nn.functional.one_hot(keys, call.weights.shape[-1]).to(call.weights)

    with torch.no_grad(), tiny.witnessed(one.model, name) as seen:
        one.run(rows, edit)
    for keys, (values, output) in zip(chosen, seen, strict=True):
        wanted = values.gather(2, keys[..., None].expand(output.shape))
        assert torch.equal(output, wanted)


@families
def test_even_weights_give_the_mean_of_the_allowed_values(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad(), tiny.witnessed(one.model, name) as seen:
        one.run(rows, uniform(name, rows))
    for order, (values, output) in enumerate(seen):
        open_to = allowed(name, rows, order)
        for b, i in open_to.any(-1).nonzero().tolist():
            mean = values[b][:, open_to[b, i]].mean(1)
            torch.testing.assert_close(output[b, :, i], mean, rtol=1e-5, atol=1e-6)


@families
def test_weights_lie_on_allowed_keys_alone(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        _, hearing = one.run(rows)
    for call in hearing.calls:
        seen = allowed(name, rows, call.order)
        weights = call.weights.transpose(1, 2)[real_queries(rows, seen)]  # N, H, K
        open_to = seen[real_queries(rows, seen)][:, None]
        assert not weights.masked_fill(open_to, 0.0).any()
        assert bool((weights >= 0).all())
        total = weights.sum(-1)
        if name == "gpt-oss":
            assert float(total.max()) < 1.0
        else:
            torch.testing.assert_close(total, torch.ones_like(total), rtol=1e-6, atol=1e-6)


@families
def test_a_padded_batch_gives_what_each_text_gives_alone(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        together = one.forward(rows)
        for b, text in enumerate(encoded(one)):
            single = one.forward(one.batch([text]))
            here = rows.present[b]
            close = {"rtol": 1e-5, "atol": 1e-6}  # softmax is in float32 in many families
            torch.testing.assert_close(together.logits[b], single.logits[0], rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(
                single.logits[0], alone(one, text.ids, text.types), rtol=1e-5, atol=1e-5
            )
            torch.testing.assert_close(together.rows[b][:, here], single.rows[0], **close)
            torch.testing.assert_close(
                together.states[b][here], single.states[0], rtol=1e-5, atol=1e-5
            )
            torch.testing.assert_close(together.attention[b][here], single.attention[0], **close)
            assert not together.rows[b][:, ~here].any()
            assert not together.attention[b].masked_fill(rows.mask[b], 0.0).any()


@pytest.mark.parametrize("kind", ["permute", "uniform", "leverage"])
@pytest.mark.parametrize("where", ["auto", "mean"])
@pytest.mark.parametrize("name", CAUSAL)
def test_no_intervention_lets_a_row_see_what_it_may_not(name, where, kind):
    layer = min(range(2), key=lambda number: FAMILIES[name].reach[number] or 99)
    one = subject(name, Scope(layer=layer, position=where))
    rows = batch(one)
    sitting = Sitting(one, rows)
    new = interventions.build(kind)(sitting)
    assert new.shape[1:] == sitting.rows.shape
    seen = allowed(name, rows, layer)
    if where == "mean":
        seen = (seen & rows.present[:, :, None]).repeat(1, H, 1)
    else:
        seen = seen[torch.arange(len(rows)), one.position(rows)][:, None]
    assert not new.masked_fill(seen, 0.0).any()
    torch.testing.assert_close(new.sum(-1), sitting.rows.sum(-1).expand(new.shape[:-1]))


@families
def test_the_model_is_left_as_it_was_even_after_an_error(name):
    one = subject(name)
    rows = batch(one)
    model = one.model
    config, hooks = copy.deepcopy(model.config), count_hooks(model)
    with torch.no_grad():
        before = untouched(model, one, rows)
        with pytest.raises(ZeroDivisionError), one.seam.open(uniform(name, rows)):
            untouched(model, one, rows).fill_(1 / 0)
        with pytest.raises(ZeroDivisionError):
            one.run(rows, lambda _: 1 / 0)
        one.decoder(rows, one.forward(rows))
        after = untouched(model, one, rows)
    assert torch.equal(before, after)
    assert model.config.to_dict() == config.to_dict()
    assert model.config._attn_implementation == config._attn_implementation != "heedful"
    assert count_hooks(model) == hooks
    assert not model.training


def count_hooks(model):
    lists = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
    hooks = sum(len(getattr(module, kind)) for module in model.modules() for kind in lists)
    return hooks + sum("forward" in vars(module) for module in model.modules())


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "xlnet"])
def test_the_gradient_of_weights_is_that_of_the_eager_models_own(name):
    one, eager = subject(name), tiny.build(name, attention="eager")
    rows = one.batch(encoded(one)[:1])
    output = eager(**inputs(one, rows), output_attentions=True)
    if FAMILIES[name].seq2seq:
        decoder = zip(output.decoder_attentions, output.cross_attentions, strict=True)
        returned = [*output.encoder_attentions, *(one for pair in decoder for one in pair)]
    else:
        returned = list(output.attentions)
    logits = answers(one, output, rows)
    assert torch.equal(logits, untouched(eager, one, rows))  # asking must not change the answer
    wanted = torch.autograd.grad((logits * scale(logits)).sum(), returned)
    for weights, slope, own in zip(returned, *slopes(one, rows), strict=True):
        torch.testing.assert_close(own.to(weights), weights, **FAMILIES[name].close)
        torch.testing.assert_close(slope.to(weights), wanted[0], rtol=1e-5, atol=1e-5)
        wanted = wanted[1:]


def test_the_gradient_of_weights_of_xlnet_is_the_slope_found_by_small_steps():
    one = subject("xlnet")
    rows = batch(one)
    for order, slope in enumerate(slopes(one, rows)[0]):
        way = draw(slope.shape, slope, seed=order) - 0.5
        ends = []
        for step in (1e-5, -1e-5):

            def edit(call, order=order, move=step * way):
                return call.weights + move if call.order == order else None

            with torch.no_grad():
                ends.append(float((scale(one.run(rows, edit)[0]) * one.run(rows, edit)[0]).sum()))
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(float((slope * way).sum()), rel=1e-5)


def scale(logits):
    return torch.arange(1, logits.shape[-1] + 1).to(logits) / logits.shape[-1]


def slopes(subject, rows):
    """∂(scaled sum of logits)/∂weights of every attention, and the weights, through the seam."""
    nudges, weights = [], []

    def nudge(call):
        nudges.append(torch.zeros_like(call.weights).requires_grad_())
        weights.append(call.weights.detach())
        return call.weights + nudges[-1]

    logits, _ = subject.run(rows, nudge)
    return torch.autograd.grad((logits * scale(logits)).sum(), nudges), weights


@families
def test_the_decoder_gives_what_the_whole_model_gives_under_these_rows(name):
    one = subject(name)
    rows = batch(one)
    forward = one.forward(rows).detached()
    decode = one.decoder(rows, forward)
    short = name in SHORT
    assert isinstance(decode, RowReplay) == short
    close = {"rtol": 1e-5, "atol": 1e-5} if short else FAMILIES[name].close
    with torch.no_grad():
        torch.testing.assert_close(decode(forward.rows), forward.logits, **close)
        many = random_rows(name, one, rows, forward, draws=(2, 3))
        found = decode(many)
        assert found.shape == (2, 3, *forward.logits.shape)
        assert float((found - forward.logits).abs().max()) > 1e-3 * float(found.abs().max())
        for new, logits in zip(many.flatten(0, 1), found.flatten(0, 1), strict=True):
            torch.testing.assert_close(logits, by_hand(one, rows, new), **FAMILIES[name].close)


@families
@pytest.mark.parametrize(
    "scope",
    [Scope(head=1), Scope(layer=0), Scope(layer=0, head=2), Scope("all"), Scope(position="mean")],
    ids=str,
)
def test_the_decoder_of_any_scope(name, scope):
    if scope.position == "mean" and FAMILIES[name].seq2seq:
        scope = Scope()  # its queries are not the text's; see the traps
    one = subject(name, scope)
    rows = batch(one)
    with torch.no_grad():
        forward = one.forward(rows)
        decode = one.decoder(rows, forward)
        if scope == Scope(head=1):
            assert isinstance(decode, RowReplay) == (name in SHORT)
        new = random_rows(name, one, rows, forward)
        torch.testing.assert_close(decode(new), by_hand(one, rows, new), **FAMILIES[name].close)
        torch.testing.assert_close(decode(forward.rows), forward.logits, **FAMILIES[name].close)


@families
def test_the_decoders_gradient_is_the_whole_models(name):
    one = subject(name)
    rows = batch(one)
    forward = one.forward(rows).detached()
    leaf = random_rows(name, one, rows, forward).requires_grad_()
    found = []
    for decode in (one.decoder(rows, forward), lambda new: by_hand(one, rows, new)):
        logits = decode(leaf)
        found.append(torch.autograd.grad((logits * scale(logits)).sum(), leaf)[0])
    torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-5)
    assert found[0].any()


@pytest.mark.parametrize("name", DOUBLE)
def test_held_attention_is_constant_to_the_gradient(name):
    one = subject(name)
    rows = batch(one)
    x = one.embed(rows).detach().requires_grad_()
    forward = one.forward(rows).detached()
    held = one.hold(rows, x, forward.rows)
    torch.testing.assert_close(held, forward.logits, **FAMILIES[name].close)
    (gradient,) = torch.autograd.grad((held * scale(held)).sum(), x)
    (free,) = torch.autograd.grad((one.forward(rows, x).logits * scale(held)).sum(), x)
    assert float((gradient - free).abs().max()) > 1e-3 * float(free.abs().max())
    with torch.no_grad():
        maps = [call.weights for call in one.run(rows)[1].calls]
        way = draw(x.shape, x) - 0.5
        step, near = (1e-3, 5e-3) if name in ROUGH else (1e-5, 1e-6)
        ends = [
            one.run(rows, lambda call: maps[call.order], embedded=x + move * way)[0]
            for move in (step, -step)
        ]
        slope = float(((ends[0] - ends[1]) * scale(held)).sum()) / (2 * step)
        assert slope == pytest.approx(float((gradient * way).sum()), rel=near)
        new = random_rows(name, one, rows, forward)
        torch.testing.assert_close(
            one.hold(rows, x, new), by_hand(one, rows, new), **FAMILIES[name].close
        )


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_held_attention_is_eager_attention_with_its_weights_cut_from_the_graph(name, monkeypatch):
    one, eager = subject(name), tiny.build(name, attention="eager")
    rows = batch(one)
    room = sys.modules[type(eager).__module__]
    own, x = room.eager_attention_forward, one.embed(rows).detach().requires_grad_()
    given = {**inputs(one, rows), "inputs_embeds": x}
    del given["input_ids"]
    free = answers(one, eager(**given), rows)

    def cut(module, query, key, value, mask, **more):
        _, weights = own(module, query, key, value, mask, **more)
        value = value.repeat_interleave(H // value.shape[1], dim=1)
        return (weights.detach() @ value).transpose(1, 2).contiguous(), weights

    monkeypatch.setattr(room, "eager_attention_forward", cut)
    held = answers(one, eager(**given), rows)
    monkeypatch.undo()
    forward = one.forward(rows, x)
    for wanted, found in ((held, one.hold(rows, x, forward.rows)), (free, forward.logits)):
        slopes = [torch.autograd.grad((y * scale(y)).sum(), x)[0] for y in (wanted, found)]
        torch.testing.assert_close(slopes[1], slopes[0], **FAMILIES[name].close)
    torch.testing.assert_close(held, free, rtol=0, atol=1e-12)


@families
def test_leave_one_out_is_a_loop_over_shorter_texts(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        found = one.without_each(rows, max_batch_tokens=40)
    assert not found[~rows.mask].any()
    for b, text in enumerate(encoded(one)):
        first = int(rows.present[b].nonzero().min())  # not 0 where texts are padded on the left
        for t in range(len(text.ids)):
            if text.word[t] < 0:
                continue
            ids = text.ids[:t] + text.ids[t + 1 :]
            types = None if text.types is None else text.types[:t] + text.types[t + 1 :]
            wanted = alone(one, ids, types)
            torch.testing.assert_close(found[b, first + t], wanted, rtol=1e-5, atol=1e-5)


# --- traps ----------------------------------------------------------------------------------------


@pytest.fixture
def as_in_use():
    """Types unchecked, as users run it: what is refused here, our own messages refuse."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def maskless():
    """An attention known to transformers by a key that no mask is registered for."""
    heard = []

    def attend(module, *given, **more):
        heard.append(module)
        return sys.modules[type(module).__module__].eager_attention_forward(module, *given, **more)

    transformers.AttentionInterface.register("maskless", attend)
    yield heard
    transformers.AttentionInterface._global_mapping.pop("maskless")


@pytest.mark.parametrize("name", ["bert", "gpt2-classifier", "llama"])
def test_padding_is_not_lost_as_it_is_under_a_key_without_a_mask(name, maskless):
    model = tiny.build(name)
    one = made(model, name)
    rows, text = batch(one), encoded(one)[1]
    with torch.no_grad():
        wanted = alone(one, text.ids, text.types)
        torch.testing.assert_close(one.run(rows)[0][1], wanted, rtol=1e-5, atol=1e-5)
        model.set_attn_implementation("maskless")
        lost = untouched(model, one, rows)[1]
    assert len(maskless) == 2
    assert float((lost - wanted).abs().max()) > 0.01  # so the test above can fail


@pytest.mark.parametrize("name", ["bert", "llama", "gpt2"])
def test_a_lost_mask_would_be_noticed(name, monkeypatch):
    model = tiny.build(name)
    one = made(model, name)
    rows = batch(one)
    assert find_seam(model, lambda: one.logits(rows)).path == "interface"
    monkeypatch.setattr("heedful.models.seam._mask", lambda *_, **__: None)
    assert find_seam(model, lambda: one.logits(rows)).path == "tap"
    monkeypatch.setattr("heedful.models.seam.PATHS", ("interface",))
    with pytest.raises(AttentionUnavailable, match="logits differ from the untouched model's by"):
        find_seam(model, lambda: one.logits(rows))
    monkeypatch.undo()
    find_seam(model, lambda: one.logits(rows))  # which registers the mask again


@pytest.mark.parametrize("name", TAPPED)
def test_a_family_outside_the_registry_is_reached_by_the_tap(name, maskless):
    model = tiny.build(name)
    one = made(model, name)
    rows = batch(one)
    model.config._attn_implementation_internal = "maskless"
    with torch.no_grad(), suppress(TypeError):  # Falcon cannot even do without a mask
        untouched(model, one, rows)
    assert not maskless  # it attends without asking the registry
    model.config._attn_implementation_internal = "eager"
    with pytest.raises(AttentionUnavailable, match="sees weights only"):
        one.run(rows, lambda call: Mixed(torch.zeros(*call.weights.shape[:3], 8).double()))
    assert one.run(rows)[1].count == 2


def hand_made(*kinds):
    return from_model(tiny.hand_made(kinds), tiny.words())


def test_attention_written_by_hand_is_reached_if_it_takes_a_softmax():
    one = hand_made("softmax", "softmax")
    assert one.seam.path == "tap"
    assert one.seam.calls == 2
    rows = batch(one)
    by_plain_softmax, _ = one.run(rows)
    fused = tiny.hand_made(["fused", "fused"])
    fused.load_state_dict(one.model.state_dict())
    torch.testing.assert_close(by_plain_softmax, untouched(fused, one, rows))


def test_texts_and_heads_may_lie_on_one_axis():
    plain, folded = hand_made("softmax", "softmax"), hand_made("folded", "folded")
    rows = batch(plain)
    with torch.no_grad():
        for edit in (None, last_key, lambda call: call.weights * torch.tensor([[[0.5]], [[0.1]]])):
            wanted, heard = plain.run(rows, edit)
            found, again = folded.run(rows, edit)
            torch.testing.assert_close(found, wanted)
            for one, other in zip(heard.calls, again.calls, strict=True):
                torch.testing.assert_close(one.weights, other.weights)


def test_the_states_of_xlnet_are_each_texts_own_even_if_there_are_as_many_texts_as_tokens():
    one = subject("xlnet")
    texts = ("so very fine", "not so bad", "a dull film", "it was good", "all of it")
    rows = batch(one, texts)
    assert rows.ids.shape == (5, 5)
    with torch.no_grad():
        together = one.forward(rows)
        for b, text in enumerate(encoded(one, texts)):
            single = one.forward(one.batch([text]))
            torch.testing.assert_close(together.logits[b], single.logits[0])
            torch.testing.assert_close(together.states[b], single.states[0])


@pytest.mark.parametrize("name", ["t5", "bart", "marian"])
def test_cross_attention_is_told_from_self_attention_of_the_same_shape(name):
    one = subject(name)
    rows = batch(one, ("so very fine", "not bad"))
    assert rows.ids.shape[1] == len(one.prefix) == 3
    with torch.no_grad():
        forward, (_, hearing) = one.forward(rows), one.run(rows)
        assert len(forward.maps) == 2
        for found, order in zip(forward.maps, (3, 5), strict=True):
            torch.testing.assert_close(found, hearing.calls[order].weights)
        new = random_rows(name, one, rows, forward)
        found = one.decoder(rows, forward)(new)
        torch.testing.assert_close(found, by_hand(one, rows, new), **FAMILIES[name].close)


@pytest.mark.parametrize("kinds", [["fused"], ["exponent"], ["decoy"], ["softmax", "fused"]])
def test_attention_that_cannot_be_reached_is_refused(kinds):
    with pytest.raises(AttentionUnavailable, match=r"heedful\.Subject.*docs/your-own-model\.md"):
        hand_made(*kinds)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("Longformer", tiny.LARGE | {"attention_window": 8}),
        ("Funnel", {"vocab_size": tiny.V, "d_model": 32, "n_head": 4, "block_sizes": [1, 1]}),
    ],
)
def test_attention_that_is_no_map_of_all_tokens_is_refused(kind, more, as_in_use):
    settings = getattr(transformers, f"{kind}Config")(**more)
    model = getattr(transformers, f"{kind}ForSequenceClassification")(settings).eval()
    with pytest.raises(AttentionUnavailable, match="does not attend from every token") as error:
        from_model(model, tiny.words())
    assert "heedful.Subject" in str(error.value)  # what to do


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_an_unknown_argument_is_refused(name):
    one = subject(name)
    given = inputs(one, batch(one))
    with one.seam.open(), torch.no_grad():
        one.model(**given, mystery=None)  # nothing was said
        with pytest.raises(AttentionUnavailable, match="'mystery', which heedful does not know"):
            one.model(**given, mystery=torch.ones(2))
    assert one.model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("name", ["bert", "deberta"])
def test_training_mode_is_refused(name):
    model = tiny.build(name)
    one = made(model, name)
    model.train()
    with pytest.raises(AttentionUnavailable, match=r"call model\.eval\(\) first"), one.seam.open():
        pass
    with pytest.raises(AttentionUnavailable, match="training mode"):
        one.forward(batch(one))


@pytest.mark.parametrize("name", ["bert", "llama", "deberta", "xlnet"])
def test_an_edit_of_another_shape_is_refused(name):
    one = subject(name)
    for wrong in (lambda w: w[..., :-1], lambda w: w[:, :1], lambda w: w.mean(1)):
        with pytest.raises(AttentionUnavailable, match=r"weights of shape \(3, .* attends with \("):
            one.run(batch(one), lambda call, wrong=wrong: wrong(call.weights))


@families
def test_an_edit_may_give_a_view_or_another_type(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        wanted, _ = one.run(rows, uniform(name, rows))

        def turned(call):
            even = uniform(name, rows)(call)[:, :1].transpose(-1, -2).contiguous()
            return even.transpose(-1, -2).expand(call.weights.shape)

        for edit in (turned, lambda call: turned(call).float()):
            torch.testing.assert_close(one.run(rows, edit)[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_the_heads_output_can_be_said_outright(name):
    one = subject(name)
    rows = batch(one)
    said = []

    def edit(call):
        said.append(draw((*call.weights.shape[:3], 8), call.weights, seed=call.order))
        return Mixed(said[-1])

    with torch.no_grad(), tiny.witnessed(one.model, name) as seen:
        one.run(rows, edit)
    for output, (_, given) in zip(said, seen, strict=True):
        assert torch.equal(given, output)


def in_threads(*tasks):
    """Run the tasks at the same time; what each gives, errors included."""
    found = [None] * len(tasks)

    def run(number):
        try:
            found[number] = tasks[number]()
        except Exception as error:  # noqa: BLE001 - raised again where the test sees it
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for one in found:
        if isinstance(one, Exception):
            raise one
    return found


def last_key(call):
    keys = torch.zeros_like(call.weights)
    keys[..., 0] = 1.0
    return keys


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        (("bert", "bert"), False),
        (("bert", "bert"), True),
        (("deberta", "deberta"), True),
        (("bert", "deberta"), False),
    ],
)
def test_two_models_in_two_threads_do_not_hear_each_other(names, shared):
    models = [tiny.build(name, seed=seed) for seed, name in enumerate(names)]
    if shared:  # one config for both, as an ensemble may be made
        models[1] = type(models[0])(models[0].config).double().eval()
        tiny.enlarge(models[1])
    both = [made(model, name) for model, name in zip(models, names, strict=True)]
    rows = [batch(one) for one in both]
    edits = [uniform(names[0], rows[0]), last_key]
    wanted = [one.run(r, edit)[0] for one, r, edit in zip(both, rows, edits, strict=True)]
    before = [model.config._attn_implementation for model in models]
    meet = threading.Barrier(2, timeout=20)
    # who shares a config waits for the other; all others are inside at the same time
    wait = (lambda: None) if shared else meet.wait

    def task(number):
        def edit(call):
            wait()
            return edits[number](call)

        logits, hearing = both[number].run(rows[number], edit)
        if number == 0:
            wait()  # the other leaves last
        else:
            with both[1].seam.open() as hearing:
                wait()
                both[1].logits(rows[1])
        return logits, hearing.count

    found = in_threads(lambda: task(0), lambda: task(1))
    for (logits, count), answer in zip(found, wanted, strict=True):
        torch.testing.assert_close(logits, answer)
        assert count == 2
    assert [model.config._attn_implementation for model in models] == before


@pytest.mark.parametrize("name", ["bert", "deberta"])
def test_two_threads_on_one_model_wait_for_each_other(name):
    one = subject(name)
    rows = batch(one)
    inside, log = threading.Event(), []
    edits = {"first": uniform(name, rows), "second": last_key}
    wanted = {who: one.run(rows, edit)[0] for who, edit in edits.items()}

    def first():
        with one.seam.open(edits["first"]) as hearing:
            inside.set()
            waiting.wait(timeout=0.3)  # time enough for the other to come in, if it could
            logits = one.logits(rows)
            log.append("first leaves")
        return logits, hearing.count

    def second():
        inside.wait(timeout=20)
        with one.seam.open(edits["second"]) as hearing:
            log.append("second enters")
            waiting.set()
            return one.logits(rows), hearing.count

    waiting = threading.Event()
    found = in_threads(first, second)
    assert log == ["first leaves", "second enters"]
    for (logits, count), answer in zip(found, wanted.values(), strict=True):
        torch.testing.assert_close(logits, answer)
        assert count == 2


@pytest.mark.parametrize("name", ["bert", "deberta"])
def test_a_thread_outside_the_block_gets_the_models_own_answer(name):
    one = subject(name)
    rows = batch(one)
    with torch.no_grad():
        wanted = untouched(one.model, one, rows)
    opened, done = threading.Event(), threading.Event()

    def inside():
        with one.seam.open(last_key) as hearing:
            opened.set()
            done.wait(timeout=20)
        return hearing.count

    def outside():
        opened.wait(timeout=20)
        try:
            return untouched(one.model, one, rows)
        finally:
            done.set()

    count, logits = in_threads(inside, outside)
    assert count == 0
    torch.testing.assert_close(logits, wanted, rtol=1e-6, atol=1e-6)


def test_albert_uses_one_layer_three_times_and_each_is_counted():
    one = subject("albert")
    rows = batch(one)
    _, hearing = one.run(rows)
    assert one.seam.calls == hearing.count == len(one.forward(rows).maps) == 3
    assert len({call.module for call in hearing.calls}) == 1
    moved = []
    for layer in range(3):
        here = subject("albert", Scope(layer=layer))
        forward = here.forward(rows).detached()
        assert torch.equal(forward.rows, hearing.calls[layer].weights[:, :, 0].detach())
        moved.append(here.decoder(rows, forward)(random_rows("albert", here, rows, forward)))
    assert all(float((moved[i] - moved[i - 1]).detach().abs().max()) > 1e-3 for i in range(3))


def test_padding_with_every_key_masked_stays_finite_in_float64():
    one = subject("mistral")
    rows = batch(one)
    assert bool((~allowed("mistral", rows, 0)).all(-1).any())  # there are such rows
    x = one.embed(rows).detach().requires_grad_()
    logits, hearing = one.run(rows, embedded=x)
    assert logits.dtype == torch.float64
    assert all(bool(call.weights.isfinite().all()) for call in hearing.calls)
    assert bool(logits.isfinite().all())
    (gradient,) = torch.autograd.grad(logits.sum(), x)
    assert bool(gradient.isfinite().all())
    assert not gradient[~rows.present].any()


def test_what_a_sink_takes_is_not_given_back():
    one = subject("gpt-oss")
    rows = batch(one)
    with torch.no_grad():
        forward = one.forward(rows)
    eager = tiny.build("gpt-oss", attention="eager")
    returned = eager(**inputs(one, rows), output_attentions=True).attentions[1]
    for b, last in enumerate(rows.present.sum(-1).tolist()):
        torch.testing.assert_close(forward.rows[b], returned[b, :, last - 1].detach())
    assert float(forward.rows.sum(-1).max()) < 0.999
    assert float(forward.rows.sum(-1).min()) < 0.9
    torch.testing.assert_close(forward.attention.sum(-1), torch.ones(3))  # a reading, said to be


@pytest.mark.parametrize("where", ["auto", "last", "first", "mean"])
@pytest.mark.parametrize("pad", [tiny.PAD, None])
def test_a_text_may_hold_the_token_that_is_padding_elsewhere(where, pad):
    model = tiny.build("gpt2-classifier", pad_token_id=pad)
    one = made(model, "gpt2-classifier", scope=Scope(position=where))
    texts = ("so [PAD] fine", "a film [PAD]", "[PAD]", "a film that is so fine")
    rows = batch(one, texts)
    assert rows.present.sum(-1).tolist() == [3, 3, 1, 6]
    with torch.no_grad():
        forward = one.forward(rows)
        for b, text in enumerate(encoded(one, texts)):
            states = model.transformer(torch.tensor([text.ids])).last_hidden_state
            torch.testing.assert_close(forward.logits[b], model.score(states[0, -1]))
        with pytest.raises(ZeroDivisionError):
            one.run(rows, lambda _: 1 / 0)
    assert model.config.pad_token_id == pad


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


@pytest.mark.parametrize(
    ("name", "config", "where"),
    [
        ("bert", {}, "first"),
        ("gpt2-classifier", {}, "last"),
        ("gpt2", {}, "last"),
        ("xlnet", {}, "last"),
        ("modernbert", {"classifier_pooling": "mean"}, "mean"),
        ("modernbert", {"classifier_pooling": "cls"}, "first"),
        ("t5", {}, "last"),
    ],
)
def test_the_position_is_found_and_its_rows_are_read(name, config, where):
    one = made(tiny.build(name, **config), name)
    rows = batch(one)
    assert one.scope.position == where
    assert one.left == (name == "xlnet")
    with torch.no_grad():
        forward = one.forward(rows)
        last = (one.run(rows)[1]).calls[-1].weights
    for b in range(len(rows)):
        here = rows.present[b].nonzero().flatten().tolist()
        queries = {"first": here[:1], "last": here[-1:], "mean": here}[where]
        if name == "t5":
            queries = [2]
        words = sum(last[b, head, i] for head in range(H) for i in queries) * rows.mask[b]
        torch.testing.assert_close(forward.attention[b], words / words.sum())


def test_texts_are_padded_on_the_left_where_the_last_place_is_pooled():
    one = subject("xlnet")
    rows = batch(one)
    assert rows.present[:, -1].all()
    assert not rows.present[1, 0]
    assert rows.ids[1, -1] == tiny.CLS


def test_a_language_models_answers_and_an_encoder_decoders_prefix():
    model, tokenizer = tiny.model("gpt2"), tiny.tokenizer("gpt2")
    one = from_model(model, tokenizer, answers=("good", "bad film"))
    rows = batch(one)
    chosen = tokenizer.convert_tokens_to_ids(["good", "bad"])
    with torch.no_grad():
        wanted = untouched(model, one, rows)[:, chosen]
        torch.testing.assert_close(one.forward(rows).logits, wanted)
    assert one.labels == ("good", "bad film")
    written = tiny.tokenizer("bart").convert_tokens_to_ids(["so", "fine"])
    assert subject("bart").prefix == (tiny.SEP, *written)


def test_padding_is_not_taken_for_a_token_when_one_is_left_out():
    one = subject("gpt2")
    texts = ("so fine [PAD]", "so bad")  # the one without fine, the other without bad
    with torch.no_grad():
        found = one.without_each(batch(one, texts), max_batch_tokens=100)
    for b, t, left in ((0, 1, "so [PAD]"), (0, 2, "so fine"), (1, 1, "so"), (1, 0, "bad")):
        wanted = alone(one, tuple(tiny.tokenizer("gpt2")(left)["input_ids"]))
        torch.testing.assert_close(found[b, t], wanted)


def test_a_text_that_deletion_would_empty_is_not_explained():
    one = subject("gpt2")
    assert one.encode(Example(0, "good", 0)).explained == 0  # an audit counts it as too short
    left = one.without_each(batch(one, ("good", "so fine")), max_batch_tokens=100)
    assert bool((left[0] == 0).all())
    with torch.no_grad():
        alone = one.logits(batch(one, ("fine so",)).chosen(torch.tensor([0])))
    assert alone.shape == left[1, :1].shape
    with pytest.raises(HeedfulError):
        one.without_each(batch(one, ("good",)), max_batch_tokens=100)
