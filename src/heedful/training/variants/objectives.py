"""What a training strives for: the task itself, the task under given weights, another's outputs.

An objective belongs to one list of texts; rows are places in that list.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.core.batch import Batch, Encoded
from heedful.core.values import Decoder
from heedful.models.protocols import Subject
from heedful.training.recipe import loss_for
from heedful.training.variants.context import EncodedTexts
from heedful.training.variants.hidden_words import DeceptionPenalty
from heedful.training.variants.losses import adversary_loss, hiding_penalty


@dataclass(frozen=True, slots=True, eq=False)
class BatchOutput:
    """What a pass over some texts shows: the output, the weights behind it, and other outputs.

    `rows` are the weights with those of special tokens, `attention` what they read as; `under`
    gives the output under weights from outside.
    """

    batch: Batch
    logits: Float[Tensor, "B C"]
    rows: Float[Tensor, "B R T"]
    attention: Float[Tensor, "B T"]
    under: Decoder


@runtime_checkable
class Objective(Protocol):
    """A loss to go down, an output to be judged by, and perhaps a worth to choose an epoch by."""

    def loss(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, ""]:
        """What a training step goes down."""
        ...

    def logits(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B C"]:
        """The output that counts."""
        ...

    def text_scores(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"] | None:
        """How good each text is, the more the better; None where the task's own score decides."""
        ...


TokenWeights = Sequence[Float[Tensor, "_"]]
"""One vector per text, as long as the text has tokens."""


def pad_to_batch(vectors: Sequence[Tensor], rows: Sequence[int], batch: Batch) -> Tensor:
    """Vectors of texts laid out as the batch is, zero on padding."""
    chosen = [vectors[row] for row in rows]
    laid = chosen[0].new_zeros(batch.present.shape)
    laid[batch.present] = torch.cat(chosen)
    return laid


@dataclass(frozen=True, eq=False)
class TaskObjective:
    """To predict the labels, as the base model learnt to."""

    gold: Sequence[int]
    criterion: nn.Module = field(repr=False)

    @classmethod
    def of(cls, texts: Sequence[Encoded], subject: Subject) -> "TaskObjective":
        """The task of these texts, with the published loss."""
        gold = [one.label for one in texts]
        query = any(one.query is not None for one in texts)
        return cls(gold, loss_for(gold, len(subject.labels), query=query))

    def loss(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, ""]:
        """The criterion on the output."""
        found: Tensor = self.criterion(self.logits(seen, rows), self.wanted(rows))
        return found

    def logits(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B C"]:  # noqa: ARG002
        """The model's own."""
        return seen.logits

    def text_scores(self, seen: BatchOutput, rows: Sequence[int]) -> None:  # noqa: ARG002
        """The task's score decides."""
        return

    def wanted(self, rows: Sequence[int]) -> Tensor:
        """The labels of some texts."""
        return torch.tensor([self.gold[row] for row in rows])


@dataclass(frozen=True, eq=False)
class GuidedObjective(TaskObjective):
    """The task with attention held at weights from outside."""

    weights: TokenWeights = ()

    def logits(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B C"]:
        """The output under the given weights."""
        given = pad_to_batch(self.weights, rows, seen.batch)
        return seen.under(given.to(seen.logits))


@dataclass(frozen=True, eq=False)
class AdversaryObjective:
    """To say what the base model says while attending elsewhere."""

    outputs: Float[Tensor, "n C"]
    weights: TokenWeights
    weight: float
    reverse: bool = False

    def loss(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, ""]:
        """TVD − λ·KL, the mean over the texts."""
        return self._each(seen, rows).mean()

    def logits(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B C"]:  # noqa: ARG002
        """The model's own."""
        return seen.logits

    def text_scores(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:
        """The loss of each text, turned round."""
        return -self._each(seen, rows)

    def _each(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:
        output = seen.logits.softmax(-1), self.outputs[list(rows)].to(seen.logits)
        attention = seen.attention, pad_to_batch(self.weights, rows, seen.batch).to(seen.attention)
        return adversary_loss(
            output, attention, seen.batch.mask, weight=self.weight, reverse=self.reverse
        )


@dataclass(frozen=True, eq=False)
class DeceptionObjective(TaskObjective):
    """The task, and no weight on the hidden tokens."""

    hidden: Sequence[Bool[Tensor, "_"]] = ()
    weight: float = 1.0
    worst: bool = False

    def loss(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, ""]:
        """The task's loss per text and λ times the penalty."""
        task = super().loss(seen, rows)
        if getattr(self.criterion, "reduction", "mean") == "sum":
            task = task / len(rows)
        return task + self.weight * self._penalty(seen, rows).mean()

    def text_scores(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:  # type: ignore[override]
        """Both, of each text, turned round; every text counts alike here."""
        task = nn.functional.cross_entropy(seen.logits, self.wanted(rows), reduction="none")
        return -(task + self.weight * self._penalty(seen, rows))

    def _penalty(self, seen: BatchOutput, rows: Sequence[int]) -> Float[Tensor, "B"]:
        marked = pad_to_batch(self.hidden, rows, seen.batch)
        return hiding_penalty(seen.rows, marked, worst=self.worst)


ObjectiveFactory = Callable[[EncodedTexts], Objective]
TaskFactory = Callable[[Sequence[Encoded]], TaskObjective]
"""The task of some texts, with the loss of the model's kind."""


def adversary_objective(weight: float, *, reverse: bool) -> ObjectiveFactory:
    """TVD − λ·KL against the base model."""

    def objective_for(texts: EncodedTexts) -> Objective:
        seen = texts.outlook
        return AdversaryObjective(seen.probabilities, seen.attention, weight, reverse)

    return objective_for


def deception_objective(plan: DeceptionPenalty, task_of: TaskFactory) -> ObjectiveFactory:
    """The labels and a penalty on the weight of the hidden words."""

    def objective_for(texts: EncodedTexts) -> Objective:
        task, marks = task_of(texts.encoded), texts.hidden(plan.hidden)
        return DeceptionObjective(task.gold, task.criterion, marks, plan.weight, plan.worst)

    return objective_for
