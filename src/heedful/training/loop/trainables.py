"""The two kinds of models in training: attention classifiers, and transformers."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Batch, Encoded
from heedful.core.rng import generator
from heedful.core.values import Forward
from heedful.data.batching import DEFAULT_BATCH_TOKENS
from heedful.models.recurrent.classifier import AttentionClassifier
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.models.transformer.subject import TransformerSubject
from heedful.training.loop.epochs import EarlyStopping, require_finite
from heedful.training.loop.trainer import Trainable, TrainingStep
from heedful.training.objectives import BatchOutput, TaskObjective, loss_for
from heedful.training.recipe import FineTuning, Recipe


@dataclass(frozen=True, eq=False)
class RecurrentTrainable(Trainable):
    """An attention classifier in training, at a constant learning rate and without dropout."""

    subject: RecurrentSubject
    recipe: Recipe

    @property
    def model(self) -> AttentionClassifier:
        return self.subject.network

    def task_objective(self, texts: Sequence[Encoded]) -> TaskObjective:
        gold = [one.label for one in texts]
        query = any(one.query is not None for one in texts)
        return TaskObjective(gold, loss_for(gold, len(self.subject.labels), query=query))

    def build_optimiser(self) -> torch.optim.Optimizer:
        return build_recurrent_optimiser(self.model, self.recipe)

    def build_step(self, optimiser: torch.optim.Optimizer) -> TrainingStep:
        sparse = SparseStep(self.model, optimiser)

        def step(texts: Sequence[Encoded], loss_of: Callable[[BatchOutput], Tensor]) -> None:
            batch = self.subject.batch(list(texts))
            loss = sparse(batch, lambda forward: loss_of(self._output(batch, forward)))
            require_finite(loss, "the loss", rate=self.recipe.rate)

        return step

    def dev_output(self, texts: Sequence[Encoded]) -> BatchOutput:
        batch = self.subject.batch(list(texts))
        return self._output(batch, self.subject.forward(batch))

    def probabilities(self, logits: Float[Tensor, "n C"]) -> Float[Tensor, "n C"]:
        return logits.softmax(-1).double()

    def _output(self, batch: Batch, forward: Forward) -> BatchOutput:
        def decode(given: Float[Tensor, "..."]) -> Float[Tensor, "*K B C"]:
            return self.subject.decoder(batch, forward)(given)  # built only when it is needed

        weights = forward.attention
        return BatchOutput(batch, forward.logits, weights[:, None], weights, decode)


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


@dataclass(frozen=True, eq=False)
class TransformerTrainable(Trainable):
    """A transformer in training, for all epochs of its recipe: its schedule ends with the last.

    With `readers`, the subjects through which the model reads training and dev texts, objectives
    see the attention of every pass. Passes then run without dropout, since the objectives would
    see the dropped weights otherwise. By default attention is not recorded.
    """

    subject: TransformerSubject
    recipe: FineTuning
    readers: tuple[TransformerSubject, TransformerSubject] | None = None

    @property
    def model(self) -> nn.Module:
        model: nn.Module = self.subject.model
        return model

    @property
    def dev_batch_tokens(self) -> int:
        return DEFAULT_BATCH_TOKENS if self.readers is None else self.readers[1].max_batch_tokens

    def limits(self, stopping: EarlyStopping) -> EarlyStopping:  # noqa: ARG002
        return EarlyStopping(self.recipe.epochs)

    def task_objective(self, texts: Sequence[Encoded]) -> TaskObjective:
        return TaskObjective([one.label for one in texts], nn.CrossEntropyLoss())

    def build_optimiser(self) -> torch.optim.Optimizer:
        return build_transformer_optimiser(self.model, self.recipe)

    def learning_rate(self, step: int, steps: int) -> float:
        return learning_rate_at(step, steps, self.recipe)

    @contextmanager
    def epoch_mode(self, number: int) -> Iterator[None]:
        """Training mode with dropout drawn from a seed of the epoch; evaluation mode afterwards."""
        seed = generator(self.recipe.seed, f"dropout epoch {number}").integers(2**63)
        self.model.train(self.readers is None)
        with torch.random.fork_rng(devices=[]):  # dropout draws from the global stream of torch
            torch.manual_seed(int(seed))
            yield
        self.model.eval()

    def build_step(self, optimiser: torch.optim.Optimizer) -> TrainingStep:
        reader = self.subject if self.readers is None else self.readers[0]

        def step(texts: Sequence[Encoded], loss_of: Callable[[BatchOutput], Tensor]) -> None:
            loss = loss_of(self._output(reader, texts))
            optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
            require_finite(norm, "a gradient", rate=self.recipe.rate)
            optimiser.step()

        return step

    def dev_output(self, texts: Sequence[Encoded]) -> BatchOutput:
        return self._output(self.subject if self.readers is None else self.readers[1], texts)

    def _output(self, reader: TransformerSubject, texts: Sequence[Encoded]) -> BatchOutput:
        batch = reader.batch(list(texts))
        decode = reader.full_decoder(batch)
        if self.readers is None:
            logits = reader.logits(batch)
            none = logits.new_zeros(len(batch), 1, batch.ids.shape[1])
            return BatchOutput(batch, logits, none, none[:, 0], decode)
        forward = reader.forward(batch)
        assert forward.rows is not None  # noqa: S101 - a transformer's passes have rows
        return BatchOutput(batch, forward.logits, forward.rows, forward.attention, decode)


def build_transformer_optimiser(model: nn.Module, recipe: FineTuning) -> torch.optim.AdamW:
    """AdamW without weight decay on biases and norms, which have one axis."""
    weights = list(model.parameters())
    groups = [
        {"params": [one for one in weights if one.dim() > 1], "weight_decay": recipe.decay},
        {"params": [one for one in weights if one.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.rate, fused=True)


def learning_rate_at(step: int, steps: int, recipe: FineTuning) -> float:
    """The learning rate of a step, counted from 0: linear warmup, then linear decay towards 0."""
    warm = math.ceil(recipe.warmup * steps)
    if step < warm:
        return recipe.rate * (step + 1) / warm
    return recipe.rate * (steps - step) / (steps - warm)
