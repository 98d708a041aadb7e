"""Kinds that are held out: proved on one seed, and a wrong truth is not."""

import pytest

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

KINDS = kinds_of("held-out")


@pytest.mark.parametrize("name", KINDS)
def test_the_truth_holds(name):
    assert failures(shortest_case(name)) == []


@pytest.mark.parametrize("name", KINDS)
def test_the_negated_truth_fails(name):
    case = shortest_case(name)
    for wrong in wrong_truths(case.truth):
        assert failures_of_truth(case, wrong)


@pytest.mark.parametrize("name", ["held-out-veto", "held-out-irony", "held-out-weak-first"])
def test_weaker_words_cannot_be_said_to_be_stronger(name):
    assert failures_of_texts(shortest_case(name), reverse_tiers)


@pytest.mark.parametrize("name", ["held-out-both-sides", "held-out-other-aspects"])
def test_a_tail_cannot_be_said_to_matter_nor_evidence_not_to(name):
    case = shortest_case(name)
    assert failures_of_texts(case, say_all_matter)
    assert failures_of_texts(case, say_none_matters_first)
