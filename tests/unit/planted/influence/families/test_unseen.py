"""Kinds that are unseen: proved on one seed, and a wrong truth is not."""

import pytest

from heedful.planted.influence.kind import InfluenceCase, influence_kinds
from heedful.planted.influence.proof import measure_attention
from support.influence_cases import (
    failures,
    failures_of_texts,
    failures_of_truth,
    kinds_of,
    reverse_tiers,
    say_all_matter,
    say_none_matters_first,
    shortest_case,
    wrong_truths,
)

KINDS = kinds_of("unseen")


@pytest.mark.parametrize("name", KINDS)
def test_the_truth_holds(name):
    assert failures(shortest_case(name)) == []


@pytest.mark.parametrize("name", KINDS)
def test_the_negated_truth_fails(name):
    case = shortest_case(name)
    for wrong in wrong_truths(case.truth):
        assert failures_of_truth(case, wrong)


@pytest.mark.parametrize("name", ["unseen-right-topic", "unseen-stars", "unseen-heavy-tailed"])
def test_weaker_words_cannot_be_said_to_be_stronger(name):
    assert failures_of_texts(shortest_case(name), reverse_tiers)


@pytest.mark.parametrize("name", ["unseen-spare-keys", "unseen-wrong-topic", "unseen-collectors"])
def test_others_cannot_be_said_to_matter_nor_evidence_not_to(name):
    case = shortest_case(name)
    assert failures_of_texts(case, say_all_matter)
    assert failures_of_texts(case, say_none_matters_first)


@pytest.mark.parametrize("name", [name for name in KINDS if influence_kinds()[name].truth.ranks])
def test_where_attention_ranks_it_does_so_in_every_text(name):
    case = shortest_case(name, seed=1)
    for known in case.known(12):
        in_order, _, _ = measure_attention(case.subject, known, seed=1)
        assert in_order >= 0.9


def test_texts_are_of_very_different_lengths():
    case = InfluenceCase("unseen-lengths-apart", 60, 0)
    lengths = [len(one.text.split()) for one in case.known(60)]
    assert min(lengths) < 8
    assert max(lengths) > 200
