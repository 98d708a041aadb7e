"""The truth of trained cases, found again by other means: the paths of audits, scipy, loops."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import expit, logit

from heedful.planted import TRAINED_KINDS
from heedful.planted.texts import CUE_WORDS
from heedful.planted.trained.bounds import SAME_OUTPUT, WEIGHT_RATIO, measure_texts
from support.planted_cases import Seen, trained


class TriedAgain(Seen):
    """The texts of the trial, by the paths that audits take; τ by scipy."""

    @property
    def rows(self):
        return [{"text": text} for text in self.case.accepted_attempt.texts]


@cache
def again(kind):
    return TriedAgain(trained(kind))


def of(claim, truth):
    return pytest.mark.parametrize(
        "kind", [kind for kind in TRAINED_KINDS if TRAINED_KINDS[kind].truth[claim] is truth]
    )


@of("used", True)
def test_where_attention_is_used_some_attention_moves_every_text(kind):
    assert again(kind).farthest.min() >= 0.2


@of("used", False)
def test_where_attention_is_not_used_none_moves_any_text(kind):
    assert again(kind).farthest.max() <= SAME_OUTPUT
    assert again(kind).farthest.mean() <= SAME_OUTPUT / 2


@of("ranks", True)
def test_attention_orders_words_as_deletion_does(kind):
    seen, right, apart = again(kind), 0, 0
    assert seen.taus.mean() >= 0.6
    for (_, weights, _), moved in zip(seen.texts, seen.moved, strict=True):
        for one in range(len(weights)):
            for other in range(len(weights)):
                if weights[one] > WEIGHT_RATIO * weights[other]:
                    apart += 1
                    right += moved[one] > moved[other]
    assert apart > 0
    assert right / apart >= 0.99


@of("ranks", False)
def test_attention_does_not_order_words_as_deletion_does(kind):
    seen = again(kind)
    assert seen.taus.mean() <= 0.25
    first, ratios = [], []
    for (ids, weights, _), moved in zip(seen.texts, seen.moved, strict=True):
        (cue,) = np.flatnonzero(ids < CUE_WORDS)
        first.append(weights[cue] >= weights.max())
        ratios.append(moved[cue] / np.delete(moved, cue).max())
    assert np.mean(first) <= 0.25
    assert np.median(ratios) >= 2.0


@of("exclusive", True)
def test_every_attention_with_the_same_output_is_near(kind):
    case = trained(kind)
    for one in measure_texts(case.accepted_attempt.plant, case.accepted_attempt.texts[:8]):
        top, side = int(one.weights.argmax()), np.sign(one.z)
        least = logit(expit(abs(one.z)) - SAME_OUTPUT)
        number = len(one.by_state)
        least_on_top = linprog(
            np.eye(number)[top], -side * one.by_state[None], [-least], np.ones((1, number)), 1
        ).fun
        assert one.elsewhere == pytest.approx(1 - min(least_on_top, one.weights[top]))
        assert one.elsewhere <= 0.4


@of("exclusive", False)
def test_the_most_distant_attention_gives_the_same_output(kind):
    case = trained(kind)
    for one in measure_texts(case.accepted_attempt.plant, case.accepted_attempt.texts):
        assert 1 - one.weights.min() > 0.5
        assert abs(expit(one.by_state[one.weights.argmin()]) - expit(one.z)) <= SAME_OUTPUT


@pytest.mark.parametrize("kind", TRAINED_KINDS)
def test_the_trial_is_what_other_paths_find(kind):
    case, seen = trained(kind), again(kind)
    for row, one in enumerate(
        measure_texts(case.accepted_attempt.plant, case.accepted_attempt.texts[:12])
    ):
        ids, weights, z = seen.texts[row]
        np.testing.assert_allclose(one.weights, weights, rtol=1e-9)
        np.testing.assert_allclose(one.effects, seen.moved[row], rtol=1e-6, atol=1e-12)
        assert one.z == pytest.approx(z)
        assert one.max_change == pytest.approx(seen.farthest[row])
        if len(set(ids)) == len(ids):  # where no word stands twice there are no ties
            assert one.tau == pytest.approx(seen.taus[row])
