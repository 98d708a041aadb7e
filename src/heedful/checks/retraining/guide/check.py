"""Does the attention help a model without context? (Wiegreffe & Pinter, 2019, section 3.4)"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from heedful.checks.base import Findings
from heedful.checks.retraining.guide.spec import DIFFERENCES
from heedful.checks.retraining_base import (
    RetrainingContext,
    require_seeds,
)
from heedful.core.errors import ConfigError
from heedful.core.records import Measurement
from heedful.models.recurrent.encoders import encoders
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.results.tables import TextValues
from heedful.training.loop.epochs import EarlyStopping
from heedful.training.variants.guided_model import (
    GUIDES,
    encode_seen_words,
    predict_under_weights,
    word_weights,
)
from heedful.training.variants.variants import AdversaryVariant, GuidedVariant, Variant


@dataclass(frozen=True)
class Guide:
    """Does the attention help a model without context?

    A model that sees each word on its own (`encoder`) is trained with four attentions: uniform
    weights, attention that it learns itself, and the weights that the audited model and an
    adversary (`adversary`, its λ) give the same texts. Weights that show which words are
    informative help a model that cannot learn this from context.
    """

    seeds: int = 3
    encoder: str = "average"
    adversary: float = 0.001
    epochs: int = 40
    patience: int = 5

    def __post_init__(self) -> None:
        require_seeds(self.seeds)
        EarlyStopping(self.epochs, self.patience)  # raises on wrong settings before the work begins
        AdversaryVariant(self.adversary)
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
            each = []
            for variant in self._guided(by):
                correct = self._correct(retraining, variant)
                measured.append(Measurement(f"score_{by}", correct, seed=variant.seed))
                each.append(correct)
            means[f"score_{by}"] = np.mean(each, axis=0)
        for difference, (one, other) in DIFFERENCES.items():
            means[difference] = means[one.measure] - means[other.measure]
        return Findings((*measured, *(Measurement(*one) for one in means.items())))

    def _guided(self, by: str) -> Iterator[GuidedVariant]:
        limits = EarlyStopping(self.epochs, self.patience)
        source = None
        if by == "adversary":
            source = AdversaryVariant(self.adversary, pace=limits.doubled)
        for seed in range(1, self.seeds + 1):
            yield GuidedVariant(seed, by, source, self.encoder, limits)

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
