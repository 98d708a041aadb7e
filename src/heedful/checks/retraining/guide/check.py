"""Does the attention help a model without context? (Wiegreffe & Pinter, 2019, section 3.4)"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heedful.checks.base import Findings, TextValues, checks
from heedful.checks.retraining_base import (
    RetrainingContext,
    SeedAverages,
    require_seeds,
    seed_setting,
)
from heedful.core.errors import ConfigError
from heedful.core.records import Claim, Measurement
from heedful.models.recurrent.encoders import encoders
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.variants.guided_model import (
    GUIDES,
    encode_seen_words,
    predict_under_weights,
    word_weights,
)
from heedful.training.variants.variants import (
    AdversaryVariant,
    EarlyStopping,
    GuidedVariant,
    Variant,
)


@checks.register("guide")
@dataclass(frozen=True)
class Guide:
    """Does the attention help a model without context?

    A model that sees each word on its own (`encoder`) is trained with its attention held at uniform
    weights, with attention of its own, and held at the weights that the base model and an adversary
    (`adversary`, its λ) give the same texts. Weights that tell where a text says what it says help
    a model that cannot find out.
    """

    seeds: int = 3
    encoder: str = "average"
    adversary: float = 0.001
    epochs: int = 40
    patience: int = 5
    claim: ClassVar[Claim | None] = "ranks"
    measures: ClassVar[tuple[str, ...]] = (
        *(f"score_{one}" for one in GUIDES),
        *(f"base_minus_{one}" for one in ("uniform", "own", "adversary")),
    )
    head_measures: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()
    over_seeds: ClassVar[SeedAverages] = {f"score_{one}": "mean" for one in GUIDES}
    differences: ClassVar[Mapping[str, tuple[str, str]]] = {
        f"base_minus_{one}": ("score_base", f"score_{one}")
        for one in ("uniform", "own", "adversary")
    }

    def __post_init__(self) -> None:
        require_seeds(self.seeds)
        EarlyStopping(self.epochs, self.patience)  # wrong settings are said now
        AdversaryVariant(self.adversary)
        blind = [name for name in encoders if getattr(encoders[name], "word_wise", False)]
        if self.encoder not in blind:
            raise ConfigError(
                f"guide.encoder must see each word on its own ({', '.join(blind)}); "
                f"{self.encoder} sees more."
            )

    def lessons(self, trial: RetrainingContext) -> list[Variant]:  # noqa: ARG002
        """Every guide with every seed."""
        return [variant for by in GUIDES for variant in self._lessons(by)]

    def examine(self, trial: RetrainingContext) -> Findings:
        """Accuracy under every guide."""
        measured, means = [], {}
        for by in GUIDES:
            each = []
            for variant in self._lessons(by):
                right = self._right(trial, variant)
                measured.append(Measurement(f"score_{by}", right, seed_setting(variant.seed)))
                each.append(right)
            means[f"score_{by}"] = np.mean(each, axis=0)
        for name, (one, other) in self.differences.items():
            means[name] = means[one] - means[other]
        return Findings((*measured, *(Measurement(*one) for one in means.items())))

    def _lessons(self, by: str) -> Iterator[GuidedVariant]:
        pace = EarlyStopping(self.epochs, self.patience)
        source = AdversaryVariant(self.adversary, pace=pace.doubled) if by == "adversary" else None
        for seed in range(1, self.seeds + 1):
            yield GuidedVariant(seed, by, source, self.encoder, pace)

    def _right(self, trial: RetrainingContext, variant: GuidedVariant) -> TextValues:
        subject = trial.trained(variant).subject
        assert isinstance(subject, RecurrentSubject)  # noqa: S101 - guided models are
        encoded, weights = trial.texts.encoded, None
        if variant.by == "base":
            weights = word_weights(encoded, trial.texts.base_predictions)
        elif variant.adversary is not None:
            weights = word_weights(encoded, trial.outlook(variant.adversary))
        return trial.right(
            predict_under_weights(subject, encode_seen_words(subject, encoded), weights)
        )
