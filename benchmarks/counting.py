"""The model of De Cao et al.'s toy task (2020) as a subject: a feed-forward net, then a GRU.

Each symbol is read beside the two that are asked for, the GRU counts, and attention over its states
makes the output, so that there is an attention to be held against the known truth.
"""

from dataclasses import dataclass
from hashlib import sha256

import torch
from torch import nn

from heedful.core.batch import Encoded, collate
from heedful.core.rng import generator
from heedful.core.values import Forward, LinearDecoder
from heedful.data.corpora.synthetic import COUNTING_LABELS, draw_counting
from heedful.data.corpora.word_lists import SYMBOLS
from heedful.models.protocols import add_tensors
from heedful.numerics.tensor.distributions import masked_softmax

NUMBERS = {word: number for number, word in enumerate(SYMBOLS, start=1)}  # 0 is padding


class Counter(nn.Module):
    """Symbol and question through a feed-forward net, a GRU, one attention, a linear output."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(NUMBERS) + 1, width)
        self.feed = nn.Sequential(nn.Linear(3 * width, 2 * width), nn.ReLU())
        self.count = nn.GRU(2 * width, width, batch_first=True)
        self.attention = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.decoder = nn.Linear(width, len(COUNTING_LABELS))


@dataclass(frozen=True, eq=False)
class CounterSubject:
    """A counter under audit."""

    network: Counter
    labels: tuple[str, ...] = COUNTING_LABELS
    family: str = "counter"

    def fingerprint(self) -> str:
        """sha256 over the weights and their precision."""
        digest = sha256()
        add_tensors(digest, self.network.state_dict())
        return digest.hexdigest()

    def encode(self, example) -> Encoded:
        """Numbers of the symbols and of the two that are asked for."""
        words = tuple(example.text.split())
        asked = tuple(NUMBERS[word] for word in example.pair.split())
        ids = tuple(NUMBERS[word] for word in words)
        places = tuple(range(len(ids)))
        return Encoded(example.index, example.label, ids, places, words, query=asked)

    def batch(self, encoded):
        """Pad with 0."""
        return collate(encoded)

    def embed(self, batch):
        """The symbols' vectors."""
        return self.network.embedding(batch.ids)

    def forward(self, batch, embedded=None):
        """One pass."""
        states, _ = self.network.count(self._read(batch, embedded))
        weights = masked_softmax(self.network.attention(states).squeeze(-1), batch.mask)
        return Forward(self._decoder(states)(weights), weights, states)

    def read_states(self, batch, embedded=None):
        """The symbols' vectors, what the feed-forward net makes of them, and the GRU's states."""
        vectors = self.embed(batch) if embedded is None else embedded
        forward = self.forward(batch, vectors)
        return forward.logits, [vectors, self._read(batch, vectors), forward.states]

    def _read(self, batch, embedded):
        vectors = self.embed(batch) if embedded is None else embedded
        asked = self.network.embedding(batch.query).flatten(1)[:, None]
        beside = torch.cat([vectors, asked.expand(-1, vectors.shape[1], -1)], dim=-1)
        return self.network.feed(beside)

    def decoder(self, batch, forward):  # noqa: ARG002 - every subject is called alike
        """What each state adds to the output."""
        return self._decoder(forward.states)

    def _decoder(self, states):
        return LinearDecoder(states @ self.network.decoder.weight.T, self.network.decoder.bias)


def trained(*, steps: int = 1200, texts: int = 64, seed: int = 0) -> CounterSubject:
    """A counter trained on texts that are drawn as those of the corpus, and never come twice.

    The 2 000 rows of its train split are too few: learnt by heart, 85 % of others are right.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        subject = CounterSubject(Counter())
    optimiser = torch.optim.Adam(subject.network.parameters(), lr=3e-3)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 3e-3 * (1 - step / steps)
        batch, gold = _drawn(texts, generator(seed, "counting, training", step))
        optimiser.zero_grad()
        nn.functional.cross_entropy(subject.forward(batch).logits, gold).backward()
        optimiser.step()
    subject.network.eval().requires_grad_(False)
    return subject


def _drawn(texts: int, rng):
    """A batch and its answers."""
    drawn = [draw_counting(rng) for _ in range(texts)]
    encoded = [
        Encoded(
            n, 0, tuple(1 + ids), tuple(range(len(ids))), (), query=(asked[0] + 1, asked[1] + 1)
        )
        for n, (asked, ids) in enumerate(drawn)
    ]
    gold = [int((ids == asked[0]).sum() <= (ids == asked[1]).sum()) for asked, ids in drawn]
    return collate(encoded), torch.tensor(gold)


def accuracy(subject: CounterSubject, data) -> float:
    """Share of rows that it answers rightly."""
    known = [subject.encode(one) for one in data]
    with torch.no_grad():
        said = subject.forward(subject.batch(known)).predicted
    return float((said == torch.tensor([one.label for one in known])).double().mean())
