"""One trainer for every kind of classifier: a `Trainable` says how its model runs and steps."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.batch import Encoded
from heedful.core.timing import Progress, no_progress
from heedful.data.batching import DEFAULT_BATCH_TOKENS, batches
from heedful.models.protocols import Subject
from heedful.training.loop.epochs import (
    Checkpoint,
    EarlyStopping,
    TrainingState,
    run_epochs,
    shuffled_batches,
)
from heedful.training.loop.predictions import require_dev, selection_score
from heedful.training.objectives import BatchOutput, Objective, TaskObjective
from heedful.training.recipe import FineTuning, Recipe

TrainingStep = Callable[[Sequence[Encoded], Callable[[BatchOutput], Tensor]], None]
"""One update: texts, and the loss of their output."""
Task = tuple[Sequence[Encoded], Objective]
"""Texts, and an objective that belongs to them."""


class Trainable(ABC):
    """A model in training: the subject that training changes, and its recipe."""

    subject: Subject
    recipe: Recipe | FineTuning

    @property
    @abstractmethod
    def model(self) -> nn.Module:
        """The network of the subject."""

    @property
    def dev_batch_tokens(self) -> int:
        """How many tokens of dev texts are evaluated at once."""
        return DEFAULT_BATCH_TOKENS

    def limits(self, stopping: EarlyStopping) -> EarlyStopping:
        """When to stop, given the limits that a variant asks for."""
        return stopping

    @abstractmethod
    def task_objective(self, texts: Sequence[Encoded]) -> TaskObjective:
        """The labels of these texts, with the loss that this kind of model is trained with."""

    def task(self, texts: Sequence[Encoded]) -> Task:
        """The texts, to be classified."""
        return texts, self.task_objective(texts)

    @abstractmethod
    def build_optimiser(self) -> torch.optim.Optimizer:
        """A fresh optimiser for all weights."""

    def learning_rate(self, step: int, steps: int) -> float:  # noqa: ARG002
        """The learning rate of a step, counted from 0, of all steps."""
        return self.recipe.rate

    def epoch_mode(self, number: int) -> AbstractContextManager[None]:  # noqa: ARG002
        """The mode in which the model takes the steps of an epoch."""
        return nullcontext()

    @abstractmethod
    def build_step(self, optimiser: torch.optim.Optimizer) -> TrainingStep:
        """The update that is repeated for every batch."""

    @abstractmethod
    def dev_output(self, texts: Sequence[Encoded]) -> BatchOutput:
        """The output on dev texts."""

    def probabilities(self, logits: Float[Tensor, "n C"]) -> Float[Tensor, "n C"]:
        """The probabilities, in float64, that dev scores are computed from."""
        return logits.double().softmax(-1)


@dataclass(frozen=True, eq=False)
class Trainer:
    """Trains a model on some texts and selects its best epoch on others."""

    trainable: Trainable
    train_task: Task
    dev_task: Task
    stopping: EarlyStopping

    def train(
        self,
        *,
        checkpoint: Checkpoint | None = None,
        progress: Progress = no_progress,
        seconds: float = 0.0,
    ) -> TrainingState:
        """Train and leave the model at its best epoch, frozen; `seconds` were spent before."""
        require_dev(self.dev_task[0], len(self.trainable.subject.labels))
        model = self.trainable.model.train().requires_grad_(True)
        state = TrainingState(model, self.trainable.build_optimiser(), seconds=seconds)
        run_epochs(self.epoch, state, self.stopping, checkpoint=checkpoint, progress=progress)
        model.load_state_dict(state.best)
        model.eval().requires_grad_(False)
        return state

    def epoch(self, number: int, state: TrainingState, progress: Progress) -> None:
        """Visit every training text once, then record the dev score in the state."""
        trainable, (texts, objective) = self.trainable, self.train_task
        recipe, epochs = trainable.recipe, self.stopping.epochs
        steps = -(-len(texts) // recipe.batch)
        message = f"epoch {number + 1}/{epochs}"
        message += f", best dev {max(state.scores):.3f}" if state.scores else ""
        step = trainable.build_step(state.optimiser)
        order = shuffled_batches(texts, number, batch=recipe.batch, seed=recipe.seed)
        with trainable.epoch_mode(number):
            for done, rows in enumerate(order, start=number * steps):
                for group in state.optimiser.param_groups:
                    group["lr"] = trainable.learning_rate(done, epochs * steps)
                step([texts[row] for row in rows], partial(objective.loss, rows=rows))
                progress(done + 1, epochs * steps, message)
        state.record_epoch(*self.evaluate_dev())

    def evaluate_dev(self) -> tuple[float, float]:
        """The score to select this epoch by, and the accuracy, on the dev texts.

        The score is the mean text score of the objective where it has one.
        """
        texts, objective = self.dev_task
        logits, scores = dict[int, Tensor](), list[float]()
        with torch.no_grad():
            for rows in batches(texts, max_batch_tokens=self.trainable.dev_batch_tokens):
                output = self.trainable.dev_output([texts[row] for row in rows])
                logits |= dict(zip(rows, objective.logits(output, rows), strict=True))
                if (each := objective.text_scores(output, rows)) is not None:
                    scores += each.double().tolist()
        ordered = torch.stack([logits[row] for row in range(len(texts))])
        score, accuracy = selection_score(self.trainable.probabilities(ordered), texts)
        return (sum(scores) / len(scores) if scores else score), accuracy
