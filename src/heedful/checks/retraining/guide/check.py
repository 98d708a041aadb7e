"""Does the attention help a model without context? (Wiegreffe & Pinter, 2019, section 3.4)"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heedful.checks.base import Column, Findings, checks
from heedful.checks.retraining_base import OverSeeds, Trial, require_seeds, seed_name
from heedful.core.errors import ConfigError
from heedful.core.records import Claim, Measurement
from heedful.models.recurrent.encoders import encoders
from heedful.models.recurrent.subject import RecurrentSubject
from heedful.training.variants.guided_model import GUIDES, by_words, outputs_under, word_weights
from heedful.training.variants.variants import Adversary, Guided, Lesson, Pace


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
    of_heads: ClassVar[tuple[str, ...]] = ()
    beside: ClassVar[tuple[str, ...]] = ()
    over_seeds: ClassVar[OverSeeds] = {f"score_{one}": "mean" for one in GUIDES}
    differences: ClassVar[Mapping[str, tuple[str, str]]] = {
        f"base_minus_{one}": ("score_base", f"score_{one}")
        for one in ("uniform", "own", "adversary")
    }

    def __post_init__(self) -> None:
        require_seeds(self.seeds)
        Pace(self.epochs, self.patience)  # wrong settings are said now
        Adversary(self.adversary)
        blind = [name for name in encoders if getattr(encoders[name], "word_wise", False)]
        if self.encoder not in blind:
            raise ConfigError(
                f"guide.encoder must see each word on its own ({', '.join(blind)}); "
                f"{self.encoder} sees more."
            )

    def lessons(self, trial: Trial) -> list[Lesson]:  # noqa: ARG002
        """Every guide with every seed."""
        return [lesson for by in GUIDES for lesson in self._lessons(by)]

    def examine(self, trial: Trial) -> Findings:
        """Accuracy under every guide."""
        measured, means = [], {}
        for by in GUIDES:
            each = []
            for lesson in self._lessons(by):
                right = self._right(trial, lesson)
                measured.append(Measurement(f"score_{by}", right, seed_name(lesson.seed)))
                each.append(right)
            means[f"score_{by}"] = np.mean(each, axis=0)
        for name, (one, other) in self.differences.items():
            means[name] = means[one] - means[other]
        return Findings((*measured, *(Measurement(*one) for one in means.items())))

    def _lessons(self, by: str) -> Iterator[Guided]:
        pace = Pace(self.epochs, self.patience)
        source = Adversary(self.adversary, pace=pace.doubled) if by == "adversary" else None
        for seed in range(1, self.seeds + 1):
            yield Guided(seed, by, source, self.encoder, pace)

    def _right(self, trial: Trial, lesson: Guided) -> Column:
        subject = trial.taught(lesson).subject
        assert isinstance(subject, RecurrentSubject)  # noqa: S101 - guided models are
        encoded, weights = trial.texts.encoded, None
        if lesson.by == "base":
            weights = word_weights(encoded, trial.texts.outlook)
        elif lesson.adversary is not None:
            weights = word_weights(encoded, trial.outlook(lesson.adversary))
        return trial.right(outputs_under(subject, by_words(subject, encoded), weights))
