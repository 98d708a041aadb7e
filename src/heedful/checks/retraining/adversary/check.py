"""Can a whole model learn another attention with the same outputs? (Wiegreffe & Pinter, 4)"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heedful.checks.base import Findings, checks
from heedful.checks.interventions.base import require_epsilon
from heedful.checks.retraining_base import OverSeeds, Trial
from heedful.core.errors import ConfigError
from heedful.core.records import Claim, Measurement
from heedful.numerics.tensor.distributions import jsd, tvd
from heedful.training.variants.variants import STARTS, Adversary, Lesson, Pace, Retrained


@checks.register("adversary")
@dataclass(frozen=True)
class WholeAdversary:
    """Can a whole model learn another attention with the same outputs?

    For each λ in `weights` a model is trained to go down TVD(output) − λ·KL(attention ‖ base's),
    from scratch as published and from the base model. `tvd` is ½ Σ|Δp| (the published code halves
    it again), `jsd` the distance of its attention, `score` its accuracy; the figures without a
    setting are those of the adversary that attends farthest among those whose dev outputs lie
    within `epsilon`, or as near as those of a model merely trained with another seed
    (`…_another_seed`): nearer than that nobody can ask. `reverse` turns KL round. It has no vote:
    whether such models tell honest attention from inert has not been measured.
    """

    weights: tuple[float, ...] = (0.001, 0.0001, 0.0003, 0.01)
    starts: tuple[str, ...] = ("scratch", "base")
    epsilon: float = 0.05
    reverse: bool = False
    epochs: int = 80
    patience: int = 10
    claim: ClassVar[Claim | None] = "exclusive"
    measures: ClassVar[tuple[str, ...]] = (
        *("tvd", "jsd", "score", "score_base"),
        *("tvd_another_seed", "jsd_another_seed"),
    )
    of_heads: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()
    over_seeds: ClassVar[OverSeeds] = {}
    differences: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def __post_init__(self) -> None:
        require_epsilon(self.epsilon)
        if not self.weights or any(not one > 0 for one in self.weights):
            raise ConfigError(f"weights are numbers above 0, at least one; got {self.weights}.")
        if not self.starts or set(self.starts) - set(STARTS):
            raise ConfigError(f"starts are {' and '.join(STARTS)}, not {self.starts}.")
        Pace(self.epochs, self.patience)  # wrong settings are said now

    def lessons(self, trial: Trial) -> list[Lesson]:
        """Every λ from every start, and another seed to hold them against."""
        return [*self._adversaries(), self._another(trial)]

    def _another(self, trial: Trial) -> Retrained:
        return Retrained(trial.seeds(1)[0], pace=Pace(self.epochs, self.patience).halved)

    def _adversaries(self) -> list[Adversary]:
        pace = Pace(self.epochs, self.patience)
        return [
            Adversary(weight, start, self.reverse, pace=pace)
            for start in self.starts
            for weight in self.weights
        ]

    def examine(self, trial: Trial) -> Findings:
        """Output, attention and score of every adversary."""
        lessons, measured = self._adversaries(), []
        own = trial.texts.outlook.probabilities
        by_lesson = {}
        for lesson in lessons:
            outputs = trial.outlook(lesson).probabilities
            by_lesson[lesson] = {
                "tvd": tvd(outputs, own).numpy(),
                "jsd": trial.apart(lesson).numpy(),
                "score": trial.right(outputs),
            }
            measured += [
                Measurement(name, column, setting_of(lesson))
                for name, column in by_lesson[lesson].items()
            ]
        chosen = self._chosen(trial, lessons)
        other = self._another(trial)
        plain = {
            **by_lesson[chosen],
            "score_base": trial.right(own),
            "tvd_another_seed": tvd(trial.outlook(other).probabilities, own).numpy(),
            "jsd_another_seed": trial.apart(other).numpy(),
        }
        return Findings((*measured, *(Measurement(*one) for one in plain.items())))

    def _chosen(self, trial: Trial, lessons: list[Adversary]) -> Adversary:
        """The farthest that is near enough by the dev texts; the nearest output where none is."""
        base = trial.dev.outlook
        moved, apart = [], []
        both: list[Lesson] = [*lessons, self._another(trial)]
        for lesson in both:
            seen = trial.dev.seen_by(trial.taught(lesson).subject)
            moved.append(float(tvd(seen.probabilities, base.probabilities).mean()))
            apart.append(float(jsd(seen.padded(), base.padded()).mean()))
        enough = max(self.epsilon, moved.pop())
        near = [place for place, one in enumerate(moved) if one <= enough]
        if not near:
            return lessons[int(np.argmin(moved))]
        return lessons[max(near, key=lambda place: apart[place])]


def setting_of(lesson: Adversary) -> str:
    """How the rows of one adversary are marked."""
    return f"λ {lesson.weight:g}, {lesson.start}"
