"""Teach a small attention classifier: a fresh one, its texts, and a loss to go down."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.values import Example, Forward
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import SPECIALS, Vocabulary
from heedful.planted.hand_built import CUES, WORDS, draw_text
from heedful.planted.trained.base import Setting
from heedful.training.fit import untrained
from heedful.training.recipe import Recipe
from heedful.training.variants.context import one_thread

FIRST = len(SPECIALS)  # the number of word w0
TEXTS, AT_ONCE, STEPS, RATE = 1000, 32, 200, 0.01
WIDTH = 16
BARE = 4  # one text in so many has lost its decisive word


@dataclass(frozen=True, eq=False)
class Lesson:
    """A pass over some texts, while learning: `said` is the log-odds of each state alone."""

    batch: Batch
    rows: Int[Tensor, "B"]
    forward: Forward
    said: Float[Tensor, "B T"]

    @property
    def cue(self) -> Bool[Tensor, "B T"]:
        """Where the decisive words are."""
        return (self.batch.ids >= FIRST) & (self.batch.ids < FIRST + CUES)

    @property
    def side(self) -> Float[Tensor, "B"]:
        """What the decisive word says, −1 or 1; 0 where there is none."""
        says = torch.where((self.batch.ids - FIRST) % 2 == 1, 1.0, -1.0)
        return (says * self.cue).sum(-1)

    @property
    def log_odds(self) -> Float[Tensor, "B"]:
        """The output."""
        return self.forward.logits[:, 1] - self.forward.logits[:, 0]


Loss = Callable[[Lesson], Float[Tensor, ""]]


def fresh(setting: Setting, encoder: str, *, scale: float = 1.0) -> RecurrentSubject:
    """An untrained network over the words w0, w1, …; vectors have entries within ± scale.

    The first entry says what a decisive word says, ±2, and is 0 for the others: vectors know that
    much beforehand, as vectors learnt elsewhere do.
    """
    seed = int(setting.draw("first weights").integers(2**31))
    recipe = Recipe(encoder=encoder, embedding=WIDTH, hidden=WIDTH, seed=seed)
    subject, _ = untrained(_vocabulary(), ("negative", "positive"), recipe)
    vectors = subject.network.embedding.weight.data
    vectors *= scale / 0.1  # networks start within ± 0.1
    says = torch.zeros(WORDS)
    says[:CUES] = torch.where(torch.arange(CUES) % 2 == 1, 2.0, -2.0)
    vectors[FIRST:, 0] = says
    return subject


@cache
def _vocabulary() -> Vocabulary:
    return Vocabulary((*SPECIALS, *(f"w{number}" for number in range(WORDS))))


def decisive_texts(setting: Setting) -> list[str]:
    """Texts with one decisive word each; every fourth has lost it again, and speaks for nobody."""
    draw = setting.draw("training texts")
    texts = [draw_text(draw, setting.length, cues=CUES) for _ in range(TEXTS)]
    return [text if number % BARE else _bare(text) for number, text in enumerate(texts)]


def _bare(text: str) -> str:
    return " ".join(word for word in text.split() if int(word.removeprefix("w")) >= CUES)


def batch_of(subject: RecurrentSubject, texts: Sequence[str]) -> Batch:
    """All texts at once."""
    return subject.batch(
        [
            subject.encode(Example(number, text, -1, tokens=tuple(text.split())))
            for number, text in enumerate(texts)
        ]
    )


def teach(
    subject: RecurrentSubject,
    texts: Batch,
    loss: Loss,
    *,
    draw: np.random.Generator,
    part: nn.Module | None = None,
) -> None:
    """Go down the loss for `STEPS` steps of Adam, with all of the network or a part of it.

    The rate falls to nothing over the second half, so that the end does not depend on which texts
    came last. In one thread, so that the same draws give the same weights.
    """
    network = subject.network
    assert isinstance(network, AttentionClassifier)  # noqa: S101 - fresh ones have no query
    learns = [*(network if part is None else part).requires_grad_(True).parameters()]
    optimiser = torch.optim.Adam(learns, lr=RATE, fused=True)
    with one_thread():
        for step in range(STEPS):
            for group in optimiser.param_groups:
                group["lr"] = RATE * min(1.0, 2.0 * (1.0 - step / STEPS))
            rows = torch.from_numpy(draw.integers(len(texts), size=AT_ONCE))
            optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward(loss(_lesson(network, texts.chosen(rows), rows)))
            optimiser.step()
    network.requires_grad_(False)


def _lesson(network: AttentionClassifier, batch: Batch, rows: Int[Tensor, "B"]) -> Lesson:
    forward = network(network.embed(batch.ids), batch.present, batch.mask)
    alone = network.linear_decoder(forward.states)
    return Lesson(batch, rows, forward, (alone.contributions + alone.bias)[..., 1])


def finished(subject: RecurrentSubject) -> RecurrentSubject:
    """The same in float64, frozen: effects of words that hardly count are not lost in rounding."""
    subject.network.double().eval().requires_grad_(False)
    return subject
