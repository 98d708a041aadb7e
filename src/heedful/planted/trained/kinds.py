"""Trained kinds: what each network is trained to do, and why its truth follows from that.

For word-wise states, z = Σ αₜ·sₜ with learnt weights: deleting word t moves z by
αₜ / (1 − αₜ) · |sₜ − z|.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from heedful.core.batch import Batch
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.numerics.tensor.distributions import masked_softmax
from heedful.planted.case import Truth, make_truth
from heedful.planted.texts import CUE_WORDS, VOCABULARY_SIZE, PlantedSubject, draw_text
from heedful.planted.trained.train import (
    FIRST_WORD_ID,
    TEXTS,
    PassLoss,
    TrainedSetting,
    TrainingPass,
    build_untrained,
    draw_cue_texts,
    encode_batch,
    freeze_float64,
    train_network,
)
from heedful.training.objectives import hiding_penalty

TARGET_PROBABILITY = 0.9  # log-odds of 2.2: an output that can still move both ways
TARGET_LOG_ODDS = 2.2
INERT_TARGET_PROBABILITY = 0.99
INERT_EMBEDDING_SCALE = 0.5  # smaller, so that words other than cues disturb the states less
DELETION_TEXTS = 128  # texts whose deletion effects train the attention of trained-late


TrainSubject = Callable[[TrainedSetting], PlantedSubject]


@dataclass(frozen=True)
class TrainedKind:
    """A way to train subjects, and the truth that is tested on each of them."""

    truth: Truth
    train: TrainSubject


TRAINED_KINDS: dict[str, TrainedKind] = {}


def _trained_kind(
    name: str, *, used: bool | None, ranks: bool | None, exclusive: bool | None
) -> Callable[[TrainSubject], TrainSubject]:
    """Add a way to train, with its truth, to `TRAINED_KINDS`."""

    def add(train: TrainSubject) -> TrainSubject:
        truth = make_truth(used=used, ranks=ranks, exclusive=exclusive)
        TRAINED_KINDS[name] = TrainedKind(truth, train)
        return train

    return add


# Word-wise states


@_trained_kind("trained-peaked", used=True, ranks=True, exclusive=True)
def train_peaked(setting: TrainedSetting) -> PlantedSubject:
    """One decisive word per text; attention is trained to be on it, other words to be neutral.

    Used: no other word contributes, so without weight on the decisive one the output is even.
    Ranks: others have |s| ≪ |z|, so the effect of deleting them follows their weight, and deleting
    the decisive word removes the answer.
    Exclusive: an attention within 0.05 of the output must give most of the weight to the same word.
    """
    subject = _untrained_wordwise(setting)

    def loss(step: TrainingPass) -> Float[Tensor, ""]:
        others = step.by_state[step.batch.mask & ~step.cue]
        on_cue = attention_mass_loss(step.forward.attention, step.cue)
        return _task_loss(step) + 0.2 * on_cue + 0.1 * others.square().mean()

    return _train_on_cue_texts(setting, subject, loss)


@_trained_kind("trained-graded", used=True, ranks=True, exclusive=None)
def train_graded(setting: TrainedSetting) -> PlantedSubject:
    """The output is trained to be Σx·s / Σx of words with s = ±x; attention has no loss of its own.

    A weighted mean of word values is determined by its values on all texts, up to a common factor
    of the weights: only weights in proportion to x solve the task. x is between 0.5·g and 4·g, with
    g = 2.5·√(length/20); texts are drawn so that |z| ≤ 0.4·g, as those of honest-graded.
    Used: z is between −4·g and 4·g, depending on attention.
    Ranks: deletion moves z by xₜ·|xₜ ∓ z| / (Σx − xₜ), which grows with x where |z| is small.
    """
    size = 2.5 * float(np.sqrt(setting.length / 20))
    draw = setting.draw("strengths")
    x = torch.zeros(FIRST_WORD_ID + VOCABULARY_SIZE)
    x[FIRST_WORD_ID:] = torch.from_numpy(draw.uniform(0.5, 4.0, VOCABULARY_SIZE) * size)
    s = x * torch.where((torch.arange(len(x)) - FIRST_WORD_ID) % 2 == 1, 1.0, -1.0)
    subject = _untrained_wordwise(setting, scale=0.3)
    subject.network.embedding.weight.data[FIRST_WORD_ID:, 0] = s[FIRST_WORD_ID:] / (2 * size)

    def loss(step: TrainingPass) -> Float[Tensor, ""]:
        ids, mask = step.batch.ids, step.batch.mask
        target = (normalise_amounts(x[ids] * mask) * s[ids]).sum(-1)
        return (step.log_odds - target).square().mean() / size

    draw = setting.draw("training texts")
    texts = [draw_text(draw, setting.length) for _ in range(TEXTS)]
    train_network(subject, encode_batch(subject, texts), loss, draw=setting.draw("steps"))
    return PlantedSubject(freeze_float64(subject), bound=0.4 * size)


# Mixed states


@_trained_kind("trained-beside", used=True, ranks=False, exclusive=None)
def train_neighbours(setting: TrainedSetting) -> PlantedSubject:
    """A CNN: states next to the decisive word are trained to hold the answer, all others nothing.

    Attention is trained to be on those neighbours, and off the decisive word.
    Used: away from the neighbours the output is even.
    Ranks: deleting the decisive word removes the answer, and its weight is almost 0; deleting a
    neighbour makes the next word one.
    """
    subject = build_untrained(setting, "cnn")

    def loss(step: TrainingPass) -> Float[Tensor, ""]:
        near, weights = _neighbour_mask(step.cue) & step.batch.mask, step.forward.attention
        target = TARGET_LOG_ODDS * step.side[:, None] * near
        error = (step.by_state - target)[step.batch.mask].square().mean()
        attention = attention_mass_loss(weights, near) + _cue_attention_penalty(step)
        return 3.0 * error + attention + _task_loss(step)

    return _train_on_cue_texts(setting, subject, loss)


@_trained_kind("trained-away", used=None, ranks=False, exclusive=None)
def train_away_from_cue(setting: TrainedSetting) -> PlantedSubject:
    """A BiLSTM trained on the task, and to have no weight on the decisive word.

    The penalty is that of Pruthi et al. (2020). How much of the answer the states hold is left to
    the training: used and exclusive are reported, not scored.
    Ranks: deleting the decisive word removes the answer, and its weight is almost 0.
    """

    def loss(step: TrainingPass) -> Float[Tensor, ""]:
        return _task_loss(step) + _cue_attention_penalty(step)

    return _train_on_cue_texts(setting, build_untrained(setting, "bilstm"), loss)


# Inert attention: every state is trained to hold the answer itself


@_trained_kind("trained-leaky", used=False, ranks=False, exclusive=False)
def train_leaky(setting: TrainedSetting) -> PlantedSubject:
    """A BiLSTM whose states are each trained to hold the answer; attention follows a score table.

    The table has a score for every word (standard deviation 1.5), drawn independently of cues.
    Used: all states hold the same, so any attention gives the same output. Exclusive: likewise.
    Ranks: deleting the decisive word removes the answer from all states, and its weight is
    whatever the table gives it.
    """
    subject = build_untrained(setting, "bilstm", scale=INERT_EMBEDDING_SCALE)
    scores = torch.zeros(FIRST_WORD_ID + VOCABULARY_SIZE)
    drawn = setting.draw("list of scores").normal(0.0, 1.5, VOCABULARY_SIZE)
    scores[FIRST_WORD_ID:] = torch.from_numpy(drawn)

    def loss(step: TrainingPass) -> Float[Tensor, ""]:
        target = masked_softmax(scores[step.batch.ids], step.batch.mask)
        follows = attention_cross_entropy(step.forward.attention, target)
        return _state_answer_loss(step) + 0.3 * follows

    return _train_on_cue_texts(setting, subject, loss)


@_trained_kind("trained-late", used=False, ranks=None, exclusive=False)
def train_late(setting: TrainedSetting) -> PlantedSubject:
    """The same BiLSTM; then only attention is trained, on the effect of deleting each word.

    Used: all states hold the same, so any attention gives the same output. Exclusive: likewise.
    Ranks is reported, not scored: attention learns the decisive word, but not the order of all the
    others, whose deletion has almost no effect.
    """
    subject = build_untrained(setting, "bilstm", scale=INERT_EMBEDDING_SCALE)
    texts = encode_batch(subject, draw_cue_texts(setting))
    train_network(subject, texts, _state_answer_loss, draw=setting.draw("steps"))
    few = texts.select(torch.arange(DELETION_TEXTS))
    target = normalise_amounts(_deletion_effects(subject, few))

    def loss(step: TrainingPass) -> Float[Tensor, ""]:
        return attention_cross_entropy(step.forward.attention, target[step.rows])

    part = subject.network.attention
    train_network(subject, few, loss, draw=setting.draw("later steps"), part=part)
    return PlantedSubject(freeze_float64(subject), CUE_WORDS)


def normalise_amounts(amounts: Float[Tensor, "B T"]) -> Float[Tensor, "B T"]:
    """Weights in proportion to the amounts of each text, which are 0 outside its words.

    >>> normalise_amounts(torch.tensor([[1.0, 3.0, 0.0]]))
    tensor([[0.2500, 0.7500, 0.0000]])
    """
    return amounts / amounts.sum(-1, keepdim=True)


def answer_loss(
    log_odds: Float[Tensor, "*B"], side: Float[Tensor, "*B"], *, probability: float
) -> Float[Tensor, ""]:
    """Cross-entropy with a target of `probability` for the class of the side, ½ where it is 0."""
    target = 0.5 + side * (probability - 0.5)
    return binary_cross_entropy_with_logits(log_odds, target.to(log_odds))


def attention_cross_entropy(
    weights: Float[Tensor, "B T"], target: Float[Tensor, "B T"]
) -> Float[Tensor, ""]:
    """−Σ target · log weights, averaged over texts."""
    logs = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
    return -(target * logs).sum(-1).mean()


def attention_mass_loss(
    weights: Float[Tensor, "B T"], places: Bool[Tensor, "B T"]
) -> Float[Tensor, ""]:
    """−log of the total weight on the places, averaged over the texts that have any."""
    mass = (weights * places).sum(-1)[places.any(-1)]
    return -mass.clamp(min=torch.finfo(weights.dtype).tiny).log().mean()


def state_variance(by_state: Float[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, ""]:
    """Variance of the log-odds of a text's states, averaged over words."""
    mean = (by_state * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True)
    return (by_state - mean)[mask].square().mean()


