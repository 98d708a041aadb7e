"""The truth of every planted kind, proved in every cell: by closed form or by brute force.

Used: what any attention can move, and what shuffling does move. Ranks: the order of attention
beside the order of what deleting each word moves. Exclusive: how far away an attention with the
same output lies.
"""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from scipy.special import expit, logit
from scipy.stats import kendalltau

from heedful.planted import DIFFICULTIES, KINDS, Case
from support.planted_cases import cells_of, seen

SAME = 0.05  # outputs that lie no farther apart count as the same


def cells(claim, truth):
    named = [kind for kind in KINDS if Case(kind, "easy", 10, 0).truth[claim] is truth]
    return cells_of(named)


def where(*named):
    return cells_of(named)


def pick(difficulty, easy, middle, hard):
    return dict(zip(DIFFICULTIES, (easy, middle, hard), strict=True))[difficulty]


def columns(case):
    return case.case.subject.table.numpy().T


def numbers(case):
    """What a compiled model's embeddings hold of each word: two scores, two sayings, by turns."""
    model = case.case.subject.model
    return model.get_input_embeddings().weight[4:].double().numpy()[:, 2:10:2].T


def says_of(case):
    compiled = case.case.kind.startswith("compiled")
    return numbers(case)[1] if compiled else columns(case)[1]


