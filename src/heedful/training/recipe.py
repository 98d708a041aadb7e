"""Training recipes: attention classifiers as in Jain & Wallace (2019), and fine-tuning."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from heedful.core.batch import Encoded
from heedful.core.errors import ConfigError
from heedful.core.rng import generator
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.vocabulary import WordTokenizer


@dataclass(frozen=True)
class Recipe:
    """How an attention classifier is trained; the defaults are the published ones.

    Without a file of `embeddings` the word vectors are `drawn`: "uniform" between ±0.1, or "normal"
    with mean 0 and standard deviation 1, which is torch's default. `patience` is the number of
    epochs without a better dev score that ends training.
    """

    encoder: str = "bilstm"
    attention: str = "additive"
    embeddings: str | None = None
    embedding: int = 300
    hidden: int = 128
    epochs: int = 8
    batch: int = 32
    rate: float = 1e-3
    decay: float = 1e-5
    seed: int = 0
    min_df: int = 1
    min_words: int = 1
    max_words: int = 1000
    tokenizer: WordTokenizer = field(default_factory=WordTokenizer)
    patience: int | None = None
    drawn: str = "uniform"

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch, self.min_df, self.min_words, self.max_words) < 1:
            raise ConfigError(
                f"epochs, batch, min_df, min_words and max_words must be at least 1; got {self}."
            )
        if self.drawn not in ("uniform", "normal"):
            raise ConfigError(f"drawn must be uniform or normal, not {self.drawn!r}.")
        if self.patience is not None and self.patience < 1:
            raise ConfigError(f"patience must be at least 1; got {self}.")
        if self.rate < 0 or self.decay < 0:
            raise ConfigError(f"rate and decay must not be negative; got {self}.")


@dataclass(frozen=True)
class FineTuning:
    """How a transformer is fine-tuned; `encoder` is a transformers folder or a hub id.

    The learning rate rises over a share `warmup` of the steps, then falls to zero by the last.
    """

    encoder: str
    epochs: int = 3
    batch: int = 32
    rate: float = 5e-5
    decay: float = 0.01
    warmup: float = 0.1
    clip: float = 1.0
    max_tokens: int = 512
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or self.max_tokens < 8:
            raise ConfigError(
                f"epochs and batch must be at least 1, max_tokens at least 8; got {self}."
            )
        if not (self.rate >= 0 and self.decay >= 0 and self.clip > 0 and 0 <= self.warmup <= 1):
            raise ConfigError(
                "rate and decay must not be negative, clip must be above 0 and warmup between "
                f"0 and 1; got {self}."
            )


def loss_for(gold: Sequence[int], classes: int, *, query: bool = False) -> nn.Module:
    """A loss with balanced classes: as published for two, by inverse frequency for more.

    With a query every text has equal weight, as published.
    """
    if query:
        return nn.CrossEntropyLoss()
    counts = torch.bincount(torch.tensor(gold), minlength=classes)
    if classes == 2:
        return _BinaryLoss(pos_weight=counts[0] / counts[1])
    return nn.CrossEntropyLoss(weight=len(gold) / (classes * counts.float()))


class _BinaryLoss(nn.BCEWithLogitsLoss):
    """Binary cross-entropy of z, where (0, z) are the two logits, summed over the batch."""

    def __init__(self, pos_weight: Tensor) -> None:
        super().__init__(reduction="sum", pos_weight=pos_weight)

    def forward(self, logits: Tensor, gold: Tensor) -> Tensor:
        return super().forward(logits[:, 1] - logits[:, 0], gold.to(logits.dtype))


def build_recurrent_optimiser(network: AttentionClassifier, recipe: Recipe) -> torch.optim.Adam:
    """AMSGrad with weight decay on all weights, except attention without a query, as published."""
    attention = [] if network.shape.query else list(network.attention.parameters())
    excluded = {id(one) for one in attention}
    others = [one for one in network.parameters() if id(one) not in excluded]
    groups = [{"params": others, "weight_decay": recipe.decay}]
    if attention:
        groups.append({"params": attention, "weight_decay": 0.0})
    # fused: the dense step over the word vectors is otherwise half of the training time
    return torch.optim.Adam(groups, lr=recipe.rate, amsgrad=True, fused=True)


def shuffled_batches(
    encoded: Sequence[Encoded], epoch: int, *, batch: int, seed: int
) -> Iterator[list[int]]:
    """Batches of similar length: texts sorted with ± 10 % noise on lengths, batches shuffled."""
    draw = generator(seed, f"training epoch {epoch}")
    lengths = np.array([len(one.ids) for one in encoded])
    order = np.argsort(lengths * draw.uniform(0.9, 1.1, len(encoded)), kind="stable")
    cuts = [order[at : at + batch] for at in range(0, len(order), batch)]
    for index in draw.permutation(len(cuts)):
        yield cuts[index].tolist()
