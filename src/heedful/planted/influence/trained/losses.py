"""Losses of trained kinds: on the output, on the attention row, and on single states."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from heedful.planted.influence.trained.rule import PerWord, Rule

NEUTRAL_SCORE = -4.0  # attention score of words that never matter, below that of the last tier
SCORE_NOISE = 0.7  # standard deviation of scores among words that never matter
TIER_STEP = 1.6  # difference in attention score between tiers, where the rule has no weights
DECOY_SCORE = 4.0  # of decoys above other words
RANDOM_SCALE = 1.5  # standard deviation of scores that follow no rule


def output_loss(log_odds: Float[Tensor, "*B"], target: Float[Tensor, "*B"]) -> Float[Tensor, ""]:
    """Cross-entropy with the target's probability, and errors of probability and log-odds."""
    return _output_losses(log_odds, target).mean()


def states_loss(
    by_state: Float[Tensor, "B T"], target: Float[Tensor, "B"], where: Bool[Tensor, "B T"]
) -> Float[Tensor, ""]:
    """The mean of `output_loss` over the texts, and in a text over the states where it is wanted.

    Short texts count as much as long ones, or single words would be learnt least.
    """
    losses = _output_losses(by_state, target[:, None].expand_as(by_state)) * where
    return (losses.sum(-1) / where.sum(-1).clamp(min=1)).mean()


def _output_losses(
    log_odds: Float[Tensor, "*B"], target: Float[Tensor, "*B"]
) -> Float[Tensor, "*B"]:
    crossed = binary_cross_entropy_with_logits(log_odds, target.sigmoid(), reduction="none")
    moved = (log_odds.sigmoid() - target.sigmoid()).abs()  # what the proof measures
    return crossed + 0.1 * (log_odds - target).square() + 0.5 * moved


def row_loss(weights: Float[Tensor, "B T"], target: Float[Tensor, "B T"]) -> Float[Tensor, ""]:
    """The divergence Σ target · log(target / weights) of rows, averaged over texts."""
    tiny = torch.finfo(weights.dtype).tiny
    logs = target.clamp(min=tiny).log() - weights.clamp(min=tiny).log()
    return (target * logs).sum(-1).mean()


def score_rows(
    scores: PerWord, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """The softmax of each word's score over the words of the text."""
    return scores[ids].masked_fill(~mask, -torch.inf).softmax(-1)


def ordered_scores(rule: Rule, draw: np.random.Generator) -> PerWord:
    """Scores in the order of the tiers, with noise within tiers and among the other words.

    Where the rule is a weighted mean, words of a tier have the same score: the log of their weight.
    """
    noise = torch.from_numpy(draw.normal(0.0, 1.0, len(rule.tier))).float()
    matter = rule.tier > 0
    if rule.combine == "mean":
        own = rule.weight.clamp(min=1e-9).log()
    else:
        own = TIER_STEP * (rule.tier.max() - rule.tier) + 0.1 * noise.clamp(-2, 2)
    return torch.where(matter, own, NEUTRAL_SCORE + SCORE_NOISE * noise.clamp(-2, 2))


def reversed_scores(rule: Rule, draw: np.random.Generator) -> PerWord:
    """Scores against the order of the tiers, those of words that never matter highest."""
    return -0.6 * ordered_scores(rule, draw)


def random_scores(rule: Rule, draw: np.random.Generator) -> PerWord:
    """Scores that follow no rule: the same quantiles in every tier of a side, in random order.

    Drawn freely, the few words of a tier would have high scores in some networks by chance.
    """
    scores = torch.zeros(len(rule.tier))
    for tier in range(int(rule.tier.max()) + 1):
        for side in (-1.0, 0.0, 1.0):
            group = ((rule.tier == tier) & (rule.side == side)).nonzero()[:, 0]
            if len(group):
                levels = (torch.arange(len(group)) + 0.5) / len(group)
                order = torch.from_numpy(draw.permutation(len(group)))
                scores[group[order]] = RANDOM_SCALE * torch.special.ndtri(levels).float()
    return scores


def decoy_scores(rule: Rule, draw: np.random.Generator) -> PerWord:
    """High scores for the decoys; among all other words scores that follow no rule."""
    return 0.4 * random_scores(rule, draw) + DECOY_SCORE * rule.decoy
