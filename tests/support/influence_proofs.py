"""What the tests of planted families share: proofs at the smallest length, and wrong truths."""

from dataclasses import replace

import pytest

from heedful.planted.influence.kind import InfluenceCase, influence_kinds
from heedful.planted.influence.proof import prove, prove_attention, prove_sets

TEXTS, SEED = 6, 3


def kinds_of(family):
    """Every kind of a family, as a parameter."""
    names = [name for name, kind in influence_kinds().items() if kind.family == family]
    return pytest.mark.parametrize("kind", names)


def smallest_case(kind, seed=SEED):
    """The case of a kind at its smallest length."""
    return InfluenceCase(kind, min(influence_kinds()[kind].lengths), seed)


def failed_bounds(case, count=TEXTS):
    """The bounds of the case's proof that do not hold."""
    return [str(one) for one in prove(case, count) if not one.holds]


def failed_if_attention(case, *, used, ranks, count=TEXTS):
    """The bounds on attention that do not hold if the truth is said to be another."""
    name = case.kind
    kinds = dict(influence_kinds())
    wrong = replace(kinds[name], truth=replace(kinds[name].truth, used=used, ranks=ranks))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heedful.planted.influence.kind._KINDS", kinds | {name: wrong})
        bounds = prove_attention(case, case.known(count))
    return [one.what for one in bounds if not one.holds]


def failed_if_tiers_reversed(case, count=3):
    """The bounds on sets that do not hold if the last tier is said to be the first."""
    texts = [replace(one, tiers=one.tiers[::-1]) for one in case.known(count)]
    return [one.what for one in prove_sets(case, texts) if not one.holds]


def failed_if_first_tier_never_matters(case, count=2):
    """The bounds on sets that do not hold if the words of the first tier are said to be neutral."""
    texts = [replace(one, tiers=one.tiers[1:]) for one in case.known(count)]
    return [one.what for one in prove_sets(case, texts) if not one.holds]


def assert_wrong_truths_fail(case):
    """Every other truth about attention, and two about the order of words, fails its proof."""
    truth = case.truth
    assert failed_if_attention(case, used=not truth.used, ranks=truth.ranks)
    assert failed_if_attention(case, used=truth.used, ranks=not truth.ranks)
    order = failed_if_tiers_reversed(case)
    assert "sets that order words as their tiers" in order
    never = failed_if_first_tier_never_matters(case)
    assert "largest change by a word that never matters" in never
