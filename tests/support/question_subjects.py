"""Small subjects that answer questions, and texts with questions, that tests share."""

from itertools import product

import pytest
import torch

from heedful.core.values import Example
from heedful.models.batch_context import BatchContext
from heedful.models.recurrent.classifier import AttentionClassifier, Shape
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary, WordTokenizer
from support.subjects import WORDS

ENCODERS, ATTENTIONS = ("bilstm", "cnn", "average", "mlp"), ("additive", "dot", "uniform")
everything = pytest.mark.parametrize(("encoder", "attention"), [*product(ENCODERS, ATTENTIONS)])
LENGTHS = (9, 1, 13, 2, 4)
ALLOWED = (None, (0, 2), None, (1,), (0, 1, 2, 3))


def subject(encoder="bilstm", attention="additive", *, classes=4, seed=0):
    """A random network in float64 whose weights are large enough for attention to matter."""
    size = len(SPECIAL_TOKENS) + len(WORDS)
    shape = Shape(size, classes, encoder, attention, embedding=6, hidden=8, query=True)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = AttentionClassifier(shape).double()
        for parameter in network.parameters():
            parameter.data.normal_(0.0, 0.8)
        network.embedding.weight.data[0].zero_()
    network.eval().requires_grad_(False)
    labels = tuple(f"class{number}" for number in range(classes))
    return RecurrentSubject(network, Vocabulary((*SPECIAL_TOKENS, *WORDS)), WordTokenizer(), labels)


def examples(lengths=LENGTHS, allowed=None, *, seed=0):
    """Texts of random words with the given lengths, with questions of one to five words."""
    draw = torch.Generator().manual_seed(seed)

    def words(count):
        return " ".join(WORDS[one] for one in torch.randint(0, 30, (count,), generator=draw))

    allowed = allowed or [None] * len(lengths)
    return [
        Example(index, words(length), 0, pair=words(1 + index % 5), candidates=allowed[index])
        for index, length in enumerate(lengths)
    ]


def context(one, lengths=LENGTHS, allowed=None, **settings):
    """A batch of such texts before a subject."""
    encoded = [one.encode(example) for example in examples(lengths, allowed)]
    return BatchContext(one, one.batch(encoded), texts=encoded, **settings)
