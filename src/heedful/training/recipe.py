"""The choices of a training as Jain & Wallace (2019) made it: recipe, loss, optimiser, batches."""

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
    """Every choice of a training run; defaults as published: 8 epochs, batches of 32, Adam 1e-3.

    Without `embeddings` word vectors are `drawn`: "uniform" between ±0.1, or "normal" around 0 with
    a deviation of 1, as torch draws them (and the released code of the papers, as recalled).
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
    patience: int | None = None  # epochs without a better dev score that end a training
    drawn: str = "uniform"

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or self.min_df < 1 or self.min_words < 1:
            raise ConfigError(f"epochs, batch, min_df and min_words start at 1; got {self}.")
        if self.drawn not in ("uniform", "normal"):
            raise ConfigError(f"drawn must be uniform or normal, not {self.drawn!r}.")
        if self.patience is not None and self.patience < 1:
            raise ConfigError(f"patience starts at 1; got {self}.")
        if self.max_words < 1 or self.rate < 0 or self.decay < 0:
            raise ConfigError(f"max_words starts at 1, rate and decay at 0; got {self}.")


def loss_for(gold: Sequence[int], classes: int, *, query: bool = False) -> nn.Module:
    """Classes weigh equally: as published for two, by inverse frequency for more.

    With a query every text weighs equally, as published.
    """
    if query:
        return nn.CrossEntropyLoss()
    counts = torch.bincount(torch.tensor(gold), minlength=classes)
    if classes == 2:
        return _BinaryLoss(pos_weight=counts[0] / counts[1])
    return nn.CrossEntropyLoss(weight=len(gold) / (classes * counts.float()))


class _BinaryLoss(nn.BCEWithLogitsLoss):
    """Summed over the batch, on the one output z that the two logits (0, z) share."""

    def __init__(self, pos_weight: Tensor) -> None:
        super().__init__(reduction="sum", pos_weight=pos_weight)

    def forward(self, logits: Tensor, gold: Tensor) -> Tensor:
        return super().forward(logits[:, 1] - logits[:, 0], gold.to(logits.dtype))


def build_recurrent_optimiser(network: AttentionClassifier, recipe: Recipe) -> torch.optim.Adam:
    """AMSGrad; weight decay on everything but attention, and on that too with a query.

    Both as published.
    """
    attention = [] if network.shape.query else list(network.attention.parameters())
    inside = {id(one) for one in attention}
    others = [one for one in network.parameters() if id(one) not in inside]
    groups = [{"params": others, "weight_decay": recipe.decay}]
    if attention:
        groups.append({"params": attention, "weight_decay": 0.0})
    # fused: the dense step over the word vectors is otherwise half of the training time
    return torch.optim.Adam(groups, lr=recipe.rate, amsgrad=True, fused=True)


def shuffled_batches(
    known: Sequence[Encoded], epoch: int, *, batch: int, seed: int
) -> Iterator[list[int]]:
    """Batches of like length: sorted with ± 10 % noise on the lengths, then shuffled."""
    draw = generator(seed, f"training epoch {epoch}")
    lengths = np.array([len(one.ids) for one in known])
    order = np.argsort(lengths * draw.uniform(0.9, 1.1, len(known)), kind="stable")
    cuts = [order[at : at + batch] for at in range(0, len(order), batch)]
    for place in draw.permutation(len(cuts)):
        yield cuts[place].tolist()