@cells("used", True)
def test_where_attention_is_used_shuffling_it_moves_the_output(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    assert np.median(case.shuffled()) > SAME
    assert np.median(case.farthest) > 4 * SAME


@cells("used", False)
def test_where_attention_is_not_used_no_attention_moves_the_output(kind, difficulty, length):
    most = {
        "leaky": pick(difficulty, 1e-12, 0.01, 0.02),
        "routed": pick(difficulty, 0.005, 0.01, 0.02),
        "compiled-around": pick(difficulty, 0.005, 0.01, 0.02),
        "compiled-early": pick(difficulty, 0.005, 0.01, 0.02),
    }
    assert seen(kind, difficulty, length).farthest.max() <= most.get(kind, 1e-12)


@cells("exclusive", False)
def test_a_distant_attention_gives_the_same_output(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    attention = case.context.forward.attention
    inside = attention.masked_fill(~case.context.batch.mask, 2.0)
    other = torch.nn.functional.one_hot(inside.argmin(-1), attention.shape[1]).double()
    assert (0.5 * (other - attention).abs().sum(-1)).min() >= 0.8
    own = case.context.forward.probabilities[:, 1]
    assert (case.output(other) - own).abs().max() <= 0.02


@cells("exclusive", True)
def test_every_attention_with_the_same_output_is_near(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    says = columns(case)[1]
    for row, (ids, weights, z) in enumerate(case.texts):
        side, cue = np.sign(z), int(weights.argmax())
        said = side * says[ids]
        least = logit(expit(abs(z)) - SAME)
        rest = np.delete(said, cue).max()
        kept = (least - rest) / (said[cue] - rest)
        assert kept >= 0.64
        if row < 2:  # no weights that say as much give the cue less
            found = linprog(np.eye(len(ids))[cue], -said[None], [-least], np.ones((1, len(ids))), 1)
            assert found.fun == pytest.approx(kept)
        assert 1 - min(kept, weights[cue]) <= 0.36  # the farthest any of them can lie (TVD)


@cells("ranks", True)
def test_attention_orders_words_as_deletion_does(kind, difficulty, length):
    case, decided = seen(kind, difficulty, length), []
    for (ids, weights, z), moved in zip(case.texts, case.moved, strict=True):
        above = surely_above(case, ids, weights, z)
        assert (moved[:, None] > moved)[above].all()
        decided.append(2 * above.sum() / (len(ids) * (len(ids) - 1)))
    assert np.mean(decided) >= pick(difficulty, 0.85, 0.7, 0.55)
    assert case.taus.mean() > 0.8


def surely_above(case, ids, weights, z):
    """Which words i are so far above which j in attention that deletion must order them alike."""
    difficulty = case.case.difficulty
    if case.case.kind.endswith("-graded"):
        x = np.abs(says_of(case)[ids])
        return x[:, None] > x + abs(z) + 1e-6
    if case.case.kind == "inert-proportional":
        factor = np.exp(2 * pick(difficulty, 0.0, 0.15, 0.3))
    else:  # the logit of compiled-copy is 4·tanh(s/4)
        said = abs(z) if case.case.kind == "honest-peaked" else 4 * np.arctanh(abs(z) / 4)
        noise = pick(difficulty, 0.0, 0.15, 0.3)
        factor = (said + noise) / (said - noise)
        assert factor <= 1.42
    return weights[:, None] > weights * factor * (1 + 1e-6)


@where("honest-peaked", "compiled-copy")
def test_the_decisive_word_stands_out_in_attention_and_deletion(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    for (ids, weights, _), moved in zip(case.texts, case.moved, strict=True):
        (cue,) = np.flatnonzero(ids < case.case.plant.cues)
        assert weights[cue] >= 8 / 9
        assert moved[cue] > 1.4
        assert np.delete(moved, cue).max() < 0.3


@cells("ranks", False)
def test_attention_does_not_order_words_as_deletion_does(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    if kind == "frozen":
        assert np.isnan(case.taus).all()  # equal weights order nothing
    else:
        assert case.taus.mean() < 0.25


@where("honest-peaked", "honest-graded", "anti", "redundant", "saturated")
def test_deletion_has_its_closed_form_where_states_are_word_wise(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    says = columns(case)[1]
    for (ids, weights, z), moved in zip(case.texts, case.moved, strict=True):
        assert z == pytest.approx(weights @ says[ids])
        others = np.array([np.delete(weights, t).sum() for t in range(len(ids))])
        want = weights / others * np.abs(says[ids] - z)
        np.testing.assert_allclose(moved, want, rtol=1e-7, atol=1e-9)


@where("anti")
def test_anti_attention_is_in_the_reverse_order(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    scores, says = columns(case)
    assert kendalltau(scores, np.abs(says)).statistic == pytest.approx(-1.0)
    assert case.taus.mean() < -0.5


@where("hidden")
def test_the_hidden_word_has_the_least_attention_and_the_largest_effect(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    for (ids, weights, _), moved in zip(case.texts, case.moved, strict=True):
        (cue,) = np.flatnonzero(ids < case.case.plant.cues)
        beside = [t for t in (cue - 1, cue + 1) if 0 <= t < len(ids)]
        apart = np.exp(pick(difficulty, 3.0, 1.5, 0.5))
        assert weights[cue] * apart <= np.delete(weights, cue).min() * (1 + 1e-9)
        assert weights[beside].sum() >= 10 / 11
        assert moved[cue] > 1.8
        assert np.delete(moved, cue).max() < 0.45


@where("frozen")
def test_frozen_weights_are_equal_and_effects_are_not(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    for (ids, weights, _), moved in zip(case.texts, case.moved, strict=True):
        (cue,) = np.flatnonzero(ids < case.case.plant.cues)
        np.testing.assert_allclose(weights, 1 / len(ids))
        assert moved[cue] >= 4 / 3 * np.delete(moved, cue).max()


@where("inert-random", "inert-proportional", "routed", "leaky", "running")
def test_deletion_takes_away_what_a_word_adds(kind, difficulty, length):
    """Up to what attention still feeds; in `running` for the words before those attended to."""
    case = seen(kind, difficulty, length)
    adds = columns(case)[2 if kind == "routed" else 1]
    for (ids, weights, z), moved in zip(case.texts, case.moved, strict=True):
        hands_on = weights / np.array([np.delete(weights, t).sum() for t in range(len(ids))])
        slack = np.full(len(ids), 1e-9)
        if kind == "routed":
            slack += 2 * pick(difficulty, 0.01, 0.02, 0.04) * hands_on
        if kind == "leaky":
            share = pick(difficulty, 0.0, 0.02, 0.04)
            slack += share * (np.abs(adds[ids]) + 2 * (abs(z) + np.abs(adds[ids])) * hands_on) * 1.1
        if kind == "running":
            slack += np.where(weights.cumsum() < 1e-12, 0.0, np.inf)
        assert (np.abs(moved - np.abs(adds[ids])) <= slack).all()


@where("inert-random", "routed", "leaky")
def test_scores_know_nothing_of_what_words_add(kind, difficulty, length):
    table = columns(seen(kind, difficulty, length))
    adds = table[2 if kind == "routed" else 1]
    # 400 independent pairs have a τ of 0 ± 0.033
    assert abs(kendalltau(table[0], np.abs(adds)).statistic) < 0.13


@where("compiled-around", "compiled-early")
def test_the_last_layer_of_a_compiled_model_does_not_decide(kind, difficulty, length):
    """The output is what the first layer gathers: found again from the embeddings, by hand."""
    case = seen(kind, difficulty, length)
    score, says, last, fed = numbers(case)
    for ids, weights, z in case.texts:
        first = np.exp(score[ids]) / np.exp(score[ids]).sum()
        second = np.exp(last[ids]) / np.exp(last[ids]).sum()
        np.testing.assert_allclose(weights, second, rtol=1e-6)
        want = first @ says[ids] + second @ fed[ids]
        want = want if kind == "compiled-around" else 4 * np.tanh(want / 4)
        assert z == pytest.approx(want, abs=1e-6)
    assert abs(kendalltau(last, np.abs(says)).statistic) < 0.13


@where("compiled-copy", "compiled-graded")
def test_a_compiled_copy_says_what_its_head_gathers(kind, difficulty, length):
    case = seen(kind, difficulty, length)
    score, says, _, _ = numbers(case)
    for ids, weights, z in case.texts:
        own = np.exp(score[ids]) / np.exp(score[ids]).sum()
        np.testing.assert_allclose(weights, own, rtol=1e-6)
        want = own @ says[ids]
        want = want if kind == "compiled-graded" else 4 * np.tanh(want / 4)
        assert z == pytest.approx(want, abs=1e-6)
