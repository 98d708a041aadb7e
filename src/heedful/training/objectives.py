"""Training objectives: the task, given attention, adversaries, deception, distillation.

An objective belongs to one list of texts; `rows` are indices into that list. TVD is
½ Σ_c |p_c − q_c|, which for two classes is |Δp|; the code of Wiegreffe & Pinter halves it again, so
that their weight λ is 2λ here. KL is in nats.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.core.batch import Batch
from heedful.core.values import Decoder
from heedful.numerics.tensor.distributions import tvd

TokenWeights = Sequence[Float[Tensor, "_"]]
"""One vector per text, one value per token."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchOutput:
    """The output of a pass and the attention behind it.

    `rows` are the weights of each row, on special tokens too, and `attention` is their summary;
    `decode_under` computes the output under other weights.
    """

    batch: Batch
    logits: Float[Tensor, "B C"]
    rows: Float[Tensor, "B R T"]
    attention: Float[Tensor, "B T"]
    decode_under: Decoder


class Objective(ABC):
    """A loss to minimise, logits to score, and perhaps text scores to select an epoch by."""

    @abstractmethod
    def loss(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, ""]:
        """The loss that a training step minimises."""

    def logits(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B C"]:  # noqa: ARG002
        """The logits that dev scores are computed from: the model's own, by default."""
        return output.logits

    def text_scores(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"] | None:  # noqa: ARG002
        """A score for each text, higher is better; None where the task's own score selects."""
        return None


def pad_to_batch(vectors: Sequence[Tensor], rows: Sequence[int], batch: Batch) -> Tensor:
    """The vectors of some texts in the layout of the batch, zero on padding."""
    chosen = [vectors[row] for row in rows]
    padded = chosen[0].new_zeros(batch.present.shape)
    padded[batch.present] = torch.cat(chosen)
    return padded


@dataclass(frozen=True, eq=False)
class TaskObjective(Objective):
    """Predict the labels."""

    gold: Sequence[int]
    criterion: nn.Module = field(repr=False)

    def loss(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, ""]:
        """The criterion on the logits."""
        loss: Tensor = self.criterion(self.logits(output, rows), self.labels(rows))
        return loss

    def labels(self, rows: Sequence[int]) -> Tensor:
        """The labels of some texts."""
        return torch.tensor([self.gold[row] for row in rows])


@dataclass(frozen=True, eq=False)
class GuidedObjective(TaskObjective):
    """The task with attention fixed to given weights."""

    weights: TokenWeights = ()

    def logits(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B C"]:
        """The logits under the given weights."""
        given = pad_to_batch(self.weights, rows, output.batch)
        return output.decode_under(given.to(output.logits))


class TextLossObjective(Objective):
    """An objective on the model's own logits whose loss is a mean over texts."""

    def loss(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, ""]:
        """The mean over the texts."""
        return self.text_losses(output, rows).mean()

    def text_scores(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:
        """The negative loss of each text."""
        return -self.text_losses(output, rows)

    @abstractmethod
    def text_losses(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:
        """The loss of each text."""


@dataclass(frozen=True, eq=False)
class AdversaryObjective(TextLossObjective):
    """Predict what the base model predicts, with attention far from the base model's."""

    outputs: Float[Tensor, "n C"]
    weights: TokenWeights
    weight: float
    reverse: bool = False

    def text_losses(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:
        """TVD − λ·KL of each text."""
        probabilities = output.logits.softmax(-1), self.outputs[list(rows)].to(output.logits)
        base = pad_to_batch(self.weights, rows, output.batch).to(output.attention)
        attention, mask = (output.attention, base), output.batch.mask
        return adversary_loss(
            probabilities, attention, mask, weight=self.weight, reverse=self.reverse
        )


@dataclass(frozen=True, eq=False)
class DistillationObjective(TextLossObjective):
    """Cross-entropy with the given outputs, those of the base model on whole texts.

    On a text with masked words the optimum is the mean output of the whole texts that match it.
    """

    outputs: Float[Tensor, "n C"]

    def text_losses(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:
        """The cross-entropy of each text."""
        target = self.outputs[list(rows)].to(output.logits)
        return nn.functional.cross_entropy(output.logits, target, reduction="none")


@dataclass(frozen=True, eq=False)
class DeceptionObjective(TaskObjective):
    """The task, with a penalty on attention to the hidden tokens."""

    hidden: Sequence[Bool[Tensor, "_"]] = ()
    weight: float = 1.0
    worst: bool = False

    def loss(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, ""]:
        """The task's loss per text plus λ times the penalty."""
        task = super().loss(output, rows)
        if getattr(self.criterion, "reduction", "mean") == "sum":
            task = task / len(rows)
        return task + self.weight * self._penalty(output, rows).mean()

    def text_scores(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:
        """The negative sum of cross-entropy and penalty; all texts have equal weight."""
        task = nn.functional.cross_entropy(output.logits, self.labels(rows), reduction="none")
        return -(task + self.weight * self._penalty(output, rows))

    def _penalty(self, output: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:
        hidden = pad_to_batch(self.hidden, rows, output.batch)
        return hiding_penalty(output.rows, hidden, worst=self.worst)


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


def attention_kl(
    own: Float[Tensor, "*B T"], other: Float[Tensor, "*B T"], mask: Bool[Tensor, "*B T"]
) -> Float[Tensor, "*B"]:
    """KL(own ‖ other) over the tokens in the mask, with finite values and gradients everywhere.

    Outside the mask both weights are 0, and 0 · log 0 is 0, also in its derivative: libraries that
    multiply 0 by −∞ give NaN here. A weight that underflows to 0 inside the mask counts as the
    smallest positive number.

    >>> own, other = torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.5, 0.5, 0.0]])
    >>> attention_kl(own, other, torch.tensor([[True, True, False]]))
    tensor([0.6931])
    """
    tiny = torch.finfo(own.dtype).tiny
    logs = [torch.where(mask, one, 1.0).clamp(min=tiny).log() for one in (own, other)]
    return (own * (logs[0] - logs[1])).masked_fill(~mask, 0.0).sum(-1)


def adversary_loss(
    output: tuple[Float[Tensor, "B C"], Float[Tensor, "B C"]],
    attention: tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]],
    mask: Bool[Tensor, "B T"],
    *,
    weight: float,
    reverse: bool = False,
) -> Float[Tensor, "B"]:
    """TVD(p, p_base) − λ·KL(α ‖ α_base) of each text (Wiegreffe & Pinter, 2019, section 4).

    `output` and `attention` are pairs: the adversary's, then the base model's. `reverse` swaps the
    arguments of KL, which is another reading of the published code.
    """
    own, base = attention
    kl = attention_kl(base, own, mask) if reverse else attention_kl(own, base, mask)
    return tvd(*output) - weight * kl


def hiding_penalty(
    rows: Float[Tensor, "B R T"], hidden: Bool[Tensor, "B T"], *, worst: bool = False
) -> Float[Tensor, "B"]:
    """−log(1 − mass on the hidden tokens), the mean over a text's rows or its worst row.

    (Pruthi et al., 2020.) Zero for a text without hidden tokens. 1 − mass is summed from the other
    weights, those of special tokens included, instead of subtracted: a mass near 1 rounds to 1, and
    the gradient would vanish where it is needed most.

    >>> rows = torch.tensor([[[0.5, 0.5]]])
    >>> hiding_penalty(rows, torch.tensor([[True, False]]))
    tensor([0.6931])
    """
    rest = rows.masked_fill(hidden[:, None], 0.0).sum(-1)
    penalties = -rest.clamp(min=torch.finfo(rows.dtype).tiny).log()
    penalties = penalties.amax(-1) if worst else penalties.mean(-1)
    return torch.where(hidden.any(-1), penalties, torch.zeros_like(penalties))
