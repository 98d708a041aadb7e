"""Subjects built from a table of numbers per word, without and with a question."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.core.batch import Batch, Encoded
from heedful.core.errors import DataError
from heedful.core.values import Decoder, Example, QueryDecoder
from heedful.planted.case import Setting, WordNumbers
from heedful.planted.texts import QUESTION_WORD_SHIFT, QUESTIONS, TONES
from heedful.planted.word_subject import WordSubject, log_odds_decoder

Mask = Bool[Tensor, "B T"]
StateReader = Callable[[Float[Tensor, "B T K"], Mask], Float[Tensor, "B T D"]]
"""From the words' numbers to states: [score, log-odds, log-odds that bypass attention if any]."""
SATURATING_INPUT = 20.0  # tanh of it is 1 to the last digit
QUESTION_PATTERN = re.compile(f"q([0-{QUESTIONS - 1}]) t([0-{TONES - 1}])")
ANSWER_MARGIN = 3.0  # half the distance in logits from a question's answers to all others


@dataclass(frozen=True, eq=False)
class ComposedSubject(WordSubject):
    """Logits (0, z): z is the attended log-odds of the states plus those that bypass attention."""

    setting: Setting
    table: Float[Tensor, "V K"]
    read: StateReader
    labels: tuple[str, ...] = ("negative", "positive")

    @property
    def family(self) -> str:
        """The kind, as a model family."""
        return f"planted-{self.setting.kind}"

    def fingerprint(self) -> str:
        """sha256 over the setting and the table."""
        return sha256(f"{self.setting}".encode() + self.table.numpy().tobytes()).hexdigest()

    def states(self, batch: Batch, vectors: Float[Tensor, "B T K"]) -> Float[Tensor, "B T D"]:
        """The states as `read` computes them."""
        return self.read(vectors, batch.mask)

    def state_decoder(self, batch: Batch, states: Float[Tensor, "B T D"]) -> Decoder:
        """Linear in the attended state, plus the log-odds that bypass attention if any."""
        bypasses = states.shape[-1] > 2
        return BypassDecoder(states) if bypasses else super().state_decoder(batch, states)


@dataclass(frozen=True, slots=True, eq=False)
class BypassDecoder:
    """Log-odds of the attended state plus those that bypass attention, equal at all positions."""

    states: Float[Tensor, "B T D"]

    def __call__(self, attention: Float[Tensor, "*K B T"]) -> Float[Tensor, "*K B C"]:
        attended: Tensor = log_odds_decoder(self.states)(attention)
        bypass = self.states[:, 0, 2]
        return attended + torch.stack([torch.zeros_like(bypass), bypass], dim=-1)


def compose_subject(setting: Setting, read: StateReader, *columns: WordNumbers) -> ComposedSubject:
    """A subject from columns of numbers, one number per word."""
    return ComposedSubject(setting, torch.from_numpy(np.stack(columns, axis=1)), read)


def read_per_word(vectors: Float[Tensor, "B T 2"], _: Mask) -> Float[Tensor, "B T 2"]:
    """A state is the score and the log-odds of its own word."""
    return vectors


def read_text_sum(vectors: Float[Tensor, "B T 2"], mask: Mask) -> Float[Tensor, "B T 2"]:
    """The log-odds of every state are the sum over the text."""
    score, adds = vectors.unbind(-1)
    return torch.stack([score, sum_over_text(adds, mask)], dim=-1)


def sum_over_text(adds: Float[Tensor, "B T"], mask: Mask) -> Float[Tensor, "B T"]:
    """The sum over each text's words, at every position."""
    return (adds * mask).sum(-1, keepdim=True).expand_as(adds)


def sum_neighbours(values: Float[Tensor, "B T"], mask: Mask) -> Float[Tensor, "B T"]:
    """The sum of the values one position before and one after."""
    inside = torch.nn.functional.pad(values * mask, (1, 1))
    return inside[:, :-2] + inside[:, 2:]


@dataclass(frozen=True, eq=False)
class QuestionSubject(WordSubject):
    """A subject that reads a question with each text; the role of a word depends on the question.

    For every question it is one of `parts`, under the decoder of the question-answering model of
    the 2019 papers: the attended z becomes f(z) = S·tanh(z/S), the log-odds of the question's own
    two answers, where S is `scale`. Answers to other questions have almost no probability.
    `tones` holds what each tone of a question adds to z.
    """

    parts: tuple[ComposedSubject, ...]
    scale: float
    tones: Float[Tensor, "N"] = field(
        default_factory=lambda: torch.zeros(TONES, dtype=torch.float64)
    )
    reads_question = True
    architecture = "recurrent with a question"

    @property
    def family(self) -> str:
        """The kind, as a model family."""
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
    def table(self) -> Float[Tensor, "V _"]:  # type: ignore[override]
        """The numbers of every word under each question, concatenated."""
        parts = enumerate(self.parts)
        return torch.cat([one.table.roll(-QUESTION_WORD_SHIFT * k, 0) for k, one in parts], dim=1)

    def encode(self, example: Example) -> Encoded:
        """Encode words by their number; a question is a string such as "q1 t5"."""
        match = QUESTION_PATTERN.fullmatch(example.pair or "")
        if match is None:
            raise DataError(
                f"The question must be a string such as 'q1 t5', up to q{QUESTIONS - 1} and "
                f"t{TONES - 1}; row {example.index} has {example.pair!r}."
            )
        query = 1 + int(match[1]), 1 + int(match[2])  # 0 is padding
        return replace(super().encode(example), query=query, question=example.pair)

    def states(self, batch: Batch, vectors: Float[Tensor, "B T E"]) -> Float[Tensor, "B T D"]:
        """The states of the part that the question selects."""
        by_question = vectors.reshape(*batch.ids.shape, len(self.parts), -1)
        one_hot = self._question_one_hot(batch)
        return self.parts[0].read(torch.einsum("btkc,bk->btc", by_question, one_hot), batch.mask)

    def _question_one_hot(self, batch: Batch) -> Float[Tensor, "B K"]:
        return torch.eye(len(self.parts), dtype=self.table.dtype)[_query(batch)[:, 0] - 1]

    def state_decoder(self, batch: Batch, states: Float[Tensor, "B T D"]) -> QueryDecoder:
        """Not linear: f(z) between the question's two answers, all others far below."""
        one_hot = self._question_one_hot(batch)
        log_odds = states[..., 1, None] * one_hot[:, None] / self.scale
        tone = self.tones[_query(batch)[:, 1] - 1, None] * one_hot / self.scale
        selector = SATURATING_INPUT * (2 * one_hot - 1)
        sides = torch.tensor([[-0.5], [0.5]], dtype=states.dtype)
        eye = torch.eye(len(self.parts), dtype=states.dtype)
        margin = torch.full_like(sides, ANSWER_MARGIN)
        weight = torch.cat([torch.kron(eye, sides * self.scale), torch.kron(eye, margin)], dim=1)
        return QueryDecoder(
            torch.cat([log_odds, torch.zeros_like(log_odds)], dim=-1),
            torch.cat([tone, selector], dim=-1),
            weight,
            states.new_zeros(2 * len(self.parts)),
        )


def _query(batch: Batch) -> Int[Tensor, "B 2"]:
    if batch.query is None:
        raise DataError("This subject needs a question for each text; the batch has none.")
    return batch.query
