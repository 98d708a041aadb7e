"""Kinds of mixtures: proved on one seed, and a wrong truth is not."""

import pytest
import torch

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

KINDS = kinds_of("mixtures")


@pytest.mark.parametrize("name", KINDS)
def test_the_truth_holds(name):
    assert failures(shortest_case(name)) == []


@pytest.mark.parametrize("name", KINDS)
def test_the_negated_truth_fails(name):
    case = shortest_case(name)
    for wrong in wrong_truths(case.truth):
        assert failures_of_truth(case, wrong)


@pytest.mark.parametrize("name", KINDS)
def test_each_part_holds_a_fair_share_of_the_texts(name):
    case = shortest_case(name, seed=1)
    mixture = case.truth.mixture
    parts = [one.part for one in case.known(200)]
    assert set(parts) == {mixture.holds, mixture.fails}
    assert 0.3 <= parts.count(mixture.holds) / len(parts) <= 0.7


@pytest.mark.parametrize("name", ["mixtures-class-ranks", "mixtures-class-used"])
def test_parts_by_class_are_predicted_classes(name):
    case = shortest_case(name)
    labels = [row["label"] for row in case.texts(30)]
    assert labels == [one.part for one in case.known(30)]


@pytest.mark.parametrize("name", ["mixtures-confidence-ranks", "mixtures-confidence-used"])
def test_parts_by_confidence_do_not_overlap(name):
    case = shortest_case(name)
    known = case.known(30)
    encoded = [case.subject.encode(one.example(index)) for index, one in enumerate(known)]
    confidence = case.subject.forward(case.subject.batch(encoded)).probabilities.amax(-1)
    sure = torch.tensor([one.part == "confident" for one in known])
    assert float(confidence[sure].min()) > 0.95
    assert float(confidence[~sure].max()) < 0.9


def test_a_mixture_cannot_be_said_to_have_other_tiers():
    assert failures_of_texts(shortest_case("mixtures-topic-ranks"), reverse_tiers)
    assert failures_of_texts(shortest_case("mixtures-class-used"), say_none_matters_first)
    assert failures_of_texts(shortest_case("mixtures-length-used"), say_all_matter)
