"""How much does attention vary with the seed? (Wiegreffe & Pinter, 2019, section 3.3)"""

from dataclasses import dataclass

import numpy as np
import torch

from heedful.checks.base import Findings
from heedful.checks.retraining_base import Paced, RetrainingContext, SeedCount, to_findings
from heedful.core.records import Measurement
from heedful.core.rng import uniform_keys
from heedful.core.settings import Repeats, check_on_init
from heedful.numerics.tensor.distributions import jsd, permute_weights, tvd, uniform_weights
from heedful.results.tables import TextValues
from heedful.training.recipe import NonNegativeFloat
from heedful.training.variants.variants import AdversaryVariant, RetrainedVariant, Variant


@check_on_init
@dataclass(frozen=True)
class Seeds(Paced):
    """How much does attention vary with the seed?

    The model is retrained by its own recipe with `seeds` seeds; `jsd_seeds` is each text's median
    distance between their attention and the audited model's. Three distances give the scale: an
    adversary trained to attend elsewhere (`adversary`, its λ), the model's own weights shuffled,
    and uniform weights. Among flat attentions every distance is small.
    """

    seeds: SeedCount = 5
    adversary: NonNegativeFloat = 0.001
    shuffles: Repeats = 10
    epochs: Repeats = 40
    patience: Repeats = 5

    def variants(self, retraining: RetrainingContext) -> list[Variant]:
        """The seeds and the adversary."""
        return [*self._retrained(retraining), self._adversary()]

    def examine(self, retraining: RetrainingContext) -> Findings:
        """Distances of every seed's attention from the audited model's."""
        variants, base = self._retrained(retraining), retraining.texts.base_predictions
        each, changes = [], []
        for one in variants:  # both at once: models are loaded one after the other
            each.append(retraining.attention_distance(one).numpy())
            outputs = retraining.predict(one).probabilities
            changes.append(tvd(outputs, base.probabilities).numpy())
        measured = [
            Measurement("jsd_seeds", column, seed=one.seed)
            for one, column in zip(variants, each, strict=True)
        ]
        median = np.median(each, axis=0)
        adversary = retraining.attention_distance(self._adversary()).numpy()
        columns = {
            "jsd_seeds": median,
            "jsd_adversary_beyond_seeds": adversary - median,
            "jsd_adversary": adversary,
            **self._controls(retraining),
            "max_attention": base.padded().amax(-1).numpy(),
            "tvd_seeds": np.mean(changes, axis=0),
        }
        return to_findings(measured, columns)

    def _retrained(self, retraining: RetrainingContext) -> list[RetrainedVariant]:
        return [RetrainedVariant(seed, "own", self.pace) for seed in retraining.seeds(self.seeds)]

    def _adversary(self) -> AdversaryVariant:
        return AdversaryVariant(self.adversary, pace=self.pace.doubled)

    def _controls(self, retraining: RetrainingContext) -> dict[str, TextValues]:
        """The distances of shuffled and of uniform weights from the model's own."""
        own, encoded = retraining.texts.base_predictions.padded(), retraining.texts.encoded
        mask = torch.zeros_like(own, dtype=torch.bool)
        for row, one in enumerate(encoded):
            mask[row, : len(one.word)] = torch.tensor(one.word) >= 0
        keys = uniform_keys(
            retraining.seed,
            "seeds, shuffled",
            [one.content for one in encoded],
            draws=self.shuffles,
            lengths=mask.sum(-1).tolist(),
        )
        shuffled = permute_weights(own, mask, keys=torch.from_numpy(keys))
        even = uniform_weights(mask, dtype=own.dtype)
        far = {"jsd_shuffled": jsd(shuffled, own).mean(0), "jsd_uniform": jsd(even, own)}
        return {name: one.numpy() for name, one in far.items()}
