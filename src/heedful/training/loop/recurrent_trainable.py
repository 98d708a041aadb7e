"""Training of an attention classifier, with a step whose cost does not grow with the vocabulary."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Batch, Encoded
from heedful.core.values import Forward
from heedful.data.batching import DEFAULT_BATCH_TOKENS
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.loop.epochs import EarlyStopping, require_finite
from heedful.training.loop.trainer import TrainingStep
from heedful.training.objectives import BatchOutput, TaskObjective
from heedful.training.recipe import Recipe, build_recurrent_optimiser


@dataclass(eq=False)
class SparseStep:
    """Forward, backward and update on one batch.

    Adam needs a dense gradient of the word vectors, but only the rows of the batch's words differ
    from zero. The gradient is kept from step to step, and only those rows are written and reset:
    allocating it in each step would take a third of the time of a batch of short texts.
    """

    network: AttentionClassifier
    optimiser: torch.optim.Optimizer
    gradient: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.gradient = torch.zeros_like(self.network.embedding.weight)

    def __call__(
        self, batch: Batch, loss_of: Callable[[Forward], Float[Tensor, ""]]
    ) -> Float[Tensor, ""]:
        self.optimiser.zero_grad(set_to_none=True)
        inputs = [batch.ids] if batch.query is None else [batch.ids, batch.query]
        embedded = [self.network.embed(ids).detach().requires_grad_() for ids in inputs]
        loss = loss_of(self.network(batch, *embedded))
        torch.autograd.backward(loss)
        for ids, vectors in zip(inputs, embedded, strict=True):
            assert vectors.grad is not None  # noqa: S101 - the backward pass above has filled it
            self.gradient.index_add_(0, ids.flatten(), vectors.grad.flatten(0, 1))
        self.gradient[0] = 0.0  # the vector of the padding token stays zero
        self.network.embedding.weight.grad = self.gradient
        self.optimiser.step()
        for ids in inputs:
            self.gradient[ids.flatten()] = 0.0
        return loss.detach()


@dataclass(frozen=True, eq=False)
class RecurrentTrainable:
    """An attention classifier in training."""

    subject: RecurrentSubject
    recipe: Recipe

    dev_batch_tokens = DEFAULT_BATCH_TOKENS

    @property
    def model(self) -> AttentionClassifier:
        """The network of the subject."""
        return self.subject.network

    def limits(self, stopping: EarlyStopping) -> EarlyStopping:
        """As asked."""
        return stopping

    def task_objective(self, texts: Sequence[Encoded]) -> TaskObjective:
        """The labels of these texts, with the published loss."""
        return TaskObjective.with_published_loss(texts, len(self.subject.labels))

    def build_optimiser(self) -> torch.optim.Optimizer:
        """AMSGrad, as published."""
        return build_recurrent_optimiser(self.model, self.recipe)

    def epoch_mode(self, number: int) -> AbstractContextManager[None]:  # noqa: ARG002
        """Nothing to set: the network has no dropout."""
        return nullcontext()

    def build_step(self, optimiser: torch.optim.Optimizer) -> TrainingStep:
        """A sparse step at a constant learning rate."""
        sparse = SparseStep(self.model, optimiser)

        def step(
            texts: Sequence[Encoded],
            loss_of: Callable[[BatchOutput], Tensor],
            number: int,  # noqa: ARG001
            total: int,  # noqa: ARG001
        ) -> None:
            batch = self.subject.batch(list(texts))
            loss = sparse(batch, lambda forward: loss_of(self._output(batch, forward)))
            require_finite(loss, "the loss", rate=self.recipe.rate)

        return step

    def dev_output(self, texts: Sequence[Encoded]) -> BatchOutput:
        """The output on dev texts."""
        batch = self.subject.batch(list(texts))
        return self._output(batch, self.subject.forward(batch))

    def probabilities(self, logits: Float[Tensor, "n C"]) -> Float[Tensor, "n C"]:
        """The softmax in the precision of the network."""
        return logits.softmax(-1).double()

    def _output(self, batch: Batch, forward: Forward) -> BatchOutput:
        def decode(given: Float[Tensor, "..."]) -> Float[Tensor, "*K B C"]:
            return self.subject.decoder(batch, forward)(given)  # built only when it is needed

        weights = forward.attention
        return BatchOutput(batch, forward.logits, weights[:, None], weights, decode)
