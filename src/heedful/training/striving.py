"""What a model may be taught beside its task, whatever it is: an objective for some texts."""

from collections.abc import Callable, Sequence

from heedful.core.batch import Encoded
from heedful.training.hidden import Deceit
from heedful.training.objectives import Deceiving, Impostor, Objective, OwnTask
from heedful.training.room import Texts

Strive = Callable[[Texts], Objective]
Task = Callable[[Sequence[Encoded]], OwnTask]
"""The task of some texts, with the loss of the model's kind."""


def as_impostor(weight: float, *, reverse: bool) -> Strive:
    """TVD − λ·KL against the base model."""

    def strive(texts: Texts) -> Objective:
        seen = texts.outlook
        return Impostor(seen.probabilities, seen.attention, weight, reverse)

    return strive


def as_deceiver(plan: Deceit, task_of: Task) -> Strive:
    """The labels and a penalty on the weight of the hidden words."""

    def strive(texts: Texts) -> Objective:
        task, marks = task_of(texts.encoded), texts.hidden(plan.hidden)
        return Deceiving(task.gold, task.criterion, marks, plan.weight, plan.worst)

    return strive
