"""A subject that reads a question beside each text: what words are to it depends on what is asked.

For every question it is one of the subjects without one, under the decoder of the 2019 papers'
question-answering model: what attention gathers, z, becomes f(z) = S·tanh(z/S), the log-odds of the
question's own two answers. Answers to other questions have next to no chance.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.batch import Batch, Encoded, collate
from heedful.core.errors import DataError
from heedful.core.values import Example, Forward, QueryDecoder
from heedful.numerics.tensor.distributions import masked_softmax
from heedful.planted.closed_form.composed_subject import ComposedSubject
from heedful.planted.hand_built import VOCABULARY_SIZE, encode_word_ids

QUESTIONS, TONES = 3, 8  # a question is "q1 t5": what is asked, and in which tone
QUESTION_WORD_SHIFT = 133  # word w is to question k what word w + 133·k is to question 0
SATURATING_INPUT = 20.0  # tanh of it is 1 to the last digit
QUESTION_PATTERN = re.compile(f"q([0-{QUESTIONS - 1}]) t([0-{TONES - 1}])")
ANSWER_MARGIN = 3.0  # half of what a question's own answers lie above the others, in logits


@dataclass(frozen=True, eq=False)
class QuestionSubject:
    """One composed subject for each question, and what a question's tone adds to z."""

    parts: tuple[ComposedSubject, ...]
    scale: float
    tones: Float[Tensor, "N"] = field(
        default_factory=lambda: torch.zeros(TONES, dtype=torch.float64)
    )
    reads_question = True
    architecture = "recurrent with a question"

    @property
    def family(self) -> str:
        """The kind of planted truth."""
        return self.parts[0].family.rpartition(" ")[0]

    @property
    def labels(self) -> tuple[str, ...]:
        """Two answers to every question."""
        return tuple(f"{side}{k}" for k in range(len(self.parts)) for side in ("no", "yes"))

    def fingerprint(self) -> str:
        """sha256 over all parts, the scale and the tones."""
        digest = sha256(f"{self.scale}".encode() + self.tones.numpy().tobytes())
        for part in self.parts:
            digest.update(part.fingerprint().encode())
        return digest.hexdigest()

    @cached_property
    def table(self) -> Float[Tensor, "V _"]:
        """Of every word its numbers under each question, side by side."""
        return torch.cat(
            [
                part.table.roll(-QUESTION_WORD_SHIFT * number, 0)
                for number, part in enumerate(self.parts)
            ],
            dim=1,
        )

    def encode(self, example: Example) -> Encoded:
        """Words are called w0, w1, …; a question is "q1 t5"."""
        one = encode_word_ids(example)
        asked = QUESTION_PATTERN.fullmatch(example.pair or "")
        if asked is None:
            raise DataError(
                f"This subject answers questions such as 'q1 t5', up to q{QUESTIONS - 1} and "
                f"t{TONES - 1}; row {example.index} has {example.pair!r}."
            )
        query = 1 + int(asked[1]), 1 + int(asked[2])  # 0 is padding
        return replace(one, query=query, question=example.pair)

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Pad with word 0, masked out."""
        return collate(encoded)

    def embed(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """The numbers of each word, under all questions."""
        return self.table[batch.ids]

    def forward(self, batch: Batch, embedded: Float[Tensor, "B T E"] | None = None) -> Forward:
        """Read the states that the question asks for, attend by their first number."""
        vectors = self.embed(batch) if embedded is None else embedded
        mine = self._question_one_hot(batch)
        by_question = vectors.reshape(*batch.ids.shape, len(self.parts), -1)
        states = self.parts[0].read(torch.einsum("btkc,bk->btc", by_question, mine), batch.mask)
        weights = masked_softmax(states[..., 0], batch.mask)
        return Forward(self._decoder(batch, states)(weights), weights, states)

    def decoder(self, batch: Batch, forward: Forward) -> QueryDecoder:
        """Not linear: f(z) between the two answers, and the others far below."""
        return self._decoder(batch, forward.states)

    def _question_one_hot(self, batch: Batch) -> Float[Tensor, "B K"]:
        """1 at the question that is asked."""
        return torch.eye(len(self.parts), dtype=self.table.dtype)[_query(batch)[:, 0] - 1]

    def _decoder(self, batch: Batch, states: Float[Tensor, "B T D"]) -> QueryDecoder:
        many, mine = len(self.parts), self._question_one_hot(batch)
        says = states[..., 1, None] * mine[:, None] / self.scale
        tone = self.tones[_query(batch)[:, 1] - 1, None] * mine / self.scale
        which = SATURATING_INPUT * (2 * mine - 1)
        sides = torch.tensor([[-0.5], [0.5]], dtype=states.dtype)
        eye = torch.eye(many, dtype=states.dtype)
        weight = torch.cat(
            [
                torch.kron(eye, sides * self.scale),
                torch.kron(eye, torch.full_like(sides, ANSWER_MARGIN)),
            ],
            dim=1,
        )
        return QueryDecoder(
            torch.cat([says, torch.zeros_like(says)], dim=-1),
            torch.cat([tone, which], dim=-1),
            weight,
            states.new_zeros(2 * many),
        )


def _query(batch: Batch) -> Int[Tensor, "B 2"]:
    if batch.query is None:
        raise DataError("This subject answers questions; the batch has none.")
    return batch.query


def reword_for_question(text: str, question: int) -> str:
    """A text written for question 0, in words that are the same to another question."""
    ids = (int(word.removeprefix("w")) for word in text.split())
    return " ".join(
        f"w{(number - QUESTION_WORD_SHIFT * question) % VOCABULARY_SIZE}" for number in ids
    )
