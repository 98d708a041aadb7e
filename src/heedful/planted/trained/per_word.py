"""Trained kinds whose states know their own word only: z = Σ αₜ·sₜ, with weights that are learnt.

Deleting word t moves z by αₜ / (1 − αₜ) · |sₜ − z|.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.models.recurrent.subject import RecurrentSubject
from heedful.planted.closed_form.base import PlantedSubject
from heedful.planted.hand_built import CUE_WORDS, VOCABULARY_SIZE, draw_text
from heedful.planted.trained.base import TrainedSetting
from heedful.planted.trained.losses import answer_loss, attention_mass_loss, normalise_amounts
from heedful.planted.trained.train import (
    FIRST_WORD_ID,
    TEXTS,
    TrainingPass,
    build_untrained,
    draw_cue_texts,
    encode_batch,
    freeze_float64,
    train_network,
)

TARGET_PROBABILITY = 0.9  # log-odds of 2.2: an output that can still move both ways


def train_peaked(setting: TrainedSetting) -> PlantedSubject:
    """One decisive word a text; attention is taught to be on it, the others to say nothing.

    Used: no other word says anything, so without weight on the decisive one the output is even.
    Ranks: others say |s| ≪ |z|, so what deleting them moves goes with their weight, and deleting
    the decisive word takes all away.
    Exclusive: who comes within 0.05 of the output must give most of the weight to the same word.
    """
    subject = _untrained_wordwise(setting)

    def loss(lesson: TrainingPass) -> Float[Tensor, ""]:
        others = lesson.said[lesson.batch.mask & ~lesson.cue]
        on_cue = attention_mass_loss(lesson.forward.attention, lesson.cue)
        task = answer_loss(lesson.log_odds, lesson.side, sure=TARGET_PROBABILITY)
        return task + 0.2 * on_cue + 0.1 * others.square().mean()

    texts = encode_batch(subject, draw_cue_texts(setting))
    train_network(subject, texts, loss, draw=setting.draw("steps"))
    return PlantedSubject(freeze_float64(subject), CUE_WORDS)


def train_graded(setting: TrainedSetting) -> PlantedSubject:
    """To say Σx·s / Σx of words that say s = ±x; nothing is said about attention.

    A weighted mean of what words say is known by its values on all texts, up to a common factor of
    the weights: only weights in proportion to x solve the task. x is between 0.5·g and 4·g, with
    g = 2.5·√(length/20); texts are drawn so that |z| ≤ 0.4·g, as those of honest-graded.
    Used: z is between −4·g and 4·g, wherever attention puts it.
    Ranks: deletion moves z by xₜ·|xₜ ∓ z| / (Σx − xₜ), which grows with x where |z| is small.
    """
    size = 2.5 * float(np.sqrt(setting.length / 20))
    draw = setting.draw("strengths")
    x = torch.zeros(FIRST_WORD_ID + VOCABULARY_SIZE)
    x[FIRST_WORD_ID:] = torch.from_numpy(draw.uniform(0.5, 4.0, VOCABULARY_SIZE) * size)
    says = x * torch.where((torch.arange(len(x)) - FIRST_WORD_ID) % 2 == 1, 1.0, -1.0)
    subject = _untrained_wordwise(setting, scale=0.3)
    subject.network.embedding.weight.data[FIRST_WORD_ID:, 0] = says[FIRST_WORD_ID:] / (2 * size)

    def loss(lesson: TrainingPass) -> Float[Tensor, ""]:
        ids, mask = lesson.batch.ids, lesson.batch.mask
        wanted = (normalise_amounts(x[ids] * mask) * says[ids]).sum(-1)
        return (lesson.log_odds - wanted).square().mean() / size

    draw = setting.draw("training texts")
    texts = [draw_text(draw, setting.length) for _ in range(TEXTS)]
    train_network(subject, encode_batch(subject, texts), loss, draw=setting.draw("steps"))
    return PlantedSubject(freeze_float64(subject), bound=0.4 * size)


def _untrained_wordwise(setting: TrainedSetting, *, scale: float = 1.0) -> RecurrentSubject:
    """One of the two word-wise encoders, as the seed has it."""
    encoder = ("average", "mlp")[int(setting.draw("encoder").integers(2))]
    return build_untrained(setting, encoder, scale=scale)
