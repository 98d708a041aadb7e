"""The plain reference of the benchmarks against ours, on a small classifier in float64.

What is timed as "the same experiment, written plainly" must be the same experiment.
"""

import copy
import math

import pytest
import torch
from benchmarks import plain

from heedful.checks.interventions.certified_optimum import CertifiedAdversary
from heedful.checks.interventions.gradient_search import AdversarialSearch
from heedful.checks.interventions.simple import Permute
from heedful.core.rng import normal_keys
from heedful.methods.erasure.leave_one_out import LeaveOneOut
from heedful.methods.gradient.gradient import OneHotGradient
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import jsd, tvd
from heedful.training.loop.trainables import SparseStep, build_recurrent_optimiser
from heedful.training.objectives import loss_for
from heedful.training.recipe import Recipe
from support import subjects

LENGTHS = [2, 3, 5, 8, 12, 9, 4, 12]  # the published deletion needs a word to be left
EPSILON = 0.05
DRAWS = 1600
STEPS = 20


@pytest.fixture(params=[0, 1, 2])
def context(request):
    subject = subjects.subject(seed=request.param)
    return BatchContext(subject, subjects.batch(subject, LENGTHS, seed=request.param))


@pytest.fixture(autouse=True)
def _seeded():
    """The plain code draws from torch's one generator, as published code does."""
    with torch.random.fork_rng():
        torch.manual_seed(7)
        yield


def parts(context):
    """What the plain explanations take: network, two-way LSTM, word vectors, mask, lengths."""
    network, batch = context.subject.network, context.batch
    embedded, lengths = context.subject.embed(batch), batch.present.sum(-1)
    return network, plain.two_way(network.encoder), embedded, batch.mask, lengths


def test_states_attention_and_output_are_the_same(context):
    network, lstm, embedded, mask, lengths = parts(context)
    states = plain.packed_states(lstm, embedded, lengths)
    attention = plain.attention_of(network, states, mask)
    present, forward = context.batch.present, context.forward
    close = {"rtol": 0, "atol": 1e-12}
    torch.testing.assert_close(states[present], forward.states[present], **close)
    torch.testing.assert_close(attention, forward.attention, **close)
    output = plain.output(network, states, attention)
    torch.testing.assert_close(output, forward.probabilities[:, 1], **close)


@pytest.mark.parametrize(
    ("reference", "ours"),
    [(plain.leave_one_out, LeaveOneOut()), (plain.gradient, OneHotGradient())],
    ids=["leave-one-out", "gradient"],
)
def test_explanations_are_the_same(context, reference, ours):
    mask = context.batch.mask
    wanted = reference(*parts(context))[mask]
    found = ours(context, context.predicted).scores[mask].abs()
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)
    assert float(wanted.max()) > 0.01  # so it is not zero that agrees with zero


def test_medians_over_shuffles_agree_within_what_chance_allows(context):
    """The share of our draws below the plain median has a deviation of √(¼/draws + ¼/draws)."""
    batch, forward = context.batch, context.forward
    wanted = plain.permutation(context.subject.network, forward.states, batch.mask, rounds=DRAWS)
    shuffled = context.decode(Permute(draws=DRAWS)(context)).softmax(-1)
    change = tvd(shuffled, forward.probabilities)
    error = 5 * math.sqrt(0.25 / DRAWS + 0.25 / DRAWS)
    low, high = change.quantile(torch.tensor([0.5 - error, 0.5 + error]).double(), dim=0)
    assert bool((low - 1e-9 <= wanted).all())
    assert bool((wanted <= high + 1e-9).all())
    narrow = (high - low) < 0.25 * change.amax(0)
    assert int(narrow.sum()) >= len(batch) // 2  # and chance does not allow everything


def searched(context, **settings):
    """The plain search's candidates, their distances from the model's own, their output changes."""
    network, forward = context.subject.network, context.forward
    logits = plain.adversary(network, forward.states, context.batch.mask, **settings)
    tried = logits.masked_fill(~context.batch.mask[:, None], -math.inf).softmax(-1)
    output = plain.output(network, forward.states[:, None], tried)
    change = (output - forward.probabilities[:, 1:]).abs()
    return tried, plain._jsd(tried, forward.attention[:, None]), change


def certified(context, epsilon):
    """How far the exact adversary goes; what it does to the output is within ε."""
    attention = CertifiedAdversary(epsilon)(context)[0]
    moved = tvd(context.decode(attention).softmax(-1), context.forward.probabilities)
    assert float(moved.max()) <= epsilon + 1e-9
    return jsd(attention, context.forward.attention)


def test_no_plain_search_goes_farther_than_the_certificate(context):
    _, away, change = searched(context)
    for epsilon in (EPSILON, *change.flatten().tolist()):  # at its own ε each has no room to spare
        within = away.masked_fill(change > epsilon, 0.0).amax(1)
        assert bool((within <= certified(context, epsilon) + 1e-6).all())
    best = away.masked_fill(change > EPSILON, 0.0).amax(1)
    assert float(best.mean()) > 0.5 * float(certified(context, EPSILON).mean())  # it does search


def test_the_plain_search_from_our_start_ends_where_ours_does(context, monkeypatch):
    batch = context.batch
    drawn = normal_keys(
        context.seed, "adversarial", batch.content, draws=5, lengths=batch.lengths.tolist()
    )
    noise = torch.zeros(len(batch), 5, batch.ids.shape[1], dtype=torch.float64)
    for row, (keys, words) in enumerate(zip(torch.from_numpy(drawn), batch.mask, strict=True)):
        noise[row, :, words] = keys[:, : int(words.sum())]
    with monkeypatch.context() as patched:
        patched.setattr(torch, "randn", lambda *shape: noise.reshape(shape))
        tried, away, _ = searched(context, steps=60)
    wanted = tried[torch.arange(len(batch)), away.argmax(1)]
    found = AdversarialSearch(epsilon=1.0, steps=60)(context)[0]
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("gold", [[0, 1], [0, 0, 0, 1]], ids=["even", "rare class"])
def test_training_is_the_same_step_by_step(context, gold):
    theirs = copy.deepcopy(context.subject.network).requires_grad_(True)
    mine = copy.deepcopy(theirs)
    draw = torch.Generator().manual_seed(3)
    batches = [
        (
            subjects.batch(context.subject, LENGTHS, seed=number),
            torch.randint(0, 2, (len(LENGTHS),), generator=draw),
        )
        for number in range(STEPS)
    ]
    step, loss = SparseStep(mine, build_recurrent_optimiser(mine, Recipe())), loss_for(gold, 2)
    found = torch.stack(
        [step(one, lambda seen, told=told: loss(seen.logits, told)) for one, told in batches]
    )
    weight = torch.tensor(gold.count(0) / gold.count(1))
    wanted = torch.tensor(plain.training(theirs, batches, weight), dtype=torch.float64)
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=0)  # its loss is in float32
    before = dict(context.subject.network.named_parameters())
    own = dict(mine.named_parameters())
    for name, weights in theirs.named_parameters():
        if not name.startswith("encoder"):  # the plain loop trains a copy of it; the losses tell
            torch.testing.assert_close(own[name], weights, rtol=0, atol=1e-8)
            assert float((weights - before[name]).detach().abs().max()) > 0.005
