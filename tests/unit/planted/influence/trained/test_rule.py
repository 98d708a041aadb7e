"""The rules that networks learn: their truth by plain loops over all sets of words."""

from itertools import combinations
from math import exp

import numpy as np
import pytest
import torch

from heedful.core.rng import generator
from heedful.planted.influence.kind import InfluenceSetting
from heedful.planted.influence.proof import TRAINED_LINES
from heedful.planted.influence.trained.rule import SPECIAL_IDS, draw_rule, draw_sets

SETTING = InfluenceSetting("trained-recurrent-natural", 8, seed=3)
RULES = {
    "sum": draw_rule(SETTING, "sum"),
    "mean": draw_rule(SETTING, "mean"),
    "graded": draw_rule(SETTING, "mean", tiers=4),
    "redundant": draw_rule(SETTING, "mean", tiers=1, most=4),
}


def probability(rule, ids):
    return 1.0 / (1.0 + exp(-float(rule.log_odds(torch.tensor([ids], dtype=torch.long))[0])))


def changes_of(rule, ids):
    """For each position, what adding its word changes in each set of the other words."""
    changes = {}
    for size in range(len(ids)):
        for base in combinations(range(len(ids)), size):
            before = probability(rule, [ids[one] for one in base])
            for at in set(range(len(ids))) - set(base):
                after = probability(rule, [ids[one] for one in sorted({*base, at})])
                changes[base, at] = abs(after - before)
    return changes


@pytest.mark.parametrize("name", RULES)
def test_words_that_matter_are_those_of_the_tiers_and_in_their_order(name):
    rule = RULES[name]
    for index in range(12):
        known = rule.draw(generator(5, "text", index), 6)
        ids = [SPECIAL_IDS + int(word.removeprefix("w")) for word in known.text.split()]
        changes = changes_of(rule, ids)
        tier = {at: number for number, tier in enumerate(known.tiers) for at in tier}
        for at in range(len(ids)):
            most = max(value for (_, added), value in changes.items() if added == at)
            assert most > 1.15 * TRAINED_LINES.matters if at in tier else most < 1e-6
        for (base, at), value in changes.items():
            for other in set(tier) - set(base) - {at}:
                if at in tier and tier[at] > tier[other]:
                    assert value <= changes[base, other] + 0.02


def test_texts_have_both_sides_and_the_wanted_length():
    known = [RULES["sum"].draw(generator(6, "text", index), 20) for index in range(200)]
    lengths = [len(one.text.split()) for one in known]
    assert (min(lengths), max(lengths)) == (10, 30)
    assert np.std(lengths) > 4
    assert all(2 <= len(one.decisive) <= RULES["sum"].most for one in known)


def test_sets_are_parts_of_texts_between_special_tokens():
    rule = RULES["sum"]
    sets = draw_sets(rule, SETTING, 300, start=2, end=3)
    sizes = sets.mask.sum(-1)
    assert sizes.min() == 1
    assert torch.equal(sets.present.sum(-1), sizes + 2)
    assert (sets.ids[:, 0] == 2).all()
    matter = ((rule.tier[sets.ids] > 0) & sets.mask).sum(-1)
    assert (matter == 0).any()
    assert (matter == sizes).any()
    assert torch.equal(sets.log_odds, rule.log_odds(sets.ids))
