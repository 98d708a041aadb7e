"""Kinds with a question for each text: for each question, one of the kinds without questions.

f(z) = S·tanh(z/S) grows with z. Texts are drawn so that |z| ≤ 0.35·S, where its slope is between
0.88 and 1; without one of their words it is 0.85 or more (`MIN_SLOPE`). So the bounds on z of the
kind without questions hold for the log-odds up to that factor. Answers to other questions have a
total probability of ½ % at most.
"""

from collections.abc import Callable
from dataclasses import replace
from math import tanh

import torch

from heedful.planted.case import Setting, register_kind
from heedful.planted.closed_form.classifier_kinds import (
    anti,
    draw_attention_effect,
    hidden,
    honest_graded,
    honest_peaked,
    inert_proportional,
    inert_random,
    leaky,
    running,
)
from heedful.planted.closed_form.subjects import (
    ComposedSubject,
    QuestionSubject,
    compose_subject,
    read_per_word,
)
from heedful.planted.texts import QUESTIONS, TONES, PlantedSubject

TANH_SCALE = 20.0  # S for texts of 20 words; it grows with the length, as sums do
MAX_SCALED_LOG_ODDS = 0.35  # the largest |z|/S of a text
MIN_SLOPE = 0.85  # the smallest slope of f


@register_kind("asked-peaked", used=True, ranks=True, exclusive=True)
def asked_peaked(setting: Setting) -> PlantedSubject:
    """Honest-peaked for each question; every question has other decisive words.

    Used: without weight on the question's cue |z| is at most 0.3, with it at least 1.74.
    Ranks: as honest-peaked, with weights 1.42/0.85 apart or more.
    Exclusive: an attention within 0.05 of the output must give the cue 0.62 of the weight: no such
    attention is farther away than 0.38 (TVD).
    """
    return _per_question(setting, honest_peaked)


@register_kind("asked-graded", used=True, ranks=True, exclusive=None)
def asked_graded(setting: Setting) -> PlantedSubject:
    """Honest-graded for each question: words contribute ±x, attention is in proportion to x.

    Used: z is between −4·g and 4·g, depending on attention.
    Ranks: words whose x differ by more than |z|, and whose deletions differ by more than the slope
    of f, are ordered as their weights are.
    """
    return _per_question(setting, honest_graded)


@register_kind("asked-hidden", used=True, ranks=False, exclusive=None)
def asked_hidden(setting: Setting) -> PlantedSubject:
    """Hidden for each question: the neighbours hold the decisive word, which has no weight.

    Used: states other than the neighbours' hold almost nothing.
    Ranks: deleting the cue moves z most, and its weight is the lowest of all.
    """
    return _per_question(setting, hidden)


@register_kind("asked-anti", used=True, ranks=False, exclusive=None)
def asked_anti(setting: Setting) -> PlantedSubject:
    """Anti for each question: weights in proportion to 1/x, log-odds to ±x².

    Used: z is between −k and k, depending on attention.
    Ranks: words are in the reverse order of their weights.
    """
    return _per_question(setting, anti, wider=2.0)


@register_kind("asked-running", used=True, ranks=False, exclusive=None)
def asked_running(setting: Setting) -> PlantedSubject:
    """Running for each question: states hold the sum up to their word, attention is on the end.

    Used: an earlier state holds another sum.
    Ranks: deletion moves z by what a word adds, at any position; weights follow positions.
    """
    return _per_question(setting, running)


@register_kind("asked-inert-random", used=False, ranks=False, exclusive=False)
def asked_inert_random(setting: Setting) -> PlantedSubject:
    """Inert-random for each question: every state holds the same sum; scores are unrelated.

    Used, exclusive: the output is the same under any attention, exactly.
    Ranks: deletion moves z by what a word adds, of which scores are independent.
    """
    return _per_question(setting, inert_random)


@register_kind("asked-inert-proportional", used=False, ranks=True, exclusive=False)
def asked_inert_proportional(setting: Setting) -> PlantedSubject:
    """Inert-proportional for each question: weights are what a word adds, times a noise.

    Used, exclusive: the output is the same under any attention, exactly.
    Ranks: as inert-proportional, with weights exp(2ν)/0.85 apart or more.
    """
    return _per_question(setting, inert_proportional, wider=2.0)


@register_kind("asked-leaky", used=False, ranks=False, exclusive=False)
def asked_leaky(setting: Setting) -> PlantedSubject:
    """Leaky for each question: every state already holds the answer.

    Used: no attention moves the output by 0.02. Exclusive: all attentions give that output.
    Ranks: deletion moves z by what a word adds, of which scores are independent.
    """
    return _per_question(setting, leaky)


@register_kind("asked-alone", used=False, ranks=None, exclusive=False)
def asked_alone(setting: Setting) -> PlantedSubject:
    """The question's tone alone decides, as a hypothesis often does; attention adds a noise.

    Tones contribute ±0.5 to ±2, attention |s| ≤ 0.01, 0.02 or 0.04 by difficulty.
    Used: two attentions differ by 2·0.04 in z, so by 0.02 in probability at most. Exclusive: all
    attentions give that output.
    Ranks: reported, not scored; deletion has almost no effect, and what it has follows the weights.
    """
    planted = _per_question(setting, _noise)
    size = torch.linspace(0.5, 2.0, TONES, dtype=torch.float64)
    signs = torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(TONES // 2)
    subject = planted.subject
    assert isinstance(subject, QuestionSubject)  # noqa: S101 - built above
    return replace(planted, subject=replace(subject, tones=size * signs))


def _noise(setting: Setting) -> PlantedSubject:
    columns = setting.normal(1.5), draw_attention_effect(setting)
    return PlantedSubject(compose_subject(setting, read_per_word, *columns))


def _per_question(
    setting: Setting, plant: Callable[[Setting], PlantedSubject], *, wider: float = 1.0
) -> PlantedSubject:
    """A subject whose numbers are drawn for each question separately, by a kind without one."""
    planted, parts = [], []
    for number in range(QUESTIONS):
        one = plant(replace(setting, kind=f"{setting.kind} {number}"))
        assert isinstance(one.subject, ComposedSubject)  # noqa: S101 - true of these kinds
        planted.append(one)
        parts.append(one.subject)
    first, scale = planted[0], TANH_SCALE * wider * setting.growth
    bound = scale * tanh(min(first.bound / scale, MAX_SCALED_LOG_ODDS))
    return PlantedSubject(
        QuestionSubject(tuple(parts), scale), first.cues, first.times, bound, questions=QUESTIONS
    )
