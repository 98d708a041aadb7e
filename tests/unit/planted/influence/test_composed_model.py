"""Hand-built kinds: what a word adds, how texts are drawn, and what all kinds must keep."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.planted.influence.composed_model import (
    CONTRAST,
    LEAST_WORDS,
    TWO_CLASSES,
    ReadAround,
    ReadOwn,
    ReadTextSum,
    TextPlan,
    compose_model,
    draw_known_text,
    draw_roles,
    text_drawer,
    weigh_at_random,
    weigh_in_order,
    weigh_in_reverse,
    weigh_neutral,
)
from heedful.planted.influence.families.encoders import ReadPrevious, ReadSpread
from heedful.planted.influence.kind import InfluenceCase, InfluenceSetting, influence_kinds, predict

SETTING = InfluenceSetting("for a test", 10, 4)
FAMILIES = ("encoders", "heads", "positions", "classes", "lengths", "questions")
ADDITIVE = (
    ReadOwn(),
    ReadTextSum(),
    ReadAround(),
    ReadAround(0.1),
    ReadSpread(0.1),
    ReadPrevious(),
)


def each_kind(*families):
    names = [name for name, kind in influence_kinds().items() if kind.family in families]
    return pytest.mark.parametrize("name", names)


@pytest.mark.parametrize("read", ADDITIVE, ids=repr)
@pytest.mark.parametrize("weigh", [weigh_in_order, weigh_in_reverse, weigh_neutral])
def test_logits_are_the_sum_of_evidence_wherever_attention_is(read, weigh):
    roles = draw_roles(SETTING, TWO_CLASSES, classes=3)
    model = compose_model(SETTING, roles, weigh(SETTING, roles), read)
    texts = [text_drawer(roles)(generator(0, "texts", index), 9).text for index in range(5)]
    batch = model.batch([model.encode(Example(i, text, -1)) for i, text in enumerate(texts)])
    logits = model.forward(batch).logits
    for row, text in enumerate(texts):
        wanted = np.zeros(3)
        for word in text.split():
            wanted += model.table[int(word[1:]), 1:].numpy()
        np.testing.assert_allclose(logits[row].numpy(), wanted, atol=1e-9)


@pytest.mark.parametrize("weigh", [weigh_in_order, weigh_in_reverse, weigh_neutral])
def test_words_add_their_amounts_and_neutral_ones_no_more_than_theirs(weigh):
    roles = draw_roles(SETTING, TWO_CLASSES, classes=3)
    evidence = compose_model(SETTING, roles, weigh(SETTING, roles), ReadOwn()).table[:, 1:].numpy()
    np.testing.assert_array_equal(evidence[~roles.neutral], roles.evidence[~roles.neutral])
    assert (np.abs(evidence) <= np.abs(roles.evidence)).all()
    assert (evidence[roles.neutral] != 0).any()


@pytest.mark.parametrize("read", ADDITIVE, ids=repr)
def test_attention_is_a_distribution_and_its_decoder_gives_the_logits(read):
    roles = draw_roles(SETTING, TWO_CLASSES)
    model = compose_model(SETTING, roles, weigh_at_random(SETTING, roles), read)
    examples = [Example(0, "w1 w2 w3 w4 w5", -1), Example(1, "w9 w9", -1)]
    context = BatchContext(model, model.batch([model.encode(one) for one in examples]))
    assert context.parity < 1e-9
    torch.testing.assert_close(context.forward.attention.sum(-1), torch.ones(2).double())
    assert bool((context.forward.attention[1, 2:] == 0).all())


def test_contrast_keeps_its_inequality():
    """A word of the last tier never has more influence than one of an earlier tier."""
    weakest_of_others, largest_of_last = CONTRAST[-2][0], CONTRAST[-1][1]
    assert np.exp(-weakest_of_others) + np.exp(largest_of_last) <= 2
    z = np.linspace(-20, 20, 4001)
    change = [
        np.abs(_sigmoid(z + by) - _sigmoid(z)) for by in (weakest_of_others, -largest_of_last)
    ]
    assert (change[0] >= change[1] - 1e-12).all()


def test_tiers_follow_amounts_and_texts_keep_their_plan():
    roles = draw_roles(SETTING, TWO_CLASSES)
    plan = TextPlan(since=0.25, until=0.75, apart=True)
    for index in range(50):
        known = draw_known_text(roles, plan, generator(1, "plan", index), 12)
        words = [int(word[1:]) for word in known.text.split()]
        places = sorted(known.decisive)
        assert len(words) >= LEAST_WORDS
        assert 0.25 * len(words) <= places[0]
        assert places[-1] < 0.75 * len(words)
        assert (np.diff(places) > 1).all()
        amounts = [[roles.amounts[words[at]] for at in tier] for tier in known.tiers]
        assert all(min(a) > max(b) for a, b in pairwise(amounts))
        others = [roles.amounts[word] for at, word in enumerate(words) if at not in known.decisive]
        assert np.abs(others).max() <= 0.04


def test_weights_in_order_rise_with_the_tier_in_every_text():
    for seed in range(20):
        setting = InfluenceSetting("order", 10, seed)
        roles = draw_roles(setting, TWO_CLASSES)
        weights = weigh_in_order(setting, roles)
        by_tier = [weights[roles.tiers == tier] for tier in range(len(TWO_CLASSES) + 1)]
        assert all(a.min() > b.max() for a, b in pairwise(by_tier))


@each_kind(*FAMILIES)
def test_texts_of_every_kind_are_distinct_of_all_classes_and_long_enough(name):
    case = InfluenceCase(name, min(influence_kinds()[name].lengths), 0)
    known = case.known(60)
    lengths = np.array([len(one.text.split()) for one in known])
    assert len({(one.text, one.question) for one in known}) == len(known)
    assert (lengths >= LEAST_WORDS).all()
    assert len(set(lengths.tolist())) > 2
    counts = np.bincount(predict(case.subject, known), minlength=len(case.subject.labels))
    assert counts.max() <= 0.8 * len(known)
    assert all(one.decisive for one in known)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_models_that_attention_explains_and_others(family):
    truths = [kind.truth for kind in influence_kinds().values() if kind.family == family]
    explained = [truth.used and truth.ranks for truth in truths]
    assert any(explained)
    assert not all(explained)
    assert len(truths) >= 6


def _sigmoid(z):
    return 1 / (1 + np.exp(-z))
