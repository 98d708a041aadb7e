"""The training of an attention classifier, whatever it strives for."""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from heedful.core.batch import Batch, Encoded
from heedful.core.errors import ConfigError
from heedful.core.timing import Progress, silent
from heedful.core.values import Forward
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.loop.batching import USUAL
from heedful.training.loop.checkpoint import State
from heedful.training.loop.dev_scores import looked_over, require_dev, score_of
from heedful.training.loop.epochs import Kept, Until, run_epochs
from heedful.training.loop.sparse_step import Step
from heedful.training.recipe import Recipe, optimiser_for, shuffled_batches
from heedful.training.variants.objectives import Objective, Seen


@dataclass(frozen=True, eq=False)
class RecurrentCourse:
    """Who learns, how, from which texts, judged on which, and what counts with each."""

    subject: RecurrentSubject
    recipe: Recipe
    known: Sequence[Encoded]
    judged: Sequence[Encoded]
    learns: Objective
    judges: Objective

    def train(
        self, until: Until, *, kept: Kept | None = None, progress: Progress = silent
    ) -> State:
        """Train and leave the network at its best epoch, frozen."""
        require_dev(self.judged, len(self.subject.labels))
        network = self.subject.network.train().requires_grad_(True)
        state = State(network, optimiser_for(network, self.recipe))
        epochs = _Epochs(self, Step(network, state.optimiser), until.epochs)
        run_epochs(epochs, state, until, kept=kept, progress=progress)
        network.load_state_dict(state.best)
        network.eval().requires_grad_(False)
        return state

    def see(self, batch: Batch, forward: Forward) -> Seen:
        """A pass as objectives look at it."""

        def under(given: Float[Tensor, "..."]) -> Float[Tensor, "*K B C"]:
            return self.subject.decoder(batch, forward)(given)  # made for those who ask only

        return Seen(batch, forward.logits, forward.attention[:, None], forward.attention, under)

    def judge(self) -> tuple[float, float]:
        """What to choose this epoch by, and the accuracy on the dev texts."""

        def see(texts: list[Encoded]) -> Seen:
            batch = self.subject.batch(texts)
            return self.see(batch, self.subject.forward(batch))

        logits, worth = looked_over(self.judges, self.judged, see, max_batch_tokens=USUAL)
        score, accuracy = score_of(logits.softmax(-1).double(), self.judged)
        return (score if worth is None else worth), accuracy


@dataclass(frozen=True, eq=False)
class _Epochs:
    """A course with what it needs while it runs."""

    course: RecurrentCourse
    step: Step
    most: int

    def epoch(self, number: int, state: State, progress: Progress) -> None:
        course, recipe = self.course, self.course.recipe
        steps = -(-len(course.known) // recipe.batch)
        told = f"epoch {number + 1}/{self.most}"
        told += f", best dev {max(state.scores):.3f}" if state.scores else ""
        order = shuffled_batches(course.known, number, batch=recipe.batch, seed=recipe.seed)
        for done, rows in enumerate(order, start=1):
            self._learn(rows)
            progress(number * steps + done, self.most * steps, told)
        state.judged(*course.judge())

    def _learn(self, rows: Sequence[int]) -> None:
        course = self.course
        batch = course.subject.batch([course.known[row] for row in rows])

        def loss_of(forward: Forward) -> Tensor:
            return course.learns.loss(course.see(batch, forward), rows)

        if not bool(self.step(batch, loss_of).isfinite()):
            raise ConfigError(
                "Training broke down: the loss is not finite. Choose a lower rate than "
                f"{course.recipe.rate:g}."
            )
