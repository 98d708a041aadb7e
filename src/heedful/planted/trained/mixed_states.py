"""Trained kinds whose states hold other words too, and whose attention is taught to look away."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.planted.closed_form.base import PlantedSubject
from heedful.planted.hand_built import CUE_WORDS
from heedful.planted.trained.base import TrainedSetting
from heedful.planted.trained.losses import answer_loss, attention_mass_loss
from heedful.planted.trained.train import (
    TrainingPass,
    build_untrained,
    draw_cue_texts,
    encode_batch,
    freeze_float64,
    train_network,
)
from heedful.training.objectives import hiding_penalty

SURE, SAYS = 0.9, 2.2  # log-odds of 2.2 are 0.9


def train_neighbours(setting: TrainedSetting) -> PlantedSubject:
    """A CNN: the states beside the decisive word are taught to hold the answer, all others nothing.

    Attention is taught to be on those neighbours, and off the decisive word.
    Used: away from the neighbours the output is even.
    Ranks: deleting the decisive word takes the answer away, and its weight is next to nothing;
    deleting a neighbour makes the next word one.
    """
    subject = build_untrained(setting, "cnn")

    def loss(lesson: TrainingPass) -> Float[Tensor, ""]:
        near, weights = _neighbour_mask(lesson.cue) & lesson.batch.mask, lesson.forward.attention
        wanted = SAYS * lesson.side[:, None] * near
        apart = (lesson.said - wanted)[lesson.batch.mask].square().mean()
        looks = attention_mass_loss(weights, near) + _cue_attention_penalty(lesson)
        return 3.0 * apart + looks + answer_loss(lesson.log_odds, lesson.side, sure=SURE)

    texts = encode_batch(subject, draw_cue_texts(setting))
    train_network(subject, texts, loss, draw=setting.draw("steps"))
    return PlantedSubject(freeze_float64(subject), CUE_WORDS)


def train_away_from_cue(setting: TrainedSetting) -> PlantedSubject:
    """A BiLSTM that is taught the task, and to have no weight on the decisive word.

    The penalty is that of Pruthi et al. (2020). How far states carry the answer is left to the
    training: used and exclusive are reported, not scored.
    Ranks: deleting the decisive word takes the answer away, and its weight is next to nothing.
    """
    subject = build_untrained(setting, "bilstm")

    def loss(lesson: TrainingPass) -> Float[Tensor, ""]:
        return answer_loss(lesson.log_odds, lesson.side, sure=SURE) + _cue_attention_penalty(lesson)

    texts = encode_batch(subject, draw_cue_texts(setting))
    train_network(subject, texts, loss, draw=setting.draw("steps"))
    return PlantedSubject(freeze_float64(subject), CUE_WORDS)


def _cue_attention_penalty(lesson: TrainingPass) -> Float[Tensor, ""]:
    return hiding_penalty(lesson.forward.attention[:, None], lesson.cue).mean()


def _neighbour_mask(cue: Bool[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """The places before and after a decisive word."""
    inside = torch.nn.functional.pad(cue, (1, 1))
    return (inside[:, :-2] | inside[:, 2:]) & ~cue
