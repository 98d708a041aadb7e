"""Hand-built subjects whose truth is known, to try every check on.

A word has three numbers: the score attention gives it (a), what its own state says (s), and what
it adds to the text as a whole (u). Honest subjects decode the attended s, so attention decides.
Inert ones have a state of two blocks: attention reads a word-wise one, the decoder reads Σ u, which
is the same at every position of a text: whatever the weights, the output does not move.

| kind | used | ranks |
| --- | --- | --- |
| honest-peaked: one decisive word, attention on it | yes | yes |
| honest-graded: attention in proportion to what a word says | yes | yes |
| inert-random: attention drawn at random | no | no |
| inert-proportional: attention in proportion to what a word adds | no | yes |
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.batch import Batch, Encoded, collate
from heedful.core.registry import Registry
from heedful.core.rng import generator
from heedful.core.values import Example, Forward, LinearDecoder
from heedful.numerics.tensor.distributions import masked_softmax

hand_built_subjects = Registry("planted subject")
VOCABULARY_SIZE = 400  # the first CUES of them are decisive words, where the kind has any
CUE_WORDS = 40


@dataclass(frozen=True, eq=False)
class HandBuiltSubject:
    """A subject written by hand: `table` holds (a, s, u) of every word."""

    kind: str
    table: Float[Tensor, "V 3"]
    inert: bool
    cues: int = 0
    labels: tuple[str, ...] = ("negative", "positive")
    architecture = "recurrent"

    @property
    def family(self) -> str:
        """The kind of planted truth."""
        return f"planted-{self.kind}"

    def fingerprint(self) -> str:
        """Kind and table name this subject completely."""
        return f"{self.family}:{float(self.table.sum()):.12f}"

    def encode(self, example: Example) -> Encoded:
        """Words are called w0, w1, …; w7 has number 7."""
        return encode_word_ids(example)

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Pad with word 0, masked out."""
        return collate(encoded)

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """The three numbers of each word."""
        return self.table[batch.ids]

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """States are [score, what the decoder reads]."""
        vectors = self.embed(batch) if embedded is None else embedded
        a, s, u = vectors.unbind(-1)
        whole = (u * batch.mask).sum(-1, keepdim=True).expand_as(u)
        states = torch.stack([a, whole if self.inert else s], dim=-1)
        weights = masked_softmax(a, batch.mask)
        return Forward(log_odds_decoder(states)(weights), weights, states)

    def decoder(self, batch: Batch, forward: Forward) -> LinearDecoder:  # noqa: ARG002
        """Log-odds are the second number of the state."""
        return log_odds_decoder(forward.states)


def encode_word_ids(example: Example) -> Encoded:
    """Words are called w0, w1, …; w7 has number 7."""
    words = tuple(example.text.split())
    ids = tuple(int(word.removeprefix("w")) for word in words)
    return Encoded(example.index, example.label, ids, tuple(range(len(ids))), words)


def log_odds_decoder(states: Float[Tensor, "B T D"]) -> LinearDecoder:
    """Logits (0, z), where z is what the second number of the attended state says."""
    says = states[..., 1]
    contributions = torch.stack([torch.zeros_like(says), says], dim=-1)
    return LinearDecoder(contributions, states.new_zeros(2))


def draw_texts(
    subject: HandBuiltSubject, count: int, *, seed: int = 0, mean: int = 20
) -> list[Example]:
    """Random texts of the subject's words, with its own output as label.

    Where the subject has decisive words, each text holds exactly one.
    """
    draw = generator(seed, f"texts of {subject.kind}")
    examples = []
    for index in range(count):
        text = draw_text(draw, mean, cues=subject.cues)
        encoded = subject.encode(Example(index, text, 0))
        label = int(subject.forward(collate([encoded])).predicted)
        examples.append(Example(index, text, label))
    return examples


def draw_text(draw: np.random.Generator, mean: int, *, cues: int = 0, times: int = 1) -> str:
    """A text of mean ± half words; one decisive word, where there are any, as often as said."""
    length = int(draw.integers(mean // 2, mean + mean // 2 + 1))
    ids = draw.integers(cues, VOCABULARY_SIZE, length)
    if cues:
        word = draw.integers(cues)
        ids[draw.integers(length) if times == 1 else draw.permutation(length)[:times]] = word
    return " ".join(f"w{number}" for number in ids)


def _build_subject(
    kind: str, a: NDArray[np.float64], s: NDArray[np.float64], u: NDArray[np.float64], cues: int = 0
) -> HandBuiltSubject:
    table = torch.from_numpy(np.stack([a, s, u], axis=1))
    return HandBuiltSubject(kind, table, inert=kind.startswith("inert"), cues=cues)


@hand_built_subjects.register("honest-peaked")
def honest_peaked(seed: int = 0) -> HandBuiltSubject:
    """One decisive word a text, attention on it."""
    draw = generator(seed, "honest-peaked")
    a, s = draw.normal(0.0, 0.3, VOCABULARY_SIZE), draw.normal(0.0, 0.3, VOCABULARY_SIZE)
    a[:CUE_WORDS] = 5.0
    s[:CUE_WORDS] = 3.0 * np.where(np.arange(CUE_WORDS) % 2, 1.0, -1.0)
    return _build_subject("honest-peaked", a, s, np.zeros(VOCABULARY_SIZE), CUE_WORDS)


@hand_built_subjects.register("honest-graded")
def honest_graded(seed: int = 0) -> HandBuiltSubject:
    """Attention in proportion to what a word says."""
    s = generator(seed, "honest-graded").normal(0.0, 2.0, VOCABULARY_SIZE)
    return _build_subject("honest-graded", np.log(np.abs(s)), s, np.zeros(VOCABULARY_SIZE))


@hand_built_subjects.register("inert-random")
def inert_random(seed: int = 0) -> HandBuiltSubject:
    """Attention drawn at random; the output does not hear it."""
    draw = generator(seed, "inert-random")
    u, a = draw.normal(0.0, 0.4, VOCABULARY_SIZE), draw.normal(0.0, 1.5, VOCABULARY_SIZE)
    return _build_subject("inert-random", a, np.zeros(VOCABULARY_SIZE), u)


@hand_built_subjects.register("inert-proportional")
def inert_proportional(seed: int = 0) -> HandBuiltSubject:
    """Attention in proportion to what a word adds; the output does not hear it."""
    u = generator(seed, "inert-proportional").normal(0.0, 0.4, VOCABULARY_SIZE)
    return _build_subject("inert-proportional", np.log(np.abs(u)), np.zeros(VOCABULARY_SIZE), u)
