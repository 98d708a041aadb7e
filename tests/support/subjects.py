"""Small subjects and batches that tests share."""

from math import sqrt

import torch
from scipy.stats import norm, t

from heedful.core.batch import Batch, Encoded, collate
from heedful.core.values import Example
from heedful.models.recurrent.classifier import AttentionClassifier, Shape
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary, WordTokenizer

WORDS = tuple(f"w{number}" for number in range(30))


def subject(
    encoder: str = "bilstm", attention: str = "additive", *, classes: int = 2, seed: int = 0
) -> RecurrentSubject:
    """A random classifier in float64 whose weights are large enough for attention to matter."""
    shape = Shape(
        len(SPECIAL_TOKENS) + len(WORDS), classes, encoder, attention, embedding=6, hidden=8
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = AttentionClassifier(shape).double()
        for parameter in network.parameters():
            parameter.data.normal_(0.0, 0.8)
        network.embedding.weight.data[0].zero_()
    network.eval().requires_grad_(False)
    labels = tuple(f"class{number}" for number in range(classes))
    return RecurrentSubject(network, Vocabulary((*SPECIAL_TOKENS, *WORDS)), WordTokenizer(), labels)


class Adapter:
    """A subject of a user's own: the five verbs, and nothing that says what kind of model it is."""

    family = "adapter"

    def __init__(self, inner: RecurrentSubject) -> None:
        self.labels = inner.labels
        self.encode, self.batch, self.embed = inner.encode, inner.batch, inner.embed
        self.forward, self.decoder = inner.forward, inner.decoder


def encoded(subject: RecurrentSubject, lengths: list[int], *, seed: int = 0) -> list[Encoded]:
    """Texts of random words with the given lengths."""
    draw = torch.Generator().manual_seed(seed)
    texts = [
        " ".join(
            WORDS[number] for number in torch.randint(0, 30, (length,), generator=draw).tolist()
        )
        for length in lengths
    ]
    return [subject.encode(Example(index, text, 0)) for index, text in enumerate(texts)]


def batch(subject: RecurrentSubject, lengths: list[int], *, seed: int = 0) -> Batch:
    """A padded batch of such texts."""
    return collate(encoded(subject, lengths, seed=seed))


def tails(n, level=0.95):
    """The two shares of draws at which an interval of n instances ends."""
    below = norm.sf(sqrt(n / (n - 1)) * t.isf((1 - level) / 2, n - 1))
    return below, 1 - below
