"""Models that read a question with each text: what a word adds depends on the question.

There are three questions, each with roles of the words drawn separately, so that words that matter
for one question are neutral for another. A question has a tone, which adds up to ±0.4 to the
log-odds z; the output is S·tanh(z/S), which grows with z. As z moves by the amount of a word, in
texts whose words speak for one class, the change of the output grows with the amount.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.batch import Batch, Encoded
from heedful.core.errors import DataError
from heedful.core.values import Decoder, Example, QueryDecoder
from heedful.models.protocols import add_tensors
from heedful.planted.closed_form.subjects import QUESTION_PATTERN
from heedful.planted.influence.composed_model import (
    TWO_CLASSES,
    ReadOwn,
    ReadTextSum,
    StateReader,
    TextPlan,
    WordNumbers,
    WordRoles,
    draw_known_text,
    draw_roles,
    weigh_at_random,
    weigh_in_order,
    weigh_in_reverse,
)
from heedful.planted.influence.kind import (
    InfluenceSetting,
    KnownText,
    PlantedModel,
    influence_kind,
)
from heedful.planted.texts import QUESTIONS, TONES
from heedful.planted.word_subject import WordSubject

ASKED = "recurrent with a question"
TONE_SIZE = 0.4
SCALE = 12.0  # S
WeighWords = Callable[[InfluenceSetting, WordRoles], WordNumbers]


@dataclass(frozen=True, eq=False)
class AskedModel(WordSubject):
    """A model of words and a question with two answers.

    Row w of `table` holds, for each question, the log weight of word w and what it adds to the
    log-odds; `tones` is what each tone of a question adds.
    """

    name: str
    table: Float[Tensor, "V K"]
    tones: Float[Tensor, "N"]
    read: StateReader
    labels: tuple[str, ...] = ("no", "yes")
    reads_question = True
    architecture = ASKED

    @property
    def family(self) -> str:
        """The kind, as a model family."""
        return f"planted-{self.name}"

    def fingerprint(self) -> str:
        """sha256 over the kind, the reader, the table and the tones."""
        digest = sha256(repr((self.name, self.read, self.labels)).encode())
        add_tensors(digest, {"table": self.table, "tones": self.tones})
        return digest.hexdigest()

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

    def states(self, batch: Batch, vectors: Float[Tensor, "B T E"]) -> Float[Tensor, "B T 2"]:
        """[score, log-odds] for the question of each text."""
        by_question = vectors.reshape(*batch.ids.shape, QUESTIONS, -1)
        asked = torch.eye(QUESTIONS, dtype=self.table.dtype)[self._query(batch)[:, 0] - 1]
        numbers = torch.einsum("btqk,bq->btk", by_question, asked)
        scores, values, _ = self.read(numbers[..., 0], numbers[..., 1:], batch.mask)
        return torch.cat([scores[..., None], values], dim=-1)

    def state_decoder(self, batch: Batch, states: Float[Tensor, "B T D"]) -> Decoder:
        """∓½·S·tanh(z/S), z the attended log-odds and the tone."""
        tone = self.tones[self._query(batch)[:, 1] - 1]
        sides = torch.tensor([[-0.5], [0.5]], dtype=states.dtype)
        return QueryDecoder(
            states[..., 1:] / SCALE, tone[:, None] / SCALE, sides * SCALE, states.new_zeros(2)
        )

    def _query(self, batch: Batch) -> Int[Tensor, "B 2"]:
        if batch.query is None:
            raise DataError("This subject needs a question for each text; the batch has none.")
        return batch.query


@dataclass(frozen=True, eq=False)
class AskedRoles:
    """The roles of the words for each question."""

    setting: InfluenceSetting
    roles: tuple[WordRoles, ...]

    @cached_property
    def tones(self) -> Float[Tensor, "N"]:
        """What each tone adds to the log-odds."""
        drawn = self.setting.draw("tones").uniform(-TONE_SIZE, TONE_SIZE, TONES)
        return torch.from_numpy(drawn)

    def weigh(self, weigh: WeighWords) -> list[WordNumbers]:
        """Log weights for each question."""
        return [
            weigh(replace(self.setting, kind=f"{self.setting.kind} {number}"), one)
            for number, one in enumerate(self.roles)
        ]

    def model(self, weights: list[WordNumbers], read: StateReader) -> PlantedModel:
        """The model with these log weights, and its texts."""
        columns = [
            column
            for own, one in zip(weights, self.roles, strict=True)
            for column in (own, one.amounts * (2.0 * one.sides - 1.0))
        ]
        table = torch.from_numpy(np.column_stack(columns))
        return PlantedModel(AskedModel(self.setting.kind, table, self.tones, read), self.draw_text)

    def draw_text(self, draw: np.random.Generator, mean: int) -> KnownText:
        """A text for one question; words that matter for other questions are neutral in it."""
        number, tone = int(draw.integers(QUESTIONS)), int(draw.integers(TONES))
        known = draw_known_text(self.roles[number], TextPlan(), draw, mean)
        return replace(known, question=f"q{number} t{tone}")


def _draw_asked_roles(setting: InfluenceSetting) -> AskedRoles:
    roles = (draw_roles(setting, TWO_CLASSES, purpose=f"question {n}") for n in range(QUESTIONS))
    return AskedRoles(setting, tuple(roles))


@influence_kind("questions-asked", "questions", used=True, ranks=True, architecture=ASKED)
def asked(setting: InfluenceSetting) -> PlantedModel:
    """Attention is conditioned on the question: weights are in the order of amounts for it.

    Ranks: a word moves z by its amount for the question that is asked, and weights rise with it.
    Used: without weight on words that matter z is the tone alone.
    """
    drawn = _draw_asked_roles(setting)
    return drawn.model(drawn.weigh(weigh_in_order), ReadOwn())


@influence_kind("questions-same-order", "questions", used=True, ranks=True, architecture=ASKED)
def same_order(setting: InfluenceSetting) -> PlantedModel:
    """Attention ignores the question, and so does the influence: questions change signs only.

    Ranks: a word moves z by its amount, the same for all questions, and weights rise with it.
    Which class it speaks for depends on the question, in the same way for all words.
    Used: without weight on words that matter z is the tone alone.
    """
    one = draw_roles(setting, TWO_CLASSES)
    turned = setting.draw("turned").permutation([True, False, bool(setting.seed % 2)])
    roles = tuple(replace(one, sides=1 - one.sides) if turn else one for turn in turned)
    drawn = AskedRoles(setting, roles)
    return drawn.model([weigh_in_order(setting, one)] * QUESTIONS, ReadOwn())


@influence_kind("questions-ignored", "questions", used=True, ranks=False, architecture=ASKED)
def ignored(setting: InfluenceSetting) -> PlantedModel:
    """Attention ignores the question, while what matters depends on it.

    Weights are the largest that a word has for any question, times 1 to 3 for words that matter
    for none, so that a text is attended to by what stands out, whatever is asked.
    Ranks: words that matter for the question share their weights with those that matter for
    others, and those that matter for none have more than either.
    Used: attention reads the evidence, with other weights it is another.
    """
    drawn = _draw_asked_roles(setting)
    own = np.stack(drawn.weigh(weigh_in_order)).max(0)
    none = np.all([one.neutral for one in drawn.roles], axis=0)
    factor = setting.draw("stands out").uniform(1.0, 3.0, len(own))
    return drawn.model([np.where(none, own.max() + np.log(factor), own)] * QUESTIONS, ReadOwn())


@influence_kind("questions-other", "questions", used=True, ranks=False, architecture=ASKED)
def other(setting: InfluenceSetting) -> PlantedModel:
    """Attention answers another question: it is on words that matter for the next one.

    Ranks: words that matter for the question asked have, for the next one, the weights of neutral
    words or, in texts as they are drawn, of those that matter as often as any other; they are
    lowered by a factor of 4.
    Used: attention reads the evidence, with other weights it is another.
    """
    drawn = _draw_asked_roles(setting)
    weights = drawn.weigh(weigh_in_order)
    turned = [weights[(number + 1) % QUESTIONS] for number in range(QUESTIONS)]
    lowered = [
        np.where(one.neutral, own, own - np.log(4.0))
        for own, one in zip(turned, drawn.roles, strict=True)
    ]
    return drawn.model(lowered, ReadOwn())


@influence_kind("questions-reversed", "questions", used=True, ranks=False, architecture=ASKED)
def reversed_order(setting: InfluenceSetting) -> PlantedModel:
    """For each question weights fall with the amounts, and neutral words have the most.

    Ranks: a word moves z by its amount; the weight falls with it.
    Used: attention reads the evidence, with other weights it is another.
    """
    drawn = _draw_asked_roles(setting)
    return drawn.model(drawn.weigh(weigh_in_reverse), ReadOwn())


@influence_kind("questions-inert-in-order", "questions", used=False, ranks=True, architecture=ASKED)
def inert_in_order(setting: InfluenceSetting) -> PlantedModel:
    """Every state holds the sum for the question; weights are in the right order for it.

    Used: Σα·Σe = Σe for all weights α.
    """
    drawn = _draw_asked_roles(setting)
    return drawn.model(drawn.weigh(weigh_in_order), ReadTextSum())


@influence_kind("questions-inert", "questions", used=False, ranks=False, architecture=ASKED)
def inert(setting: InfluenceSetting) -> PlantedModel:
    """Every state holds the sum for the question; weights are random, lower for what matters.

    Used: Σα·Σe = Σe for all weights α.
    """
    drawn = _draw_asked_roles(setting)
    return drawn.model(drawn.weigh(weigh_at_random), ReadTextSum())
