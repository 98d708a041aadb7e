"""Kinds with a question for each text: for each question, one of the kinds without questions.

f(z) = S·tanh(z/S) grows with z. Texts are drawn so that |z| ≤ 0.35·S, where its slope is between
0.88 and 1; without one of their words it is 0.85 or more (`MIN_SLOPE`). So the bounds on z of the
kind without questions hold for the log-odds up to that factor. Answers to other questions have a
total probability of ½ % at most.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import tanh
from typing import Any

import torch

from heedful.planted.case import BuildSubject, PlantedKind, Setting, register_kind
from heedful.planted.closed_form import classifier_kinds as unasked
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


def _per_question(setting: Setting, plant: BuildSubject, *, wider: float = 1.0) -> PlantedSubject:
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


PER_QUESTION: dict[str, tuple[PlantedKind, str]] = {
    "asked-peaked": (
        unasked.honest_peaked,
        "Honest-peaked for each question; every question has other decisive words.\n\n"
        "Ranks: with weights 1.42/0.85 apart or more. Exclusive: an attention within 0.05 of the "
        "output must give the cue 0.62 of the weight: none is farther away than 0.38 (TVD).",
    ),
    "asked-graded": (
        unasked.honest_graded,
        "Honest-graded for each question: words contribute ±x, attention is in proportion to x."
        "\n\nRanks: words whose deletions differ by more than the slope of f.",
    ),
    "asked-hidden": (
        unasked.hidden,
        "Hidden for each question: the neighbours hold the decisive word, which has no weight.",
    ),
    "asked-anti": (
        unasked.anti,
        "Anti for each question: weights in proportion to 1/x, log-odds to ±x².",
    ),
    "asked-running": (
        unasked.running,
        "Running for each question: states hold the sum up to their word, attention is on the end.",
    ),
    "asked-inert-random": (
        unasked.inert_random,
        "Inert-random for each question: every state holds the same sum; scores are unrelated.",
    ),
    "asked-inert-proportional": (
        unasked.inert_proportional,
        "Inert-proportional for each question: weights are what a word adds, times a noise.\n\n"
        "Ranks: with weights exp(2ν)/0.85 apart or more.",
    ),
    "asked-leaky": (
        unasked.leaky,
        "Leaky for each question: every state already holds the answer.",
    ),
}
WIDER = {"asked-anti": 2.0, "asked-inert-proportional": 2.0}  # factors of S
for name, (kind, why) in PER_QUESTION.items():
    truth: Mapping[Any, bool | None] = kind.truth
    plant = partial(_per_question, plant=kind.plant, wider=WIDER.get(name, 1.0))
    register_kind(name, **truth, why=f"{why}\n\nAs for one question: {kind.plant.__doc__}")(plant)


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
    columns = setting.normal(1.5), unasked.draw_attention_effect(setting)
    return PlantedSubject(compose_subject(setting, read_per_word, *columns))
