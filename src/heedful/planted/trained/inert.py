"""Trained kinds whose attention does nothing: every state is taught to hold the answer itself."""

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Batch
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.numerics.tensor.distributions import masked_softmax
from heedful.planted.closed_form.base import PlantedSubject
from heedful.planted.hand_built import CUE_WORDS, VOCABULARY_SIZE
from heedful.planted.trained.base import TrainedSetting
from heedful.planted.trained.losses import (
    answer_loss,
    attention_cross_entropy,
    normalise_amounts,
    state_variance,
)
from heedful.planted.trained.train import (
    FIRST_WORD_ID,
    TrainingPass,
    build_untrained,
    draw_cue_texts,
    encode_batch,
    freeze_float64,
    train_network,
)

TARGET_PROBABILITY = 0.99
EMBEDDING_SCALE = 0.5  # vectors within ± this: words that do not decide disturb the states less
DELETION_TEXTS = 128  # texts whose deletions attention is taught by


def train_leaky(setting: TrainedSetting) -> PlantedSubject:
    """A BiLSTM whose states are taught the answer one by one; attention follows a list of scores.

    The list has a score for every word (deviation 1.5), drawn without looking at what words decide.
    Used: all states say the same, so any attention gives the same output. Exclusive: likewise.
    Ranks: deleting the decisive word takes the answer away from all states, and its weight is as
    the list has it.
    """
    subject = build_untrained(setting, "bilstm", scale=EMBEDDING_SCALE)
    scores = torch.zeros(FIRST_WORD_ID + VOCABULARY_SIZE)
    scores[FIRST_WORD_ID:] = torch.from_numpy(
        setting.draw("list of scores").normal(0.0, 1.5, VOCABULARY_SIZE)
    )

    def loss(lesson: TrainingPass) -> Float[Tensor, ""]:
        listed = masked_softmax(scores[lesson.batch.ids], lesson.batch.mask)
        return _state_answer_loss(lesson) + 0.3 * attention_cross_entropy(
            lesson.forward.attention, listed
        )

    texts = encode_batch(subject, draw_cue_texts(setting))
    train_network(subject, texts, loss, draw=setting.draw("steps"))
    return PlantedSubject(freeze_float64(subject), CUE_WORDS)


def train_late(setting: TrainedSetting) -> PlantedSubject:
    """The same BiLSTM; then attention alone is taught what deleting each word moves.

    Used: all states say the same, so any attention gives the same output. Exclusive: likewise.
    Ranks is reported, not scored: attention finds the decisive word, and the order of all the
    others, whose deletion moves next to nothing, is more than it can learn.
    """
    subject = build_untrained(setting, "bilstm", scale=EMBEDDING_SCALE)
    texts = encode_batch(subject, draw_cue_texts(setting))
    train_network(subject, texts, _state_answer_loss, draw=setting.draw("steps"))
    few = texts.select(torch.arange(DELETION_TEXTS))
    moved = normalise_amounts(_deletion_effects(subject, few))

    def loss(lesson: TrainingPass) -> Float[Tensor, ""]:
        return attention_cross_entropy(lesson.forward.attention, moved[lesson.rows])

    part = subject.network.attention
    train_network(subject, few, loss, draw=setting.draw("later steps"), part=part)
    return PlantedSubject(freeze_float64(subject), CUE_WORDS)


def _state_answer_loss(lesson: TrainingPass) -> Float[Tensor, ""]:
    """Every state of a text gives the answer, and all of them alike."""
    mask = lesson.batch.mask
    side = lesson.side[:, None].expand_as(lesson.said)
    return answer_loss(
        lesson.said[mask], side[mask], sure=TARGET_PROBABILITY
    ) + 0.05 * state_variance(lesson.said, mask)


def _deletion_effects(subject: RecurrentSubject, texts: Batch) -> Float[Tensor, "B T"]:
    """How far deleting each word moves the log-odds."""
    with torch.no_grad():
        whole = subject.forward(texts).logits
    without = subject.without_each(texts, max_batch_tokens=20_000)
    odds = without[..., 1] - without[..., 0]
    return (odds - (whole[:, 1] - whole[:, 0])[:, None]).abs() * texts.mask
