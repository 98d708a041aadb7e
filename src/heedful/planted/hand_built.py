"""Hand-built subjects whose truth is known, to test every check on.

A word has three numbers: its attention score (a), its own contribution to the log-odds (s), and
what it adds to the text as a whole (u). Honest subjects decode the attended s, so attention
decides. The states of inert subjects have two blocks: attention reads a word-wise one, the decoder
reads Σ u, which is equal at every position of a text, so the output is the same for all weights.

| kind | used | ranks |
| --- | --- | --- |
| honest-peaked: one decisive word, attention on it | yes | yes |
| honest-graded: attention in proportion to what a word contributes | yes | yes |
| inert-random: attention drawn at random | no | no |
| inert-proportional: attention in proportion to what a word adds | no | yes |
"""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.core.batch import Batch, collate
from heedful.core.registry import Registry
from heedful.core.rng import generator
from heedful.core.values import Example
from heedful.models.protocols import add_tensors
from heedful.planted.texts import CUE_WORDS, VOCABULARY_SIZE, draw_text
from heedful.planted.word_subject import WordSubject

hand_built_subjects = Registry("planted subject")


@dataclass(frozen=True, eq=False)
class HandBuiltSubject(WordSubject):
    """A hand-built subject: row w of `table` holds (a, s, u) of word w."""

    kind: str
    table: Float[Tensor, "V 3"]
    inert: bool
    cues: int = 0
    labels: tuple[str, ...] = ("negative", "positive")

    @property
    def family(self) -> str:
        """The kind, as a model family."""
        return f"planted-{self.kind}"

    def fingerprint(self) -> str:
        """sha256 over the kind, the table and its precision, and what is read from it."""
        digest = sha256(repr((self.family, self.inert, self.cues, self.labels)).encode())
        add_tensors(digest, {"table": self.table})
        return digest.hexdigest()

    def states(self, batch: Batch, vectors: Float[Tensor, "B T E"]) -> Float[Tensor, "B T 2"]:
        """[score, log-odds], where the log-odds are the word's own or the sum over the text."""
        a, s, u = vectors.unbind(-1)
        whole = (u * batch.mask).sum(-1, keepdim=True).expand_as(u)
        return torch.stack([a, whole if self.inert else s], dim=-1)


def draw_texts(
    subject: HandBuiltSubject, count: int, *, seed: int = 0, mean: int = 20
) -> list[Example]:
    """Random texts, labelled with the subject's own output.

    If the subject has cues, each text contains exactly one.
    """
    draw = generator(seed, f"texts of {subject.kind}")
    examples = []
    for index in range(count):
        text = draw_text(draw, mean, cues=subject.cues)
        encoded = subject.encode(Example(index, text, 0))
        label = int(subject.forward(collate([encoded])).predicted)
        examples.append(Example(index, text, label))
    return examples


def _build_subject(
    kind: str, a: NDArray[np.float64], s: NDArray[np.float64], u: NDArray[np.float64], cues: int = 0
) -> HandBuiltSubject:
    table = torch.from_numpy(np.stack([a, s, u], axis=1))
    return HandBuiltSubject(kind, table, inert=kind.startswith("inert"), cues=cues)


@hand_built_subjects.register("honest-peaked")
def honest_peaked(seed: int = 0) -> HandBuiltSubject:
    """One decisive word per text, with attention on it."""
    draw = generator(seed, "honest-peaked")
    a, s = draw.normal(0.0, 0.3, VOCABULARY_SIZE), draw.normal(0.0, 0.3, VOCABULARY_SIZE)
    a[:CUE_WORDS] = 5.0
    s[:CUE_WORDS] = 3.0 * np.where(np.arange(CUE_WORDS) % 2, 1.0, -1.0)
    return _build_subject("honest-peaked", a, s, np.zeros(VOCABULARY_SIZE), CUE_WORDS)


@hand_built_subjects.register("honest-graded")
def honest_graded(seed: int = 0) -> HandBuiltSubject:
    """Attention in proportion to what a word contributes."""
    s = generator(seed, "honest-graded").normal(0.0, 2.0, VOCABULARY_SIZE)
    return _build_subject("honest-graded", np.log(np.abs(s)), s, np.zeros(VOCABULARY_SIZE))


@hand_built_subjects.register("inert-random")
def inert_random(seed: int = 0) -> HandBuiltSubject:
    """Attention drawn at random; the output does not depend on it."""
    draw = generator(seed, "inert-random")
    u, a = draw.normal(0.0, 0.4, VOCABULARY_SIZE), draw.normal(0.0, 1.5, VOCABULARY_SIZE)
    return _build_subject("inert-random", a, np.zeros(VOCABULARY_SIZE), u)


@hand_built_subjects.register("inert-proportional")
def inert_proportional(seed: int = 0) -> HandBuiltSubject:
    """Attention in proportion to what a word adds; the output does not depend on it."""
    u = generator(seed, "inert-proportional").normal(0.0, 0.4, VOCABULARY_SIZE)
    return _build_subject("inert-proportional", np.log(np.abs(u)), np.zeros(VOCABULARY_SIZE), u)
