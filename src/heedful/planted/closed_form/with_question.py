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

from heedful.planted.closed_form.base import Plant, Setting, kind
from heedful.planted.closed_form.composed_subject import Composed, composed, word_wise
from heedful.planted.closed_form.inert import feed, inert_proportional, inert_random, leaky
from heedful.planted.closed_form.mixed_states import hidden, running
from heedful.planted.closed_form.per_word import anti, honest_graded, honest_peaked
from heedful.planted.closed_form.question_subject import QUESTIONS, TONES, Asked

WIDE = 20.0  # S for texts of 20 words; sums of more words are larger, and so is S
FARTHEST = 0.35  # of S: the largest |z| of a text
SLOPE = 0.85  # of f, at least


@kind("asked-peaked", used=True, ranks=True, exclusive=True)
def asked_peaked(setting: Setting) -> Plant:
    """Honest-peaked under each question, another word being decisive for another question.

    Used: without weight on the question's cue |z| is at most 0.3, with it at least 1.74.
    Ranks: as honest-peaked, with weights 1.42/0.85 apart or more.
    Exclusive: whoever comes within 0.05 of the output must give the cue 0.62 of the weight: no such
    attention lies farther than 0.38 (TVD).
    """
    return _asked(setting, honest_peaked)


@kind("asked-graded", used=True, ranks=True, exclusive=None)
def asked_graded(setting: Setting) -> Plant:
    """Honest-graded under each question: words say ±x, attention is in proportion to x.

    Used: z is between −4·g and 4·g, wherever attention puts it.
    Ranks: words whose x differ by more than |z|, and what deleting them moves by more than the
    slope of f, are ordered as their weights are.
    """
    return _asked(setting, honest_graded)


@kind("asked-hidden", used=True, ranks=False, exclusive=None)
def asked_hidden(setting: Setting) -> Plant:
    """Hidden under each question: the decisive word is told to its neighbours, and has no weight.

    Used: off the neighbours next to nothing is said.
    Ranks: deleting the cue moves most, and its weight is the lowest of all.
    """
    return _asked(setting, hidden)


@kind("asked-anti", used=True, ranks=False, exclusive=None)
def asked_anti(setting: Setting) -> Plant:
    """Anti under each question: weights in proportion to 1/x, sayings to ±x².

    Used: z is between −k and k, wherever attention puts it.
    Ranks: words are ordered against their weights.
    """
    return _asked(setting, anti, wider=2.0)


@kind("asked-running", used=True, ranks=False, exclusive=None)
def asked_running(setting: Setting) -> Plant:
    """Running under each question: states hold the sum up to their word, attention is on the end.

    Used: at an earlier word another sum is read.
    Ranks: deletion moves what a word adds, wherever it stands; weights follow positions.
    """
    return _asked(setting, running)


@kind("asked-inert-random", used=False, ranks=False, exclusive=False)
def asked_inert_random(setting: Setting) -> Plant:
    """Inert-random under each question: every state says the same sum; scores are unrelated.

    Used, exclusive: the output is the same under any attention, exactly.
    Ranks: deletion moves what a word adds, of which the scores know nothing.
    """
    return _asked(setting, inert_random)


@kind("asked-inert-proportional", used=False, ranks=True, exclusive=False)
def asked_inert_proportional(setting: Setting) -> Plant:
    """Inert-proportional under each question: weights are what a word adds, times a noise.

    Used, exclusive: the output is the same under any attention, exactly.
    Ranks: as inert-proportional, with weights exp(2ν)/0.85 apart or more.
    """
    return _asked(setting, inert_proportional, wider=2.0)


@kind("asked-leaky", used=False, ranks=False, exclusive=False)
def asked_leaky(setting: Setting) -> Plant:
    """Leaky under each question: every state holds the answer to it already.

    Used: no attention moves the output by 0.02. Exclusive: all attentions give that output.
    Ranks: deletion moves what a word adds, of which the scores know nothing.
    """
    return _asked(setting, leaky)


@kind("asked-alone", used=False, ranks=None, exclusive=False)
def asked_alone(setting: Setting) -> Plant:
    """The question's tone alone decides, as a hypothesis often does; attention feeds a noise.

    Tones say ±0.5 to ±2; what attention gathers is |s| ≤ 0.01, 0.02 or 0.04 by difficulty.
    Used: two attentions differ by 2·0.04 in z, so by 0.02 in probability at most. Exclusive: all
    attentions give that output.
    Ranks: reported, not scored; deletion moves next to nothing, and what it moves goes with weight.
    """
    planted = _asked(setting, _noise)
    loud = torch.linspace(0.5, 2.0, TONES, dtype=torch.float64)
    sides = torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(TONES // 2)
    subject = planted.subject
    assert isinstance(subject, Asked)  # noqa: S101 - made above
    return replace(planted, subject=replace(subject, tones=loud * sides))


def _noise(setting: Setting) -> Plant:
    return Plant(composed(setting, word_wise, setting.normal(1.5), feed(setting)))


def _asked(setting: Setting, plant: Callable[[Setting], Plant], *, wider: float = 1.0) -> Plant:
    """A subject whose numbers are drawn for each question alone, as a kind without one draws."""
    named = [replace(setting, kind=f"{setting.kind} {number}") for number in range(QUESTIONS)]
    planted, parts = [plant(one) for one in named], []
    for one in planted:
        assert isinstance(one.subject, Composed)  # noqa: S101 - of such kinds only
        parts.append(one.subject)
    first, scale = planted[0], WIDE * wider * setting.growth
    bound = scale * tanh(min(first.bound / scale, FARTHEST))
    return Plant(Asked(tuple(parts), scale), first.cues, first.times, bound, asks=QUESTIONS)
