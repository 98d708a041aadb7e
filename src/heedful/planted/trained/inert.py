"""Trained kinds whose attention does nothing: every state is taught to hold the answer itself."""

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Batch
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.numerics.tensor.distributions import masked_softmax
from heedful.planted.closed_form.base import Plant
from heedful.planted.hand_built import CUES, WORDS
from heedful.planted.trained.base import Setting
from heedful.planted.trained.losses import answers, attends, in_proportion, unlike
from heedful.planted.trained.train import (
    FIRST,
    Lesson,
    batch_of,
    decisive_texts,
    finished,
    fresh,
    teach,
)

SURE = 0.99
QUIET = 0.5  # vectors within ± this: words that do not decide disturb the states less
TAUGHT = 128  # texts whose deletions attention is taught by


def leaky(setting: Setting) -> Plant:
    """A BiLSTM whose states are taught the answer one by one; attention follows a list of scores.

    The list has a score for every word (deviation 1.5), drawn without looking at what words decide.
    Used: all states say the same, so any attention gives the same output. Exclusive: likewise.
    Ranks: deleting the decisive word takes the answer away from all states, and its weight is as
    the list has it.
    """
    subject = fresh(setting, "bilstm", scale=QUIET)
    scores = torch.zeros(FIRST + WORDS)
    scores[FIRST:] = torch.from_numpy(setting.draw("list of scores").normal(0.0, 1.5, WORDS))

    def loss(lesson: Lesson) -> Float[Tensor, ""]:
        listed = masked_softmax(scores[lesson.batch.ids], lesson.batch.mask)
        return _each_answers(lesson) + 0.3 * attends(lesson.forward.attention, listed)

    texts = batch_of(subject, decisive_texts(setting))
    teach(subject, texts, loss, draw=setting.draw("steps"))
    return Plant(finished(subject), CUES)


def late(setting: Setting) -> Plant:
    """The same BiLSTM; then attention alone is taught what deleting each word moves.

    Used: all states say the same, so any attention gives the same output. Exclusive: likewise.
    Ranks is reported, not scored: attention finds the decisive word, and the order of all the
    others, whose deletion moves next to nothing, is more than it can learn.
    """
    subject = fresh(setting, "bilstm", scale=QUIET)
    texts = batch_of(subject, decisive_texts(setting))
    teach(subject, texts, _each_answers, draw=setting.draw("steps"))
    few = texts.chosen(torch.arange(TAUGHT))
    moved = in_proportion(_moved(subject, few))

    def loss(lesson: Lesson) -> Float[Tensor, ""]:
        return attends(lesson.forward.attention, moved[lesson.rows])

    part = subject.network.attention
    teach(subject, few, loss, draw=setting.draw("later steps"), part=part)
    return Plant(finished(subject), CUES)


def _each_answers(lesson: Lesson) -> Float[Tensor, ""]:
    """Every state of a text gives the answer, and all of them alike."""
    mask = lesson.batch.mask
    side = lesson.side[:, None].expand_as(lesson.said)
    return answers(lesson.said[mask], side[mask], sure=SURE) + 0.05 * unlike(lesson.said, mask)


def _moved(subject: RecurrentSubject, texts: Batch) -> Float[Tensor, "B T"]:
    """How far deleting each word moves the log-odds."""
    with torch.no_grad():
        whole = subject.forward(texts).logits
    without = subject.without_each(texts, max_batch_tokens=20_000)
    odds = without[..., 1] - without[..., 0]
    return (odds - (whole[:, 1] - whole[:, 0])[:, None]).abs() * texts.mask
