"""Models that read a question with each text: what a word adds depends on the question.

There are three questions. Unless the kind says otherwise, a word matters for one of them, or for
none; texts hold words that matter for the question asked, at least one that matters for the next
question only, and others that matter for none. A question has a tone, which adds up to ±0.4 to the
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
from numpy.typing import NDArray
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
    fit_neutral_amounts,
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
from heedful.planted.texts import QUESTIONS, TONES, VOCABULARY_SIZE
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

    @cached_property
    def matter_for_none(self) -> NDArray[np.bool_]:
        """The words that matter for no question."""
        for_none: NDArray[np.bool_] = np.all([one.neutral for one in self.roles], axis=0)
        return for_none

    def weigh(self, weigh: WeighWords) -> list[WordNumbers]:
        """Log weights for each question."""
        return [
            weigh(replace(self.setting, kind=f"{self.setting.kind} {number}"), one)
            for number, one in enumerate(self.roles)
        ]

    def model(self, weights: list[WordNumbers], read: StateReader) -> PlantedModel:
        """The model with these log weights, and its texts."""
        longest, columns = self.setting.length * 3 // 2, []
        for own, one in zip(weights, self.roles, strict=True):
            amounts = fit_neutral_amounts(one, own, longest=longest).amounts
            columns += [own, amounts * (2.0 * one.sides - 1.0)]
        table = torch.from_numpy(np.column_stack(columns))
        return PlantedModel(AskedModel(self.setting.kind, table, self.tones, read), self.draw_text)

    def draw_text(self, draw: np.random.Generator, mean: int) -> KnownText:
        """A text for one question, with words that matter for the next one."""
        number, tone = int(draw.integers(QUESTIONS)), int(draw.integers(TONES))
        known = draw_known_text(self.roles[number], TextPlan(), draw, mean)
        words = known.text.split()
        free = draw.permutation([at for at in range(len(words)) if at not in known.decisive])
        here, after = self.roles[number], self.roles[(number + 1) % QUESTIONS]
        of_next = np.flatnonzero(here.neutral & ~after.neutral)
        count = int(draw.integers(1, max(1, len(free) // 3) + 1)) if len(of_next) else 0
        for rank, at in enumerate(free.tolist()):
            drawn = draw.choice(of_next if rank < count else np.flatnonzero(self.matter_for_none))
            words[at] = f"w{drawn}"
        return replace(known, text=" ".join(words), question=f"q{number} t{tone}")


def _draw_asked_roles(setting: InfluenceSetting) -> AskedRoles:
    """Roles of disjoint words for each question."""
    drawn = draw_roles(setting, TWO_CLASSES, classes=2 * QUESTIONS)
    neutral = draw_roles(setting, (), purpose="amounts of neutral words").amounts
    roles = []
    for number in range(QUESTIONS):
        own = ~drawn.neutral & (drawn.sides // 2 == number)
        tiers = np.where(own, drawn.tiers, len(TWO_CLASSES))
        amounts = np.where(own, drawn.amounts, neutral)
        roles.append(WordRoles(tiers, drawn.sides % 2, amounts, 2, TWO_CLASSES))
    return AskedRoles(setting, tuple(roles))


@influence_kind("questions-asked", "questions", used=True, ranks=True, architecture=ASKED)
def asked(setting: InfluenceSetting) -> PlantedModel:
    """Attention is conditioned on the question: weights are in the order of amounts for it.

    Ranks: a word moves z by its amount for the question that is asked, and weights rise with it.
    Used: without weight on words that matter z is nearly the tone alone.
    """
    drawn = _draw_asked_roles(setting)
    return drawn.model(drawn.weigh(weigh_in_order), ReadOwn())


@influence_kind("questions-same-order", "questions", used=True, ranks=True, architecture=ASKED)
def same_order(setting: InfluenceSetting) -> PlantedModel:
    """Attention ignores the question, and so does the influence: questions differ in sign only.

    The second asks for the opposite of the first and the third, as "is it bad" after "is it good".
    Ranks: a word moves z by its amount, the same for all questions, and weights rise with it.
    Used: without weight on words that matter z is nearly the tone alone.
    """
    one = draw_roles(setting, TWO_CLASSES)
    drawn = AskedRoles(setting, (one, replace(one, sides=1 - one.sides), one))
    return drawn.model([weigh_in_order(setting, one)] * QUESTIONS, ReadOwn())


@influence_kind("questions-ignored", "questions", used=True, ranks=False, architecture=ASKED)
def ignored(setting: InfluenceSetting) -> PlantedModel:
    """Attention ignores the question, while what matters depends on it.

    A word has the same weight whatever is asked: random for words that matter for some question,
    and 2 to 6 times the largest of these for words that matter for none but stand out.
    Ranks: words that matter for the question have less weight than all that matter for none, and
    compare at random with those that matter for another question.
    Used: attention reads the evidence, with other weights it is another.
    """
    drawn = _draw_asked_roles(setting)
    draw = setting.draw("weights for all questions")
    some = draw.uniform(-2.0, 0.0, VOCABULARY_SIZE)
    stand_out = np.log(draw.uniform(2.0, 6.0, VOCABULARY_SIZE))
    weights = np.where(drawn.matter_for_none, stand_out, some)
    return drawn.model([weights] * QUESTIONS, ReadOwn())


@influence_kind("questions-other", "questions", used=True, ranks=False, architecture=ASKED)
def other(setting: InfluenceSetting) -> PlantedModel:
    """Attention answers another question: it is on words that matter for the next one.

    Ranks: every text has such a word, and it has at least twice the weight of any that matters for
    the question asked. Those have random weights, a third of words that matter for no question.
    Used: attention reads the evidence, with other weights it is another.
    """
    drawn = _draw_asked_roles(setting)
    weights = drawn.weigh(weigh_in_order)
    turned = [
        weights[(number + 1) % QUESTIONS] - np.log(3.0) * ~own.neutral
        for number, own in enumerate(drawn.roles)
    ]
    return drawn.model(turned, ReadOwn())


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
