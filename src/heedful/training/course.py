"""The training of an attention classifier, whatever it strives for."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.core.errors import ConfigError
from heedful.core.progress import Progress, silent
from heedful.core.values import Batch, Encoded, Forward, collate
from heedful.data.batching import batches
from heedful.models.recurrent import RecurrentSubject
from heedful.training.checkpoint import State
from heedful.training.loop import Kept, Until, run_epochs
from heedful.training.objectives import Objective, Seen
from heedful.training.recipe import Recipe, optimiser_for, shuffled_batches
from heedful.training.score import require_dev, score_of
from heedful.training.step import Step


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
        rows, decoder = forward.attention[:, None], self.subject.decoder(batch, forward)
        return Seen(batch, forward.logits, rows, forward.attention, decoder)

    def judge(self) -> tuple[float, float]:
        """What to choose this epoch by, and the accuracy on the dev texts."""
        size = len(self.judged), len(self.subject.labels)
        outputs, worth = torch.zeros(size, dtype=torch.float64), 0.0
        chosen_by_worth = False
        with torch.no_grad():
            for rows in batches(self.judged, max_batch_tokens=20_000):
                batch = collate([self.judged[row] for row in rows])
                seen = self.see(batch, self.subject.forward(batch))
                outputs[rows] = self.judges.logits(seen, rows).softmax(-1).double()
                if (each := self.judges.worth(seen, rows)) is not None:
                    worth, chosen_by_worth = worth + float(each.double().sum()), True
        score, accuracy = score_of(outputs, self.judged)
        return (worth / len(self.judged) if chosen_by_worth else score), accuracy


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
        batch = collate([course.known[row] for row in rows])

        def loss_of(forward: Forward) -> Tensor:
            return course.learns.loss(course.see(batch, forward), rows)

        if not bool(self.step(batch, loss_of).isfinite()):
            raise ConfigError(
                "Training broke down: the loss is not finite. Choose a lower rate than "
                f"{course.recipe.rate:g}."
            )
