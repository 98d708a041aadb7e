"""Trained kinds whose states know their own word only: z = Σ αₜ·sₜ, with weights that are learnt.

Deleting word t moves z by αₜ / (1 − αₜ) · |sₜ − z|.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.models.recurrent.subject import RecurrentSubject
from heedful.planted.closed_form.base import Plant
from heedful.planted.hand_built import CUES, WORDS, draw_text
from heedful.planted.trained.base import Setting
from heedful.planted.trained.losses import answers, attends_within, in_proportion
from heedful.planted.trained.train import (
    FIRST,
    TEXTS,
    Lesson,
    batch_of,
    decisive_texts,
    finished,
    fresh,
    teach,
)

SURE = 0.9  # log-odds of 2.2: an output that can still move both ways


def peaked(setting: Setting) -> Plant:
    """One decisive word a text; attention is taught to be on it, the others to say nothing.

    Used: no other word says anything, so without weight on the decisive one the output is even.
    Ranks: others say |s| ≪ |z|, so what deleting them moves goes with their weight, and deleting
    the decisive word takes all away.
    Exclusive: who comes within 0.05 of the output must give most of the weight to the same word.
    """
    subject = _either(setting)

    def loss(lesson: Lesson) -> Float[Tensor, ""]:
        others = lesson.said[lesson.batch.mask & ~lesson.cue]
        on_cue = attends_within(lesson.forward.attention, lesson.cue)
        task = answers(lesson.log_odds, lesson.side, sure=SURE)
        return task + 0.2 * on_cue + 0.1 * others.square().mean()

    texts = batch_of(subject, decisive_texts(setting))
    teach(subject, texts, loss, draw=setting.draw("steps"))
    return Plant(finished(subject), CUES)


def graded(setting: Setting) -> Plant:
    """To say Σx·s / Σx of words that say s = ±x; nothing is said about attention.

    A weighted mean of what words say is known by its values on all texts, up to a common factor of
    the weights: only weights in proportion to x solve the task. x is between 0.5·g and 4·g, with
    g = 2.5·√(length/20); texts are drawn so that |z| ≤ 0.4·g, as those of honest-graded.
    Used: z is between −4·g and 4·g, wherever attention puts it.
    Ranks: deletion moves z by xₜ·|xₜ ∓ z| / (Σx − xₜ), which grows with x where |z| is small.
    """
    size = 2.5 * float(np.sqrt(setting.length / 20))
    draw = setting.draw("strengths")
    x = torch.zeros(FIRST + WORDS)
    x[FIRST:] = torch.from_numpy(draw.uniform(0.5, 4.0, WORDS) * size)
    says = x * torch.where((torch.arange(len(x)) - FIRST) % 2 == 1, 1.0, -1.0)
    subject = _either(setting, scale=0.3)
    subject.network.embedding.weight.data[FIRST:, 0] = says[FIRST:] / (2 * size)

    def loss(lesson: Lesson) -> Float[Tensor, ""]:
        ids, mask = lesson.batch.ids, lesson.batch.mask
        wanted = (in_proportion(x[ids] * mask) * says[ids]).sum(-1)
        return (lesson.log_odds - wanted).square().mean() / size

    draw = setting.draw("training texts")
    texts = [draw_text(draw, setting.length) for _ in range(TEXTS)]
    teach(subject, batch_of(subject, texts), loss, draw=setting.draw("steps"))
    return Plant(finished(subject), bound=0.4 * size)


def _either(setting: Setting, *, scale: float = 1.0) -> RecurrentSubject:
    """One of the two word-wise encoders, as the seed has it."""
    encoder = ("average", "mlp")[int(setting.draw("encoder").integers(2))]
    return fresh(setting, encoder, scale=scale)
