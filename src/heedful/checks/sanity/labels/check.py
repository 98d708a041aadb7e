"""Does the explanation depend on what the labels taught? (Adebayo et al., 2018, second test)"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.base import Column, Findings, checks
from heedful.checks.faithfulness.word_removal import Words
from heedful.checks.faithfulness.word_scores import USUAL, scores_of_words, with_attention
from heedful.checks.requested_methods import Asked, name_of
from heedful.checks.retraining_base import OverSeeds, Trial, require_seeds, seed_name
from heedful.checks.sanity.randomisation.check import MEASURE, correlated
from heedful.core.records import Claim, Measurement
from heedful.models.batch_context import Sitting
from heedful.models.protocols import Subject
from heedful.training.loop.batching import batches_for
from heedful.training.variants.variants import Lesson, Pace, Retrained, Shuffled

TRUE, LEARNED = "with_labels", "learned"


@checks.register("labels")
@dataclass(frozen=True)
class Labels:
    """Does the explanation depend on what the labels taught?

    The recipe is followed with `seeds` on training texts whose labels were dealt out anew, until
    they are known by heart: what such a model attends to it did not learn from the task.
    `rank_correlation_M` is Spearman's ρ of |M| on the model and on those, for the class that the
    model predicts; `with_labels_M` the same of models trained with the same seeds on the labels as
    they are, and `learned_M` the second minus the first. It bears on no claim.
    """

    methods: tuple[Asked, ...] = USUAL
    seeds: int = 3
    epochs: int = 40
    patience: int = 5
    claim: ClassVar[Claim | None] = None
    of_heads: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", with_attention(self.methods))
        require_seeds(self.seeds)
        Pace(self.epochs, self.patience)  # wrong settings are said now

    @property
    def names(self) -> tuple[str, ...]:
        """The methods under test."""
        return tuple(map(name_of, self.methods))

    @property
    def measures(self) -> tuple[str, ...]:
        """Each for all methods."""
        return tuple(f"{one}_{name}" for one in (MEASURE, TRUE, LEARNED) for name in self.names)

    @property
    def over_seeds(self) -> OverSeeds:
        """Both correlations."""
        return {f"{one}_{name}": "mean" for one in (MEASURE, TRUE) for name in self.names}

    @property
    def differences(self) -> Mapping[str, tuple[str, str]]:
        """What the labels add."""
        return {f"{LEARNED}_{one}": (f"{TRUE}_{one}", f"{MEASURE}_{one}") for one in self.names}

    def lessons(self, trial: Trial) -> list[Lesson]:
        """With the labels shuffled, and as they are."""
        return [one for arm in self._arms(trial).values() for one in arm]

    def _arms(self, trial: Trial) -> dict[str, list[Shuffled | Retrained]]:
        pace, seeds = Pace(self.epochs, self.patience), trial.seeds(self.seeds)
        return {
            MEASURE: [Shuffled(seed, pace) for seed in seeds],
            TRUE: [Retrained(seed, "own", pace) for seed in seeds],
        }

    def examine(self, trial: Trial) -> Findings:
        """Every method on the model and on those made anew, text by text."""
        arms = self._arms(trial)
        keys = [(arm, lesson.seed) for arm, many in arms.items() for lesson in many]
        made = [trial.taught(lesson).subject for many in arms.values() for lesson in many]
        shape = len(keys), len(self.names), len(trial.texts.encoded)
        found, reasons = np.full(shape, np.nan), dict[str, str]()
        for rows, words in _batches(trial):
            own, why = scores_of_words(words, self.methods, words.sitting.predicted)
            reasons = {**why, **reasons}
            for place, subject in enumerate(made):
                found[place][:, rows] = self._correlated(words, own, subject)
        missing = {
            f"{one}_{name}": why
            for name, why in reasons.items()
            for one in (MEASURE, TRUE, LEARNED)
        }
        return Findings(tuple(self._measured(keys, found)), missing)

    def _correlated(
        self, words: Words, own: Sequence[Float64[Tensor, "B W"]], subject: Subject
    ) -> Column:
        sitting = words.sitting
        other = Sitting(subject, sitting.batch, sitting.seed, sitting.max_batch_tokens)
        scores, _ = scores_of_words(Words(other), self.methods, sitting.predicted)
        columns = [correlated(*pair, words) for pair in zip(own, scores, strict=True)]
        return np.stack([one.numpy() for one in columns])

    def _measured(self, keys: Sequence[tuple[str, int]], found: Column) -> Iterator[Measurement]:
        means = {}
        for arm in (MEASURE, TRUE):
            mine = [place for place, (one, _) in enumerate(keys) if one == arm]
            for row, name in enumerate(self.names):
                for place in mine:
                    setting = seed_name(keys[place][1])
                    yield Measurement(f"{arm}_{name}", found[place, row], setting)
                means[arm, name] = found[mine, row].mean(0)
                yield Measurement(f"{arm}_{name}", means[arm, name])
        for name in self.names:
            yield Measurement(f"{LEARNED}_{name}", means[TRUE, name] - means[MEASURE, name])


def _batches(trial: Trial) -> Iterator[tuple[list[int], Words]]:
    """The texts under audit before the model, some at a time."""
    encoded = trial.texts.encoded
    for rows in batches_for(trial.base, encoded, max_batch_tokens=trial.max_batch_tokens):
        batch = trial.base.batch([encoded[row] for row in rows])
        yield (
            rows,
            Words(Sitting(trial.base, batch, trial.seed, trial.max_batch_tokens, trial.clock)),
        )
