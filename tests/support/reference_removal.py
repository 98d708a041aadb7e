"""What the tests of hiding and deleting share: subjects of several kinds, and plain loops."""

import math
from functools import cache
from itertools import pairwise, permutations, product

import torch

from heedful.core.batch import Batch, collate
from heedful.core.values import Example, Forward, LinearDecoder
from heedful.methods import methods
from heedful.models.batch_context import BatchContext
from heedful.models.perturbed.erased_words import get_mask_embedding
from heedful.models.transformer.from_pretrained import from_model
from support import subjects, tiny_models, tiny_tokenizers

OF = ("probability", "log_odds", "logit")
PLAYERS = ("tokens", "words")
PIECED = ("unbelievable film was good", "unly", "good film", "the film")
PLAIN = ("w1 w2 w3 w4 w5", "w7", "w9 w8", "w1 w1 w0")


@cache
def subject(name):
    """By name: a classifier of the 2019 papers, or a transformer whose words have pieces."""
    if name in ("bilstm", "cnn", "average"):
        return subjects.subject(name, "additive", classes=3 if name == "cnn" else 2, seed=5)
    if name == "bert":
        tokenizer = tiny_tokenizers.wordpiece(types=True)
    elif name == "xlnet":  # padded on the left
        tokenizer = tiny_tokenizers.wordpiece("after", types=True)
    else:
        tokenizer = tiny_tokenizers.byte_level(trim=True)
    model = tiny_models.build(name, vocab_size=len(tokenizer))
    return from_model(model, tokenizer)


def texts_of(name):
    """Four texts: of several, one and two words; the last holds two of the same, or pieces."""
    texts = PLAIN if name in ("bilstm", "cnn", "average") else PIECED
    if name == "gpt2":  # spelt letter by letter
        texts = ("a film was", "ox", "go by", "I a")
    one = subject(name)
    return [one.encode(Example(7 + index, text, 0)) for index, text in enumerate(texts)]


def sitting_of(name, **more):
    """A sitting on those texts, and one target class for each."""
    one = BatchContext(subject(name), subject(name).batch(texts_of(name)), **more)
    other = torch.arange(len(one.batch)) % 2  # every second text is explained for another class
    return one, (one.predicted + other) % len(one.subject.labels)


class Linear:
    """A subject of two classes whose log-odds are Σ_t ⟨w, x_t⟩ + b, attention of no weight in it.

    The blank is the zero vector, so each token adds ⟨w, x_t⟩ whatever is hidden or deleted.
    """

    family, labels = "linear", ("no", "yes")

    def __init__(self, seed=0):
        draw = torch.Generator().manual_seed(seed)
        self.table = torch.randn(40, 5, generator=draw, dtype=torch.float64)
        self.weight = torch.randn(5, generator=draw, dtype=torch.float64)

    def encode(self, example):
        return subjects.subject().encode(example)

    def batch(self, encoded):
        return collate(encoded)

    def embed(self, batch):
        return self.table[batch.ids]

    def forward(self, batch, embedded=None):
        x = self.embed(batch) if embedded is None else embedded
        odds = (x @ self.weight * batch.present).sum(-1) + 0.3
        even = batch.mask / batch.mask.sum(-1, keepdim=True).clamp(min=1)
        return Forward(torch.stack([torch.zeros_like(odds), odds], -1), even.to(x), x)

    def decoder(self, batch, forward):
        return LinearDecoder(torch.zeros(*batch.ids.shape, 2), torch.zeros(2))


class Counted:
    """A subject that counts how many texts it runs."""

    def __init__(self, inner):
        self.inner, self.run = inner, 0
        self.family, self.labels = inner.family, inner.labels
        self.encode, self.batch, self.embed = inner.encode, inner.batch, inner.embed
        self.decoder = inner.decoder

    def forward(self, batch, embedded=None):
        self.run += len(batch)
        return self.inner.forward(batch, embedded)


def value(logits, target, of):
    """What is explained of one row of logits, by plain numbers."""
    numbers = [float(one) for one in logits]
    rivals = sum(math.exp(one) for place, one in enumerate(numbers) if place != target)
    odds = numbers[target] - math.log(rivals)
    return {"probability": 1 / (1 + math.exp(-odds)), "log_odds": odds, "logit": numbers[target]}[
        of
    ]


def members(text, players):
    """The places of each player's tokens in the text."""
    places = [t for t, word in enumerate(text.word) if word >= 0]
    if players == "tokens":
        return [[t] for t in places]
    return [
        [t for t in places if text.word[t] == w] for w in sorted({text.word[t] for t in places})
    ]


def value_hiding(one, text, places, target, of):
    """The text alone, unpadded, the tokens at these places blank."""
    batch = one.batch([text])
    x = one.embed(batch).clone()
    for place in places:
        x[0, place] = get_mask_embedding(BatchContext(one, batch)).vector
    with torch.no_grad():
        return value(one.forward(batch, x).logits[0], target, of)


def table(one, text, players, target, of):
    """The value of every set of visible players."""
    parties = members(text, players)
    found = {}
    for shown in product((False, True), repeat=len(parties)):
        hidden = [t for party, seen in zip(parties, shown, strict=True) if not seen for t in party]
        found[shown] = value_hiding(one, text, hidden, target, of)
    return found


def shapley(values, count):
    """What each player adds to those before it, over all orders."""
    found, orders = [0.0] * count, list(permutations(range(count)))
    for order in orders:
        shown = [False] * count
        for player in order:
            before = values[tuple(shown)]
            shown[player] = True
            found[player] += (values[tuple(shown)] - before) / len(orders)
    return found


def on_tokens(text, players, scores):
    """Players' scores in equal parts on their tokens, zero elsewhere."""
    found = torch.zeros(len(text.ids), dtype=torch.float64)
    for places, score in zip(members(text, players), scores, strict=True):
        for place in places:
            found[place] = score / len(places)
    return found


def explained(name, context, target, **settings):
    """A method's scores, text by text, without padding."""
    found = methods.build(name, **settings)(context, target)
    assert found.method == name
    assert not found.scores[~context.batch.mask].any()
    pairs = zip(found.scores, context.batch.present, strict=True)
    return [scores[present].double() for scores, present in pairs]


def alone(one, text, target):
    """A sitting on one text."""
    return BatchContext(one, one.batch([text])), torch.tensor([target])


def linear(lengths, seed=0, **more):
    """A linear subject before texts of random words, and what each token adds to its log-odds."""
    one = Linear(seed)
    batch: Batch = subjects.batch(one, lengths, seed=seed)
    added = (one.embed(batch) @ one.weight).masked_fill(~batch.mask, 0.0)
    return BatchContext(one, batch, **more), added


def grouped(values):
    """Ranks; what rounding alone could tell apart is tied."""
    near, order = 1e-6 * max(values) + 1e-12, sorted(range(len(values)), key=values.__getitem__)
    ranks, rank = [0] * len(values), 0
    for before, place in pairwise(order):
        rank += values[place] - values[before] > near
        ranks[place] = rank
    return ranks
