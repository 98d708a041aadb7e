"""Interventions and checks on transformers, beside plain loops and closed forms."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

import heedful
from heedful.checks import checks
from heedful.checks.interventions.gradient_search import AdversarialSearch
from heedful.checks.interventions.leverage import Leverage
from heedful.checks.interventions.nullspace import NullSpace
from heedful.checks.interventions.random_at_distance import RandomAtDistance
from heedful.checks.interventions.simple import Permute, UniformWeights
from heedful.core.errors import NotApplicable
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import jsd, tvd
from heedful.pipeline.audit.job import run_job
from support import measured_values, tiny_models

TEXTS = ("a fine film that is so very good .", "not so bad", "it was dull , in places , not good")


def sitting_of(family="bert", texts=TEXTS, **choices):
    subject = heedful.load(tiny_models.model(family), tiny_models.tokenizer(family), **choices)
    encoded = [subject.encode(Example(i, text, 0)) for i, text in enumerate(texts)]
    return BatchContext(subject, subject.batch(encoded))


@pytest.fixture(scope="module", params=["bert", "llama", "deberta-v2"])
def context(request):
    return sitting_of(request.param)


def words_of(context, text):
    return context.batch.mask[text].nonzero().squeeze(-1).tolist()


def test_what_rows_read_as_is_their_mean_over_words(context):
    for text, own in enumerate(context.forward.attention):
        words = words_of(context, text)
        mean = [sum(float(row[t]) for row in context.rows[text]) for t in words]
        want = [one / sum(mean) for one in mean]
        assert own[words].tolist() == pytest.approx(want)
        assert float(own.sum()) == pytest.approx(1.0)


@pytest.mark.parametrize("keys", ["words", "all"])
def test_a_shuffle_moves_every_head_alike_and_nothing_else(context, keys):
    shuffled = Permute(draws=7, keys=keys)(context)
    movable = context.batch.mask if keys == "words" else context.batch.present
    moved_some = False
    for draw in shuffled:
        for text in range(len(context.batch)):
            fixed = ~movable[text]
            assert torch.equal(draw[text][:, fixed], context.rows[text][:, fixed])
            here = movable[text].nonzero().squeeze(-1)
            pairs = {tuple(column) for column in context.rows[text][:, here].T.tolist()}
            assert {tuple(column) for column in draw[text][:, here].T.tolist()} == pairs
            moved_some |= not torch.equal(draw[text], context.rows[text])
    assert moved_some
    if keys == "words":
        reading = context.read_attention(shuffled)
        assert torch.allclose(
            reading.sort(-1).values, context.forward.attention.sort(-1).values.expand_as(reading)
        )


def test_windows_and_causality_are_respected_by_every_intervention():
    for family in ("mistral", "gpt2"):
        one = sitting_of(family, ("a fine film that is so very good , in places",), position="mean")
        closed = one.rows == 0
        assert closed.any()
        for other in (
            Permute(draws=3)(one),
            UniformWeights()(one),
            Leverage()(one),
            AdversarialSearch(steps=3, candidates=2)(one),
            RandomAtDistance(3)(one, torch.tensor([0.1])),
        ):
            assert (other[:, closed] == 0).all()
            torch.testing.assert_close(
                other.sum(-1), one.rows.sum(-1).expand(len(other), -1, -1), rtol=1e-4, atol=1e-5
            )


def test_the_search_finds_other_heads_with_the_same_output_and_reports_true_distances(context):
    found = AdversarialSearch(steps=150, rate=0.1, candidates=2)(context)[0]
    change = tvd(context.decode(found).softmax(-1), context.forward.probabilities)
    assert (change <= 0.05 + 1e-9).all()
    away = jsd(context.read_attention(found), context.forward.attention)
    assert away.max() > 0.02
    special = context.batch.present & ~context.batch.mask
    where = special[:, None].expand_as(found)
    assert torch.equal(found[where], context.rows[where])


def test_the_slope_of_the_search_is_that_of_its_loss():
    one = sitting_of("bert")
    search = AdversarialSearch(candidates=2, penalty=3.0, hinge=0.0)
    with torch.no_grad():
        logits = search._start(one)
    weights = torch.softmax(logits.detach().masked_fill(~one.attendable_words, -1e9), -1)

    def loss(free):
        rows = one.place_on_words(free)
        reading = one.read_attention(rows)
        output = one.decode(rows).softmax(-1)
        change = tvd(output, one.forward.probabilities)
        total = (-_jsd(reading, one.forward.attention) + 3.0 * change.relu()).sum()
        apart = sum(_jsd(reading[a], reading[b]).sum() for a in range(2) for b in range(2)) / 4
        return total - apart

    leaf = weights.clone().requires_grad_()
    (want,) = torch.autograd.grad(loss(leaf), leaf)
    got = search._slope(one, weights.clone())
    inside = one.attendable_words.expand_as(weights)
    # along the simplex: a constant added to a row's slope changes nothing

    def centre(slope):
        return slope - (slope * inside).sum(-1, keepdim=True) / inside.sum(-1, keepdim=True)

    torch.testing.assert_close(centre(got)[inside], centre(want)[inside], rtol=1e-4, atol=1e-7)


def _jsd(p, q):
    middle = 0.5 * (p + q)
    tiny_ = 1e-10
    part = p * ((p + tiny_).log() - (middle + tiny_).log())
    return 0.5 * (part + q * ((q + tiny_).log() - (middle + tiny_).log())).sum(-1)


def test_random_attention_lies_exactly_as_far_as_asked(context):
    wanted = torch.tensor([0.05, 0.1, 0.02]).to(context.rows)
    other = RandomAtDistance(draws=5)(context, wanted)
    found = jsd(context.read_attention(other), context.forward.attention)
    torch.testing.assert_close(found, wanted.expand_as(found), rtol=1e-4, atol=1e-6)
    assert len({tuple(one.flatten().tolist()) for one in other}) > 1


def test_the_null_space_keeps_the_heads_output_and_moves_its_weights():
    long = " ".join(["a fine film that is so very good", "in places dull , not bad"] * 2)
    one = sitting_of("bert", (long, "so fine"), layer=-1, head=2)
    other = NullSpace()(one)[0]
    subject, width = one.subject, tiny_models.H and one.forward.states.shape[-1] // tiny_models.H
    values = one.forward.states[..., 2 * width : 3 * width]
    torch.testing.assert_close(
        (other[:, 0, :, None] * values).sum(1),
        (one.rows[:, 0, :, None] * values).sum(1),
        rtol=1e-6,
        atol=1e-8,
    )
    away = jsd(one.read_attention(other), one.forward.attention)
    assert away[0] > 0.01  # 26 words, values of 8 dimensions
    assert away[1] < 1e-9  # 2 words: no room
    assert (other >= 0).all()
    gap = (one.decode(other) - one.forward.logits).abs().max()
    assert gap < 1e-6
    assert subject.scope.head == 2


def test_the_null_space_needs_one_head_whose_values_are_seen():
    for one in (sitting_of("bert"), sitting_of("deberta-v2", head=0)):
        with pytest.raises(NotApplicable, match="one head"):
            NullSpace()(one)


def test_agreement_by_layer_and_head_is_kendalls_tau():
    one = sitting_of("bert")
    found = checks.build("agreement", shuffles=2)(one)
    columns = measured_values.columns(found)
    rows = [name for name in columns if measured_values.plain(name) == "tau_leave_one_out"]
    assert len(rows) == 1 + 2 * (1 + tiny_models.H)
    before = one.forward.probabilities
    for text in range(len(TEXTS)):
        words = words_of(one, text)
        leave = tvd(one.without_each[text].softmax(-1), before[text])[words]
        for layer, maps in enumerate(one.forward.maps):
            for head in range(tiny_models.H):
                row = maps[text, head, 0, words]
                want = kendalltau(row.numpy(), leave.numpy()).statistic
                got = columns[f"tau_leave_one_out[layer {layer}, head {head}]"][text]
                assert got == pytest.approx(want, abs=1e-6)
            mean = maps[text, :, 0, words].mean(0)
            want = kendalltau(mean.numpy(), leave.numpy()).statistic
            got = columns[f"tau_leave_one_out[layer {layer}]"][text]
            assert got == pytest.approx(want, abs=1e-6)
    want = float(one.forward.maps[1][0, 3, 0, words_of(one, 0)].sum())
    assert columns["word_mass[layer 1, head 3]"][0] == pytest.approx(want)


def test_random_rows_are_shuffled_where_they_were_drawn(monkeypatch):
    one = sitting_of("bert")
    drawn = []
    ours = one.subject.rows_and_decoder_at

    def noted(batch, forward, *, layer, position):
        rows, decode = ours(batch, forward, layer=layer, position=position)
        drawn.append((layer, position.tolist()))
        for text, place in enumerate(position.tolist()):
            assert bool(batch.present[text, place])
            assert torch.equal(rows[text], forward.maps[layer][text, :, place])
        same = decode(rows)
        torch.testing.assert_close(same, forward.logits)
        return rows, decode

    monkeypatch.setattr(
        type(one.subject), "rows_and_decoder_at", lambda self, *a, **k: noted(*a, **k)
    )
    found = checks.build("permutation", draws=5, elsewhere=6)(one)
    names = {m.measure for m in found.measurements}
    assert {"median_tvd_all_keys", "median_tvd_random_rows"} <= names
    assert len(drawn) == 6
    assert len({layer for layer, _ in drawn}) == 2
    assert len({tuple(position) for _, position in drawn}) > 2


def test_results_do_not_depend_on_the_batch():
    subject = heedful.load(tiny_models.model("bert"), tiny_models.tokenizer("bert"))
    examples = [Example(i, text, 0) for i, text in enumerate(TEXTS)]
    names = ("agreement", "permutation", "mechanism", "erasure")
    parts = {name: checks.build(name) for name in names}
    parts["adversarial"] = checks.build("adversarial", steps=20)
    runs = [
        run_job(subject, examples, parts, seed=3, max_batch_tokens=tokens) for tokens in (12, 2000)
    ]
    for small, large in zip(*(run.columns for run in runs), strict=True):
        assert small.key == large.key
        close = 1e-3 if small.key.check == "adversarial" else 1e-6
        np.testing.assert_allclose(small.values, large.values, atol=close, rtol=0)


def test_memory_that_runs_out_halves_the_batch_and_is_counted(monkeypatch):
    subject = heedful.load(tiny_models.model("bert"), tiny_models.tokenizer("bert"))
    examples = [Example(i, "a fine film", 0) for i in range(8)]
    parts = {"mechanism": checks.build("mechanism")}
    usual = type(subject).forward

    def scarce(self, batch, embedded=None):
        if len(batch) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …")
        return usual(self, batch, embedded)

    whole = run_job(subject, examples, parts, seed=0, max_batch_tokens=2000)
    monkeypatch.setattr(type(subject), "forward", scarce)
    pieces = run_job(subject, examples, parts, seed=0, max_batch_tokens=2000)
    assert (whole.summary.halved, pieces.summary.halved) == (0, 3)
    np.testing.assert_allclose(whole.columns[0].values, pieces.columns[0].values)

    def broken(self, batch, embedded=None):
        raise RuntimeError("something else")

    monkeypatch.setattr(type(subject), "forward", broken)
    with pytest.raises(RuntimeError, match="something else"):
        run_job(subject, examples, parts, seed=0, max_batch_tokens=2000)


@torch.no_grad()
def test_leverage_of_one_head_is_the_best_single_word_by_a_plain_loop():
    one = sitting_of("bert", layer=0, head=1)
    found = tvd(one.decode(Leverage()(one)[0]).softmax(-1), one.forward.probabilities)
    for text in range(len(TEXTS)):
        best = 0.0
        for word in words_of(one, text):
            rows = one.rows.clone()
            mass = float(rows[text, 0, words_of(one, text)].sum())
            rows[text, 0, words_of(one, text)] = 0.0
            rows[text, 0, word] = mass
            change = tvd(one.decode(rows).softmax(-1), one.forward.probabilities)[text]
            best = max(best, float(change))
        assert float(found[text]) == pytest.approx(best)
        assert math.isfinite(best)