def _untrained_wordwise(setting: TrainedSetting, *, scale: float = 1.0) -> RecurrentSubject:
    """One of the two word-wise encoders, chosen by the seed."""
    encoder = ("average", "mlp")[int(setting.draw("encoder").integers(2))]
    return build_untrained(setting, encoder, scale=scale)


def _train_on_cue_texts(
    setting: TrainedSetting, subject: RecurrentSubject, loss: PassLoss
) -> PlantedSubject:
    texts = encode_batch(subject, draw_cue_texts(setting))
    train_network(subject, texts, loss, draw=setting.draw("steps"))
    return PlantedSubject(freeze_float64(subject), CUE_WORDS)


def _task_loss(step: TrainingPass) -> Float[Tensor, ""]:
    return answer_loss(step.log_odds, step.side, probability=TARGET_PROBABILITY)


def _state_answer_loss(step: TrainingPass) -> Float[Tensor, ""]:
    """Every state of a text gives the answer, and all of them the same."""
    mask, by_state = step.batch.mask, step.by_state
    side = step.side[:, None].expand_as(by_state)[mask]
    task = answer_loss(by_state[mask], side, probability=INERT_TARGET_PROBABILITY)
    return task + 0.05 * state_variance(by_state, mask)


def _cue_attention_penalty(step: TrainingPass) -> Float[Tensor, ""]:
    return hiding_penalty(step.forward.attention[:, None], step.cue).mean()


def _neighbour_mask(cue: Bool[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """The positions before and after a cue."""
    inside = torch.nn.functional.pad(cue, (1, 1))
    return (inside[:, :-2] | inside[:, 2:]) & ~cue


def _deletion_effects(subject: RecurrentSubject, texts: Batch) -> Float[Tensor, "B T"]:
    """How much deleting each word moves the log-odds."""
    with torch.no_grad():
        logits = subject.forward(texts).logits
    without = subject.without_each(texts, max_batch_tokens=20_000)
    log_odds = without[..., 1] - without[..., 0]
    return (log_odds - (logits[:, 1] - logits[:, 0])[:, None]).abs() * texts.mask
