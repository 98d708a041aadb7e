"""One trainer for every kind of classifier: a `Trainable` says how its model runs and steps."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Encoded
from heedful.core.timing import Progress, no_progress
from heedful.data.batching import batches
from heedful.models.protocols import Subject
from heedful.training.loop.checkpoint import TrainingState
from heedful.training.loop.dev_scores import require_dev, selection_score
from heedful.training.loop.epochs import CheckpointFolder, EarlyStopping, run_epochs
from heedful.training.objectives import BatchOutput, Objective, TaskObjective
from heedful.training.recipe import FineTuning, Recipe, shuffled_batches

TrainingStep = Callable[[Sequence[Encoded], Callable[[BatchOutput], Tensor], int, int], None]
"""One update: texts, loss of their output, number of the step from 0, number of all steps."""


@runtime_checkable
class Trainable(Protocol):
    """A model in training."""

    @property
    def subject(self) -> Subject:
        """The subject that training changes."""
        ...

    @property
    def recipe(self) -> Recipe | FineTuning:
        """Batch size, learning rate and seed."""
        ...

    @property
    def model(self) -> nn.Module:
        """The network of the subject."""
        ...

    @property
    def dev_batch_tokens(self) -> int:
        """How many tokens are evaluated at once."""
        ...

    def limits(self, stopping: EarlyStopping) -> EarlyStopping:
        """When to stop, given the limits that a variant asks for."""
        ...

    def task_objective(self, texts: Sequence[Encoded]) -> TaskObjective:
        """The labels of these texts, with the loss that this kind of model is trained with."""
        ...

    def build_optimiser(self) -> torch.optim.Optimizer:
        """A fresh optimiser for all weights."""
        ...

    def epoch_mode(self, number: int) -> AbstractContextManager[None]:
        """The mode in which the model takes the steps of an epoch."""
        ...

    def build_step(self, optimiser: torch.optim.Optimizer) -> TrainingStep:
        """The update that is repeated for every batch."""
        ...

    def dev_output(self, texts: Sequence[Encoded]) -> BatchOutput:
        """The output on dev texts."""
        ...

    def probabilities(self, logits: Float[Tensor, "n C"]) -> Float[Tensor, "n C"]:
        """The probabilities, in float64, that dev scores are computed from."""
        ...


@dataclass(frozen=True, eq=False)
class Trainer:
    """Trains a model on some texts and selects its best epoch on others."""

    trainable: Trainable
    train_texts: Sequence[Encoded]
    dev_texts: Sequence[Encoded]
    train_objective: Objective
    dev_objective: Objective
    stopping: EarlyStopping

    def train(
        self,
        *,
        checkpoint: CheckpointFolder | None = None,
        progress: Progress = no_progress,
        seconds: float = 0.0,
    ) -> TrainingState:
        """Train and leave the model at its best epoch, frozen; `seconds` were spent before."""
        require_dev(self.dev_texts, len(self.trainable.subject.labels))
        model = self.trainable.model.train().requires_grad_(True)
        state = TrainingState(model, self.trainable.build_optimiser(), seconds=seconds)
        run_epochs(self, state, self.stopping, checkpoint=checkpoint, progress=progress)
        model.load_state_dict(state.best)
        model.eval().requires_grad_(False)
        return state

    def epoch(self, number: int, state: TrainingState, progress: Progress) -> None:
        """Visit every training text once, then record the dev score in the state."""
        recipe, epochs = self.trainable.recipe, self.stopping.epochs
        steps = -(-len(self.train_texts) // recipe.batch)
        message = f"epoch {number + 1}/{epochs}"
        message += f", best dev {max(state.scores):.3f}" if state.scores else ""
        step = self.trainable.build_step(state.optimiser)
        order = shuffled_batches(self.train_texts, number, batch=recipe.batch, seed=recipe.seed)
        with self.trainable.epoch_mode(number):
            for done, rows in enumerate(order, start=number * steps):
                loss = partial(self.train_objective.loss, rows=rows)
                step([self.train_texts[row] for row in rows], loss, done, epochs * steps)
                progress(done + 1, epochs * steps, message)
        state.record_epoch(*self.evaluate_dev())

    def evaluate_dev(self) -> tuple[float, float]:
        """The score to select this epoch by, and the accuracy, on the dev texts.

        The score is the mean text score of the objective where it has one.
        """
        logits, scores = dict[int, Tensor](), list[float]()
        with torch.no_grad():
            for rows in batches(self.dev_texts, max_batch_tokens=self.trainable.dev_batch_tokens):
                output = self.trainable.dev_output([self.dev_texts[row] for row in rows])
                logits |= dict(zip(rows, self.dev_objective.logits(output, rows), strict=True))
                if (each := self.dev_objective.text_scores(output, rows)) is not None:
                    scores += each.double().tolist()
        ordered = torch.stack([logits[row] for row in range(len(self.dev_texts))])
        score, accuracy = selection_score(self.trainable.probabilities(ordered), self.dev_texts)
        return (sum(scores) / len(scores) if scores else score), accuracy
