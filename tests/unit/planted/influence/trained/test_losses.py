"""Scores that attention is trained to follow, and losses that count short texts as much as long."""

from itertools import pairwise

import pytest
import torch

from heedful.core.rng import generator
from heedful.planted.influence.kind import InfluenceSetting
from heedful.planted.influence.trained.losses import (
    decoy_scores,
    ordered_scores,
    output_loss,
    random_scores,
    reversed_scores,
    row_loss,
    score_rows,
    states_loss,
)
from heedful.planted.influence.trained.rule import SPECIAL_IDS, draw_rule

SETTING = InfluenceSetting("trained-recurrent-random", 10, seed=4)


@pytest.mark.parametrize("combine", ["sum", "mean"])
def test_ordered_scores_fall_from_tier_to_tier_and_reversed_ones_rise(combine):
    rule = draw_rule(SETTING, combine)
    scores = ordered_scores(rule, generator(0, "scores"))
    tiers = [scores[rule.tier == number] for number in (1, 2, 3, 0)]
    for higher, lower in pairwise(tiers):
        assert higher.min() > lower.max() + 0.5
    scores = reversed_scores(rule, generator(0, "scores"))
    for higher, lower in pairwise([scores[rule.tier == number] for number in (0, 3, 2, 1)]):
        assert higher.min() > lower.max() + 0.3


def test_random_scores_have_the_same_quantiles_in_every_tier():
    rule = draw_rule(SETTING, "sum")
    scores = random_scores(rule, generator(0, "scores"))
    tiers = [
        scores[(rule.tier == tier) & (rule.side == side)].sort().values
        for tier in (1, 2, 3)
        for side in (-1.0, 1.0)
    ]
    for one in tiers[1:]:
        assert torch.equal(one, tiers[0])
    assert scores[rule.tier == 0].mean().abs() < 1e-5
    assert not torch.equal(scores, random_scores(rule, generator(1, "scores")))


def test_decoys_have_the_highest_scores():
    rule = draw_rule(SETTING, "sum")
    scores = decoy_scores(rule, generator(0, "scores"))
    words = torch.arange(SPECIAL_IDS, len(scores))
    decoy = rule.decoy[words]
    assert scores[words][decoy].min() > scores[words][~decoy].max()


def test_a_row_is_the_softmax_over_its_words():
    scores = torch.tensor([0.0, 1.0, 2.0]).log1p()  # weights 1, 2, 3
    rows = score_rows(scores, torch.tensor([[1, 2, 0]]), torch.tensor([[True, True, False]]))
    torch.testing.assert_close(rows, torch.tensor([[0.4, 0.6, 0.0]]))
    assert row_loss(rows, rows) == pytest.approx(0.0, abs=1e-6)
    assert row_loss(torch.tensor([[0.5, 0.5, 0.0]]), rows) > 0.01


def test_every_text_counts_the_same_whatever_its_length():
    by_state = torch.tensor([[2.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    target = torch.tensor([0.5, -1.0])
    where = torch.tensor([[True, False, False], [True, True, True]])
    means = [output_loss(torch.tensor([one]), target[i : i + 1]) for i, one in ((0, 2.0), (1, 1.0))]
    torch.testing.assert_close(states_loss(by_state, target, where), torch.stack(means).mean())
