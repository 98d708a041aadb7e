"""A kind of the 2019 architectures whose attention is frozen to equal weights."""

import numpy as np
import torch

from heedful.models.recurrent.classifier import AttentionClassifier, Shape
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary, WordTokenizer
from heedful.planted.closed_form.base import PlantedSubject, Setting, WordNumbers, register_kind
from heedful.planted.hand_built import CUE_WORDS, VOCABULARY_SIZE

MAX_LOG_ODDS = 200.0  # what a word says is tanh of its vector times this


@register_kind("frozen", used=None, ranks=False, exclusive=None)
def frozen(setting: Setting) -> PlantedSubject:
    """A word-wise encoder and equal weights: z is the mean of what the words say.

    Words say up to ±δ = length/40, the decisive word 24, 12 or 6 times that, by difficulty.
    Ranks: weights are equal, so they order nothing, while deleting word t moves z by
    (sₜ − z)/(n − 1), which differs from word to word. In five words, the least favourable number,
    |s − z| is at least 0.8·(c − δ) for a cue that says c, and at most 0.2·c + 1.8·δ for any other:
    4/3 times as much at the hardest level.
    Used, exclusive: reported, not scored. Other weights would move the output, shuffled ones are
    the same weights.
    """
    says = setting.even(-1.0, 1.0)
    says[:CUE_WORDS] = setting.pick(24.0, 12.0, 6.0) * setting.signs()[:CUE_WORDS]
    says *= setting.length / 40
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *(f"w{number}" for number in range(VOCABULARY_SIZE))))
    subject = RecurrentSubject(
        _network(says), vocabulary, WordTokenizer(), labels=("negative", "positive")
    )
    return PlantedSubject(subject, CUE_WORDS)


def _network(says: WordNumbers) -> AttentionClassifier:
    """A network whose state says LOUDEST · tanh(x) for a word of the vector (x)."""
    shape = Shape(
        len(SPECIAL_TOKENS) + VOCABULARY_SIZE, 2, "average", "uniform", embedding=1, hidden=4
    )
    with torch.random.fork_rng(devices=()):  # the first weights are drawn, and overwritten
        network = AttentionClassifier(shape).double().eval().requires_grad_(False)
    for weight in network.parameters():
        weight.zero_()
    network.embedding.weight[len(SPECIAL_TOKENS) :, 0] = torch.from_numpy(
        np.arctanh(says / MAX_LOG_ODDS)
    )
    network.encoder.project.weight[0, 0] = 1.0
    network.get_parameter("decoder.weight")[0, 0] = MAX_LOG_ODDS
    return network
