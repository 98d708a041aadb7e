"""The training of an attention classifier, whatever it strives for."""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Batch, Encoded
from heedful.core.errors import ConfigError
from heedful.core.timing import Progress, no_progress
from heedful.core.values import Forward
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.loop.batching import DEFAULT_BATCH_TOKENS
from heedful.training.loop.checkpoint import TrainingState
from heedful.training.loop.dev_scores import evaluate_objective, require_dev, selection_score
from heedful.training.loop.epochs import CheckpointFolder, EarlyStopping, run_epochs
from heedful.training.loop.sparse_step import SparseStep
from heedful.training.recipe import Recipe, build_recurrent_optimiser, shuffled_batches
from heedful.training.variants.objectives import BatchOutput, Objective


@dataclass(frozen=True, eq=False)
class RecurrentTrainer:
    """Who learns, how, from which texts, judged on which, and what counts with each."""

    subject: RecurrentSubject
    recipe: Recipe
    known: Sequence[Encoded]
    judged: Sequence[Encoded]
    train_objective: Objective
    dev_objective: Objective

    def train(
        self,
        stopping: EarlyStopping,
        *,
        kept: CheckpointFolder | None = None,
        progress: Progress = no_progress,
    ) -> TrainingState:
        """Train and leave the network at its best epoch, frozen."""
        require_dev(self.judged, len(self.subject.labels))
        network = self.subject.network.train().requires_grad_(True)
        state = TrainingState(network, build_recurrent_optimiser(network, self.recipe))
        epochs = _RecurrentEpochTrainer(self, SparseStep(network, state.optimiser), stopping.epochs)
        run_epochs(epochs, state, stopping, kept=kept, progress=progress)
        network.load_state_dict(state.best)
        network.eval().requires_grad_(False)
        return state

    def batch_output(self, batch: Batch, forward: Forward) -> BatchOutput:
        """A pass as objectives look at it."""

        def under(given: Float[Tensor, "..."]) -> Float[Tensor, "*K B C"]:
            return self.subject.decoder(batch, forward)(given)  # made for those who ask only

        return BatchOutput(
            batch, forward.logits, forward.attention[:, None], forward.attention, under
        )

    def judge(self) -> tuple[float, float]:
        """What to choose this epoch by, and the accuracy on the dev texts."""

        def batch_output(texts: list[Encoded]) -> BatchOutput:
            batch = self.subject.batch(texts)
            return self.batch_output(batch, self.subject.forward(batch))

        logits, text_scores = evaluate_objective(
            self.dev_objective, self.judged, batch_output, max_batch_tokens=DEFAULT_BATCH_TOKENS
        )
        score, accuracy = selection_score(logits.softmax(-1).double(), self.judged)
        return (score if text_scores is None else text_scores), accuracy


@dataclass(frozen=True, eq=False)
class _RecurrentEpochTrainer:
    """A course with what it needs while it runs."""

    course: RecurrentTrainer
    step: SparseStep
    most: int

    def epoch(self, number: int, state: TrainingState, progress: Progress) -> None:
        course, recipe = self.course, self.course.recipe
        steps = -(-len(course.known) // recipe.batch)
        message = f"epoch {number + 1}/{self.most}"
        message += f", best dev {max(state.scores):.3f}" if state.scores else ""
        order = shuffled_batches(course.known, number, batch=recipe.batch, seed=recipe.seed)
        for done, rows in enumerate(order, start=1):
            self._learn(rows)
            progress(number * steps + done, self.most * steps, message)
        state.judged(*course.judge())

    def _learn(self, rows: Sequence[int]) -> None:
        course = self.course
        batch = course.subject.batch([course.known[row] for row in rows])

        def loss_of(forward: Forward) -> Tensor:
            return course.train_objective.loss(course.batch_output(batch, forward), rows)

        if not bool(self.step(batch, loss_of).isfinite()):
            raise ConfigError(
                "Training broke down: the loss is not finite. Choose a lower rate than "
                f"{course.recipe.rate:g}."
            )
