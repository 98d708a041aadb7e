"""Kinds with a question beside each text; for each question one of the kinds without.

f(z) = S·tanh(z/S) grows with z. Texts are drawn so that |z| ≤ 0.35·S, where its slope is between
0.88 and 1; without one of their words it is 0.85 or more (`SLOPE`). So what is said of z in the
kind named holds of the log-odds up to that factor. Answers to other questions have ½ % of the
chance together at most.
"""

from collections.abc import Callable
from dataclasses import replace
from math import tanh

import torch

from heedful.planted.closed_form.base import PlantedSubject, Setting, register_kind
from heedful.planted.closed_form.composed_subject import (
    ComposedSubject,
    compose_subject,
    read_per_word,
)
from heedful.planted.closed_form.inert import (
    draw_attention_effect,
    inert_proportional,
    inert_random,
    leaky,
)
from heedful.planted.closed_form.mixed_states import hidden, running
from heedful.planted.closed_form.per_word import anti, honest_graded, honest_peaked
from heedful.planted.closed_form.question_subject import QUESTIONS, TONES, QuestionSubject

TANH_SCALE = 20.0  # S for texts of 20 words; sums of more words are larger, and so is S
MAX_SCALED_LOG_ODDS = 0.35  # of S: the largest |z| of a text
MIN_SLOPE = 0.85  # of f, at least


@register_kind("asked-peaked", used=True, ranks=True, exclusive=True)
def asked_peaked(setting: Setting) -> PlantedSubject:
    """Honest-peaked under each question, another word being decisive for another question.

    Used: without weight on the question's cue |z| is at most 0.3, with it at least 1.74.
    Ranks: as honest-peaked, with weights 1.42/0.85 apart or more.
    Exclusive: whoever comes within 0.05 of the output must give the cue 0.62 of the weight: no such
    attention lies farther than 0.38 (TVD).
    """
    return _per_question(setting, honest_peaked)


@register_kind("asked-graded", used=True, ranks=True, exclusive=None)
def asked_graded(setting: Setting) -> PlantedSubject:
    """Honest-graded under each question: words say ±x, attention is in proportion to x.

    Used: z is between −4·g and 4·g, wherever attention puts it.
    Ranks: words whose x differ by more than |z|, and what deleting them moves by more than the
    slope of f, are ordered as their weights are.
    """
    return _per_question(setting, honest_graded)


@register_kind("asked-hidden", used=True, ranks=False, exclusive=None)
def asked_hidden(setting: Setting) -> PlantedSubject:
    """Hidden under each question: the decisive word is told to its neighbours, and has no weight.

    Used: off the neighbours next to nothing is said.
    Ranks: deleting the cue moves most, and its weight is the lowest of all.
    """
    return _per_question(setting, hidden)


@register_kind("asked-anti", used=True, ranks=False, exclusive=None)
def asked_anti(setting: Setting) -> PlantedSubject:
    """Anti under each question: weights in proportion to 1/x, sayings to ±x².

    Used: z is between −k and k, wherever attention puts it.
    Ranks: words are ordered against their weights.
    """
    return _per_question(setting, anti, wider=2.0)


@register_kind("asked-running", used=True, ranks=False, exclusive=None)
def asked_running(setting: Setting) -> PlantedSubject:
    """Running under each question: states hold the sum up to their word, attention is on the end.

    Used: at an earlier word another sum is read.
    Ranks: deletion moves what a word adds, wherever it stands; weights follow positions.
    """
    return _per_question(setting, running)


@register_kind("asked-inert-random", used=False, ranks=False, exclusive=False)
def asked_inert_random(setting: Setting) -> PlantedSubject:
    """Inert-random under each question: every state says the same sum; scores are unrelated.

    Used, exclusive: the output is the same under any attention, exactly.
    Ranks: deletion moves what a word adds, of which the scores know nothing.
    """
    return _per_question(setting, inert_random)


@register_kind("asked-inert-proportional", used=False, ranks=True, exclusive=False)
def asked_inert_proportional(setting: Setting) -> PlantedSubject:
    """Inert-proportional under each question: weights are what a word adds, times a noise.

    Used, exclusive: the output is the same under any attention, exactly.
    Ranks: as inert-proportional, with weights exp(2ν)/0.85 apart or more.
    """
    return _per_question(setting, inert_proportional, wider=2.0)


@register_kind("asked-leaky", used=False, ranks=False, exclusive=False)
def asked_leaky(setting: Setting) -> PlantedSubject:
    """Leaky under each question: every state holds the answer to it already.

    Used: no attention moves the output by 0.02. Exclusive: all attentions give that output.
    Ranks: deletion moves what a word adds, of which the scores know nothing.
    """
    return _per_question(setting, leaky)


@register_kind("asked-alone", used=False, ranks=None, exclusive=False)
def asked_alone(setting: Setting) -> PlantedSubject:
    """The question's tone alone decides, as a hypothesis often does; attention feeds a noise.

    Tones say ±0.5 to ±2; what attention gathers is |s| ≤ 0.01, 0.02 or 0.04 by difficulty.
    Used: two attentions differ by 2·0.04 in z, so by 0.02 in probability at most. Exclusive: all
    attentions give that output.
    Ranks: reported, not scored; deletion moves next to nothing, and what it moves goes with weight.
    """
    planted = _per_question(setting, _noise)
    loud = torch.linspace(0.5, 2.0, TONES, dtype=torch.float64)
    sides = torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(TONES // 2)
    subject = planted.subject
    assert isinstance(subject, QuestionSubject)  # noqa: S101 - made above
    return replace(planted, subject=replace(subject, tones=loud * sides))


def _noise(setting: Setting) -> PlantedSubject:
    return PlantedSubject(
        compose_subject(setting, read_per_word, setting.normal(1.5), draw_attention_effect(setting))
    )


def _per_question(
    setting: Setting, plant: Callable[[Setting], PlantedSubject], *, wider: float = 1.0
) -> PlantedSubject:
    """A subject whose numbers are drawn for each question alone, as a kind without one draws."""
    named = [replace(setting, kind=f"{setting.kind} {number}") for number in range(QUESTIONS)]
    planted, parts = [plant(one) for one in named], []
    for one in planted:
        assert isinstance(one.subject, ComposedSubject)  # noqa: S101 - of such kinds only
        parts.append(one.subject)
    first, scale = planted[0], TANH_SCALE * wider * setting.growth
    bound = scale * tanh(min(first.bound / scale, MAX_SCALED_LOG_ODDS))
    return PlantedSubject(
        QuestionSubject(tuple(parts), scale), first.cues, first.times, bound, questions=QUESTIONS
    )
