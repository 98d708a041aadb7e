"""Kinds of redundancy: proved on one seed, and a wrong truth is not."""

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

KINDS = kinds_of("redundancy")


@pytest.mark.parametrize("name", KINDS)
def test_the_truth_holds(name):
    assert failures(shortest_case(name)) == []


@pytest.mark.parametrize("name", KINDS)
def test_the_negated_truth_fails(name):
    case = shortest_case(name)
    for wrong in wrong_truths(case.truth):
        assert failures_of_truth(case, wrong)


def test_words_that_suffice_cannot_be_said_never_to_matter():
    case = shortest_case("redundancy-each-suffices")
    assert failures_of_texts(case, say_none_matters_first)
    assert failures_of_texts(case, say_all_matter)


def test_backups_cannot_be_said_to_be_first():
    assert failures_of_texts(shortest_case("redundancy-backups"), reverse_tiers)
