"""Does the explanation depend on what the labels taught? (Adebayo et al., 2018, second test)"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from torch import Tensor

from heedful.checks.base import Findings, TextValues, checks
from heedful.checks.faithfulness.word_removal import WordView
from heedful.checks.faithfulness.word_scores import DEFAULT_METHODS, score_words, with_attention
from heedful.checks.requested_methods import MethodOrName, method_name
from heedful.checks.retraining_base import (
    RetrainingContext,
    SeedAverages,
    require_seeds,
    seed_setting,
)
from heedful.checks.sanity.randomisation.check import RANK_CORRELATION, score_correlation
from heedful.core.records import Claim, Measurement
from heedful.data.batching import batches_for
from heedful.models.batch_context import BatchContext
from heedful.models.protocols import Subject
from heedful.training.variants.variants import (
    EarlyStopping,
    RetrainedVariant,
    ShuffledLabelsVariant,
    Variant,
)

WITH_LABELS, LEARNED = "with_labels", "learned"


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

    methods: tuple[MethodOrName, ...] = DEFAULT_METHODS
    seeds: int = 3
    epochs: int = 40
    patience: int = 5
    claim: ClassVar[Claim | None] = None
    head_measures: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", with_attention(self.methods))
        require_seeds(self.seeds)
        EarlyStopping(self.epochs, self.patience)  # wrong settings are said now

    @property
    def names(self) -> tuple[str, ...]:
        """The methods under test."""
        return tuple(map(method_name, self.methods))

    @property
    def measures(self) -> tuple[str, ...]:
        """Each for all methods."""
        return tuple(
            f"{one}_{name}"
            for one in (RANK_CORRELATION, WITH_LABELS, LEARNED)
            for name in self.names
        )

    @property
    def over_seeds(self) -> SeedAverages:
        """Both correlations."""
        return {
            f"{one}_{name}": "mean"
            for one in (RANK_CORRELATION, WITH_LABELS)
            for name in self.names
        }

    @property
    def differences(self) -> Mapping[str, tuple[str, str]]:
        """What the labels add."""
        return {
            f"{LEARNED}_{one}": (f"{WITH_LABELS}_{one}", f"{RANK_CORRELATION}_{one}")
            for one in self.names
        }

    def lessons(self, trial: RetrainingContext) -> list[Variant]:
        """With the labels shuffled, and as they are."""
        return [one for arm in self._arms(trial).values() for one in arm]

    def _arms(
        self, trial: RetrainingContext
    ) -> dict[str, list[ShuffledLabelsVariant | RetrainedVariant]]:
        pace, seeds = EarlyStopping(self.epochs, self.patience), trial.seeds(self.seeds)
        return {
            RANK_CORRELATION: [ShuffledLabelsVariant(seed, pace) for seed in seeds],
            WITH_LABELS: [RetrainedVariant(seed, "own", pace) for seed in seeds],
        }

    def examine(self, trial: RetrainingContext) -> Findings:
        """Every method on the model and on those made anew, text by text."""
        arms = self._arms(trial)
        keys = [(arm, variant.seed) for arm, many in arms.items() for variant in many]
        made = [trial.trained(variant).subject for many in arms.values() for variant in many]
        shape = len(keys), len(self.names), len(trial.texts.encoded)
        found, reasons = np.full(shape, np.nan), dict[str, str]()
        for rows, words in _batches(trial):
            own, why = score_words(words, self.methods, words.context.predicted)
            reasons = {**why, **reasons}
            for place, subject in enumerate(made):
                found[place][:, rows] = self._correlated(words, own, subject)
        missing = {
            f"{one}_{name}": why
            for name, why in reasons.items()
            for one in (RANK_CORRELATION, WITH_LABELS, LEARNED)
        }
        return Findings(tuple(self._measured(keys, found)), missing)

    def _correlated(
        self, words: WordView, own: Sequence[Float64[Tensor, "B W"]], subject: Subject
    ) -> TextValues:
        context = words.context
        other = BatchContext(subject, context.batch, context.seed, context.max_batch_tokens)
        scores, _ = score_words(WordView(other), self.methods, context.predicted)
        columns = [score_correlation(*pair, words) for pair in zip(own, scores, strict=True)]
        return np.stack([one.numpy() for one in columns])

    def _measured(
        self, keys: Sequence[tuple[str, int]], found: TextValues
    ) -> Iterator[Measurement]:
        means = {}
        for arm in (RANK_CORRELATION, WITH_LABELS):
            mine = [place for place, (one, _) in enumerate(keys) if one == arm]
            for row, name in enumerate(self.names):
                for place in mine:
                    setting = seed_setting(keys[place][1])
                    yield Measurement(f"{arm}_{name}", found[place, row], setting)
                means[arm, name] = found[mine, row].mean(0)
                yield Measurement(f"{arm}_{name}", means[arm, name])
        for name in self.names:
            yield Measurement(
                f"{LEARNED}_{name}", means[WITH_LABELS, name] - means[RANK_CORRELATION, name]
            )


def _batches(trial: RetrainingContext) -> Iterator[tuple[list[int], WordView]]:
    """The texts under audit before the model, some at a time."""
    encoded = trial.texts.encoded
    for rows in batches_for(trial.base, encoded, max_batch_tokens=trial.max_batch_tokens):
        batch = trial.base.batch([encoded[row] for row in rows])
        yield (
            rows,
            WordView(
                BatchContext(trial.base, batch, trial.seed, trial.max_batch_tokens, trial.clock)
            ),
        )
