"""Train a small attention classifier: the untrained network, its texts, and Adam on a loss."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.rng import generator
from heedful.core.values import Example, Forward, LinearDecoder
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.recurrent.vocabulary import SPECIAL_TOKENS, Vocabulary
from heedful.planted.texts import CUE_WORDS, VOCABULARY_SIZE, WORDS, draw_text
from heedful.training.fit import init_recurrent_subject
from heedful.training.recipe import Recipe
from heedful.training.variants.variants import single_thread

TRAINED_VERSION = 1  # raise it with every change of a kind, a text or a truth
TRAINED_LENGTHS = (10, 20)  # mean number of words that a small BiLSTM learns in a second
FIRST_WORD_ID = len(SPECIAL_TOKENS)  # id of word w0
TEXTS, BATCH_SIZE, STEPS, LEARNING_RATE = 1000, 32, 200, 0.01
WIDTH = 16
CUELESS_EVERY = 4  # one text in so many has its cue removed


@dataclass(frozen=True)
class TrainedSetting:
    """What determines the weights of a trained subject; each attempt has its own draws."""

    kind: str
    length: int
    seed: int
    attempt: int = 0

    def draw(self, purpose: str) -> np.random.Generator:
        """The random stream for one purpose."""
        key = f"trained {TRAINED_VERSION} {self.kind} {self.length} {purpose}"
        return generator(self.seed, key, self.attempt)


@dataclass(frozen=True, eq=False)
class TrainingPass:
    """A forward pass over a batch in training; `by_state` are the log-odds of each state alone."""

    batch: Batch
    rows: Int[Tensor, "B"]
    forward: Forward
    by_state: Float[Tensor, "B T"]

    @property
    def cue(self) -> Bool[Tensor, "B T"]:
        """Where the cues are."""
        return (self.batch.ids >= FIRST_WORD_ID) & (self.batch.ids < FIRST_WORD_ID + CUE_WORDS)

    @property
    def side(self) -> Float[Tensor, "B"]:
        """The sign of the cue, −1 or 1; 0 for texts without one."""
        signs = torch.where((self.batch.ids - FIRST_WORD_ID) % 2 == 1, 1.0, -1.0)
        return (signs * self.cue).sum(-1)

    @property
    def log_odds(self) -> Float[Tensor, "B"]:
        """The output."""
        return self.forward.logits[:, 1] - self.forward.logits[:, 0]


PassLoss = Callable[[TrainingPass], Float[Tensor, ""]]


def build_untrained(
    setting: TrainedSetting, encoder: str, *, scale: float = 1.0
) -> RecurrentSubject:
    """An untrained network over the words w0, w1, …; embeddings have entries within ± scale.

    The first entry is ±2 for cues, by their sign, and 0 for other words: embeddings hold that much
    before training, as pretrained embeddings do.
    """
    seed = int(setting.draw("first weights").integers(2**31))
    recipe = Recipe(encoder=encoder, embedding=WIDTH, hidden=WIDTH, seed=seed)
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *WORDS))
    subject, _ = init_recurrent_subject(vocabulary, ("negative", "positive"), recipe)
    vectors = subject.network.embedding.weight.data
    vectors *= scale / 0.1  # networks are initialised within ± 0.1
    signs = torch.zeros(VOCABULARY_SIZE)
    signs[:CUE_WORDS] = torch.where(torch.arange(CUE_WORDS) % 2 == 1, 2.0, -2.0)
    vectors[FIRST_WORD_ID:, 0] = signs
    return subject


def draw_cue_texts(setting: TrainedSetting) -> list[str]:
    """Texts with one cue each; it is removed again from every fourth text."""
    draw = setting.draw("training texts")
    texts = [draw_text(draw, setting.length, cues=CUE_WORDS) for _ in range(TEXTS)]
    return [
        text if number % CUELESS_EVERY else _remove_cues(text) for number, text in enumerate(texts)
    ]


def _remove_cues(text: str) -> str:
    return " ".join(word for word in text.split() if int(word.removeprefix("w")) >= CUE_WORDS)


def encode_batch(subject: RecurrentSubject, texts: Sequence[str]) -> Batch:
    """All texts in one batch."""
    examples = (Example(i, text, -1, tokens=tuple(text.split())) for i, text in enumerate(texts))
    return subject.batch([subject.encode(one) for one in examples])


def train_network(
    subject: RecurrentSubject,
    texts: Batch,
    loss: PassLoss,
    *,
    draw: np.random.Generator,
    part: nn.Module | None = None,
) -> None:
    """Minimise the loss for `STEPS` steps of Adam, for the whole network or a part of it.

    The learning rate falls to 0 over the second half, so that the result does not depend on which
    texts came last. Runs in one thread, so that the same draws give the same weights.
    """
    network = subject.network
    parameters = [*(network if part is None else part).requires_grad_(True).parameters()]
    optimiser = torch.optim.Adam(parameters, lr=LEARNING_RATE, fused=True)
    with single_thread():
        for step in range(STEPS):
            for group in optimiser.param_groups:
                group["lr"] = LEARNING_RATE * min(1.0, 2.0 * (1.0 - step / STEPS))
            rows = torch.from_numpy(draw.integers(len(texts), size=BATCH_SIZE))
            optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward(loss(_forward_pass(network, texts.select(rows), rows)))
            optimiser.step()
    network.requires_grad_(False)


def _forward_pass(
    network: AttentionClassifier, batch: Batch, rows: Int[Tensor, "B"]
) -> TrainingPass:
    forward = network(batch, network.embed(batch.ids))
    decoder = network.decoder.prepare(forward.states)
    assert isinstance(decoder, LinearDecoder)  # noqa: S101 - untrained ones have no query
    return TrainingPass(batch, rows, forward, (decoder.contributions + decoder.bias)[..., 1])


def freeze_float64(subject: RecurrentSubject) -> RecurrentSubject:
    """The frozen network in float64, so that small effects of words are not lost in rounding."""
    subject.network.double().eval().requires_grad_(False)
    return subject
