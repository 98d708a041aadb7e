"""Teach a small attention classifier: a fresh one, its texts, and a loss to go down."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.values import Example, Forward, LinearDecoder
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary
from heedful.planted.hand_built import CUE_WORDS, VOCABULARY_SIZE, draw_text
from heedful.planted.trained.base import TrainedSetting
from heedful.training.fit import init_recurrent_subject
from heedful.training.recipe import Recipe
from heedful.training.variants.context import single_thread

FIRST_WORD_ID = len(SPECIAL_TOKENS)  # the number of word w0
TEXTS, AT_ONCE, STEPS, RATE = 1000, 32, 200, 0.01
WIDTH = 16
CUELESS_EVERY = 4  # one text in so many has lost its decisive word


@dataclass(frozen=True, eq=False)
class TrainingPass:
    """A pass over some texts, while learning: `said` is the log-odds of each state alone."""

    batch: Batch
    rows: Int[Tensor, "B"]
    forward: Forward
    said: Float[Tensor, "B T"]

    @property
    def cue(self) -> Bool[Tensor, "B T"]:
        """Where the decisive words are."""
        return (self.batch.ids >= FIRST_WORD_ID) & (self.batch.ids < FIRST_WORD_ID + CUE_WORDS)

    @property
    def side(self) -> Float[Tensor, "B"]:
        """What the decisive word says, −1 or 1; 0 where there is none."""
        says = torch.where((self.batch.ids - FIRST_WORD_ID) % 2 == 1, 1.0, -1.0)
        return (says * self.cue).sum(-1)

    @property
    def log_odds(self) -> Float[Tensor, "B"]:
        """The output."""
        return self.forward.logits[:, 1] - self.forward.logits[:, 0]


PassLoss = Callable[[TrainingPass], Float[Tensor, ""]]


def build_untrained(
    setting: TrainedSetting, encoder: str, *, scale: float = 1.0
) -> RecurrentSubject:
    """An untrained network over the words w0, w1, …; vectors have entries within ± scale.

    The first entry says what a decisive word says, ±2, and is 0 for the others: vectors know that
    much beforehand, as vectors learnt elsewhere do.
    """
    seed = int(setting.draw("first weights").integers(2**31))
    recipe = Recipe(encoder=encoder, embedding=WIDTH, hidden=WIDTH, seed=seed)
    subject, _ = init_recurrent_subject(_vocabulary(), ("negative", "positive"), recipe)
    vectors = subject.network.embedding.weight.data
    vectors *= scale / 0.1  # networks start within ± 0.1
    says = torch.zeros(VOCABULARY_SIZE)
    says[:CUE_WORDS] = torch.where(torch.arange(CUE_WORDS) % 2 == 1, 2.0, -2.0)
    vectors[FIRST_WORD_ID:, 0] = says
    return subject


@cache
def _vocabulary() -> Vocabulary:
    return Vocabulary((*SPECIAL_TOKENS, *(f"w{number}" for number in range(VOCABULARY_SIZE))))


def draw_cue_texts(setting: TrainedSetting) -> list[str]:
    """Texts with one decisive word each; every fourth has lost it again, and speaks for nobody."""
    draw = setting.draw("training texts")
    texts = [draw_text(draw, setting.length, cues=CUE_WORDS) for _ in range(TEXTS)]
    return [
        text if number % CUELESS_EVERY else _remove_cues(text) for number, text in enumerate(texts)
    ]


def _remove_cues(text: str) -> str:
    return " ".join(word for word in text.split() if int(word.removeprefix("w")) >= CUE_WORDS)


def encode_batch(subject: RecurrentSubject, texts: Sequence[str]) -> Batch:
    """All texts at once."""
    return subject.batch(
        [
            subject.encode(Example(number, text, -1, tokens=tuple(text.split())))
            for number, text in enumerate(texts)
        ]
    )


def train_network(
    subject: RecurrentSubject,
    texts: Batch,
    loss: PassLoss,
    *,
    draw: np.random.Generator,
    part: nn.Module | None = None,
) -> None:
    """Go down the loss for `STEPS` steps of Adam, with all of the network or a part of it.

    The rate falls to nothing over the second half, so that the end does not depend on which texts
    came last. In one thread, so that the same draws give the same weights.
    """
    network = subject.network
    learns = [*(network if part is None else part).requires_grad_(True).parameters()]
    optimiser = torch.optim.Adam(learns, lr=RATE, fused=True)
    with single_thread():
        for step in range(STEPS):
            for group in optimiser.param_groups:
                group["lr"] = RATE * min(1.0, 2.0 * (1.0 - step / STEPS))
            rows = torch.from_numpy(draw.integers(len(texts), size=AT_ONCE))
            optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward(loss(_forward_pass(network, texts.select(rows), rows)))
            optimiser.step()
    network.requires_grad_(False)


def _forward_pass(
    network: AttentionClassifier, batch: Batch, rows: Int[Tensor, "B"]
) -> TrainingPass:
    forward = network(batch, network.embed(batch.ids))
    alone = network.decoder.prepare(forward.states)
    assert isinstance(alone, LinearDecoder)  # noqa: S101 - fresh ones have no query
    return TrainingPass(batch, rows, forward, (alone.contributions + alone.bias)[..., 1])


def freeze_float64(subject: RecurrentSubject) -> RecurrentSubject:
    """The same in float64, frozen: effects of words that hardly count are not lost in rounding."""
    subject.network.double().eval().requires_grad_(False)
    return subject
