"""One training step of an attention classifier, with word vectors that do not slow it down."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Batch
from heedful.core.values import Forward
from heedful.models.recurrent.classifier import AttentionClassifier


@dataclass(eq=False)
class SparseStep:
    """Forward, backward and update on one batch, down a loss that is made of the pass.

    The gradient of the word vectors is dense, as Adam needs it, but only the rows of the batch's
    words differ from zero. It is kept from step to step and only those rows are written and wiped:
    to make it anew each time takes a third of a step of a short-text batch.
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
        read = [batch.ids] if batch.query is None else [batch.ids, batch.query]
        embedded = [self.network.embed(ids).detach().requires_grad_() for ids in read]
        loss = loss_of(self.network(batch, *embedded))
        torch.autograd.backward(loss)
        for ids, vectors in zip(read, embedded, strict=True):
            assert vectors.grad is not None  # noqa: S101 - the backward pass above has filled it
            self.gradient.index_add_(0, ids.flatten(), vectors.grad.flatten(0, 1))
        self.gradient[0] = 0.0  # the padding word is no word and stays zero
        self.network.embedding.weight.grad = self.gradient
        self.optimiser.step()
        for ids in read:
            self.gradient[ids.flatten()] = 0.0
        return loss.detach()
