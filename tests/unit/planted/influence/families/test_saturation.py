"""Kinds of saturation: proved on one seed, and a wrong truth is not."""

import numpy as np
import pytest

from heedful.planted.influence.kind import InfluenceCase
from heedful.planted.influence.proof import run_sets
from support.influence_cases import (
    failures,
    failures_of_texts,
    failures_of_truth,
    kinds_of,
    reverse_tiers,
    say_none_matters_first,
    shortest_case,
    wrong_truths,
)

KINDS = kinds_of("saturation")


@pytest.mark.parametrize("name", KINDS)
def test_the_truth_holds(name):
    assert failures(shortest_case(name)) == []


@pytest.mark.parametrize("name", KINDS)
def test_the_negated_truth_fails(name):
    case = shortest_case(name)
    for wrong in wrong_truths(case.truth):
        assert failures_of_truth(case, wrong)


def test_evidence_cannot_be_said_never_to_matter():
    case = shortest_case("saturation-in-order")
    assert failures_of_texts(case, say_none_matters_first)
    assert failures_of_texts(case, reverse_tiers)


@pytest.mark.parametrize("name", ["saturation-in-order", "saturation-three-classes"])
def test_a_single_removal_changes_little_where_texts_are_long(name):
    case = InfluenceCase(name, 40, 0)
    for known in case.known(4):
        words = known.text.split()
        every = np.ones((1 + len(words), len(words)), dtype=bool)
        np.fill_diagonal(every[1:], False)
        output = run_sets(case.subject, known, every)
        assert float((output[1:] - output[0]).abs().max()) < 0.02
        assert float(output[0].max()) > 0.99
