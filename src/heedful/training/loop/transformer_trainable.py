"""Fine-tuning of a transformer: schedule, optimiser, gradient clipping."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Encoded
from heedful.core.rng import generator
from heedful.data.batching import DEFAULT_BATCH_TOKENS
from heedful.models.transformer.subject import TransformerSubject
from heedful.training.loop.epochs import EarlyStopping, require_finite
from heedful.training.loop.trainer import TrainingStep
from heedful.training.objectives import BatchOutput, TaskObjective
from heedful.training.recipe import FineTuning


@dataclass(frozen=True, eq=False)
class TransformerTrainable:
    """A transformer in training.

    With `readers`, the subjects through which the model reads training and dev texts, objectives
    see the attention of every pass. Passes then run without dropout, since the objectives would
    see the dropped weights otherwise. By default attention is not recorded.
    """

    subject: TransformerSubject
    recipe: FineTuning
    readers: tuple[TransformerSubject, TransformerSubject] | None = None

    @property
    def model(self) -> nn.Module:
        """The network of the subject."""
        model: nn.Module = self.subject.model
        return model

    @property
    def dev_batch_tokens(self) -> int:
        """The limit of the dev reader where attention is recorded."""
        return DEFAULT_BATCH_TOKENS if self.readers is None else self.readers[1].max_batch_tokens

    def limits(self, stopping: EarlyStopping) -> EarlyStopping:  # noqa: ARG002
        """All epochs of the recipe: its learning rate schedule ends with the last."""
        return EarlyStopping(self.recipe.epochs)

    def task_objective(self, texts: Sequence[Encoded]) -> TaskObjective:
        """The labels of these texts, with the mean cross-entropy."""
        return TaskObjective([one.label for one in texts], nn.CrossEntropyLoss())

    def build_optimiser(self) -> torch.optim.Optimizer:
        """AdamW."""
        return build_transformer_optimiser(self.model, self.recipe)

    @contextmanager
    def epoch_mode(self, number: int) -> Iterator[None]:
        """Training mode with dropout drawn from a seed of the epoch; evaluation mode afterwards."""
        self.model.train(self.readers is None)
        with torch.random.fork_rng(devices=[]):  # dropout draws from the global stream of torch
            torch.manual_seed(_dropout_seed(self.recipe.seed, number))
            yield
        self.model.eval()

    def build_step(self, optimiser: torch.optim.Optimizer) -> TrainingStep:
        """A step with clipped gradients at the learning rate of the schedule."""
        reader = self.subject if self.readers is None else self.readers[0]

        def step(
            texts: Sequence[Encoded],
            loss_of: Callable[[BatchOutput], Tensor],
            number: int,
            total: int,
        ) -> None:
            for group in optimiser.param_groups:
                group["lr"] = learning_rate_at(number, total, self.recipe)
            loss = loss_of(self._output(reader, texts))
            optimiser.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip)
            require_finite(norm, "a gradient", rate=self.recipe.rate)
            optimiser.step()

        return step

    def dev_output(self, texts: Sequence[Encoded]) -> BatchOutput:
        """The output on dev texts."""
        return self._output(self.subject if self.readers is None else self.readers[1], texts)

    def probabilities(self, logits: Float[Tensor, "n C"]) -> Float[Tensor, "n C"]:
        """The softmax in float64."""
        return logits.double().softmax(-1)

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


def learning_rate_at(step: int, steps: int, recipe: FineTuning) -> float:
    """The learning rate of a step, counted from 0: linear warmup, then linear decay towards 0."""
    warm = math.ceil(recipe.warmup * steps)
    if step < warm:
        return recipe.rate * (step + 1) / warm
    return recipe.rate * (steps - step) / (steps - warm)


def build_transformer_optimiser(model: nn.Module, recipe: FineTuning) -> torch.optim.AdamW:
    """AdamW without weight decay on biases and norms, which have one axis."""
    groups = [
        {
            "params": [one for one in model.parameters() if one.dim() > 1],
            "weight_decay": recipe.decay,
        },
        {"params": [one for one in model.parameters() if one.dim() <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.rate, fused=True)


def _dropout_seed(seed: int, epoch: int) -> int:
    return int(generator(seed, f"dropout epoch {epoch}").integers(2**63))
