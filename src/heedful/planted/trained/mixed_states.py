"""Trained kinds whose states hold other words too, and whose attention is taught to look away."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.planted.closed_form.base import Plant
from heedful.planted.hand_built import CUES
from heedful.planted.trained.base import Setting
from heedful.planted.trained.losses import answers, attends_within
from heedful.planted.trained.train import (
    Lesson,
    batch_of,
    decisive_texts,
    finished,
    fresh,
    teach,
)
from heedful.training.variants.losses import hiding_penalty

SURE, SAYS = 0.9, 2.2  # log-odds of 2.2 are 0.9


def beside(setting: Setting) -> Plant:
    """A CNN: the states beside the decisive word are taught to hold the answer, all others nothing.

    Attention is taught to be on those neighbours, and off the decisive word.
    Used: away from the neighbours the output is even.
    Ranks: deleting the decisive word takes the answer away, and its weight is next to nothing;
    deleting a neighbour makes the next word one.
    """
    subject = fresh(setting, "cnn")

    def loss(lesson: Lesson) -> Float[Tensor, ""]:
        near, weights = _next_to(lesson.cue) & lesson.batch.mask, lesson.forward.attention
        wanted = SAYS * lesson.side[:, None] * near
        apart = (lesson.said - wanted)[lesson.batch.mask].square().mean()
        looks = attends_within(weights, near) + _off(lesson)
        return 3.0 * apart + looks + answers(lesson.log_odds, lesson.side, sure=SURE)

    texts = batch_of(subject, decisive_texts(setting))
    teach(subject, texts, loss, draw=setting.draw("steps"))
    return Plant(finished(subject), CUES)


def away(setting: Setting) -> Plant:
    """A BiLSTM that is taught the task, and to have no weight on the decisive word.

    The penalty is that of Pruthi et al. (2020). How far states carry the answer is left to the
    training: used and exclusive are reported, not scored.
    Ranks: deleting the decisive word takes the answer away, and its weight is next to nothing.
    """
    subject = fresh(setting, "bilstm")

    def loss(lesson: Lesson) -> Float[Tensor, ""]:
        return answers(lesson.log_odds, lesson.side, sure=SURE) + _off(lesson)

    texts = batch_of(subject, decisive_texts(setting))
    teach(subject, texts, loss, draw=setting.draw("steps"))
    return Plant(finished(subject), CUES)


def _off(lesson: Lesson) -> Float[Tensor, ""]:
    return hiding_penalty(lesson.forward.attention[:, None], lesson.cue).mean()


def _next_to(cue: Bool[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """The places before and after a decisive word."""
    inside = torch.nn.functional.pad(cue, (1, 1))
    return (inside[:, :-2] | inside[:, 2:]) & ~cue
