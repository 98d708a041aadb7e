"""Adversaries by linear programs: feasible, never beyond what exists, and nearly as far."""

import math
from functools import cache

import pytest
import torch

from heedful.checks.attention.adversarial.check import Adversarial
from heedful.checks.interventions.certified_optimum import CertifiedAdversary, jsd_bound
from heedful.checks.interventions.lp_ascent import Ascent
from heedful.core.errors import ConfigError, NotApplicable
from heedful.models.batch_context import BatchContext
from heedful.numerics.tensor.distributions import jsd, tvd
from support import measured_values, question_subjects, subjects

EPSILON = 0.05
CASES = [
    (kind, length, seed) for kind in ("query", "linear") for length in (3, 4) for seed in (0, 3, 5)
]


@cache
def sitting_of(kind, length, seed):
    """Six texts of some words before a subject with a query, or one with many classes."""
    if kind == "query":
        encoder, attention = ("bilstm", "average")[seed % 2], ("additive", "dot")[seed // 2 % 2]
        subject = question_subjects.subject(encoder, attention, classes=2 + seed % 4, seed=seed)
        return question_subjects.context(subject, (length,) * 6)
    subject = subjects.subject(classes=3 + seed % 4, seed=seed)
    return BatchContext(subject, subjects.batch(subject, [length] * 6, seed=seed))


def every_attention(length, steps):
    """All weights that are multiples of 1/steps."""

    def parts(left, places):
        if places == 1:
            yield (left,)
            return
        for one in range(left + 1):
            yield from ((one, *rest) for rest in parts(left - one, places - 1))

    return torch.tensor(list(parts(steps, length)), dtype=torch.float64) / steps


@cache
def farthest(kind, length, seed, within):
    """The largest JSD of any attention on a fine grid whose output stays within some TVD."""
    context = sitting_of(kind, length, seed)
    grid = every_attention(length, 120 if length == 3 else 44)
    rows = torch.zeros(len(grid), 6, length + 2, dtype=torch.float64)
    rows[:, :, 1:-1] = grid[:, None]
    near = tvd(context.decode(rows).softmax(-1), context.forward.probabilities) <= within
    return jsd(rows, context.forward.attention).masked_fill(~near, 0.0).amax(0)


@pytest.mark.parametrize("case", CASES)
def test_what_is_found_exists_and_is_feasible(case):
    context = sitting_of(*case)
    found = context.cached(Ascent())[0]
    assert not found[~context.batch.mask].any()
    torch.testing.assert_close(found.sum(-1), torch.ones(6, dtype=torch.float64))
    assert bool((found >= 0).all())
    # logits again, by hand of the subject's own decoder, weight by weight in float64
    output = context.subject.decoder(context.batch, context.forward)(found).softmax(-1)
    assert float(tvd(output, context.forward.probabilities).max()) <= EPSILON
    away = jsd(found, context.forward.attention)
    assert bool((away <= jsd_bound(context, epsilon=EPSILON) + 1e-9).all())
    # between points of the grid it may go a little farther than the grid, never beyond a wider ball
    assert bool((away <= farthest(*case, within=2 * EPSILON) + 0.02).all())


def test_it_goes_nearly_as_far_as_any_attention_on_a_fine_grid():
    gaps = [
        farthest(*case, within=EPSILON)
        - jsd(sitting_of(*case).cached(Ascent())[0], sitting_of(*case).forward.attention)
        for case in CASES
    ]
    gaps = torch.cat(gaps)
    assert float((gaps < 0.02).double().mean()) > 0.97
    assert float(gaps.max()) < 0.05


def test_two_classes_and_a_linear_decoder_reach_the_exact_optimum():
    subject = subjects.subject(seed=2)
    context = BatchContext(subject, subjects.batch(subject, [3, 5, 9, 14], seed=2))
    exact = jsd(CertifiedAdversary()(context)[0], context.forward.attention)
    found = jsd(Ascent()(context)[0], context.forward.attention)
    assert bool((found <= exact + 1e-9).all())
    torch.testing.assert_close(found, exact, rtol=0, atol=0.02)


def test_long_texts_and_classes_that_are_not_allowed():
    context = question_subjects.context(
        question_subjects.subject(seed=1), (40, 1, 25), [(0, 2), None, (1,)]
    )
    found = Ascent()(context)[0]
    away, own = jsd(found, context.forward.attention), context.forward.attention
    assert float(away[1]) == 0.0  # one word: nothing else to attend to
    least = own[2][context.batch.mask[2]].min()  # one class: every attention gives the same output
    assert float(away[2]) == pytest.approx(point(float(least)), abs=1e-9)
    assert float(away[0]) > 0


def point(q):
    """JSD between weights and all weight on a word that has q of it, by hand."""
    return 0.5 * (math.log(2 / (1 + q)) + q * math.log(2 * q / (1 + q)) + (1 - q) * math.log(2))


def test_company_never_matters():
    subject = question_subjects.subject(seed=4)
    context = question_subjects.context(subject, (7, 12, 5))
    together = jsd(Ascent()(context)[0], context.forward.attention)
    for row, one in enumerate(context.texts):
        alone = BatchContext(subject, subject.batch([one]))
        found = jsd(Ascent()(alone)[0], alone.forward.attention)
        assert float(found[0]) == pytest.approx(float(together[row]), abs=1e-6)


def test_the_check_tells_it_where_nothing_exact_is_known():
    context = question_subjects.context(question_subjects.subject(seed=5), (6, 8))
    found = Adversarial(steps=20)(context)
    told = measured_values.columns(found)
    assert bool((told["ascent_jsd"] <= told["bound_jsd"] + 1e-9).all())
    best = torch.maximum(*(torch.tensor(told[one]) for one in ("ascent_jsd", "epsilon_max_jsd")))
    torch.testing.assert_close(torch.tensor(told["of_bound"] * told["bound_jsd"]), best)
    away = jsd(Adversarial(steps=20).word_scores(context)["adversarial"], context.forward.attention)
    torch.testing.assert_close(away, best)
    assert "No exact adversary" in measured_values.missing(found)["certified_jsd"]
    two = subjects.subject()
    exact = Adversarial(steps=20)(BatchContext(two, subjects.batch(two, [4])))
    assert set(measured_values.missing(exact)) == {"ascent_jsd"}


def test_wrong_settings_and_many_rows_are_refused():
    with pytest.raises(ConfigError, match="rounds must be a whole number of at least 1, not 0"):
        Ascent(rounds=0)
    with pytest.raises(ConfigError, match="lightest must be a whole number of at least 2, not 1"):
        Ascent(lightest=1)
    with pytest.raises(ConfigError, match="epsilon must be a number above 0"):
        Ascent(epsilon=0.0)
    context = question_subjects.context(question_subjects.subject(), (3,))
    many = type(context.forward)(
        context.forward.logits,
        context.forward.attention,
        context.forward.states,
        context.forward.attention[:, None],
    )
    object.__setattr__(context, "__dict__", {**context.__dict__, "forward": many})
    with pytest.raises(NotApplicable, match="many rows of weights"):
        Ascent()(context)
