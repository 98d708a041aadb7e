"""Does the attention help a model without context? (Wiegreffe & Pinter, 2019, section 3.4)"""

from dataclasses import dataclass

import numpy as np

from heedful.checks.base import Findings
from heedful.checks.retraining.guide.spec import DIFFERENCES
from heedful.checks.retraining_base import Paced, RetrainingContext, SeedCount, to_findings
from heedful.core.errors import ConfigError
from heedful.core.records import Measurement
from heedful.core.settings import Repeats, check_on_init
from heedful.models.recurrent.encoders import encoders
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.results.tables import TextValues
from heedful.training.recipe import NonNegativeFloat
from heedful.training.variants.guided_model import (
    GUIDES,
    GuideName,
    encode_seen_words,
    predict_under_weights,
    word_weights,
)
from heedful.training.variants.variants import AdversaryVariant, GuidedVariant, Variant


@check_on_init
@dataclass(frozen=True)
class Guide(Paced):
    """Does the attention help a model without context?

    A model that sees each word on its own (`encoder`) is trained with four attentions: uniform
    weights, attention that it learns itself, and the weights that the audited model and an
    adversary (`adversary`, its λ) give the same texts. Weights that show which words are
    informative help a model that cannot learn this from context.
    """

    seeds: SeedCount = 3
    encoder: str = "average"
    adversary: NonNegativeFloat = 0.001
    epochs: Repeats = 40
    patience: Repeats = 5

    def __post_init__(self) -> None:
        known = [name for name in encoders if getattr(encoders[name], "word_wise", False)]
        if self.encoder not in known:
            raise ConfigError(
                f"guide.encoder must see each word on its own ({', '.join(known)}); "
                f"{self.encoder} sees more."
            )

    def variants(self, retraining: RetrainingContext) -> list[Variant]:  # noqa: ARG002
        """Every attention with every seed."""
        return [variant for by in GUIDES for variant in self._guided(by)]

    def examine(self, retraining: RetrainingContext) -> Findings:
        """Accuracy with every attention."""
        measured, means = [], dict[str, TextValues]()
        for by in GUIDES:
            each = {one.seed: self._correct(retraining, one) for one in self._guided(by)}
            name = f"score_{by}"
            measured += [Measurement(name, column, seed=seed) for seed, column in each.items()]
            means[name] = np.mean(list(each.values()), axis=0)
        for difference, (one, other) in DIFFERENCES.items():
            means[difference] = means[one.measure] - means[other.measure]
        return to_findings(measured, means)

    def _guided(self, by: GuideName) -> list[GuidedVariant]:
        source = None
        if by == "adversary":
            source = AdversaryVariant(self.adversary, pace=self.pace.doubled)
        return [
            GuidedVariant(seed, by, source, self.encoder, self.pace)
            for seed in range(1, self.seeds + 1)
        ]

    def _correct(self, retraining: RetrainingContext, variant: GuidedVariant) -> TextValues:
        subject = retraining.trained(variant).subject
        assert isinstance(subject, RecurrentSubject)  # noqa: S101 - guided models are
        encoded, weights = retraining.texts.encoded, None
        if variant.by == "base":
            weights = word_weights(encoded, retraining.texts.base_predictions)
        elif variant.adversary is not None:
            weights = word_weights(encoded, retraining.predict(variant.adversary))
        return retraining.correct(
            predict_under_weights(subject, encode_seen_words(subject, encoded), weights)
        )
